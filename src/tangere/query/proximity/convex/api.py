"""What of analytic bodies, meshes and ground is nearer than a distance, at one instant: pairs and batches.

Question: which bodies, and which triangles of meshes and of ground, are nearer to a body than a distance?
Method:   two analytic bodies by their nearest points (`distance.convex`); a body and a mesh, or ground in blocks, by
          all triangles that the OBB tree leaves (`manifold.mesh.near_triangles`); two meshes by their features
          (`proximity.api`).
Sound:    a pair of bodies, or a body and a triangle, is in the answer if and only if its distance, as `distance` finds
          it from above, is below the one given; bodies that overlap are, with gap 0. Ground is solid: what is below its
          surface is inside it, of kind INSIDE.
Known as: proximity query, contacts within a margin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundBlocks
from tangere.query.contacts.record import Contacts, Kind
from tangere.query.dispatch import TERRAIN, is_analytic, kind_of, refuse_unsupported
from tangere.query.distance.convex.api import ACCURACY, convex_distance
from tangere.query.distance.convex.bodies import (
    ConvexBodies,
    MeshBody,
    PlacedBodies,
    as_placed,
    paired_count,
)
from tangere.query.distance.heightfield import heightfield_distance
from tangere.query.first_contact.mesh_heightfield.details import in_ground
from tangere.query.intersection.posed import as_posed
from tangere.query.listed_bodies import ball_radius, turned_round
from tangere.query.manifold.mesh.near_triangles import NearTriangle, near_triangle_kernel
from tangere.query.proximity.api import proximity
from tangere.runtime import Arrays, InputError, choose_device, collect, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh

#: Bodies worth a thread.
GRAIN = 8


def bodies_proximity(
    a: Any,
    b: Any,
    *,
    distance: float,
    time: Arrays = 0.0,
    nearest: bool = False,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of two things of which one is analytic, moving or ground; n bodies with n, or n with 1.

    Args:
        a, b: meshes or analytic bodies, at rest or moving; `b` may be the ground.
        distance: what is nearer than this is in contact [m].
        time: instants in [0, 1], one or (n,); one of meshes in Linear motion.
        nearest: of each pair of bodies only the nearest contact.

    Returns:
        By rising pair (`query`), then by triangle. `feature_a` and `feature_b` are triangles of meshes and faces of
        ground; an analytic body has no features (-1). `gap` is the distance, 0 where they overlap; the normal is zero
        there. Two meshes have contacts of their features, as from `proximity` of meshes.
    """
    with using_threads(threads):
        if not is_analytic(a) and not is_analytic(b):
            found = _of_meshes(a, b, distance, time, device)
        elif kind_of(b) == TERRAIN:
            found = _on_ground(a, b, distance, time, device)
        elif is_analytic(a) and is_analytic(b):
            found = _of_bodies(a, b, distance, time, device)
        elif is_analytic(a):
            found = _of_mesh(as_placed(a, time), as_placed(b, time), distance, device)
        else:
            found = turned_round(_of_mesh(as_placed(b, time), as_placed(a, time), distance, device))
            found = replace(found, body_a=found.body_b, body_b=found.body_a)
    return _nearest_of_each(found) if nearest else found


def _of_bodies(a: Any, b: Any, distance: float, time: Arrays, device: Any) -> Contacts:
    """Of analytic bodies: the nearest points of each pair."""
    found = convex_distance(a, b, time=time, device=device)
    upper = np.atleast_1d(found.upper)
    rows = np.flatnonzero(upper < distance)
    columns = {name: np.reshape(getattr(found, name), (len(upper), 3))[rows] for name in ("point_a", "point_b")}
    normal = np.reshape(found.normal, (len(upper), 3))[rows]
    kind = np.atleast_1d(found.kind)[rows].astype(np.uint8)
    return Contacts.of(**columns, normal=normal, gap=upper[rows], kind=kind, query=rows.astype(np.int32))


def _of_meshes(a: Any, b: Any, distance: float, time: Arrays, device: Any) -> Contacts:
    """Of a mesh and a mesh or ground: pair by pair, since each has trees of its own."""
    ground = kind_of(b) == TERRAIN
    posed = [as_posed(thing, time) for thing in ((a,) if ground else (a, b))]
    if all(side.single for side in posed):
        return _two_meshes(_still(a, time), _still(b, time), distance, device)
    count = paired_count(len(posed[0].poses), len(posed[-1].poses))
    parts = []
    for row in range(count):
        sides = [side.mesh.at(side.poses[min(row, len(side.poses) - 1)]) for side in posed]
        found = _two_meshes(sides[0], b if ground else sides[1], distance, device)
        parts.append(replace(found, query=np.full(len(found), row, np.int32)))
    return Contacts.joined(parts) if parts else Contacts()


def _of_mesh(body: PlacedBodies, mesh: PlacedBodies, distance: float, device: Any) -> Contacts:
    """Of bodies and a mesh: every triangle that is nearer."""
    found = _near_triangles(body, mesh, distance, device)
    return _contacts(found, body.poses, found["triangle"].astype(np.int64))


def _near_triangles(body: PlacedBodies, mesh: PlacedBodies, distance: float, device: Any) -> np.ndarray:
    """`NearTriangle` records, by query and triangle."""
    if not isinstance(body.shape, Analytic) or not isinstance(mesh.shape, Mesh):
        refuse_unsupported("proximity", body.shape, mesh.shape)
    on = choose_device(device, body.shape.poses)
    convex, tree = ConvexBodies.of(body.shape, on), MeshBody.of(mesh.shape, on)
    count = paired_count(len(body.poses), len(mesh.poses))
    poses = [wp.array(np.ascontiguousarray(side.poses), dtype=wp.mat44d, device=on) for side in (body, mesh)]
    inputs = [*convex.arguments, poses[0], *tree.arguments, poses[1], distance, 0.0, ACCURACY]
    kernel = near_triangle_kernel(convex.kind)
    found = collect(kernel, count, inputs, NearTriangle, device=on, grain=GRAIN).numpy()
    found = found[(found["meet"] != 0) | (found["gap"] < distance)]
    return found[np.lexsort((found["triangle"], found["row"]))]


def _contacts(found: np.ndarray, poses: np.ndarray, triangles: np.ndarray) -> Contacts:
    """The record, with the triangles by their numbers; `poses` are those of the bodies."""
    overlap = (found["meet"] != 0) | (found["gap"] <= 0.0)
    origin = poses[np.minimum(found["row"], len(poses) - 1), :3, 3]
    on_triangle = origin + found["point_b"]
    return Contacts.of(
        point_a=np.where(overlap[:, None], on_triangle, origin + found["point_a"]),
        point_b=on_triangle,
        normal=np.where(overlap[:, None], 0.0, found["normal"]),
        gap=np.where(overlap, 0.0, found["gap"]),
        kind=np.where(overlap, Kind.OVERLAP, Kind.NONE).astype(np.uint8),
        feature_b=triangles.astype(np.int32),
        query=found["row"].astype(np.int32),
        key=triangles.astype(np.int64),
    )


def _on_ground(a: Any, terrain: Any, distance: float, time: Arrays, device: Any) -> Contacts:
    """Of bodies and the faces of the ground; what is below is inside."""
    blocks = GroundBlocks.of(terrain)
    placed, parts = as_placed(a, time), []
    for row, pose in enumerate(placed.poses):
        body = placed.shape[row] if len(placed.shape) > 1 else placed.shape
        alone = PlacedBodies(Analytic.joined([body]), pose[None], True)
        reach = ball_radius(body) + distance
        each = []
        for block in blocks.blocks(blocks.near(pose[:3, 3] - reach, pose[:3, 3] + reach)):
            near = _near_triangles(alone, as_placed(block.mesh), distance, device)
            each.append(_contacts(near, alone.poses, block.face_numbers(near["triangle"])))
        found = Contacts.joined(each) if each else Contacts()
        found = replace(found, query=np.full(len(found), row, np.int32))[np.argsort(found.feature_b, kind="stable")]
        parts.append(_unless_below(found, alone.shape.at(pose), terrain, row, device))
    return Contacts.joined(parts) if parts else Contacts()


def _two_meshes(mesh: Mesh, terrain: Any, distance: float, device: Any) -> Contacts:
    """Of a mesh and the features of another one, or of the ground."""
    if isinstance(terrain, Mesh):
        return proximity(mesh, terrain, distance=distance, device=device)
    blocks = GroundBlocks.of(terrain)
    near = blocks.near(mesh.bounds[0] - distance, mesh.bounds[1] + distance)
    found = Contacts()
    if len(near):
        block = blocks.around(near)
        found = in_ground(proximity(mesh, block.mesh, distance=distance, device=device), block)
    return _unless_below(found, mesh, terrain, 0, device)


def _unless_below(found: Contacts, thing: Any, terrain: Any, row: int, device: Any) -> Contacts:
    """What was found near the surface, or that the thing is below it: else the nearest place pushes it upwards."""
    if len(found):
        nearest = int(np.argmin(found.gap))
        if found.gap[nearest] <= 0.0 or found.normal[nearest, 2] > 0.0:
            return found
    inside = _below(thing, terrain, row, device)
    return found if len(found) and not (inside.kind == Kind.INSIDE).any() else inside


def _below(thing: Any, terrain: Any, row: int, device: Any) -> Contacts:
    """The contact of something that meets the ground, or is below its surface; none of other things."""
    found = heightfield_distance(thing, terrain, device=device)
    if found.upper > 0.0:
        return Contacts()
    point = np.reshape(found.point_a, (1, 3))
    face = np.array([found.triangle_b], np.int32)
    return Contacts.of(point_a=point, normal=np.zeros((1, 3)), kind=Kind(int(found.kind)), feature_b=face, query=row)


def _still(thing: Any, time: Arrays) -> Any:
    """A thing as it is at one instant: a mesh, bodies or ground that do not move."""
    if not isinstance(thing, Moving):
        return thing
    if np.ndim(time):
        raise InputError("proximity of meshes is asked about at one time: many times need rigid meshes and bodies")
    return thing.at(float(np.asarray(time)))


def _nearest_of_each(found: Contacts) -> Contacts:
    """The nearest contact of each query and pair of bodies."""
    order = np.lexsort((found.key, found.gap, found.body_b, found.body_a, found.query))
    rows = np.stack([found.query, found.body_a, found.body_b], axis=1)[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return found[np.sort(order[first])]

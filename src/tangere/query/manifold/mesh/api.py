"""Contact manifolds with rigid meshes: of an analytic body and a mesh, of two meshes, of a mesh and the ground.

Question: at which points does a body lie on a surface, how deep, and which way is out?
Method:   triangles near the body (`near_triangles`): of each its plane, and the edge or vertex that is pressed along
          the nearest points, where the surface can be pressed so (`triangle_features`); of triangles that pass through
          the body the way out of the piece of surface they belong to (`overlap`). These are laid over the face, line or
          point of the body that faces them, as of two bodies (`convex.clipping`), arcs of a rim over a whole flat
          place (`rim_arcs`); what others imply is left out (`envelope`). Two meshes: `surfaces`.
Sound:    a body nearer than `distance` to a surface has a contact as near as it is. Flat places count as one face
          however they are triangulated, and no edge within them gives a normal. A mesh is a surface: of a body wholly
          inside one nothing is said.
Known as: contact manifold of a primitive and a triangle mesh, with internal edges removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.distance.convex.bodies import ConvexBodies, as_placed, paired_count
from tangere.query.manifold.convex.batch import ACCURACY, GRAIN, MARGIN, NearPairs, body_features, clipped
from tangere.query.manifold.convex.features import NearPair, empty_features
from tangere.query.manifold.mesh.contact_keys import NO_FEATURES, contacts_of, feature_numbers, unique_keys
from tangere.query.manifold.mesh.envelope import reduced
from tangere.query.manifold.mesh.near_triangles import NearTriangle, near_triangle_kernel
from tangere.query.manifold.mesh.overlap import BodiesOnMesh, WaysOut, ways_out
from tangere.query.manifold.mesh.rim_arcs import arcs_of
from tangere.query.manifold.mesh.triangle_features import NOTHING, PLANE, facing_parts, place_parts, pressed_parts
from tangere.query.proximity.posed.shapes import shape_tables
from tangere.runtime import Arrays, choose_device, collect, launch, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import CONE, CYLINDER, Analytic
from tangere.shape.mesh import Mesh

#: A gap of features that is this part of the body's size above that of the nearest points is another one.
_SAME = 1e-7
_FAR = 1e300


def body_on_mesh_manifold(
    a: Analytic | Moving,
    b: Mesh | Moving,
    *,
    time: Arrays = 0.0,
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of n bodies with a mesh at one pose or n poses; arguments as for `manifold`.

    Returns:
        By rising body (`query`); `feature_a` numbers the body's face, edge or point, `feature_b` is the triangle.
    """
    sides = as_placed(a, time), as_placed(b, time)
    mesh: Any = sides[1].shape
    on = choose_device(device, sides[0].shape.poses)
    count = paired_count(*(len(side.poses) for side in sides))
    with using_threads(threads):
        poses = [
            wp.array(np.ascontiguousarray(side.poses), dtype=wp.mat44d, device=on, copy=not on.is_cpu) for side in sides
        ]
        scene = BodiesOnMesh(ConvexBodies.of(sides[0].shape, on), mesh, *poses, _tables_of(mesh, on), on)
        near = _near_triangles(scene, count, distance)
        if not len(near):
            return Contacts.of(point_a=np.zeros((0, 3)), normal=np.zeros((0, 3)))
        found = _contacts(scene, sides[0].shape, near, distance)
        sizes = near["size"][np.searchsorted(near["row"], found.query)]
        return unique_keys(reduced(found, sizes, on))


#: A triangle that is clipped: what is near, and what of it is laid over the body.
_PRESSED = np.dtype(
    [
        ("pair", NearPair.numpy_dtype()),
        ("triangle", np.int32),
        ("part", np.int32),
        ("least", np.float64),  #: contacts with smaller gaps are those of the other side
    ]
)


def _tables_of(mesh: Mesh, device: wp.Device) -> Any:
    key = body_on_mesh_manifold, device.alias
    if key not in mesh.cache:
        mesh.cache[key] = shape_tables([mesh], device)
    return mesh.cache[key]


def _near_triangles(scene: BodiesOnMesh, count: int, distance: float | None) -> np.ndarray:
    """`NearTriangle` records by rising question and triangle."""
    inputs = [
        *scene.bodies.arguments,
        scene.poses_a,
        scene.shapes.nodes,
        scene.shapes.corners,
        scene.poses_b,
        -1.0 if distance is None else float(distance),
        MARGIN,
        ACCURACY,
    ]
    kernel = near_triangle_kernel(scene.bodies.kind)
    near = collect(kernel, count, inputs, NearTriangle, device=scene.device, grain=8).numpy()
    return near[np.lexsort((near["triangle"], near["row"]))]


def _pressed(near: np.ndarray, normals: np.ndarray, parts: np.ndarray) -> np.ndarray:
    pressed = np.zeros(len(near), _PRESSED)
    pair = pressed["pair"]
    for name in ("row", "size", "point_a", "point_b"):
        pair[name] = near[name]
    pair["margin_a"], pair["normal"], pair["gap"] = near["margin"], normals, _FAR
    pressed["triangle"], pressed["part"], pressed["least"] = near["triangle"], parts, -_FAR
    return pressed


def _apart(scene: BodiesOnMesh, near: np.ndarray) -> np.ndarray:
    """What is to be clipped of triangles that the body does not touch."""
    if not len(near):
        return np.zeros(0, _PRESSED)
    parts = wp.zeros(len(near), dtype=wp.int32, device=scene.device)
    sides = wp.zeros(len(near), dtype=wp.float64, device=scene.device)
    records = scene.sent(near, NearTriangle)
    inputs = [scene.shapes, scene.poses_b, records]
    launch(pressed_parts, len(near), inputs, [parts, sides], device=scene.device, grain=GRAIN)
    part, side = parts.numpy(), sides.numpy()
    own = np.einsum("nij,nj->ni", scene.turns(near["row"]), scene.mesh.face_normals[near["triangle"]])
    flat = np.flatnonzero(side)
    planes = _pressed(near[flat], side[flat, None] * own[flat], np.full(len(flat), PLANE))
    planes["least"] = near["gap"][flat] - 1e-9 * near["size"][flat]
    bent = np.flatnonzero((part != NOTHING) & (part != PLANE))
    bent = bent[_first_of_each(scene.mesh, near[bent], part[bent])]
    others = _pressed(near[bent], near["normal"][bent], part[bent])
    others["pair"]["gap"] = near["gap"][bent]
    return np.concatenate([planes, others])


def _first_of_each(mesh: Mesh, near: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Triangles share edges and vertices: the numbers of those that are first to tell of one."""
    kind, number = feature_numbers(mesh, near["triangle"], parts)
    return np.unique(np.stack([near["row"], kind, number], axis=1), axis=0, return_index=True)[1]


def _overlapping(scene: BodiesOnMesh, near: np.ndarray, ways: WaysOut) -> np.ndarray:
    """What is to be clipped of triangles that pass through the body."""
    parts = wp.zeros(len(near), dtype=wp.int32, device=scene.device)
    inputs = [
        scene.shapes,
        scene.sent(near["row"].astype(np.int32), wp.int32),
        scene.sent(near["triangle"].astype(np.int32), wp.int32),
        scene.sent(ways.normal, wp.vec3d),
        scene.poses_b,
    ]
    launch(facing_parts, len(near), inputs, [parts], device=scene.device, grain=GRAIN)
    return _pressed(near, ways.normal, parts.numpy())


def _contacts(scene: BodiesOnMesh, shape: Analytic, near: np.ndarray, distance: float | None) -> Contacts:
    """All contacts, with many that others imply."""
    touching = np.flatnonzero(near["meet"])
    apart = np.flatnonzero(near["meet"] == 0)
    pressed = _apart(scene, near[apart])
    ways = ways_out(scene, near[touching]) if len(touching) else None
    if ways is not None:
        pressed = np.concatenate([pressed, _overlapping(scene, near[touching], ways)])
    pairs = np.zeros(len(pressed), NearPair.numpy_dtype())  # joined arrays are packed, those of Warp are not
    pairs[:] = pressed["pair"]
    triangles, parts = pressed["triangle"], pressed["part"]
    listed = NearPairs.of(pairs, scene.device)
    own = body_features(listed, -1.0, shape, scene.bodies, scene.poses_a, scene.poses_a)
    other = empty_features(len(pairs), 3, scene.device)
    numbers = [scene.sent(column.astype(np.int32), wp.int32) for column in (pairs["row"], triangles, parts)]
    inputs = [scene.shapes, *numbers, scene.poses_b, scene.poses_a, other]
    launch(place_parts, len(pairs), inputs, [], device=scene.device, grain=GRAIN)
    found = clipped(listed, [own, other], scene.poses_a, distance)
    found = found[found["gap"] >= pressed["least"][found["feature_b"]]]
    told, rows = contacts_of(scene.mesh, found, triangles, parts, own.count.numpy())
    if shape.kind in (CYLINDER, CONE):
        limits = MARGIN * pairs["size"] if distance is None else np.full(len(pairs), distance)
        arcs, beside = arcs_of(scene, found, pairs, triangles, parts, [own, other], limits)
        told, rows = Contacts.joined([told, arcs]), np.append(rows, beside)
    extra = [_nearest(scene, near[apart], told, distance)]
    if ways is not None:
        of_pieces = rows >= len(pressed) - len(touching)
        rows = rows[of_pieces] - (len(pressed) - len(touching))
        extra.append(_deepest(near[touching], ways, ways.piece[rows], told.gap[of_pieces]))
    return Contacts.joined([told, *extra])


def _nearest(scene: BodiesOnMesh, near: np.ndarray, found: Contacts, distance: float | None) -> Contacts:
    """The nearest points of bodies of which no contact is as near."""
    near = near[near["gap"] <= (MARGIN * near["size"] if distance is None else distance)]
    order = np.lexsort((near["gap"], near["row"]))
    near = near[order[np.flatnonzero(np.diff(near["row"][order], prepend=-1))]]
    least = np.full(max(int(near["row"].max(initial=-1)), int(found.query.max(initial=-1))) + 1, np.inf)
    np.minimum.at(least, found.query, found.gap)
    near = near[least[near["row"]] > near["gap"] + _SAME * near["size"]]
    poses = scene.poses_a.numpy()
    origins = poses[np.minimum(near["row"], len(poses) - 1), :3, 3]
    return _without_features(near, origins + near["point_a"], origins + near["point_b"], near["normal"])


def _deepest(near: np.ndarray, ways: WaysOut, pieces: np.ndarray, gaps: np.ndarray) -> Contacts:
    """The deepest points of bodies in pieces of surface of which no contact is as deep."""
    order = np.lexsort((-ways.way, ways.piece))
    rows = order[np.flatnonzero(np.diff(ways.piece[order], prepend=-1))]
    least = np.full(int(ways.piece.max()) + 1, np.inf)
    np.minimum.at(least, pieces, gaps)
    rows = rows[least[ways.piece[rows]] > _SAME * near["size"][rows] - ways.way[rows]]
    point, normal = ways.deepest[rows], ways.normal[rows]
    return _without_features(near[rows], point, point + ways.way[rows, None] * normal, normal)


def _without_features(near: np.ndarray, point_a: np.ndarray, point_b: np.ndarray, normal: np.ndarray) -> Contacts:
    return Contacts.of(
        query=near["row"],
        point_a=point_a,
        point_b=point_b,
        normal=normal,
        feature_b=near["triangle"],
        key=np.full(len(near), NO_FEATURES),
    )

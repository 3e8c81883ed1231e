"""How far are meshes and analytic bodies from the ground?

Method: squares of the ground (`broad_phase.ground`) as meshes, by how near their boxes are to the body's, until the
        next one is farther than the nearest found so far.
Sound:  as `distance`; ground is solid, so the distance of a body of which any part is below the surface is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundBlocks
from tangere.motion import Rest
from tangere.query.contacts.record import Kind, Status
from tangere.query.dispatch import is_analytic
from tangere.query.distance.api import Distance, distance
from tangere.query.distance.convex.api import placed_distance
from tangere.query.distance.convex.bodies import PlacedBodies, as_placed
from tangere.query.first_contact.heightfield.api import heightfield_first_contact
from tangere.query.first_contact.mesh_heightfield.api import LEAST_PART
from tangere.query.first_contact.mesh_heightfield.below_ground import rigid_below_ground
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.query.intersection.posed import as_posed
from tangere.runtime import Arrays, InputError, choose_device
from tangere.shape import Moving
from tangere.shape.analytic import HULL, Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

Ground = Heightfield | TiledHeightfield

_AT_REST, _HERE = Rest(), np.eye(4)[None]
_VECTORS = "point_a", "point_b", "normal", "weights_a", "weights_b"


def heightfield_distance(
    a: Mesh | Analytic | Moving, terrain: Ground, *, time: Arrays = 0.0, device: str | wp.Device | None = None
) -> Distance:
    """The distance of a mesh or of bodies, at one instant or many, and the surface of the ground; 0 below it.

    `triangle_b` is the number of the ground's face, as `manifold` has it.
    """
    blocks, on = GroundBlocks.of(terrain), choose_device(device)
    if not blocks.has_ground:
        raise InputError(f"{terrain!r} has holes only: there is nothing to be far from")
    if is_analytic(a):
        placed = as_placed(a, time)
        alone = [placed.shape[k] if len(placed.shape) > 1 else placed.shape for k in range(len(placed.poses))]
        found = [_of_body(one, pose, terrain, blocks, on) for one, pose in zip(alone, placed.poses, strict=True)]
        single = placed.single
    else:
        posed = as_posed(a, time)
        found, single = [_of_mesh(posed.mesh, pose, blocks, on) for pose in posed.poses], posed.single
    if single:
        return found[0]
    columns = {field.name: [getattr(one, field.name) for one in found] for field in fields(Distance)}
    if not found:
        columns |= {name: np.zeros((0, 3)) for name in _VECTORS}
    return Distance(**{name: np.array(column) for name, column in columns.items()})


def _of_body(shape: Analytic, pose: np.ndarray, terrain: Ground, blocks: GroundBlocks, device: wp.Device) -> Distance:
    """Of one analytic body at a pose."""
    record = shape.records[0]
    corners = shape.hull.corners if shape.kind == HULL else np.ones((1, 3))
    reach = float(np.linalg.norm(corners * record["half"], axis=1).max() + record["radius"])
    placed = PlacedBodies(shape, pose[None], True)

    def ask(mesh: Mesh) -> Distance:
        return placed_distance(placed, PlacedBodies(mesh, _HERE, True), device)

    found = _of_surface(ask, pose[:3, 3], np.full(3, reach), blocks)
    if found.upper == 0.0:
        return found
    still = Analytic.joined([shape]).at(pose).moving(_AT_REST)
    start = heightfield_first_contact(still, terrain, device=device)
    return _inside(found, found.point_a) if start.status == Status.START else found


def _of_mesh(mesh: Mesh, pose: np.ndarray, blocks: GroundBlocks, device: wp.Device) -> Distance:
    """Of a rigid mesh at a pose."""
    middle, half = 0.5 * mesh.bounds.sum(axis=0), 0.5 * np.ptp(mesh.bounds, axis=0)
    centre, reach = pose[:3, :3] @ middle + pose[:3, 3], np.abs(pose[:3, :3]) @ half
    found = _of_surface(partial(distance, mesh.moving(Rest(pose)), device=device), centre, reach, blocks)
    rounding = LEAST_PART * float(blocks.largest + np.abs(pose).max())
    tolerance = min(TOLERANCE * mesh.extent, found.upper)
    if tolerance <= rounding:  # it touches, or nearly: which side it is on is not known, and makes no difference
        return found
    below = rigid_below_ground(mesh, pose, blocks, Accuracy(tolerance=tolerance), device)
    return found if below is None else _inside(found, below.contacts.point_a[0])


def _of_surface(
    ask: Callable[[Mesh], Distance], centre: np.ndarray, reach: np.ndarray, blocks: GroundBlocks
) -> Distance:
    """The least distance from squares of the ground, in its numbers; the body is within `reach` of `centre`."""
    boxes = blocks.bounds
    apart = np.maximum(np.maximum(boxes[:, 0] - (centre + reach), (centre - reach) - boxes[:, 1]), 0.0)
    least = (1.0 - 1e-9) * np.linalg.norm(apart, axis=1)  # inf of squares without ground
    nearest = int(np.argmin(least))
    where, best = nearest, ask(blocks.block(nearest).mesh)
    lower = best.lower
    others = np.flatnonzero(least <= best.upper)
    for square in others[np.argsort(least[others], kind="stable")].tolist():
        if square == nearest:
            continue
        if least[square] > best.upper:
            break
        found = ask(blocks.block(square).mesh)
        lower = min(lower, found.lower)
        if found.upper < best.upper:
            where, best = square, found
    number = blocks.block(where).face_numbers(np.array([best.triangle_b]))
    return replace(best, lower=lower, triangle_b=int(number[0]))


def _inside(found: Distance, point: np.ndarray) -> Distance:
    """The answer about a body that is below the surface."""
    no_weights = np.full(3, np.nan)
    return replace(
        found,
        lower=0.0,
        upper=0.0,
        point_a=point,
        point_b=point,
        normal=np.zeros(3),
        weights_a=no_weights,
        weights_b=no_weights,
        kind=Kind.INSIDE,
    )

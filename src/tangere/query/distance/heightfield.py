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

from tangere.broad_phase.ground import GroundBlock, GroundBlocks, GroundWalls, WallBlock
from tangere.motion import Rest
from tangere.query.contacts.record import Kind, Status
from tangere.query.dispatch import is_analytic
from tangere.query.distance.api import Distance, distance
from tangere.query.distance.convex.api import placed_distance
from tangere.query.distance.convex.bodies import PlacedBodies, as_placed
from tangere.query.first_contact.heightfield.query_batch import answers_of
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
    """The distance of a mesh or of bodies, at one instant or many, and the ground, its walls too; 0 inside.

    `triangle_b` is the number of the ground's face, as `manifold` has it; of a wall that of the face it hangs from, and
    `weights_b` are NaN.
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
        posed, walls = as_posed(a, time), GroundWalls.of(terrain)
        found, single = [_of_mesh(posed.mesh, pose, blocks, walls, on) for pose in posed.poses], posed.single
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

    found = _of_surface(ask, pose[:3, 3], np.full(3, reach), blocks, GroundWalls.of(terrain))
    if found.upper == 0.0:
        return found
    still = Analytic.joined([shape]).at(pose).moving(_AT_REST)
    # Walls have been asked about; what is nearer to one than a tolerance is not to be called below the ground.
    sharper = Accuracy(tolerance=min(TOLERANCE * reach, found.upper))
    below = answers_of(still, terrain, sharper, False, device)["status"][0] == Status.START
    return _inside(found, found.point_a) if below else found


def _of_mesh(mesh: Mesh, pose: np.ndarray, blocks: GroundBlocks, walls: GroundWalls, device: wp.Device) -> Distance:
    """Of a rigid mesh at a pose."""
    middle, half = 0.5 * mesh.bounds.sum(axis=0), 0.5 * np.ptp(mesh.bounds, axis=0)
    centre, reach = pose[:3, :3] @ middle + pose[:3, 3], np.abs(pose[:3, :3]) @ half
    found = _of_surface(partial(distance, mesh.moving(Rest(pose)), device=device), centre, reach, blocks, walls)
    rounding = LEAST_PART * float(blocks.largest + np.abs(pose).max())
    tolerance = min(TOLERANCE * mesh.extent, found.upper)
    if tolerance <= rounding:  # it touches, or nearly: which side it is on is not known, and makes no difference
        return found
    below = rigid_below_ground(mesh, pose, blocks, Accuracy(tolerance=tolerance), device)
    return found if below is None else _inside(found, below.contacts.point_a[0])


def _of_surface(
    ask: Callable[[Mesh], Distance], centre: np.ndarray, reach: np.ndarray, blocks: GroundBlocks, walls: GroundWalls
) -> Distance:
    """The least distance from squares of the ground and its walls, in its numbers; the body is within `reach` of
    `centre`.
    """
    nearest, least = _box_distances(blocks.bounds, centre, reach)
    where: GroundBlock | WallBlock = blocks.block(nearest)
    best = ask(where.mesh)
    lower = best.lower
    others = np.flatnonzero(least <= best.upper)
    for square in others[np.argsort(least[others], kind="stable")].tolist():
        if square == nearest:
            continue
        if least[square] > best.upper:
            break
        block = blocks.block(square)
        found = ask(block.mesh)
        lower = min(lower, found.lower)
        if found.upper < best.upper:
            where, best = block, found
    for wall in _walls_near(walls, centre, reach, float(best.upper)):
        found = ask(wall.mesh)
        lower = min(lower, found.lower)
        if found.upper < best.upper:
            where, best = wall, found
    number = where.face_numbers(np.array([best.triangle_b]))
    # A wall is no part of the face that it hangs from.
    weights = np.full(3, np.nan) if isinstance(where, WallBlock) else best.weights_b
    return replace(best, lower=lower, triangle_b=int(number[0]), weights_b=weights)


def _walls_near(walls: GroundWalls, centre: np.ndarray, reach: np.ndarray, upper: float) -> list[WallBlock]:
    """Walls that may be nearer than a distance, nearest first: above the rim of one the surface is as near."""
    x, y, around = float(centre[0]), float(centre[1]), float(np.hypot(reach[0], reach[1])) + upper
    if not walls.may_meet_box(x - around, y - around, x + around, y + around):
        return []
    low, high = float(centre[2] - reach[2]), float(centre[2] + reach[2])
    squares, boxes = walls.boxes()
    _, least = _box_distances(boxes, centre, reach)
    beside = np.flatnonzero((least <= upper) & (boxes[:, 1, 2] > low))
    return walls.blocks(squares[beside[np.argsort(least[beside], kind="stable")]], low, high)


def _box_distances(boxes: np.ndarray, centre: np.ndarray, reach: np.ndarray) -> tuple[int, np.ndarray]:
    """Which of (k, 2, 3) boxes is nearest, and (k,) how far they are from a body at least [m]; inf of empty ones."""
    apart = np.maximum(np.maximum(boxes[:, 0] - (centre + reach), (centre - reach) - boxes[:, 1]), 0.0)
    least = (1.0 - 1e-9) * np.linalg.norm(apart, axis=1)
    return int(np.argmin(least)) if len(least) else -1, least


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

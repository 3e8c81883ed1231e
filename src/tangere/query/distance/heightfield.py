"""How far are meshes and analytic bodies from the ground?

Method: squares of the ground (`broad_phase.ground`) as meshes, by how near their boxes are to the body's, until the
        next one is farther than the nearest found so far.
Sound:  as `distance`; ground is solid, so the distance of a body of which any part is below the surface is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundBlock, GroundBlocks, GroundWalls, WallBlock
from tangere.motion import Rest
from tangere.query.contacts.record import Kind, Status
from tangere.query.dispatch import is_analytic
from tangere.query.distance.api import Distance, distance
from tangere.query.distance.convex.api import distance_of_answer, nearest_on_mesh
from tangere.query.distance.convex.bodies import KEPT_BODIES, ConvexBodies, as_placed
from tangere.query.first_contact.heightfield.query_batch import answers_of
from tangere.query.first_contact.mesh_heightfield.api import LEAST_PART
from tangere.query.first_contact.mesh_heightfield.below_ground import rigid_below_ground
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.query.intersection.posed import as_posed
from tangere.runtime import Arrays, InputError, LaunchCache, choose_device
from tangere.shape import Moving
from tangere.shape.analytic import HULL, Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

Ground = Heightfield | TiledHeightfield

_AT_REST = Rest()
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
        placed, made = as_placed(a, time), []
        for k, pose in enumerate(placed.poses):
            shape = placed.shape[k] if len(placed.shape) > 1 else placed.shape
            moved = isinstance(a, Moving) or len(placed.poses) > len(placed.shape)
            made.append(_of_body(shape, pose, moved, terrain, blocks, on))
        found, single = made, placed.single
    else:
        posed, walls = as_posed(a, time), GroundWalls.of(terrain)
        found, single = [_of_mesh(posed.mesh, pose, blocks, walls, on) for pose in posed.poses], posed.single
    if single:
        return found[0]
    columns = {field.name: [getattr(one, field.name) for one in found] for field in fields(Distance)}
    if not found:
        columns |= {name: np.zeros((0, 3)) for name in _VECTORS}
    return Distance(**{name: np.array(column) for name, column in columns.items()})


def _of_body(
    shape: Analytic, pose: np.ndarray, moved: bool, terrain: Ground, blocks: GroundBlocks, device: wp.Device
) -> Distance:
    """Of one analytic body at a pose; `moved`: that is not its own."""
    bodies = ConvexBodies.of(shape, device)
    kept: list[Any] = [None]

    def ask(mesh: Mesh, within: float) -> tuple[float, float, int] | None:
        answers = nearest_on_mesh(bodies, pose, mesh, within, device)
        if answers is None:
            return None
        lower, upper = answers["lower"].item(), answers["upper"].item()
        if upper < within:
            kept[0] = answers[0].copy()
        return lower, upper, answers["triangle"].item()

    radius = _radius_kept(shape.records, shape.hull, shape.kind)
    around = np.full(3, radius)
    lower, upper, triangle, _ = _of_surface(ask, pose[:3, 3], around, blocks, GroundWalls.of(terrain))
    found = distance_of_answer(kept[0], lower, triangle)
    if upper == 0.0 or blocks.is_below(float(pose[2, 3]) - radius):
        return found
    still = (Analytic.joined([shape]).at(pose) if moved else shape).moving(_AT_REST)
    # Walls have been asked about; what is nearer to one than a tolerance is not to be called below the ground.
    sharper = Accuracy(tolerance=min(TOLERANCE * radius, upper))
    below = answers_of(still, terrain, sharper, False, device)["status"][0] == Status.START
    return _inside(found, found.point_a) if below else found


def _radius_of(records: np.ndarray, hull: Any, kind: int) -> float:
    """No point of a body is farther from its origin [m]."""
    record = records[0]
    corners = hull.corners if kind == HULL else np.ones((1, 3))
    return float(np.linalg.norm(corners * record["half"], axis=1).max() + record["radius"])


_radius_kept = LaunchCache(_radius_of, most=KEPT_BODIES).of


def _of_mesh(mesh: Mesh, pose: np.ndarray, blocks: GroundBlocks, walls: GroundWalls, device: wp.Device) -> Distance:
    """Of a rigid mesh at a pose."""
    middle, half = 0.5 * mesh.bounds.sum(axis=0), 0.5 * np.ptp(mesh.bounds, axis=0)
    centre, reach = pose[:3, :3] @ middle + pose[:3, 3], np.abs(pose[:3, :3]) @ half
    placed = mesh.moving(Rest(pose))
    kept: list[Any] = [None]

    def ask(square: Mesh, within: float) -> tuple[float, float, int]:
        one = distance(placed, square, device=device)
        if one.upper < within:
            kept[0] = one
        return one.lower, one.upper, one.triangle_b

    lower, _, triangle, on_wall = _of_surface(ask, centre, reach, blocks, walls)
    found = replace(kept[0], lower=lower, triangle_b=triangle)
    if on_wall:  # which is no part of a face
        found = replace(found, weights_b=np.full(3, np.nan))
    if blocks.is_below(float(centre[2] - reach[2])):
        return found
    rounding = LEAST_PART * float(blocks.largest + np.abs(pose).max())
    tolerance = min(max(TOLERANCE * mesh.extent, 2.0 * rounding), found.upper)
    if tolerance <= rounding:  # it touches, or nearly: which side it is on is not known, and makes no difference
        return found
    below = rigid_below_ground(mesh, pose, blocks, Accuracy(tolerance=tolerance), device)
    return found if below is None else _inside(found, below.contacts.point_a[0])


def _of_surface(
    ask: Callable[[Mesh, float], tuple[float, float, int] | None],
    centre: np.ndarray,
    reach: np.ndarray,
    blocks: GroundBlocks,
    walls: GroundWalls,
) -> tuple[float, float, int, bool]:
    """Bounds of the least distance from squares of the ground and its walls, the nearest triangle in its numbers, and
    whether it is of a wall.

    Args:
        ask: bounds and triangle of a part; None, or any of a larger distance, where it is no nearer than the limit.
        reach: the body is within this of the centre.
    """
    least = _box_distances(blocks.bounds, centre, reach)
    nearest = int(least.argmin())
    where: GroundBlock | WallBlock = blocks.block(nearest)
    found = ask(where.mesh, math.inf)
    assert found is not None
    lower, upper, triangle = found
    others = np.flatnonzero(least <= _squared(upper))
    for square in others[np.argsort(least[others], kind="stable")].tolist() if len(others) > 1 else []:
        if square == nearest:
            continue
        if least[square] > _squared(upper):
            break
        part = blocks.block(square)
        found = ask(part.mesh, upper)
        if found is None:
            continue
        lower = min(lower, found[0])
        if found[1] < upper:
            where, upper, triangle = part, found[1], found[2]
    for wall in _walls_near(walls, centre, reach, upper):
        found = ask(wall.mesh, upper)
        if found is None:
            continue
        lower = min(lower, found[0])
        if found[1] < upper:
            where, upper, triangle = wall, found[1], found[2]
    if isinstance(where, GroundBlock):
        return lower, upper, where.face_number(triangle), False
    return lower, upper, int(where.face_numbers(np.array([triangle]))[0]), True


def _walls_near(walls: GroundWalls, centre: np.ndarray, reach: np.ndarray, upper: float) -> list[WallBlock]:
    """Walls that may be nearer than a distance, nearest first: above the rim of one the surface is as near."""
    x, y, around = float(centre[0]), float(centre[1]), float(np.hypot(reach[0], reach[1])) + upper
    if not walls.may_meet_box(x - around, y - around, x + around, y + around):
        return []
    low, high = float(centre[2] - reach[2]), float(centre[2] + reach[2])
    squares, boxes = walls.boxes()
    least = _box_distances(boxes, centre, reach)
    beside = np.flatnonzero((least <= _squared(upper)) & (boxes[:, 1, 2] > low))
    return walls.blocks(squares[beside[np.argsort(least[beside], kind="stable")]], low, high)


def _box_distances(boxes: np.ndarray, centre: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """(k,) how far (k, 2, 3) boxes are from a body at least, squared; inf of empty ones."""
    apart = np.maximum(np.maximum(boxes[:, 0] - centre, centre - boxes[:, 1]) - reach, 0.0)
    return np.einsum("ij,ij->i", apart, apart)


def _squared(distance: float) -> float:
    """No square whose box is farther than this, squared, has anything as near as the distance."""
    return distance * distance * (1.0 + 1e-8)


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

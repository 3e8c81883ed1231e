"""A car body of swept tubes whose door opening fits `door_panel` (for that of Redon 2002, chapter 6).

Frame of the door: x to the rear, y from the left side into the car, z up.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import positive
from tangere.shape.generate.build.assembly import PartInPlace, pose, steps
from tangere.shape.generate.build.blocks import add, block_solid, cut_holes, rounded
from tangere.shape.generate.build.pieces import Piece, divided, joined, moved, rod
from tangere.shape.generate.build.sweep import sweep
from tangere.shape.generate.door import DOOR_OUTLINE, bulge, door_panel
from tangere.shape.mesh.mesh import Mesh

_WIDTH = 1.6  # between the two sides [m]
_TUBE = 0.045  # radius round the doors [m]
_SIDES = 12  # of a tube

# Bars: control points, then radius [m]. On the left side in (x, z); across the car from its left side to its middle.
_SIDE_BARS = [
    ([(-0.25, -0.13), (1.0, -0.14), (2.35, -0.13)], 0.06),  # sill
    ([(-0.55, 0.72), (-0.05, 0.98), (0.40, 1.22), (1.3, 1.30), (2.2, 1.18), (2.88, 0.58)], 0.04),  # roof rail
    ([(-1.15, 0.25), (-0.9, 0.62), (-0.35, 0.72), (-0.10, 0.66)], 0.04),  # wing
    ([(2.30, 0.0), (2.55, 0.45), (2.95, 0.55), (3.05, 0.1)], 0.04),  # rear wing
    ([(-0.22, -0.12), (-0.30, 0.3), (-0.25, 0.72)], 0.05),  # hinge pillar
]
_CROSS_BARS = [
    ([(-1.15, 0.0, 0.25), (-1.22, 0.8, 0.25)], 0.05),  # front bumper
    ([(-0.30, 0.0, 0.72), (-0.42, 0.8, 0.78)], 0.04),  # below the windscreen
    ([(0.45, 0.0, 1.23), (0.38, 0.8, 1.30)], 0.03),  # roof, front
    ([(1.30, 0.0, 1.30), (1.30, 0.8, 1.36)], 0.03),  # roof, middle
    ([(2.20, 0.0, 1.18), (2.25, 0.8, 1.25)], 0.03),  # roof, rear
    ([(3.05, 0.0, 0.1), (3.15, 0.8, 0.12)], 0.05),  # rear bumper
    ([(0.30, 0.0, -0.14), (0.30, 0.8, -0.14)], 0.04),  # floor
    ([(1.25, 0.0, -0.14), (1.25, 0.8, -0.14)], 0.04),
    ([(2.20, 0.0, -0.13), (2.20, 0.8, -0.13)], 0.04),
]
_LONG_BAR = ([(-1.18, 0.35, 0.25), (-0.6, 0.38, 0.2), (0.1, 0.4, -0.12), (1.2, 0.4, -0.14)], 0.04)


def body_frame(triangles: int = 29_000, *, clearance: float = 0.004, name: str = "body frame") -> Mesh:
    """A car body, 4.4 m long, of tubes and a floor; closed pieces that go through each other where they are welded.

    The front openings on both sides fit `door_panel` in its own frame: seen from the side, the door's outline keeps at
    least `clearance` from the tube round it.

    Args:
        triangles: exactly how many; even and at least 18,204.
        clearance: between door and frame on every side [m].
    """
    positive(clearance, "body frame: clearance", below=0.05)
    rear = np.array([[1.30, 0.0], [1.95, 0.0], [2.20, 0.35], [2.05, 1.02], [1.30, 1.10]])
    side = [_ring(DOOR_OUTLINE, _TUBE + clearance), _ring(rear, _TUBE)]
    side += [rod(_on_side(_spline(points, 24)), radius, _SIDES) for points, radius in _SIDE_BARS]
    side += [rod(_spline(_LONG_BAR[0], 24), _LONG_BAR[1], _SIDES)]
    other = [moved(piece, turn=np.diag([1.0, -1.0, 1.0]), by=(0.0, _WIDTH, 0.0)) for piece in side]
    across = [
        rod(_spline([*points, *((x, _WIDTH - y, z) for x, y, z in points[-2::-1])], 16), radius, _SIDES)
        for points, radius in _CROSS_BARS
    ]

    holes = np.stack(np.meshgrid(np.linspace(0.2, 2.1, 6), np.linspace(0.35, 1.25, 4), indexing="ij"), -1).reshape(
        -1, 2
    )
    floor = [add((-0.1, 0.08, -0.145), (2.35, _WIDTH - 0.08, -0.135)), *cut_holes(2, holes, 0.05, -0.145, -0.135)]
    pieces = joined([block_solid(floor), *side, *other, *across])
    vertices, faces = divided("body frame", pieces, triangles)
    return Mesh(rounded(vertices, 2, holes, 0.05), faces, name=name)


def door_on_body(
    door_triangles: int = 16_000, body_triangles: int = 29_000, *, clearance: float = 0.004
) -> PartInPlace:
    """The door in its opening; it comes out straight to the side, or touches the frame when it is also drawn back."""
    closed, open_ = (0.0, 0.0, 0.0, 0.0), (0.0, -0.5, 0.0, 0.0)
    here = pose()[None]
    return PartInPlace(
        part=door_panel(door_triangles),
        fixed=body_frame(body_triangles, clearance=clearance),
        free_path=np.concatenate([here, steps(closed, open_, 10)]),
        touching_path=np.concatenate([here, steps(closed, (0.5, -0.5, 0.0, 0.0), 10)]),
    )


def _ring(outline: np.ndarray, distance: float) -> Piece:
    """A closed tube round a convex outline (k, 2) on the side of the car, its middle `distance` away.

    Corners are rounded by chords that stay outside the circle of that radius, so the clearance holds at corners too.
    """
    pieces = 6
    edge = np.roll(outline, -1, axis=0) - outline
    heading = np.arctan2(edge[:, 1], edge[:, 0]) - 0.5 * np.pi  # of the outward normal of each edge
    before = np.roll(heading, 1)
    turn = (heading - before) % (2.0 * np.pi)
    angle = before[:, None] + turn[:, None] * np.linspace(0.0, 1.0, pieces + 1)
    reach = distance / np.cos(0.5 * turn / pieces)
    corners = outline[:, None] + reach[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=2)
    share = np.arange(1, 8)[:, None, None] / 8.0
    straight = corners[:, -1] * (1.0 - share) + np.roll(corners[:, 0], -1, axis=0) * share
    path = np.concatenate([corners, straight.transpose(1, 0, 2)], axis=1).reshape(-1, 2)
    return sweep(_on_side(path), _TUBE, _SIDES, closed=True)


def _on_side(path: np.ndarray) -> np.ndarray:
    """Points (k, 2) in (x, z) brought onto the bent left side of the car, in the middle of the door's depth."""
    return np.stack([path[:, 0], 0.035 + bulge(path[:, 1]), path[:, 1]], axis=1)


def _spline(points: list[tuple[float, ...]], count: int) -> np.ndarray:
    """(count, d): a smooth curve through the points (Catmull-Rom, the ends continued straight)."""
    known = np.array(points)
    known = np.concatenate([[2.0 * known[0] - known[1]], known, [2.0 * known[-1] - known[-2]]])
    place = np.linspace(0.0, len(points) - 1.0, count)
    span = np.minimum(place.astype(int), len(points) - 2)
    t = (place - span)[:, None]
    a, b, c, d = (known[span + k] for k in range(4))
    return 0.5 * (2.0 * b + (c - a) * t + (2.0 * a - 5.0 * b + 4.0 * c - d) * t**2 + (3.0 * (b - c) + d - a) * t**3)

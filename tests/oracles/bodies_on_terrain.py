"""Slow, plain answers about bodies on height grids, and scenes to ask them about.

`meets_ground` clips every triangle of the window against the slab of the cylinder and measures the distance of what is
left from the axis. `surface_points` sample a body; `outside` is its signed
distance, or a bound with the same sign. Nothing here uses the library's kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.shape.heightfield import Heightfield


def meets_ground(field: Heightfield, pose: np.ndarray, radius: float, height: float) -> bool:
    """Whether a cylinder touches the surface, by brute force over all triangles near it."""
    dx, dy = field.spacing
    reach = np.hypot(radius, 0.5 * height)
    centre = pose[:3, 3]
    column = np.arange(field.shape[1]) * dx + field.origin[0]
    row = np.arange(field.shape[0]) * dy + field.origin[1]
    columns = np.flatnonzero((column + dx >= centre[0] - reach) & (column <= centre[0] + reach))
    rows = np.flatnonzero((row + dy >= centre[1] - reach) & (row <= centre[1] + reach))
    vertices = field.vertices
    for i in rows:
        for j in columns:
            if field.holes is not None and field.holes[i, j]:
                continue
            v0, v1, v2, v3 = vertices[i, j], vertices[i, j + 1], vertices[i + 1, j], vertices[i + 1, j + 1]
            for triangle in ((v0, v1, v2), (v3, v2, v1)):
                local = (np.array(triangle) - centre) @ pose[:3, :3]
                if clipped_distance(local, 0.5 * height) <= radius:
                    return True
    return False


def clipped_distance(polygon: np.ndarray, half: float) -> float:
    """Distance from the z axis of the part of a polygon with |z| <= half; inf where there is none."""
    for sign in (1.0, -1.0):
        kept = []
        for p, q in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            a, b = half - sign * p[2], half - sign * q[2]
            if a >= 0.0:
                kept.append(p)
            if (a > 0.0 > b) or (a < 0.0 < b):
                kept.append(p + (q - p) * (a / (a - b)))
        if not kept:
            return np.inf
        polygon = np.array(kept)
    points = polygon[:, :2]
    edges = np.roll(points, -1, axis=0) - points
    lengths = np.einsum("ij,ij->i", edges, edges)
    along = np.clip(-np.einsum("ij,ij->i", points, edges) / np.where(lengths > 0, lengths, 1.0), 0.0, 1.0)
    nearest = np.linalg.norm(points + along[:, None] * edges, axis=1).min()
    turns = points[:, 0] * np.roll(points, -1, axis=0)[:, 1] - points[:, 1] * np.roll(points, -1, axis=0)[:, 0]
    inside = len(points) > 2 and (np.all(turns > 0) or np.all(turns < 0))
    return 0.0 if inside else float(nearest)


# -- bodies -----------------------------------------------------------------------------------------------------------


def surface_points(kind: str, size: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, 3) points of a body's surface in its own frame, rims and corners among them.

    Args:
        kind: "cylinder", "capsule", "cone" (size: radius, height) or "box" (size: half sides).
    """
    turn = rng.uniform(0.0, 2.0 * np.pi, count)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    u = rng.uniform(-1.0, 1.0, count)
    which = rng.integers(0, 4, count)
    if kind == "box":
        p = rng.uniform(-1.0, 1.0, (count, 3))
        for axis in range(3):  # faces, edges and corners
            p[:, axis] = np.where(rng.random(count) < 0.6, np.sign(p[:, axis]), p[:, axis])
        p[np.arange(count), rng.integers(0, 3, count)] = np.where(rng.random(count) < 0.5, -1.0, 1.0)
        return p * size
    radius, half = size[0], 0.5 * size[1]
    if kind == "capsule":
        ball = rng.normal(size=(count, 3))
        ball *= radius / np.linalg.norm(ball, axis=1, keepdims=True)
        ball[:, 2] += np.sign(ball[:, 2]) * half
        side = np.column_stack([radius * circle, half * u])
        return np.where(which[:, None] == 0, side, ball)
    spread = np.sqrt(rng.uniform(0.0, 1.0, count))
    base = np.column_stack([radius * spread[:, None] * circle, np.full(count, -half)])
    rim = np.column_stack([radius * circle, np.full(count, -half)])
    if kind == "cylinder":
        flip = np.where(rng.random(count) < 0.5, -1.0, 1.0)[:, None] * [0.0, 0.0, 1.0] + [1.0, 1.0, 0.0]
        side = np.column_stack([radius * circle, half * u])
        return np.where(which[:, None] == 0, side, np.where(which[:, None] == 1, base * flip, rim * flip))
    up = rng.uniform(0.0, 1.0, count) ** 2
    side = np.column_stack([radius * (1.0 - up)[:, None] * circle, half * (2.0 * up - 1.0)])
    tip = np.tile([0.0, 0.0, half], (count, 1))
    return np.where(
        which[:, None] == 0, base, np.where(which[:, None] == 1, rim, np.where(up[:, None] > 0.9, tip, side))
    )


def outside(kind: str, size: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n,) zero on the surface, positive outside [m]."""
    if kind == "box":
        return (np.abs(points) - size).max(axis=1)
    radius, half = size[0], 0.5 * size[1]
    beside = np.hypot(points[:, 0], points[:, 1])
    if kind == "cylinder":
        return np.maximum(beside - radius, np.abs(points[:, 2]) - half)
    if kind == "capsule":
        return np.hypot(beside, points[:, 2] - np.clip(points[:, 2], -half, half)) - radius
    slope = radius / (2.0 * half)
    return np.maximum((beside - slope * (half - points[:, 2])) / np.hypot(1.0, slope), -half - points[:, 2])


# -- scenes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """Cylinders at about the height of the ground."""

    field: Heightfield
    radius: np.ndarray
    height: np.ndarray
    poses: np.ndarray


def ground(kind: str, cells: int, cell: float, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
    """(cells + 1, cells + 1) heights; `scale` is the size of the bodies."""
    x, y = np.meshgrid(np.arange(cells + 1) * cell, np.arange(cells + 1) * cell)
    if kind == "flat":
        return np.full_like(x, 0.25)
    if kind == "slope":
        return 0.3 * x - 0.2 * y
    if kind == "hills":
        return 0.4 * scale * (np.sin(1.3 * x / scale) + np.cos(0.9 * y / scale + 0.5 * x / scale))
    if kind == "rough":
        return rng.normal(0.0, 0.2 * min(cell, scale), x.shape).cumsum(axis=0) * 0.3 + rng.normal(
            0.0, 0.1 * cell, x.shape
        )
    if kind == "spikes":
        return rng.uniform(-0.5, 0.5, x.shape) * min(4.0 * cell, scale)
    if kind == "kerbs":
        return np.where((np.floor(x / (2.5 * scale)) + np.floor(y / (3.5 * scale))) % 2 == 0, 0.3 * scale, 0.0)
    if kind == "stairs":
        return 0.2 * scale * np.floor(x / (0.7 * scale))
    if kind == "dust":  # below what counts as a crease
        return rng.uniform(-1.0, 1.0, x.shape) * 1e-7 * cell
    raise ValueError(kind)


GROUNDS = ("flat", "slope", "hills", "rough", "spikes", "kerbs", "stairs", "dust")


def random_rotations(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 3, 3): any tilt, with exactly upright, exactly lying and nearly so among them."""
    q = rng.normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    w, x, y, z = q.T
    turns = np.stack(
        [
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        ],
        axis=1,
    ).reshape(-1, 3, 3)  # fmt: skip
    choice = rng.integers(0, 8, count)
    angle = rng.choice([0.0, 1e-9, 1e-4, 0.02], count)
    heading = rng.uniform(0.0, 2.0 * np.pi, count)
    upright = np.stack([_turned(a, h, 0.0) for a, h in zip(angle, heading, strict=True)])
    lying = np.stack([_turned(a, h, 0.5 * np.pi) for a, h in zip(angle, heading, strict=True)])
    turns[choice == 0] = np.eye(3)
    turns[choice == 1] = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    turns[choice == 2] = upright[choice == 2]
    turns[choice == 3] = lying[choice == 3]
    return turns


def _turned(tilt: float, heading: float, base: float) -> np.ndarray:
    """A rotation whose z axis is tilted by base + tilt towards a heading."""
    a = base + tilt
    c, s, ch, sh = np.cos(a), np.sin(a), np.cos(heading), np.sin(heading)
    if base:
        c, s = -np.sin(tilt), np.cos(tilt)
    return np.array([[ch * c, -sh, ch * s], [sh * c, ch, sh * s], [-s, 0.0, c]])


def random_scene(kind: str, count: int, rng: np.random.Generator, cell_per_radius: float | None = None) -> Scene:
    """Cylinders on one terrain, some over its border, some clear of it, most a little in the ground, some deep."""
    radius = 0.3 * 10.0 ** rng.uniform(-0.2, 0.2, count)
    height = radius * 10.0 ** rng.uniform(-0.5, 0.8, count)
    cell = 0.3 * (cell_per_radius or 10.0 ** rng.uniform(np.log10(0.05), np.log10(20.0)))
    cells = int(np.clip(12.0 / cell, 8, 160))
    heights = ground(kind, cells, cell, rng, 0.5)
    holes = rng.random((cells, cells)) < 0.03 if rng.random() < 0.3 else None
    spacing = (cell, cell * rng.choice([1.0, 0.7, 1.6]))
    field = Heightfield(heights, spacing, tuple(rng.uniform(-50.0, 50.0, 3)), holes)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    lower, upper = field.bounds
    poses[:, :2, 3] = rng.uniform(lower[:2] - 0.2, upper[:2] + 0.2, (count, 2))
    if rng.random() < 0.3:  # on grid lines
        for axis in range(2):
            steps = np.round((poses[:, axis, 3] - lower[axis]) / spacing[axis])
            poses[:, axis, 3] = lower[axis] + steps * spacing[axis]
    return Scene(field, radius, height, poses)

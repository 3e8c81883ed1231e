"""Cylinders against terrain by brute force: every triangle near enough, in NumPy, by a formula of its own.

The part of a triangle between the base planes is the convex hull of its corners there and of the points where edges
cross the planes. Seen along the axis: the origin is in the hull of such points if they leave no half-plane free, else
its distance from the hull is the least distance from a segment between two of them.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.spatial.transform import Rotation

from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield

#: (point, point) of all segments between the nine candidate points of a triangle.
_PAIRS = np.array(list(itertools.combinations(range(9), 2)))
_CHUNK = 20_000


def triangles_meet(corners: np.ndarray, radius: np.ndarray, half: np.ndarray) -> np.ndarray:
    """(m,) whether triangles (m, 3, 3) touch cylinders about z of radius and half height (m,)."""
    parts = [
        _triangles_meet(corners[k : k + _CHUNK], radius[k : k + _CHUNK], half[k : k + _CHUNK])
        for k in range(0, len(corners), _CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, bool)


def _triangles_meet(corners: np.ndarray, radius: np.ndarray, half: np.ndarray) -> np.ndarray:
    points = [np.where((np.abs(corners[:, k, 2]) <= half)[:, None], corners[:, k, :2], np.nan) for k in range(3)]
    for a, b in ((0, 1), (1, 2), (2, 0)):
        p, q = corners[:, a], corners[:, b]
        for plane in (-half, half):
            with np.errstate(divide="ignore", invalid="ignore"):
                s = (plane - p[:, 2]) / (q[:, 2] - p[:, 2])
            crosses = (s >= 0.0) & (s <= 1.0)
            points.append(
                np.where(crosses[:, None], p[:, :2] + np.where(crosses, s, 0.0)[:, None] * (q - p)[:, :2], np.nan)
            )
    cloud = np.stack(points, axis=1)
    a, b = cloud[:, _PAIRS[:, 0]], cloud[:, _PAIRS[:, 1]]
    along = b - a
    length2 = (along**2).sum(-1)
    s = np.clip(-(a * along).sum(-1) / np.where(length2 > 0.0, length2, 1.0), 0.0, 1.0)
    near = np.linalg.norm(a + s[..., None] * along, axis=-1)
    single = np.linalg.norm(cloud, axis=-1)
    least = np.fmin(np.fmin.reduce(near, axis=1), np.fmin.reduce(single, axis=1))
    angles = np.sort(np.arctan2(cloud[..., 1], cloud[..., 0]), axis=1)  # NaN last
    count = np.isfinite(angles).sum(axis=1)
    gaps = np.diff(angles, axis=1)
    last = np.take_along_axis(angles, np.maximum(count - 1, 0)[:, None], 1)[:, 0]
    widest = np.fmax(
        np.fmax.reduce(np.concatenate([gaps, np.full((len(gaps), 1), -np.inf)], 1), axis=1),
        angles[:, 0] + 2 * np.pi - last,
    )
    inside = (count >= 3) & (widest < np.pi)
    return (count > 0) & (inside | (least <= radius))


def brute_touch(field: Heightfield, cylinders: Cylinder, grow: float = 0.0) -> np.ndarray:
    """(n,) whether cylinders, grown all around by `grow` [m], touch the surface: every cell of the box around each."""
    poses = cylinders.poses
    radius = np.broadcast_to(cylinders.records["radius"], len(poses)) + grow
    half = np.broadcast_to(cylinders.records["half"][:, 2], len(poses)) + grow
    reach = np.hypot(radius, half)
    at = poses[:, :3, 3]
    rows, columns = field.shape
    low = np.floor((at[:, :2] - field.origin[:2] - reach[:, None]) / field.spacing).astype(int)
    high = np.floor((at[:, :2] - field.origin[:2] + reach[:, None]) / field.spacing).astype(int)
    low, high = np.clip(low, 0, [columns, rows]), np.clip(high, -1, [columns - 1, rows - 1])
    vertices = field.vertices
    hit = np.zeros(len(poses), bool)
    owners, quads = [], []
    for k in range(len(poses)):
        i, j = np.meshgrid(np.arange(low[k, 1], high[k, 1] + 1), np.arange(low[k, 0], high[k, 0] + 1), indexing="ij")
        i, j = i.ravel(), j.ravel()
        if field.holes is not None and len(i):
            solid = ~field.holes[i, j]
            i, j = i[solid], j[solid]
        z = np.stack([vertices[i + a, j + b, 2] for a in (0, 1) for b in (0, 1)], axis=1).reshape(-1, 4)
        near = (z.min(1, initial=np.inf) <= at[k, 2] + reach[k]) & (z.max(1, initial=-np.inf) >= at[k, 2] - reach[k])
        quads.append(np.stack([i[near], j[near]], axis=1))
        owners.append(np.full(near.sum(), k))
    owner, quad = np.concatenate(owners), np.concatenate(quads)
    for corners in (((0, 0), (0, 1), (1, 0)), ((1, 1), (1, 0), (0, 1))):
        triangle = np.stack([vertices[quad[:, 0] + a, quad[:, 1] + b] for a, b in corners], axis=1)
        local = np.einsum("mkc,mcd->mkd", triangle - at[owner][:, None], poses[owner, :3, :3])
        hit[owner[triangles_meet(local, radius[owner], half[owner])]] = True
    return hit


def placed_at(centres: np.ndarray, turns: Rotation | None = None) -> np.ndarray:
    """(n, 4, 4) poses."""
    poses = np.tile(np.eye(4), (len(centres), 1, 1))
    poses[:, :3, 3] = centres
    if turns is not None:
        poses[:, :3, :3] = turns.as_matrix()
    return poses


def tilted(rng: np.random.Generator, count: int) -> Rotation:
    """Turns whose axis is tilted by 0 to 90 degrees, some exactly upright and some exactly lying."""
    tilt = rng.uniform(0.0, 0.5 * np.pi, count)
    tilt[::7], tilt[1::7] = 0.0, 0.5 * np.pi
    heading = rng.uniform(0.0, 2.0 * np.pi, count)
    heading[::5] = 0.5 * np.pi * rng.integers(0, 4, len(heading[::5]))
    spin = rng.uniform(0.0, 2.0 * np.pi, count)
    return Rotation.from_euler("ZYZ", np.stack([heading, tilt, spin], axis=1))


def family(rng: np.random.Generator, kind: str, cell: float, count: int) -> tuple[Heightfield, Cylinder]:
    """A random terrain with cells of `cell` radii and `count` cylinders of radius about 1 near its surface."""
    rows, columns = (int(v) for v in np.clip(rng.integers(6, 14, 2) / cell, 2, 150))
    dx, dy = cell * rng.uniform(0.7, 1.4, 2)
    heights = {
        "rough": rng.normal(0.0, 0.6 * min(cell, 1.0), (rows + 1, columns + 1)),
        "steep": rng.choice([0.0, 0.3, 3.0], (rows + 1, columns + 1)) * 10.0 ** rng.uniform(-1, 1),
        "kerb": np.where((np.arange(columns + 1) * dx // 2.0) % 2 == 0, 0.0, 0.15)[None, :].repeat(rows + 1, 0),
        "flat": np.zeros((rows + 1, columns + 1)),
        "slope": 0.4 * dx * np.arange(columns + 1)[None, :] - 0.7 * dy * np.arange(rows + 1)[:, None],
    }[kind]
    origin = tuple(rng.uniform(-100.0, 100.0, 3))
    holes = rng.random((rows, columns)) < 0.15 if rng.random() < 0.5 else None
    field = Heightfield(heights, (dx, dy), origin, holes)
    radius, height = rng.uniform(0.5, 1.5, count), 2.0 * rng.uniform(0.1, 2.0, count)
    reach = np.hypot(radius, 0.5 * height)
    size = np.array([columns * dx, rows * dy])
    xy = np.array(origin[:2]) + rng.uniform(-0.1, 1.1, (count, 2)) * size
    ground = np.nan_to_num(field.height_at(xy), nan=origin[2] + float(heights.mean()))
    z = ground + rng.uniform(-0.2, 1.3, count) * reach
    return field, Cylinder(radius, height).at(placed_at(np.column_stack([xy, z]), tilted(rng, count)))


def outside_distance(kind: str, size: tuple[float, ...], points: np.ndarray) -> np.ndarray:
    """Distance of points (…, 3), in a body's frame, from a body; 0 inside."""
    if kind == "sphere":
        return np.maximum(np.linalg.norm(points, axis=-1) - size[0], 0.0)
    if kind == "capsule":
        along = np.clip(points[..., 2], -0.5 * size[1], 0.5 * size[1])
        return np.maximum(np.linalg.norm(points - along[..., None] * [0.0, 0.0, 1.0], axis=-1) - size[0], 0.0)
    if kind == "box":
        return np.linalg.norm(np.maximum(np.abs(points) - size, 0.0), axis=-1)
    beside = np.maximum(np.hypot(points[..., 0], points[..., 1]) - size[0], 0.0)  # a cylinder
    return np.hypot(beside, np.maximum(np.abs(points[..., 2]) - 0.5 * size[1], 0.0))


def ground_triangles(field: Heightfield, centre: np.ndarray, reach: float) -> np.ndarray:
    """(m, 3, 3): the triangles of the surface whose box is within `reach` of a point."""
    mesh = field.to_mesh()
    corners = mesh.vertices[mesh.faces]
    near = ((corners.min(axis=1) <= centre + reach) & (corners.max(axis=1) >= centre - reach)).all(axis=1)
    return corners[near]


def body_distance(kind: str, size: tuple[float, ...], pose: np.ndarray, triangles: np.ndarray) -> float:
    """Distance of a body at a pose from triangles, to 1e-7 or so.

    The distance from a convex body is convex on a triangle, and so is its least value along one side of it as a
    function of the place along the other: two ternary searches, one within the other.
    """
    local = (triangles - pose[:3, 3]) @ pose[:3, :3]
    side = np.linalg.norm(local - np.roll(local, 1, axis=1), axis=-1).max(axis=1)
    middle = outside_distance(kind, size, local.mean(axis=1))
    local = local[middle - side <= (middle + side).min()]  # the others cannot be nearest
    edges = local[:, 1:] - local[:, :1]

    def along_second(a: np.ndarray) -> np.ndarray:
        low, high = np.zeros(len(local)), 1.0 - a
        start = local[:, 0] + a[:, None] * edges[:, 0]
        for _ in range(42):
            p, q = low + (high - low) / 3.0, high - (high - low) / 3.0
            both = np.stack([start + v[:, None] * edges[:, 1] for v in (p, q)])
            at_p, at_q = outside_distance(kind, size, both)
            low, high = np.where(at_p > at_q, p, low), np.where(at_p > at_q, high, q)
        return outside_distance(kind, size, start + (0.5 * (low + high))[:, None] * edges[:, 1])

    low, high = np.zeros(len(local)), np.ones(len(local))
    for _ in range(42):
        p, q = low + (high - low) / 3.0, high - (high - low) / 3.0
        worse = along_second(p) > along_second(q)
        low, high = np.where(worse, p, low), np.where(worse, high, q)
    return float(along_second(0.5 * (low + high)).min())


def surface_points(field: Heightfield, per_cell: int = 4) -> np.ndarray:
    """(m, 3): points all over the surface, `per_cell` along a cell's side."""
    rows, columns = field.shape
    x = np.linspace(0.0, columns * field.spacing[0], columns * per_cell + 1) + field.origin[0]
    y = np.linspace(0.0, rows * field.spacing[1], rows * per_cell + 1) + field.origin[1]
    xy = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    z = field.height_at(xy)
    return np.column_stack([xy, z])[np.isfinite(z)]

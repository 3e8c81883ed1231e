"""Bodies to cut, and strokes of a blade through them: planar, curved, twisted, on the lattice, through vertices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay

import tangere as tg
from oracles.cut_bodies import TET_FACETS, altitudes, parts_of, sizes
from tangere.shape.tets import solid_block, solid_torus

PLANAR, CURVED, SHORT, HALF_WAY, TWISTED = range(5)


@dataclass(frozen=True)
class Stroke:
    """Polylines of the blade, one after each step, and what they are."""

    lines: list[np.ndarray]
    kind: int
    origin: np.ndarray
    normal: np.ndarray


def block() -> tuple[np.ndarray, np.ndarray]:
    solid = solid_block((10, 5, 5), size=(2, 1, 1))
    return solid.vertices, solid.tets


def torus() -> tuple[np.ndarray, np.ndarray]:
    solid = solid_torus((24, 3), radius=0.7, tube=0.3)
    return solid.vertices, solid.tets


def sheet(triangles: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """A wavy one."""
    mesh = tg.generate.sheet(triangles, size=(1.0, 1.0))
    x = mesh.vertices.copy()
    x[:, 2] = 0.15 * np.sin(4 * x[:, 0]) * np.cos(3 * x[:, 1])
    return x, mesh.faces


def blob(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An unstructured, bumpy body: Delaunay tetrahedra of jittered points, without flat ones and loose ends."""
    grid = np.stack(np.meshgrid(*[np.arange(-5, 6) * 0.2] * 3, indexing="ij"), -1).reshape(-1, 3)
    points = grid + rng.uniform(-0.06, 0.06, grid.shape)
    tets = Delaunay(points).simplices.astype(np.int32)
    turned = sizes(points, tets) < 0.0
    tets[turned] = tets[turned][:, [0, 2, 1, 3]]
    centre = points[tets].mean(axis=1)
    angle = np.arctan2(centre[:, 1], centre[:, 0])
    reach = 0.75 + 0.15 * np.sin(3 * angle) * np.cos(2 * centre[:, 2])
    inside = np.linalg.norm(centre, axis=1) < reach
    return _manifold(points, tets[inside & (altitudes(points, tets) > 0.02)])


def _manifold(points: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest part, with stars that are connected and no pinched edges."""
    while True:
        neighbours = _neighbours(tets)
        _, label = parts_of(neighbours)
        tets = tets[label == np.bincount(label).argmax()]
        neighbours = _neighbours(tets)
        i, k = np.nonzero(neighbours >= 0)
        beyond = neighbours[i, k]
        rows, columns = [], []
        for j in range(3):
            vertex = tets[i, TET_FACETS[k][:, j]]
            rows.append(4 * i + TET_FACETS[k][:, j])
            columns.append(4 * (beyond >> 2) + np.argmax(tets[beyond >> 2] == vertex[:, None], axis=1))
        links = np.concatenate(rows), np.concatenate(columns)
        found, label = connected_components(
            coo_matrix((np.ones(len(links[0])), links), shape=(4 * len(tets),) * 2), directed=False
        )
        vertex = np.zeros(found, int)
        vertex[label] = tets.ravel()
        points, tets = points[vertex], label.reshape(-1, 4).astype(np.int32)
        t, k = np.nonzero(neighbours < 0)
        skin = tets[t[:, None], TET_FACETS[k]]
        edges = np.sort(np.concatenate([skin[:, [0, 1]], skin[:, [1, 2]], skin[:, [2, 0]]]), axis=1)
        edges, times = np.unique(edges, axis=0, return_counts=True)
        pinched = edges[times > 2]
        if not len(pinched):
            return points, tets
        drop = np.zeros(len(tets), bool)
        for a, b in pinched:
            drop |= (tets == a).any(axis=1) & (tets == b).any(axis=1)
        tets = tets[~drop]


def _neighbours(tets: np.ndarray) -> np.ndarray:
    owner: dict[tuple[int, ...], int] = {}
    beyond = np.full(tets.shape, -1)
    for t, corners in enumerate(np.sort(tets[:, TET_FACETS], axis=2).tolist()):
        for k, facet in enumerate(corners):
            other = owner.pop(tuple(facet), None)
            if other is None:
                owner[tuple(facet)] = 4 * t + k
            else:
                beyond[t, k], beyond[other >> 2, other & 3] = other, 4 * t + k
    return beyond


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    """A rotation matrix."""
    axis = axis / np.linalg.norm(axis)
    cross = np.cross(np.eye(3), -axis)
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def random_stroke(rng: np.random.Generator, edge: float) -> Stroke:
    """Planar, curved or twisted through a body of extent 2; with the tip inside; or up to half-way; on lattice planes.

    Args:
        edge: a typical one of the body [m]; steps are 0.02 to 3 of it. Curved blades turn smoothly; twisted ones, short
            ones and those that stop half-way jerk in each step, however short: they pass edges more than once.
    """
    origin = rng.uniform(-0.3, 0.3, 3)
    normal = rng.normal(size=3)
    normal /= np.linalg.norm(normal)
    along = np.cross(normal, rng.normal(size=3))
    along /= np.linalg.norm(along)
    blade = np.cross(normal, along)
    aligned = rng.random() < 0.2
    if aligned:
        normal, along, blade = np.eye(3)[rng.permutation(3)]
        origin = np.round(origin / 0.2) * 0.2
    kind = PLANAR if aligned else int(rng.integers(0, 5))
    half = rng.uniform(0.2, 0.6) if kind == SHORT else 2.5
    step = rng.choice([0.1, 0.05, 0.2]) if aligned else rng.uniform(0.1, 3.0) * edge
    path = np.arange(-2.2, 2.2 + step, step)
    if not aligned and rng.random() < 0.05:  # very short steps, somewhere inside
        path = rng.uniform(-0.3, 0.3) + np.concatenate([[-1.2], np.arange(60) * 0.02 * edge])
        kind = kind if kind == SHORT else HALF_WAY
    if kind == HALF_WAY:
        path = path[path < rng.uniform(-0.3, 0.5)]
    count = 2 if kind == PLANAR else int(rng.integers(2, 6))
    lines, angle, offset, swing = [], 0.0, np.zeros(3), rng.uniform(-0.5, 0.5, 4)
    for at in path:
        if kind == CURVED:
            angle = swing[0] * np.sin(2.0 * at + swing[1])
            offset = 0.3 * swing[2] * np.sin(3.0 * at + swing[3]) * normal
        elif kind != PLANAR:
            angle += rng.normal() * 0.06
            offset = offset + rng.normal(size=3) * 0.02 * (0.3 if kind == TWISTED else 1.0)
        direction = turned(along, angle) @ turned(blade, 0.5 * angle) @ blade
        shift = half * 0.9 if kind == SHORT else 0.0
        lines.append(
            origin + at * along + offset + np.linspace(-half, half, count)[:, None] * direction + shift * blade
        )
    return Stroke(lines, kind, origin, normal)


def sheet_strokes(rng: np.random.Generator) -> Iterator[Stroke]:
    """Two wavy strokes through a sheet of side 1, with a blade that stands on it and tilts."""
    for _ in range(2):
        origin, angle = rng.uniform(-0.2, 0.2, 3), rng.uniform(0.0, 2.0 * np.pi)
        along = np.array([np.cos(angle), np.sin(angle), 0.0])
        across = np.array([-along[1], along[0], 0.0])
        stop, tilt, lines = rng.uniform(-0.2, 1.0), 0.0, []
        for at in np.arange(-1.0, stop, rng.uniform(0.03, 0.12)):
            tilt += rng.normal() * 0.1
            blade = np.sin(tilt) * across + [0.0, 0.0, 1.0]
            middle = origin + at * along + 0.05 * np.sin(8 * at) * across
            lines.append(np.array([middle - 0.6 * blade, middle + 0.6 * blade]))
        yield Stroke(lines, HALF_WAY, origin, across)

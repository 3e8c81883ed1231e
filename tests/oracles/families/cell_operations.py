"""Grids of cells, and random splits and merges of them."""

from __future__ import annotations

import numpy as np

from tangere.cells.generate import hex_grid, quad_grid, tet_grid, triangle_grid
from tangere.cells.maps import merge, split

#: name: (make, size of the domain along each axis, area or volume, deepest level to go to)
GRIDS = {
    "quads": (lambda **kw: quad_grid(3, 3, **kw), 3.0, 9.0, 4),
    "triangles": (lambda **kw: triangle_grid(2, 2, **kw), 2.0, 4.0, 4),
    "hexahedra": (lambda **kw: hex_grid(2, 2, 2, **kw), 2.0, 8.0, 3),
    "tetrahedra": (lambda **kw: tet_grid(1, 1, 1, **kw), 1.0, 1.0, 2),
}


def mergeable(map) -> np.ndarray:
    """Cells whose children are all leaves."""
    levels, child, parent = map.numpy("cell_level"), map.numpy("first_child"), map.numpy("parent")
    inner = np.flatnonzero((levels >= 0) & (child >= 0))
    return np.setdiff1d(inner, parent[inner])


def random_operation(map, rng, deepest: int, **options) -> None:
    """Split or merge a few random cells."""
    ready = mergeable(map)
    leaves = map.leaves
    leaves = leaves[map.levels[leaves] < deepest]
    if len(leaves) and (len(ready) == 0 or rng.random() < 0.6):
        # Half the time the deepest ones, so that levels far apart meet.
        if rng.random() < 0.5:
            leaves = leaves[np.argsort(-map.levels[leaves], kind="stable")][:3]
        split(map, rng.choice(leaves, min(len(leaves), int(rng.integers(1, 4))), replace=False), **options)
    else:
        merge(map, rng.choice(ready, min(len(ready), int(rng.integers(1, 4))), replace=False), **options)


def merge_all(map, **options) -> None:
    """Back to level 0."""
    while len(ready := mergeable(map)):
        merge(map, ready, **options)


def inside(rng, map, size: float, count: int, margin: float = 0.02) -> np.ndarray:
    """Random points of the domain, z = 0 in the plane."""
    points = rng.uniform(margin, size - margin, (count, 3))
    if map.dimension == 2:
        points[:, 2] = 0
    return points

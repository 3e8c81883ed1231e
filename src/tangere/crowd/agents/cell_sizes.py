"""How wide and how large cells are: what an agent can see of its surroundings from its ring, and how crowded it is.

Question: how far can an agent look and still see everybody, whatever its place in its cell?
Method:   a function that is 1 on the agent's cell and 0 beyond its ring, made of straight pieces between 1 on corners
          of the cell, 0 on other corners and 1/2 on the centres of cells and faces that have both. Nothing beyond the
          ring is nearer than 1 over its steepest piece. A piece is as steep as the triangle (in space the tetrahedron)
          between the centre of a cell and a side is narrow, in one of two (three) ways: so the width of a cell is twice
          the least distance of its centre from a side, but where a side is short no more than that side is long, seen
          along the way from the centre to its middle. The width of a square or a cube is its side.
          Triangles, parallelograms and parallelepipeds split into halves of themselves. Children of other
          quadrilaterals are pieces of a bilinear patch, whose corners bound the widths of pieces on all levels.
Sound:    what is within the least width of the cells, straight or along the surface, is in an agent's cell or its
          ring, and remains so while cells are split down to `finest_level`. Holes of the map end what is seen.
Known as: what an agent sees is its one-ring (Pitiot 2015, sections 3.3 and 8.2.2).
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps import CellMap, level_links
from tangere.runtime import InputError

#: Of a width, for its rounding.
_SPARE = 1e-9


def cell_widths(map: CellMap) -> np.ndarray:
    """Width of each leaf [m], by cell number; inf elsewhere."""
    return _widths(map)[0]


def cell_sizes(map: CellMap) -> np.ndarray:
    """Area or volume of each leaf [m^2 or m^3], by cell number; 0 elsewhere."""
    darts = map.darts
    cell = map.numpy("cell")[darts]
    c, (s, e) = map.numpy("centre")[cell], map.edge_ends(darts)
    if map.dimension == 3:
        part = np.abs((np.cross(map.numpy("face_centre")[darts] - c, s - c) * (e - c)).sum(axis=1)) / 6.0
    else:
        part = np.linalg.norm(np.cross(s - c, e - c), axis=1) / 2.0
    return np.bincount(cell, part, minlength=map.cell_capacity)


def finest_level(map: CellMap, reach: float, name: str = "range") -> int:
    """The deepest level to which all cells may be split and show whatever is within `reach`; now they must.

    Args:
        name: what to call the reach in an error.
    """
    leaves = map.leaves
    level = map.levels[leaves]
    here, finer = (widths[leaves] for widths in _widths(map))
    deepest = int(level.max())
    # As if all were split down to the deepest level: what is seen from a small cell is seen from a larger one as well.
    now = np.where((level == deepest) | ((map.dimension == 3) & (finer == 0)), here, finer * 0.5 ** (deepest - level))
    if not now.min() >= reach * (1.0 - _SPARE):
        # Of several, one that is so narrow already.
        narrow = np.flatnonzero(now <= now.min() * (1.0 + _SPARE))
        narrowest = narrow[np.argmax(level[narrow])]
        split = "" if level[narrowest] == deepest else f" split down to level {deepest}, as others are"
        where = f"{now[narrowest]:.7g} m (cell {leaves[narrowest]}{split})"
        raise InputError(f"{name} {reach:.7g} m is more than the width of the narrowest cell, {where}")
    least = float((finer * 2.0**level).min())
    return max(deepest, int(np.floor(np.log2(least / reach) + _SPARE))) if least > 0 else deepest


def _widths(map: CellMap) -> tuple[np.ndarray, np.ndarray]:
    """By cell number: the width of each leaf, and 2^k times what that of its descendants after k splits is at least."""
    here, finer = (np.full(map.cell_capacity, np.inf) for _ in range(2))
    cell, tag, alive = map.numpy("cell"), map.numpy("tag"), map.darts
    levels = map.levels[cell[alive]]
    even = True
    for k in np.unique(levels):
        # On its own level a cell has no corners that only a finer neighbour has put into its sides.
        links = level_links(map, int(k)).phi1 if levels.any() else map.numpy("phi1")
        darts = alive[(levels == k) & ((tag[alive] & 255) <= k)]
        around = [darts]
        for _ in range(3):
            around.append(links[around[-1]])
        s, e, g, h = (map.positions[map.numpy("origin")[corner]] for corner in around)
        # Triangles and parallelograms split into halves of themselves, and hexahedra with such sides.
        skew = (np.abs(s - e + g - h) > _SPARE * (np.abs(g - s) + np.abs(h - e))).any(axis=1)
        skew = (skew | (links[around[3]] != darts)) & ((around[3] != darts) | (map.dimension == 3))
        even = even and not skew.any()
        if map.dimension == 2:
            c = map.numpy("centre")[cell[darts]]
            wide = _side_widths(c, s, e)
            np.minimum.at(here, cell[darts], wide)
            wide[skew] = 2.0 * _patch_widths(e[skew], (e + g)[skew] / 2, c[skew], (s + e)[skew] / 2)
            np.minimum.at(finer, cell[darts], wide)
    if map.dimension == 3:
        c, f, s, e = _tetrahedra(map, alive)
        np.minimum.at(here, cell[alive], 2.0 * _height(c, f - s, e - s, s))
        finer = here.copy()
        if not even:
            np.minimum.at(here, cell[alive], 2.0 * _height(c, f - c, e - s, s))
            np.minimum.at(here, cell[alive], _height(e, f - c, (s + e) / 2 - c, s))
            finer = np.where(np.isfinite(here), 0.0, here)
    return here, finer


def _side_widths(c: np.ndarray, s: np.ndarray, e: np.ndarray) -> np.ndarray:
    """What a side from s to e leaves of the width of a polygon with centre c."""
    area, side, middle = (np.sqrt((x**2).sum(axis=1)) for x in (np.cross(e - s, c - s), e - s, (s + e) / 2 - c))
    return np.minimum(2.0 * area / side, area / middle)


def _patch_widths(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """2^k times what the width of a quadrilateral is at least after k splits; 0: nothing is known.

    The area element of its bilinear patch is a mean of those at the corners, all edges of descendants are means of
    opposite sides, and the width of a piece is its area element, over the longer of its edges, at some place.
    """
    sides = b - a, c - b, c - d, d - a
    elements = np.stack([np.cross(sides[i], sides[j]) for i, j in ((0, 3), (0, 1), (2, 1), (2, 3))])
    normal = elements.sum(axis=0)
    least = (elements * normal).sum(axis=2).min(axis=0) / np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
    return np.maximum(least, 0.0) / np.linalg.norm(np.stack(sides), axis=2).max(axis=0)


def _tetrahedra(map: CellMap, darts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of each dart: the centres of its cell and of its face, and its two ends."""
    centre, face = map.numpy("centre")[map.numpy("cell")[darts]], map.numpy("face_centre")[darts]
    return centre, face, *map.edge_ends(darts)


def _height(x: np.ndarray, a: np.ndarray, b: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Distance of x from the plane through `base` along a and b."""
    normal = np.cross(a, b)
    return np.abs(((x - base) * normal).sum(axis=1)) / np.linalg.norm(normal, axis=1)

"""How wide and how large cells are: what an agent can see of its surroundings from its ring, and how crowded it is.

The width of a cell is twice the least distance of its centre from a side: the side of a square. An agent sees all that
is within the least width of the cells around it, so behaviour must not look farther.
Spec: specs/pitiot-multiresolution-interactions 2.16, 2.17 (visibility).
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps.cell_map import CellMap
from tangere.runtime import InputError

__all__ = ["cell_sizes", "cell_widths", "finest_level"]


def cell_widths(map: CellMap) -> np.ndarray:
    """Width of each leaf [m], by cell number; inf elsewhere."""
    cell, c, s, e, f = _corners(map)
    if map.dimension == 3:
        normal = np.cross(s - f, e - f)
        away = np.abs(((c - s) * normal).sum(axis=1)) / np.linalg.norm(normal, axis=1)
    else:
        away = np.linalg.norm(np.cross(e - s, c - s), axis=1) / np.linalg.norm(e - s, axis=1)
    widths = np.full(map.cell_capacity, np.inf)
    np.minimum.at(widths, cell, 2.0 * away)
    return widths


def cell_sizes(map: CellMap) -> np.ndarray:
    """Area or volume of each leaf [m^2 or m^3], by cell number; 0 elsewhere."""
    cell, c, s, e, f = _corners(map)
    if map.dimension == 3:
        part = np.abs((np.cross(f - c, s - c) * (e - c)).sum(axis=1)) / 6.0
    else:
        part = np.linalg.norm(np.cross(s - c, e - c), axis=1) / 2.0
    return np.bincount(cell, part, minlength=map.cell_capacity)


def finest_level(map: CellMap, reach: float) -> int:
    """The deepest level whose cells are still at least `reach` wide; cells of the map as it is must be."""
    darts = map.darts
    corners = np.bincount(map.numpy("cell")[darts], minlength=map.cell_capacity)[map.leaves]
    level = map.levels[map.leaves]
    width = float((cell_widths(map)[map.leaves] * 2.0**level).min())
    if not width >= reach * 2.0 ** level.max():
        narrowest = width / 2.0 ** level.max()
        raise InputError(f"range {reach} m is more than the width of the narrowest cell, {narrowest:.4g} m")
    halves = (corners <= 4).all() if map.dimension == 2 else (corners == 24).all()
    # Only triangles, quadrilaterals and hexahedra are split into halves of themselves.
    return int(np.floor(np.log2(width / reach) + 1e-9)) if halves or level.any() else 0


def _corners(map: CellMap) -> tuple[np.ndarray, ...]:
    """Per dart: its cell, the cell's centre, its two ends, and the face centre (3-maps)."""
    darts, origin, position = map.darts, map.numpy("origin"), map.positions
    cell = map.numpy("cell")[darts]
    face = map.numpy("face_centre")[darts] if map.dimension == 3 else position[:0]
    return cell, map.numpy("centre")[cell], position[origin[darts]], position[origin[map.numpy("phi1")[darts]]], face

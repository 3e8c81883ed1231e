"""A vertex of the ground, the cell and the edges it owns, and whether there is ground beside them.

A page of the terrain holds all neighbours of the vertices it owns, so one look-up serves for all of them.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.height_pyramid import GAP, PAGE_HEIGHTS, PAGE_SIDE, TILE, TOP, Terrain, node_flags
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["Owner", "has_ground", "has_ground_beside", "owner", "to_neighbour"]

real = wp.float64
vec = wp.vec3d

#: A normal leans on a neighbour it may not go below by this part of the flatness.
_CONE = wp.constant(real(1.0e-3))


@wp.struct
class Owner:
    """A vertex of the ground with the cell of the same number."""

    row: wp.int32
    column: wp.int32
    number: wp.int32
    at: wp.int32  #: of its height in the terrain's pages, which have all its neighbours
    vertex: wp.vec3d  #: relative to the body's origin
    dx: wp.float64
    dy: wp.float64
    tolerance: wp.float64  #: a normal may lean on a neighbour by this much [m]


@wp.func
def owner(t: Terrain, centre: vec, i: int, j: int) -> Owner:
    here = Owner()
    here.row = i
    here.column = j
    here.number = i * (t.columns + 1) + j
    here.at = height_offset(t, i, j)
    here.vertex = vec(real(j) * t.dx, real(i) * t.dy, t.heights[here.at]) - centre
    here.dx = t.dx
    here.dy = t.dy
    here.tolerance = t.flatness * _CONE
    return here


@wp.func
def height_offset(t: Terrain, i: int, j: int) -> int:
    """Where the height of a vertex is in the page of the tile that owns it."""
    page = t.page[(i >> TOP) * t.tiles_x + (j >> TOP)]
    return page * PAGE_HEIGHTS + ((i & (TILE - 1)) + 1) * PAGE_SIDE + (j & (TILE - 1)) + 1


@wp.func
def to_neighbour(heights: wp.array[wp.float64], here: Owner, di: int, dj: int) -> vec:
    """From the owner's vertex to the one di rows and dj columns on, each -1, 0 or 1."""
    rise = heights[here.at + di * PAGE_SIDE + dj] - heights[here.at]
    return vec(real(dj) * here.dx, real(di) * here.dy, rise)


@wp.func
def has_ground(t: Terrain, i: int, j: int) -> bool:
    """Whether cell (i, j), which may be beyond the border, has ground."""
    if i < 0 or j < 0 or i >= t.rows or j >= t.columns:
        return False
    return (node_flags(t, 0, i, j) & GAP) == 0


@wp.func
def has_ground_beside(t: Terrain, i: int, j: int, k: int) -> bool:
    """Whether the edge from vertex (i, j) to its k-th neighbour (see `visit_vertex`) has ground on a side."""
    if k == 0:
        return has_ground(t, i, j) or has_ground(t, i - 1, j)
    if k == 1:
        return has_ground(t, i, j) or has_ground(t, i, j - 1)
    if k == 2:
        return has_ground(t, i, j - 1)
    if k == 3:
        return has_ground(t, i, j - 1) or has_ground(t, i - 1, j - 1)
    if k == 4:
        return has_ground(t, i - 1, j) or has_ground(t, i - 1, j - 1)
    return has_ground(t, i - 1, j)

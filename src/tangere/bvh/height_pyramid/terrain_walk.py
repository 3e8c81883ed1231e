"""The nodes of a terrain under a window, from large to small, without a stack.

A walk starts from at most 2 x 2 nodes that cover the window and goes from each into its quarters, the last quarter
first. Where it is says where it goes next, so it needs no memory, and every walk of a window has the same order.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.height_pyramid.terrain import Terrain, start_level
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["Walk", "is_in_window", "next_node", "walk_over"]


@wp.struct
class Walk:
    """A window of cells (first and last row, first and last column) and the nodes it is entered by."""

    window: wp.vec4i
    level: wp.int32  #: of the nodes it starts from
    start: wp.vec3i  #: level, row and column of the first node


@wp.func
def walk_over(t: Terrain, window: wp.vec4i) -> Walk:
    """A walk over a window that is not empty."""
    walk = Walk()
    walk.window = window
    walk.level = start_level(t, window)
    walk.start = wp.vec3i(walk.level, window[1] >> walk.level, window[3] >> walk.level)
    return walk


@wp.func
def next_node(walk: Walk, node: wp.vec3i, into: bool) -> wp.vec3i:
    """The node after this one, into its quarters or past them; of level -1 at the end."""
    level = node[0]
    row = node[1]
    column = node[2]
    window = walk.window
    inside = bool(False)
    if into:
        level -= 1
        row = 2 * row + 1
        column = 2 * column + 1
        inside = is_in_window(window, level, row, column)
    while not inside:
        if level == walk.level:
            column -= 1
            if column < (window[2] >> level):
                column = window[3] >> level
                row -= 1
                if row < (window[0] >> level):
                    return wp.vec3i(-1, 0, 0)
            inside = True
        elif ((row | column) & 1) == 0:  # the last of its four
            level += 1
            row = row >> 1
            column = column >> 1
        else:
            row = row - (1 - (column & 1))
            column = column ^ 1
            inside = is_in_window(window, level, row, column)
    return wp.vec3i(level, row, column)


@wp.func
def is_in_window(window: wp.vec4i, level: int, row: int, column: int) -> bool:
    rows = (row << level) <= window[1] and ((row + 1) << level) > window[0]
    return rows and (column << level) <= window[3] and ((column + 1) << level) > window[2]

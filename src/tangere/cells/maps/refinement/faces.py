"""Splitting and merging the cells of a 2-map: a triangle into 4 triangles, any other polygon into quadrilaterals.

Question: the same face, as its children; and back.
Method:   the children of a polygon keep its corners; a triangle has one more child in the middle.
Sound:    all old darts live on, and a merge gives back exactly what the split found, unless a neighbour still needs a
          midpoint.
Known as: primal subdivision, 1-to-4 and quadrangulation (Pitiot 2015, sections 3.2.2 and 6.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays, drop_cell, drop_vertex, level, new_cell, new_vertex
from tangere.cells.maps.orbits import assign_cell
from tangere.cells.maps.refinement.division import (
    CORNER,
    INWARD,
    OUTWARD,
    corners_of,
    cut_edge,
    divide_polygon,
    divide_triangle,
    join_parts,
    uncut_edge,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def face_split_room(m: MapArrays, c: int) -> wp.vec3i:
    """Darts, vertices and cells that splitting face c makes at most."""
    start = m.anchor[c]
    corners = int(0)
    x = int(start)
    while corners == 0 or x != start:
        corners += 1
        x = m.phi1[x]
    return wp.vec3i(4 * corners, corners + 1, corners + 1)


@wp.func
def split_face(m: MapArrays, c: int, work: wp.array2d[int], row: int) -> bool:
    """Split leaf c; False if it has too many corners."""
    k = m.cell_level[c]
    count = corners_of(m, m.anchor[c], k, work, row, 0)
    if count < 0:
        return False
    for i in range(count):
        corner = work[row, CORNER + i]
        if level(m, m.phi1[corner]) <= k:
            cut_edge(m, corner, k + 1)
    if count == 3:
        divide_triangle(m, k, work, row)
        _child(m, c, work[row, OUTWARD])
    else:
        middle = new_vertex(m, m.centre[c])
        divide_polygon(m, count, k, middle, work, row, 0)
    for i in range(count):
        _child(m, c, work[row, CORNER + count - 1 - i])
    return True


@wp.func
def _child(m: MapArrays, c: int, anchor: int):
    assign_cell(m, anchor, new_cell(m, c, anchor))


@wp.func
def merge_face(m: MapArrays, c: int, work: wp.array2d[int], row: int):
    """Merge the children of c, which are leaves, into c."""
    k = m.cell_level[c]
    count = int(0)
    child = int(m.first_child[c])
    m.obstacle[c] = int(m.obstacle[child])  # as all of them
    triangle = bool(False)
    while child >= 0:
        if level(m, m.anchor[child]) <= k:
            work[row, CORNER + count] = int(m.anchor[child])
            count += 1
        else:
            triangle = True
        after = int(m.sibling[child])
        drop_cell(m, child)
        child = after
    join_parts(m, count, k, triangle, work, row, 0)
    if not triangle:
        drop_vertex(m, m.origin[m.phi1[work[row, INWARD]]])
    m.first_child[c] = -1
    for i in range(count):
        uncut_edge(m, work[row, CORNER + i], k + 1)
    assign_cell(m, m.anchor[c], c)

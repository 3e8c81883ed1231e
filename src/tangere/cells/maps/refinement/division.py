"""Cutting edges and dividing faces, and the reverse: what splits and merges of 2- and 3-maps are made of.

Question: how do the darts of an edge or a face change when it is cut, and when it is joined again?
Method:   `work` is a row of scratch space per operation; the offsets below say what is kept where. A split or merge
          of a face or volume writes its corner darts there and calls the functions below in turn.
Known as: edge and face subdivision of combinatorial maps (Damiand and Lienhardt 2014; Pitiot 2015, section 3.2.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import (
    MapArrays,
    drop_dart,
    drop_vertex,
    edge_label,
    face_label,
    level,
    link_next,
    new_dart,
    new_vertex,
    tag,
    walls,
)
from tangere.cells.maps.orbits import edge_start, level_phi1
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Corners of a face that a split can handle; the darts of a volume are limited in `volumes`.
CORNER_LIMIT = wp.constant(32)
#: Offsets in a row: the corner darts of a face, the darts after its midpoints, the inner darts to and from its centre.
CORNER, CUT, INWARD, OUTWARD = wp.constant(0), wp.constant(32), wp.constant(64), wp.constant(96)
#: The other side of the face follows at this distance; then six lists of a volume's darts.
SIDE = wp.constant(128)
WORK_WIDTH = 256 + 6 * 128


@wp.func
def corners_of(m: MapArrays, d: int, k: int, work: wp.array2d[int], row: int, at: int) -> int:
    """Write the level-k darts of the face of d to `work`; returns how many, or -1 if they are too many."""
    count = int(0)
    x = int(d)
    while count < CORNER_LIMIT:
        work[row, at + CORNER + count] = x
        count += 1
        x = level_phi1(m, x, k)
        if x == d:
            return count
    return -1


@wp.func
def _half(m: MapArrays, x: int, middle: int, k: int) -> int:
    e = new_dart(m, x, middle, tag(k, edge_label(m, x), face_label(m, x), walls(m, x)))
    after = int(m.phi1[x])
    link_next(m, x, e)
    link_next(m, e, after)
    return e


@wp.func
def cut_edge(m: MapArrays, d: int, k: int):
    """Set a vertex of level k into the middle of the edge of d, in every face around it."""
    start = edge_start(m, d)
    middle = new_vertex(m, wp.float64(0.5) * (m.position[m.origin[d]] + m.position[m.origin[m.phi1[d]]]))
    closed = int(m.phi3[start])
    x = int(start)
    first_half = int(-1)
    behind = int(-1)  # the dart of the volume before, and its new half
    behind_half = int(-1)
    while x >= 0:
        y = int(m.phi2[x])
        x_half = _half(m, x, middle, k)
        if first_half < 0:
            first_half = x_half
        if behind >= 0:
            m.phi3[behind] = x_half
            m.phi3[x_half] = behind
            m.phi3[x] = behind_half
            m.phi3[behind_half] = x
        if y < 0:
            break
        after = int(m.phi3[y])
        y_half = _half(m, y, middle, k)
        m.phi2[x] = y_half
        m.phi2[y_half] = x
        m.phi2[y] = x_half
        m.phi2[x_half] = y
        behind = y
        behind_half = y_half
        x = after
        if x == start:
            x = -1
    if closed >= 0:
        m.phi3[behind] = first_half
        m.phi3[first_half] = behind
        m.phi3[start] = behind_half
        m.phi3[behind_half] = start


@wp.func
def uncut_edge(m: MapArrays, d: int, k: int):
    """Take the level-k vertex out of the middle of the edge that starts with d, unless a face still needs it."""
    middle = int(m.phi1[d])
    if level(m, middle) != k or level(m, m.phi1[middle]) >= k:
        return
    # The edge may go only if no face around it is divided there: both halves then have the same faces.
    start = edge_start(m, d)
    x = int(start)
    while x >= 0:
        y = int(m.phi2[x])  # the second half of the opposite dart
        if y < 0:
            break
        if m.phi2[m.phi_1[y]] != m.phi1[x]:
            return
        x = m.phi3[y]
        if x == start:
            break
    vertex = int(m.origin[middle])
    x = start
    while x >= 0:
        x_half = int(m.phi1[x])
        y = int(m.phi2[x_half])
        m.phi2[x] = y
        m.phi3[x] = int(m.phi3[x_half])
        link_next(m, x, m.phi1[x_half])
        drop_dart(m, x_half, x)
        if y < 0:
            break
        y_half = int(m.phi1[y])
        after = int(m.phi3[y_half])
        m.phi2[y] = x
        m.phi3[y] = after
        link_next(m, y, m.phi1[y_half])
        drop_dart(m, y_half, y)
        x = after
        if x == start:
            break
    drop_vertex(m, vertex)


@wp.func
def _midpoints(m: MapArrays, count: int, k: int, work: wp.array2d[int], row: int, at: int):
    for i in range(count):
        work[row, at + CUT + i] = level_phi1(m, work[row, at + CORNER + i], k + 1)


@wp.func
def divide_polygon(m: MapArrays, count: int, k: int, centre: int, work: wp.array2d[int], row: int, at: int):
    """Join the midpoints of a level-k face, whose edges are cut, to a vertex in its middle.

    Part i keeps corner dart i; INWARD[i] leaves midpoint i in part i, OUTWARD[i] arrives there in part i + 1.
    """
    _midpoints(m, count, k, work, row, at)
    for i in range(count):
        corner = work[row, at + CORNER + i]
        label = 1
        if edge_label(m, corner) != 0:
            label = 0
        around = walls(m, corner)
        if m.dimension == 2:
            around = m.obstacle[m.cell[corner]]
        word = tag(k + 1, label, face_label(m, corner), around)
        inward = new_dart(m, corner, m.origin[work[row, at + CUT + i]], word)
        outward = new_dart(m, corner, centre, word)
        m.phi2[inward] = outward
        m.phi2[outward] = inward
        work[row, at + INWARD + i] = inward
        work[row, at + OUTWARD + i] = outward
    for i in range(count):
        before = (i + count - 1) % count
        link_next(m, m.phi_1[work[row, at + CUT + i]], work[row, at + INWARD + i])
        link_next(m, work[row, at + INWARD + i], work[row, at + OUTWARD + before])
    for i in range(count):
        link_next(m, work[row, at + OUTWARD + i], work[row, at + CUT + i])


@wp.func
def divide_triangle(m: MapArrays, k: int, work: wp.array2d[int], row: int):
    """Join the midpoints of a level-k triangle, whose edges are cut; INWARD[i] closes corner i, OUTWARD is inside."""
    _midpoints(m, 3, k, work, row, 0)
    for i in range(3):
        before = (i + 2) % 3
        label = int(0)
        a = edge_label(m, work[row, CORNER + i])
        b = edge_label(m, work[row, CORNER + before])
        while label - a == 0 or label - b == 0:
            label += 1
        word = tag(k + 1, label, 0, m.obstacle[m.cell[work[row, CORNER]]])
        closing = new_dart(m, work[row, CORNER + i], m.origin[work[row, CUT + i]], word)
        inside = new_dart(m, work[row, CORNER + i], m.origin[work[row, CUT + before]], word)
        m.phi2[closing] = inside
        m.phi2[inside] = closing
        work[row, INWARD + i] = closing
        work[row, OUTWARD + i] = inside
    for i in range(3):
        link_next(m, m.phi_1[work[row, CUT + i]], work[row, INWARD + i])
    for i in range(3):
        link_next(m, work[row, INWARD + i], work[row, CUT + (i + 2) % 3])
        link_next(m, work[row, OUTWARD + i], work[row, OUTWARD + (i + 1) % 3])


@wp.func
def join_parts(m: MapArrays, count: int, k: int, triangle: bool, work: wp.array2d[int], row: int, at: int):
    """Take the inner edges out of a divided level-k face whose corner darts are in `work`; the centre stays."""
    for i in range(count):
        work[row, at + INWARD + i] = level_phi1(m, work[row, at + CORNER + i], k + 1)
    for i in range(count):
        inward = work[row, at + INWARD + i]
        if triangle:
            work[row, at + CUT + i] = int(m.phi1[work[row, at + INWARD + (i + 1) % 3]])
        else:
            work[row, at + CUT + i] = int(m.phi1[m.phi2[inward]])
    for i in range(count):
        inward = work[row, at + INWARD + i]
        last = int(m.phi_1[inward])
        drop_dart(m, m.phi2[inward], last)
        drop_dart(m, inward, last)
        link_next(m, last, work[row, at + CUT + i])

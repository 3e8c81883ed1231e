"""Walks over a map: around an edge, along a coarse edge, through a volume; the level-k links of an implicit map.

Question: what is next to a dart on a coarser level than the finest?
Method:   a coarse edge is found again among finer ones by labels: at a vertex set into an edge, the continuation of the
          edge has its label and the edges made by dividing a face have another; faces around an edge likewise.
Known as: level-k traversal of implicit multiresolution maps (Pitiot 2015, section 3.2.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays, edge_label, face_label, level
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def in_face_step(m: MapArrays, x: int) -> int:
    """Across an inner edge of a divided coarse face, to the next part of the same coarse face."""
    y = int(m.phi2[x])
    while face_label(m, y) != face_label(m, x):
        y = m.phi2[m.phi3[y]]
    return y


@wp.func
def next_part(m: MapArrays, part: int, d: int, k: int) -> int:
    """The fine dart after `part` on the level-k edge that starts with d; -1 at its end."""
    after = int(m.phi1[part])
    if level(m, after) <= k:
        return -1
    while edge_label(m, after) != edge_label(m, d):
        after = m.phi1[in_face_step(m, after)]
    return after


@wp.func
def last_part(m: MapArrays, d: int, k: int) -> wp.vec2i:
    """The last fine dart of the level-k edge that starts with d, and the dart after it."""
    part = int(d)
    after = next_part(m, part, d, k)
    while after >= 0:
        part = after
        after = next_part(m, part, d, k)
    return wp.vec2i(part, m.phi1[part])


@wp.func
def level_phi1(m: MapArrays, d: int, k: int) -> int:
    """phi1 on level k."""
    return last_part(m, d, k)[1]


@wp.func
def level_phi2(m: MapArrays, d: int, k: int) -> int:
    return m.phi2[last_part(m, d, k)[0]]


@wp.func
def level_phi3(m: MapArrays, d: int, k: int) -> int:
    return m.phi3[last_part(m, d, k)[0]]


@wp.func
def edge_start(m: MapArrays, d: int) -> int:
    """The dart to start from when going around the edge of d by phi3(phi2): at the border if there is one, else d."""
    x = int(d)
    while m.phi3[x] >= 0:
        x = m.phi2[m.phi3[x]]
        if x == d:
            break
    return x


@wp.func
def face_level(m: MapArrays, d: int) -> int:
    """The level of a face: its darts up to there are its own corners, later ones were set into its edges."""
    k = int(-1)
    corners = int(0)
    while corners < 3:
        k += 1
        corners = 0
        x = int(m.phi1[d])
        if level(m, d) <= k:
            corners = 1
        while x != d:
            if level(m, x) <= k:
                corners += 1
            x = m.phi1[x]
    return k


@wp.func
def assign_cell(m: MapArrays, start: int, c: int):
    """Make every dart of the face (2-maps) or volume (3-maps) of `start` belong to leaf c, which none does yet."""
    m.anchor[c] = start
    m.cell[start] = c
    m.link[start] = -1
    m.back[start] = -1
    head = int(start)
    tail = int(start)
    while head >= 0:
        for turn in range(m.dimension - 1):
            x = int(m.phi1[head])
            if turn == 1:
                x = m.phi2[head]
            if m.cell[x] != c:
                m.cell[x] = c
                m.link[x] = -1
                m.back[x] = tail
                m.link[tail] = x
                tail = x
        head = m.link[head]
    m.centre[c] = corner_mean(m, c)


@wp.func
def corner_mean(m: MapArrays, c: int) -> wp.vec3d:
    """The mean of the corners of leaf c, without the vertices that finer neighbours set into its edges and faces."""
    total = wp.vec3d()
    corners = int(0)
    d = int(m.anchor[c])
    while d >= 0:
        if level(m, d) <= m.cell_level[c]:
            total += m.position[m.origin[d]]
            corners += 1
        d = m.link[d]
    return total / wp.float64(corners)

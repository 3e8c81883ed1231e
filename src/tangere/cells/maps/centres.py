"""Centres of faces and cells: what the dart simplices are hung on.

Question: which point of a cell, and of a face, do its simplices share?
Method:   a face is a fan of triangles around its centre, a cell the union of the simplices (cell centre, face centre,
          edge) of its darts. Centres are means of own corners, so that a vertex set in by a finer neighbour moves
          nothing; where the mean does not see the whole cell, `visibility` looks for a point that does.
Sound:    both sides of a face get the same bits.
Known as: face and visibility centres of BC cells (Pitiot 2015, section 7.2).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays, level
from tangere.cells.maps.orbits import corner_mean, face_level
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


def compute_centres(m: MapArrays, device: wp.Device) -> None:
    """Compute all centres of faces and leaf cells from the vertices."""
    if m.dimension == 3:
        launch(_face_centres, len(m.phi1), [m], device=device)
    launch(_cell_centres, len(m.cell_level), [m], device=device)


@wp.kernel
def _face_centres(first: int, m: MapArrays):
    d = first + wp.tid()
    if d >= m.counts[0] or m.tag[d] < 0:
        return
    # Both sides start the sum at the same dart: the smallest of the two faces.
    start = _smallest(m, d)
    other = int(m.phi3[d])
    if other >= 0:
        start = wp.min(start, _smallest(m, other))
    own = face_level(m, start)
    total = wp.vec3d()
    corners = int(0)
    x = int(start)
    turning = bool(True)
    while turning:
        if level(m, x) <= own:
            total += m.position[m.origin[x]]
            corners += 1
        x = m.phi1[x]
        turning = x != start
    m.face_centre[d] = total / wp.float64(corners)


@wp.func
def _smallest(m: MapArrays, d: int) -> int:
    least = int(d)
    x = int(m.phi1[d])
    while x != d:
        least = wp.min(least, x)
        x = m.phi1[x]
    return least


@wp.kernel
def _cell_centres(first: int, m: MapArrays):
    c = first + wp.tid()
    if c >= m.counts[4] or m.cell_level[c] < 0 or m.first_child[c] >= 0:
        return
    m.centre[c] = corner_mean(m, c)

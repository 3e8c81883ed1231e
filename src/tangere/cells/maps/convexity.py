"""Whether all cells of a map are convex, or a flat map is as a whole: then a segment between two points stays inside.

Question: can a segment with both ends in a cell, or in the map, leave it?
Method:   a closed surface of facets that bends inward nowhere bounds a convex cell: every facet's neighbours are on or
          below its plane. In the plane: a border that never turns right, and turns around once.
Sound:    as far as rounding can tell; flat faces and straight edges count as convex.
Known as: reflex vertices and edges; the single-cell shortcut of Pitiot 2015, sections 5.4 and 7.3.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Relative to the product of the lengths involved: flat faces and straight edges count as convex.
_ROUNDING = wp.constant(wp.float64(1.0e-12))


def all_convex(map) -> bool:
    """Whether every leaf of a planar map or a 3-map is convex; surfaces in space are not."""
    if map.is_surface:
        return False
    bent = wp.zeros(1, dtype=wp.int32, device=map.device)
    launch(_find_reflex, len(map.arrays.tag), [map.arrays], [bent], device=map.device, grain=8192)
    return int(bent.numpy()[0]) == 0


def has_convex_border(map) -> bool:
    """Whether a straight way between two points of a flat map never leaves it: one border, which bends inward nowhere.

    A map with a hole, a bay or several pieces is not.
    """
    m = map.arrays
    phi1, phi2, origin, position = (x.numpy() for x in (m.phi1, m.phi2, m.origin, m.position))
    darts = map.darts[phi2[map.darts] < 0]
    following = phi1[darts]
    while (inner := phi2[following] >= 0).any():
        following = np.where(inner, phi1[phi2[following]], following)
    into, out = (position[origin[phi1[d]], :2] - position[origin[d], :2] for d in (darts, following))
    turn, ahead = into[:, 0] * out[:, 1] - into[:, 1] * out[:, 0], (into * out).sum(axis=1)
    if (turn < -float(_ROUNDING) * np.linalg.norm(into, axis=1) * np.linalg.norm(out, axis=1)).any():
        return False
    return round(float(np.arctan2(turn, ahead).sum()) / (2.0 * np.pi)) == 1


@wp.func
def _above(normal: wp.vec3d, way: wp.vec3d) -> bool:
    return wp.dot(normal, way) > _ROUNDING * wp.length(normal) * wp.length(way)


@wp.func
def is_reflex(m: MapArrays, d: int) -> bool:
    """Whether the cell of a live dart turns inwards there."""
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    before = m.position[m.origin[m.phi_1[d]]]
    inward = bool(False)
    if m.dimension == 2:
        into = s - before
        out = e - s
        turn = into[0] * out[1] - into[1] * out[0]
        inward = turn < -_ROUNDING * wp.length(into) * wp.length(out)
    else:
        f = m.face_centre[d]
        normal = wp.cross(s - f, e - f)
        inward = _above(normal, m.face_centre[m.phi2[d]] - f) or _above(normal, before - f)
    return inward


@wp.kernel
def _find_reflex(first: int, m: MapArrays, bent: wp.array[int]):
    d = first + wp.tid()
    if d < m.counts[0] and m.tag[d] >= 0:
        if is_reflex(m, d):
            bent[0] = 1  # whoever writes here writes the same

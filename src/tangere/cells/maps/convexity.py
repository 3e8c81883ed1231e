"""Whether all cells are convex: then a segment with both ends in a cell does not leave it.

A closed surface of facets that bends inward nowhere bounds a convex cell: every facet's neighbours are on or below its
plane, as far as rounding can tell. Spec: specs/pitiot-multiresolution-interactions 2.8, 2.12.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.runtime import SOUND, launch

__all__ = ["all_convex", "is_bent"]

wp.set_module_options(SOUND)

#: Relative to the product of the lengths involved: flat faces and straight edges count as convex.
_ROUNDING = wp.constant(wp.float64(1.0e-12))


def all_convex(map) -> bool:
    """Whether every leaf of a planar map or a 3-map is convex; surfaces in space are not."""
    if map.is_surface:
        return False
    bent = wp.zeros(1, dtype=wp.int32, device=map.device)
    launch(_bent, len(map.arrays.tag), [map.arrays], [bent], device=map.device, grain=8192)
    return int(bent.numpy()[0]) == 0


@wp.func
def _above(normal: wp.vec3d, way: wp.vec3d) -> bool:
    return wp.dot(normal, way) > _ROUNDING * wp.length(normal) * wp.length(way)


@wp.func
def is_bent(m: MapArrays, d: int) -> bool:
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
def _bent(first: int, m: MapArrays, bent: wp.array[int]):
    d = first + wp.tid()
    if d < m.counts[0] and m.tag[d] >= 0:
        if is_bent(m, d):
            bent[0] = 1  # whoever writes here writes the same

"""Whether all cells are convex: then a segment with both ends in a cell does not leave it.

A closed surface of facets that bends inward nowhere bounds a convex cell: every facet's neighbours are on or below its
plane, as far as rounding can tell. Spec: specs/pitiot-multiresolution-interactions 2.8, 2.12.
"""

from __future__ import annotations

import numpy as np

__all__ = ["all_convex"]

#: Relative to the product of the lengths involved: flat faces and straight edges count as convex.
_ROUNDING = 1e-12


def all_convex(map) -> bool:
    """Whether every leaf of a planar map or a 3-map is convex; surfaces in space are not."""
    darts = map.darts
    phi1, phi_1, origin = (map.numpy(name) for name in ("phi1", "phi_1", "origin"))
    position = map.positions
    s, e, before = position[origin[darts]], position[origin[phi1[darts]]], position[origin[phi_1[darts]]]
    if map.dimension == 2:
        into, out = s - before, e - s
        turn = into[:, 0] * out[:, 1] - into[:, 1] * out[:, 0]
        scale = np.linalg.norm(into, axis=1) * np.linalg.norm(out, axis=1)
        return bool(map.flat and (turn >= -_ROUNDING * scale).all())
    centre, phi2 = map.numpy("face_centre"), map.numpy("phi2")
    f = centre[darts]
    normal = np.cross(s - f, e - f)
    for other in (centre[phi2[darts]], before):
        above = np.einsum("ij,ij->i", normal, other - f)
        scale = np.linalg.norm(normal, axis=1) * np.linalg.norm(other - f, axis=1)
        if (above > _ROUNDING * scale).any():
            return False
    return True

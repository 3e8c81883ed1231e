"""Broad phase by trees over the faces of each mesh: built once per topology, fitted every time (`bvh.lbvh`)."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.deforming.bvh_pairs import BvhSide, keep_all, pairs
from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.runtime import SOUND, concatenated, launch

wp.set_module_options(SOUND)


def tree_pairs_of(surfaces: Surfaces, distance: float, jobs: np.ndarray) -> wp.array:
    """All pairs (i, j), i < j, of triangles of compared bodies whose boxes overlap, in any order.

    Args:
        distance: boxes are grown by half of it [m].
        jobs: (k, 2) meshes to compare; a mesh with itself is (a, a).
    """
    device, layout = surfaces.device, surfaces.layout
    face_bases = layout.face_base.tolist()
    sides = [BvhSide(fit.body.faces, fit.faces, fit.body.base) for fit in surfaces.fitted(distance)]
    parts = []
    for a, b in jobs.tolist():
        found = pairs(keep_all, sides[a], sides[b], surfaces.positions, surfaces.positions, until=0.0)
        inputs = [sides[a].tree.order, face_bases[a], sides[b].tree.order, face_bases[b]]
        launch(_numbers, len(found), inputs, [found], device=device)
        parts.append(found)
    return concatenated(parts, wp.vec2i, device)


@wp.kernel
def _numbers(
    first: int, order_a: wp.array[int], base_a: int, order_b: wp.array[int], base_b: int, found: wp.array[wp.vec2i]
):
    k = first + wp.tid()
    i = order_a[found[k][0]] + base_a
    j = order_b[found[k][1]] + base_b
    found[k] = wp.vec2i(wp.min(i, j), wp.max(i, j))

"""How many pairs of features the last stage compares, and how many of them have boxes that are apart: table 4.3."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from tangere.broad_phase.triangles import Surfaces
from tangere.bvh.lbvh import boxes_meet
from tangere.query.proximity.representative_triangles import (
    TriangleFeatures,
    edge_box,
    face_box,
    following,
    triangle_features,
)
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class Tests:
    """How much stage 7 does for a list of pairs of triangles."""

    primitive_pairs: int  #: pairs of owned features
    removed: int  #: of these, how many have boxes that are apart


def count_tests(surfaces: Surfaces, pairs: wp.array, distance: float) -> Tests:
    """What `near_features` compares: the numbers of table 4.3 of the document."""
    counts = wp.zeros(len(pairs), dtype=wp.vec2i, device=surfaces.device)
    inputs = [pairs, triangle_features(surfaces, distance, True)]
    launch(_count_tests, len(pairs), inputs, [counts], device=surfaces.device)
    total = counts.numpy().reshape(-1, 2).sum(axis=0)
    return Tests(int(total[0]), int(total[1]))


@wp.kernel
def _count_tests(first: int, pairs: wp.array[wp.vec2i], owned: TriangleFeatures, counts: wp.array[wp.vec2i]):
    k = first + wp.tid()
    tested = int(0)
    apart = int(0)
    for turn in range(2):
        s = pairs[k][turn]
        t = pairs[k][1 - turn]
        for c in range(3):
            if ((owned.owns[s] >> c) & 1) == 1:
                tested += 1
                if not boxes_meet(owned.boxes[owned.faces[s, c]], face_box(t, owned.faces, owned.boxes)):
                    apart += 1
    s = pairs[k][0]
    t = pairs[k][1]
    for c in range(3):
        for d in range(3):
            if ((owned.owns[s] >> (3 + c)) & 1) == 1 and ((owned.owns[t] >> (3 + d)) & 1) == 1:
                tested += 1
                one = edge_box(owned.faces[s, c], owned.faces[s, following(c)], owned.boxes)
                if not boxes_meet(one, edge_box(owned.faces[t, d], owned.faces[t, following(d)], owned.boxes)):
                    apart += 1
    counts[k] = wp.vec2i(tested, apart)

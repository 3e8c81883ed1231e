"""The features of both sides of a search, as kernels see them, and whether two of them are near."""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.broad_phase.triangles import Layout
from tangere.geometry.closest_points import pair_near
from tangere.query.proximity.pair_keys import number_bits
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class SearchedFeatures:
    """Vertices among faces, or edges among edges."""

    items_a: wp.array2d[int]  # vertices of each feature
    numbers_a: wp.array[int]  # of the features in the scene
    positions_a: wp.array[wp.vec3d]  # of the vertices that items name [m]
    items_b: wp.array2d[int]
    numbers_b: wp.array[int]
    positions_b: wp.array[wp.vec3d]
    vertex_body: wp.array[int]
    face_body: wp.array[int]
    distance: wp.float64  # below which features are near [m]
    bits: wp.int64  # of the number of a feature


def searched_features(
    layout: Layout, a: tuple[wp.array, wp.array, wp.array], b: tuple[wp.array, wp.array, wp.array], distance: float
) -> SearchedFeatures:
    """Items, numbers and positions of two sides, with what a scene knows of its features."""
    pairs = SearchedFeatures()
    pairs.items_a, pairs.numbers_a, pairs.positions_a = a
    pairs.items_b, pairs.numbers_b, pairs.positions_b = b
    pairs.vertex_body, pairs.face_body = layout.vertex_body, layout.body
    pairs.distance, pairs.bits = distance, number_bits(layout)
    return pairs


@cache
def features_near(width_a: int) -> wp.Function:
    """The Warp function that tests two features: vertex and face (1), or two edges (2)."""
    is_near = pair_near(width_a)

    @wp.func
    def are_near(i: int, j: int, pairs: SearchedFeatures) -> bool:
        """Whether item i of one side is near item j of the other; of two edges the smaller number goes first."""
        swap = pairs.numbers_b[j] < pairs.numbers_a[i]
        return is_near(pairs.items_a, i, pairs.positions_a, pairs.items_b, j, pairs.positions_b, swap, pairs.distance)

    return are_near

"""Boxes made of positions, for CPUs: all six codes of a box at once.

Boxes of clusters are made straight from the positions a caller gives, each of their vertices looked at once: to make
boxes of vertices first would be one more meeting of all threads, and they would fetch each other's. Boxes of nodes are
made of those below. Steps and roundings are those of `bvh.lbvh.moving_aabb`.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.bvh.lbvh import LARGEST, LERP_ERROR, ROUND_OUT, ROUND_OUT_TINY, UNDERFLOW, Lanes
from tangere.bvh.wide.layout import EMPTY
from tangere.bvh.wide.records import AabbRecord, FitFrame
from tangere.geometry.simd import ROWS


def _literal(constant: Any) -> str:
    """A number as the compiler reads it, to the last bit."""
    return float(constant).hex()


_CODES = f"""
    typedef double Point __attribute__((ext_vector_type(4), aligned(8)));
    typedef double Numbers __attribute__((ext_vector_type(8)));
    typedef float Floats __attribute__((ext_vector_type(8)));
    // `bvh.lbvh.code_below`, of eight numbers.
    auto codes_below = [](Numbers x) -> Row {{
        const Numbers largest = (Numbers){_literal(LARGEST)};
        const Floats y = __builtin_convertvector(x < -largest ? -largest : x > largest ? largest : x, Floats);
        const Floats z = y - __builtin_elementwise_abs(y) * {_literal(ROUND_OUT)}f - {_literal(ROUND_OUT_TINY)}f;
        const Row code = __builtin_bit_cast(Row, z);
        return (code < 0 ? -(code & 0x7FFFFFFF) : code) >> 1;
    }};
    // Codes below coordinates, or negated ones, by the margin and by what these steps may be wrong.
    auto grown = [&](Numbers p, Numbers from) -> Row {{
        const double margin = instant.data[0].margin;
        const Numbers sizes = __builtin_elementwise_abs(p) + __builtin_elementwise_abs(from) + margin;
        const Numbers room = {_literal(LERP_ERROR)} * sizes + margin + {_literal(UNDERFLOW)};
        return codes_below((p - from - room) * instant.data[0].scale);
    }};
    const auto& origin = instant.data[0].origin;
"""


@wp.func_native(
    ROWS
    + _CODES
    + """
    const double* points = (const double*)instant.data[0].positions;
    const Numbers from = {origin[0], origin[1], origin[2], -origin[0], -origin[1], -origin[2], 0.0, 0.0};
    const bool topped = levels.shape[0] > 2;
    for (int lane = 0; lane < 8 && 8 * group + lane < cluster_boxes.shape[0]; ++lane) {
        const int cluster = 8 * group + lane;
        Point lower = (Point)__builtin_inf(), upper = -lower;
        for (int k = begins.data[cluster]; k < begins.data[cluster + 1]; ++k) {
            const double* at = points + 3LL * vertices.data[k];
            const Point p = {at[0], at[1], at[2], at[2]};
            lower = p < lower ? p : lower;
            upper = p > upper ? p : upper;
        }
        const Row box = grown(Numbers{lower[0], lower[1], lower[2], -upper[0], -upper[1], -upper[2], 0.0, 0.0}, from);
        *(Row*)&cluster_boxes.data[cluster] = box;
        if (topped)
            for (int r = 0; r < 6; ++r)
                ((int*)&rows.data[6 * (levels.data[1] + group)])[8 * r + lane] = box[r];
    }
"""
)
def fit_clusters(
    group: int,
    instant: wp.array[FitFrame],
    begins: wp.array[int],
    vertices: wp.array[int],
    levels: wp.array[int],
    cluster_boxes: wp.array[AabbRecord],
    rows: wp.array2d[Lanes],
):
    """The boxes of eight clusters, around their vertices where these are, and the rows of the node above."""
    ...


@wp.func_native(
    ROWS
    + _CODES
    + """
    const Row* corner = (const Row*)&corners.data[corners.shape[1] * cluster];
    Row* own = (Row*)&rows.data[6 * cluster];
    const double* points = (const double*)positions.data;
    const Row none = corner[0] < 0;
    Numbers lower[3], upper[3];
    for (int r = 0; r < 3; ++r)
        upper[r] = -(lower[r] = (Numbers)__builtin_inf());
    for (int c = 0; c < corners.shape[1]; ++c) {
        const Row at = none ? (Row)corner[c][0] : corner[c];
        Numbers p[3];
        for (int k = 0; k < 8; ++k)
            for (int r = 0; r < 3; ++r)
                p[r][k] = points[3LL * at[k] + r];
        for (int r = 0; r < 3; ++r) {
            lower[r] = p[r] < lower[r] ? p[r] : lower[r];
            upper[r] = p[r] > upper[r] ? p[r] : upper[r];
        }
    }
    for (int r = 0; r < 3; ++r) {
        own[r] = none ? (Row)EMPTY : grown(lower[r], (Numbers)origin[r]);
        own[3 + r] = none ? (Row)EMPTY : grown(-upper[r], (Numbers)-origin[r]);
    }
""".replace("EMPTY", str(EMPTY))
)
def fit_rows(
    cluster: int,
    corners: wp.array2d[Lanes],
    positions: wp.array[wp.vec3d],
    instant: wp.array[FitFrame],
    rows: wp.array2d[Lanes],
):
    """The rows of a cluster: the boxes of its items, eight at once."""
    ...


@wp.func_native("""
    const double* at = (const double*)instant.data[0].positions + 3LL * vertex;
    return wp::vec_t<3, wp::float64>(at[0], at[1], at[2]);
""")
def vertex_at(instant: wp.array[FitFrame], vertex: int) -> wp.vec3d:
    """Where a vertex is [m]."""
    ...

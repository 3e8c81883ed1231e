"""The descent of two trees of eights at posed bodies, for CPUs: the next pairs of triangles whose boxes are near.

A box of one body is compared with the eight boxes of a node of the other at once, in float32; the larger of two boxes
is opened. What waits is a stack in scratch memory, so that whoever asks looks at some triangles and then goes on.
Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT
from tangere.geometry.simd import ROWS
from tangere.geometry.simd.oriented_boxes import ORIENTED_BOXES
from tangere.query.proximity.posed.cpu.eights import LANES, OPENS, RADIUS, ROWS_OF_NODE, EightTables

#: Pairs of triangles to return at once, at least if there are so many, and what one more node may add.
LEAVES = 32
_MORE = 8
#: Pairs of boxes that can wait: seven more at each level of both trees.
_STACK = 7 * (2 * DEPTH_LIMIT) + 2
#: Numbers of a row of scratch memory: how many pairs wait, the pairs of triangles, the pairs that wait.
FIRST_LEAF = wp.constant(2)
STACK_BEGIN = wp.constant(2 + 2 * (LEAVES + _MORE))
SCRATCH = 2 + 2 * (LEAVES + _MORE) + 2 * _STACK

_CODE = f"""
    const int most = {LEAVES}, stack_begin = {int(STACK_BEGIN)}, numbers = {LANES * ROWS_OF_NODE};
    const int radius = {LANES * RADIUS}, opens = {LANES * OPENS};
"""
_CODE += """
    int* state = &scratch.data[(long long)shard * scratch.shape[1]];
    int* leaf = state + 2;
    int* stack = state + stack_begin;
    int waiting = state[0], found = 0;
    const double* t = (const double*)&turn;
    const double* s = (const double*)&shift;
    // Box `at` is lane at % 8 of node at / 8: its first number; the others follow eight apart.
    auto box_at = [&](int at) -> const float* { return &rows.data[(long long)numbers * (at >> 3) + (at & 7)]; };
    while (waiting > 0 && found < most) {
        --waiting;
        const int i = stack[2 * waiting], j = stack[2 * waiting + 1];
        const float* a = box_at(i);
        const float* b = box_at(j);
        const int node_a = *(const int*)(a + opens), node_b = *(const int*)(b + opens);
        if (node_a < 0 && node_b < 0) {
            leaf[2 * found] = -1 - node_a;
            leaf[2 * found + 1] = -1 - node_b;
            ++found;
            continue;
        }
        const bool open_a = node_b < 0 || (node_a >= 0 && a[radius] >= b[radius]);
        const float* box = open_a ? b : a;
        float c[3], m[3][3], h[3];  // the other box in the frame of the one that is opened
        double p[3];
        for (int r = 0; r < 3; ++r) {
            p[r] = open_a ? (double)box[8 * r] : (double)box[8 * r] - s[r];
            h[r] = box[8 * (3 + r)];
        }
        for (int r = 0; r < 3; ++r) {
            const double x = open_a ? t[3 * r] : t[r], y = open_a ? t[3 * r + 1] : t[3 + r];
            const double z = open_a ? t[3 * r + 2] : t[6 + r];
            c[r] = (float)(x * p[0] + y * p[1] + z * p[2] + (open_a ? s[r] : 0.0));
            for (int k = 0; k < 3; ++k) {
                const float* axis = box + 8 * (6 + 3 * k);
                m[k][r] = (float)x * axis[0] + (float)y * axis[8] + (float)z * axis[16];
            }
        }
        const int opened = open_a ? node_a : node_b;
        int mask = oriented_meeting((const Lane*)&rows.data[(long long)numbers * opened], c, m, h, slack);
        for (; mask; mask &= mask - 1) {
            const int child = 8 * opened + __builtin_ctz(mask);
            stack[2 * waiting] = open_a ? child : i;
            stack[2 * waiting + 1] = open_a ? j : child;
            ++waiting;
        }
    }
    state[0] = waiting;
    return found;
"""


@wp.func_native(ROWS + ORIENTED_BOXES + _CODE)
def next_leaves(
    rows: wp.array[wp.float32],
    turn: wp.mat33d,
    shift: wp.vec3d,
    slack: wp.float32,
    shard: int,
    scratch: wp.array2d[int],
) -> int:
    """How many pairs of triangles come next; they stand in the shard's row of `scratch`, from `FIRST_LEAF` on.

    Args:
        rows: of `EightTables`.
        turn, shift: where b is in the frame of a.
        slack: the distance that counts, and what float32 may be off.
    """
    ...


@wp.func
def begin_descent(eights: EightTables, shape_a: int, shape_b: int, shard: int, scratch: wp.array2d[int]):
    """Let the roots of the trees of two shapes wait."""
    scratch[shard, 0] = 1
    scratch[shard, STACK_BEGIN] = 8 * eights.first[shape_a]
    scratch[shard, STACK_BEGIN + 1] = 8 * eights.first[shape_b]

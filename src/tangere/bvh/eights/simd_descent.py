"""The descent of two trees of eights, for CPUs: the next pairs of triangles whose boxes are near.

A box of one body is compared with the eight boxes of a node of the other at once, in float32; the larger of two boxes
is opened. What waits is a stack in scratch memory, so that whoever asks looks at some triangles and then goes on.
Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.eights.obb_eights import LANES, OPENS, RADIUS, ROWS_OF_NODE, EightTables
from tangere.bvh.obb import DEPTH_LIMIT
from tangere.geometry.simd import ROWS
from tangere.geometry.simd.oriented_boxes import ORIENTED_BOXES

#: Pairs of triangles to return at once, at most.
LEAVES = wp.constant(32)
#: Pairs of boxes that can wait: seven more at each level of both trees.
_STACK = 7 * (2 * DEPTH_LIMIT) + 2
#: Numbers of a row of scratch memory: how many pairs wait, the pairs of triangles, the pairs that wait.
FIRST_LEAF = wp.constant(2)
STACK_BEGIN = wp.constant(2 + 2 * (int(LEAVES)))
SCRATCH = 2 + 2 * (int(LEAVES)) + 2 * _STACK

#: `box_at(rows, at)`: the first number of box `at`, lane at % 8 of node at / 8; the others follow eight apart, what it
#: opens into `opens` numbers behind, its radius `radius` numbers. `place_box(box, open_a, c, m, h)`: centre, axes and
#: half sizes of a box of b in the frame of a (`open_a`), or of a in that of b. `fetch_next(box, open_a, child)`: a pair
#: of that box and a child of the opened one is going to wait, so the node it opens is fetched: it is seldom in a cache.
PLACED_BOX = f"""
    const int numbers = {LANES * ROWS_OF_NODE}, radius = {LANES * RADIUS}, opens = {LANES * OPENS};
"""
PLACED_BOX += """
    typedef float Three[3];
    const double* t = (const double*)&turn;
    const double* s = (const double*)&shift;
    auto box_at = [&](const float* rows, int at) -> const float* {
        return &rows[(long long)numbers * (at >> 3) + (at & 7)];
    };
    auto place_box = [&](const float* box, bool open_a, float* c, Three* m, float* h) {
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
    };
    auto fetch_next = [&](const float* box, bool open_a, const float* child) {
        const int own = *(const int*)(child + opens), other = *(const int*)(box + opens);
        const bool deeper = other < 0 || (own >= 0 && child[radius] >= box[radius]);
        const int next = deeper ? own : other;
        if (next < 0)
            return;
        const float* node = (deeper == open_a ? rows_a.data : rows_b.data) + (long long)numbers * next;
        for (int k = 0; k < numbers; k += 16)
            __builtin_prefetch(node + k);
    };
"""
_CODE = f"""
    const int stack_begin = {int(STACK_BEGIN)};
"""
_CODE += """
    int* state = &scratch.data[(long long)shard * scratch.shape[1]];
    int* leaf = state + 2;
    int* stack = state + stack_begin;
    int waiting = state[0], found = 0;
    while (waiting > 0 && found < most) {
        --waiting;
        const int i = stack[2 * waiting], j = stack[2 * waiting + 1];
        const float* a = box_at(rows_a.data, i);
        const float* b = box_at(rows_b.data, j);
        const int node_a = *(const int*)(a + opens), node_b = *(const int*)(b + opens);
        if (node_a < 0 && node_b < 0) {
            leaf[2 * found] = -1 - node_a;
            leaf[2 * found + 1] = -1 - node_b;
            ++found;
            continue;
        }
        const bool open_a = node_b < 0 || (node_a >= 0 && a[radius] >= b[radius]);
        float c[3], m[3][3], h[3];  // the other box in the frame of the one that is opened
        const float* box = open_a ? b : a;
        place_box(box, open_a, c, m, h);
        const int opened = open_a ? node_a : node_b;
        const float* rows = open_a ? rows_a.data : rows_b.data;
        int mask = oriented_meeting((const Lane*)&rows[(long long)numbers * opened], c, m, h, slack);
        for (; mask; mask &= mask - 1) {
            const int child = 8 * opened + __builtin_ctz(mask);
            fetch_next(box, open_a, box_at(rows, child));
            stack[2 * waiting] = open_a ? child : i;
            stack[2 * waiting + 1] = open_a ? j : child;
            ++waiting;
        }
    }
    state[0] = waiting;
    return found;
"""


@wp.func_native(ROWS + ORIENTED_BOXES + PLACED_BOX + _CODE)
def next_leaves(
    rows_a: wp.array[wp.float32],
    rows_b: wp.array[wp.float32],
    turn: wp.mat33d,
    shift: wp.vec3d,
    slack: wp.float32,
    most: int,
    shard: int,
    scratch: wp.array2d[int],
) -> int:
    """How many pairs of triangles come next; they stand in the shard's row of `scratch`, from `FIRST_LEAF` on.

    Args:
        rows_a, rows_b: of `ObbEights` or `EightTables`.
        turn, shift: where b is in the frame of a.
        slack: the distance that counts, and what float32 may be off.
        most: pairs to return at once, at most `LEAVES`.
    """
    ...


@wp.func
def begin_at(node_a: int, node_b: int, shard: int, scratch: wp.array2d[int]):
    """Let the first boxes of two nodes wait: those of nodes 0 are the roots of `ObbEights`."""
    scratch[shard, 0] = 1
    scratch[shard, STACK_BEGIN] = 8 * node_a
    scratch[shard, STACK_BEGIN + 1] = 8 * node_b


@wp.func
def begin_descent(eights: EightTables, shape_a: int, shape_b: int, shard: int, scratch: wp.array2d[int]):
    """Let the roots of the trees of two shapes wait."""
    begin_at(eights.first[shape_a], eights.first[shape_b], shard, scratch)

"""The descent of two trees of eights for what is nearer than a bound, for CPUs: the next pairs of triangles.

A box of one body is compared with the eight boxes of a node of the other at once, in float32; the larger of two boxes
is opened, and of its children the nearest goes first: by their balls, which tell which is nearer even where boxes
overlap. What waits is a stack in scratch memory with a lower bound of each pair; whoever asks comes back with a smaller
bound, and what has become too far is dropped. Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.eights import PLACED_BOX
from tangere.bvh.obb import DEPTH_LIMIT
from tangere.geometry.simd import ROWS
from tangere.geometry.simd.oriented_boxes import ORIENTED_DISTANCES

#: Pairs of triangles to return at once, at most.
LEAVES = 8
#: Pairs of boxes that can wait: seven more at each level of both trees.
_STACK = 7 * (2 * DEPTH_LIMIT) + 2
#: Numbers of a pair: two of them name it, the third is a float32, its lower bound.
PAIR = wp.constant(3)
#: Numbers of a row of scratch memory: how many pairs wait, the pairs of triangles, the pairs that wait.
FIRST_NEARER = wp.constant(2)
WAITING_BEGIN = wp.constant(2 + 3 * LEAVES)
NEARER_SCRATCH = 2 + 3 * LEAVES + 3 * _STACK

_CODE = f"""
    const int most = {LEAVES}, stack_begin = {int(WAITING_BEGIN)};
"""
_CODE += """
    struct Pair { int i, j, bound; };  // the last is a float32
    int* state = &scratch.data[(long long)row * scratch.shape[1]];
    Pair* leaf = (Pair*)(state + 2);
    Pair* stack = (Pair*)(state + stack_begin);
    int waiting = state[0], found = 0;
    auto float_of = [](int bits) -> float { return __builtin_bit_cast(float, bits); };
    while (waiting > 0 && found < most) {
        --waiting;
        const Pair pair = stack[waiting];
        if (!(float_of(pair.bound) < nearest))
            continue;
        const float* a = box_at(rows_a.data, pair.i);
        const float* b = box_at(rows_b.data, pair.j);
        const int node_a = *(const int*)(a + opens), node_b = *(const int*)(b + opens);
        if (node_a < 0 && node_b < 0) {
            leaf[found] = {-1 - node_a, -1 - node_b, pair.bound};
            ++found;
            continue;
        }
        if (found > 0) {  // triangles first: they may bring the bound down
            ++waiting;
            break;
        }
        const bool open_a = node_b < 0 || (node_a >= 0 && a[radius] >= b[radius]);
        const float* box = open_a ? b : a;
        float c[3], m[3][3], h[3];  // the other box in the frame of the one that is opened
        place_box(box, open_a, c, m, h);
        const int opened = open_a ? node_a : node_b;
        const Lane* lanes = (const Lane*)&(open_a ? rows_a.data : rows_b.data)[(long long)numbers * opened];
        Lane length;
        const Lane bounds = oriented_distances(lanes, c, m, h, slack, length);
        const Lane keys = length - lanes[radius / 8];
        int mask = bits((bounds < (Lane)nearest) & (lanes[3] >= (Lane)0.0f));
        float key[8];
        const int begin = waiting;
        for (; mask; mask &= mask - 1) {
            const int lane = __builtin_ctz(mask), child = 8 * opened + lane;
            const float own = keys[lane];
            fetch_next(box, open_a, (const float*)lanes + lane);
            int at = waiting++ - begin;
            for (; at > 0 && key[at - 1] < own; --at) {  // the nearest lies on top
                key[at] = key[at - 1];
                stack[begin + at] = stack[begin + at - 1];
            }
            key[at] = own;
            const float bound = bounds[lane];
            stack[begin + at] = {
                open_a ? child : pair.i, open_a ? pair.j : child, __builtin_bit_cast(int, bound)};
        }
    }
    state[0] = waiting;
    return found;
"""


@wp.func_native(ROWS + ORIENTED_DISTANCES + PLACED_BOX + _CODE)
def next_nearer(
    rows_a: wp.array[wp.float32],
    rows_b: wp.array[wp.float32],
    turn: wp.mat33d,
    shift: wp.vec3d,
    slack: wp.float32,
    nearest: wp.float32,
    row: int,
    scratch: wp.array2d[int],
) -> int:
    """How many pairs of triangles come next; they stand in a row of `scratch`, from `FIRST_NEARER` on.

    Args:
        rows_a, rows_b: of `ObbEights`.
        turn, shift: where b is in the frame of a.
        slack: what float32 may be off.
        nearest: what is not nearer does not count.
    """
    ...


@wp.func
def begin_nearer(row: int, scratch: wp.array2d[int]):
    """Let the roots of both trees wait."""
    scratch[row, 0] = 1
    for k in range(PAIR):
        scratch[row, WAITING_BEGIN + k] = 0

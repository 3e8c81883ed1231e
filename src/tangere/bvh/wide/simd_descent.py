"""Which clusters of a tree of eights meet a box, for CPUs: all at once, or one after the other.

`meeting_clusters` goes level by level and lists every cluster of a `WideBvh`: whoever searches for features shares out
pairs of clusters evenly afterwards. `next_cluster` goes depth first through a `MovingWideBvh` and remembers for each
level where it is and which children are left, in a few numbers of its own, so that whoever asks can stop when the
nearest feature is near enough, and go on. Nothing branches on which of eight boxes meet. Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox
from tangere.bvh.wide.records import AabbRecord
from tangere.geometry.simd import MOVING_BOXES, ROWS, STATIC_BOXES

#: Numbers of a descent, the last ones of a row of scratch memory: a level, a node and a mask for each of up to ten
#: levels, and how many barred groups have been passed.
DESCENT_STATE = 24


@wp.func_native(
    ROWS
    + STATIC_BOXES
    + """
    int* visited = &scratch.data[(long long)shard * scratch.shape[1] + before_visited];
    const int* box = (const int*)&boxes.data[i];
    int begin = 0, end = 1;
    visited[0] = 0;
    for (int level = levels.shape[0] - 2; level > 0; --level) {
        const Row* row = (const Row*)&rows.data[6 * levels.data[level]];
        const int least = from_ >> (3 * (level - 1));
        int next = end;
        for (int at = begin; at < end; ++at) {
            const int node = visited[at];
            const int before = least > 8 * node ? least - 8 * node : 0;
            const int mask = meeting(box, row + 6 * node) & (255 << before);
            *(Row*)&visited[next] = chosen(mask) + 8 * node;
            next += __builtin_popcount(mask);
        }
        begin = end;
        end = next;
    }
    return wp::vec_t<2, wp::int32>(begin, end);
"""
)
def meeting_clusters(
    boxes: wp.array[AabbRecord],
    i: int,
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    from_: int,
    lanes: wp.array[wp.uint64],
    before_visited: int,
    shard: int,
    scratch: wp.array2d[int],
) -> wp.vec2i:
    """The clusters of a tree, none before `from_`, whose box meets box i: where they begin and end among the visited.

    Visited nodes are in the row `shard` of the scratch memory, after `before_visited` other numbers.
    """
    ...


_STATE = f"""
    int* state = &scratch.data[scratch.shape[1] * (row + 1) - {DESCENT_STATE}];
    int& passed = state[22];
"""
_CONES = """
    typedef double Wide __attribute__((ext_vector_type(8), aligned(8)));
    auto bits_of = [](auto truth) -> int {
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits));
    };
    auto facing_along = [&](int group) -> int {
        const double* axis = (const double*)&cone;
        const double cosine = axis[3];
        if (!(cosine > 0.0))
            return 0;
        const double sine = __builtin_sqrt(1.0 - cosine * cosine < 0.0 ? 0.0 : 1.0 - cosine * cosine);
        const Wide* other = (const Wide*)&cones.data[40 * group];
        return bits_of(
            (other[3] > 0.0) & (cosine * other[3] > sine * other[4])
            & (axis[0] * other[0] + axis[1] * other[1] + axis[2] * other[2] > sine * other[3] + cosine * other[4]));
    };
"""
_ACCEPTED = (
    ROWS
    + MOVING_BOXES
    + _CONES
    + """
    auto left_out = [&](int group) -> int {
        int mask = 0;
        for (; passed < barred_end && barred.data[passed].c[0] <= group; ++passed)
            if (barred.data[passed].c[0] == group)
                mask = barred.data[passed].c[1];
        return mask | facing_along(group);
    };
    auto meeting = [&](int level, int node) -> int {
        int mask = boxes_meeting((const int*)&boxes.data[i], levels.data[level] + node);
        if (only_changed)
            mask &= changed.data[levels.data[level] + node];
        return level == 0 && mask ? mask & ~left_out(node) : mask;
    };
    const int top = levels.shape[0] - 2;
"""
)


@wp.func_native(
    _STATE
    + _ACCEPTED
    + """
    passed = barred_begin;
    state[0] = top;
    state[1 + 2 * top] = 0;
    state[2 + 2 * top] = meeting(top, 0);
"""
)
def begin_descent(
    boxes: wp.array[MovingBox],
    i: int,
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    barred_begin: int,
    barred_end: int,
    barred: wp.array[wp.vec2i],
    cone: wp.vec4d,
    cones: wp.array2d[wp.float64],
    only_changed: int,
    changed: wp.array[wp.uint8],
    row: int,
    scratch: wp.array2d[int],
):
    """Begin a descent to the clusters that meet box i.

    Clusters that are barred, given as groups of eight and masks, and those whose normals all face along a cone, are
    left out; with `only_changed` all without a change below as well, by masks of the children of each node of eight.
    """
    ...


@wp.func_native(
    _STATE
    + _ACCEPTED
    + """
    for (int level = state[0]; level <= top;) {
        int* at = state + 1 + 2 * level;
        if (at[1] == 0) {
            ++level;
            continue;
        }
        const int child = 8 * at[0] + __builtin_ctz(at[1]);
        at[1] &= at[1] - 1;
        if (level == 0) {
            state[0] = 0;
            return child;
        }
        --level;
        at[-2] = child;
        at[-1] = meeting(level, child);
    }
    return -1;
"""
)
def next_cluster(
    boxes: wp.array[MovingBox],
    i: int,
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    barred_begin: int,
    barred_end: int,
    barred: wp.array[wp.vec2i],
    cone: wp.vec4d,
    cones: wp.array2d[wp.float64],
    only_changed: int,
    changed: wp.array[wp.uint8],
    row: int,
    scratch: wp.array2d[int],
) -> int:
    """The next cluster that meets box i, rising; -1 after the last. The rest is as it was when the descent began."""
    ...


@wp.func_native(
    ROWS
    + MOVING_BOXES
    + _CONES
    + """
    unsigned found = 0;
    for (int group = begin / 8; 8 * group < end; ++group) {
        const unsigned mask = boxes_meeting((const int*)&boxes.data[i], group) & ~facing_along(group);
        const int before = 8 * group - begin;
        found |= before < 0 ? mask >> -before : mask << before;
    }
    return found & ((2u << (end - begin - 1)) - 1);
"""
)
def meeting_of(
    boxes: wp.array[MovingBox],
    i: int,
    rows: wp.array2d[Lanes],
    begin: int,
    end: int,
    cone: wp.vec4d,
    cones: wp.array2d[wp.float64],
) -> int:
    """Which clusters from `begin` to `end`, at most 32, meet box i and do not face along a cone, as a mask."""
    ...

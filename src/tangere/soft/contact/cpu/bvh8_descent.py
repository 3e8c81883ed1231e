"""Eight boxes of a tree at a time, for CPUs: which clusters of faces meet a box, one after the other.

Above the clusters of a tree stand nodes of eight, by order alone; a row holds one number of the boxes of eight
children. A descent remembers for each level where it is and which children are left, in a few numbers of its own, so
that whoever asks for the next cluster can stop and go on. Nothing here is for CUDA.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LANES, Lanes, LinearTree, MovingBox
from tangere.runtime import SOUND, device_of, launch
from tangere.soft.contact.cpu.simd_candidates import PENDING

wp.set_module_options(SOUND)

__all__ = ["CONE_ROWS", "STATE", "Bvh8OfClusters", "begin_descent", "cone_rows", "meeting_of", "next_cluster"]

#: Numbers of a list of candidates and a descent: a level, a node and a mask for each of up to ten levels, and a place.
STATE = 2 * int(PENDING) + 24
#: Numbers of the cones of eight clusters: axis, cosine and sine of each.
CONE_ROWS = 40


class Bvh8OfClusters:
    """Nodes of eight above the clusters of a tree."""

    def __init__(self, tree: LinearTree) -> None:
        self._tree, device = tree, tree.items.device
        sizes = [-(-len(tree.clusters) // 8)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // 8))
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        self._groups = sizes[0]
        self.levels = wp.array(ends, dtype=wp.int32, device=device)  #: where the nodes of each level begin, from below
        self.rows = wp.empty((int(ends[-1]), 12), dtype=Lanes, device=device)
        self.news = wp.full(int(ends[-1]), 255, dtype=wp.uint8, device=device)  #: children with something new below

    def fit(self, nodes: wp.array, news: wp.array) -> Bvh8OfClusters:
        """Bring the rows up to date with the boxes of the tree's nodes, where masks of children tell of news below."""
        self.news, device = news, nodes.device
        launch(_fit_groups, self._groups, [nodes, self._tree.clusters, news], [self.rows], device=device, grain=512)
        launch(_fit_above, 1, [self.levels, news], [self.rows], device=device)
        return self


def cone_rows(cones: wp.array) -> wp.array:
    """(groups, 40) float64: axes, cosines and sines of the cones of eight clusters (`looking`) side by side."""
    device = device_of(cones)
    rows = wp.empty((-(-len(cones) // 8), CONE_ROWS), dtype=wp.float64, device=device)
    launch(_lay_cones, len(rows), [cones], [rows], device=device, grain=512)
    return rows


_STATE = f"""
    int* state = &scratch.data[scratch.shape[1] * row + {2 * int(PENDING)}];
    int& passed = state[22];
"""
_EIGHT = """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef double Wide __attribute__((ext_vector_type(8), aligned(8)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    auto bits_of = [](auto truth) -> int {
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits));
    };
    auto boxes_meeting = [&](const int* box, int node) -> int {
        const Row* r = (const Row*)&rows.data[12 * node];
        Row apart = (Row)(-1);
        for (int k = 0; k < 3; ++k) {
            const Row below = __builtin_elementwise_min(r[3 + k] + box[k], r[9 + k] + box[6 + k]);
            const Row above = __builtin_elementwise_min(r[k] + box[3 + k], r[6 + k] + box[9 + k]);
            apart = __builtin_elementwise_max(apart, __builtin_elementwise_max(below, above));
        }
        return bits_of(apart <= 0);
    };
    auto looking_along = [&](int group) -> int {
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
_MEETING = (
    _EIGHT
    + """
    auto left_out = [&](int group) -> int {
        int mask = 0;
        for (; passed < barred_end && barred.data[passed].c[0] <= group; ++passed)
            if (barred.data[passed].c[0] == group)
                mask = barred.data[passed].c[1];
        return mask | looking_along(group);
    };
    auto meeting = [&](int level, int node) -> int {
        int mask = boxes_meeting((const int*)&boxes.data[i], levels.data[level] + node);
        if (only_news)
            mask &= news.data[levels.data[level] + node];
        return level == 0 && mask ? mask & ~left_out(node) : mask;
    };
    const int top = levels.shape[0] - 2;
"""
)


@wp.func_native(
    _STATE
    + _MEETING
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
    only_news: int,
    news: wp.array[wp.uint8],
    row: int,
    scratch: wp.array2d[int],
):
    """Before the first cluster that meets box i is asked for.

    Clusters that are barred, given as groups of eight and masks, and those that look along a cone, are left out; if
    asked for, all that are not new as well, by masks of the children of each node of eight.
    """
    ...


@wp.func_native(
    _STATE
    + _MEETING
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
    only_news: int,
    news: wp.array[wp.uint8],
    row: int,
    scratch: wp.array2d[int],
) -> int:
    """The next cluster that meets box i, rising; -1 after the last. The rest is as it was when the descent began."""
    ...


@wp.func_native(
    _EIGHT
    + """
    unsigned found = 0;
    for (int group = begin / 8; 8 * group < end; ++group) {
        const unsigned mask = boxes_meeting((const int*)&boxes.data[i], group) & ~looking_along(group);
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
    """Which clusters from `begin` to `end`, at most 32, meet box i and do not look along a cone, as a mask."""
    ...


@wp.func_native(
    """
    for (int lane = 0; lane < 8; ++lane) {
        const int k = 8 * group + lane;
        for (int r = 0; r < 12; ++r)
            ((int*)&rows.data[12 * group + r])[lane] =
                k < clusters.shape[0] ? ((const int*)&nodes.data[clusters.data[k]])[r] : (1 << 30) - 1;
    }
"""
)
def lay_group(nodes: wp.array[MovingBox], clusters: wp.array[int], group: int, rows: wp.array2d[Lanes]):
    """The boxes of eight clusters, or of nothing, side by side."""
    ...


@wp.kernel
def _lay_cones(first: int, cones: wp.array[wp.vec4d], rows: wp.array2d[wp.float64]):
    """Lanes of no cluster tell nothing."""
    group = first + wp.tid()
    for lane in range(LANES):
        cone = wp.vec4d()
        if LANES * group + lane < cones.shape[0]:
            cone = cones[LANES * group + lane]
        for r in range(4):
            rows[group, LANES * r + lane] = cone[r]
        rows[group, LANES * 4 + lane] = wp.sqrt(wp.max(wp.float64(0.0), wp.float64(1.0) - cone[3] * cone[3]))


@wp.kernel
def _fit_groups(
    first: int,
    nodes: wp.array[MovingBox],
    clusters: wp.array[int],
    news: wp.array[wp.uint8],
    rows: wp.array2d[Lanes],
):
    group = first + wp.tid()
    if news[group] != wp.uint8(0):
        lay_group(nodes, clusters, group, rows)


@wp.kernel
def _fit_above(first: int, levels: wp.array[int], news: wp.array[wp.uint8], rows: wp.array2d[Lanes]):
    """Children before parents (one thread)."""
    for level in range(1, levels.shape[0] - 1):
        for node in range(levels[level], levels[level + 1]):
            for lane in range(LANES):
                if ((int(news[node]) >> lane) & 1) == 1:
                    child = levels[level - 1] + LANES * (node - levels[level]) + lane
                    for r in range(12):
                        least = int(1073741823)
                        if child < levels[level]:
                            least = wp.min(rows[child, r])
                        rows[node, r][lane] = least

"""Near features of pairs of triangles on CPUs: stage 7 of the grid pipeline, eight pairs of features at a time.

What two triangles own goes to a list, vertices with faces in one search and edges with edges in another, and is tested
when there is enough to fill vector units (`candidates`): 20 ns for each, so that comparing their boxes first hardly
pays. The answer is that of `owned`, which goes pair by pair.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.partition.pipeline_surfaces import Layout, Surfaces
from tangere.query.proximity.candidates import candidate_test
from tangere.query.proximity.lanes import SCRATCH, SHARD
from tangere.query.proximity.names import number_bits
from tangere.query.proximity.tree_search import joined
from tangere.runtime import SOUND, collect, shard_ranges

__all__ = ["near_owned"]

#: Pairs of triangles that one index takes.
PAIRS_AT_ONCE = wp.constant(64)
#: So many candidates are tested at once; a pair of triangles has no more than nine.
ENOUGH = wp.constant(256)
#: Indices worth a thread: a hundred microseconds.
GRAIN = 16


def near_owned(surfaces: Surfaces, pairs: wp.array, distance: float) -> wp.array:
    """Names of the pairs of owned features, without a common vertex, that are nearer than `distance` [m].

    Args:
        pairs: (n,) vec2i of triangles.
    """
    layout, indices = surfaces.layout, -(-len(pairs) // PAIRS_AT_ONCE)
    numbers = _numbers(layout)
    shards = len(shard_ranges(indices, GRAIN))
    scratch = wp.empty((shards, SCRATCH), dtype=wp.int32, device=surfaces.device)
    found = []
    for width, one, other in ((2, layout.edges, layout.edges), (1, numbers.reshape((len(numbers), 1)), layout.faces)):
        inputs = [pairs, layout.faces, layout.face_edges, layout.owns]
        inputs += [one, other, numbers, surfaces.positions]
        inputs += [layout.vertex_body, layout.body, distance, wp.int64(number_bits(layout)), scratch]
        expected = 2 * len(pairs) // shards
        found.append(
            collect(
                *(_near_owned(width), indices, inputs, wp.int64),
                **{"device": surfaces.device, "grain": GRAIN, "capacity": expected},
            )
        )
    return joined(found, surfaces.device)


def _numbers(layout: Layout) -> wp.array:
    """(n,) int32: 0, 1, 2, … as many as there are features of any kind; kept."""
    if "numbers" not in layout.cache:
        most = max(len(layout.vertex_body), len(layout.edges), len(layout.faces))
        layout.cache["numbers"] = wp.array(np.arange(most), dtype=wp.int32, device="cpu")
    return layout.cache["numbers"]


#: Which corners of one triangle are those of another: of corner c of the first, a bit for each of the second.
_SAME = """
    const int *a = &faces.data[3 * s], *b = &faces.data[3 * t];
    auto same = [&](int c) -> int { return (a[c] == b[0]) | (a[c] == b[1]) << 1 | (a[c] == b[2]) << 2; };
    int count = pending;
"""


# Candidates are written whether they count or not, and those that do not are written over: no branch waits.
@wp.func_native(
    SHARD
    + _SAME
    + """
    const int mine = owns.data[s] >> 3, yours = owns.data[t] >> 3;
    const int corner[3] = {same(0), same(1), same(2)};
    const int shared[3] = {corner[0] | corner[1], corner[1] | corner[2], corner[2] | corner[0]};
    const int ends[3] = {1 | 2, 2 | 4, 4 | 1};
    #pragma clang loop unroll(full)
    for (int c = 0; c < 3; ++c)
        #pragma clang loop unroll(full)
        for (int d = 0; d < 3; ++d) {
            one[count] = face_edges.data[3 * s + c];
            other[count] = face_edges.data[3 * t + d];
            count += (mine >> c) & (yours >> d) & ((shared[c] & ends[d]) == 0);
        }
    return count;
"""
)
def add_edges(
    s: int,
    t: int,
    faces: wp.array2d[int],
    face_edges: wp.array2d[int],
    owns: wp.array[int],
    pending: int,
    shard: int,
    scratch: wp.array2d[int],
) -> int:
    """How many candidates there are with the edges that two triangles own."""
    ...


@wp.func_native(
    SHARD
    + _SAME
    + """
    #pragma clang loop unroll(full)
    for (int c = 0; c < 3; ++c) {
        one[count] = a[c];
        other[count] = t;
        count += (owns.data[s] >> c) & (same(c) == 0);
    }
    return count;
"""
)
def add_vertices(
    s: int, t: int, faces: wp.array2d[int], owns: wp.array[int], pending: int, shard: int, scratch: wp.array2d[int]
) -> int:
    """The same with the vertices of one and the face of the other."""
    ...


@cache
def _near_owned(width: int) -> wp.Kernel:
    """Vertices with faces (1), or edges with edges (2)."""
    test_candidates = candidate_test(width)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_owned_features(
        first: int,
        shard: int,
        pairs: wp.array[wp.vec2i],
        faces: wp.array2d[int],
        face_edges: wp.array2d[int],
        owns: wp.array[int],
        items_a: wp.array2d[int],
        items_b: wp.array2d[int],
        numbers: wp.array[int],
        positions: wp.array[wp.vec3d],
        vertex_body: wp.array[int],
        face_body: wp.array[int],
        distance: wp.float64,
        bits: wp.int64,
        scratch: wp.array2d[int],
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.int64],
    ):
        begin = PAIRS_AT_ONCE * (first + wp.tid())
        end = wp.min(begin + PAIRS_AT_ONCE, pairs.shape[0])
        pending = int(0)
        for k in range(begin, end):
            s = pairs[k][0]
            t = pairs[k][1]
            if wp.static(width == 2):
                pending = add_edges(s, t, faces, face_edges, owns, pending, shard, scratch)
            else:
                pending = add_vertices(s, t, faces, owns, pending, shard, scratch)
                pending = add_vertices(t, s, faces, owns, pending, shard, scratch)
            least = int(ENOUGH)
            if k == end - 1:
                least = 1
            if pending >= least:
                pending = test_candidates(
                    pending, 1, items_a, numbers, positions, items_b, numbers, positions,
                    vertex_body, face_body, distance, bits, shard, scratch, counts, capacity, out,
                )  # fmt: skip

    return near_owned_features

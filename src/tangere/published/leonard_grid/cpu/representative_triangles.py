"""Near features of pairs of triangles on CPUs: stage 7 of the grid pipeline, eight pairs of features at a time.

A shard keeps a few pairs of triangles. What they own goes to a list, edges with edges first, then vertices with faces,
and is tested when vector units can be filled with it (`candidates`): 20 ns for each, so that comparing their boxes
first hardly pays. The answer is that of `query.proximity.representative_triangles`, which goes pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces
from tangere.published.leonard_grid.cpu.sorted_append import scattered, scattering, sorted_keys
from tangere.query.proximity.cpu.candidates import candidate_test
from tangere.query.proximity.cpu.parallel_sort import KeySegments
from tangere.query.proximity.cpu.simd_boxes import SCRATCH, SHARD
from tangere.query.proximity.searched_features import SearchedFeatures, searched_features
from tangere.runtime import SOUND, shard_ranges

#: Pairs of triangles that are tested together; none has more than nine pairs of edges.
PAIRS_AT_ONCE = wp.constant(128)
#: So many times that many, some 0.2 ms, stay on one thread; of more, so many times are worth one.
FEW, GRAIN = 20, 6
#: So many pairs of triangles are tested eight features at a time, which takes 100 us to begin with.
MANY = 512

_test_edges, _test_faces = candidate_test(2), candidate_test(1)


def near_owned(surfaces: Surfaces, pairs: wp.array, distance: float) -> wp.array:
    """Keys of the pairs of owned features, without a common vertex, that are nearer than `distance` [m].

    Args:
        pairs: (n,) vec2i of triangles.
    """
    blocks = -(-len(pairs) // PAIRS_AT_ONCE)
    grain = GRAIN if blocks > FEW else FEW
    shards = len(shard_ranges(blocks, grain))
    with owned_features(surfaces, distance, shards) as owned:
        inputs = [pairs, blocks, scattering(blocks, shards), owned]
        return sorted_keys(_near_owned, blocks, inputs, surfaces.layout, grain=grain)


@contextmanager
def owned_features(surfaces: Surfaces, distance: float, shards: int) -> Iterator[OwnedFeatures]:
    """What a kernel that calls `test_buffered` takes.

    Scratch memory of shards stays with the topologies; while one caller has it another makes its own.
    """
    layout, numbers, positions = surfaces.layout, _numbers(surfaces.layout), surfaces.positions
    owned = OwnedFeatures()
    owned.faces, owned.face_edges, owned.owns = layout.faces, layout.face_edges, layout.owns
    edges = (layout.edges, numbers, positions)
    vertices, faces = (numbers.reshape((len(numbers), 1)), numbers, positions), (layout.faces, numbers, positions)
    owned.edge_pairs = searched_features(layout, edges, edges, distance)
    owned.vertex_face_pairs = searched_features(layout, vertices, faces, distance)
    scratch: wp.array | None = layout.cache.pop("scratch of pairs", None)
    if scratch is None or len(scratch) < shards:
        scratch = wp.empty((shards, SCRATCH), dtype=wp.int32, device=surfaces.device)
    owned.scratch = scratch
    yield owned
    layout.cache["scratch of pairs"] = scratch


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


@wp.func_native(
    SHARD
    + """
    with[kept] = pair[0];
    at_cluster[kept] = pair[1];
    return kept + 1;
"""
)
def buffer_pair(pair: wp.vec2i, kept: int, shard: int, scratch: wp.array2d[int]) -> int:
    """Keep a pair of triangles until `PAIRS_AT_ONCE` are to be tested; how many there are."""
    ...


@wp.func_native(
    SHARD
    + """
    return wp::vec_t<2, wp::int32>(with[at], at_cluster[at]);
"""
)
def buffered_pair(at: int, shard: int, scratch: wp.array2d[int]) -> wp.vec2i:
    """The triangles of one kept pair."""
    ...


@wp.struct
class OwnedFeatures:
    """What triangles own, and how pairs of it are tested."""

    faces: wp.array2d[int]
    face_edges: wp.array2d[int]
    owns: wp.array[int]
    edge_pairs: SearchedFeatures
    vertex_face_pairs: SearchedFeatures
    scratch: wp.array2d[int]


@wp.func
def test_buffered(kept: int, owned: OwnedFeatures, shard: int, out: KeySegments):
    """Append the keys of the features that the kept pairs of triangles own and that are near."""
    pending = int(0)
    for k in range(kept):
        pair = buffered_pair(k, shard, owned.scratch)
        pending = add_edges(pair[0], pair[1], owned.faces, owned.face_edges, owned.owns, pending, shard, owned.scratch)
    pending = _test_edges(pending, 1, owned.edge_pairs, shard, owned.scratch, out)
    pending = int(0)
    for k in range(kept):
        pair = buffered_pair(k, shard, owned.scratch)
        pending = add_vertices(pair[0], pair[1], owned.faces, owned.owns, pending, shard, owned.scratch)
        pending = add_vertices(pair[1], pair[0], owned.faces, owned.owns, pending, shard, owned.scratch)
    pending = _test_faces(pending, 1, owned.vertex_face_pairs, shard, owned.scratch, out)


@wp.kernel(module="unique", module_options=SOUND)
def _near_owned(
    first: int, shard: int, pairs: wp.array[wp.vec2i], blocks: int, step: int, owned: OwnedFeatures, out: KeySegments
):
    begin = PAIRS_AT_ONCE * scattered(first + wp.tid(), step, blocks)
    kept = int(0)
    for k in range(begin, wp.min(begin + PAIRS_AT_ONCE, pairs.shape[0])):
        kept = buffer_pair(pairs[k], kept, shard, owned.scratch)
    test_buffered(kept, owned, shard, out)

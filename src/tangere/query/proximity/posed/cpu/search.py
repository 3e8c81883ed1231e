"""The search of pairs of posed bodies on CPUs: the twin of `posed.traversal`, eight boxes and triangles at a time.

Sound: boxes are compared in float32 with a slack for its rounding: at most more triangles are looked at than in
       `traversal`.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.eights import FIRST_LEAF, LEAVES, EightTables, begin_descent, next_leaves
from tangere.query.proximity.posed.cpu.ordering import PairSegments
from tangere.query.proximity.posed.cpu.simd_leaves import FIRST_CANDIDATE, list_candidates
from tangere.query.proximity.posed.leaf import Appended, candidate_of, consider, least_of_interest, nearest_so_far
from tangere.query.proximity.posed.shapes import FACE, ShapeTables
from tangere.query.proximity.posed.traversal import APART, OVERLAP, PairQueries, PairResults, begin_pair, least_distance
from tangere.runtime import COUNTER_STRIDE, SOUND

wp.set_module_options(SOUND)

#: Rounding of centres of boxes to float32, relative to the largest coordinate, and of lengths too small for it [m].
_SLACK = wp.constant(wp.float64(2.0**-22))
_SMALLEST = wp.constant(wp.float64(1.0e-36))
#: Rounding of the distance to float32.
_ROUNDED = wp.constant(wp.float64(1.0 + 2.0**-20))


@wp.kernel
def find_constraints_in_eights(
    first: int,
    shard: int,
    shapes: ShapeTables,
    queries: PairQueries,
    eights: EightTables,
    scratch: wp.array2d[int],
    certain: wp.array[wp.float64],
    out: Appended,
    results: PairResults,
    segments: PairSegments,
):
    """What `find_constraints` finds."""
    pair = first + wp.tid()
    search = begin_pair(shapes, queries, pair)
    before = out.counts[shard * COUNTER_STRIDE]
    frame = search.frame
    base_a = search.base_a
    base_b = search.base_b
    slack = wp.float32(_ROUNDED * frame.limit + _SLACK * search.size + _SMALLEST)
    so_far = search.so_far
    leaves = int(0)
    if search.status == APART:
        bodies = queries.pairs[pair]
        begin_descent(eights, shapes.shape[bodies[0]], shapes.shape[bodies[1]], shard, scratch)
        leaves = next_leaves(eights.rows, eights.rows, frame.turn, frame.shift, slack, LEAVES, shard, scratch)
    begin = int(0)
    while begin < leaves:
        listed = list_candidates(
            shapes.corners,
            shapes.owns,
            base_a[FACE],
            base_b[FACE],
            frame.turn,
            frame.shift,
            frame.limit,
            frame.tiny,
            so_far.towards,
            least_of_interest(frame, so_far),
            begin,
            leaves,
            shard,
            scratch,
            certain,
        )
        for k in range(listed[0]):
            place = FIRST_LEAF + 2 * scratch[shard, FIRST_CANDIDATE + 2 * k]
            face_a = base_a[FACE] + scratch[shard, place]
            face_b = base_b[FACE] + scratch[shard, place + 1]
            candidate = candidate_of(shapes, face_a, face_b, scratch[shard, FIRST_CANDIDATE + 2 * k + 1])
            so_far = consider(shapes, frame, pair, base_a, base_b, candidate, so_far, shard, out)
        waiting = listed[1] | listed[2]
        lane = listed[3]
        while waiting != 0:
            if ((waiting >> lane) & 1) == 1:
                may_meet = ((listed[2] >> lane) & 1) == 1
                # Others of these eight may have come nearer.
                if may_meet or certain[8 * shard + lane] < least_of_interest(frame, so_far):
                    face_a = base_a[FACE] + scratch[shard, FIRST_LEAF + 2 * (begin + lane)]
                    face_b = base_b[FACE] + scratch[shard, FIRST_LEAF + 2 * (begin + lane) + 1]
                    so_far = nearest_so_far(shapes, frame, face_a, face_b, may_meet, so_far)
                waiting = waiting & ~(1 << lane)
            lane = (lane + 1) & 7
        begin += 8
        if begin >= leaves:
            begin = 0
            leaves = next_leaves(eights.rows, eights.rows, frame.turn, frame.shift, slack, LEAVES, shard, scratch)
    search.so_far = so_far
    results.status[pair] = search.status
    results.least[pair] = wp.float64(0.0)
    if search.status == APART:
        results.status[pair] = wp.where(so_far.meet, int(OVERLAP), int(APART))
        results.least[pair] = least_distance(search)
    after = out.counts[shard * COUNTER_STRIDE]
    segments.begin[pair] = -1
    if after <= wp.int64(out.capacity):
        segments.begin[pair] = shard * out.capacity + int(before)
        segments.amount[pair] = int(after - before)

"""The search for the first contact of two trees: every pair of boxes carries its own time until which it is free.

Method:   a pair is dropped when its time is beyond the earliest contact known; children start from their parent's time.
          Leaves are solved by `leaf_time`. In which order pairs are looked at, and how many at once, is up to the
          device: `cpu.lane_search` takes the earliest first, one box against four at a time, then goes depth-first;
          `cuda.frontier_search` looks at many pairs of many queries in rounds. What both share is here.
Bits:     what a leaf answers depends on its ancestors only, because a pair is dropped when its time is *later* than the
          earliest contact and never when it is equal; ties go to the smallest pair of triangles. So the answer does
          not depend on the order, and several threads may share one query: a stale bound drops less, nothing else.
Known as: best-first BVH traversal with conservative advancement of node pairs (Tang, Kim and Manocha 2009, C2A); the
          current time of contact passed on to every test is Redon 2002, sections 2.6.3 and 3.5.3.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.geometry.triangles import Triangle, closest_features, pierce
from tangere.query.first_contact.rigid.conservative_advancement import Pair, QueryArrays
from tangere.query.first_contact.rigid.narrow_phase import LeafTime, corners_of, leaf_time
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Counters of a job: box pairs evaluated, triangle pairs evaluated, triangle pairs visited, pairs culled.
COUNTERS = wp.constant(4)
#: In the place of a side that goes through the other triangle: the bodies meet, in whatever way, or are nearer than the
#: separation; see `classify_initial_overlap`.
MEETS = wp.constant(6)

_ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class Candidate:
    """A pair of boxes that is free until `time`."""

    time: wp.float64  #: of the clock
    size: wp.float32  #: sum of the radii
    a: wp.int32  #: node of a, counted from its root
    b: wp.int32
    query: wp.int32  #: which one, for searches of many at once


@wp.struct
class EarliestHit:
    """The earliest contact so far; `time` > 1: none."""

    time: wp.float64  #: of the clock
    a: wp.int32  #: triangle of a
    b: wp.int32
    pierced: wp.int32  #: at time 0: the side that goes through the other triangle, as `pierce` tells it, MEETS, else -1
    decided: wp.bool


#: Comes after every triangle: in the place of a hit that is only a limit of time.
NO_TRIANGLE = wp.constant(2**31 - 1)
#: A best before anything was found.
NO_HIT = np.zeros(1, EarliestHit.numpy_dtype())
NO_HIT["time"], NO_HIT["pierced"] = 2.0, -1


@wp.func
def no_hit() -> EarliestHit:
    best = EarliestHit()
    best.time = wp.float64(2.0)
    best.pierced = -1
    return best


@wp.func
def is_earlier(candidate: EarliestHit, best: EarliestHit) -> bool:
    """Whether a contact goes before another: earlier, then piercing, then smaller triangle numbers."""
    through = candidate.pierced >= 0
    best_through = best.pierced >= 0
    result = candidate.time < best.time
    if candidate.time == best.time:
        result = through and not best_through
        if through == best_through:
            result = candidate.a < best.a or (candidate.a == best.a and candidate.b < best.b)
    return result


@wp.func
def solve_leaf(
    arrays: QueryArrays,
    row: int,
    triangle_a: int,
    triangle_b: int,
    tau: wp.float64,
    until: wp.float64,
    counters: wp.array2d[wp.int64],
    job: int,
) -> EarliestHit:
    """The first contact of two triangles, searched from tau to `until`."""
    pairs = arrays.pairs
    a = corners_of(arrays.corners_a, arrays.queries[row].triangle_a + triangle_a, pairs[row].bounds_a.pivot)
    b = corners_of(arrays.corners_b, arrays.queries[row].triangle_b + triangle_b, pairs[row].bounds_b.pivot)
    answer = leaf_time(arrays, row, a, b, tau, until)
    return hit_of(answer, pairs, row, a, triangle_a, triangle_b, counters, job)


@wp.func
def hit_of(
    answer: LeafTime,
    pairs: wp.array[Pair],
    row: int,
    a: Triangle,
    triangle_a: int,
    triangle_b: int,
    counters: wp.array2d[wp.int64],
    job: int,
) -> EarliestHit:
    """What the search keeps of two triangles that were solved; `a` is the first of them."""
    if counters.shape[0] > 0:
        counters[job, 1] = counters[job, 1] + wp.int64(answer.steps)
        counters[job, 2] = counters[job, 2] + wp.int64(1)
    found = EarliestHit()
    found.time = answer.time
    found.a = triangle_a
    found.b = triangle_b
    found.decided = answer.decided
    found.pierced = -1
    if answer.time == _ZERO:
        found.pierced = pierce(a, answer.at, pairs[row].slack)
        if found.pierced < 0 and pairs[row].separation > _ZERO:
            if wp.sqrt(closest_features(a, answer.at).squared) + pairs[row].slack < pairs[row].separation:
                found.pierced = MEETS
    return found

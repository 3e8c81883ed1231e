"""The nearest pair of triangles on CPUs: the twin of `distance.traversal`, eight boxes and triangles at a time.

First a descent for any pair that meets, then one with a bound that shrinks, as there. Of up to eight pairs of triangles
the gaps along three directions are known at once; they are looked at from the least gap on.
Sound: boxes are compared in float32 with a slack for its rounding, gaps of triangles in float64: at most more is looked
       at than there. What is told of a pair is computed as in `traversal`; of several that are equally near another one
       may be told.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.triangles import MEET, common_point, gap_along, nearest_of_triangles, triangles_meet
from tangere.query.distance.cpu.simd_descent import FIRST_NEARER, PAIR, begin_nearer, next_nearer
from tangere.query.distance.traversal import (
    BOUNDS,
    MEETING,
    POINT_A,
    POINT_B,
    TRIANGLE_A,
    TRIANGLE_B,
    WEIGHTS_A,
    WEIGHTS_B,
)
from tangere.query.intersection.cpu.search import EightsPair, PlacedPair, any_meeting_in_eights, placed_pair
from tangere.query.intersection.cpu.simd_gaps import gaps_below
from tangere.query.intersection.posed import world_corners
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_BEYOND = wp.constant(wp.float64(1.0e300))
_ZERO = wp.constant(wp.float64(0.0))
#: Before anything is found; and for a float32 that is not below a float64.
_FARTHEST = wp.constant(wp.float32(3.0e38))
_ROUNDED_UP = wp.constant(wp.float64(1.0 + 2.0**-22))
_NONE = wp.constant(-1)


@wp.kernel
def find_nearest_in_eights(
    first: int,
    shard: int,
    thread: int,
    pair: EightsPair,
    poses: wp.array2d[wp.mat44d],
    numbers: wp.array2d[int],
    vectors: wp.array2d[wp.vec3d],
):
    """What `find_nearest` finds."""
    q = first + wp.tid()
    placed = placed_pair(pair, poses[q, 0], poses[q, 1])
    meeting = any_meeting_in_eights(pair, placed, thread)
    numbers[q, MEETING] = meeting[2]
    if meeting[2] == MEET:
        numbers[q, TRIANGLE_A] = meeting[0]
        numbers[q, TRIANGLE_B] = meeting[1]
        meeting_a = world_corners(pair.corners_a, meeting[0], placed.a)
        meeting_b = world_corners(pair.corners_b, meeting[1], placed.b)
        common = nearest_of_triangles(meeting_a, meeting_b).weights_a * meeting_a
        if triangles_meet(meeting_a, meeting_b) == MEET:  # they do not just touch
            common = common_point(meeting_a, meeting_b)
        vectors[q, POINT_A] = common
        vectors[q, POINT_B] = common
        vectors[q, BOUNDS] = wp.vec3d()
        return
    turn = placed.relative.rotation
    shift = placed.relative.translation
    normal = wp.vec3d()
    lower = _BEYOND + _ZERO
    distance = _BEYOND + _ZERO
    begin_nearer(thread, pair.scratch)
    found = next_nearer(pair.rows_a, pair.rows_b, turn, shift, placed.slack, _FARTHEST, thread, pair.scratch)
    while found > 0:
        left = gaps_so_far(pair, placed, normal, distance, found, thread)
        lane = least_gap(pair.gaps, thread, left, distance)
        while lane != _NONE:
            left = left & ~(1 << lane)
            triangle_a = pair.scratch[thread, FIRST_NEARER + PAIR * lane]
            triangle_b = pair.scratch[thread, FIRST_NEARER + PAIR * lane + 1]
            corners_of_a = world_corners(pair.corners_a, triangle_a, placed.a)
            corners_of_b = world_corners(pair.corners_b, triangle_b, placed.b)
            nearest = nearest_of_triangles(corners_of_a, corners_of_b)
            towards = nearest.weights_b * corners_of_b - nearest.weights_a * corners_of_a
            reached = wp.length(towards)
            if reached > _ZERO:
                towards = towards / reached
            # What is certain does not hang on how well the nearest points are known: the gap along any direction is a
            # lower bound.
            lower = wp.min(lower, gap_along(corners_of_a, corners_of_b, towards))
            if reached < distance:
                distance = reached
                normal = towards
                numbers[q, TRIANGLE_A] = triangle_a
                numbers[q, TRIANGLE_B] = triangle_b
                vectors[q, WEIGHTS_A] = nearest.weights_a
                vectors[q, WEIGHTS_B] = nearest.weights_b
                vectors[q, POINT_A] = nearest.weights_a * corners_of_a
                vectors[q, POINT_B] = nearest.weights_b * corners_of_b
                # Along the new direction most of the others are known to be farther.
                left = left & gaps_so_far(pair, placed, normal, distance, found, thread)
            lane = least_gap(pair.gaps, thread, left, distance)
        bound = wp.float32(_ROUNDED_UP * distance)
        found = next_nearer(pair.rows_a, pair.rows_b, turn, shift, placed.slack, bound, thread, pair.scratch)
    vectors[q, BOUNDS] = wp.vec3d(wp.max(wp.min(lower, distance), _ZERO), distance, _ZERO)


@wp.func
def gaps_so_far(
    pair: EightsPair, placed: PlacedPair, normal: wp.vec3d, distance: wp.float64, found: int, row: int
) -> int:
    """Which of the pairs of triangles found next may be nearer than what was found so far."""
    return gaps_below(
        pair.corners_a,
        pair.corners_b,
        placed.a.rotation,
        placed.a.translation,
        placed.b.rotation,
        placed.b.translation,
        normal,
        distance,
        FIRST_NEARER,
        PAIR,
        0,
        found,
        row,
        pair.scratch,
        pair.gaps,
    )


@wp.func
def least_gap(gaps: wp.array[wp.float64], row: int, lanes: int, below: wp.float64) -> int:
    """The lane with the least gap of those that a mask names, if that is smaller than `below`; else none."""
    least = int(_NONE)
    smallest = below
    for k in range(8):
        if (lanes >> k) & 1 == 1 and gaps[8 * row + k] < smallest:
            least = k
            smallest = gaps[8 * row + k]
    return least

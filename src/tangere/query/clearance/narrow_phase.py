"""Two triangles of moving bodies: how near do they come, seen from one instant on, step by step?

Method:   the triangles are moved on in time as long as the gap along the way between their nearest points certainly
          stays above (1 - accuracy) U, the least distance seen so far. Where they are nearer than U, that is the new U.
Sound:    U is a distance at an instant, rounded up; 0 where an edge of one certainly goes through the other.
Known as: conservative advancement of a pair of triangles (Mirtich 1996; Zhang, Lee and Kim 2006).
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.obb import LONGEST
from tangere.geometry.triangles import Triangle, best_direction, closest_features, gap_along, gap_vector, pierce
from tangere.motion.bounds import reparametrised_time
from tangere.query.first_contact.rigid.conservative_advancement import (
    QueryArrays,
    Relative,
    largest_safe_step,
    rate_bound,
    relative_at,
)
from tangere.query.first_contact.rigid.narrow_phase import MOST_STEPS, corners_of, longest_step, placed
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
#: A direction of double precision is no longer than this.
_UNIT = wp.constant(wp.float64(1.0 + 4.0e-15))
_TINY = wp.constant(wp.float64(1.0e-150))


@wp.struct
class NearestApproach:
    """The least distance of a query so far."""

    upper: wp.float64  #: before: what is known from elsewhere, or as far as is asked; then the least that was seen [m]
    time: wp.float64  #: of the step, when that was; before, and if nothing is seen below what was given: -1
    query: wp.int32  #: of which query
    a: wp.int32  #: triangle of a
    b: wp.int32
    certified: wp.bool  #: nothing comes nearer than (1 - accuracy) upper; before: there is nothing to search for


@wp.struct
class ApproachStep:
    """Where a step has got to."""

    nearest: NearestApproach
    time: wp.float64  #: of the clock, until when the triangles stay apart
    going: wp.bool  #: another step follows


@wp.func
def approach_step(
    now: Relative,
    arrays: QueryArrays,
    row: int,
    a: Triangle,
    b: Triangle,
    rho_a: wp.vec3d,
    rho_b: wp.vec3d,
    triangle_a: int,
    triangle_b: int,
    time: wp.float64,
    steps: int,
    accuracy: wp.float64,
    before: NearestApproach,
) -> ApproachStep:
    """`before`, lowered by two triangles, seen from the pivots of their bodies, at `time`, and how far they can go on.

    Args:
        rho_a, rho_b: distances of their corners to the axes of the turns.
        steps: how many were made before.
    """
    pairs = arrays.pairs
    nearest = before
    result = ApproachStep()
    result.time = time
    at = placed(now, b)
    n = gap_vector(a, at)
    length = wp.length(n)
    n = n / wp.max(length, _TINY)
    gap = gap_along(a, at, n)
    keep = _UNIT * kept_apart(accuracy, nearest.upper, pairs[row].slack)
    if length < nearest.upper or not gap > keep:
        features = closest_features(a, at)
        apart = wp.sqrt(features.squared) + pairs[row].slack
        n = wp.normalize(best_direction(a, at, features))  # again: of edges that are parallel but for 1e-160, too
        gap = gap_along(a, at, n)
        if not gap > _ZERO and pierce(a, at, pairs[row].slack) >= 0:
            apart = _ZERO
        if apart < nearest.upper:
            nearest.upper = apart
            nearest.time = reparametrised_time(arrays.queries[row].smooth, time)
            nearest.query = row
            nearest.a = triangle_a
            nearest.b = triangle_b
            keep = _UNIT * kept_apart(accuracy, nearest.upper, pairs[row].slack)
    if not gap > keep or nearest.upper <= pairs[row].tolerance or steps >= MOST_STEPS:
        nearest.certified = False
    else:
        h = longest_step(now, pairs, row, a, at, n, rho_a, rho_b, keep)
        if time + h <= _ONE:
            rate = rate_bound(now, pairs, row, n, wp.max(rho_a), wp.max(rho_b))
            h = wp.max(h, largest_safe_step(gap - keep, rate, _ZERO))
        result.time = time + h
        if not result.time > time:
            nearest.certified = False
        else:
            result.going = not result.time > _ONE
    result.nearest = nearest
    return result


@wp.func
def kept_apart(accuracy: wp.float64, upper: wp.float64, slack: wp.float64) -> wp.float64:
    """As far as this must be left along a unit direction, so that nothing comes nearer than (1 - accuracy) upper."""
    return (_ONE - accuracy) * upper + slack


@wp.func
def boxes_kept_apart(accuracy: wp.float64, upper: wp.float64, slack: wp.float64) -> wp.float64:
    """The same along directions of single precision, as those that part boxes are."""
    return LONGEST * kept_apart(accuracy, upper, slack)


@wp.kernel
def lower_by_triangles(
    first: int,
    arrays: QueryArrays,
    rows: wp.array[wp.int32],
    triangles: wp.array[wp.vec2i],
    found: wp.array[NearestApproach],
):
    """Lower what is known of a group by two triangles of the query rows[job], at both ends of its step; -1: by none."""
    job = first + wp.tid()
    row = rows[job]
    if row < 0:
        return
    query = arrays.queries[row]
    pairs = arrays.pairs
    nearest = found[job]
    a = corners_of(arrays.corners_a, query.triangle_a + triangles[job][0], pairs[row].bounds_a.pivot)
    b = corners_of(arrays.corners_b, query.triangle_b + triangles[job][1], pairs[row].bounds_b.pivot)
    for k in range(2):
        at = placed(relative_at(arrays, row, wp.float64(k)), b)
        apart = wp.sqrt(closest_features(a, at).squared) + pairs[row].slack
        if pierce(a, at, pairs[row].slack) >= 0:
            apart = _ZERO
        if apart < nearest.upper:
            nearest.upper = apart
            nearest.time = wp.float64(k)
            nearest.query = row
            nearest.a = triangles[job][0]
            nearest.b = triangles[job][1]
    found[job] = nearest

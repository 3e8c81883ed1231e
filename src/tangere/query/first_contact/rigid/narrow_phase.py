"""When do two triangles of moving rigid bodies first come within a tolerance of each other?

Method:   steps. The vector between the nearest points gives a direction n; the gap along it is the support of one
          triangle less that of the other, whatever the quality of n, and each pair of corners has its own rates. A step
          goes as far as separation + tolerance / 2 is certainly left.
Sound:    nothing comes nearer than separation + tolerance / 2 before the answer; tolerance / 2 absorbs rounding. At
          the answer the distance is at most separation + tolerance; where rounding or the number of steps leaves that
          open, the time is certified all the same and the pair is reported as undecided.
Known as: conservative advancement of a pair of triangles, time of impact (Mirtich 1996; Zhang, Lee and Kim 2006).
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import closest_on_triangle
from tangere.geometry.triangles import Triangle, best_direction, closest_features, corner, gap_along, gap_vector
from tangere.motion import RigidMotion
from tangere.query.first_contact.rigid.conservative_advancement import (
    Pair,
    Relative,
    RigidQuery,
    closing_bound,
    largest_safe_step,
    radius_about,
    rate_bound,
    relative_at,
    step_of_balls,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Steps after which a pair that neither touches nor ends is given up as undecided from there on.
MOST_STEPS = wp.constant(100_000)

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_TINY = wp.constant(wp.float64(1.0e-150))


@wp.struct
class LeafTime:
    time: wp.float64  #: of the clock; beyond `until` when the triangles stay apart
    steps: wp.int32
    decided: wp.bool


@wp.func
def corners_of(corners: wp.array[wp.vec3d], triangle: int, pivot: wp.vec3d) -> Triangle:
    """The corners of a triangle, seen from the pivot of its body."""
    p = corners[3 * triangle] - pivot
    q = corners[3 * triangle + 1] - pivot
    r = corners[3 * triangle + 2] - pivot
    return Triangle(p[0], p[1], p[2], q[0], q[1], q[2], r[0], r[1], r[2])


@wp.func
def placed(now: Relative, b: Triangle) -> Triangle:
    """A triangle of b, seen from its pivot, in the frame of `now`."""
    turned = b * wp.transpose(now.rotation)
    c = now.point
    return Triangle(
        turned[0, 0] + c[0],
        turned[0, 1] + c[1],
        turned[0, 2] + c[2],
        turned[1, 0] + c[0],
        turned[1, 1] + c[1],
        turned[1, 2] + c[2],
        turned[2, 0] + c[0],
        turned[2, 1] + c[1],
        turned[2, 2] + c[2],
    )


@wp.func
def least_distance(p: wp.vec3d, t: Triangle) -> wp.float64:
    """No more than the distance of p to a triangle: along the way to the nearest point, however well that is known."""
    w = closest_on_triangle(p, corner(t, 0), corner(t, 1), corner(t, 2))
    n = corner(t, 0) * w[0] + corner(t, 1) * w[1] + corner(t, 2) * w[2] - p
    n = n / wp.max(wp.length(n), _TINY)
    return wp.min(wp.vec3d(wp.dot(n, corner(t, 0) - p), wp.dot(n, corner(t, 1) - p), wp.dot(n, corner(t, 2) - p)))


@wp.func
def leaf_time(
    query: RigidQuery,
    pair: Pair,
    motions: wp.array[RigidMotion],
    a: Triangle,
    b: Triangle,
    tau: wp.float64,
    until: wp.float64,
) -> LeafTime:
    """First time in [tau, until] when two triangles, seen from the pivots of their bodies, are within tolerance."""
    rho_a = wp.vec3d(_ZERO, _ZERO, _ZERO)
    rho_b = wp.vec3d(_ZERO, _ZERO, _ZERO)
    for k in range(3):
        rho_a[k] = radius_about(pair.bounds_a, corner(a, k) + pair.bounds_a.pivot, _ZERO)
        rho_b[k] = radius_about(pair.bounds_b, corner(b, k) + pair.bounds_b.pivot, _ZERO)
    ball_a = wp.float64(0.0)
    ball_b = wp.float64(0.0)
    for k in range(3):
        ball_a = wp.max(ball_a, wp.length(corner(a, k)))
        ball_b = wp.max(ball_b, wp.length(corner(b, k)))
    contact = pair.separation + pair.tolerance
    keep = pair.separation + _HALF * pair.tolerance
    result = LeafTime()
    result.time = tau
    result.decided = True
    going = bool(True)
    while going:
        result.steps += 1
        now = relative_at(query, pair, motions, result.time)
        at = placed(now, b)
        n = gap_vector(a, at)
        n = n / wp.max(wp.length(n), _TINY)
        gap = gap_along(a, at, n)
        if not gap > contact:
            # The quick vector may be a poor one: the careful one has the last word.
            nearest = closest_features(a, at)
            n = best_direction(a, at, nearest)
            gap = gap_along(a, at, n)
            result.decided = gap > contact or wp.sqrt(nearest.squared) <= contact + pair.slack
        going = gap > contact
        if going:
            spare = gap - keep
            h = longest_step(now, pair, a, at, n, rho_a, rho_b, keep)
            if result.time + h <= until:
                h = wp.max(h, largest_safe_step(spare, rate_bound(now, pair, n, wp.max(rho_a), wp.max(rho_b)), _ZERO))
                if pair.spins:
                    from_a = least_distance(wp.vec3d(_ZERO, _ZERO, _ZERO), at)
                    from_b = least_distance(now.point, a)
                    h = wp.max(
                        h, step_of_balls(now, pair, from_a, from_b, ball_a, ball_b, wp.max(rho_a), wp.max(rho_b))
                    )
            going = result.time + h > result.time
            result.decided = going
            result.time += h
            if result.time > until:
                going = False
            elif result.steps >= MOST_STEPS:
                going = False
                result.decided = False
    return result


@wp.func
def longest_step(
    now: Relative,
    pair: Pair,
    a: Triangle,
    b: Triangle,
    n: wp.vec3d,
    rho_a: wp.vec3d,
    rho_b: wp.vec3d,
    keep: wp.float64,
) -> wp.float64:
    """The second-order step of the corner pair that allows the shortest one."""
    across_a = wp.cross(n, now.angular_a)
    across_b = wp.cross(n, now.angular_b)
    along = wp.dot(n, now.linear)
    h = wp.float64(1.0e30)
    k = int(0)
    while k < 9:
        i = k / 3
        j = k % 3
        p = corner(a, i)
        q = corner(b, j)
        rate = wp.dot(p, across_a) - wp.dot(q - now.point, across_b) - along
        h = wp.min(h, largest_safe_step(wp.dot(n, q - p) - keep, rate, closing_bound(pair, rho_a[i], rho_b[j])))
        k += 1
    return h

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
from tangere.geometry.triangles import (
    Triangle,
    best_direction,
    closest_features,
    corner,
    gap_along,
    gap_vector,
    triangle_edge,
)
from tangere.motion.bounds import MotionBounds
from tangere.query.first_contact.rigid.conservative_advancement import (
    Pair,
    QueryArrays,
    Relative,
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
    going: wp.bool  #: another step follows
    at: Triangle  #: where b was in the last step


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
    arrays: QueryArrays,
    row: int,
    a: Triangle,
    b: Triangle,
    tau: wp.float64,
    until: wp.float64,
) -> LeafTime:
    """First time in [tau, until] when two triangles, seen from the pivots of their bodies, are within tolerance."""
    rho_a = corner_radii(arrays.pairs[row].bounds_a, a)
    rho_b = corner_radii(arrays.pairs[row].bounds_b, b)
    result = LeafTime()
    result.time = tau
    result.going = True
    while result.going:
        now = relative_at(arrays, row, result.time)
        result = leaf_step(now, arrays.pairs, row, a, b, rho_a, rho_b, until, result.time, result.steps)
    return result


@wp.func
def corner_radii(bounds: MotionBounds, t: Triangle) -> wp.vec3d:
    """How far the corners of a triangle, seen from the pivot, are from the axis of its body's turns."""
    return wp.vec3d(
        radius_about(bounds, corner(t, 0) + bounds.pivot, _ZERO),
        radius_about(bounds, corner(t, 1) + bounds.pivot, _ZERO),
        radius_about(bounds, corner(t, 2) + bounds.pivot, _ZERO),
    )


@wp.func
def leaf_step(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
    a: Triangle,
    b: Triangle,
    rho_a: wp.vec3d,
    rho_b: wp.vec3d,
    until: wp.float64,
    time: wp.float64,
    steps: int,
) -> LeafTime:
    """Where two triangles get from `time`, at which the bodies are `now`, after so many steps."""
    contact = pairs[row].separation + pairs[row].tolerance
    keep = pairs[row].separation + _HALF * pairs[row].tolerance
    at = placed(now, b)
    result = LeafTime()
    result.time = time
    result.steps = steps + 1
    result.decided = True
    result.at = at
    h = wp.float64(0.0)
    if steps == 0:
        # Most triangles that get here pass each other: then a normal of one of them settles it, in half the time.
        n = face_direction(a, at)
        gap = gap_along(a, at, n)
        if gap > contact:
            h = shortest_step(now, pairs, row, a, at, n, gap - keep, wp.max(rho_a), wp.max(rho_b))
    if time + h > until:
        result.time = time + h
    else:
        n = gap_vector(a, at)
        n = n / wp.max(wp.length(n), _TINY)
        gap = gap_along(a, at, n)
        if not gap > contact:
            # The quick vector may be a poor one: the careful one has the last word.
            nearest = closest_features(a, at)
            n = best_direction(a, at, nearest)
            gap = gap_along(a, at, n)
            result.decided = gap > contact or wp.sqrt(nearest.squared) <= contact + pairs[row].slack
        if gap > contact:
            h = longest_step(now, pairs, row, a, at, n, rho_a, rho_b, keep)
            if time + h <= until:
                far_a = wp.max(rho_a)
                far_b = wp.max(rho_b)
                h = wp.max(h, largest_safe_step(gap - keep, rate_bound(now, pairs, row, n, far_a, far_b), _ZERO))
                if pairs[row].spins:
                    from_a = least_distance(wp.vec3d(_ZERO, _ZERO, _ZERO), at)
                    from_b = least_distance(now.point, a)
                    ball_a = farthest_corner(a)
                    ball_b = farthest_corner(b)
                    least = pairs[row].keep
                    h = wp.max(h, step_of_balls(now, pairs, row, least, from_a, from_b, ball_a, ball_b, far_a, far_b))
            result.time = time + h
            result.going = result.time > time
            result.decided = result.going
            if result.time > until:
                result.going = False
            elif result.steps >= MOST_STEPS:
                result.going = False
                result.decided = False
    return result


@wp.func
def farthest_corner(t: Triangle) -> wp.float64:
    """How far the corners are from the pivot that they are seen from."""
    return wp.max(wp.vec3d(wp.length(corner(t, 0)), wp.length(corner(t, 1)), wp.length(corner(t, 2))))


@wp.func
def face_direction(a: Triangle, b: Triangle) -> wp.vec3d:
    """Of the normals of two triangles the one along which their gap from a to b is larger."""
    towards = corner(b, 0) - corner(a, 0)
    normal_a = wp.cross(triangle_edge(a, 0), triangle_edge(a, 1))
    normal_b = wp.cross(triangle_edge(b, 0), triangle_edge(b, 1))
    normal_a = normal_a / wp.max(wp.length(normal_a), _TINY)
    normal_b = normal_b / wp.max(wp.length(normal_b), _TINY)
    if wp.dot(normal_a, towards) < _ZERO:
        normal_a = -normal_a
    if wp.dot(normal_b, towards) < _ZERO:
        normal_b = -normal_b
    n = normal_a
    if gap_along(a, b, normal_b) > gap_along(a, b, normal_a):
        n = normal_b
    return n


@wp.func
def shortest_step(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
    a: Triangle,
    b: Triangle,
    n: wp.vec3d,
    spare: wp.float64,
    rho_a: wp.float64,
    rho_b: wp.float64,
) -> wp.float64:
    """A step that all corners allow: the second-order one for the worst of each triangle, or the first-order one."""
    rate_a = wp.max(a * wp.cross(n, now.angular_a))
    across_b = wp.cross(n, now.angular_b)
    rate_b = wp.min(b * across_b) - wp.dot(now.point, across_b)
    h = largest_safe_step(spare, rate_a - rate_b - wp.dot(n, now.linear), closing_bound(pairs, row, rho_a, rho_b))
    return wp.max(h, largest_safe_step(spare, rate_bound(now, pairs, row, n, rho_a, rho_b), _ZERO))


@wp.func
def longest_step(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
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
        h = wp.min(h, largest_safe_step(wp.dot(n, q - p) - keep, rate, closing_bound(pairs, row, rho_a[i], rho_b[j])))
        k += 1
    return h

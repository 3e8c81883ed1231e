"""Nearest points of a point or a segment and another core: formulas, and Newton's method in one variable.

Question: how far is a sphere, or a capsule, from a body whose nearest point to a given one is known by a formula?
Method:   a point: the formula (`projection`), which is off by some roundings of the sizes. Two segments: the nearest
          points of their lines, clamped one after the other. A segment and another core: half the squared distance
          along the segment is convex, its derivative (p - q).u continuous and piecewise smooth, so Newton's method in
          a bracket ends in a few steps; of boxes, where the derivative is piecewise linear, after as many as there are
          pieces at most.
Sound:    the lower bound is the gap along the direction found, from both supports, less their rounding: it holds
          whatever the quality of the points. Of a point and a solid it is the distance to the point found, less as
          much: clamping is exact, and a division along the side of a cone is off by roundings of its length; but the
          nearest point of a needle of a triangle may be any, so there it is the gap again.
Known as: closest points of primitives (Ericson 2005, section 5.1); semi-smooth Newton method (Qi and Sun 1993).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.projection import projection_of
from tangere.query.distance.convex.result import FAR, Closest, Sought, gap_rounding, is_found
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_value_of, margin_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Steps on a segment, of which those after the first dozen halve what is left every other time.
MOST_STEPS = wp.constant(120)
NEWTON_STEPS = wp.constant(12)
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
#: Lines whose directions are nearer to parallel, as the square of a sine, are; near ones need a formula of their own.
_PARALLEL = wp.constant(real(1.0e-28))
_NEARLY_PARALLEL = wp.constant(real(1.0e-4))


@cache
def closest_to_point_of(kind: int) -> wp.Function:
    """`closest(…) -> Closest`, as `closest_of` says, of a point and a core of a kind."""
    project, value, margin = projection_of(kind), core_value_of(kind), margin_of(kind)
    exact = wp.constant(int(kind != ConvexKind.TRIANGLE))

    @wp.func
    def closest(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        guess: vec,
        sought: Sought,
    ) -> Closest:
        found = Closest()
        slack = gap_rounding(a, b, offset)
        margins = a.radius + margin(b)
        p = -(offset * rotation)
        q = project(b, points_b, p, vec()).point
        apart = wp.length(p - q)
        found.point_b = offset + rotation * q
        found.steps = 1
        if apart <= slack:
            found.meet = True
            found.lower = -margins
            found.upper = -margins
        else:
            n = (p - q) * (_ONE / apart)
            found.normal = rotation * n
            gap = apart
            if exact == 0:
                gap = wp.dot(n, p) - value(b, points_b, n)
            found.lower = gap - slack - margins
            found.upper = apart + slack - margins
        return found

    return closest


@wp.func
def closest_points(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    rotation: wp.mat33d,
    offset: vec,
    guess: vec,
    sought: Sought,
) -> Closest:
    """Two points: two spheres."""
    found = Closest()
    slack = gap_rounding(a, b, offset)
    margins = a.radius + b.radius
    apart = wp.length(offset)
    found.point_b = offset
    found.steps = 1
    if apart <= slack:
        found.meet = True
        found.lower = -margins
        found.upper = -margins
    else:
        found.normal = -offset / apart
        found.lower = apart - slack - margins
        found.upper = apart + slack - margins
    return found


@wp.func
def closest_segments(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    rotation: wp.mat33d,
    offset: vec,
    guess: vec,
    sought: Sought,
) -> Closest:
    """Two segments: two capsules; s and t are from the middles."""
    found = Closest()
    slack = gap_rounding(a, b, offset)
    margins = a.radius + b.radius
    half_a = a.half[2]
    half_b = b.half[2]
    u = a.axis
    w = vec(rotation[0, 2], rotation[1, 2], rotation[2, 2])
    cosine = wp.dot(u, w)
    along = wp.dot(u, offset)
    back = wp.dot(w, offset)
    sine = _ONE - cosine * cosine
    steps = int(1)
    s = real(0.0)
    t = real(0.0)
    if sine >= _NEARLY_PARALLEL:
        s = wp.clamp((along - cosine * back) / sine, -half_a, half_a)
        t = wp.clamp(s * cosine - back, -half_b, half_b)
        s = wp.clamp(along + t * cosine, -half_a, half_a)
    else:
        across = wp.cross(u, w)
        sine = wp.length_sq(across)
        s = along
        if sine > _PARALLEL:
            s = wp.dot(wp.cross(offset, w), across) / sine
        # Of nearly parallel lines the quotient knows little: projecting back and forth repairs that.
        on_b = wp.clamp(wp.clamp(s, -half_a, half_a) * cosine - back, -half_b, half_b)
        t = on_b + slack + slack
        while wp.abs(on_b - t) > slack and steps < MOST_STEPS:
            t = on_b
            s = wp.clamp(along + t * cosine, -half_a, half_a)
            on_b = wp.clamp(s * cosine - back, -half_b, half_b)
            steps += 1
        t = on_b
    found.point_a = s * u
    found.point_b = offset + t * w
    found.steps = steps
    r = found.point_a - found.point_b
    apart = wp.length(r)
    if apart <= slack:
        found.meet = True
        found.lower = -margins
        found.upper = -margins
    else:
        n = r * (_ONE / apart)
        found.normal = n
        gap = -wp.dot(n, offset) - half_a * wp.abs(wp.dot(n, u)) - half_b * wp.abs(wp.dot(n, w))
        found.lower = gap - slack - margins
        found.upper = apart + slack - margins
    return found


@cache
def closest_to_segment_of(kind: int) -> wp.Function:
    """`closest(…)` of a segment and a core of a kind that has a projection."""
    project, value, margin = projection_of(kind), core_value_of(kind), margin_of(kind)

    @wp.func
    def closest(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        guess: vec,
        sought: Sought,
    ) -> Closest:
        found = Closest()
        slack = gap_rounding(a, b, offset)
        margins = a.radius + margin(b)
        half = a.half[2]
        middle = -(offset * rotation)
        u = a.axis * rotation  # in b's frame
        low = -half
        high = half
        t = wp.clamp(-wp.dot(middle, u), low, high)
        lower = -FAR
        upper = FAR + _ZERO
        steps = int(0)
        going = bool(True)
        while going:
            steps += 1
            p = middle + t * u
            nearest = project(b, points_b, p, u)
            r = p - nearest.point
            apart = wp.length(r)
            if apart < upper:
                upper = apart
                found.point_a = t * a.axis
                found.point_b = nearest.point
            if apart <= slack:
                going = False
            else:
                n = r / apart
                slope = wp.dot(n, u)
                here = wp.dot(n, middle) - half * wp.abs(slope) - value(b, points_b, n)
                if here > lower:
                    lower = here
                    found.normal = n
                if slope > _ZERO:
                    high = t
                else:
                    low = t
                if is_found(lower, upper, margins, sought) or not low < high or steps >= MOST_STEPS:
                    going = False
                next = _HALF * (low + high)
                if nearest.bend > _ZERO and (steps < NEWTON_STEPS or steps % 2 == 0):
                    # A step that overshoots the bracket ends at its edge where that is the end of the segment.
                    newton = t - slope * apart / nearest.bend
                    if newton >= high:
                        newton = wp.where(high == half, half, next)
                    if newton <= low:
                        newton = wp.where(low == -half, -half, next)
                    next = newton
                if next == t:
                    going = False
                t = next
        found.point_b = offset + rotation * found.point_b
        found.steps = steps
        if upper <= slack:
            found.meet = True
            found.lower = -margins
            found.upper = -margins
        else:
            found.normal = rotation * found.normal
            found.lower = lower - slack - margins
            found.upper = upper + slack - margins
        return found

    return closest


def closed_form_of(kind_a: int, kind_b: int) -> wp.Function | None:
    """`closest(…)` of two kinds, the smaller one first, by a formula or in one variable; None where there is none."""
    if kind_a == kind_b == ConvexKind.POINT:
        return closest_points
    if kind_a == kind_b == ConvexKind.SEGMENT:
        return closest_segments
    if kind_a > ConvexKind.SEGMENT or projection_of(kind_b) is None:
        return None
    return (closest_to_point_of if kind_a == ConvexKind.POINT else closest_to_segment_of)(kind_b)

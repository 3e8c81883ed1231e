"""Bounds of a rigid motion over part of a step: where points, edges, boxes and axes can be during [t0, t1].

Question: the least and largest coordinates of a point of a moving body, and of the entries of its rotation.
Method:   every kind of `RigidMotion` turns about a fixed direction by an angle a that never falls, so a coordinate is
          `k + b v + A cos a + B sin a`. The sinusoid is bounded exactly: by its values at both ends, and by its
          amplitude where its slope changes sign between them. Where the slope of the sum keeps its sign, the ends of
          the sum itself are the bounds; else slide and sinusoid are bounded apart. Sharper than interval arithmetic
          on the matrices of Redon 2002, section 3.3, at no more cost.
Sound:    every bound holds for the motion as real numbers; rounding is covered by a margin of `ROUNDING` times the
          magnitudes that went in. Several motions in a row (the links of a chain) compose by `point_box_bounds`.
Known as: inclusion functions of a motion (interval analysis, Moore 1966; Redon 2002, section 3.3).
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.intervals import plus, times
from tangere.motion.kinematics import COSINE, TANGENT, RigidMotion, pivot_at, progress_at
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: More than the roundings between the numbers of a motion and a bound: some 60 operations of 2^-53 each, doubled.
ROUNDING = wp.constant(wp.float64(128.0 * 2.0**-53))
#: An arc of less than this angle [rad] is bounded as a way of the pivot; above, the axis is near enough to turn about.
SLIGHT = wp.constant(wp.float64(1.0e-3))
HALF_TURN = wp.constant(wp.float64(3.141592653589793))
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
TWO = wp.constant(wp.float64(2.0))
INFINITE = wp.constant(wp.float64(float("inf")))


@wp.struct
class IntervalBox:
    """A box along the world axes that holds a moving point."""

    lower: wp.vec3d
    upper: wp.vec3d


@wp.struct
class MotionSpan:
    """What all bounds of one motion over one interval of time share."""

    ends: wp.vec4d  # cosine and sine of the angle at the start of the interval, and at its end
    more_than_half: int  # 1 if it turns by more than half a turn in between: then sinusoids reach their amplitude
    way: wp.vec2d  # b at the start and at the end
    turning: wp.vec2d  # least and largest da/db
    doubt: wp.float64  # relative to magnitudes: rounding, of angles too
    axis: wp.vec3d
    base: wp.vec3d  # where the point turned about is at b = 0
    velocity: wp.vec3d
    rotation: wp.mat33d
    pivot: wp.vec3d  # in the body's frame
    lever: wp.vec3d  # from the point turned about to the pivot, at t = 0
    slack: wp.vec3d  # the arc of the pivot, where it is not part of the turning: half sizes of a box about `base`


@wp.func
def span_of(motion: RigidMotion, t0: wp.float64, t1: wp.float64) -> MotionSpan:
    """The motion during [t0, t1], a part of [0, 1]."""
    start = progress_at(motion, t0)
    end = progress_at(motion, t1)
    span = MotionSpan()
    span.ends = wp.vec4d(wp.cos(start[0]), wp.sin(start[0]), wp.cos(end[0]), wp.sin(end[0]))
    span.more_than_half = int(end[0] - start[0] > HALF_TURN)
    span.way = wp.vec2d(start[1], end[1])
    span.axis = motion.axis
    span.base = motion.origin
    span.velocity = motion.velocity
    span.rotation = motion.rotation
    span.pivot = motion.pivot
    w = motion.angle
    span.turning = wp.vec2d(w, w)
    span.doubt = ROUNDING * (ONE + end[0])
    if motion.kind == TANGENT:
        # da/db = 2 tan(w/2) cos^2(a/2) falls; near half a turn the tangent magnifies the rounding of its argument.
        steepest = TWO * wp.tan(HALF * w)
        c0 = wp.cos(HALF * start[0])
        c1 = wp.cos(HALF * end[0])
        span.turning = wp.vec2d(steepest * c1 * c1, steepest * c0 * c0)
        span.doubt += ROUNDING / wp.max(wp.cos(HALF * w), wp.float64(1.0e-9))
    if motion.kind == COSINE:
        # da/db = (1 - cos w) / sin a, unbounded at both 0 and half a turn; so is the rounding of an arcsine near 1.
        k = wp.sin(HALF * w)
        least = TWO * k * k
        span.turning = wp.vec2d(least, INFINITE)
        half = wp.sin(HALF * end[0])
        span.doubt += ROUNDING / wp.max(wp.sqrt(wp.max(ONE - half * half, ZERO)), wp.float64(1.0e-9))
    span.lever = wp.vec3d(ZERO, ZERO, ZERO)
    span.slack = wp.vec3d(ZERO, ZERO, ZERO)
    if wp.dot(motion.arc, motion.arc) > ZERO:
        if w > SLIGHT:
            across = wp.cross(motion.axis, motion.arc)
            span.lever = -(wp.sin(HALF * w) * motion.arc + wp.cos(HALF * w) * across) / w
            span.base = motion.origin - span.lever
        else:
            span = _pivot_as_chord(motion, start, end, span)
    return span


@wp.func
def _pivot_as_chord(motion: RigidMotion, start: wp.vec2d, end: wp.vec2d, turning: MotionSpan) -> MotionSpan:
    """Where the axis is too far to turn about it: the pivot goes along a chord of its arc, but for a small sagitta."""
    span = turning
    arc0 = pivot_at(motion, start) - motion.origin - start[1] * motion.velocity
    arc1 = pivot_at(motion, end) - motion.origin - end[1] * motion.velocity
    way = end[1] - start[1]
    turn = end[0] - start[0]
    sagitta = ZERO + ZERO
    if motion.angle > ZERO:
        # |c''| = |arc| / w per square of the angle; the tenth covers that angle and way are not quite proportional.
        sagitta = wp.float64(0.1375) * turn * turn * wp.length(motion.arc) / motion.angle
    if motion.kind == COSINE or way <= ZERO:
        span.base = motion.origin + HALF * (arc0 + arc1)
        span.slack = HALF * wp.max(arc1 - arc0, arc0 - arc1)
    else:
        chord = (arc1 - arc0) / way
        span.velocity = motion.velocity + chord
        span.base = motion.origin + (arc0 - start[1] * chord)
    span.slack = span.slack + wp.vec3d(sagitta, sagitta, sagitta)
    return span


@wp.struct
class TurningVector:
    """A vector that turns with the body: level + a cos + b sin."""

    level: wp.vec3d
    a: wp.vec3d
    b: wp.vec3d
    length: wp.float64


@wp.func
def turning_vector(span: MotionSpan, v: wp.vec3d) -> TurningVector:
    """The body's vector v (an edge, an axis: not a place) as it turns."""
    return _turning(span, span.rotation * v)


@wp.func
def turning_arm(span: MotionSpan, p: wp.vec3d) -> TurningVector:
    """From the place turned about to the body's point p, as it turns."""
    return _turning(span, span.rotation * (p - span.pivot) + span.lever)


@wp.func
def _turning(span: MotionSpan, arm: wp.vec3d) -> TurningVector:
    wave = TurningVector()
    wave.level = wp.dot(span.axis, arm) * span.axis
    wave.a = arm - wave.level
    wave.b = wp.cross(span.axis, arm)
    wave.length = wp.length(arm)
    return wave


@wp.func
def point_bounds(span: MotionSpan, p: wp.vec3d) -> IntervalBox:
    """Where the body's point p can be, in the frame the motion moves it in."""
    wave = turning_arm(span, p)
    k = span.base + wave.level
    reach = wave.length + wp.length(span.pivot)
    bounds = IntervalBox()
    for i in range(3):
        size = wp.abs(span.base[i]) + wp.abs(span.velocity[i]) + reach
        range_ = coordinate_bounds(
            span.ends,
            span.more_than_half,
            span.way,
            span.turning,
            k[i],
            span.velocity[i],
            wave.a[i],
            wave.b[i],
            span.doubt * size + span.slack[i],
        )
        bounds.lower[i] = range_[0]
        bounds.upper[i] = range_[1]
    return bounds


@wp.func
def vector_bounds(span: MotionSpan, v: wp.vec3d) -> IntervalBox:
    """Where the body's vector v can point."""
    wave = turning_vector(span, v)
    most = wave.length * (ONE + ROUNDING)
    bounds = IntervalBox()
    for i in range(3):
        range_ = sinusoid_bounds(span.ends, span.more_than_half, wave.a[i], wave.b[i])
        margin = span.doubt * wave.length
        bounds.lower[i] = wp.max(wave.level[i] + range_[0] - margin, -most)
        bounds.upper[i] = wp.min(wave.level[i] + range_[1] + margin, most)
    return bounds


@wp.func
def point_box_bounds(span: MotionSpan, inner: IntervalBox) -> IntervalBox:
    """Where a point can be that is only known to be within the box `inner`, in the body's frame (links of a chain)."""
    half = HALF * (inner.upper - inner.lower)
    return _widened(span, point_bounds(span, inner.lower + half), _sides(inner))


@wp.func
def vector_box_bounds(span: MotionSpan, inner: IntervalBox) -> IntervalBox:
    """Where a vector can point that is only known to be within the box `inner`."""
    half = HALF * (inner.upper - inner.lower)
    return _widened(span, vector_bounds(span, inner.lower + half), _sides(inner))


@wp.func
def box_bounds(span: MotionSpan, centre: wp.vec3d, axes: wp.mat33d, half: wp.vec3d) -> IntervalBox:
    """Where a box of the body can be: all centre + sum x_k axes[:, k] with |x_k| <= half[k]."""
    return _widened(span, point_bounds(span, centre), axes * wp.diag(half))


@wp.func
def _sides(inner: IntervalBox) -> wp.mat33d:
    """Half the edges of a box, as columns, and a little more than the rounding of its centre."""
    size = wp.max(-inner.lower, inner.lower) + wp.max(-inner.upper, inner.upper)
    return wp.diag(HALF * (inner.upper - inner.lower) + ROUNDING * size)


@wp.func
def _widened(span: MotionSpan, bounds: IntervalBox, sides: wp.mat33d) -> IntervalBox:
    """Bounds of a centre, made bounds of the box about it whose half edges are the columns of `sides`."""
    grown = bounds
    for j in range(3):
        side = vector_bounds(span, wp.vec3d(sides[0, j], sides[1, j], sides[2, j]))
        most = wp.max(-side.lower, side.upper)
        grown.lower -= most
        grown.upper += most
    return grown


@wp.func
def linear_bounds(start: wp.vec3d, end: wp.vec3d, t0: wp.float64, t1: wp.float64) -> IntervalBox:
    """Where a vertex that goes straight from start to end can be."""
    first = start * (ONE - t0) + end * t0
    last = start * (ONE - t1) + end * t1
    bounds = IntervalBox()
    for i in range(3):
        error = ROUNDING * (wp.abs(start[i]) + wp.abs(end[i]))
        bounds.lower[i] = wp.min(first[i], last[i]) - error
        bounds.upper[i] = wp.max(first[i], last[i]) + error
    return bounds


@wp.func
def union_of_boxes(a: IntervalBox, b: IntervalBox) -> IntervalBox:
    """The least box that holds both."""
    bounds = IntervalBox()
    bounds.lower = wp.min(a.lower, b.lower)
    bounds.upper = wp.max(a.upper, b.upper)
    return bounds


@wp.func
def boxes_apart(a: IntervalBox, b: IntervalBox, separation: wp.float64) -> bool:
    """Whether two boxes are certainly more than `separation` apart along some axis; never where a bound is NaN."""
    return (
        a.lower[0] > b.upper[0] + separation
        or b.lower[0] > a.upper[0] + separation
        or a.lower[1] > b.upper[1] + separation
        or b.lower[1] > a.upper[1] + separation
        or a.lower[2] > b.upper[2] + separation
        or b.lower[2] > a.upper[2] + separation
    )


# The two below are called for every coordinate: they take what they need, since a struct is copied to be passed.


@wp.func
def sinusoid_bounds(ends: wp.vec4d, more_than_half: int, a: wp.float64, b: wp.float64) -> wp.vec2d:
    """The range of a cos + b sin over the angles of a span."""
    first = a * ends[0] + b * ends[1]
    last = a * ends[2] + b * ends[3]
    slope = b * ends[0] - a * ends[1]
    final = b * ends[2] - a * ends[3]
    range_ = wp.vec2d(wp.min(first, last), wp.max(first, last))
    # Within half a turn the slope changes sign at most once.
    if more_than_half == 1 or (slope > ZERO and final < ZERO):
        range_[1] = wp.sqrt(a * a + b * b)
    if more_than_half == 1 or (slope < ZERO and final > ZERO):
        range_[0] = -wp.sqrt(a * a + b * b)
    return range_


@wp.func
def coordinate_bounds(
    ends: wp.vec4d,
    more_than_half: int,
    way: wp.vec2d,
    turning: wp.vec2d,
    k: wp.float64,
    v: wp.float64,
    a: wp.float64,
    b: wp.float64,
    margin: wp.float64,
) -> wp.vec2d:
    """The range of k + way v + a cos + b sin, widened by the margin."""
    waves = sinusoid_bounds(ends, more_than_half, a, b)
    slide0 = way[0] * v
    slide1 = way[1] * v
    range_ = wp.vec2d(waves[0] + wp.min(slide0, slide1), waves[1] + wp.max(slide0, slide1))
    if v != ZERO:
        slope = plus(wp.vec2d(v, v), times(turning, sinusoid_bounds(ends, more_than_half, b, -a)))
        if slope[0] > ZERO or slope[1] < ZERO:
            first = slide0 + (a * ends[0] + b * ends[1])
            last = slide1 + (a * ends[2] + b * ends[3])
            range_ = wp.vec2d(wp.min(first, last), wp.max(first, last))
    return wp.vec2d(k + range_[0] - margin, k + range_[1] + margin)

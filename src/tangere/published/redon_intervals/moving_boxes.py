"""Two oriented boxes that move: are they apart during a whole interval of time?

Method: both sides of the 15 separating-axis inequalities as intervals (stage 1); where no single axis separates for the
        whole interval, it is halved as long as a criterion expects that to help (stage 2). Against a box at rest every
        cosine and offset is one sinusoid and is bounded exactly. Redon 2002, sections 3.3.1 and 3.5.2.
Sound:  never apart when the boxes meet at some instant; may fail to see that they are apart.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb.node import ObbNode, box_axes, box_axis, box_centre, box_half
from tangere.geometry.intervals.arithmetic import magnitude, minus, overlap, plus, times
from tangere.geometry.obb import SKEW
from tangere.motion.bounds.interval_bounds import (
    IntervalBox,
    MotionSpan,
    TurningVector,
    coordinate_bounds,
    sinusoid_bounds,
    turning_arm,
    turning_vector,
)
from tangere.motion.kinematics import RigidMotion, RigidPose
from tangere.published.redon_intervals.movers import Mover, PointState, state_now
from tangere.query.first_contact.mixed.motion_chain import (
    last_span,
    point_bounds_over,
    vector_bounds_over,
)
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Criteria of stage 2: as printed (3.13), the scale-symmetric one with angular terms, or no halving at all.
LITERAL = wp.constant(0)
SYMMETRIC = wp.constant(1)
NEVER = wp.constant(2)
#: The largest number of halvings of one interval.
MOST_DEPTH = 30
Waiting = wp.types.vector(length=MOST_DEPTH + 2, dtype=wp.float64)
#: The rounding of sums of a few products, relative to the sizes of the boxes and their places.
ROUNDING = wp.constant(wp.float64(2.0**-46))
INFINITE = wp.constant(wp.float64(float("inf")))
ONE = wp.constant(wp.float64(1.0))
HALF = wp.constant(wp.float64(0.5))
ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class Subdivision:
    """How to halve intervals: the criterion, its constant k, and how often at most."""

    criterion: int
    depth: int
    k: wp.float64
    axes: int  # 6 or 15


@wp.struct
class MovingBoxPair:
    """Cosines and offsets of two moving boxes as intervals."""

    least: wp.mat33d  # cosine [i, j] of axis i of a with axis j of b
    most: wp.mat33d
    offset_a: IntervalBox  # from centre to centre along the axes of a
    offset_b: IntervalBox  # ... along the axes of b


@wp.func
def first_unresolved(
    a: ObbNode,
    motions_a: wp.array[RigidMotion],
    a_by: Mover,
    b: ObbNode,
    motions_b: wp.array[RigidMotion],
    b_by: Mover,
    t0: wp.float64,
    t1: wp.float64,
    how: Subdivision,
) -> wp.vec2d:
    """A time in [t0, t1] before which the boxes do not meet, infinite if they stay apart until t1; and how many
    intervals were looked at."""
    waiting = Waiting()
    waiting[0] = t1
    pending = int(1)
    lower = t0 + ZERO
    looks = ZERO + ZERO
    shortest = (t1 - t0) * wp.pow(HALF, wp.float64(how.depth)) * wp.float64(1.5)
    while pending > 0:
        upper = waiting[pending - 1]
        looks += ONE
        if apart_during(a, motions_a, a_by, b, motions_b, b_by, lower, upper, how.axes):
            pending -= 1
            lower = upper
        else:
            if upper - lower <= shortest:
                return wp.vec2d(lower, looks)
            if not _worth_halving(a, motions_a, a_by, b, motions_b, b_by, lower, upper, how):
                return wp.vec2d(lower, looks)
            waiting[pending] = HALF * (lower + upper)
            pending += 1
    return wp.vec2d(INFINITE, looks)


@wp.func
def apart_during(
    a: ObbNode,
    motions_a: wp.array[RigidMotion],
    a_by: Mover,
    b: ObbNode,
    motions_b: wp.array[RigidMotion],
    b_by: Mover,
    t0: wp.float64,
    t1: wp.float64,
    axes: int,
) -> bool:
    """Whether one and the same axis separates the boxes during all of [t0, t1] (stage 1)."""
    pair = MovingBoxPair()
    span_b = last_span(motions_b, b_by.row, t0, t1)
    if a_by.rests == 1 and b_by.row.last - b_by.row.first == 1:
        pair = _against_rest(a, a_by.pose, b, span_b)
    else:
        pair = _both_moving(a, motions_a, a_by, b, motions_b, b_by, span_b, t0, t1)
    return _an_axis_separates(pair, box_half(a), box_half(b), axes)


@wp.func
def point_component_bounds(span: MotionSpan, arm: TurningVector, n: wp.vec3d, from_: wp.vec3d) -> wp.vec2d:
    """How far a point (its `turning_arm`) can be from the place `from_` along the fixed direction n, of length 1."""
    slack = wp.dot(wp.abs(n), span.slack)
    size = wp.length(span.base) + wp.length(from_) + wp.length(span.velocity) + arm.length + wp.length(span.pivot)
    return coordinate_bounds(
        span.ends,
        span.more_than_half,
        span.way,
        span.turning,
        wp.dot(n, (span.base - from_) + arm.level),
        wp.dot(n, span.velocity),
        wp.dot(n, arm.a),
        wp.dot(n, arm.b),
        wp.float64(2.0) * span.doubt * size + slack,
    )


@wp.func
def vector_component_bounds(span: MotionSpan, wave: TurningVector, n: wp.vec3d, size: wp.float64) -> wp.vec2d:
    """The component of a `turning_vector` along the fixed direction n; `size` is at least the length of n."""
    most = wp.float64(2.0) * wave.length * size
    range_ = sinusoid_bounds(span.ends, span.more_than_half, wp.dot(n, wave.a), wp.dot(n, wave.b))
    level = wp.dot(n, wave.level)
    margin = span.doubt * most
    return overlap(wp.vec2d(level + range_[0] - margin, level + range_[1] + margin), wp.vec2d(-most, most))


@wp.func
def _against_rest(a: ObbNode, pose: RigidPose, b: ObbNode, span: MotionSpan) -> MovingBoxPair:
    axes_a = pose.rotation * box_axes(a)
    axes_b = box_axes(b)
    centre_a = pose.translation + pose.rotation * box_centre(a)
    arm = turning_arm(span, box_centre(b))
    # Along an axis of b that turns: the place turned about goes round it, the arm keeps its place in b's frame.
    start = span.base - centre_a
    place = arm.level + arm.a
    size = wp.length(span.base) + wp.length(centre_a) + arm.length + wp.length(span.pivot) + wp.length(span.velocity)
    margin = wp.float64(4.0) * span.doubt * size + span.slack[0] + span.slack[1] + span.slack[2]
    pair = MovingBoxPair()
    for i in range(3):
        offset = point_component_bounds(span, arm, box_axis(axes_a, i), centre_a)
        pair.offset_a.lower[i] = offset[0]
        pair.offset_a.upper[i] = offset[1]
    for j in range(3):
        wave = turning_vector(span, box_axis(axes_b, j))
        slid = times(span.way, vector_component_bounds(span, wave, span.velocity, size))
        offset = plus(vector_component_bounds(span, wave, start, size), slid)
        fixed = wp.dot(wave.level + wave.a, place)
        pair.offset_b.lower[j] = offset[0] + fixed - margin
        pair.offset_b.upper[j] = offset[1] + fixed + margin
        for i in range(3):
            cosine = vector_component_bounds(span, wave, box_axis(axes_a, i), ONE)
            pair.least[i, j] = cosine[0]
            pair.most[i, j] = cosine[1]
    return pair


@wp.func
def _both_moving(
    a: ObbNode,
    motions_a: wp.array[RigidMotion],
    a_by: Mover,
    b: ObbNode,
    motions_b: wp.array[RigidMotion],
    b_by: Mover,
    span_b: MotionSpan,
    t0: wp.float64,
    t1: wp.float64,
) -> MovingBoxPair:
    span_a = last_span(motions_a, a_by.row, t0, t1)
    centre_a = point_bounds_over(motions_a, a_by.row, span_a, t0, t1, box_centre(a))
    centre_b = point_bounds_over(motions_b, b_by.row, span_b, t0, t1, box_centre(b))
    offset = IntervalBox()
    offset.lower = centre_b.lower - centre_a.upper
    offset.upper = centre_b.upper - centre_a.lower
    error = ROUNDING * (wp.max(-centre_a.lower, centre_a.upper) + wp.max(-centre_b.lower, centre_b.upper))
    offset.lower -= error
    offset.upper += error
    axes_a = box_axes(a)
    axes_b = box_axes(b)
    pair = MovingBoxPair()
    lower = wp.mat33d()
    upper = wp.mat33d()
    for j in range(3):
        f = vector_bounds_over(motions_b, b_by.row, span_b, t0, t1, box_axis(axes_b, j))
        lower[j] = f.lower
        upper[j] = f.upper
        reach = _product(f, offset)
        pair.offset_b.lower[j] = reach[0]
        pair.offset_b.upper[j] = reach[1]
    for i in range(3):
        n = vector_bounds_over(motions_a, a_by.row, span_a, t0, t1, box_axis(axes_a, i))
        reach = _product(n, offset)
        pair.offset_a.lower[i] = reach[0]
        pair.offset_a.upper[i] = reach[1]
        for j in range(3):
            other = IntervalBox()
            other.lower = lower[j]
            other.upper = upper[j]
            cosine = overlap(_product(n, other), wp.vec2d(-ONE - SKEW, ONE + SKEW))
            pair.least[i, j] = cosine[0]
            pair.most[i, j] = cosine[1]
    return pair


@wp.func
def _product(a: IntervalBox, b: IntervalBox) -> wp.vec2d:
    """The dot product of two vectors known by bounds."""
    x = times(wp.vec2d(a.lower[0], a.upper[0]), wp.vec2d(b.lower[0], b.upper[0]))
    y = times(wp.vec2d(a.lower[1], a.upper[1]), wp.vec2d(b.lower[1], b.upper[1]))
    z = times(wp.vec2d(a.lower[2], a.upper[2]), wp.vec2d(b.lower[2], b.upper[2]))
    return plus(plus(x, y), z)


@wp.func
def _an_axis_separates(pair: MovingBoxPair, a: wp.vec3d, b: wp.vec3d, axes: int) -> bool:
    largest = wp.mat33d()
    for i in range(3):
        for j in range(3):
            largest[i, j] = wp.max(-pair.least[i, j], pair.most[i, j])
    slack = ROUNDING * (a[0] + a[1] + a[2] + b[0] + b[1] + b[2])
    # l1 > r2 with NaN on either side is false, which keeps the pair.
    for i in range(3):
        near = magnitude(wp.vec2d(pair.offset_a.lower[i], pair.offset_a.upper[i]))
        if near[0] > a[i] + b[0] * largest[i, 0] + b[1] * largest[i, 1] + b[2] * largest[i, 2] + slack:
            return True
    for j in range(3):
        near = magnitude(wp.vec2d(pair.offset_b.lower[j], pair.offset_b.upper[j]))
        if near[0] > b[j] + a[0] * largest[0, j] + a[1] * largest[1, j] + a[2] * largest[2, j] + slack:
            return True
    if axes < 15:
        return False
    for i in range(3):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        t1 = wp.vec2d(pair.offset_a.lower[i1], pair.offset_a.upper[i1])
        t2 = wp.vec2d(pair.offset_a.lower[i2], pair.offset_a.upper[i2])
        for j in range(3):
            j1 = (j + 1) % 3
            j2 = (j + 2) % 3
            one = times(t2, wp.vec2d(pair.least[i1, j], pair.most[i1, j]))
            near = magnitude(minus(one, times(t1, wp.vec2d(pair.least[i2, j], pair.most[i2, j]))))
            reach = a[i1] * (largest[i2, j] + SKEW) + a[i2] * (largest[i1, j] + SKEW)
            reach += b[j1] * (largest[i, j2] + SKEW) + b[j2] * (largest[i, j1] + SKEW)
            if near[0] > reach + slack:
                return True
    return False


@wp.func
def _worth_halving(
    a: ObbNode,
    motions_a: wp.array[RigidMotion],
    a_by: Mover,
    b: ObbNode,
    motions_b: wp.array[RigidMotion],
    b_by: Mover,
    t0: wp.float64,
    t1: wp.float64,
    how: Subdivision,
) -> bool:
    """The criterion of stage 2, from the relative velocity of the centres at t0."""
    if how.criterion == NEVER:
        return False
    state_b = state_now(motions_b, b_by.row, t0, box_centre(b))
    state_a = PointState()
    state_a.rotation = a_by.pose.rotation
    if a_by.rests == 0:
        state_a = state_now(motions_a, a_by.row, t0, box_centre(a))
    relative = state_a.velocity - state_b.velocity
    speed = wp.length(relative)
    if not speed < INFINITE:
        return True  # a motion that starts infinitely fast
    towards = relative * ZERO
    if speed > ZERO:
        towards = relative / speed
    reach_a = _reach(a, state_a.rotation, towards)
    reach_b = _reach(b, state_b.rotation, towards)
    if how.criterion == LITERAL:
        return reach_a + (t1 - t0) * speed > how.k * reach_b
    turning = state_a.spin * wp.float64(a.radius) + state_b.spin * wp.float64(b.radius)
    if speed == ZERO:
        reach_a = wp.float64(a.radius)
        reach_b = wp.float64(b.radius)
    return (t1 - t0) * (speed + turning) > how.k * (reach_a + reach_b)


@wp.func
def _reach(node: ObbNode, rotation: wp.mat33d, towards: wp.vec3d) -> wp.float64:
    """Half the extent of a box along a unit direction."""
    cosines = wp.transpose(rotation * box_axes(node)) * towards
    return wp.dot(box_half(node), wp.abs(cosines))

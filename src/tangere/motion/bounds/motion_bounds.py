"""Motion bounds: how far a moving body can get in a while, from its state at an instant and bounds of the whole step.

Question: along a fixed direction n, how fast can a point of the body come nearer, from now on?
Method:   with the pivot's velocity v and the body's angular velocity at the instant, a point at r from the pivot has
          n . x(t + h) >= n . x + h n . (v + w x r) - h^2 / 2 (acceleration + turn rho)       (second order)
          n . x(t + h) >= n . x + h (n . drift - swing - |n x axis| spin rho)                 (first order)
          where rho is the largest distance of the points meant to the axis through the pivot (to the pivot itself where
          the axis is not fixed). The second order is sharp near contact, the first one for long ways and fast spins.
Bodies:   a body's motion is the product of `count` motions from `first` on: more than one makes a chain, each moving in
          the frame of the one before (Redon 2002, section 3.2).
Time:     a turn that starts infinitely fast (COSINE) has bounds only in another parameter, t = sin^2(pi tau / 2). All
          rates here are per unit of tau; without such a motion t = tau.
Steady:   at constant rates all that does not change is computed once, and a state costs one sine and a few products:
          a = angle (begin + span t), and with the sine and 1 - cos of a
              R(t) = p + sin s + (1 - cos) k,    s = [axis] p,  k = [axis]^2 p,
              c(t) = at + t velocity + sin sway + (1 - cos) bow;
          the last two are the way of a pivot that is not on the axis: sin(a/2) / (w/2) Rot((a - w) / 2) arc, written
          out. Both functions of a come from half of it without cancellation, so dividing by a tiny angle costs no
          digits. Rest, twists and screws are such motions, and so is any part of them.
Known as: the motion bound of conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006), here with a second-order
          term; Rodrigues' rotation formula.
"""

from __future__ import annotations

import warp as wp

from tangere.motion.kinematics import (
    COSINE,
    STEADY,
    TANGENT,
    RigidMotion,
    pivot_at,
    pivot_velocity,
    progress_at,
    rates_at,
    rotated,
    rotation_about,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
_PI = wp.constant(wp.float64(3.141592653589793))
_HALF_PI = wp.constant(wp.float64(1.5707963267948966))
#: No bound, yet a number that can be multiplied.
_UNBOUNDED = wp.constant(wp.float64(1.0e60))
#: Bounds are computed with a few roundings; they are made larger by more than those.
_ROUNDED_UP = wp.constant(wp.float64(1.0 + 1.0e-12))
#: Smaller angles than this turn nothing by as much as a rounding, and are no divisors.
_NO_ANGLE = wp.constant(wp.float64(1.0e-60))
#: Larger ones are not brought back to a half turn to the last digit by lanes.
_LARGEST_ANGLE = wp.constant(wp.float64(1.0e9))


@wp.struct
class MotionBounds:
    """Bounds over the whole step, per unit of tau."""

    pivot: wp.vec3d  #: in the body's frame
    axis: wp.vec3d  #: of every turn, in the body's frame; zero where it is not fixed
    drift: wp.vec3d  #: middle velocity of the pivot, world
    swing: wp.float64  #: |velocity of the pivot - drift| stays below
    spin: wp.float64  #: largest angular speed
    acceleration: wp.float64  #: largest acceleration of the pivot
    turn: wp.float64  #: spin^2 + largest angular acceleration
    path: wp.float64  #: |where the pivot is| stays below, world
    fixed_axis: wp.bool


@wp.struct
class BodyState:
    """Pose and velocity at one instant, world; the pivot of `MotionBounds` is at `point`."""

    rotation: wp.mat33d
    point: wp.vec3d
    linear: wp.vec3d  #: velocity of the pivot
    angular: wp.vec3d


@wp.func
def reparametrised_time(smooth: wp.bool, tau: wp.float64) -> wp.float64:
    """The time t at the parameter tau: tau itself, or sin^2(pi tau / 2) if it is to be smooth."""
    t = tau
    if smooth:
        s = wp.sin(_HALF_PI * tau)
        t = s * s
    return t


@wp.func
def state_of(motions: wp.array[RigidMotion], first: int, count: int, smooth: wp.bool, tau: wp.float64) -> BodyState:
    """Pose and velocity of the body at tau."""
    state = BodyState()
    for k in range(count):
        inner = link_state(motions[first + k], smooth, tau)
        if k == 0:
            state = inner
        else:
            # The frame moves with its pivot; a point y in it is at point + rotation (y - pivot).
            r = state.rotation * (inner.point - motions[first + k - 1].pivot)
            state.linear += wp.cross(state.angular, r) + state.rotation * inner.linear
            state.point += r
            state.angular += state.rotation * inner.angular
            state.rotation = state.rotation * inner.rotation
    return state


@wp.func
def link_state(motion: RigidMotion, smooth: wp.bool, tau: wp.float64) -> BodyState:
    """Pose and velocity of one motion at tau, in the frame it moves in."""
    t = reparametrised_time(smooth, tau)
    pace = motion.span
    if smooth:
        pace *= _HALF_PI * wp.sin(_PI * tau)
    state = BodyState()
    way = progress_at(motion, t)
    state.rotation = motion.rotation
    if way[0] != _ZERO:
        state.rotation = rotation_about(motion.axis, way[0]) * motion.rotation
    rate = wp.vec2d(_ZERO, _ZERO)
    if motion.kind == COSINE:
        rate = _cosine_rates(motion, tau)
    else:
        rate = rates_at(motion, way[0], motion.begin + motion.span * t) * pace
    state.point = pivot_at(motion, way)
    state.linear = pivot_velocity(motion, way[0], rate)
    state.angular = motion.axis * rate[0]
    return state


@wp.func
def _cosine_rates(motion: RigidMotion, tau: wp.float64) -> wp.vec2d:
    """(a', b') of a COSINE motion in the smooth parameter, where the infinite rate at its start cancels.

    With s = begin + span sin^2(phi), phi = pi tau / 2, and sin(a/2) = sqrt(s) k, k = sin(w/2):
    a' = 2 k s' / (2 sqrt(s) cos(a/2)), s' = pi span sin(phi) cos(phi), cos^2(a/2) = 1 - s k^2.
    """
    k = wp.sin(_HALF * motion.angle)
    sine = wp.sin(_HALF_PI * tau)
    cosine = wp.cos(_HALF_PI * tau)
    s = motion.begin + motion.span * sine * sine
    pace = _PI * motion.span * sine * cosine
    upper = _PI * wp.sqrt(motion.span) * k * cosine  # where begin = 0
    if motion.begin > _ZERO:
        upper = k * pace / wp.sqrt(s)
    # 1 - s k^2 >= (1 - begin k^2) cos^2(phi): the quotient stays finite where both vanish
    lower = wp.max(_ONE - s * k * k, (_ONE - motion.begin * k * k) * cosine * cosine)
    rate = _ZERO
    if lower > _ZERO:
        rate = upper / wp.sqrt(lower)
    return wp.vec2d(rate, pace)


@wp.func
def motion_bounds_of(motions: wp.array[RigidMotion], first: int, count: int, smooth: wp.bool) -> MotionBounds:
    """Bounds of the body's motion over the whole step."""
    bounds = link_motion_bounds(motions[first], smooth)
    if count > 1:
        # Innermost outwards. A point at rho from the innermost pivot has: distance to the next frame's pivot below
        # far + rho, speed below speed + spin rho, acceleration below acceleration + turn rho.
        bounds = link_motion_bounds(motions[first + count - 1], smooth)
        speed = wp.length(bounds.drift) + bounds.swing
        far = _ZERO
        k = int(count - 2)
        while k >= 0:
            far += pivot_distance_bound(motions[first + k + 1]) + wp.length(motions[first + k].pivot)
            outer = link_motion_bounds(motions[first + k], smooth)
            bounds.acceleration += outer.acceleration + outer.turn * far + _TWO * outer.spin * speed
            bounds.turn += outer.turn + _TWO * outer.spin * bounds.spin
            speed += wp.length(outer.drift) + outer.swing + outer.spin * far
            bounds.spin += outer.spin
            k -= 1
        bounds.drift = wp.vec3d(_ZERO, _ZERO, _ZERO)
        bounds.swing = speed
        bounds.path = far + pivot_distance_bound(motions[first])
        bounds.axis = bounds.drift
        bounds.fixed_axis = False
    bounds.swing *= _ROUNDED_UP
    bounds.spin *= _ROUNDED_UP
    bounds.acceleration *= _ROUNDED_UP
    bounds.turn *= _ROUNDED_UP
    return bounds


@wp.func
def pivot_distance_bound(motion: RigidMotion) -> wp.float64:
    """How far the pivot can get from the origin of the frame the motion is in."""
    return wp.length(motion.origin) + wp.length(motion.velocity) + _HALF_PI * wp.length(motion.arc)


@wp.func
def link_motion_bounds(motion: RigidMotion, smooth: wp.bool) -> MotionBounds:
    """Bounds of one motion in the frame it moves in."""
    w = motion.angle
    span = motion.span
    last = motion.begin + span
    slide = wp.length(motion.velocity)
    arc = wp.length(motion.arc)
    bounds = MotionBounds()
    bounds.pivot = motion.pivot
    bounds.axis = wp.transpose(motion.rotation) * motion.axis
    bounds.fixed_axis = True
    bounds.path = pivot_distance_bound(motion)
    fastest = _ONE  # of t(tau): t' <= fastest, |t''| <= bent
    bent = _ZERO
    if smooth:
        fastest = _HALF_PI
        bent = _HALF * _PI * _PI
    if motion.kind == COSINE:
        k = wp.sin(_HALF * w)
        spin = wp.min(_PI * wp.sqrt(span / (_ONE - motion.begin * k * k)) * k, _PI)
        bend = _UNBOUNDED
        if motion.begin == _ZERO and last == _ONE:
            bend = wp.min(_HALF * _PI * _PI * wp.abs(wp.tan(_HALF * w)), _UNBOUNDED)
        bounds.spin = spin
        bounds.turn = spin * spin + bend
        bounds.drift = _HALF * fastest * span * motion.velocity
        bounds.swing = _HALF * fastest * span * slide + spin / w * arc
        bounds.acceleration = bent * span * slide + (bend + spin * spin) / w * arc
    else:
        slowest = _ONE  # b' lies between slowest and largest, b'' below rise
        largest = _ONE
        rise = _ZERO
        if motion.kind == TANGENT:
            slowest = rates_at(motion, _ZERO, motion.begin)[1]
            largest = rates_at(motion, _ZERO, last)[1]
            rise = w * largest * wp.tan(_HALF * w * last)
        speed = largest * slide + arc
        middle = rotated(motion.axis, w * (motion.begin + _HALF * span - _HALF), motion.arc)
        drift = (_HALF * (slowest + largest) * motion.velocity + middle) * span
        swing = span * (
            _HALF * (largest - slowest) * slide + _TWO * wp.sin(wp.min(_HALF * w * span, _PI) * _HALF) * arc
        )
        bounds.spin = w * span * fastest
        bounds.turn = bounds.spin * bounds.spin + w * span * bent
        bounds.acceleration = (rise * slide + w * arc) * span * span * fastest * fastest + speed * span * bent
        bounds.drift = drift
        bounds.swing = swing
        if smooth:  # the pace goes from 0 to fastest and back
            bounds.drift = _HALF * fastest * drift
            bounds.swing = _HALF * fastest * wp.length(drift) + fastest * swing
    return bounds


@wp.struct
class SteadyMotion:
    """A motion at constant rates, world; rates are per unit of t."""

    p: wp.mat33d
    s: wp.mat33d
    k: wp.mat33d
    at: wp.vec3d  #: of the pivot
    velocity: wp.vec3d
    sway: wp.vec3d
    bow: wp.vec3d
    spin: wp.vec3d  #: angular velocity
    axis: wp.vec3d  #: of the turn, unit
    half: wp.float64  #: half of the angle that is turned from t = 0 to t = 1 …
    half_begin: wp.float64  #: … and of what was turned before
    turns: wp.bool
    bends: wp.bool  #: whether there is sway and bow


@wp.func
def is_steady(motion: RigidMotion) -> bool:
    """Whether `steady_of` knows the motion."""
    return motion.kind == STEADY and motion.angle <= _LARGEST_ANGLE


@wp.func
def steady_of(motion: RigidMotion) -> SteadyMotion:
    """A steady motion with what does not change."""
    u = motion.axis
    w = motion.angle
    result = SteadyMotion()
    result.p = motion.rotation
    result.axis = u
    velocity = motion.velocity
    result.turns = w > _NO_ANGLE
    if result.turns:
        cross = wp.mat33d(_ZERO, -u[2], u[1], u[2], _ZERO, -u[0], -u[1], u[0], _ZERO)
        result.s = cross * motion.rotation
        result.k = cross * result.s
        result.half = _HALF * w * motion.span
        result.half_begin = _HALF * w * motion.begin
        result.spin = motion.axis * (w * motion.span)
        result.bends = wp.length_sq(motion.arc) > _ZERO
        if result.bends:
            sine = wp.sin(_HALF * w)
            cosine = wp.cos(_HALF * w)
            across = wp.cross(u, motion.arc)
            result.sway = (cosine * motion.arc - sine * across) / w
            result.bow = (sine * motion.arc + cosine * across) / w
    else:
        velocity = velocity + motion.arc
    result.at = motion.origin + motion.begin * velocity
    result.velocity = motion.span * velocity
    return result


@wp.func
def steady_within(motion: SteadyMotion, turned: wp.mat33d, arm: wp.vec3d, origin: wp.vec3d) -> SteadyMotion:
    """The motion of a frame that lies in the moving one: turned, its origin at `arm` from the pivot.

    `origin`: where places are counted from in the world.
    """
    result = motion
    result.at = motion.at - origin + motion.p * arm
    result.p = motion.p * turned
    if motion.turns:
        result.sway = motion.sway + motion.s * arm
        result.bow = motion.bow + motion.k * arm
        result.bends = wp.length_sq(result.sway) + wp.length_sq(result.bow) > _ZERO
        result.s = motion.s * turned
        result.k = motion.k * turned
    return result


@wp.func
def steady_state(motion: SteadyMotion, tau: wp.float64) -> BodyState:
    """Pose and velocity at a time."""
    state = BodyState()
    state.rotation = motion.p
    state.point = motion.at + tau * motion.velocity
    state.linear = motion.velocity
    state.angular = motion.spin
    if motion.turns:
        x = motion.half_begin + motion.half * tau
        half_sine = wp.sin(x)
        sine = _TWO * half_sine * wp.cos(x)
        versine = _TWO * half_sine * half_sine
        state.rotation = motion.p + sine * motion.s + versine * motion.k
        if motion.bends:
            state.point += sine * motion.sway + versine * motion.bow
            state.linear += (_TWO * motion.half) * ((_ONE - versine) * motion.sway + sine * motion.bow)
    return state

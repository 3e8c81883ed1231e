"""Steady motions with all that does not change computed once: a state then costs one sine and a few products.

Method:   at constant rates a = angle (begin + span t), and with the sine and 1 - cos of a
              R(t) = p + sin s + (1 - cos) k,    s = [axis] p,  k = [axis]^2 p,
              c(t) = at + t velocity + sin sway + (1 - cos) bow;
          the last two are the way of a pivot that is not on the axis: sin(a/2) / (w/2) Rot((a - w) / 2) arc, written
          out. Both functions of a come from half of it without cancellation, so dividing by a tiny angle costs no
          digits. Rest, twists and screws are such motions, and so is any part of them.
Others:   `motion_bounds` has the state of every kind, and of chains.
Known as: Rodrigues' rotation formula.
"""

from __future__ import annotations

import warp as wp

from tangere.motion.bounds.motion_bounds import BodyState
from tangere.motion.kinematics import STEADY, RigidMotion
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
#: Smaller angles than this turn nothing by as much as a rounding, and are no divisors.
_NO_ANGLE = wp.constant(wp.float64(1.0e-60))
#: Larger ones are not brought back to a half turn to the last digit by lanes.
_LARGEST_ANGLE = wp.constant(wp.float64(1.0e9))


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
    result.at = motion.origin
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

"""Rigid motions as kernels see them: where a body is and how fast it moves at a time in [0, 1].

Question: pose and velocity of a body at a time.
Method:   every kind is one formula. A point p of the body goes to

    x(t) = c(t) + R(t) (p - pivot),    R(t) = Rot(axis, a(t)) rotation,
    c(t) = origin + b(t) velocity + sin(a/2) / (w/2) Rot(axis, (a - w) / 2) arc,    w = angle,

with a(0) = b(0) = 0, a(1) = w, b(1) = 1; a and b make the kind. The last term is the way of a pivot that is not on the
axis of a screw: it needs no point of the axis, which runs to infinity as w goes to 0 (Redon 2002, section 2.3, has the
form with such a point). The time above is `begin + span * t`: a part of a motion is a motion.
Known as: screw motion (Chasles' theorem), with the choices of a and b of Redon 2002: STEADY in section 3.2, TANGENT in
section 2.4, COSINE in section 3.2.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Constant rates: a = w t, b = t. Rest, twists and screws.
STEADY = wp.constant(0)
#: a = w t, b = tan(w t / 2) / tan(w / 2): polynomial in tan(w t / 2).
TANGENT = wp.constant(1)
#: cos a = 1 - t + t cos w, b = t: no trigonometry to evaluate. The rate of a is infinite at t = 0.
COSINE = wp.constant(2)

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
#: Below this, sin(x) / x is 1 - x^2 / 6 to the last bit.
_SMALL = wp.constant(wp.float64(1.0e-4))
_SIXTH = wp.constant(wp.float64(1.0 / 6.0))


@wp.struct
class RigidMotion:
    """One rigid motion; lengths in metres, angles in radians, frames as in the module's text."""

    kind: wp.int32  #: STEADY, TANGENT or COSINE
    angle: wp.float64  #: turned from t = 0 to t = 1, >= 0
    axis: wp.vec3d  #: unit, world
    rotation: wp.mat33d  #: of the body at t = 0
    pivot: wp.vec3d  #: the point that goes along c(t), in the body's frame
    origin: wp.vec3d  #: where the pivot is at t = 0, world
    velocity: wp.vec3d  #: what b(t) multiplies
    arc: wp.vec3d  #: velocity of the pivot round the axis at half the angle (for a steady motion); zero on the axis
    begin: wp.float64  #: the part of the motion that is meant starts here …
    span: wp.float64  #: … and takes so much of it


@wp.struct
class RigidPose:
    """x = translation + rotation p."""

    rotation: wp.mat33d
    translation: wp.vec3d


@wp.struct
class RigidVelocity:
    """The point of the body that is at x moves with linear + angular x (x - point) per unit of t."""

    angular: wp.vec3d
    linear: wp.vec3d
    point: wp.vec3d  #: where the pivot is, world


@wp.func
def pose_at(motion: RigidMotion, t: wp.float64) -> RigidPose:
    """Where the body is at time t in [0, 1]."""
    way = progress_at(motion, t)
    rotation = rotation_about(motion.axis, way[0]) * motion.rotation
    pose = RigidPose()
    pose.rotation = rotation
    pose.translation = pivot_at(motion, way) - rotation * motion.pivot
    return pose


@wp.func
def velocity_at(motion: RigidMotion, t: wp.float64) -> RigidVelocity:
    """How the body moves at time t in [0, 1]; infinite at the start of a COSINE motion that turns."""
    way = progress_at(motion, t)
    rate = rates_at(motion, way[0], motion.begin + motion.span * t) * motion.span
    result = RigidVelocity()
    result.angular = motion.axis * rate[0]
    result.linear = pivot_velocity(motion, way[0], rate)
    result.point = pivot_at(motion, way)
    return result


@wp.func
def progress_at(motion: RigidMotion, t: wp.float64) -> wp.vec2d:
    """(a, b) at time t: the angle turned so far and the part of `velocity` done."""
    s = motion.begin + motion.span * t
    w = motion.angle
    way = wp.vec2d(w * s, s)
    if motion.kind == TANGENT:
        way = wp.vec2d(w * s, wp.tan(_HALF * w * s) / wp.tan(_HALF * w))
    if motion.kind == COSINE:
        # cos a = 1 - s (1 - cos w) without cancellation: sin^2(a/2) = s sin^2(w/2)
        half = wp.min(wp.sqrt(wp.max(s, _ZERO)) * wp.sin(_HALF * w), _ONE)
        way = wp.vec2d(_TWO * wp.asin(half), s)
        if s >= _ONE:
            way = wp.vec2d(w, s)
    return way


@wp.func
def rates_at(motion: RigidMotion, a: wp.float64, s: wp.float64) -> wp.vec2d:
    """(a', b') per unit of the whole motion's time, at its time s where the angle is a."""
    w = motion.angle
    rate = wp.vec2d(w, _ONE)
    if motion.kind == TANGENT:
        c = wp.cos(_HALF * w * s)
        rate = wp.vec2d(w, _HALF * w / (c * c * wp.tan(_HALF * w)))
    if motion.kind == COSINE:
        k = wp.sin(_HALF * w)
        rate = wp.vec2d(_TWO * k * k / wp.sin(a), _ONE)
    return rate


@wp.func
def pivot_at(motion: RigidMotion, way: wp.vec2d) -> wp.vec3d:
    """c where the angle is way[0] and the part of the velocity way[1]."""
    c = motion.origin + way[1] * motion.velocity
    if wp.dot(motion.arc, motion.arc) > _ZERO:
        a = way[0]
        w = motion.angle
        # sin(a/2) / (w/2), which is the part of the way done (a/w, or t at w = 0) where both are small
        done = way[1]
        if w > _ZERO:
            done = (a / w) * _sinc(_HALF * a)
        c += done * rotated(motion.axis, _HALF * (a - w), motion.arc)
    return c


@wp.func
def pivot_velocity(motion: RigidMotion, a: wp.float64, rate: wp.vec2d) -> wp.vec3d:
    """c' where the angle is a and (a', b') = rate."""
    v = rate[1] * motion.velocity
    if wp.dot(motion.arc, motion.arc) > _ZERO:
        w = motion.angle
        share = rate[1]
        if w > _ZERO:
            share = rate[0] / w
        v += share * rotated(motion.axis, a - _HALF * w, motion.arc)
    return v


@wp.func
def rotation_about(axis: wp.vec3d, angle: wp.float64) -> wp.mat33d:
    """The rotation by `angle` about the unit vector `axis`."""
    s = wp.sin(angle)
    h = wp.sin(_HALF * angle)
    k = _TWO * h * h  # 1 - cos
    x = axis[0]
    y = axis[1]
    z = axis[2]
    return wp.mat33d(
        _ONE - k * (y * y + z * z),
        k * x * y - s * z,
        k * x * z + s * y,
        k * x * y + s * z,
        _ONE - k * (x * x + z * z),
        k * y * z - s * x,
        k * x * z - s * y,
        k * y * z + s * x,
        _ONE - k * (x * x + y * y),
    )


@wp.func
def rotated(axis: wp.vec3d, angle: wp.float64, v: wp.vec3d) -> wp.vec3d:
    """v turned by `angle` about the unit vector `axis`."""
    across = wp.cross(axis, v)
    h = wp.sin(_HALF * angle)
    return v + wp.sin(angle) * across + _TWO * h * h * wp.cross(axis, across)


@wp.func
def _sinc(x: wp.float64) -> wp.float64:
    """sin(x) / x, 1 at 0."""
    y = _ONE - x * x * _SIXTH
    if wp.abs(x) > _SMALL:
        y = wp.sin(x) / x
    return y

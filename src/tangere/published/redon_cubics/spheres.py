"""Whether a sphere under a tangent screw ever touches a resting one: a quartic, and the cubic of its extrema.

|b - a(s)|^2 <= R^2 times 1 + k^2 s^2 is a quartic in s. Only whether it gets below zero matters: it does if it is at
either end, or at a root of its derivative. Before that come tests that need neither: the path lies between two
cylinders about the axis and between two planes across it (Redon 2002, section 2.5).
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.cubic_candidates import candidate, extrema
from tangere.published.redon_cubics.path import PathPoint, ScrewPath
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: How a test ended: odd verdicts are overlaps.
REJECTED_PATH = wp.constant(0)  #: the path stays clear of the sphere: no overlap
ACCEPTED_START = wp.constant(1)  #: overlap at the start …
ACCEPTED_END = wp.constant(3)  #: … or at the end
BY_QUADRATIC = wp.constant(4)  #: a pure turn or translation; 5 if they overlap
BY_QUARTIC = wp.constant(6)  #: the general case; 7 if they overlap

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
_FOUR = wp.constant(wp.float64(4.0))
#: Rounding of the quartic, as a part of the squares that went into it.
_ROUNDING = wp.constant(wp.float64(64.0 * 2.0**-53))


@wp.struct
class SphereQuartic:
    """c4 s^4 + c3 s^3 + c2 s^2 + c1 s + c0 <= 0 where the spheres overlap [m^2]."""

    cubic: wp.vec4d  #: c4, c3, c2, c1
    constant: wp.float64  #: c0
    slack: wp.float64  #: bound of its rounding errors


@wp.func
def sphere_quartic(path: ScrewPath, a: PathPoint, b: wp.vec3d, radii: wp.float64) -> SphereQuartic:
    """The quartic of a moving centre a and a resting one b, whose radii add up to `radii` [m]."""
    k = path.tangent
    q = b - a.place
    along = path.slide * wp.dot(path.axis, q)
    gap = wp.dot(q, q) - radii * radii
    speed = wp.dot(a.velocity, a.velocity)
    quartic = SphereQuartic()
    quartic.cubic = wp.vec4d(
        k * k * path.slide * path.slide,
        -_TWO * k * k * along,
        path.slide * path.slide + k * k * gap - _TWO * k * wp.dot(q, wp.cross(path.axis, a.velocity)) + speed,
        -_TWO * (along + wp.dot(q, a.velocity)),
    )
    quartic.constant = gap
    size = wp.length(q) + wp.abs(path.slide) + wp.sqrt(speed)
    from_origin = wp.length(b) + wp.length(a.place)
    quartic.slack = _ROUNDING * (_ONE + k) * (_ONE + k) * (size * size + radii * radii + size * from_origin)
    return quartic


@wp.func
def sphere_verdict(
    path: ScrewPath, a: PathPoint, b: wp.vec3d, radii: wp.float64, end: wp.float64, prefilter: bool
) -> int:
    """How the test for s in [0, end] ended; odd if the spheres overlap. Without `prefilter` always by the quartic."""
    if prefilter:
        if _path_stays_clear(path, a, b, radii):
            return REJECTED_PATH
    quartic = sphere_quartic(path, a, b, radii)
    if prefilter:
        if quartic.constant <= quartic.slack:
            return ACCEPTED_START
        if _value(quartic, end) <= quartic.slack:
            return ACCEPTED_END
        if quartic.cubic[0] == _ZERO and quartic.cubic[1] == _ZERO:
            return BY_QUADRATIC + int(_quadratic_gets_below(quartic, end))
    return BY_QUARTIC + int(_quartic_gets_below(quartic, end))


@wp.func
def _path_stays_clear(path: ScrewPath, a: PathPoint, b: wp.vec3d, radii: wp.float64) -> bool:
    """Whether b is off the range of a along the axis, or the distances from the axis differ by more than the radii.

    2 k times the distance of a point from the axis is the length of its v: nothing is divided by k.
    """
    slack = _ROUNDING * (wp.length(b) + wp.length(a.place) + radii)
    z = wp.dot(path.axis, b - a.place)
    if z < wp.min(_ZERO, path.slide) - radii - slack or z > wp.max(_ZERO, path.slide) + radii + slack:
        return True
    v = path.velocity + _TWO * path.tangent * wp.cross(path.axis, b - path.origin)
    apart = wp.abs(wp.length(v) - wp.length(a.velocity))
    return apart > _TWO * path.tangent * (radii + slack) + _ROUNDING * (wp.length(v) + wp.length(a.velocity))


@wp.func
def _value(quartic: SphereQuartic, s: wp.float64) -> wp.float64:
    c = quartic.cubic
    return (((c[0] * s + c[1]) * s + c[2]) * s + c[3]) * s + quartic.constant


@wp.func
def _quadratic_gets_below(quartic: SphereQuartic, end: wp.float64) -> bool:
    """Whether a parabola that is positive at both ends has its lowest point between them, below zero; no division."""
    square = quartic.cubic[2]
    linear = quartic.cubic[3]
    between = square > _ZERO and linear < _ZERO and -linear < _TWO * square * end
    return between and _FOUR * square * (quartic.constant - quartic.slack) <= linear * linear


@wp.func
def _quartic_gets_below(quartic: SphereQuartic, end: wp.float64) -> bool:
    if quartic.constant <= quartic.slack or _value(quartic, end) <= quartic.slack:
        return True
    c = quartic.cubic
    slope = wp.vec4d(_FOUR * c[0], wp.float64(3.0) * c[1], _TWO * c[2], c[3])
    breaks = extrema(slope)
    candidates = int(7)  # a variable: the loop is not unrolled
    for i in range(candidates):
        s = candidate(slope, breaks, i, quartic.slack)
        if s <= end:
            if _value(quartic, s) <= quartic.slack:
                return True
    return False

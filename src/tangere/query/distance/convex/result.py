"""What the narrow phase of two convex bodies answers, in a's frame."""

from __future__ import annotations

import warp as wp

from tangere.query.distance.convex.supports import ConvexShape
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

FAR = wp.constant(real(1.0e300))
_ZERO = wp.constant(real(0.0))
#: Roundings of a gap along a direction: two supports, a turn, a shift and three products of each.
_ROUNDING = wp.constant(real(32.0 * 2.0**-53))


@wp.struct
class Closest:
    """Nearest points of two cores, and bounds of the distance of the bodies.

    While the cores are apart the bounds are signed: below zero they tell how deep the margins overlap.
    """

    lower: wp.float64  #: the distance is not smaller: a gap along `normal`, less its rounding [m]
    upper: wp.float64  #: … and not larger: two points of the bodies [m]
    normal: wp.vec3d  #: unit, pushes a away from b
    point_a: wp.vec3d  #: of a's core, in a's frame
    point_b: wp.vec3d  #: of b's core, in a's frame
    meet: wp.bool  #: the cores have a point in common, up to rounding
    steps: wp.int32


@wp.struct
class KeptCorners:
    """The corners of both cores with which a search ended: where one of the same bodies a little later begins."""

    count: wp.int32  #: up to 3; 0: it begins anew
    a0: wp.vec3d  #: of a, in a's frame
    a1: wp.vec3d
    a2: wp.vec3d
    b0: wp.vec3d  #: of b, in b's own frame
    b1: wp.vec3d
    b2: wp.vec3d


@wp.struct
class Sought:
    """When an answer is good enough: any of these."""

    tolerance: wp.float64  #: upper - lower [m]
    relative: wp.float64  #: … and this part of what lower is more than `beyond`
    beyond: wp.float64  #: [m]
    enough: wp.float64  #: … or that lower is more than this [m]


@wp.func
def sought_to(tolerance: real) -> Sought:
    """Bounds that differ by no more than `tolerance` [m]."""
    sought = Sought()
    sought.tolerance = tolerance
    sought.enough = FAR
    return sought


@wp.func
def is_found(lower: real, upper: real, margins: real, sought: Sought) -> bool:
    """Whether bounds of the distance of the cores are good enough."""
    spare = lower - margins
    error = sought.tolerance + sought.relative * wp.max(spare - sought.beyond, _ZERO)
    return upper - lower <= error or spare > sought.enough


@wp.func
def gap_rounding(a: ConvexShape, b: ConvexShape, offset: vec) -> real:
    """What rounding may do to a gap along a direction [m]."""
    along = wp.abs(offset[0]) + wp.abs(offset[1]) + wp.abs(offset[2])
    return _ROUNDING * (along + a.reach + b.reach + a.radius + b.radius)

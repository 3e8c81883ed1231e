"""Which last intervals of the elementary tests hold a contact: as the thesis decides, or soundly.

The thesis asks whether the meeting point lies in both features at the start of the interval, and can miss contacts near
the end of an edge (Redon 2002, section 3.3.2); `mixed.narrow_phase` asks for the distance, and does not.
"""

from __future__ import annotations

import warp as wp

from tangere.query.first_contact.mixed.narrow_phase import (
    IntervalTouch,
    MovingCorners,
    Precision,
    first_touch,
    first_touch_by,
)
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

ZERO = wp.constant(wp.float64(0.0))


@wp.func
def touch_by_membership(
    a: MovingCorners,
    b: MovingCorners,
    features: int,
    t0: wp.float64,
    t1: wp.float64,
    precision: Precision,
    printed: int,
) -> IntervalTouch:
    """The earliest contact in [t0, t1] among the given feature pairs."""
    touch = IntervalTouch()
    if printed == 1:
        touch = first_touch_as_printed(a, b, features, t0, t1, precision)
    else:
        touch = first_touch(a, b, features, t0, t1, precision)
    return touch


@wp.func
def _lines_meet_inside(p0: wp.vec3d, p1: wp.vec3d, q0: wp.vec3d, q1: wp.vec3d, reach: wp.float64) -> bool:
    """Whether the nearest points of two lines lie in the segments; never for parallel ones, as printed."""
    e = p1 - p0
    f = q1 - q0
    n = wp.cross(e, f)
    squared = wp.dot(n, n)
    u = wp.dot(wp.cross(q0 - p0, f), n)
    w = wp.dot(wp.cross(q0 - p0, e), n)
    return squared > ZERO and u >= ZERO and u <= squared and w >= ZERO and w <= squared


@wp.func
def _projects_inside(v: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, reach: wp.float64) -> bool:
    """Whether v lies over the triangle."""
    n = wp.cross(b - a, c - a)
    on_a = wp.dot(wp.cross(c - b, v - b), n)
    on_b = wp.dot(wp.cross(a - c, v - c), n)
    on_c = wp.dot(wp.cross(b - a, v - a), n)
    return wp.dot(n, n) > ZERO and on_a >= ZERO and on_b >= ZERO and on_c >= ZERO


first_touch_as_printed = first_touch_by(_lines_meet_inside, _projects_inside)

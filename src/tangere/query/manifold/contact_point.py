"""A point where a body and the ground touch, and lists of such points as CUDA threads want them.

A thread that reads or writes a record of its own moves 16 bytes at a time here: the compiler would take 8, as it does
not know that lists begin at a multiple of 16, which all that Warp makes do.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["ContactPoint", "four_at", "half_of", "put_four", "put_touch", "touch_at"]


@wp.struct
class ContactPoint:
    """A point where a body and the ground touch or nearly do; relative to the body's origin."""

    point: wp.vec3d  #: on the body
    depth: wp.float64  #: along the normal; negative is a gap. What reduces a group reads no more than these two
    normal: wp.vec3d  #: unit, out of the ground
    code: wp.int32  #: which features meet and which part of the body this is
    feature: wp.int32  #: number of the ground's vertex, edge or face


@wp.func_native("""
    const auto& touch = touches.data[at];
#if defined(__CUDA_ARCH__)
    const double2* pairs = reinterpret_cast<const double2*>(&touch) + 2 * half;
    const double2 one = pairs[0], two = pairs[1];
    return wp::vec_t<4, wp::float64>(one.x, one.y, two.x, two.y);
#else
    wp::vec_t<4, wp::float64> found;
    __builtin_memcpy(&found, reinterpret_cast<const char*>(&touch) + 32 * half, 32);
    return found;
#endif
""")
def half_of(touches: wp.array[ContactPoint], at: int, half: int) -> wp.vec4d:
    """Point and depth of a touch (0), or its normal and the rest (1), as bits of a number."""
    ...


@wp.func
def touch_at(touches: wp.array[ContactPoint], at: int) -> ContactPoint:
    """A touch of a list."""
    where = half_of(touches, at, 0)
    what = half_of(touches, at, 1)
    touch = ContactPoint()
    touch.point = wp.vec3d(where[0], where[1], where[2])
    touch.depth = where[3]
    touch.normal = wp.vec3d(what[0], what[1], what[2])
    rest = wp.cast(what[3], wp.int64)
    touch.code = int(rest)
    touch.feature = int(rest >> wp.int64(32))
    return touch


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    double2* pairs = reinterpret_cast<double2*>(&touches.data[at]);
    pairs[0] = make_double2(touch.point[0], touch.point[1]);
    pairs[1] = make_double2(touch.point[2], touch.depth);
    pairs[2] = make_double2(touch.normal[0], touch.normal[1]);
    pairs[3] = make_double2(touch.normal[2], __hiloint2double(touch.feature, touch.code));
#else
    touches.data[at] = touch;
#endif
""")
def put_touch(touches: wp.array[ContactPoint], at: int, touch: ContactPoint):
    """Put a touch into a list."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<int4*>(&rows.data[at]) = make_int4(four[0], four[1], four[2], four[3]);
#else
    rows.data[at] = four;
#endif
""")
def put_four(rows: wp.array[wp.vec4i], at: int, four: wp.vec4i):
    """Write four numbers."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const int4 four = *reinterpret_cast<const int4*>(&rows.data[at]);
    return wp::vec_t<4, wp::int32>(four.x, four.y, four.z, four.w);
#else
    return rows.data[at];
#endif
""")
def four_at(rows: wp.array[wp.vec4i], at: int) -> wp.vec4i:
    """Read four numbers."""
    ...

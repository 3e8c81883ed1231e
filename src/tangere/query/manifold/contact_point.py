"""A point where a body and the ground contact, and lists of such points as CUDA threads want them.

A thread that reads or writes a record of its own moves 16 bytes at a time here: the compiler would take 8, as it does
not know that lists begin at a multiple of 16, which all that Warp makes do.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class ContactPoint:
    """A point where a body and the ground contact or nearly do; relative to the body's origin."""

    point: wp.vec3d  #: on the body
    depth: wp.float64  #: along the normal; negative is a gap. What reduces a group reads no more than these two
    normal: wp.vec3d  #: unit, out of the ground
    code: wp.int32  #: which features meet and which part of the body this is
    feature: wp.int32  #: number of the ground's vertex, edge or face


@wp.func_native("""
    const auto& contact = contacts.data[at];
#if defined(__CUDA_ARCH__)
    const double2* pairs = reinterpret_cast<const double2*>(&contact) + 2 * half;
    const double2 one = pairs[0], two = pairs[1];
    return wp::vec_t<4, wp::float64>(one.x, one.y, two.x, two.y);
#else
    wp::vec_t<4, wp::float64> found;
    __builtin_memcpy(&found, reinterpret_cast<const char*>(&contact) + 32 * half, 32);
    return found;
#endif
""")
def half_of(contacts: wp.array[ContactPoint], at: int, half: int) -> wp.vec4d:
    """Point and depth of a contact (0), or its normal and the rest (1), as bits of a number."""
    ...


@wp.func
def contact_point_at(contacts: wp.array[ContactPoint], at: int) -> ContactPoint:
    """A contact of a list."""
    where = half_of(contacts, at, 0)
    what = half_of(contacts, at, 1)
    contact = ContactPoint()
    contact.point = wp.vec3d(where[0], where[1], where[2])
    contact.depth = where[3]
    contact.normal = wp.vec3d(what[0], what[1], what[2])
    rest = wp.cast(what[3], wp.int64)
    contact.code = int(rest)
    contact.feature = int(rest >> wp.int64(32))
    return contact


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    double2* pairs = reinterpret_cast<double2*>(&contacts.data[at]);
    pairs[0] = make_double2(contact.point[0], contact.point[1]);
    pairs[1] = make_double2(contact.point[2], contact.depth);
    pairs[2] = make_double2(contact.normal[0], contact.normal[1]);
    pairs[3] = make_double2(contact.normal[2], __hiloint2double(contact.feature, contact.code));
#else
    contacts.data[at] = contact;
#endif
""")
def store_contact_point(contacts: wp.array[ContactPoint], at: int, contact: ContactPoint):
    """Put a contact into a list."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<int4*>(&rows.data[at]) = make_int4(four[0], four[1], four[2], four[3]);
#else
    rows.data[at] = four;
#endif
""")
def store_four(rows: wp.array[wp.vec4i], at: int, four: wp.vec4i):
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

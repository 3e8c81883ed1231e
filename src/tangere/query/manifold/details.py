"""A contact point of a body with the ground, rows of such, and the contact record made of them.

Lists of contact points are as CUDA threads want them. A thread that reads or writes a record of its own moves 16 bytes
at a time here: the compiler would take 8, as it does not know that lists begin at a multiple of 16, which all that Warp
makes do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts, Kind, columns_of, empty_columns
from tangere.runtime import SOUND, Arrays, device_of, launch, like, sort_pairs

wp.set_module_options(SOUND)

#: Arrays of so many bytes are kept on their device.
SMALL = 64
#: Rows that NumPy takes apart faster than a launch does.
FEW = 4096
#: Kinds of contact and whether the vertex is the ground's, by the lowest two bits of a contact's code.
_KINDS = np.array([Kind.VERTEX_FACE, Kind.EDGE_EDGE, Kind.VERTEX_FACE, Kind.OVERLAP], np.uint8)
_VERTEX_ON = np.array([0, 0, 1, 0], np.uint8)
#: The same, a byte each.
_KIND_BYTES = wp.constant(int(_KINDS.view("<u4")[0]))
_VERTEX_ON_BYTES = wp.constant(int(_VERTEX_ON.view("<u4")[0]))


@wp.struct
class ContactPoint:
    """A point where a body and the ground contact or nearly do; relative to the body's origin."""

    point: wp.vec3d  #: on the body
    depth: wp.float64  #: along the normal; negative is a gap. What reduces a group reads no more than these two
    normal: wp.vec3d  #: unit, out of the ground
    code: wp.int32  #: which features meet and which part of the body this is
    feature: wp.int32  #: number of the ground's vertex, edge or face


@wp.struct
class ManifoldRow:
    """One contact of a body with the ground, world frame."""

    query: wp.int32
    code: wp.int32
    feature: wp.int32
    group: wp.int32  #: of like normals; it also fills a gap, which NumPy would close when it joins rows
    gap: wp.float64
    point: wp.vec3d
    normal: wp.vec3d


@wp.struct
class Columns:
    """What a contact record is made of, besides zeros."""

    query: wp.array[int]
    point_a: wp.array[wp.vec3d]
    point_b: wp.array[wp.vec3d]
    normal: wp.array[wp.vec3d]
    gap: wp.array[wp.float64]
    body_b: wp.array[int]
    feature_a: wp.array[int]
    feature_b: wp.array[int]
    kind: wp.array[wp.uint8]
    vertex_on: wp.array[wp.uint8]
    key: wp.array[wp.int64]


@wp.func
def row_of(contact: ContactPoint, query: int, group: int, origin: wp.vec3d) -> ManifoldRow:
    row = ManifoldRow()
    row.query = query
    row.code = contact.code
    row.feature = contact.feature
    row.group = group
    row.gap = -contact.depth
    row.point = origin + contact.point
    row.normal = contact.normal
    return row


def contacts_of(rows: wp.array, worlds: np.ndarray | None, poses: Arrays, ordered: bool) -> Contacts:
    """The contact record, by rising body. Its columns are of the library that the poses are of.

    Args:
        ordered: whether the rows are by rising body already.
    """
    if len(rows) <= FEW and isinstance(poses, np.ndarray):
        return few_contacts(rows.numpy(), worlds)
    device = device_of(rows)
    columns = empty_columns(Columns, len(rows), device)
    given = on_device(np.zeros(1, np.int32) if worlds is None else worlds, wp.int32, device)
    launch(_take_apart, len(rows), [rows, given], [columns], device=device)
    return record_of([columns], poses, ordered)


def record_of(parts: list[Any], poses: Arrays, ordered: bool) -> Contacts:
    """The contact record of `Columns`, one part after the other."""
    columns = parts[0] if len(parts) == 1 else _joined(parts)
    if not ordered:
        columns = _by_rising_body(columns)
    count, device = len(columns.query), device_of(columns.query)
    out = like(poses)
    ready = {name: out(column) for name, column in columns_of(columns).items()}
    if isinstance(poses, np.ndarray):
        time, weights = np.zeros(count), np.zeros((count, 4))
    else:
        time = out(wp.zeros(count, dtype=wp.float64, device=device))
        weights = out(wp.zeros((count, 4), dtype=wp.float64, device=device))
    return Contacts(time=time, weights=weights, body_a=ready["query"], **ready)


def first_of(columns: Any, count: int) -> Any:
    """The first rows of columns that have room for more."""
    some: Any = Columns()
    for name, column in columns_of(columns).items():
        setattr(some, name, column[:count])
    return some


def _joined(parts: list[Any]) -> Any:
    """All columns, in order, without a way over the host."""
    device = device_of(parts[0].query)
    whole, at = empty_columns(Columns, sum(len(part.query) for part in parts), device), 0
    in_order = wp.empty(0, dtype=wp.int32, device=device)
    for part in parts:
        launch(_move, len(part.query), [part, in_order, at], [whole], device=device)
        at += len(part.query)
    return whole


def _by_rising_body(columns: Any) -> Any:
    count, device = len(columns.query), device_of(columns.query)
    numbers = wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device)
    _, order = sort_pairs(columns.query, numbers)
    moved = empty_columns(Columns, count, device)
    launch(_move, count, [columns, order, 0], [moved], device=device)
    return moved


def on_device(data: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    """An array on a device, to be read only: what one query sends there the next one sends again if it is small."""
    if data.nbytes <= SMALL:
        return _kept_on_device(data.tobytes(), data.dtype, dtype, device.alias)
    return wp.array(data, dtype=dtype, device=device)


@lru_cache(maxsize=256)
def _kept_on_device(data: bytes, numpy_dtype: np.dtype, dtype: Any, device: str) -> wp.array:
    return wp.array(np.frombuffer(data, numpy_dtype), dtype=dtype, device=device)


def few_contacts(rows: np.ndarray, worlds: np.ndarray | None) -> Contacts:
    """The contact record of a few rows; copies all it needs."""
    query = rows["query"]
    if len(rows) and (query[1:] < query[:-1]).any():
        rows = rows[np.argsort(query, kind="stable")]
        query = rows["query"]
    query, what, part = query.copy(), rows["code"] & 3, rows["code"] >> 2
    gap, normal, point, feature = (
        rows["gap"].copy(),
        rows["normal"].copy(),
        rows["point"].copy(),
        rows["feature"].copy(),
    )
    kind, vertex_on = _KINDS[what], _VERTEX_ON[what]
    return Contacts(
        query=query,
        time=np.zeros(len(rows)),
        point_a=point,
        point_b=point - gap[:, None] * normal,
        normal=normal,
        gap=gap,
        body_a=query,
        body_b=np.zeros(len(rows), np.int32) if worlds is None else worlds[query],
        feature_a=part,
        feature_b=feature,
        weights=np.zeros((len(rows), 4)),
        kind=kind,
        vertex_on=vertex_on,
        key=(what.astype(np.int64) << 58) | (part.astype(np.int64) << 32) | feature,
    )


@wp.func
def write_row(columns: Columns, i: int, row: ManifoldRow, world: int):
    """Write a contact with the ground of a world into the columns."""
    what = row.code & 3
    part = row.code >> 2
    columns.query[i] = row.query
    columns.point_a[i] = row.point
    columns.point_b[i] = row.point - row.gap * row.normal
    columns.normal[i] = row.normal
    columns.gap[i] = row.gap
    columns.body_b[i] = world
    columns.feature_a[i] = part
    columns.feature_b[i] = row.feature
    columns.kind[i] = wp.uint8((_KIND_BYTES >> (8 * what)) & 255)
    columns.vertex_on[i] = wp.uint8((_VERTEX_ON_BYTES >> (8 * what)) & 255)
    columns.key[i] = (wp.int64(what) << wp.int64(58)) | (wp.int64(part) << wp.int64(32)) | wp.int64(row.feature)


@wp.kernel
def _take_apart(first: int, rows: wp.array[ManifoldRow], worlds: wp.array[int], columns: Columns):
    i = first + wp.tid()
    row = rows[i]
    write_row(columns, i, row, worlds[wp.min(row.query, worlds.shape[0] - 1)])


@wp.kernel
def _move(first: int, part: Columns, order: wp.array[int], begin: int, whole: Columns):
    """Put a part into the whole, from `begin` on, in an order; an empty one is that of the part."""
    i = first + wp.tid()
    at = i
    if order.shape[0] > 0:
        at = order[i]
    i += begin
    whole.query[i] = part.query[at]
    whole.point_a[i] = part.point_a[at]
    whole.point_b[i] = part.point_b[at]
    whole.normal[i] = part.normal[at]
    whole.gap[i] = part.gap[at]
    whole.body_b[i] = part.body_b[at]
    whole.feature_a[i] = part.feature_a[at]
    whole.feature_b[i] = part.feature_b[at]
    whole.kind[i] = part.kind[at]
    whole.vertex_on[i] = part.vertex_on[at]
    whole.key[i] = part.key[at]


@wp.func
def contact_point(point: wp.vec3d, normal: wp.vec3d, depth: wp.float64, code: int, feature: int) -> ContactPoint:
    """A contact point of these parts."""
    contact = ContactPoint()
    contact.point = point
    contact.depth = depth
    contact.normal = normal
    contact.code = code
    contact.feature = feature
    return contact


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

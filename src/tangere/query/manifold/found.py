"""What a sweep found, as rows, and the contact record made of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts import Contacts, Kind
from tangere.query.manifold.groups import Touch
from tangere.runtime import SOUND, Arrays, device_of, launch, like, sort_pairs

wp.set_module_options(SOUND)

__all__ = ["Row", "contacts_of", "few_contacts", "on_device", "row_of"]

#: Arrays of so many bytes are kept on their device.
SMALL = 64
#: Rows that NumPy takes apart faster than a launch does.
FEW = 4096
#: Kinds of contact and whether the vertex is the ground's, by the lowest two bits of a touch's code.
_KINDS = np.array([Kind.VERTEX_FACE, Kind.EDGE_EDGE, Kind.VERTEX_FACE, Kind.OVERLAP], np.uint8)
_VERTEX_ON = np.array([0, 0, 1, 0], np.uint8)


@wp.struct
class Row:
    """One contact of a body with the ground, world frame."""

    query: wp.int32
    code: wp.int32
    feature: wp.int32
    group: wp.int32  #: of like normals; it also fills a gap, which NumPy would close when it joins rows
    gap: wp.float64
    point: wp.vec3d
    normal: wp.vec3d


@wp.func
def row_of(touch: Touch, query: int, group: int, origin: wp.vec3d) -> Row:
    row = Row()
    row.query = query
    row.code = touch.code
    row.feature = touch.feature
    row.group = group
    row.gap = -touch.depth
    row.point = origin + touch.point
    row.normal = touch.normal
    return row


def contacts_of(rows: wp.array, worlds: np.ndarray | None, poses: Arrays, ordered: bool) -> Contacts:
    """The contact record, by rising body. Its columns are Warp arrays if the poses are, else NumPy.

    Args:
        ordered: whether the rows are by rising body already.
    """
    if len(rows) <= FEW and not isinstance(poses, wp.array):
        return few_contacts(rows.numpy(), worlds)
    count, device = len(rows), device_of(rows)
    types = {
        "query": wp.int32,
        "point_a": wp.vec3d,
        "point_b": wp.vec3d,
        "normal": wp.vec3d,
        "gap": wp.float64,
        "body_b": wp.int32,
        "feature_a": wp.int32,
        "feature_b": wp.int32,
        "kind": wp.uint8,
        "vertex_on": wp.uint8,
        "key": wp.int64,
    }
    columns = {name: wp.empty(count, dtype=dtype, device=device) for name, dtype in types.items()}
    order = wp.empty(0 if ordered else count, dtype=wp.int32, device=device)
    if not ordered:
        queries = wp.empty(count, dtype=wp.int32, device=device)
        launch(_queries, count, [rows], [queries, order], device=device)
        _, order = sort_pairs(queries, order)
    given = on_device(np.zeros(1, np.int32) if worlds is None else worlds, wp.int32, device)
    kinds, sides = (on_device(table, wp.uint8, device) for table in (_KINDS, _VERTEX_ON))
    launch(_take_apart, count, [rows, order, given, kinds, sides], list(columns.values()), device=device)
    out = like(poses)
    ready = {name: out(column) for name, column in columns.items()}
    zeros = wp.zeros(count, dtype=wp.float64, device=device)
    weights = wp.zeros((count, 4), dtype=wp.float64, device=device)
    return Contacts(time=out(zeros), weights=out(weights), body_a=ready["query"], **ready)


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


@wp.kernel
def _queries(first: int, rows: wp.array[Row], query: wp.array[int], number: wp.array[int]):
    i = first + wp.tid()
    query[i] = rows[i].query
    number[i] = i


@wp.kernel
def _take_apart(
    first: int,
    rows: wp.array[Row],
    order: wp.array[int],  # empty where the rows are in order
    worlds: wp.array[int],
    kinds: wp.array[wp.uint8],
    sides: wp.array[wp.uint8],
    query: wp.array[int],
    point_a: wp.array[wp.vec3d],
    point_b: wp.array[wp.vec3d],
    normal: wp.array[wp.vec3d],
    gap: wp.array[wp.float64],
    body_b: wp.array[int],
    feature_a: wp.array[int],
    feature_b: wp.array[int],
    kind: wp.array[wp.uint8],
    vertex_on: wp.array[wp.uint8],
    key: wp.array[wp.int64],
):
    i = first + wp.tid()
    at = i
    if order.shape[0] > 0:
        at = order[i]
    row = rows[at]
    what = row.code & 3
    part = row.code >> 2
    query[i] = row.query
    point_a[i] = row.point
    point_b[i] = row.point - row.gap * row.normal
    normal[i] = row.normal
    gap[i] = row.gap
    body_b[i] = worlds[wp.min(row.query, worlds.shape[0] - 1)]
    feature_a[i] = part
    feature_b[i] = row.feature
    kind[i] = kinds[what]
    vertex_on[i] = sides[what]
    key[i] = (wp.int64(what) << wp.int64(58)) | (wp.int64(part) << wp.int64(32)) | wp.int64(row.feature)

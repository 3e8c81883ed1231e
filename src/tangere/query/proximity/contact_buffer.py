"""Pairs of features that are near: their keys, and the contacts made of them, on the device.

Contacts are in the order of their keys (`pair_keys`); points and normals are made when asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces
from tangere.geometry.closest_points import edges_offset, face_offset
from tangere.query.contacts.record import Contacts, Kind
from tangere.query.proximity.details import ContactTable
from tangere.query.proximity.engine import engine_of
from tangere.query.proximity.pair_keys import VERTEX_FACE, bases_of, body_of, key_bits, number_bits, split_key
from tangere.runtime import SOUND, NonCopyable, device_of, launch

wp.set_module_options(SOUND)

#: Where numbers stand in the key of a contact.
KEY_SHIFT = wp.constant(wp.int64(29))
#: Eights of contacts, some 0.2 us each, worth a thread that is awake; so few are not worth waking one.
FILL_GRAIN, FEW_EIGHTS = 64, 512


@dataclass(frozen=True)
class ContactBuffer(NonCopyable, instead="take its contacts, which are in main memory"):
    """n contacts on the device; n is `len()`. Columns may be longer: only their first n rows count."""

    layout: Layout
    positions: wp.array  #: (v,) vec3d [m]: where they were found
    count: int
    number: wp.array  #: (1,) int64: n, for kernels
    pair_keys: wp.array  #: (n,) int64, rising
    quads: wp.array  #: (n,) vec4i: the four vertices: v f0 f1 f2, or a0 a1 b0 b1
    weights: wp.array  #: (n,) vec4d of the four vertices, none negative
    gap: wp.array  #: (n,) float64 [m]
    features: wp.array  #: (n,) vec2i: vertex and face, or two edges, as each mesh counts them
    kind: wp.array  #: (n,) uint8

    @staticmethod
    def empty(layout: Layout, positions: wp.array, pair_keys: wp.array, number: wp.array, count: int) -> ContactBuffer:
        """Room for what keys stand for."""
        types = (wp.vec4i, wp.vec4d, wp.float64, wp.vec2i, wp.uint8)
        columns = (wp.empty(len(pair_keys), dtype=dtype, device=pair_keys.device) for dtype in types)
        return ContactBuffer(layout, positions, count, number, pair_keys, *columns)

    def with_count(self, count: int) -> ContactBuffer:
        """The same columns, of which so many rows count: a tenth of the time of `dataclasses.replace`."""
        near = object.__new__(ContactBuffer)
        near.__dict__.update(self.__dict__, count=count)
        return near

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"ContactBuffer({self.summary()})"

    def summary(self) -> str:
        """How many there are, of which kinds, and where, in a few words."""
        device = device_of(self.kind)
        if not self.count or not device.is_cpu:  # a text is no reason to fetch them
            return f"{self.count or 'none'}, on {device}"
        kinds = zip(*np.unique(self.kind.numpy()[: self.count], return_counts=True), strict=True)
        return f"{self.count}: {', '.join(f'{count} {Kind(kind)}' for kind, count in kinds)}; on {device}"

    @cached_property
    def table(self) -> ContactTable:
        """The columns for kernels, which write as many rows as `number` says."""
        table, layout = ContactTable(), self.layout
        for column in ("number", "pair_keys", "positions", "quads", "weights", "gap", "features", "kind"):
            setattr(table, column, getattr(self, column))
        table.bits, table.bases = number_bits(layout), bases_of(layout)
        table.faces, table.edges = layout.faces, layout.edges
        return table

    @cached_property
    def details(self) -> ContactColumns:
        """Points, normals and who they belong to, made when first asked for."""
        device = device_of(self.pair_keys)
        types = (wp.vec3d, wp.vec3d, wp.vec3d, wp.int64, wp.vec2i, wp.uint8)
        details = ContactColumns(*(wp.empty(self.count, dtype=dtype, device=device) for dtype in types))
        outputs = [details.point_a, details.point_b, details.normal, details.key, details.bodies, details.vertex_on]
        if self.count:
            launch(_detail, self.count, [self.table], outputs, device=device, grain=4096)
        return details

    @cached_property
    def contacts(self) -> Contacts:
        """The same in main memory, in canonical order."""

        def rows(column: wp.array) -> np.ndarray:
            if len(column) == self.count:
                return column.numpy()
            some = column[: self.count].numpy()
            return some.copy() if device_of(column).is_cpu else some  # longer ones are used again

        details = self.details
        bodies, features, side = rows(details.bodies), rows(self.features), rows(details.vertex_on)
        later = np.flatnonzero(side)
        if len(later):
            features = features.copy()
            features[later] = features[later, ::-1]
        return Contacts.of(
            point_a=rows(details.point_a),
            point_b=rows(details.point_b),
            normal=rows(details.normal),
            gap=rows(self.gap),
            body_a=bodies[:, 0],
            body_b=bodies[:, 1],
            feature_a=features[:, 0],
            feature_b=features[:, 1],
            weights=rows(self.weights),
            kind=rows(self.kind),
            vertex_on=side,
            key=rows(details.key),
        )


@dataclass(frozen=True)
class ContactColumns:
    """What else `Contacts` says of n contacts, on the device."""

    point_a: wp.array  #: (n,) vec3d [m]
    point_b: wp.array
    normal: wp.array  #: (n,) vec3d, unit, pushes a away from b
    key: wp.array  #: (n,) int64
    bodies: wp.array  #: (n,) vec2i: a and b
    vertex_on: wp.array  #: (n,) uint8


def describe(surfaces: Surfaces, pair_keys: wp.array) -> ContactBuffer:
    """The contacts of named pairs of features, in canonical order."""
    layout, count = surfaces.layout, len(pair_keys)
    number = wp.array(
        np.array([count], np.int64), dtype=wp.int64, device=surfaces.device, copy=not surfaces.device.is_cpu
    )
    engine = engine_of(surfaces.device)
    near = ContactBuffer.empty(layout, surfaces.positions, engine.sort_keys(pair_keys, key_bits(layout)), number, count)
    if count:
        kernel, dim, arguments = engine.fill_launch(near)
        launch(kernel, dim, arguments, device=surfaces.device, grain=FILL_GRAIN if dim > FEW_EIGHTS else FEW_EIGHTS)
    return near


@wp.func
def normal_between(offset: wp.vec3d, across: wp.vec3d) -> wp.vec3d:
    """The unit vector along the offset; where the points coincide across the features, else along x."""
    length = wp.length(offset)
    if length > wp.float64(0.0):
        return offset / length
    area = wp.length(across)
    if area > wp.float64(0.0):
        return across / area
    return wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))


@wp.kernel
def _detail(
    first: int,
    table: ContactTable,
    point_a: wp.array[wp.vec3d],
    point_b: wp.array[wp.vec3d],
    normal: wp.array[wp.vec3d],
    key: wp.array[wp.int64],
    bodies: wp.array[wp.vec2i],
    vertex_on: wp.array[wp.uint8],
):
    k = first + wp.tid()
    parts = split_key(table.pair_keys[k], table.bits)
    one = parts[1]
    other = parts[2]
    code = wp.int64(parts[0])
    side = parts[0] & 1
    w = table.weights[k]
    p = table.positions[table.quads[k][0]]
    a = table.positions[table.quads[k][1]]
    b = table.positions[table.quads[k][2]]
    c = table.positions[table.quads[k][3]]
    if code >> wp.int64(1) == VERTEX_FACE:
        offset = face_offset(p, a, b, c, wp.vec3d(w[1], w[2], w[3]))
        out = normal_between(offset, wp.cross(b - a, c - a))
        here = p
        there = p - offset
        pair = wp.vec2i(body_of(table.bases, 0, one), body_of(table.bases, 2, other))
    else:
        offset = edges_offset(p, a, b, c, wp.vec2d(w[1], w[3]))
        out = normal_between(offset, wp.cross(a - p, c - b))
        here = w[0] * p + w[1] * a
        there = w[2] * b + w[3] * c
        pair = wp.vec2i(body_of(table.bases, 1, one), body_of(table.bases, 1, other))
    # Two meshes have numbers of their own; among more, the numbers of the scene keep keys apart.
    if table.bases.shape[1] > 3:
        key[k] = (((code << KEY_SHIFT) | wp.int64(one)) << KEY_SHIFT) | wp.int64(other)
    else:
        key[k] = (((code << KEY_SHIFT) | wp.int64(table.features[k][0])) << KEY_SHIFT) | wp.int64(table.features[k][1])
    if side == 1:
        point_a[k] = there
        point_b[k] = here
        normal[k] = -out
        bodies[k] = wp.vec2i(pair[1], pair[0])
    else:
        point_a[k] = here
        point_b[k] = there
        normal[k] = out
        bodies[k] = pair
    vertex_on[k] = wp.uint8(side)

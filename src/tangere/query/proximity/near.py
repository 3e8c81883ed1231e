"""Pairs of features that are near: their names, and the contacts made of them, on the device.

A name is one integer: kind and side, number of the first feature (the vertex, or the smaller edge), number of the
second. Names in rising order are the canonical order of contacts, whatever tree, grid, thread or device found them
(specs/leonard-deformable-gpu C14).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp

from tangere.partition.pipeline_surfaces import Layout, Surfaces
from tangere.query.contacts import Contacts, Kind
from tangere.query.proximity.primitives import centred_on_edges, edges_offset, face_offset, nearest_on_face
from tangere.runtime import SOUND, device_of, launch, sort_pairs

wp.set_module_options(SOUND)

__all__ = ["EDGE_EDGE", "VERTEX_FACE", "Near", "describe", "name_of", "number_bits"]

VERTEX_FACE = wp.constant(wp.int64(Kind.VERTEX_FACE))
EDGE_EDGE = wp.constant(wp.int64(Kind.EDGE_EDGE))
#: Kind (2 bits) and side (1 bit) above two numbers.
CODE_BITS = 3
#: Where numbers stand in the key of a contact.
KEY_SHIFT = wp.constant(wp.int64(29))


@dataclass(frozen=True)
class Near:
    """n contacts, as `Contacts` describes them, on the device."""

    surfaces: Surfaces
    names: wp.array  #: (n,) int64, rising
    quads: wp.array  #: (n,) vec4i: the four vertices: v f0 f1 f2, or a0 a1 b0 b1
    weights: wp.array  #: (n,) vec4d of the four vertices
    point_a: wp.array  #: (n,) vec3d [m]
    point_b: wp.array
    normal: wp.array  #: (n,) vec3d, unit, pushes a away from b
    gap: wp.array  #: (n,) float64 [m]
    key: wp.array  #: (n,) int64
    bodies: wp.array  #: (n,) vec2i
    features: wp.array  #: (n,) vec2i
    kind: wp.array  #: (n,) uint8
    vertex_on: wp.array  #: (n,) uint8

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def contacts(self) -> Contacts:
        """The same in main memory, in canonical order."""
        bodies, features = self.bodies.numpy().reshape(-1, 2), self.features.numpy().reshape(-1, 2)
        return Contacts(
            query=np.zeros(len(self), np.int32),
            time=np.zeros(len(self)),
            point_a=self.point_a.numpy().reshape(-1, 3),
            point_b=self.point_b.numpy().reshape(-1, 3),
            normal=self.normal.numpy().reshape(-1, 3),
            gap=self.gap.numpy(),
            body_a=bodies[:, 0],
            body_b=bodies[:, 1],
            feature_a=features[:, 0],
            feature_b=features[:, 1],
            weights=self.weights.numpy().reshape(-1, 4),
            kind=self.kind.numpy(),
            vertex_on=self.vertex_on.numpy(),
            key=self.key.numpy(),
        )


def number_bits(layout: Layout) -> int:
    """Bits that hold every number of a feature."""
    return max(int(base[-1]) for base in (layout.vertex_base, layout.edge_base, layout.face_base)).bit_length()


def describe(surfaces: Surfaces, names: wp.array) -> Near:
    """The contacts of named pairs of features, in canonical order."""
    layout, device, count = surfaces.layout, surfaces.device, len(names)
    bits = number_bits(layout)
    names = _in_order(names, 2 * bits + CODE_BITS)

    def column(dtype) -> wp.array:
        return wp.empty(count, dtype=dtype, device=device)

    bases = np.stack([layout.vertex_base, layout.edge_base, layout.face_base]).astype(np.int32)
    near = Near(
        surfaces,
        names=names,
        quads=column(wp.vec4i),
        weights=column(wp.vec4d),
        point_a=column(wp.vec3d),
        point_b=column(wp.vec3d),
        normal=column(wp.vec3d),
        gap=column(wp.float64),
        key=column(wp.int64),
        bodies=column(wp.vec2i),
        features=column(wp.vec2i),
        kind=column(wp.uint8),
        vertex_on=column(wp.uint8),
    )
    inputs = [names, wp.int64(bits), wp.array(bases, dtype=wp.int32, device=device)]
    inputs += [layout.faces, layout.edges, layout.body, surfaces.positions]
    outputs = [near.quads, near.weights, near.point_a, near.point_b, near.normal, near.gap]
    outputs += [near.key, near.bodies, near.features, near.kind, near.vertex_on]
    launch(_describe, count, inputs, outputs, device=device, grain=4096)
    return near


def _in_order(names: wp.array, bits: int) -> wp.array:
    """Names, which are all different, in rising order."""
    device = device_of(names)
    if device.is_cpu:  # NumPy sorts integers with vector instructions: 5 ms where a radix sort takes 25
        return wp.array(np.sort(names.numpy()), dtype=wp.int64, device=device, copy=False)
    return sort_pairs(names, wp.empty(len(names), dtype=wp.int32, device=device), bits=bits)[0]


@wp.func
def name_of(kind: wp.int64, side: int, one: int, other: int, bits: wp.int64) -> wp.int64:
    """The name of a pair; side is 1 where the vertex belongs to the later body."""
    code = (kind << wp.int64(1)) | wp.int64(side)
    return (((code << bits) | wp.int64(one)) << bits) | wp.int64(other)


@wp.func
def body_of(bases: wp.array2d[int], row: int, number: int) -> int:
    """The mesh that a feature belongs to, by its number."""
    low = int(0)
    high = bases.shape[1] - 1
    while high - low > 1:
        middle = (low + high) / 2
        if bases[row, middle] <= number:
            low = middle
        else:
            high = middle
    return low


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
def _describe(
    first: int,
    names: wp.array[wp.int64],
    bits: wp.int64,
    bases: wp.array2d[int],
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    body: wp.array[int],
    positions: wp.array[wp.vec3d],
    quads: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    point_a: wp.array[wp.vec3d],
    point_b: wp.array[wp.vec3d],
    normal: wp.array[wp.vec3d],
    gap: wp.array[wp.float64],
    key: wp.array[wp.int64],
    bodies: wp.array[wp.vec2i],
    features: wp.array[wp.vec2i],
    kind: wp.array[wp.uint8],
    vertex_on: wp.array[wp.uint8],
):
    k = first + wp.tid()
    mask = (wp.int64(1) << bits) - wp.int64(1)
    name = names[k]
    other = int(name & mask)
    one = int((name >> bits) & mask)
    code = name >> (wp.int64(2) * bits)
    side = int(code & wp.int64(1))
    unit = wp.float64(1.0)
    if code >> wp.int64(1) == VERTEX_FACE:
        quad = wp.vec4i(one, faces[other, 0], faces[other, 1], faces[other, 2])
        p = positions[quad[0]]
        a = positions[quad[1]]
        b = positions[quad[2]]
        c = positions[quad[3]]
        w = nearest_on_face(p, a, b, c)
        offset = face_offset(p, a, b, c, w)
        across = wp.cross(b - a, c - a)
        weights[k] = wp.vec4d(unit, w[0], w[1], w[2])
        here = p
        there = p - offset
        body_one = body_of(bases, 0, one)
        body_other = body[other]
        one_base = bases[0, body_one]
        other_base = bases[2, body_other]
    else:
        quad = wp.vec4i(edges[one, 0], edges[one, 1], edges[other, 0], edges[other, 1])
        p = positions[quad[0]]
        a = positions[quad[1]]
        b = positions[quad[2]]
        c = positions[quad[3]]
        at = centred_on_edges(p, a, b, c)
        offset = edges_offset(p, a, b, c, at)
        across = wp.cross(a - p, c - b)
        weights[k] = wp.vec4d(unit - at[0], at[0], unit - at[1], at[1])
        here = (unit - at[0]) * p + at[0] * a
        there = (unit - at[1]) * b + at[1] * c
        body_one = body_of(bases, 1, one)
        body_other = body_of(bases, 1, other)
        one_base = bases[1, body_one]
        other_base = bases[1, body_other]
    quads[k] = quad
    gap[k] = wp.length(offset)
    out = normal_between(offset, across)
    one = one - one_base
    other = other - other_base
    # Two meshes have numbers of their own; among more, the numbers of the scene keep keys apart.
    if bases.shape[1] > 3:
        key[k] = (code << (wp.int64(2) * KEY_SHIFT)) | (wp.int64(one + one_base) << KEY_SHIFT)
        key[k] = key[k] | wp.int64(other + other_base)
    else:
        key[k] = (code << (wp.int64(2) * KEY_SHIFT)) | (wp.int64(one) << KEY_SHIFT) | wp.int64(other)
    if side == 1:
        point_a[k] = there
        point_b[k] = here
        normal[k] = -out
        bodies[k] = wp.vec2i(body_other, body_one)
        features[k] = wp.vec2i(other, one)
    else:
        point_a[k] = here
        point_b[k] = there
        normal[k] = out
        bodies[k] = wp.vec2i(body_one, body_other)
        features[k] = wp.vec2i(one, other)
    kind[k] = wp.uint8(code >> wp.int64(1))
    vertex_on[k] = wp.uint8(side)

"""Which face, edge or point of a convex body faces a direction?

A feature lies on a plane across the direction if it leans by less than FLAT_ANGLE, as on ground. Faces are lists of
sides that go round them seen from outside, in any order; a disc is its middle and two radii across each other.
Known as: the support feature of a body, for contact manifolds by clipping.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.distance.convex.narrow_phase import rotation_of, translation_of
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.query.manifold.narrow_phase.contact import FLAT_ANGLE
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
#: What a feature is, beside a face with so many sides.
POINT = wp.constant(0)
LINE = wp.constant(1)
DISC = wp.constant(-1)


@wp.struct
class NearPair:
    """Two bodies that are near: what is known before their features are."""

    row: wp.int32  #: of the question
    gap: wp.float64  #: of the nearest points; negative inside [m]
    size: wp.float64  #: of both bodies [m]
    margin_a: wp.float64  #: around a's core [m]
    margin_b: wp.float64
    normal: wp.vec3d  #: unit, pushes a away from b
    point_a: wp.vec3d  #: of a's surface, relative to a's origin, in the world's axes
    point_b: wp.vec3d


@wp.struct
class Features:
    """The features of n bodies, relative to the origins of the first bodies, in the world's axes."""

    count: wp.array[int]  #: (n,) sides of a face; POINT, LINE or DISC
    number: wp.array[int]  #: (n,) which feature of the body it is
    normal: wp.array[wp.vec3d]  #: (n,) of the plane of a face or disc
    starts: wp.array2d[wp.vec3d]  #: (n, most) of sides; [0] is the point, or the middle of a disc
    ends: wp.array2d[wp.vec3d]  #: (n, most) of sides; [0] and [1] are the radii of a disc


@wp.struct
class HullFaces:
    """Tables of a hull: see `shape.analytic`."""

    edges: wp.array[wp.vec4i]
    planes: wp.array[wp.vec4d]


def most_sides(kind: int, hull: Any) -> int:
    """Of any face of bodies of a kind; `hull` is their table."""
    return int(np.bincount(hull.edges[:, 2:].ravel()).max()) if kind == ConvexKind.HULL else 4


def empty_features(count: int, most: int, device: wp.Device) -> Any:
    """Room for the features of `count` bodies with at most so many sides."""
    listed: Any = Features()
    listed.count, listed.number = (wp.zeros(count, dtype=wp.int32, device=device) for _ in "ab")
    listed.normal = wp.empty(count, dtype=wp.vec3d, device=device)
    listed.starts, listed.ends = (wp.empty((count, most), dtype=wp.vec3d, device=device) for _ in "ab")
    return listed


@wp.func
def place_side(f: Features, i: int, slot: int, turned: wp.mat33d, at: vec, start: vec, end: vec) -> int:
    """Write one side, from the body's frame."""
    f.starts[i, slot] = at + turned * start
    f.ends[i, slot] = at + turned * end
    return slot + 1


@wp.func
def place_disc(f: Features, i: int, turned: wp.mat33d, at: vec, height: real, radius: real, normal: vec):
    """Write a disc across z."""
    f.count[i] = DISC
    f.normal[i] = turned * normal
    f.starts[i, 0] = at + turned * vec(_ZERO, _ZERO, height)
    f.ends[i, 0] = turned * vec(radius, _ZERO, _ZERO)
    f.ends[i, 1] = turned * vec(_ZERO, radius, _ZERO)


@wp.func
def place_line(f: Features, i: int, turned: wp.mat33d, at: vec, start: vec, end: vec, number: int):
    f.count[i] = LINE
    f.number[i] = number
    place_side(f, i, 0, turned, at, start, end)


@wp.func
def place_point(f: Features, i: int, turned: wp.mat33d, at: vec, point: vec, number: int):
    f.count[i] = POINT
    f.number[i] = number
    f.starts[i, 0] = at + turned * point


@wp.func
def _point(
    f: Features, i: int, s: ConvexShape, points: wp.array[wp.vec3d], h: HullFaces, turned: wp.mat33d, at: vec, d: vec
):
    place_point(f, i, turned, at, vec(_ZERO, _ZERO, _ZERO), 0)


@wp.func
def _segment(
    f: Features, i: int, s: ConvexShape, points: wp.array[wp.vec3d], h: HullFaces, turned: wp.mat33d, at: vec, d: vec
):
    end = vec(_ZERO, _ZERO, s.half[2])
    if wp.abs(d[2]) <= FLAT_ANGLE:
        place_line(f, i, turned, at, -end, end, 0)
    elif d[2] > _ZERO:
        place_point(f, i, turned, at, end, 1)
    else:
        place_point(f, i, turned, at, -end, 2)


@wp.func
def _box(
    f: Features, i: int, s: ConvexShape, points: wp.array[wp.vec3d], h: HullFaces, turned: wp.mat33d, at: vec, d: vec
):
    corner = vec(_ZERO, _ZERO, _ZERO)
    number = int(0)
    free = int(0)
    along = int(0)
    facing = int(0)
    scale = int(1)
    for k in range(3):
        if wp.abs(d[k]) <= FLAT_ANGLE:
            free += 1
            along = k
        else:
            facing = k
            corner[k] = wp.where(d[k] < _ZERO, -s.half[k], s.half[k])
            number += scale * wp.where(d[k] < _ZERO, 2, 1)
        scale *= 3
    f.number[i] = number
    if free == 0:
        place_point(f, i, turned, at, corner, number)
    elif free == 1:
        way = vec(_ZERO, _ZERO, _ZERO)
        way[along] = s.half[along]
        place_line(f, i, turned, at, corner - way, corner + way, number)
    else:
        normal = vec(_ZERO, _ZERO, _ZERO)
        normal[facing] = wp.where(d[facing] < _ZERO, -_ONE, _ONE)
        one = vec(_ZERO, _ZERO, _ZERO)
        one[(facing + 1) % 3] = s.half[(facing + 1) % 3]
        other = vec(_ZERO, _ZERO, _ZERO)
        other[(facing + 2) % 3] = s.half[(facing + 2) % 3] * normal[facing]
        f.count[i] = 4
        f.normal[i] = turned * normal
        slot = place_side(f, i, 0, turned, at, corner - one - other, corner + one - other)
        slot = place_side(f, i, slot, turned, at, corner + one - other, corner + one + other)
        slot = place_side(f, i, slot, turned, at, corner + one + other, corner - one + other)
        slot = place_side(f, i, slot, turned, at, corner - one + other, corner - one - other)


@wp.func
def _cylinder(
    f: Features, i: int, s: ConvexShape, points: wp.array[wp.vec3d], h: HullFaces, turned: wp.mat33d, at: vec, d: vec
):
    around = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    up = d[2] > _ZERO
    top = wp.where(up, s.half[2], -s.half[2])
    if around <= FLAT_ANGLE:
        f.number[i] = wp.where(up, 1, 2)
        place_disc(f, i, turned, at, top, s.radius, vec(_ZERO, _ZERO, wp.where(up, _ONE, -_ONE)))
    else:
        rim = vec(d[0] * s.radius / around, d[1] * s.radius / around, _ZERO)
        way = vec(_ZERO, _ZERO, s.half[2])
        if wp.abs(d[2]) <= FLAT_ANGLE:
            place_line(f, i, turned, at, rim - way, rim + way, 3)
        else:
            place_point(f, i, turned, at, rim + vec(_ZERO, _ZERO, top), wp.where(up, 4, 5))


@wp.func
def _cone(
    f: Features, i: int, s: ConvexShape, points: wp.array[wp.vec3d], h: HullFaces, turned: wp.mat33d, at: vec, d: vec
):
    around = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    height = _TWO * s.half[2]
    slope = wp.sqrt(height * height + s.radius * s.radius)
    tip = vec(_ZERO, _ZERO, s.half[2])
    if around <= FLAT_ANGLE and d[2] < _ZERO:
        f.number[i] = 1
        place_disc(f, i, turned, at, -s.half[2], s.radius, vec(_ZERO, _ZERO, -_ONE))
    else:
        # The side faces (height, radius) / slope, outward and up.
        off = (around * s.radius - d[2] * height) / slope
        facing = (around * height + d[2] * s.radius) / slope
        rim = vec(s.radius, _ZERO, -s.half[2])
        if around > _ZERO:
            rim = vec(d[0] * s.radius / around, d[1] * s.radius / around, -s.half[2])
        if wp.abs(off) <= FLAT_ANGLE and facing > _ZERO and around > _ZERO:
            place_line(f, i, turned, at, rim, tip, 2)
        elif off < _ZERO:
            place_point(f, i, turned, at, tip, 3)
        else:
            place_point(f, i, turned, at, rim, 4)


@wp.func
def _hull(
    f: Features, i: int, s: ConvexShape, points: wp.array[wp.vec3d], h: HullFaces, turned: wp.mat33d, at: vec, d: vec
):
    face = int(0)
    most = real(-2.0)
    for k in range(h.planes.shape[0]):
        here = h.planes[k][0] * d[0] + h.planes[k][1] * d[1] + h.planes[k][2] * d[2]
        if here > most:
            most = here
            face = k
    if most * most >= _ONE - FLAT_ANGLE * FLAT_ANGLE and most > _ZERO:
        normal = vec(h.planes[face][0], h.planes[face][1], h.planes[face][2])
        middle = vec(_ZERO, _ZERO, _ZERO)
        sides = int(0)
        for k in range(h.edges.shape[0]):
            if h.edges[k][2] == face or h.edges[k][3] == face:
                middle += points[s.first + h.edges[k][0]] + points[s.first + h.edges[k][1]]
                sides += 1
        middle = middle / real(2 * sides)
        slot = int(0)
        for k in range(h.edges.shape[0]):
            if h.edges[k][2] == face or h.edges[k][3] == face:
                start = points[s.first + h.edges[k][0]]
                end = points[s.first + h.edges[k][1]]
                if wp.dot(wp.cross(end - start, middle - start), normal) > _ZERO:
                    slot = place_side(f, i, slot, turned, at, start, end)
                else:
                    slot = place_side(f, i, slot, turned, at, end, start)
        f.count[i] = sides
        f.number[i] = face
        f.normal[i] = turned * normal
    else:
        corner = s.first + 0
        most = wp.dot(points[corner], d)
        for k in range(s.first + 1, s.first + s.count):
            here = wp.dot(points[k], d)
            if here > most:
                most = here
                corner = k
        best = int(-1)
        least = FLAT_ANGLE + _ZERO
        for k in range(h.edges.shape[0]):
            if s.first + h.edges[k][0] == corner or s.first + h.edges[k][1] == corner:
                way = points[s.first + h.edges[k][1]] - points[s.first + h.edges[k][0]]
                lean = wp.abs(wp.dot(way, d)) / wp.length(way)
                if lean <= least:
                    least = lean
                    best = k
        if best >= 0:
            start = points[s.first + h.edges[best][0]]
            end = points[s.first + h.edges[best][1]]
            place_line(f, i, turned, at, start, end, h.planes.shape[0] + best)
        else:
            number = h.planes.shape[0] + h.edges.shape[0] + corner - s.first
            place_point(f, i, turned, at, points[corner], number)


@cache
def feature_kernel(kind: int) -> wp.Kernel:
    """The features of the bodies of a kind in `chosen` pairs that face `toward` times the normals of the pairs."""
    place = (_point, _segment, _box, _cylinder, _cone, _hull)[kind]

    @wp.kernel(module="unique", module_options=SOUND)
    def find_features(
        first: int,
        chosen: wp.array[int],
        pairs: wp.array[NearPair],
        shapes: wp.array[ConvexShape],
        points: wp.array[wp.vec3d],
        hull: HullFaces,
        poses: wp.array[wp.mat44d],
        origins: wp.array[wp.mat44d],
        toward: real,
        features: Features,
    ):
        i = first + wp.tid()
        pair = pairs[chosen[i]]
        row = pair.row
        shape = shapes[wp.min(row, shapes.shape[0] - 1)]
        pose = poses[wp.min(row, poses.shape[0] - 1)]
        turned = rotation_of(pose)
        at = translation_of(pose) - translation_of(origins[wp.min(row, origins.shape[0] - 1)])
        place(features, i, shape, points, hull, turned, at, (toward * pair.normal) * turned)

    return find_features

"""A polytope inside the difference of two cores, that grows corner by corner.

Question: how near to the origin may the surface be, by the faces, and which of them does a new corner see?
Method:   faces are triangles that go round their corners seen from outside. A face is as near as the nearest of its
          corners along its normal; one too thin for a normal takes the direction of its nearest point. What a corner
          sees is taken away, and its horizon, the sides that two such faces do not share, is joined with the corner.
Sound:    faces stay a closed surface whichever of them are said to be seen, since the horizon is the boundary of what
          is taken away. So each direction from an origin within meets a face, and no point of a face is nearer to the
          origin than its distance, whatever rounding does to its normal.
Known as: the polytope of EPA (van den Bergen 2001).
"""

from __future__ import annotations

import warp as wp

from tangere.query.manifold.convex.cpu.triangle_planes import place_four_planes
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
#: The distance of a face that need not grow.
SETTLED = wp.constant(real(1.0e300))
#: Triangles whose sine at a corner is less than this are too thin for a normal.
_THIN = wp.constant(real(1.0e-5))
#: Cones that are kept of each polytope.
KEPT = wp.constant(8)
#: Bits of the number of a corner.
_BITS = wp.constant(16)


@wp.struct
class Polytopes:
    """Scratch of each index of a launch; of each of n there is room for so many corners, twice as many faces."""

    room: wp.int32  #: for corners
    corners: wp.array[wp.vec3d]  #: support differences
    own: wp.array[wp.vec3d]  #: the points of a that they come from
    faces: wp.array[wp.vec3i]  #: corners round them, seen from outside
    planes: wp.array[wp.vec4d]  #: outward unit normals, and how far the farthest corner is along them
    distances: wp.array[wp.float64]  #: … and the nearest one; SETTLED where that does not matter
    sides: wp.array[int]  #: of the horizon; then the faces that join them with a corner
    gone: wp.array[int]  #: faces that a corner sees
    cones: wp.array[wp.vec4d]  #: (KEPT n,) axes and cosines of directions that reach no less than the depth


@wp.func
def place_faces(p: Polytopes, base: int, start: int, count: int):
    """Write the planes and distances of the faces that `sides` lists, of a polytope whose corners begin at `base`."""
    k = int(0)
    while k < count:
        left = place_four_planes(
            p.corners, base, p.faces, p.planes, p.distances, start, p.sides, start + k, wp.min(count - k, 4), _THIN
        )
        lane = int(0)
        while left != 0:
            if left & 1 == 1:
                place_face(p, base, start + p.sides[start + k + lane])
            left = left >> 1
            lane += 1
        k += 4


@wp.func
def place_face(p: Polytopes, base: int, slot: int):
    """Write the plane and the distance of a face."""
    face = p.faces[slot]
    x = p.corners[base + face[0]]
    y = p.corners[base + face[1]]
    z = p.corners[base + face[2]]
    to_y = y - x
    to_z = z - x
    normal = wp.cross(to_y, to_z)
    squared = wp.length_sq(normal)
    if squared > _THIN * _THIN * wp.length_sq(to_y) * wp.length_sq(to_z):
        normal = normal * (_ONE / wp.sqrt(squared))
    else:
        normal = direction_of_thin(normal, x, y, z)
    along_x = wp.dot(normal, x)
    along_y = wp.dot(normal, y)
    along_z = wp.dot(normal, z)
    top = wp.max(along_x, wp.max(along_y, along_z))
    p.planes[slot] = wp.vec4d(normal[0], normal[1], normal[2], top)
    p.distances[slot] = wp.min(along_x, wp.min(along_y, along_z))


@wp.func
def nearest_face(p: Polytopes, start: int, faces: int) -> int:
    best = int(0)
    least = p.distances[start]
    k = int(1)
    while k < faces:
        here = p.distances[start + k]
        if here < least:
            least = here
            best = k
        k += 1
    return best


@wp.func
def direction_of_thin(normal: vec, one: vec, two: vec, three: vec) -> vec:
    """Of the point of a triangle's sides that is nearest to the origin; its own normal where that is the origin."""
    best = nearest_on_side(one, two)
    other = nearest_on_side(two, three)
    if wp.length_sq(other) < wp.length_sq(best):
        best = other
    other = nearest_on_side(three, one)
    if wp.length_sq(other) < wp.length_sq(best):
        best = other
    if not wp.length_sq(best) > _ZERO:
        best = normal
    if not wp.length_sq(best) > _ZERO:  # any will do: the distance is along it
        best = vec(_ZERO, _ZERO, _ONE)
    return wp.normalize(best)


@wp.func
def nearest_on_side(start: vec, end: vec) -> vec:
    """The point of a line between two others that is nearest to the origin."""
    way = end - start
    squared = wp.length_sq(way)
    part = real(0.0)
    if squared > _ZERO:
        part = wp.clamp(-wp.dot(start, way) / squared, _ZERO, _ONE)
    return start + part * way


@wp.func
def add_side(p: Polytopes, first: int, count: int, start: int, end: int) -> int:
    """Add a side to the horizon, or take its opposite away; how many there are, or would be if there were room."""
    room = 2 * p.room
    opposite = (end << _BITS) | start
    k = int(0)
    while k < wp.min(count, room):
        if p.sides[first + k] == opposite:
            p.sides[first + k] = p.sides[first + wp.min(count, room) - 1]
            return count - 1
        k += 1
    if count < room:
        p.sides[first + count] = (start << _BITS) | end
    return count + 1


@wp.func
def start_of(side: int) -> int:
    return side >> _BITS


@wp.func
def end_of(side: int) -> int:
    return side & ((1 << _BITS) - 1)


@wp.func
def shares_of(point: vec, a: vec, b: vec, c: vec) -> vec:
    """Weights of three corners for a point of their plane, clamped to the triangle."""
    ab = b - a
    ac = c - a
    ap = point - a
    bb = wp.dot(ab, ab)
    bc = wp.dot(ab, ac)
    cc = wp.dot(ac, ac)
    area = bb * cc - bc * bc
    if not area > _ZERO:
        return vec(_ONE, _ZERO, _ZERO)
    v = wp.clamp((cc * wp.dot(ab, ap) - bc * wp.dot(ac, ap)) / area, _ZERO, _ONE)
    w = wp.clamp((bb * wp.dot(ac, ap) - bc * wp.dot(ab, ap)) / area, _ZERO, _ONE - v)
    return vec(_ONE - v - w, v, w)


@wp.func
def is_settled(p: Polytopes, i: int, slot: int, distance: real, depth: real, kept: int) -> bool:
    """Whether no direction in which a face may be nearer than the depth is outside one of the cones.

    Such directions lean from its normal by a cosine of no less than distance over depth.
    """
    if not distance > _ZERO:
        return False
    plane = p.planes[slot]
    normal = vec(plane[0], plane[1], plane[2])
    near = distance / depth
    away = wp.sqrt(wp.max(_ONE - near * near, _ZERO))
    k = int(0)
    while k < wp.min(kept, KEPT):
        cone = p.cones[i * KEPT + k]
        n = vec(cone[0], cone[1], cone[2])
        lean = wp.dot(n, normal)
        if lean > _ZERO:
            if lean * near - away * wp.sqrt(wp.max(_ONE - lean * lean, _ZERO)) >= cone[3]:
                return True
            face = p.faces[slot]
            base = i * p.room
            if is_within(n, cone[3], p.corners[base + face[0]]) and is_within(n, cone[3], p.corners[base + face[1]]):
                if is_within(n, cone[3], p.corners[base + face[2]]):
                    return True
        k += 1
    return False


@wp.func
def is_within(axis: vec, cosine: real, x: vec) -> bool:
    along = wp.dot(axis, x)
    return along > _ZERO and along * along >= cosine * cosine * wp.length_sq(x)

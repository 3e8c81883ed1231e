"""How deep are two cores in each other, and which is the nearest way out?

Question: the least translation that parts two convex cores that have a point in common, or nearly.
Method:   their Minkowski difference holds the origin. A polytope inside it grows at the face that is nearest to the
          origin, by the support across that face, until the face is on the surface. The polytope need not hold the
          origin itself: distances of faces are signed. Differences without volume, of points and segments, have a
          direction across them and no depth.
          Of cores that are apart by less than rounding leaves of a difference, the depth is negative: a gap along the
          normal of a face.
Sound:    a translation by `depth` along `normal` parts the cores, because it is the reach of the difference itself
          along that direction; of cores that overlap it is at most `accuracy` of their size more than the least, or
          `enough` where there was no room for more corners; `room` says that it was not even that: then it is asked
          again with more. Rounding may spoil a polytope: then it is the least of those seen. The last digits of the
          normals of curved bodies are found by `stationary_normal`, and where a polytope takes many corners the
          directions across round sides are tried as well (`rulings`).
Known as: the expanding polytope algorithm, EPA (van den Bergen 2001).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.narrow_phase import rotation_of, translation_of
from tangere.query.distance.convex.supports import CURVED, ConvexShape, core_support_of
from tangere.query.manifold.convex.closed_forms import across
from tangere.query.manifold.convex.rulings import face_across_of, ruling_of
from tangere.query.manifold.convex.stationary_normal import stationary_normal_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
#: Lengths below this part of the size of the difference are rounding.
_FLAT = wp.constant(real(1.0e-13))
#: A first corner that is as far off, relative to the size or to the line before it, needs no search for a better one.
_WIDE = wp.constant(real(0.1))


#: Polytopes with more corners than this are of bodies that have many ways out that are almost as short.
_MANY = wp.constant(32)
#: Deepest points that are beside each other by more than this part of the size are sought again.
_ASIDE = wp.constant(real(1.0e-6))


@wp.struct
class Penetration:
    """The way out, in the world."""

    depth: wp.float64  #: of the cores; negative where they are apart [m]
    flat: wp.int32  #: 1 where the cores are points or lines of one plane, which have no depth
    normal: wp.vec3d  #: unit, pushes a away from b
    point_a: wp.vec3d  #: deepest point of a's core
    point_b: wp.vec3d  #: … and of b's
    room: wp.int32  #: 0 where the polytope had no room for more corners


@wp.struct
class Polytopes:
    """Scratch of each index of a launch: a polytope inside the difference."""

    corners: wp.array2d[wp.vec3d]  #: support differences
    own: wp.array2d[wp.vec3d]  #: the points of a that they come from
    faces: wp.array2d[wp.vec3i]
    planes: wp.array2d[wp.vec4d]  #: outward unit normal and distance from the origin
    sides: wp.array2d[wp.vec2i]  #: of the horizon


@wp.func
def place_face(p: Polytopes, i: int, slot: int, corners: wp.vec3i) -> int:
    """Write a face whose corners go round it seen from outside; the next slot, the same where it has no area."""
    one = p.corners[i, corners[0]]
    normal = wp.cross(p.corners[i, corners[1]] - one, p.corners[i, corners[2]] - one)
    size = wp.length(normal)
    if not size > _ZERO:
        return slot
    normal = normal / size
    p.faces[i, slot] = corners
    p.planes[i, slot] = wp.vec4d(normal[0], normal[1], normal[2], wp.dot(normal, one))
    return slot + 1


@wp.func
def add_side(p: Polytopes, i: int, count: int, start: int, end: int) -> int:
    """Add a side to the horizon, or take its opposite away; how many there are, or would be if there were room."""
    k = int(0)
    while k < wp.min(count, p.sides.shape[1]):
        side = p.sides[i, k]
        if side[0] == end and side[1] == start:
            p.sides[i, k] = p.sides[i, wp.min(count, p.sides.shape[1]) - 1]
            return count - 1
        k += 1
    if count < p.sides.shape[1]:
        p.sides[i, count] = wp.vec2i(start, end)
    return count + 1


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


@cache
def penetration_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """The depths of cores of two kinds that have a point in common, at the given rows.

    As many indices as there are polytopes: each goes over a part of the rows, so that its polytope stays in the cache.
    """
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)
    polished = stationary_normal_of(kind_a, kind_b)
    ruling, face_across = ruling_of(kind_a, kind_b), face_across_of(kind_a, kind_b)
    curved = wp.constant(int(kind_a in CURVED or kind_b in CURVED))

    @wp.func
    def support(
        p: Polytopes,
        i: int,
        slot: int,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        d: vec,
    ) -> vec:
        """The corner of the difference that is farthest along d, kept in a slot."""
        own = support_a(a, points_a, d)
        corner = own - (offset + rotation * support_b(b, points_b, -(d * rotation)))
        p.own[i, slot] = own
        p.corners[i, slot] = corner
        return corner

    @wp.func
    def penetration(
        p: Polytopes,
        i: int,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        pose_a: wp.mat44d,
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        pose_b: wp.mat44d,
        accuracy: real,
        enough: real,
    ) -> Penetration:
        turned = rotation_of(pose_a)
        rotation = wp.transpose(turned) * rotation_of(pose_b)
        offset = (translation_of(pose_b) - translation_of(pose_a)) * turned
        size = a.reach + b.reach + wp.length(offset)
        # Corners that span the difference: two far apart, one off their line, one off their plane; towards the origin,
        # unless they are far better elsewhere.
        d = offset
        if not wp.length_sq(offset) > _ZERO:
            d = vec(_ONE, _ZERO, _ZERO)
        way = -d
        one = support(p, i, 0, a, points_a, b, points_b, rotation, offset, d)
        far = wp.length(support(p, i, 1, a, points_a, b, points_b, rotation, offset, way) - one)
        k = int(0)
        while k < 6 and (k > 0 or not far > _WIDE * size):
            d = vec(_ZERO, _ZERO, _ZERO)
            d[k / 2] = wp.where(k % 2 == 0, -_ONE, _ONE)
            k += 1
            here = support(p, i, 1, a, points_a, b, points_b, rotation, offset, d) - one
            if wp.length(here) > far:
                far = wp.length(here)
                way = d
        normal = vec(_ZERO, _ZERO, _ONE)
        spans = int(0)
        if far > _FLAT * size:
            spans = 1
            if k > 0:
                support(p, i, 1, a, points_a, b, points_b, rotation, offset, way)
            line = wp.normalize(p.corners[i, 1] - one)
            way = wp.dot(one, line) * line - one
            normal = across(line)
            if wp.length_sq(way) > _ZERO:
                normal = wp.normalize(wp.cross(line, way))
            other = wp.cross(line, normal)
            way = -other
            if wp.dot(other, one) < _ZERO:
                way = other
            here = support(p, i, 2, a, points_a, b, points_b, rotation, offset, way) - one
            off = wp.length(here - wp.dot(here, line) * line)
            wide = off > _WIDE * far
            far = off
            k = int(0)
            while k < 4 and not wide:
                d = wp.where(k < 2, normal, other) * wp.where(k % 2 == 0, -_ONE, _ONE)
                k += 1
                here = support(p, i, 2, a, points_a, b, points_b, rotation, offset, d) - one
                off = wp.length(here - wp.dot(here, line) * line)
                if off > far:
                    far = off
                    way = d
            if far > _FLAT * size:
                spans = 2
                if k > 0:
                    support(p, i, 2, a, points_a, b, points_b, rotation, offset, way)
                normal = wp.normalize(wp.cross(p.corners[i, 1] - one, p.corners[i, 2] - one))
                if wp.dot(normal, one) > _ZERO:
                    normal = -normal
                up = wp.dot(normal, support(p, i, 3, a, points_a, b, points_b, rotation, offset, normal) - one)
                if not up > _FLAT * size:
                    normal = -normal
                    up = wp.dot(normal, support(p, i, 3, a, points_a, b, points_b, rotation, offset, normal) - one)
                if up > _FLAT * size:
                    spans = 3
        answer = Penetration()
        answer.room = 1
        if spans < 3:  # the origin is in it, so it is in the plane, line or point that the difference is
            answer.normal = turned * normal
            answer.flat = 1
            return answer
        # The tetrahedron, faces seen from outside: the last corner is above the first three if they go round so.
        base = wp.vec3i(0, 2, 1)
        one = p.corners[i, 0]
        if wp.dot(wp.cross(p.corners[i, 1] - one, p.corners[i, 2] - one), p.corners[i, 3] - one) < _ZERO:
            base = wp.vec3i(0, 1, 2)
        faces = place_face(p, i, 0, base)
        faces = place_face(p, i, faces, wp.vec3i(base[1], base[0], 3))
        faces = place_face(p, i, faces, wp.vec3i(base[2], base[1], 3))
        faces = place_face(p, i, faces, wp.vec3i(base[0], base[2], 3))
        corners = int(4)
        best = int(0)
        depth = _FAR + _ZERO
        nearest = p.faces[i, 0]
        nearest_plane = p.planes[i, 0]
        going = bool(True)
        least = _FAR + _ZERO
        k = int(0)
        while k < faces:
            if p.planes[i, k][3] < least:
                least = p.planes[i, k][3]
                best = k
            k += 1
        while going:
            plane = p.planes[i, best]
            normal = vec(plane[0], plane[1], plane[2])
            corner = support(p, i, corners, a, points_a, b, points_b, rotation, offset, normal)
            reach = wp.dot(normal, corner)
            if reach < depth:
                depth = reach
                nearest = p.faces[i, best]
                nearest_plane = plane
            # the horizon of a convex polytope has fewer sides than it has corners
            full = corners + 1 >= p.corners.shape[1] or faces + corners + 1 >= p.faces.shape[1]
            if depth - least <= accuracy * size:
                going = False
            elif full:  # rounding may keep the last digits
                answer.room = wp.where(depth - least <= enough * size, 1, 0)
                going = False
            else:
                sides = int(0)
                least = _FAR + _ZERO
                k = int(0)
                while k < faces:
                    plane = p.planes[i, k]
                    over = wp.dot(vec(plane[0], plane[1], plane[2]), corner) - plane[3]
                    if over > _FLAT * size:
                        face = p.faces[i, k]
                        sides = add_side(p, i, sides, face[0], face[1])
                        sides = add_side(p, i, sides, face[1], face[2])
                        sides = add_side(p, i, sides, face[2], face[0])
                        # the last face takes its place
                        faces -= 1
                        p.faces[i, k] = p.faces[i, faces]
                        p.planes[i, k] = p.planes[i, faces]
                    else:
                        if plane[3] < least:
                            least = plane[3]
                            best = k
                        k += 1
                if sides > p.sides.shape[1] or faces + sides > p.faces.shape[1]:  # rounding has spoilt it
                    answer.room = 0
                    going = False
                    sides = 0
                k = int(0)
                while k < sides:
                    side = p.sides[i, k]
                    placed = place_face(p, i, faces, wp.vec3i(side[0], side[1], corners))
                    if placed > faces and p.planes[i, faces][3] < least:
                        least = p.planes[i, faces][3]
                        best = faces
                    faces = placed
                    k += 1
                corners += 1
        face = nearest
        plane = nearest_plane
        normal = vec(plane[0], plane[1], plane[2])
        shares = shares_of(plane[3] * normal, p.corners[i, face[0]], p.corners[i, face[1]], p.corners[i, face[2]])
        deepest = shares[0] * p.own[i, face[0]] + shares[1] * p.own[i, face[1]] + shares[2] * p.own[i, face[2]]
        # Points of both bodies by their weights, wherever the origin is over the face.
        difference = shares[0] * p.corners[i, face[0]]
        difference += shares[1] * p.corners[i, face[1]] + shares[2] * p.corners[i, face[2]]
        if curved != 0:
            own = wp.mat33d()
            corner_rows = wp.mat33d()
            for k in range(3):
                for j in range(3):
                    own[k, j] = p.own[i, face[k]][j]
                    corner_rows[k, j] = p.corners[i, face[k]][j]
            better = polished(a, b, rotation, offset, normal, own, corner_rows, shares, size)
            corner = support(p, i, corners, a, points_a, b, points_b, rotation, offset, better.normal)
            reach = wp.dot(better.normal, corner)
            if reach <= depth + _FLAT * size:
                depth = reach
                normal = better.normal
                aside = better.difference - wp.dot(better.difference, normal) * normal
                if wp.length_sq(aside) <= wp.length_sq(difference - wp.dot(difference, normal) * normal):
                    deepest = better.own
                    difference = better.difference
            if corners > _MANY:  # flat faces are a poor likeness of so much roundness
                flank = ruling(a, points_a, b, points_b, rotation, offset)
                if flank.reach < depth:
                    depth = flank.reach
                    normal = flank.normal
            aside = difference - wp.dot(difference, normal) * normal
            short = wp.dot(normal, difference) < depth - enough * size  # those are not the deepest points
            if short or wp.length(aside) > _ASIDE * size:
                found = face_across(a, points_a, b, points_b, rotation, offset, normal)
                beside = found.difference - wp.dot(found.difference, normal) * normal
                if short or wp.length_sq(beside) < wp.length_sq(aside):
                    deepest = found.own
                    difference = found.difference
        answer.depth = depth
        answer.normal = -(turned * normal)
        answer.point_a = translation_of(pose_a) + turned * deepest
        answer.point_b = answer.point_a - turned * difference
        return answer

    @wp.kernel(module="unique", module_options=SOUND)
    def penetrations(
        first: int,
        rows: wp.array[int],
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        shapes_b: wp.array[ConvexShape],
        points_b: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        accuracy: real,
        enough: real,
        p: Polytopes,
        found: wp.array[Penetration],
    ):
        slot = first + wp.tid()
        i = slot
        while i < rows.shape[0]:
            row = rows[i]
            a = shapes_a[wp.min(row, shapes_a.shape[0] - 1)]
            b = shapes_b[wp.min(row, shapes_b.shape[0] - 1)]
            pose_a = poses_a[wp.min(row, poses_a.shape[0] - 1)]
            pose_b = poses_b[wp.min(row, poses_b.shape[0] - 1)]
            found[i] = penetration(p, slot, a, points_a, pose_a, b, points_b, pose_b, accuracy, enough)
            i += p.corners.shape[0]

    return penetrations

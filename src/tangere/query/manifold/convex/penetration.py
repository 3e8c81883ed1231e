"""How deep are two cores in each other, and which is the nearest way out?

Question: the least translation that parts two convex cores that have a point in common, or nearly.
Method:   their Minkowski difference holds the origin. A polytope inside it, an octahedron at first, grows at the face
          that is nearest to the origin, by the support across that face, until no face is nearer than the least reach
          seen. The polytope need not hold the origin itself: distances of faces are signed. Of bodies with rims, whose
          difference is like no few faces, Newton's method finds the least reach near a face (`stationary_normal`) and
          how far round it no direction reaches less: faces that may be nearer in such directions only need not grow.
          Of cores that are apart by less than rounding leaves of a difference, the depth is negative: a gap along the
          normal of a face.
Sound:    a translation by `depth` along `normal` parts the cores, because it is the reach of the difference itself
          along that direction. That it is at most `accuracy` of their size more than the least, or `enough` where there
          was no room for more corners, is proved by the faces (see `polytope`); `room` says where it was not.
          Then, and where a polytope takes many corners, the directions across round sides are tried too (`rulings`).
Known as: the expanding polytope algorithm, EPA (van den Bergen 2001).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from tangere.query.distance.convex.narrow_phase import rotation_of, translation_of
from tangere.query.distance.convex.supports import CURVED, ConvexKind, ConvexShape, core_support_of
from tangere.query.manifold.convex.flat_faces import flat_faces, seeds_of
from tangere.query.manifold.convex.polytope import (
    KEPT,
    SETTLED,
    Polytopes,
    add_side,
    end_of,
    is_settled,
    nearest_face,
    place_faces,
    shares_of,
    start_of,
)
from tangere.query.manifold.convex.rulings import face_across_of, ruling_of
from tangere.query.manifold.convex.stationary_normal import StationaryNormal, row_of, stationary_normal_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_FAR = wp.constant(real(1.0e300))
#: Lengths below this part of the size of the difference are rounding.
_FLAT = wp.constant(real(1.0e-13))
#: Deepest points that are beside each other by more than this part of the size are sought again.
_ASIDE = wp.constant(real(1.0e-6))
#: Newton's method starts from faces whose distance is less than the reach along them by no more than this part of it:
#: later where corners cost more.
_NEAR, _NEARER = 0.08, 0.02
#: How often it starts.
_STARTS = wp.constant(8)
Cones: Any = wp.types.matrix(shape=(8, 4), dtype=wp.float64)
#: What was proved: nothing, for want of room or because of rounding; that the depth is the least.
NO_ROOM = wp.constant(0)
PROVED = wp.constant(1)
SPOILT = wp.constant(2)


@wp.struct
class Penetration:
    """The way out, in the world."""

    depth: wp.float64  #: of the cores; negative where they are apart [m]
    normal: wp.vec3d  #: unit, pushes a away from b
    point_a: wp.vec3d  #: deepest point of a's core
    point_b: wp.vec3d  #: … and of b's
    room: wp.int32  #: NO_ROOM, PROVED or SPOILT
    beside: wp.int32  #: 1 where the points are beside each other, seen along the normal, or not the deepest


@cache
def penetration_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """The depths of cores of two kinds that have a point in common, at the given rows.

    As many indices as there are polytopes: each goes over a part of the rows, so that its polytope stays in the cache.
    """
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)
    polished = stationary_normal_of(kind_a, kind_b)
    near = wp.constant(real(_NEARER if ConvexKind.HULL in (kind_a, kind_b) else _NEAR))
    seeded = seeds_of(kind_a, kind_b)
    curved = wp.constant(int(kind_a in CURVED or kind_b in CURVED))
    ends = wp.constant(sum(flat_faces(kind_a, kind_b)))

    @wp.func
    def support(
        p: Polytopes,
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
        p.own[slot] = own
        p.corners[slot] = corner
        return corner

    @wp.func
    def polished_from(
        p: Polytopes,
        base: int,
        a: ConvexShape,
        b: ConvexShape,
        rotation: wp.mat33d,
        offset: vec,
        face: wp.vec3i,
        distance: real,
        n: vec,
        size: real,
    ) -> StationaryNormal:
        own = wp.mat33d()
        differences = wp.mat33d()
        for k in range(3):
            one = p.own[base + face[k]]
            other = p.corners[base + face[k]]
            for j in range(3):
                own[k, j] = one[j]
                differences[k, j] = other[j]
        shares = shares_of(distance * n, row_of(differences, 0), row_of(differences, 1), row_of(differences, 2))
        return polished(a, b, rotation, offset, n, own, differences, shares, size)

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
        base = i * p.room
        answer = Penetration()
        answer.room = PROVED
        start = 2 * base  # of faces and of sides
        # An octahedron, of directions that are along no axis.
        k = int(0)
        while k < 6:
            d = vec(_TWO, _ONE, _TWO)
            if k / 2 == 1:
                d = vec(-_TWO, _TWO, _ONE)
            elif k / 2 == 2:
                d = vec(-_ONE, -_TWO, _TWO)
            support(p, base + k, a, points_a, b, points_b, rotation, offset, wp.where(k % 2 == 0, d, -d))
            k += 1
        k = int(0)
        while k < 8:
            x = k & 1
            y = 2 + ((k >> 1) & 1)
            z = 4 + ((k >> 2) & 1)
            odd = (x + y + z) % 2 == 1
            left = wp.where(odd, z, y)
            right = wp.where(odd, y, z)
            p.faces[start + k] = wp.vec3i(x, left, right)
            p.sides[start + k] = k
            k += 1
        place_faces(p, base, start, 8)
        corners = int(6)
        faces = int(8)
        best = nearest_face(p, start, faces)
        depth = _FAR + _ZERO
        nearest = wp.vec3i()  # the face of the least reach, its normal and its distance
        normal = vec()
        distance = real(0.0)
        smooth = bool(False)  # whether the least reach was found by Newton's method, or by a face
        found = StationaryNormal()
        kept = ends + 0
        starts = int(0)
        if ends > 0:
            found = seeded(p, i, a, points_a, b, points_b, rotation, offset)
            depth = found.level
            smooth = True
        going = bool(True)
        while going:
            here = p.distances[start + best]
            room = corners + 3 <= p.room and faces + corners + 1 <= 2 * p.room
            growing = bool(False)
            corner = vec()
            if depth - here <= accuracy * size:
                going = False
            elif not room:  # rounding may keep the last digits
                answer.room = wp.where(depth - here <= enough * size, PROVED, NO_ROOM)
                going = False
            elif kept > 0 and is_settled(p, i, start + best, here, depth, kept):
                p.distances[start + best] = SETTLED
                best = nearest_face(p, start, faces)
            else:
                growing = True
                plane = p.planes[start + best]
                n = vec(plane[0], plane[1], plane[2])
                corner = support(p, base + corners, a, points_a, b, points_b, rotation, offset, n)
                reach = wp.dot(n, corner)
                if reach < depth:
                    depth = reach
                    nearest = p.faces[start + best]
                    normal = n
                    distance = here
                    smooth = False
                off = reach - here
                if curved != 0 and starts < _STARTS and off > _FLAT * size and off <= near * reach:
                    starts += 1
                    better = polished_from(p, base, a, b, rotation, offset, p.faces[start + best], here, n, size)
                    next = support(p, base + corners + 1, a, points_a, b, points_b, rotation, offset, better.normal)
                    reach = wp.dot(better.normal, next)
                    if reach <= depth + _FLAT * size:
                        depth = reach
                        found = better
                        smooth = True
                    if better.cosine < _ONE and reach - better.level <= accuracy * size:
                        m = better.normal
                        p.cones[i * KEPT + kept % KEPT] = wp.vec4d(m[0], m[1], m[2], better.cosine)
                        kept += 1
                        growing = not is_settled(p, i, start + best, here, depth, kept)
                growing = growing and depth - here > accuracy * size
            if growing:
                # What the corner sees goes, and its horizon is joined with it, in the places of what it saw.
                sides = int(0)
                gone = int(0)
                least = SETTLED + _ZERO
                k = int(0)
                best = k + 0
                while k < faces:
                    plane = p.planes[start + k]
                    if plane[0] * corner[0] + plane[1] * corner[1] + plane[2] * corner[2] > plane[3] + _FLAT * size:
                        face = p.faces[start + k]
                        sides = add_side(p, start, sides, face[0], face[1])
                        sides = add_side(p, start, sides, face[1], face[2])
                        sides = add_side(p, start, sides, face[2], face[0])
                        p.gone[start + gone] = k
                        gone += 1
                    else:
                        here = p.distances[start + k]
                        if here < least:
                            least = here
                            best = k
                    k += 1
                if gone == 0 or sides > 2 * p.room or faces + sides > 2 * p.room:  # rounding has spoilt it
                    answer.room = SPOILT
                    going = False
                    sides = 0
                    gone = 0
                while gone > sides:  # the last face takes its place
                    gone -= 1
                    faces -= 1
                    k = p.gone[start + gone]
                    p.faces[start + k] = p.faces[start + faces]
                    p.planes[start + k] = p.planes[start + faces]
                    p.distances[start + k] = p.distances[start + faces]
                    best = wp.where(best == faces, k, best)
                k = int(0)
                while k < sides:
                    side = p.sides[start + k]
                    slot = faces + k - gone
                    if k < gone:
                        slot = p.gone[start + k]
                    p.faces[start + slot] = wp.vec3i(start_of(side), end_of(side), corners)
                    p.sides[start + k] = slot
                    k += 1
                place_faces(p, base, start, sides)
                k = int(0)
                while k < sides:
                    slot = p.sides[start + k]
                    here = p.distances[start + slot]
                    if here < least:
                        least = here
                        best = slot
                    k += 1
                faces += sides - gone
                corners += 1
        deepest = found.own
        difference = found.difference
        if smooth:
            normal = found.normal
        else:
            one = base + nearest[0]
            two = base + nearest[1]
            three = base + nearest[2]
            # Points of both bodies by their weights, wherever the origin is over the face.
            shares = shares_of(distance * normal, p.corners[one], p.corners[two], p.corners[three])
            deepest = shares[0] * p.own[one] + shares[1] * p.own[two] + shares[2] * p.own[three]
            difference = shares[0] * p.corners[one] + shares[1] * p.corners[two] + shares[2] * p.corners[three]
        along = wp.dot(normal, difference)
        short = along < depth - enough * size  # those are not the deepest points
        if curved != 0 and (short or wp.length(difference - along * normal) > _ASIDE * size):
            answer.beside = 1
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
            i += p.corners.shape[0] / p.room

    return penetrations


@cache
def mending_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """Ways out that were not proved to be the least, or whose points are not over each other, once more."""
    ruling, face_across = ruling_of(kind_a, kind_b), face_across_of(kind_a, kind_b)

    @wp.kernel(module="unique", module_options=SOUND)
    def mended(
        first: int,
        rows: wp.array[int],
        which: wp.array[int],
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        shapes_b: wp.array[ConvexShape],
        points_b: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        enough: real,
        found: wp.array[Penetration],
    ):
        i = which[first + wp.tid()]
        row = rows[i]
        a = shapes_a[wp.min(row, shapes_a.shape[0] - 1)]
        b = shapes_b[wp.min(row, shapes_b.shape[0] - 1)]
        pose_a = poses_a[wp.min(row, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(row, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        rotation = wp.transpose(turned) * rotation_of(pose_b)
        offset = (translation_of(pose_b) - translation_of(pose_a)) * turned
        size = a.reach + b.reach + wp.length(offset)
        answer = found[i]
        normal = -(answer.normal * turned)
        difference = (answer.point_a - answer.point_b) * turned
        aside = wp.length(difference - wp.dot(difference, normal) * normal)
        if answer.room != PROVED:
            flank = ruling(a, points_a, b, points_b, rotation, offset)
            if flank.reach < answer.depth:
                answer.depth = flank.reach
                normal = flank.normal
                answer.normal = -(turned * normal)
                aside = _FAR + _ZERO
        sought = face_across(a, points_a, b, points_b, rotation, offset, normal)
        short = wp.dot(difference, normal) < answer.depth - enough * size
        if short or wp.length(sought.difference - wp.dot(sought.difference, normal) * normal) < aside:
            answer.point_a = translation_of(pose_a) + turned * sought.own
            answer.point_b = answer.point_a - turned * sought.difference
        found[i] = answer

    return mended

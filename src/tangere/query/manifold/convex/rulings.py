"""The least way out across a side: directions across the rulings of cylinders and cones.

Question: which of the directions across a side of one of two cores is the least way out of their difference?
Method:   the sides of a cylinder or a cone face directions on a circle about its axis. Along it the reach of the
          difference is a function of one angle: looked at in equal steps, then narrowed by golden sections wherever it
          is less than at its neighbours. A ball inside the difference touches it where the normal is unique: across a
          flat face, across a ruling, or where two edges cross; only the last is not on a circle or at its middle.
          Nearly coaxial bodies have thousands of ways out that are as good but for the last digits, which no polytope
          tells apart.
Sound:    what is found is the reach of the difference itself along the direction, from supports.
Known as: golden-section search; support functions of Minkowski differences.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of
from tangere.query.manifold.convex.closed_forms import across
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_FAR = wp.constant(real(1.0e300))
_TURN = wp.constant(real(6.283185307179586))
#: Of the first look round a circle, and of the golden sections at each of its valleys.
_LOOKS = wp.constant(48)
_LOOK = wp.constant(real(6.283185307179586 / 48.0))
_SECTIONS = wp.constant(46)
_GOLDEN = wp.constant(real(0.6180339887498949))
#: Corners of a face are looked for along directions that lean by this much: their reach is less by this part.
_LEAN = wp.constant(real(5.0e-10))

#: Kinds with a side of straight lines, about z.
RULED = (ConvexKind.CYLINDER, ConvexKind.CONE)


@wp.struct
class Ruling:
    """A direction across a side, in a's frame."""

    reach: wp.float64  #: of the difference along it [m]
    normal: wp.vec3d  #: unit


@wp.struct
class DeepestPoints:
    """Points of both cores that are deepest along a direction, one over the other as far as there are such."""

    own: wp.vec3d  #: of a
    difference: wp.vec3d  #: … less that of b


@cache
def ruling_of(kind_a: int, kind_b: int) -> wp.Function:
    """`ruling(a, points_a, b, points_b, rotation, offset) -> Ruling`: the least of all directions across sides."""
    reach = _reach_of(kind_a, kind_b)
    ruled_a, ruled_b = wp.constant(int(kind_a in RULED)), wp.constant(int(kind_b in RULED))
    cone_a, cone_b = (wp.constant(int(kind == ConvexKind.CONE)) for kind in (kind_a, kind_b))

    @wp.func
    def ruling(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
    ) -> Ruling:
        best = Ruling()
        best.reach = _FAR + _ZERO
        side = int(0)
        while side < 2:
            ruled = wp.where(side == 0, ruled_a, ruled_b)
            body = a
            axis = vec(_ZERO, _ZERO, _ONE)
            if side == 1:
                body = b
                axis = -vec(rotation[0, 2], rotation[1, 2], rotation[2, 2])
            if ruled != 0:
                # Discs face along the axis; those that a body does not have do not harm, they are directions too.
                k = int(0)
                while k < 2:
                    n = wp.where(k == 0, axis, -axis)
                    here = reach(a, points_a, b, points_b, rotation, offset, n)
                    if here < best.reach:
                        best.reach = here
                        best.normal = n
                    k += 1
                up = real(0.0)
                out = real(1.0)
                if wp.where(side == 0, cone_a, cone_b) != 0:
                    slope = wp.sqrt(_TWO * body.half[2] * _TWO * body.half[2] + body.radius * body.radius)
                    up = body.radius / slope
                    out = _TWO * body.half[2] / slope
                e = across(axis)
                f = wp.cross(axis, e)
                step = _LOOK + _ZERO
                before = reach(a, points_a, b, points_b, rotation, offset, up * axis + out * along(e, f, -step))
                here = reach(a, points_a, b, points_b, rotation, offset, up * axis + out * e)
                k = int(0)
                while k < _LOOKS:
                    angle = real(k) * step
                    n = up * axis + out * along(e, f, angle + step)
                    beyond = reach(a, points_a, b, points_b, rotation, offset, n)
                    if here <= before and here <= beyond:
                        low = angle - step
                        high = angle + step
                        one = high - _GOLDEN * (high - low)
                        two = low + _GOLDEN * (high - low)
                        n_one = up * axis + out * along(e, f, one)
                        n_two = up * axis + out * along(e, f, two)
                        at_one = reach(a, points_a, b, points_b, rotation, offset, n_one)
                        at_two = reach(a, points_a, b, points_b, rotation, offset, n_two)
                        section = int(0)
                        while section < _SECTIONS:
                            section += 1
                            if at_one <= at_two:
                                high = two
                                two = one
                                at_two = at_one
                                n_two = n_one
                                one = high - _GOLDEN * (high - low)
                                n_one = up * axis + out * along(e, f, one)
                                at_one = reach(a, points_a, b, points_b, rotation, offset, n_one)
                            else:
                                low = one
                                one = two
                                at_one = at_two
                                n_one = n_two
                                two = low + _GOLDEN * (high - low)
                                n_two = up * axis + out * along(e, f, two)
                                at_two = reach(a, points_a, b, points_b, rotation, offset, n_two)
                        if at_two < at_one:
                            at_one = at_two
                            n_one = n_two
                        if at_one < best.reach:
                            best.reach = at_one
                            best.normal = n_one
                        n_one = up * axis + out * along(e, f, angle)
                        if here < best.reach:  # symmetric pairs have it here, exactly
                            best.reach = here
                            best.normal = n_one
                    before = here
                    here = beyond
                    k += 1
            side += 1
        best.normal = wp.normalize(best.normal)
        if best.reach < _FAR:
            best.reach = reach(a, points_a, b, points_b, rotation, offset, best.normal)
        return best

    return ruling


@cache
def face_across_of(kind_a: int, kind_b: int) -> wp.Function:
    """`face_across(a, points_a, b, points_b, rotation, offset, n) -> DeepestPoints`: of two cores, along n."""
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)

    @wp.func
    def face_across(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        n: vec,
    ) -> DeepestPoints:
        found = DeepestPoints()
        found.own = support_a(a, points_a, n)
        found.difference = found.own - (offset + rotation * support_b(b, points_b, -(n * rotation)))
        # Towards the line along n: the nearest point of the segment to the corner that is farthest that way, and again.
        step = int(0)
        while step < 24:
            aside = found.difference - wp.dot(found.difference, n) * n
            long = wp.length(aside)
            if long > _ZERO:
                d = n - (_LEAN / long) * aside
                own = support_a(a, points_a, d)
                corner = own - (offset + rotation * support_b(b, points_b, -(d * rotation)))
                way = corner - found.difference
                way = way - wp.dot(way, n) * n
                squared = wp.length_sq(way)
                part = real(0.0)
                if squared > _ZERO:
                    part = wp.clamp(-wp.dot(aside, way) / squared, _ZERO, _ONE)
                found.own = found.own + part * (own - found.own)
                found.difference = found.difference + part * (corner - found.difference)
                if part == _ZERO:
                    step = 24
            else:
                step = 24
            step += 1
        return found

    return face_across


@cache
def _reach_of(kind_a: int, kind_b: int) -> wp.Function:
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)

    @wp.func
    def reach(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        n: vec,
    ) -> real:
        own = support_a(a, points_a, n)
        return wp.dot(n, own - (offset + rotation * support_b(b, points_b, -(n * rotation))))

    return reach


@wp.func
def along(e: vec, f: vec, angle: real) -> vec:
    return wp.cos(angle) * e + wp.sin(angle) * f

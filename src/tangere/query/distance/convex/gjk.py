"""GJK on the cores of two bodies, with certified bounds.

Question: how far are two convex cores apart, given by their support points?
Method:   v, the point of a simplex of support differences that is nearest to the origin, gives the direction of the
          next support; the gap along it is a lower bound, |v| an upper one. It ends when they agree, when the origin is
          inside, or when |v| falls no more. Then the differences have no digits left: the normal of the last simplex,
          whose corners lie far apart, and of boxes the 15 directions of the separating axis theorem, which have, are
          tried as well.
Sound:    the lower bound is a gap from both supports, less its rounding, whatever the quality of the descent; the upper
          bound is the distance of two points of the cores, and `meet` is said where that is rounding only.
Known as: GJK (Gilbert, Johnson and Keerthi 1988; van den Bergen 1999 for the bounds). `first_contact.heightfield.gjk`
          is the other one: of a body and four corners of ground, in the world's axes.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.simplex import nearest_of_points
from tangere.query.distance.convex.result import FAR, Closest, KeptCorners, Sought, gap_rounding, is_found
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of, core_value_of, margin_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

MOST_STEPS = wp.constant(128)
_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TINY = wp.constant(real(1.0e-300))
#: Directions shorter than this, as crosses of unit vectors, are noise.
_NO_DIRECTION = wp.constant(real(1.0e-12))


@wp.struct
class CoreSimplex:
    """Up to three differences w of support points a and b, each in its body's frame; weights of the nearest one."""

    count: wp.int32
    w0: wp.vec3d
    w1: wp.vec3d
    w2: wp.vec3d
    weights: wp.vec3d
    corners: KeptCorners


@wp.func
def simplex_normal(s: CoreSimplex, v: vec) -> vec:
    """v made perpendicular to what the simplex spans, on the side of v; not unit, and zero where there is none."""
    n = vec(v[0], v[1], v[2])
    e = s.w1 - s.w0
    if s.count == 3:
        n = wp.cross(e, s.w2 - s.w0)
        if wp.dot(n, v) < _ZERO:
            n = -n
    elif s.count == 2:
        n = v - e * (wp.dot(v, e) / wp.max(wp.length_sq(e), _TINY))
    return n


@cache
def descent_of(kind_a: int, kind_b: int) -> wp.Function:
    """`closest(a, points_a, b, points_b, rotation, offset, guess, kept, sought) -> Closest, KeptCorners` of two kinds.

    It begins with the corners that were kept, or in the direction of the guess where there are none.
    """
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)
    value_a, value_b = core_value_of(kind_a), core_value_of(kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    boxes = wp.constant(int(kind_a == kind_b == ConvexKind.BOX))

    @wp.func
    def gap_along(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        n: vec,
    ) -> real:
        return -value_a(a, points_a, -n) - value_b(b, points_b, n * rotation) - wp.dot(n, offset)

    @wp.func
    def closest(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        guess: vec,
        kept: KeptCorners,
        sought: Sought,
    ) -> tuple[Closest, KeptCorners]:
        found = Closest()
        slack = gap_rounding(a, b, offset)
        margins = margin_a(a) + margin_b(b)
        # It begins with the corners that were kept, of which the last one counts as new.
        s = CoreSimplex()
        s.corners = kept
        s.count = wp.max(kept.count - 1, 0)
        if kept.count > 1:
            s.w0 = kept.a0 - (offset + rotation * kept.b0)
            s.w1 = kept.a1 - (offset + rotation * kept.b1)
        on_a = kept.a0
        on_b = kept.b0
        if kept.count == 0:
            on_a = support_a(a, points_a, -guess)
            on_b = support_b(b, points_b, guess * rotation)
        elif kept.count == 2:
            on_a = kept.a1
            on_b = kept.b1
        elif kept.count == 3:
            on_a = kept.a2
            on_b = kept.b2
        w = on_a - (offset + rotation * on_b)
        v = vec()
        lower = -FAR
        length = FAR + _ZERO
        steps = int(0)
        going = bool(True)
        stalled = bool(False)
        inside = bool(False)  # the origin is, of the simplex with the corner that is not part of it yet
        last_a = vec()
        last_w = vec()
        far_side = bool(kept.count > 2)  # corners that have moved may have any order
        while going:
            nearest = nearest_of_points(s.count + 1, w, s.w0, s.w1, s.w2, far_side)
            if nearest.inside:
                s.weights = vec(nearest.weights[1], nearest.weights[2], nearest.weights[3])
                last_a = nearest.weights[0] * on_a
                last_w = nearest.weights[0] * w
                inside = True
                going = False
            elif steps > 0 and (not nearest.squared < length * length or steps >= MOST_STEPS):
                stalled = True
                going = False
            else:
                # The last corner goes where one is left out, the new one after them: so little is moved. A simplex made
                # anew would be copied from branch to branch.
                part = nearest.weights
                if s.count == 3 and part[3] == _ZERO:
                    s.count = 2
                if s.count > 1 and part[2] == _ZERO:
                    if s.count == 3:
                        s.w1 = s.w2
                        s.corners.a1 = s.corners.a2
                        s.corners.b1 = s.corners.b2
                        part[2] = part[3]
                    s.count -= 1
                if s.count > 0 and part[1] == _ZERO:
                    if s.count == 3:
                        s.w0 = s.w2
                        s.corners.a0 = s.corners.a2
                        s.corners.b0 = s.corners.b2
                        part[1] = part[3]
                    elif s.count == 2:
                        s.w0 = s.w1
                        s.corners.a0 = s.corners.a1
                        s.corners.b0 = s.corners.b1
                        part[1] = part[2]
                    s.count -= 1
                if s.count == 0:
                    s.w0 = w
                    s.corners.a0 = on_a
                    s.corners.b0 = on_b
                    part[1] = part[0]
                elif s.count == 1:
                    s.w1 = w
                    s.corners.a1 = on_a
                    s.corners.b1 = on_b
                    part[2] = part[0]
                else:
                    s.w2 = w
                    s.corners.a2 = on_a
                    s.corners.b2 = on_b
                    part[3] = part[0]
                s.count += 1
                s.weights = vec(part[1], part[2], part[3])
                v = nearest.point
                length = wp.sqrt(nearest.squared)
                steps += 1
                far_side = False
                if length <= slack:
                    going = False
                else:
                    n = v * (_ONE / length)
                    on_a = support_a(a, points_a, -n)
                    on_b = support_b(b, points_b, n * rotation)
                    w = on_a - (offset + rotation * on_b)
                    here = wp.dot(n, w)
                    if here > lower:
                        lower = here
                        found.normal = n
                    if is_found(lower, length, margins, sought):
                        going = False
        if stalled:
            n = simplex_normal(s, v)
            size = wp.length(n)
            if size > _ZERO:
                n = n / size
                here = gap_along(a, points_a, b, points_b, rotation, offset, n)
                if here > lower:
                    lower = here
                    found.normal = n
            if boxes != 0:
                k = int(0)
                while k < 15:
                    n = separating_direction(k, rotation)
                    k += 1
                    size = wp.length(n)
                    if size > _NO_DIRECTION:
                        n = n * (wp.where(wp.dot(n, offset) > _ZERO, -_ONE, _ONE) / size)
                        here = gap_along(a, points_a, b, points_b, rotation, offset, n)
                        if here > lower:
                            lower = here
                            found.normal = n
        # The points themselves bound the distance, not the length that led to them.
        # Of one that holds the origin nothing is kept.
        corners = s.corners
        corners.count = wp.where(inside, 0, s.count)
        point = last_a + s.weights[0] * corners.a0
        way = last_w + s.weights[0] * s.w0
        if s.count > 1:
            point += s.weights[1] * corners.a1
            way += s.weights[1] * s.w1
        if s.count > 2:
            point += s.weights[2] * corners.a2
            way += s.weights[2] * s.w2
        found.point_a = point
        found.point_b = point - way
        found.steps = steps
        upper = wp.length(way)
        if upper <= slack:
            found.meet = True
            found.lower = -margins
            found.upper = -margins
        else:
            found.lower = lower - slack - margins
            found.upper = upper + slack - margins
        return found, corners

    return closest


@cache
def gjk_of(kind_a: int, kind_b: int) -> wp.Function:
    """`closest(a, points_a, b, points_b, rotation, offset, guess, sought) -> Closest` of cores of two kinds."""
    return begun_anew(descent_of(kind_a, kind_b))


def begun_anew(search: wp.Function) -> wp.Function:
    """A search that keeps no corners from one time to the next."""

    @wp.func
    def closest(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        guess: vec,
        sought: Sought,
    ) -> Closest:
        found, _corners = search(a, points_a, b, points_b, rotation, offset, guess, KeptCorners(), sought)
        return found

    return closest


@wp.func
def separating_direction(k: int, rotation: wp.mat33d) -> vec:
    """The k-th of 15: normals of faces of both boxes and crosses of their edges, in a's frame; not unit."""
    n = vec()
    if k < 3:
        n[k] = _ONE
    elif k < 6:
        n = vec(rotation[0, k - 3], rotation[1, k - 3], rotation[2, k - 3])
    else:
        i = (k - 6) / 3
        j = (k - 6) % 3
        e = vec()
        e[i] = _ONE
        n = wp.cross(e, vec(rotation[0, j], rotation[1, j], rotation[2, j]))
    return n

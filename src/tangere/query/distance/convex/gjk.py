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

from tangere.geometry.simplex import (
    NearestOfSimplex,
    nearest_of_four,
    nearest_of_points,
    nearest_of_three,
    nearest_of_two,
)
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
    """Up to four differences w of support points a and b, each in its body's frame; weights of the nearest one."""

    count: wp.int32
    w0: wp.vec3d
    w1: wp.vec3d
    w2: wp.vec3d
    w3: wp.vec3d
    a0: wp.vec3d
    a1: wp.vec3d
    a2: wp.vec3d
    a3: wp.vec3d
    b0: wp.vec3d
    b1: wp.vec3d
    b2: wp.vec3d
    b3: wp.vec3d
    weights: wp.vec4d
    point: wp.vec3d


@wp.func
def reduced(s: CoreSimplex, nearest: NearestOfSimplex) -> CoreSimplex:
    """The simplex without the corners that its nearest point does not need."""
    l0 = nearest.weights[0]
    l1 = nearest.weights[1]
    l2 = nearest.weights[2]
    l3 = nearest.weights[3]
    count = s.count
    if count == 4:
        if l3 == _ZERO:
            count = 3
        elif l2 == _ZERO:
            s.w2 = s.w3
            s.a2 = s.a3
            s.b2 = s.b3
            l2 = l3
            count = 3
        elif l1 == _ZERO:
            s.w1 = s.w2
            s.a1 = s.a2
            s.b1 = s.b2
            l1 = l2
            s.w2 = s.w3
            s.a2 = s.a3
            s.b2 = s.b3
            l2 = l3
            count = 3
    if count == 3:
        if l2 == _ZERO:
            count = 2
        elif l1 == _ZERO:
            s.w1 = s.w2
            s.a1 = s.a2
            s.b1 = s.b2
            l1 = l2
            count = 2
        elif l0 == _ZERO:
            s.w0 = s.w1
            s.a0 = s.a1
            s.b0 = s.b1
            l0 = l1
            s.w1 = s.w2
            s.a1 = s.a2
            s.b1 = s.b2
            l1 = l2
            count = 2
    if count == 2:
        if l1 == _ZERO:
            count = 1
        elif l0 == _ZERO:
            s.w0 = s.w1
            s.a0 = s.a1
            s.b0 = s.b1
            l0 = l1
            count = 1
    s.count = count
    s.weights = wp.vec4d(l0, l1, l2, _ZERO)
    s.point = nearest.point
    return s


@wp.func
def grown(s: CoreSimplex, a: vec, b: vec, w: vec) -> CoreSimplex:
    """The simplex with a new corner in front."""
    s.w3 = s.w2
    s.a3 = s.a2
    s.b3 = s.b2
    s.w2 = s.w1
    s.a2 = s.a1
    s.b2 = s.b1
    s.w1 = s.w0
    s.a1 = s.a0
    s.b1 = s.b0
    s.w0 = w
    s.a0 = a
    s.b0 = b
    s.count += 1
    return s


@wp.func
def shrunk(s: CoreSimplex) -> CoreSimplex:
    """The simplex without the corner in front; its weights are still those from before."""
    s.w0 = s.w1
    s.a0 = s.a1
    s.b0 = s.b1
    s.w1 = s.w2
    s.a1 = s.a2
    s.b1 = s.b2
    s.w2 = s.w3
    s.a2 = s.a3
    s.b2 = s.b3
    s.count -= 1
    return s


@wp.func
def placed(kept: KeptCorners, rotation: wp.mat33d, offset: vec) -> CoreSimplex:
    """The simplex of kept corners where the bodies are now."""
    s = CoreSimplex()
    s.count = kept.count
    s.a0 = kept.a0
    s.a1 = kept.a1
    s.a2 = kept.a2
    s.b0 = kept.b0
    s.b1 = kept.b1
    s.b2 = kept.b2
    s.w0 = s.a0 - (offset + rotation * s.b0)
    s.w1 = s.a1 - (offset + rotation * s.b1)
    s.w2 = s.a2 - (offset + rotation * s.b2)
    return reduced(s, nearest_of_points(s.count, s.w0, s.w1, s.w2, s.w2))


@wp.func
def corners_of(s: CoreSimplex) -> KeptCorners:
    """What a later search begins with: nothing where the simplex holds the origin."""
    kept = KeptCorners()
    if s.count < 4:
        kept.count = s.count
    kept.a0 = s.a0
    kept.a1 = s.a1
    kept.a2 = s.a2
    kept.b0 = s.b0
    kept.b1 = s.b1
    kept.b2 = s.b2
    return kept


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
        s = CoreSimplex()
        s.count = kept.count
        if kept.count == 0:
            s.count = 1
            s.a0 = support_a(a, points_a, -guess)
            s.b0 = support_b(b, points_b, guess * rotation)
            s.w0 = s.a0 - (offset + rotation * s.b0)
            s.weights = wp.vec4d(_ONE, _ZERO, _ZERO, _ZERO)
            s.point = s.w0
        else:
            s = placed(kept, rotation, offset)
        lower = -FAR
        length = wp.length(s.point)
        steps = int(0)
        going = bool(True)
        stalled = bool(False)
        while going:
            steps += 1
            if length <= slack:
                going = False
            else:
                n = s.point * (_ONE / length)
                on_a = support_a(a, points_a, -n)
                on_b = support_b(b, points_b, n * rotation)
                w = on_a - (offset + rotation * on_b)
                here = wp.dot(n, w)
                if here > lower:
                    lower = here
                    found.normal = n
                if is_found(lower, length, margins, sought):
                    going = False
                else:
                    s = grown(s, on_a, on_b, w)
                    nearest = NearestOfSimplex()
                    if s.count == 2:
                        nearest = nearest_of_two(s.w0, s.w1)
                    elif s.count == 3:
                        nearest = nearest_of_three(s.w0, s.w1, s.w2, False)
                    else:
                        nearest = nearest_of_four(s.w0, s.w1, s.w2, s.w3, False)
                    if nearest.inside:
                        s.weights = nearest.weights
                        going = False
                    elif not nearest.squared < length * length or steps >= MOST_STEPS:
                        s = shrunk(s)
                        stalled = True
                        going = False
                    else:
                        s = reduced(s, nearest)
                        length = wp.sqrt(nearest.squared)
        if stalled:
            n = simplex_normal(s, s.point)
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
        on_a = s.weights[0] * s.a0
        w = s.weights[0] * s.w0
        if s.count > 1:
            on_a += s.weights[1] * s.a1
            w += s.weights[1] * s.w1
        if s.count > 2:
            on_a += s.weights[2] * s.a2
            w += s.weights[2] * s.w2
        if s.count > 3:
            on_a += s.weights[3] * s.a3
            w += s.weights[3] * s.w3
        found.point_a = on_a
        found.point_b = on_a - w
        found.steps = steps
        upper = wp.length(w)
        if upper <= slack:
            found.meet = True
            found.lower = -margins
            found.upper = -margins
        else:
            found.lower = lower - slack - margins
            found.upper = upper + slack - margins
        return found, corners_of(s)

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

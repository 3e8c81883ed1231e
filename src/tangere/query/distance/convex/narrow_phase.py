"""Which function finds the nearest points of two kinds of convex bodies: the door for kernels.

`closest_of(kind_a, kind_b)` is a `wp.func`; kinds are `ConvexKind`, the smaller one first. It works in a's frame, where
a point y of b is at offset + rotation y:

    closest(a, points_a, b, points_b, rotation, offset, guess, sought) -> Closest

`a` and `b` are `ConvexShape`, `points_*` the tables of hulls and triangles (empty for others), `guess` any direction
but zero that may push a away from b (closed forms do not use it), `sought` says when an answer is good enough.
Known as: the narrow phase dispatch of a pair.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.boxes import faces_before
from tangere.query.distance.convex.closed_forms import closed_form_of
from tangere.query.distance.convex.gjk import begun_anew, descent_of, gjk_of
from tangere.query.distance.convex.newton import newton_of
from tangere.query.distance.convex.projections import projected_before
from tangere.query.distance.convex.result import Closest, KeptCorners, Sought, is_found, sought_to
from tangere.query.distance.convex.supports import CURVED, ROUNDED, ConvexKind, ConvexShape, margin_of
from tangere.runtime import SOUND, InputError

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))


@cache
def closest_of(kind_a: int, kind_b: int) -> wp.Function:
    """The function for two kinds; the first must not come after the second."""
    if not ConvexKind.POINT <= kind_a <= kind_b <= ConvexKind.TRIANGLE:
        raise InputError(f"kinds must be of ConvexKind, the smaller one first, not {kind_a} and {kind_b}")
    closed = closed_form_of(kind_a, kind_b)
    if closed is not None:
        return closed
    curved = kind_a in CURVED or kind_b in CURVED
    search = newton_of(kind_a, kind_b) if curved and kind_a != ConvexKind.POINT else gjk_of(kind_a, kind_b)
    if kind_a == kind_b == ConvexKind.BOX:
        return begun_anew(faces_before(descent_of(kind_a, kind_b)))
    if not curved or kind_b >= ConvexKind.HULL:
        return search
    return projected_before(kind_a, kind_b, search)  # a third faster for bodies far apart; boxes end sooner without


@cache
def followed_of(kind_a: int, kind_b: int) -> wp.Function:
    """The function for two bodies that move on a little between one question and the next.

        followed(a, points_a, b, points_b, rotation, offset, guess, kept, sought) -> Closest, KeptCorners

    `kept` are corners of the question before, none at first. GJK needs no more than one or two steps from there, also
    where there is a rim; where it ends too early, it is asked anew.
    """
    closest, formula = closest_of(kind_a, kind_b), closed_form_of(kind_a, kind_b) is not None
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    curved = wp.constant(int(kind_a in CURVED or kind_b in CURVED))

    @wp.func
    def by_formula(
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
        return closest(a, points_a, b, points_b, rotation, offset, guess, sought), kept

    if formula:
        return by_formula
    descend = descent_of(kind_a, kind_b)
    if kind_a == kind_b == ConvexKind.BOX:
        return faces_before(descend)

    @wp.func
    def followed(
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
        found, corners = descend(a, points_a, b, points_b, rotation, offset, guess, kept, sought)
        if curved != 0 and not found.meet:
            margins = margin_a(a) + margin_b(b)
            if not is_found(found.lower + margins, found.upper + margins, margins, sought):
                found = closest(a, points_a, b, points_b, rotation, offset, found.normal, sought)
        return found, corners

    return followed


@wp.struct
class ConvexAnswer:
    """The distance of two bodies in the world; lengths in metres."""

    lower: wp.float64
    upper: wp.float64
    point_a: wp.vec3d  #: of a's surface; where the bodies overlap a point of both
    point_b: wp.vec3d
    normal: wp.vec3d  #: unit, pushes a away from b: along it `lower` is certain; zero where the cores meet
    overlap: wp.int32
    triangle: wp.int32  #: of a mesh on the second side, else -1


@wp.func
def first_guess(offset: vec) -> vec:
    """A direction to begin with: from b's origin to a's."""
    guess = -offset
    if wp.length_sq(offset) == _ZERO:
        guess = vec(_ONE, _ZERO, _ZERO)
    return guess


@wp.func
def rotation_of(pose: wp.mat44d) -> wp.mat33d:
    return wp.mat33d(
        pose[0, 0], pose[0, 1], pose[0, 2], pose[1, 0], pose[1, 1], pose[1, 2], pose[2, 0], pose[2, 1], pose[2, 2]
    )


@wp.func
def translation_of(pose: wp.mat44d) -> vec:
    return vec(pose[0, 3], pose[1, 3], pose[2, 3])


@cache
def answer_of(kind_a: int, kind_b: int) -> wp.Function:
    """`answer(a, b, found) -> ConvexAnswer`: what is told of the nearest points, still in a's frame."""
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    # The points may be of another step than the normal, but for formulas.
    formula = kind_a == ConvexKind.POINT or kind_b == ConvexKind.SEGMENT
    along_way = wp.constant(int(kind_a in ROUNDED and not formula))

    @wp.func
    def answer(a: ConvexShape, b: ConvexShape, found: Closest) -> ConvexAnswer:
        told = ConvexAnswer()
        told.triangle = -1
        told.normal = found.normal
        told.lower = wp.max(found.lower, _ZERO)
        told.upper = found.upper
        n = found.normal
        if along_way != 0 and not found.meet:
            way = found.point_a - found.point_b
            n = way / wp.length(way)
        told.point_a = found.point_a - margin_a(a) * n
        told.point_b = found.point_b + margin_b(b) * n
        if found.meet or found.upper <= _ZERO:
            # A point between the cores that both margins reach.
            apart = wp.dot(found.point_a - found.point_b, n)
            part = wp.clamp(_HALF * (apart - margin_a(a) + margin_b(b)), _ZERO, wp.max(apart, _ZERO))
            told.point_a = found.point_b + part * n
            told.point_b = told.point_a
            told.overlap = 1
            told.lower = _ZERO
            told.upper = _ZERO
        return told

    return answer


@cache
def distance_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """The distances of n pairs of bodies of two kinds at their poses; arrays of shapes of each, or of one for all."""
    closest, answer_from = closest_of(kind_a, kind_b), answer_of(kind_a, kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    # The frame of a point or a segment may lie as the world's does: a matrix product less, half of the time of spheres.
    upright = wp.constant(int(kind_a in ROUNDED))

    @wp.kernel(module="unique", module_options=SOUND)
    def convex_distances(
        first: int,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        shapes_b: wp.array[ConvexShape],
        points_b: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        tolerance: real,
        answers: wp.array[ConvexAnswer],
    ):
        i = first + wp.tid()
        a = shapes_a[wp.min(i, shapes_a.shape[0] - 1)]
        b = shapes_b[wp.min(i, shapes_b.shape[0] - 1)]
        pose_a = poses_a[wp.min(i, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(i, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        at = translation_of(pose_a)
        rotation = rotation_of(pose_b)
        offset = translation_of(pose_b) - at
        if upright != 0:
            a.axis = vec(pose_a[0, 2], pose_a[1, 2], pose_a[2, 2])
        else:
            rotation = wp.transpose(turned) * rotation
            offset = offset * turned
        sought = sought_to(tolerance * (a.reach + margin_a(a) + b.reach + margin_b(b)))
        found = closest(a, points_a, b, points_b, rotation, offset, first_guess(offset), sought)
        answer = answer_from(a, b, found)
        if upright == 0:
            answer.point_a = turned * answer.point_a
            answer.point_b = turned * answer.point_b
            answer.normal = turned * answer.normal
        answer.point_a += at
        answer.point_b += at
        answers[i] = answer

    return convex_distances

"""Two boxes whose nearest points are a corner of one and a point within a face of the other: no search.

Question: how far are two boxes apart?
Method:   of the six normals of faces the one with the largest gap; if the corner of the other box that is farthest
          along it lies over that face, both bounds are that gap. Else the search for the pair begins with the direction
          from the corner to the nearest point of the other box.
Sound:    as the searches: the gap along a normal is a lower bound, the corner and its foot are points of the boxes.
Known as: the face axes of the separating axis test (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.result import Closest, KeptCorners, Sought, gap_rounding
from tangere.query.distance.convex.supports import ConvexShape
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))


@cache
def faces_before(search: wp.Function) -> wp.Function:
    """`closest(…)` of two boxes: a corner over a face, then `search` where that is not the answer."""

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
        slack = gap_rounding(a, b, offset)
        start = vec(guess[0], guess[1], guess[2])
        other = offset * rotation
        best = slack + slack
        face = int(-1)
        for k in range(3):
            here = wp.abs(offset[k]) - a.half[k] - reach_of_row(rotation, k, b.half)
            if here > best:
                best = here
                face = k
            there = wp.abs(other[k]) - b.half[k] - reach_of_column(rotation, k, a.half)
            if there > best:
                best = there
                face = 3 + k
        if face >= 0:
            found = Closest()
            found.lower = best - slack
            found.upper = best + slack
            found.steps = 1
            axis = face % 3
            over = bool(True)
            if face < 3:
                side = sign_of(offset[axis])
                y = vec()
                for k in range(3):
                    y[k] = -side * sign_of(rotation[axis, k]) * b.half[k]
                p = offset + rotation * y
                found.point_b = p
                for k in range(3):
                    if k != axis and wp.abs(p[k]) > a.half[k]:
                        over = False
                p[axis] = side * a.half[axis]
                found.point_a = p
                start = in_box(p, a.half) - found.point_b
                found.normal[axis] = -side
            else:
                side = sign_of(other[axis])
                x = vec()
                for k in range(3):
                    x[k] = side * sign_of(rotation[k, axis]) * a.half[k]
                q = x * rotation - other
                found.point_a = x
                for k in range(3):
                    if k != axis and wp.abs(q[k]) > b.half[k]:
                        over = False
                found.normal = -side * vec(rotation[0, axis], rotation[1, axis], rotation[2, axis])
                found.point_b = x - best * found.normal
                start = x - offset - rotation * in_box(q, b.half)
            if over:
                return found, KeptCorners()
        return search(a, points_a, b, points_b, rotation, offset, start, kept, sought)

    return closest


@wp.func
def sign_of(x: real) -> real:
    """1 or -1: zero has the sign of what is positive."""
    return wp.where(x < _ZERO, -_ONE, _ONE)


@wp.func
def in_box(p: vec, half: vec) -> vec:
    """The point of a box nearest to p."""
    return vec(wp.clamp(p[0], -half[0], half[0]), wp.clamp(p[1], -half[1], half[1]), wp.clamp(p[2], -half[2], half[2]))


@wp.func
def reach_of_row(rotation: wp.mat33d, k: int, half: vec) -> real:
    """How far a turned box reaches along axis k."""
    return wp.abs(rotation[k, 0]) * half[0] + wp.abs(rotation[k, 1]) * half[1] + wp.abs(rotation[k, 2]) * half[2]


@wp.func
def reach_of_column(rotation: wp.mat33d, k: int, half: vec) -> real:
    """… and one that is not turned along the turned axis k."""
    return wp.abs(rotation[0, k]) * half[0] + wp.abs(rotation[1, k]) * half[1] + wp.abs(rotation[2, k]) * half[2]

"""Nearest points where a core has a rim: Newton's method on the direction, then GJK where that does not end.

Question: how far are two cores apart of which at least one is a cylinder or a cone?
Method:   GJK stalls there, because the rim points of its simplex were found for directions of the past. Here a corner
          is a label (end of the axis, tip, corner of the other core), and all kept corners are placed anew for each
          direction n. With the weights l of the point of their simplex nearest to the origin, at the distance m,
              B = m I + ka ta ta' + kb tb tb',   ka = r / |d|^3 times the weights of a's rim points,   ta = (-dy, dx, 0)
          where d is the direction in the core's frame; then of one label dn = B^-1 P w, of two (e = w1 - w0)
          dn = B^-1 (P w0 + k P e) with e.(n + dn) = 0, and of three n is the normal of their plane; P drops what is
          along n, and B^-1 is by Sherman, Morrison and Woodbury. A step goes little past the axis of a rim, where the
          rim bends the other way. Where a dozen steps, or five that do not halve the gap, do not end it, GJK goes on.
Sound:    as GJK: the gap along every direction tried is a lower bound, points of the cores give the upper one.
Known as: a Newton method for the distance of smooth convex bodies; see Montanari, Petrinic and Barbieri 2017 for the
          simplex of GJK.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.simplex import nearest_of_points
from tangere.query.distance.convex.gjk import gjk_of
from tangere.query.distance.convex.result import FAR, Closest, Sought, gap_rounding, is_found
from tangere.query.distance.convex.supports import (
    CURVED,
    ConvexShape,
    bends_of,
    label_of,
    labelled_of,
    margin_of,
    rim_of,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

MOST_STEPS = wp.constant(12)
#: Steps that do not halve the gap before it is given up.
POOR_STEPS = wp.constant(4)
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TINY = wp.constant(real(1.0e-300))
#: A rim bends no more than as if the direction were this far, squared, from the axis.
_LEAST_ACROSS = wp.constant(real(1.0e-18))
#: A direction turns by no more than this in a step.
_LONGEST = wp.constant(real(0.7))
#: … and by no more than this part of its distance to the axis of a rim, squared: beyond it the rim bends otherwise …
_PAST_AXIS = wp.constant(real(2.0))
#: … but by as much as this, squared.
_SHORTEST = wp.constant(real(1.0e-3))


@cache
def newton_of(kind_a: int, kind_b: int) -> wp.Function:
    """`closest(a, points_a, b, points_b, rotation, offset, guess, sought) -> Closest` of two kinds, one with a rim."""
    label_a, label_b = label_of(kind_a), label_of(kind_b)
    corner_a, corner_b = labelled_of(kind_a), labelled_of(kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    rim_a, rim_b = rim_of(kind_a), rim_of(kind_b)
    bends_a, bends_b = bends_of(kind_a), bends_of(kind_b)
    curved_a, curved_b = wp.constant(int(kind_a in CURVED)), wp.constant(int(kind_b in CURVED))
    descend = gjk_of(kind_a, kind_b)

    @wp.func
    def attempt(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        guess: vec,
        sought: Sought,
    ) -> tuple[Closest, bool]:
        found = Closest()
        slack = gap_rounding(a, b, offset)
        margins = margin_a(a) + margin_b(b)
        lower = -FAR
        upper = FAR + _ZERO
        n = guess / wp.length(guess)
        # Labels p and q of the corners of both, new and kept; their differences w at the current direction.
        count = int(0)
        p0 = int(0)
        p1 = int(0)
        p2 = int(0)
        p3 = int(0)
        q0 = int(0)
        q1 = int(0)
        q2 = int(0)
        q3 = int(0)
        steps = int(0)
        poor = int(0)
        before = FAR + _ZERO
        going = bool(True)
        ended = bool(False)
        while going and steps < MOST_STEPS:
            steps += 1
            along_a = -n
            along_b = n * rotation
            edge_a = rim_a(a, along_a)
            edge_b = rim_b(b, along_b)
            p = label_a(a, points_a, along_a)
            q = label_b(b, points_b, along_b)
            w0 = corner_a(a, points_a, p, edge_a) - (offset + rotation * corner_b(b, points_b, q, edge_b))
            here = wp.dot(n, w0)
            if here > lower:
                lower = here
                found.normal = n
            # The new label goes first; a kept one that is the same is dropped.
            if count >= 3 and p2 == p and q2 == q:
                count = 2
            if count >= 2 and p1 == p and q1 == q:
                p1 = p2
                q1 = q2
                count -= 1
            if count >= 1 and p0 == p and q0 == q:
                p0 = p1
                q0 = q1
                p1 = p2
                q1 = q2
                count -= 1
            p3 = p2
            q3 = q2
            p2 = p1
            q2 = q1
            p1 = p0
            q1 = q0
            p0 = p
            q0 = q
            count += 1
            # The kept ones, placed anew.
            w1 = vec()
            w2 = vec()
            w3 = vec()
            if count > 1:
                w1 = corner_a(a, points_a, p1, edge_a) - (offset + rotation * corner_b(b, points_b, q1, edge_b))
            if count > 2:
                w2 = corner_a(a, points_a, p2, edge_a) - (offset + rotation * corner_b(b, points_b, q2, edge_b))
            if count > 3:
                w3 = corner_a(a, points_a, p3, edge_a) - (offset + rotation * corner_b(b, points_b, q3, edge_b))
            nearest = nearest_of_points(count, w0, w1, w2, w3, True)
            l0 = nearest.weights[0]
            l1 = nearest.weights[1]
            l2 = nearest.weights[2]
            l3 = nearest.weights[3]
            length = wp.sqrt(nearest.squared)
            if nearest.inside or length < upper:
                on_a = l0 * corner_a(a, points_a, p0, edge_a)
                if count > 1:
                    on_a += l1 * corner_a(a, points_a, p1, edge_a)
                if count > 2:
                    on_a += l2 * corner_a(a, points_a, p2, edge_a)
                if count > 3:
                    on_a += l3 * corner_a(a, points_a, p3, edge_a)
                found.point_a = on_a
                found.point_b = on_a - nearest.point
            if nearest.inside:
                going = False
                ended = True
                upper = wp.length(l0 * w0 + l1 * w1 + l2 * w2 + l3 * w3)
            elif length <= slack:
                going = False
            else:
                upper = wp.min(upper, length)
                gap = upper - lower
                if is_found(lower, upper, margins, sought):
                    going = False
                    ended = True
                elif gap > _HALF * before:
                    poor += 1
                before = gap
                if poor > POOR_STEPS:
                    going = False
                if going:
                    if count == 4:
                        if l3 == _ZERO:
                            count = 3
                    if count >= 3 and l2 == _ZERO:
                        p2 = p3
                        q2 = q3
                        w2 = w3
                        l2 = l3
                        count -= 1
                    if count >= 2 and l1 == _ZERO:
                        p1 = p2
                        q1 = q2
                        w1 = w2
                        l1 = l2
                        p2 = p3
                        q2 = q3
                        w2 = w3
                        l2 = l3
                        count -= 1
                    if count >= 2 and l0 == _ZERO:
                        p0 = p1
                        q0 = q1
                        w0 = w1
                        l0 = l1
                        p1 = p2
                        q1 = q2
                        w1 = w2
                        l1 = l2
                        p2 = p3
                        q2 = q3
                        w2 = w3
                        count -= 1
                    if count >= 3:
                        x = wp.cross(w1 - w0, w2 - w0)
                        if wp.dot(x, n) < _ZERO:
                            x = -x
                        n = x / wp.max(wp.length(x), _TINY)
                    else:
                        bend_a = _ZERO
                        bend_b = _ZERO
                        side_a = vec()
                        side_b = vec()
                        second = wp.where(count == 2, l1, _ZERO)
                        most = _LONGEST * _LONGEST
                        if curved_a != 0:
                            across = wp.max(along_a[0] * along_a[0] + along_a[1] * along_a[1], _LEAST_ACROSS)
                            side_a = vec(-along_a[1], along_a[0], _ZERO)
                            bend_a = (l0 * bends_a(p0) + second * bends_a(p1)) * a.radius / (across * wp.sqrt(across))
                            if bend_a > _ZERO:
                                most = wp.min(most, wp.max(_PAST_AXIS * across, _SHORTEST))
                        if curved_b != 0:
                            across = wp.max(along_b[0] * along_b[0] + along_b[1] * along_b[1], _LEAST_ACROSS)
                            side_b = rotation * vec(-along_b[1], along_b[0], _ZERO)
                            bend_b = (l0 * bends_b(q0) + second * bends_b(q1)) * b.radius / (across * wp.sqrt(across))
                            if bend_b > _ZERO:
                                most = wp.min(most, wp.max(_PAST_AXIS * across, _SHORTEST))
                        both = wp.dot(side_a, side_b)
                        m11 = length + bend_a * wp.length_sq(side_a)
                        m12 = bend_b * both
                        m21 = bend_a * both
                        m22 = length + bend_b * wp.length_sq(side_b)
                        whole = (m11 * m22 - m12 * m21) * length
                        inverse = _ONE / length
                        bend_a = bend_a / whole
                        bend_b = bend_b / whole
                        x = w0 - n * wp.dot(n, w0)
                        xa = wp.dot(side_a, x)
                        xb = wp.dot(side_b, x)
                        x = x * inverse - side_a * (bend_a * (xa * m22 - xb * m12))
                        x = x - side_b * (bend_b * (xb * m11 - xa * m21))
                        if count == 2:
                            e = w1 - w0
                            en = wp.dot(e, n)
                            et = e - n * en
                            xa = wp.dot(side_a, et)
                            xb = wp.dot(side_b, et)
                            y = et * inverse - side_a * (bend_a * (xa * m22 - xb * m12))
                            y = y - side_b * (bend_b * (xb * m11 - xa * m21))
                            x = x - y * ((en + wp.dot(et, x)) / wp.max(wp.dot(et, y), _TINY))
                        turn = wp.length_sq(x)
                        if turn > most:
                            x = x * wp.sqrt(most / turn)
                        n = wp.normalize(n + x)
        found.steps = steps
        if ended:
            if upper <= slack:
                found.meet = True
                found.lower = -margins
                found.upper = -margins
            else:
                found.lower = lower - slack - margins
                found.upper = upper + slack - margins
        else:
            found.lower = lower - slack - margins
        return found, ended

    # Two functions, for compilers keep more of a small one in registers: a tenth of the time of near pairs.
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
        found, ended = attempt(a, points_a, b, points_b, rotation, offset, guess, sought)
        if not ended:
            other = descend(a, points_a, b, points_b, rotation, offset, found.normal, sought)
            other.steps += found.steps
            if not other.meet and found.lower > other.lower:
                other.lower = found.lower
                other.normal = found.normal
            return other
        return found

    @wp.func
    def begun_twice(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
        guess: vec,
        sought: Sought,
    ) -> Closest:
        # Where GJK ends too early too, once in 10^5 near pairs, all begins again from there.
        margins = margin_a(a) + margin_b(b)
        slack = gap_rounding(a, b, offset)
        found = Closest()
        begin = vec(guess[0], guess[1], guess[2])
        steps = int(0)
        tries = int(0)
        while tries < 2:
            tries += 1
            found = closest(a, points_a, b, points_b, rotation, offset, begin, sought)
            steps += found.steps
            lower = found.lower + slack + margins
            if found.meet or is_found(lower, found.upper - slack + margins, margins, sought):
                tries = 2
            begin = found.normal
        found.steps = steps
        return found

    return begun_twice

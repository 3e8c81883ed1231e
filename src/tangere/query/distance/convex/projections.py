"""Nearest points of two cores by projecting back and forth, before a search: often enough, and else a good direction.

Question: how far are two cores apart that both have a formula for their nearest point to a given one?
Method:   from b's origin to a, to b, and so on, a few times; where the gap along the direction found is the distance of
          the points, that is the answer. On the flat end of a cylinder or cone the direction is known at once and the
          point is not: there the other's farthest point takes its place. Where that is not the answer, the search for
          the two kinds starts from that direction.
Sound:    as the searches: a gap from both supports is the lower bound, two points of the cores the upper one.
Known as: alternating projections (von Neumann 1933; Cheney and Goldstein 1959).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.projection import projection_of
from tangere.query.distance.convex.result import Closest, Sought, gap_rounding, is_found
from tangere.query.distance.convex.supports import CURVED, ConvexShape, core_support_of, core_value_of, margin_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Times it goes to a and back.
ROUNDS = wp.constant(2)
#: A direction is along an axis where no more than this, squared, is across.
_ACROSS = wp.constant(real(1.0e-24))


@cache
def projected_before(kind_a: int, kind_b: int, search: wp.Function) -> wp.Function:
    """`closest(…)` of two kinds: projections, then `search` where they do not end."""
    on_a, on_b = projection_of(kind_a), projection_of(kind_b)
    value_a, value_b = core_value_of(kind_a), core_value_of(kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)
    flat_a, flat_b = wp.constant(int(kind_a in CURVED)), wp.constant(int(kind_b in CURVED))

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
        slack = gap_rounding(a, b, offset)
        y = offset
        x = on_a(a, points_a, y, vec()).point
        k = int(0)
        while k < ROUNDS:
            k += 1
            y = offset + rotation * on_b(b, points_b, (x - offset) * rotation, vec()).point
            x = on_a(a, points_a, y, vec()).point
        way = x - y
        apart = wp.length(way)
        begin = vec(guess[0], guess[1], guess[2])
        if apart > slack:
            n = way / apart
            lower = -value_a(a, points_a, -n) - value_b(b, points_b, n * rotation) - wp.dot(n, offset)
            # On a flat end the way goes along the axis from wherever it began: the other's farthest point does not.
            if flat_a != 0:
                if n[0] * n[0] + n[1] * n[1] <= _ACROSS:
                    y = offset + rotation * support_b(b, points_b, n * rotation)
                    x = on_a(a, points_a, y, vec()).point
            if flat_b != 0:
                m = n * rotation
                if m[0] * m[0] + m[1] * m[1] <= _ACROSS:
                    x = support_a(a, points_a, -n)
                    y = offset + rotation * on_b(b, points_b, (x - offset) * rotation, vec()).point
            apart = wp.length(x - y)
            margins = margin_a(a) + margin_b(b)
            if is_found(lower, apart, margins, sought):
                found = Closest()
                found.lower = lower - slack - margins
                found.upper = apart + slack - margins
                found.normal = n
                found.point_a = x
                found.point_b = y
                found.steps = 1
                return found
            begin = n
        return search(a, points_a, b, points_b, rotation, offset, begin, sought)  # once: it is half of the code

    return closest

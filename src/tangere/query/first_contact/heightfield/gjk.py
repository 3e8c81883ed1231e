"""How far is a convex body from a piece of ground, and in which direction?

Method: the GJK descent on the differences of their points, with supports of the body and at most four corners of the
        ground. It ends as soon as the direction found separates almost as far as the points found are apart. Where they
        nearly touch their difference has no digits left: then the directions across the edges of the last simplex,
        which have, are tried as well.
Sound:  `low` is a gap along `normal` evaluated from both supports, so it holds whatever the quality of the descent;
        `high` is the distance of two actual points. A poor direction costs time, never a contact.
Known as: GJK (Gilbert, Johnson and Keerthi 1988). A round body is its core with a radius: the core is what is searched.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.simplex import nearest_of_points
from tangere.runtime import SOUND
from tangere.shape.analytic import Hulls, PlacedBody, support_of

wp.set_module_options(SOUND)

#: Four corners of a square, or three of a triangle and the last one again, one a row.
Corners = wp.types.matrix(shape=(4, 3), dtype=wp.float64)

#: The direction is good enough when it separates so much of the distance.
ENOUGH = wp.constant(wp.float64(0.05))
MOST_STEPS = wp.constant(48)
_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_FAR = wp.constant(wp.float64(1.0e300))
#: Nearer than this part of the lengths involved is touching: rounding of the differences.
_ROUNDING = wp.constant(wp.float64(1.0e-15))


@wp.struct
class Gap:
    low: wp.float64  # certain separation along the normal; negative where none was found
    high: wp.float64  # distance of two points; 0 where the bodies overlap
    normal: wp.vec3d  # unit, from the ground to the body
    point: wp.vec3d  # of the ground, nearest to the body, relative to the body's origin


@wp.struct
class Simplex:
    """Up to four differences body - ground, the ground points they come from, and the weights of the nearest one."""

    difference: Corners
    ground: Corners
    weights: wp.vec4d
    count: int


@cache
def gap_of(kind: int) -> wp.Function:
    """`gap(body, hulls, radius, ground, guess, aim, least, enough) -> Gap` for bodies of a kind.

    `body` is the core, `radius` what is around it, `ground` the corners relative to the body's origin, `guess` a unit
    direction, `aim` the distance it is about, `least` an error of it that does not matter; a distance that is certainly
    `enough` need not be known better [m].
    """
    support = support_of(kind)

    @wp.func
    def gap(
        body: PlacedBody,
        hulls: Hulls,
        radius: wp.float64,
        ground: Corners,
        guess: wp.vec3d,
        aim: wp.float64,
        least: wp.float64,
        enough: wp.float64,
    ) -> Gap:
        best = Gap()
        best.low = -_FAR
        best.normal = guess
        n = _ONE * guess  # a copy: the loop would change the argument
        v = wp.vec3d()
        length = _FAR + _ZERO
        simplex = Simplex()
        sharper = int(0)
        steps = int(0)
        while steps < MOST_STEPS:
            steps += 1
            corner = farthest_corner(ground, n)
            under = corner_of(ground, corner)
            w = support(body, hulls, -n) - under
            low = wp.dot(n, w)
            if low > best.low:
                best.low = low
                best.normal = n
            # The last v is an actual difference: the distance is between low and its length.
            if steps > 1 and length - best.low <= wp.max(ENOUGH * (length - radius - aim), least):
                break
            if sharper == 2 or (steps > 1 and best.low - radius >= enough):
                break
            if sharper == 1:
                n = across_all(simplex, v)
                sharper = 2
                continue
            simplex.difference[simplex.count] = w
            simplex.ground[simplex.count] = under
            simplex.count += 1
            simplex = nearest_in(simplex)
            v = weighted(simplex.difference, simplex.weights)
            now = wp.length(v)
            if now <= _ROUNDING * (wp.length(w) + wp.length(under)):
                length = _ZERO
                break
            if now <= radius:  # they overlap, whatever the direction
                length = now
                break
            if steps > 1 and now >= length:  # no progress left in these digits
                n = across_longest(simplex, v)
                sharper = 1
                continue
            length = now
            n = v / now
        best.point = weighted(simplex.ground, simplex.weights)
        best.low -= radius
        best.high = wp.max(length - radius, _ZERO)
        return best

    return gap


@wp.func
def across_longest(s: Simplex, v: wp.vec3d) -> wp.vec3d:
    """v made perpendicular to the longest edge of a simplex, unit.

    The difference of points that nearly touch has few digits left, an edge between points far apart has all of them.
    """
    e = wp.vec3d()
    for k in range(3):
        if k < s.count:
            d = corner_of(s.difference, k) - corner_of(s.difference, wp.where(k + 1 < s.count, k + 1, 0))
            if wp.length_sq(d) > wp.length_sq(e):
                e = d
    n = _ONE * v
    if wp.length_sq(e) > _ZERO:
        e = wp.normalize(e)
        n = v - wp.dot(v, e) * e
    if not wp.length_sq(n) > _ZERO:
        n = _ONE * v
    return wp.normalize(n)


@wp.func
def across_all(s: Simplex, v: wp.vec3d) -> wp.vec3d:
    """The normal of a simplex of three points on the side of v, unit; of fewer, v itself."""
    a = corner_of(s.difference, 0)
    n = wp.cross(corner_of(s.difference, 1) - a, corner_of(s.difference, 2) - a)
    if s.count != 3 or not wp.length_sq(n) > _ZERO:
        n = _ONE * v
    if wp.dot(n, v) < _ZERO:
        n = -n
    return wp.normalize(n)


@wp.func
def corner_of(corners: Corners, k: int) -> wp.vec3d:
    return wp.vec3d(corners[k, 0], corners[k, 1], corners[k, 2])


@wp.func
def farthest_corner(corners: Corners, n: wp.vec3d) -> int:
    along = corners * n
    best = int(0)
    for k in range(1, 4):
        if along[k] > along[best]:
            best = k
    return best


@wp.func
def weighted(corners: Corners, weights: wp.vec4d) -> wp.vec3d:
    return wp.transpose(corners) * weights


@wp.func
def nearest_in(s: Simplex) -> Simplex:
    """The simplex without the corners that the point nearest to the origin does not need, and its weights.

    Where the origin is inside all differences are zero.
    """
    found = nearest_of_points(
        s.count,
        corner_of(s.difference, 0),
        corner_of(s.difference, 1),
        corner_of(s.difference, 2),
        corner_of(s.difference, 3),
        True,
    )
    kept = Simplex()
    for k in range(4):
        if found.weights[k] > _ZERO:
            if not found.inside:
                kept.difference[kept.count] = s.difference[k]
            kept.ground[kept.count] = s.ground[k]
            kept.weights[kept.count] = found.weights[k]
            kept.count += 1
    return kept

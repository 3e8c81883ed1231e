"""Do two triangles meet, exactly? For what rounding hides: touching corners and edges, faces in one plane.

Method: signs of determinants. A filter in double precision decides most; the others are summed up without error, as
        expansions: sums of doubles that do not overlap, of which the last one has the sign (Shewchuk 1997). Triangles
        meet if and only if an edge of one meets the other; in one plane they are apart if and only if the line of a
        side parts them.
Exact:  or UNSURE: for triangles without area, and for numbers so large or small that a product may overflow or lose
        digits. Those are left to the slower rational arithmetic of `decide_exactly`.
Known as: an exact triangle-triangle intersection test by orientation predicates (Shewchuk 1997; Guigue and Devillers
          2003).
A triangle is a matrix with a corner in each row.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.triangles.gap import corner
from tangere.geometry.triangles.intersection import APART, MEET, UNSURE, side, triangles_meet
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Doubles in an expansion. It has one for every 53 bits between its largest and smallest digits, seldom more than 20.
_ROOM = 64
Terms = wp.types.vector(length=_ROOM, dtype=wp.float64)
Turns = wp.types.vector(length=10, dtype=wp.int32)
_MOST = wp.constant(_ROOM)
#: A sign that is not known.
UNKNOWN = wp.constant(2)

#: Factors beyond these may overflow, or lose digits to underflow, in a product of three and its error terms.
_LARGE = wp.constant(wp.float64(1.0e75))
_SMALL = wp.constant(wp.float64(1.0e-75))
#: 2^27 + 1 cuts a double into two halves.
_SPLITTER = wp.constant(wp.float64(134217729.0))
#: (3 + 16 e) e, Shewchuk's orient2d stage A, a little more.
_FILTER = wp.constant(wp.float64(3.4e-16))
_UNDERFLOW = wp.constant(wp.float64(1.0e-280))
_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


@wp.func
def triangles_meet_or_not(a: wp.mat33d, b: wp.mat33d) -> int:
    """MEET or APART, the quick way where that decides; UNSURE as for `triangles_meet_exactly`."""
    code = triangles_meet(a, b)
    if code == UNSURE:
        code = triangles_meet_exactly(a, b)
    return code


@wp.func
def triangles_meet_exactly(a: wp.mat33d, b: wp.mat33d) -> int:
    """MEET or APART; UNSURE where the triangles have no area or numbers are out of range."""
    planes = wp.vec2i(-1, -1)  # axes along which each triangle can be looked at without losing its area
    m = int(0)
    while m < 6:
        t = a
        if m >= 3:
            t = b
        turn = turn_of(corner(t, 0), corner(t, 1), corner(t, 2), m % 3)
        if turn == 1 or turn == -1:
            planes[m / 3] = m % 3
        m += 1
    if wp.min(planes) < 0:
        return UNSURE
    sides_a = wp.vec3i()
    sides_b = wp.vec3i()
    k = int(0)
    while k < 6:
        corners = b
        point = corner(a, k % 3)
        if k >= 3:
            corners = a
            point = corner(b, k % 3)
        sign = side_of(corner(corners, 0), corner(corners, 1), corner(corners, 2), point)
        if sign == UNKNOWN:
            return UNSURE
        if k < 3:
            sides_a[k] = sign
        else:
            sides_b[k - 3] = sign
        k += 1
    answer = int(APART)
    n = int(0)
    while n < 6 and answer == APART:
        # Edge n of a on the face b; then the edges of b on a.
        edges = a
        face = b
        sides = sides_a
        plane = planes[1]
        if n >= 3:
            edges = b
            face = a
            sides = sides_b
            plane = planes[0]
        i = n % 3
        j = (n + 1) % 3
        if sides[i] == 0 and sides[j] == 0:
            answer = edge_in_plane(corner(edges, i), corner(edges, j), face, plane)
        elif sides[i] * sides[j] <= 0:
            answer = edge_through_plane(corner(edges, i), corner(edges, j), face)
        n += 1
    return answer


@wp.func
def edge_through_plane(p: wp.vec3d, q: wp.vec3d, face: wp.mat33d) -> int:
    """Whether the segment pq, whose ends are not both in the plane of the face nor both on one side, meets the face."""
    seen = wp.vec3i()
    k = int(0)
    while k < 3:
        sign = side_of(p, q, corner(face, k), corner(face, (k + 1) % 3))
        if sign == UNKNOWN:
            return UNSURE
        seen[k] = sign
        k += 1
    if wp.min(seen) < 0 and wp.max(seen) > 0:
        return APART
    return MEET


@wp.func
def edge_in_plane(p: wp.vec3d, q: wp.vec3d, face: wp.mat33d, axis: int) -> int:
    """Whether the segment pq in the plane of the face meets it: no side of the face, and not pq itself, parts them."""
    turns = Turns()
    k = int(0)
    while k < 10:  # round the face; then of p, and of q, about its sides; then of its corners about pq
        u = corner(face, k % 3)
        v = corner(face, (k + 1) % 3)
        w = corner(face, (k + 2) % 3)
        if k >= 1:
            w = p
        if k >= 4:
            w = q
        if k >= 7:
            w = u
            u = p
            v = q
        turns[k] = turn_of(u, v, w, axis)
        if turns[k] == UNKNOWN:
            return UNSURE
        k += 1
    out = -turns[0]
    one_side = turns[7] == turns[8] and turns[8] == turns[9] and turns[7] != 0
    for edge in range(3):
        if turns[1 + edge] == out and turns[4 + edge] == out:
            one_side = True
    if one_side:
        return APART
    return MEET


# -- signs of determinants --------------------------------------------------------------------------------------------


@wp.func
def side_of(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> int:
    """On which side of the plane abc d is: -1, 0 or 1; `UNKNOWN` if numbers are out of range."""
    sign = side(a, b, c, d)
    if sign != 0:
        return sign
    whole = wp.mat33d()
    rest = wp.mat33d()
    for k in range(3):
        of_a = added(a[k], -d[k])
        of_b = added(b[k], -d[k])
        of_c = added(c[k], -d[k])
        whole[0, k] = of_a[0]
        whole[1, k] = of_b[0]
        whole[2, k] = of_c[0]
        rest[0, k] = of_a[1]
        rest[1, k] = of_b[1]
        rest[2, k] = of_c[1]
    return determinant_sign(whole, rest)


@wp.func
def turn_of(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, axis: int) -> int:
    """Which way abc turns, seen along a coordinate axis: -1, 0 or 1; `UNKNOWN` if numbers are out of range."""
    x = (axis + 1) % 3
    y = (axis + 2) % 3
    one = (a[x] - c[x]) * (b[y] - c[y])
    other = (a[y] - c[y]) * (b[x] - c[x])
    bound = _FILTER * (wp.abs(one) + wp.abs(other)) + _UNDERFLOW
    if one - other > bound:
        return 1
    if one - other < -bound:
        return -1
    of_ax = added(a[x], -c[x])
    of_ay = added(a[y], -c[y])
    of_bx = added(b[x], -c[x])
    of_by = added(b[y], -c[y])
    whole = wp.mat33d(of_ax[0], of_ay[0], _ZERO, of_bx[0], of_by[0], _ZERO, _ZERO, _ZERO, _ONE)
    rest = wp.mat33d(of_ax[1], of_ay[1], _ZERO, of_bx[1], of_by[1], _ZERO, _ZERO, _ZERO, _ZERO)
    return determinant_sign(whole, rest)


@wp.func
def determinant_sign(whole: wp.mat33d, rest: wp.mat33d) -> int:
    """The sign of the determinant of whole + rest; `UNKNOWN` if numbers are out of range.

    The sum grows term by term: its doubles rise and do not overlap, those that become zero are left out.
    """
    sum = Terms()
    count = int(0)
    k = int(0)
    while k < 48:  # six products of three factors, each of them the sum of two doubles
        i = (k / 8) % 3
        j = (i + 1 + k / 24) % 3
        p = whole[0, i]
        q = whole[1, j]
        r = whole[2, 3 - i - j]
        if k % 2 == 1:
            p = rest[0, i]
        if (k / 2) % 2 == 1:
            q = rest[1, j]
        if (k / 4) % 2 == 1:
            r = rest[2, 3 - i - j]
        if k >= 24:
            p = -p
        k += 1
        if p != _ZERO and q != _ZERO and r != _ZERO:
            largest = wp.max(wp.max(wp.abs(p), wp.abs(q)), wp.abs(r))
            smallest = wp.min(wp.min(wp.abs(p), wp.abs(q)), wp.abs(r))
            if not (largest < _LARGE and smallest > _SMALL and count + 4 <= _MOST):
                return UNKNOWN
            pq = multiplied(p, q)
            low = multiplied(pq[1], r)
            high = multiplied(pq[0], r)
            terms = wp.vec4d(low[1], low[0], high[1], high[0])
            n = int(0)
            while n < 4:
                carried = terms[n]
                kept = int(0)
                at = int(0)
                while at < count:
                    pair = added(carried, sum[at])
                    carried = pair[0]
                    if pair[1] != _ZERO:
                        sum[kept] = pair[1]
                        kept += 1
                    at += 1
                if carried != _ZERO:
                    sum[kept] = carried
                    kept += 1
                count = kept
                n += 1
    sign = int(0)
    if count > 0:
        sign = int(wp.sign(sum[count - 1]))
    return sign


@wp.func
def added(p: wp.float64, q: wp.float64) -> wp.vec2d:
    """p + q as the sum of two doubles, the rounded sum first."""
    sum = p + q
    back = sum - p
    return wp.vec2d(sum, (p - (sum - back)) + (q - back))


@wp.func
def multiplied(p: wp.float64, q: wp.float64) -> wp.vec2d:
    """p q as the sum of two doubles, the rounded product first."""
    product = p * q
    big = _SPLITTER * p
    p1 = big - (big - p)
    p2 = p - p1
    big = _SPLITTER * q
    q1 = big - (big - q)
    q2 = q - q1
    return wp.vec2d(product, p2 * q2 - (((product - p1 * q1) - p2 * q1) - p1 * q2))

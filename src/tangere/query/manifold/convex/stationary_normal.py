"""The last digits of the least way out of bodies with rims, and how far round it no way out is shorter.

Question: which direction near that of a polytope's face is the least way out, to rounding, and of how many others?
Method:   the least way along n is stationary where the deepest difference w of the cores is along n. The corners of the
          face are labels, ends, tips or corners, whose points are placed anew on their rims for each n. One label:
          w along n. Two labels: a mixture of both along n, and their difference across it. Three: the normal of their
          plane, again and again. A few steps of Newton's method from the normal of the face.
          Round the direction found the reach is no less than that of the labels alone. At an angle from it that is a
          cosine of the depth, and more by how far the labels' points lie beside it, and by how round their rims are.
Sound:    the direction found is taken only if the reach of the difference along it, from supports, is not larger. What
          is said of directions round it holds for the labels' points and discs, which are parts of the difference.
Known as: Newton's method on the sphere; as `distance.convex.newton`, on the other side of the surface. Where the
          curvature of the surface is less than that of the ball inside it (second-order optimality).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.supports import CURVED, ConvexShape, on_rim_of
from tangere.query.manifold.convex.polytope import shares_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

STEPS = wp.constant(6)
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_FOUR = wp.constant(real(4.0))
_TINY = wp.constant(real(1.0e-300))
#: Labels nearer than this part of the size are one.
_SAME = wp.constant(real(1.0e-9))
#: It has converged where the difference is beside the normal by less than this part of the size.
_ASIDE = wp.constant(real(1.0e-11))
#: … or where the normal of three points moved by less than this: the points are as far along it but for its square.
_STILL = wp.constant(real(1.0e-6))
#: Of a neighbourhood something is said where it is so by no more than this.
_BESIDE = wp.constant(real(1.0e-10))
#: Directions move by less than this.
_FAR = wp.constant(real(0.3))
#: Neighbourhoods that are tried, as tangents of half their angles: from the first to no less than the last.
_WIDEST, _LESS, _NARROWEST = wp.constant(real(0.6)), wp.constant(real(0.7)), wp.constant(real(0.005))


@wp.struct
class StationaryNormal:
    normal: wp.vec3d  #: unit
    labels: wp.int32  #: how many there are
    own: wp.vec3d  #: the deepest point of a
    difference: wp.vec3d  #: … less that of b; along the normal where Newton's method has converged
    level: wp.float64  #: no direction of the neighbourhood reaches less [m]
    cosine: wp.float64  #: of the angle of the neighbourhood; 1 without one


@wp.struct
class RimPoint:
    """Of one of two bodies, in a's frame, for a direction."""

    point: wp.vec3d  #: from its middle to where it reaches farthest
    tangent: wp.vec3d  #: unit
    radius: wp.float64  #: zero without one
    across: wp.float64  #: the part of the direction that is across its axis


@wp.func
def rim_along(radius: real, d: vec) -> RimPoint:
    """A rim about z for a unit direction, both in the frame of its body."""
    rim = RimPoint()
    rim.radius = radius
    rim.across = wp.sqrt(d[0] * d[0] + d[1] * d[1])
    if rim.across > _ZERO:
        x = d[0] / rim.across
        y = d[1] / rim.across
        rim.point = vec(radius * x, radius * y, _ZERO)
        rim.tangent = vec(-y, x, _ZERO)
    return rim


@wp.func
def no_rim_along(radius: real, d: vec) -> RimPoint:
    return RimPoint()


@wp.func
def roundness_of(rim: RimPoint, half: real) -> real:
    """How much the reach of a rim bends along its tangent at least, up to an angle; `half`: the tangent of half of it.

    At an angle its reach is more than that of one point by half the square of the sine, times this.
    """
    sine = _TWO * half / (_ONE + half * half)
    cosine = (_ONE - half * half) / (_ONE + half * half)
    away = rim.across * cosine + sine * wp.sqrt(wp.max(_ONE - rim.across * rim.across, _ZERO))
    return rim.radius * _TWO / (wp.sqrt(away * away + sine * sine) + away)


@cache
def stationary_normal_of(kind_a: int, kind_b: int) -> wp.Function:
    """`polished(a, b, rotation, offset, n, own, corners, shares, size) -> StationaryNormal` for cores of two kinds.

    `own` and `corners` have the points of a and the differences of a face as rows, `shares` their weights.
    """
    on_rim_a, on_rim_b = on_rim_of(kind_a), on_rim_of(kind_b)
    curved_a, curved_b = wp.constant(int(kind_a in CURVED)), wp.constant(int(kind_b in CURVED))
    along_a = rim_along if kind_a in CURVED else no_rim_along
    along_b = rim_along if kind_b in CURVED else no_rim_along

    @wp.func
    def polished(
        a: ConvexShape,
        b: ConvexShape,
        rotation: wp.mat33d,
        offset: vec,
        n: vec,
        own: wp.mat33d,
        corners: wp.mat33d,
        shares: vec,
        size: real,
    ) -> StationaryNormal:
        found = StationaryNormal()
        found.normal = n
        found.cosine = _ONE
        # Middles of the labels' discs, or their points: of a, and differences.
        core = wp.mat33d()
        middle = wp.mat33d()
        turning_a = vec()
        turning_b = vec()
        for k in range(3):
            x = vec(own[k, 0], own[k, 1], own[k, 2])
            y = (x - vec(corners[k, 0], corners[k, 1], corners[k, 2]) - offset) * rotation
            if curved_a != 0:
                x = vec(_ZERO, _ZERO, x[2])
                turning_a[k] = on_rim_a(x)
            if curved_b != 0:
                y = vec(_ZERO, _ZERO, y[2])
                turning_b[k] = on_rim_b(y)
            y = x - offset - rotation * y
            for j in range(3):
                core[k, j] = x[j]
                middle[k, j] = y[j]
        # The label of each corner: 0 as the first, 1 as the first other one, 2 as none of them.
        second = int(-1)
        third = int(-1)
        share = real(0.0)
        for k in range(1, 3):
            if row_distance(core, 0, k) + row_distance(middle, 0, k) > _SAME * size:
                if second < 0:
                    second = k
                elif row_distance(core, second, k) + row_distance(middle, second, k) > _SAME * size:
                    third = k
                share += shares[k]
        found.labels = 1 + wp.where(second > 0, 1, 0) + wp.where(third > 0, 1, 0)
        second = wp.max(second, 0)
        third = wp.max(third, 0)
        w0 = vec()
        w1 = vec()
        w2 = vec()
        own_0 = vec()
        own_1 = vec()
        own_2 = vec()
        on_a = RimPoint()
        on_b = RimPoint()
        step = int(0)
        while step < STEPS:
            step += 1
            m = found.normal
            on_a = along_a(a.radius, m)
            on_b = along_b(b.radius, -(m * rotation))
            on_b.point = rotation * on_b.point
            on_b.tangent = rotation * on_b.tangent
            own_0 = row_of(core, 0) + turning_a[0] * on_a.point
            own_1 = row_of(core, second) + turning_a[second] * on_a.point
            w0 = row_of(middle, 0) + turning_a[0] * on_a.point - turning_b[0] * on_b.point
            w1 = row_of(middle, second) + turning_a[second] * on_a.point - turning_b[second] * on_b.point
            if found.labels == 3:
                own_2 = row_of(core, third) + turning_a[third] * on_a.point
                w2 = row_of(middle, third) + turning_a[third] * on_a.point - turning_b[third] * on_b.point
                normal = wp.normalize(wp.cross(w1 - w0, w2 - w0))
                normal = wp.where(wp.dot(normal, n) < _ZERO, -normal, normal)
                moved = wp.length_sq(normal - m)
                if not wp.length_sq(normal - n) < _FAR * _FAR:
                    step = STEPS
                elif step < STEPS or moved < _STILL * _STILL:
                    found.normal = normal
                if moved < _STILL * _STILL:
                    step = STEPS
            else:
                way = w1 - w0
                w = w0 + share * way
                part_a = turning_a[0] + share * (turning_a[second] - turning_a[0])
                part_b = turning_b[0] + share * (turning_b[second] - turning_b[0])
                depth = wp.dot(m, w)
                # A basis across m; unknowns are the move along it and, with two labels, the change of the share.
                e = vec(_ONE, _ZERO, _ZERO)
                if wp.abs(m[0]) > wp.abs(m[1]):
                    e = vec(_ZERO, _ONE, _ZERO)
                e = wp.normalize(e - wp.dot(e, m) * m)
                f = wp.cross(m, e)
                r_e = -wp.dot(e, w)
                r_f = -wp.dot(f, w)
                fixed = wp.dot(way, m)
                if wp.abs(r_e) + wp.abs(r_f) + wp.abs(fixed) <= _ASIDE * size:
                    step = STEPS
                bend_a = part_a * on_a.radius / wp.max(on_a.across, _TINY)
                bend_b = part_b * on_b.radius / wp.max(on_b.across, _TINY)
                a_e = wp.dot(on_a.tangent, e)
                a_f = wp.dot(on_a.tangent, f)
                b_e = wp.dot(on_b.tangent, e)
                b_f = wp.dot(on_b.tangent, f)
                k_ee = bend_a * a_e * a_e + bend_b * b_e * b_e - depth
                k_ef = bend_a * a_e * a_f + bend_b * b_e * b_f
                k_ff = bend_a * a_f * a_f + bend_b * b_f * b_f - depth
                move = vec()
                change = real(0.0)
                if found.labels == 1:
                    det = k_ee * k_ff - k_ef * k_ef
                    if wp.abs(det) > _TINY:
                        move = ((k_ff * r_e - k_ef * r_f) / det) * e + ((k_ee * r_f - k_ef * r_e) / det) * f
                else:
                    g_e = wp.dot(way, e)
                    g_f = wp.dot(way, f)
                    long = g_e * g_e + g_f * g_f
                    if long > _TINY:
                        # Along the difference the move is given; across it one equation is left; then the share.
                        x_e = -fixed / long * g_e
                        x_f = -fixed / long * g_f
                        rest_e = r_e - k_ee * x_e - k_ef * x_f
                        rest_f = r_f - k_ef * x_e - k_ff * x_f
                        bend = k_ee * g_f * g_f - _TWO * k_ef * g_e * g_f + k_ff * g_e * g_e
                        if wp.abs(bend) > _TINY:
                            slide = (rest_f * g_e - rest_e * g_f) / bend
                            x_e -= slide * g_f
                            x_f += slide * g_e
                        rest_e = r_e - k_ee * x_e - k_ef * x_f
                        rest_f = r_f - k_ef * x_e - k_ff * x_f
                        change = (rest_e * g_e + rest_f * g_f) / long
                        move = x_e * e + x_f * f
                if not wp.length(move) < _FAR:
                    step = STEPS
                if step < STEPS:
                    found.normal = wp.normalize(m + move)
                    share = wp.clamp(share + change, _ZERO, _ONE)
        if found.labels == 3:
            foot = wp.dot(found.normal, w0) * found.normal
            part = shares_of(foot, w0, w1, w2)
            found.own = part[0] * own_0 + part[1] * own_1 + part[2] * own_2
            found.difference = part[0] * w0 + part[1] * w1 + part[2] * w2
        else:
            found.own = own_0 + share * (own_1 - own_0)
            found.difference = w0 + share * (w1 - w0)
        # Where it has converged: how far round it do the labels' discs reach no less?
        n = found.normal
        depth = wp.dot(n, found.difference)
        aside = wp.length(found.difference - depth * n)
        found.level = depth - _TWO * aside
        if found.level > _ZERO and aside <= _BESIDE * size:
            if found.labels == 3:
                found.level = wp.min(found.level, wp.min(wp.dot(n, w0), wp.min(wp.dot(n, w1), wp.dot(n, w2))))
                # Two points of each body: the corners of a parallelogram, of which the fourth is known.
                x = depth * n
                inner = inner_radius(x, w0, w1, w2)
                if is_pivot(core, middle, 0, second, third, _SAME * size):
                    inner = inner_radius_of_four(x, w0, w1, w2)
                elif is_pivot(core, middle, second, 0, third, _SAME * size):
                    inner = inner_radius_of_four(x, w1, w0, w2)
                elif is_pivot(core, middle, third, 0, second, _SAME * size):
                    inner = inner_radius_of_four(x, w2, w0, w1)
                half = wp.min(inner / found.level, _WIDEST)
                if half > _NARROWEST:
                    found.cosine = (_ONE - half * half) / (_ONE + half * half)
            else:
                found.level = wp.min(found.level, wp.min(wp.dot(n, w0), wp.dot(n, w1)))
                on_a.radius *= turning_a[0] + share * (turning_a[second] - turning_a[0])
                on_b.radius *= turning_b[0] + share * (turning_b[second] - turning_b[0])
                way = w1 - w0
                long = wp.length(way)
                if found.labels == 2 and long > _ZERO:
                    way = way / long
                    f = wp.normalize(wp.cross(n, way))
                    found.cosine = cosine_across_line(
                        on_a, on_b, way, f, wp.min(share, _ONE - share) * long, found.level
                    )
                elif found.labels == 1:
                    found.cosine = cosine_round_point(on_a, on_b, n, found.level)
        return found

    return polished


@wp.func
def cosine_round_point(on_a: RimPoint, on_b: RimPoint, n: vec, level: real) -> real:
    """Up to which cosine from n two rims reach no less than `level`, which they do along n; 1 if nowhere."""
    e = vec(_ONE, _ZERO, _ZERO)
    if wp.abs(n[0]) > wp.abs(n[1]):
        e = vec(_ZERO, _ONE, _ZERO)
    e = wp.normalize(e - wp.dot(e, n) * n)
    f = wp.cross(n, e)
    a_e = wp.dot(on_a.tangent, e)
    a_f = wp.dot(on_a.tangent, f)
    b_e = wp.dot(on_b.tangent, e)
    b_f = wp.dot(on_b.tangent, f)
    half = _WIDEST + _ZERO
    while half > _NARROWEST:
        bend_a = roundness_of(on_a, half)
        bend_b = roundness_of(on_b, half)
        k_ee = bend_a * a_e * a_e + bend_b * b_e * b_e
        k_ef = bend_a * a_e * a_f + bend_b * b_e * b_f
        k_ff = bend_a * a_f * a_f + bend_b * b_f * b_f
        # the lesser of both curvatures
        bend = _HALF * (k_ee + k_ff - wp.sqrt((k_ee - k_ff) * (k_ee - k_ff) + _FOUR * k_ef * k_ef))
        if bend >= (_ONE + half * half) * level:
            return (_ONE - half * half) / (_ONE + half * half)
        half = _LESS * half
    return _ONE


@wp.func
def cosine_across_line(on_a: RimPoint, on_b: RimPoint, e: vec, f: vec, beside: real, level: real) -> real:
    """The same of two points that are at least `beside` the normal to either side along e; f is across both.

    Along e one of them reaches farther by as much as it is beside; else the rims bend across.
    """
    a_e = wp.dot(on_a.tangent, e)
    a_f = wp.dot(on_a.tangent, f)
    b_e = wp.dot(on_b.tangent, e)
    b_f = wp.dot(on_b.tangent, f)
    half = wp.min(_WIDEST, beside / level)
    while half > _NARROWEST:
        bend_a = roundness_of(on_a, half)
        bend_b = roundness_of(on_b, half)
        along = half * level / beside
        bend = wp.sqrt((_ONE - along * along) * (bend_a * a_f * a_f + bend_b * b_f * b_f))
        bend -= along * wp.sqrt(bend_a * a_e * a_e + bend_b * b_e * b_e)
        if bend > _ZERO and bend * bend >= (_ONE + half * half) * level:
            return (_ONE - half * half) / (_ONE + half * half)
        half = _LESS * half
    return _ONE


@wp.func
def inner_radius(x: vec, one: vec, two: vec, three: vec) -> real:
    """How far a point of a triangle's plane is inside it; negative outside."""
    normal = wp.cross(two - one, three - one)
    d = side_distance(x, one, two, normal)
    d = wp.min(d, side_distance(x, two, three, normal))
    return wp.min(d, side_distance(x, three, one, normal))


@wp.func
def inner_radius_of_four(x: vec, pivot: vec, one: vec, other: vec) -> real:
    """How far a point is inside a parallelogram, of which three corners are given; negative outside."""
    far = one + other - pivot
    normal = wp.cross(one - pivot, other - pivot)
    d = wp.min(side_distance(x, pivot, one, normal), side_distance(x, one, far, normal))
    return wp.min(d, wp.min(side_distance(x, far, other, normal), side_distance(x, other, pivot, normal)))


@wp.func
def is_pivot(core: wp.mat33d, middle: wp.mat33d, i: int, j: int, k: int, same: real) -> bool:
    """Whether a label has the point of a of one of two others, and the point of b of the other one."""
    a_j = row_distance(core, i, j) <= same
    a_k = row_distance(core, i, k) <= same
    b_j = row_distance(middle - core, i, j) <= same
    b_k = row_distance(middle - core, i, k) <= same
    return (a_j and b_k) or (a_k and b_j)


@wp.func
def side_distance(x: vec, start: vec, end: vec, normal: vec) -> real:
    inward = wp.cross(normal, end - start)
    return wp.dot(x - start, inward) / wp.max(wp.length(inward), _TINY)


@wp.func
def row_of(rows: wp.mat33d, i: int) -> vec:
    return vec(rows[i, 0], rows[i, 1], rows[i, 2])


@wp.func
def row_distance(rows: wp.mat33d, i: int, j: int) -> real:
    return wp.length(row_of(rows, i) - row_of(rows, j))

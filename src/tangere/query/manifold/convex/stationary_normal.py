"""The last digits of the least way out of bodies with rims: Newton's method on the direction.

Question: which direction near that of a polytope's face is the least way out, to rounding?
Method:   the least way along n is stationary where the deepest difference w of the cores is along n. The corners of the
          last face are labels, ends, tips or corners, whose points are placed anew on their rims for each n. One label:
          w along n. Two labels: a mixture of both along n, and their difference across it. Three: the normal of their
          plane, again and again. A few steps of Newton's method from the normal of the face.
Sound:    the direction found is taken only if the reach of the difference along it, from supports, is not larger.
Known as: Newton's method on the sphere; as `distance.convex.newton`, on the other side of the surface.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.supports import CURVED, ConvexShape, on_rim_of, rim_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

STEPS = wp.constant(6)
_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TINY = wp.constant(real(1.0e-300))
#: Labels nearer than this part of the size are one.
_SAME = wp.constant(real(1.0e-9))
#: Directions move by less than this: a face of a polytope is that near.
_FAR = wp.constant(real(0.05))


@wp.struct
class StationaryNormal:
    normal: wp.vec3d  #: unit
    share: wp.float64  #: of the second label
    labels: wp.int32  #: how many there are
    own: wp.vec3d  #: the deepest point of a
    difference: wp.vec3d  #: … less that of b; along the normal where Newton's method has converged


@wp.func
def rim_turn(d: vec, radius: real, turning: real, x: vec) -> vec:
    """How a rim point moves when the direction d moves by x; `turning` is 1 on a rim, else 0."""
    across = wp.max(d[0] * d[0] + d[1] * d[1], _TINY)
    t = vec(-d[1], d[0], _ZERO)
    return (turning * radius / (across * wp.sqrt(across)) * wp.dot(t, x)) * t


@cache
def stationary_normal_of(kind_a: int, kind_b: int) -> wp.Function:
    """`polished(a, b, rotation, offset, n, own, corners, shares, size) -> StationaryNormal` for cores of two kinds.

    `own` and `corners` have the points of a and the differences of the last face as rows, `shares` their weights.
    """
    rim_a, rim_b, on_rim_a, on_rim_b = rim_of(kind_a), rim_of(kind_b), on_rim_of(kind_a), on_rim_of(kind_b)
    curved_a, curved_b = wp.constant(int(kind_a in CURVED)), wp.constant(int(kind_b in CURVED))

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
        core_a = wp.mat33d()
        core_b = wp.mat33d()
        for k in range(3):
            x = vec(own[k, 0], own[k, 1], own[k, 2])
            y = (x - vec(corners[k, 0], corners[k, 1], corners[k, 2]) - offset) * rotation
            if curved_a != 0:
                x = vec(_ZERO, _ZERO, x[2])
            if curved_b != 0:
                y = vec(_ZERO, _ZERO, y[2])
            for j in range(3):
                core_a[k, j] = x[j]
                core_b[k, j] = y[j]
        # The label of each corner: 0 as the first, 1 as the first other one, 2 as none of them.
        second = int(-1)
        found.labels = 1
        share = real(0.0)
        for k in range(1, 3):
            apart = row_distance(core_a, 0, k) + row_distance(core_b, 0, k)
            if apart > _SAME * size:
                if second < 0:
                    second = k
                    found.labels = 2
                elif row_distance(core_a, second, k) + row_distance(core_b, second, k) > _SAME * size:
                    found.labels = 3
                share += shares[k]
        if found.labels == 3:
            step = int(0)
            while step < STEPS:
                step += 1
                found.own = vec(_ZERO, _ZERO, _ZERO)
                found.difference = vec(_ZERO, _ZERO, _ZERO)
                plane = wp.mat33d()
                for k in range(3):
                    x = vec(core_a[k, 0], core_a[k, 1], core_a[k, 2])
                    y = vec(core_b[k, 0], core_b[k, 1], core_b[k, 2])
                    x = x + on_rim_a(x) * rim_a(a, found.normal)
                    y = y + on_rim_b(y) * rim_b(b, -(found.normal * rotation))
                    found.own = found.own + shares[k] * x
                    x = x - offset - rotation * y
                    found.difference = found.difference + shares[k] * x
                    for j in range(3):
                        plane[k, j] = x[j]
                one = vec(plane[1, 0] - plane[0, 0], plane[1, 1] - plane[0, 1], plane[1, 2] - plane[0, 2])
                two = vec(plane[2, 0] - plane[0, 0], plane[2, 1] - plane[0, 1], plane[2, 2] - plane[0, 2])
                m = wp.normalize(wp.cross(one, two))
                m = wp.where(wp.dot(m, n) < _ZERO, -m, m)
                if wp.length(m - n) < _FAR:
                    found.normal = m
                else:
                    step = STEPS
            return found
        second = wp.max(second, 0)
        first_a = vec(core_a[0, 0], core_a[0, 1], core_a[0, 2])
        first_b = vec(core_b[0, 0], core_b[0, 1], core_b[0, 2])
        second_a = vec(core_a[second, 0], core_a[second, 1], core_a[second, 2])
        second_b = vec(core_b[second, 0], core_b[second, 1], core_b[second, 2])
        step = int(0)
        while step < STEPS:
            step += 1
            m = found.normal
            back = -(m * rotation)
            on_a = rim_a(a, m)
            on_b = rim_b(b, back)
            own_0 = first_a + on_rim_a(first_a) * on_a
            own_1 = second_a + on_rim_a(second_a) * on_a
            w0 = own_0 - offset - rotation * (first_b + on_rim_b(first_b) * on_b)
            w1 = own_1 - offset - rotation * (second_b + on_rim_b(second_b) * on_b)
            w = w0 + share * (w1 - w0)
            found.own = own_0 + share * (own_1 - own_0)
            found.difference = w
            found.share = share
            turning_a = on_rim_a(first_a) + share * (on_rim_a(second_a) - on_rim_a(first_a))
            turning_b = on_rim_b(first_b) + share * (on_rim_b(second_b) - on_rim_b(first_b))
            depth = wp.dot(m, w)
            # A basis across m; unknowns are the move along it and, with two labels, the change of the share.
            e = vec(_ONE, _ZERO, _ZERO)
            if wp.abs(m[0]) > wp.abs(m[1]):
                e = vec(_ZERO, _ONE, _ZERO)
            e = wp.normalize(e - wp.dot(e, m) * m)
            f = wp.cross(m, e)
            by_e = rim_turn(m, a.radius, turning_a, e) + rotation * rim_turn(back, b.radius, turning_b, e * rotation)
            by_f = rim_turn(m, a.radius, turning_a, f) + rotation * rim_turn(back, b.radius, turning_b, f * rotation)
            k_ee = wp.dot(e, by_e) - depth
            k_ef = wp.dot(e, by_f)
            k_ff = wp.dot(f, by_f) - depth
            r_e = -wp.dot(e, w)
            r_f = -wp.dot(f, w)
            move = vec(_ZERO, _ZERO, _ZERO)
            change = real(0.0)
            if found.labels == 1:
                det = k_ee * k_ff - k_ef * k_ef
                if wp.abs(det) > _TINY:
                    move = ((k_ff * r_e - k_ef * r_f) / det) * e + ((k_ee * r_f - k_ef * r_e) / det) * f
            else:
                way = w1 - w0
                g_e = wp.dot(way, e)
                g_f = wp.dot(way, f)
                long = g_e * g_e + g_f * g_f
                if long > _TINY:
                    # Along the difference the move is given; across it one equation is left, then that of the share.
                    fixed = -wp.dot(way, m) / long
                    bend = k_ee * g_f * g_f - real(2.0) * k_ef * g_e * g_f + k_ff * g_e * g_e
                    x_e = fixed * g_e
                    x_f = fixed * g_f
                    rest_e = r_e - k_ee * x_e - k_ef * x_f
                    rest_f = r_f - k_ef * x_e - k_ff * x_f
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
            else:
                found.normal = wp.normalize(m + move)
                share = wp.clamp(share + change, _ZERO, _ONE)
        return found

    return polished


@wp.func
def row_distance(rows: wp.mat33d, i: int, j: int) -> real:
    return wp.length(vec(rows[i, 0] - rows[j, 0], rows[i, 1] - rows[j, 1], rows[i, 2] - rows[j, 2]))

"""The best separating direction of two oriented boxes: by how much they are apart along it.

Method: the six face directions first; only where none of them separates, the nine cross products of edges (Redon 2002,
        section 3.2; Gottschalk, Lin and Manocha 1996). Any direction certifies its own gap, so leaving directions out,
        or leaving out nearly parallel edges, costs time and never a contact.
Also:   where boxes have to stay some way apart, a face normal tells too little of two that are apart along several:
        `nearest_separation_of` goes the way out of one box, along its axes, to the nearest edge or corner.
Sound:  the axes of the records are orthonormal to 2^-23 only. A direction is *defined* as n = sum n_k a_k over the axes
        a_k of the first box, so its products with points of that box need no orthogonality (a point p of a box obeys
        both |a_k . (p - c)| <= h_k and p = c + sum x_k a_k, |x_k| <= h_k); where the second box's own orthogonality is
        used, its extent is enlarged. |n| is 1 within `LONGEST`, which every bound of a length along n must allow for.
Others: `overlap` only says whether any axis separates: faster, where no gap is needed.
Known as: separating axis test of oriented boxes, 15 axes (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: A direction is not longer than this.
LONGEST = wp.constant(wp.float64(1.0 + 2.0e-6))

_ZERO = wp.constant(wp.float64(0.0))
#: What leaning on the orthogonality of the second box can take from a gap, in its half sizes.
_LEAN = wp.constant(wp.float64(2.0e-6))
#: Edges whose cross product is shorter are parallel: a face direction serves as well.
_PARALLEL = wp.constant(wp.float64(1.0e-4))


@wp.struct
class Separation:
    """A direction from the first box to the second, as coefficients of the first one's axes; gap <= 0: not apart."""

    direction: wp.vec3d
    gap: wp.float64


@wp.func
def support(half: wp.vec3d, axes: wp.mat33d, n: wp.vec3d) -> wp.float64:
    """How far a box extends from its centre along n (as far along -n)."""
    return (
        half[0] * wp.abs(axes[0, 0] * n[0] + axes[1, 0] * n[1] + axes[2, 0] * n[2])
        + half[1] * wp.abs(axes[0, 1] * n[0] + axes[1, 1] * n[1] + axes[2, 1] * n[2])
        + half[2] * wp.abs(axes[0, 2] * n[0] + axes[1, 2] * n[1] + axes[2, 2] * n[2])
    )


@wp.func
def separation_of(c: wp.vec3d, m: wp.mat33d, half_a: wp.vec3d, half_b: wp.vec3d) -> Separation:
    """The best of the 15 directions.

    Args:
        c: from the centre of a to the centre of b, times each axis of a.
        m: m[i, j] = axis i of a times axis j of b.
    """
    l00 = wp.abs(m[0, 0])
    l01 = wp.abs(m[0, 1])
    l02 = wp.abs(m[0, 2])
    l10 = wp.abs(m[1, 0])
    l11 = wp.abs(m[1, 1])
    l12 = wp.abs(m[1, 2])
    l20 = wp.abs(m[2, 0])
    l21 = wp.abs(m[2, 1])
    l22 = wp.abs(m[2, 2])
    a0 = wp.abs(c[0]) - half_a[0] - (l00 * half_b[0] + l01 * half_b[1] + l02 * half_b[2])
    a1 = wp.abs(c[1]) - half_a[1] - (l10 * half_b[0] + l11 * half_b[1] + l12 * half_b[2])
    a2 = wp.abs(c[2]) - half_a[2] - (l20 * half_b[0] + l21 * half_b[1] + l22 * half_b[2])
    lean = _LEAN * (half_b[0] + half_b[1] + half_b[2])
    d0 = c[0] * m[0, 0] + c[1] * m[1, 0] + c[2] * m[2, 0]
    d1 = c[0] * m[0, 1] + c[1] * m[1, 1] + c[2] * m[2, 1]
    d2 = c[0] * m[0, 2] + c[1] * m[1, 2] + c[2] * m[2, 2]
    b0 = wp.abs(d0) - half_b[0] - (l00 * half_a[0] + l10 * half_a[1] + l20 * half_a[2]) - lean
    b1 = wp.abs(d1) - half_b[1] - (l01 * half_a[0] + l11 * half_a[1] + l21 * half_a[2]) - lean
    b2 = wp.abs(d2) - half_b[2] - (l02 * half_a[0] + l12 * half_a[1] + l22 * half_a[2]) - lean
    best_a = wp.max(wp.max(a0, a1), a2)
    best_b = wp.max(wp.max(b0, b1), b2)
    result = Separation()
    result.gap = wp.max(best_a, best_b)
    if result.gap > _ZERO:
        if best_a >= best_b:
            if a0 == best_a:
                result.direction = wp.vec3d(wp.sign(c[0]), _ZERO, _ZERO)
            elif a1 == best_a:
                result.direction = wp.vec3d(_ZERO, wp.sign(c[1]), _ZERO)
            else:
                result.direction = wp.vec3d(_ZERO, _ZERO, wp.sign(c[2]))
        elif b0 == best_b:
            result.direction = wp.sign(d0) * wp.vec3d(m[0, 0], m[1, 0], m[2, 0])
        elif b1 == best_b:
            result.direction = wp.sign(d1) * wp.vec3d(m[0, 1], m[1, 1], m[2, 1])
        else:
            result.direction = wp.sign(d2) * wp.vec3d(m[0, 2], m[1, 2], m[2, 2])
    else:
        result = edge_separation(result, c, m, half_a, half_b, lean)
    return result


@wp.func
def nearest_separation_of(c: wp.vec3d, m: wp.mat33d, half_a: wp.vec3d, half_b: wp.vec3d) -> Separation:
    """About the direction in which two boxes are nearest to each other, and their gap along it; see `separation_of`.

    Along each axis of one box the other begins some way out of it, or does not: these ways, as a vector, are no longer
    than the distance is, and the direction is theirs. Where both boxes reach into each other along all six axes, edges
    are asked.
    """
    none = wp.vec3d(_ZERO, _ZERO, _ZERO)
    reach = wp.mat33d(
        wp.abs(m[0, 0]),
        wp.abs(m[0, 1]),
        wp.abs(m[0, 2]),
        wp.abs(m[1, 0]),
        wp.abs(m[1, 1]),
        wp.abs(m[1, 2]),
        wp.abs(m[2, 0]),
        wp.abs(m[2, 1]),
        wp.abs(m[2, 2]),
    )
    d = c * m
    out_a = wp.max(wp.abs(c) - half_a - reach * half_b, none)
    out_b = wp.max(wp.abs(d) - half_b - half_a * reach, none)
    far_a = wp.length(out_a)
    far_b = wp.length(out_b)
    result = Separation()
    if wp.max(far_a, far_b) > _ZERO:
        if far_a >= far_b:
            result.direction = wp.cw_mul(signs(c), out_a) / far_a
        else:
            result.direction = m * (wp.cw_mul(signs(d), out_b) / far_b)
        n = result.direction
        result.gap = wp.dot(n, c) - wp.dot(wp.abs(n), half_a) - wp.dot(wp.abs(n * m), half_b)
    else:
        result = edge_separation(result, c, m, half_a, half_b, _LEAN * (half_b[0] + half_b[1] + half_b[2]))
    return result


@wp.func
def signs(v: wp.vec3d) -> wp.vec3d:
    return wp.vec3d(wp.sign(v[0]), wp.sign(v[1]), wp.sign(v[2]))


@wp.func
def edge_separation(
    best: Separation, c: wp.vec3d, m: wp.mat33d, half_a: wp.vec3d, half_b: wp.vec3d, lean: wp.float64
) -> Separation:
    """`best`, or a cross product of an edge of a and one of b that separates by more."""
    for i in range(3):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        for j in range(3):
            j1 = (j + 1) % 3
            j2 = (j + 2) % 3
            u = m[i1, j]
            v = m[i2, j]
            d = c[i2] * u - c[i1] * v
            extent = half_a[i1] * wp.abs(v) + half_a[i2] * wp.abs(u)
            extent += half_b[j1] * wp.abs(m[i, j2]) + half_b[j2] * wp.abs(m[i, j1]) + lean
            gap = wp.abs(d) - extent
            if gap > _ZERO:
                length = wp.sqrt(u * u + v * v)
                gap = gap / length
                if length > _PARALLEL and gap > best.gap:
                    scale = wp.sign(d) / length
                    direction = wp.vec3d(_ZERO, _ZERO, _ZERO)
                    direction[i2] = scale * u
                    direction[i1] = -scale * v
                    best.direction = direction
                    best.gap = gap
    return best

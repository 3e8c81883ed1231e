"""Real roots of a polynomial of degree three or less, as eigenvalues of its companion matrix.

Question: at which times is a cubic zero, and does a complex pair count as a double root?
Method:   the course only says that the cubic is to be solved; here exact zeros at either end of the coefficients are
          stripped, the companion matrix is balanced by powers of two, Francis' double-shift QR steps split it, and a
          two by two block gives its pair in closed form.
Deviation: the recipe is that of `numpy.roots` (LAPACK dgeev), not its sequence of roundings. Simple roots agree to a
          few units in the last place (rarely to six digits only, where the leading coefficient is 1e-35 of the others
          and both are off); a double root is turned into a real or a complex pair by rounding alone, so a single
          grazing contact may be found by one and missed by the other. That lottery is the method's own.
"""

from __future__ import annotations

import warp as wp

_INF = wp.constant(wp.float64(float("inf")))
_EPSILON = wp.constant(wp.float64(2.0**-52))
#: LAPACK's balancing stops when a scaling gains less than five percent.
_WORTHWHILE = wp.constant(wp.float64(0.95))
_TINY = wp.constant(wp.float64(2.0**-1022 * 3 / 2.0**-52))
_SWEEPS = wp.constant(100)
_STEPS = wp.constant(60)
_EXCEPTIONAL = wp.constant(10)


@wp.func
def real_roots(p: wp.vec4d, imaginary: wp.float64) -> wp.vec3d:
    """Real roots of p[0] t^3 + p[1] t^2 + p[2] t + p[3], ascending, inf in place of missing ones.

    A complex pair counts as real if its imaginary part is at most `imaginary` times max(1, |root|). The zero
    polynomial has no roots here: ask `is_zero` first.
    """
    roots = wp.vec3d(_INF, _INF, _INF)
    zero = wp.float64(0.0)
    last = wp.int32(3)
    while last > 0 and p[last] == zero:
        roots[3 - last] = zero
        last -= 1
    lead = wp.int32(0)
    while lead < last and not _divides(p, lead, last):
        lead += 1
    degree = last - lead
    if degree == 1:
        roots[2] = -p[last] / p[lead]
    if degree == 2:
        pair = _block_roots(-p[lead + 1] / p[lead], -p[last] / p[lead], wp.float64(1.0), zero, imaginary)
        roots[1] = pair[0]
        roots[2] = pair[1]
    if degree == 3:
        roots = _cubic_roots(p, imaginary)
    return _ascending(roots)


@wp.func
def _divides(p: wp.vec4d, lead: int, last: int) -> bool:
    """Whether the polynomial can be made monic without overflow."""
    if p[lead] == wp.float64(0.0):
        return False
    finite = wp.int32(1)
    for k in range(lead + 1, last + 1):
        if not wp.isfinite(p[k] / p[lead]):
            finite = 0
    return finite == 1


@wp.func
def _cubic_roots(p: wp.vec4d, imaginary: wp.float64) -> wp.vec3d:
    one = wp.float64(1.0)
    zero = wp.float64(0.0)
    h = wp.mat33d(-p[1] / p[0], -p[2] / p[0], -p[3] / p[0], one, zero, zero, zero, one, zero)
    h = _balanced(h)
    step = wp.int32(0)
    while step < _STEPS and not (_negligible(h, 1) or _negligible(h, 2)):
        step += 1
        h = _francis_step(h, step % _EXCEPTIONAL == 0)
    if _negligible(h, 2):
        pair = _block_roots(h[0, 0], h[0, 1], h[1, 0], h[1, 1], imaginary)
        return wp.vec3d(pair[0], pair[1], h[2, 2])
    pair = _block_roots(h[1, 1], h[1, 2], h[2, 1], h[2, 2], imaginary)
    return wp.vec3d(h[0, 0], pair[0], pair[1])


@wp.func
def _balanced(h: wp.mat33d) -> wp.mat33d:
    """h with rows and columns scaled by powers of two until their norms are alike (LAPACK dgebal)."""
    two = wp.float64(2.0)
    sweep = wp.int32(0)
    changed = wp.bool(True)
    while changed and sweep < _SWEEPS:
        sweep += 1
        changed = wp.bool(False)
        for i in range(3):
            column = wp.sqrt(h[0, i] * h[0, i] + h[1, i] * h[1, i] + h[2, i] * h[2, i])
            row = wp.sqrt(h[i, 0] * h[i, 0] + h[i, 1] * h[i, 1] + h[i, 2] * h[i, 2])
            if column > wp.float64(0.0) and row > wp.float64(0.0):
                before = column + row
                factor = wp.float64(1.0)
                while column < row / two:
                    factor = factor * two
                    column = column * two
                    row = row / two
                while column >= row * two:
                    factor = factor / two
                    column = column / two
                    row = row * two
                if column + row < _WORTHWHILE * before:
                    changed = wp.bool(True)
                    for k in range(3):
                        h[i, k] = h[i, k] / factor
                    for k in range(3):
                        h[k, i] = h[k, i] * factor
    return h


@wp.func
def _negligible(h: wp.mat33d, i: int) -> bool:
    """Whether the subdiagonal element in row i is zero beside its neighbours on the diagonal."""
    below = wp.abs(h[i, i - 1])
    beside = wp.abs(h[i - 1, i - 1]) + wp.abs(h[i, i])
    if beside == wp.float64(0.0):
        beside = wp.abs(h[3 - i, 2 - i])  # the other element below the diagonal
    if below == wp.float64(0.0) or below > _EPSILON * beside:
        return below == wp.float64(0.0)
    # The test of Ahues and Tisseur (LAPACK dlahqr): a small element of a graded matrix may still matter.
    above = wp.abs(h[i - 1, i])
    diagonal = wp.abs(h[i, i])
    apart = wp.abs(h[i - 1, i - 1] - h[i, i])
    total = wp.max(diagonal, apart) + wp.max(below, above)
    product = wp.min(below, above) * (wp.max(below, above) / total)
    return product <= wp.max(_TINY, _EPSILON * (wp.min(diagonal, apart) * (wp.max(diagonal, apart) / total)))


@wp.func
def _francis_step(h: wp.mat33d, exceptional: bool) -> wp.mat33d:
    """One double-shift QR step on an upper Hessenberg matrix; exceptional shifts break cycles (t^3 = 1 has one)."""
    trace = h[1, 1] + h[2, 2]
    determinant = h[1, 1] * h[2, 2] - h[1, 2] * h[2, 1]
    if exceptional:
        size = wp.abs(h[1, 0]) + wp.abs(h[2, 1])
        trace = wp.float64(1.5) * size
        determinant = size * size
    start = wp.vec3d(
        h[0, 0] * (h[0, 0] - trace) + determinant + h[0, 1] * h[1, 0],
        h[1, 0] * (h[0, 0] + h[1, 1] - trace),
        h[1, 0] * h[2, 1],
    )
    reflector = _reflector(start, 0)
    h = reflector * h * reflector
    reflector = _reflector(wp.vec3d(wp.float64(0.0), h[1, 0], h[2, 0]), 1)
    h = reflector * h * reflector
    h[2, 0] = wp.float64(0.0)
    return h


@wp.func
def _reflector(x: wp.vec3d, axis: int):
    """The Householder reflection that turns x into the direction of an axis; the identity if x is zero."""
    norm = wp.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    identity = wp.identity(n=3, dtype=wp.float64)
    if norm == wp.float64(0.0):
        return identity
    mirror = wp.vec3d(x[0] / norm, x[1] / norm, x[2] / norm)
    mirror[axis] = mirror[axis] + wp.where(mirror[axis] < wp.float64(0.0), wp.float64(-1.0), wp.float64(1.0))
    # |x / norm + e|^2 = 2 (1 + |x . e| / norm), so the usual factor 2 / |mirror|^2 is one division
    return identity - wp.outer(mirror, mirror) / wp.abs(mirror[axis])


@wp.func
def _block_roots(a: wp.float64, b: wp.float64, c: wp.float64, d: wp.float64, imaginary: wp.float64) -> wp.vec2d:
    """Eigenvalues of [[a, b], [c, d]] that count as real; inf, inf for a complex pair that does not."""
    half = wp.float64(0.5) * (a - d)
    square = half * half + b * c
    root = wp.sqrt(wp.abs(square))
    if square < wp.float64(0.0):
        real = d + half
        if root <= imaginary * wp.max(wp.float64(1.0), wp.sqrt(real * real + root * root)):
            return wp.vec2d(real, real)
        return wp.vec2d(_INF, _INF)
    outer = half + wp.where(half < wp.float64(0.0), -root, root)
    if outer == wp.float64(0.0):
        return wp.vec2d(d, d)
    return wp.vec2d(d + outer, d - b * c / outer)


@wp.func
def _ascending(x: wp.vec3d) -> wp.vec3d:
    low = wp.min(x[0], wp.min(x[1], x[2]))
    high = wp.max(x[0], wp.max(x[1], x[2]))
    middle = wp.max(wp.min(x[0], x[1]), wp.min(wp.max(x[0], x[1]), x[2]))
    return wp.vec3d(low, middle, high)

"""Interior point on friction cones: Gauss's projection of one island, whatever the stack, in ten to thirty iterations.

Question: which impulses satisfy all rows of an island where sweeps would need thousands of rounds?
Method:   with a fixed shift of De Saxcé the contact problem is convex: the least |w|^2 / 2 with S (G w + free + shift)
          in second-order cones, S = (1, mu, mu) over the square root of the Delassus diagonal, so that velocities,
          impulses and w are all in units of the root of energy. Nesterov-Todd scaling, Mehrotra's corrector, one sparse
          factor of a 6 n x 6 n matrix for each iteration. Bounded rows have slacks at both bounds; equations are
          regularised a little, and exact in the limit of the iterations. Coulomb's law is the fixed point of
          shift = mu |u_t|, lagged: a few convex problems, each with the shift of the one before.
Sound:    the impulses returned are those of the best iterate by the natural map, which does not need the method to have
          converged; where rounding breaks it the best one so far is kept.
Known as: primal-dual interior point for second-order cone programs (Nesterov and Todd 1998; Mehrotra 1992); convex or
          associated friction (Anitescu 2006); the shift: De Saxcé and Feng 1998; the fixed point: Acary et al. 2011.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver.block_cholesky import BlockFactor, factor, mat66d, solve_factored
from tangere.dynamics.solver.elimination_order import EliminationArrays, list_columns
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.local_law import bounded_residual, cone_projection
from tangere.dynamics.solver.problem import mat36d, vec6d
from tangere.dynamics.solver.second_order_cone import (
    FAR,
    inverse_square,
    jordan,
    jordan_divide,
    scaled_down,
    scaled_up,
    scaling,
    step_to_boundary,
)
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Compliance of equations, as a part of their Delassus diagonal: each iteration leaves about so much of their error.
_REGULARISATION = wp.constant(wp.float64(1.0e-9))
#: A step goes this part of the way to the boundary of the cones.
_BACK_OFF = wp.constant(wp.float64(0.98))


@wp.struct
class InteriorState:
    """Iterates: bodies by position, contacts (c_…) and joints (j_…) by place in their island."""

    w: wp.array[vec6d]
    dw: wp.array[vec6d]
    rd: wp.array[vec6d]  # how far w is from G^T r
    c_pa: wp.array[wp.int32]  # positions of the bodies that move, else -1
    c_pb: wp.array[wp.int32]
    c_scale: wp.array[wp.float64]  # one over the root of the Delassus diagonal; 0 where nobody can give way
    c_shift: wp.array[wp.float64]  # [m/s]
    z: wp.array[wp.vec3d]  # scaled velocity, in the cone
    y: wp.array[wp.vec3d]  # scaled impulse, in the cone
    dz: wp.array[wp.vec3d]
    dy: wp.array[wp.vec3d]
    rp: wp.array[wp.vec3d]  # how far z is from the velocity of w
    lam: wp.array[wp.vec3d]  # W y
    scaling: wp.array[wp.vec4d]
    c_best: wp.array[wp.vec3d]  # impulses of the best iterate
    c_kept: wp.array[wp.vec3d]  # and those the island had before
    j_pa: wp.array[wp.int32]
    j_pb: wp.array[wp.int32]
    r: wp.array[wp.float64]  # impulse, between its bounds
    s: wp.array[wp.float64]  # velocity where the lower bound is reached
    t: wp.array[wp.float64]  # and the upper one
    dr: wp.array[wp.float64]
    ds: wp.array[wp.float64]
    dt: wp.array[wp.float64]
    rho: wp.array[wp.float64]  # how far s - t is from the velocity of w
    weight: wp.array[wp.float64]  # change of impulse by velocity
    j_best: wp.array[wp.float64]
    j_kept: wp.array[wp.float64]


@wp.struct
class IslandRange:
    """Where the rows and bodies of an island are."""

    c0: wp.int32
    c1: wp.int32
    j0: wp.int32
    j1: wp.int32
    begin: wp.int32
    n: wp.int32


@wp.func
def contact_change(rows: WhitenedRows, a: int, b: int, i: int, x: wp.array[vec6d]) -> wp.vec3d:
    """G x of a contact."""
    u = wp.vec3d()
    if a >= 0:
        u = rows.c_ga[i] * x[a]
    if b >= 0:
        u = u + rows.c_gb[i] * x[b]
    return u


@wp.func
def spread_contact(rows: WhitenedRows, a: int, b: int, i: int, f: wp.vec3d, x: wp.array[vec6d]):
    """x + G^T f."""
    if a >= 0:
        x[a] = x[a] + f * rows.c_ga[i]
    if b >= 0:
        x[b] = x[b] + f * rows.c_gb[i]


@wp.func
def joint_change(rows: WhitenedRows, a: int, b: int, i: int, x: wp.array[vec6d]) -> wp.float64:
    u = wp.float64(0.0)
    if a >= 0:
        u = wp.dot(rows.j_ga[i], x[a])
    if b >= 0:
        u += wp.dot(rows.j_gb[i], x[b])
    return u


@wp.func
def spread_joint(rows: WhitenedRows, a: int, b: int, i: int, f: wp.float64, x: wp.array[vec6d]):
    if a >= 0:
        x[a] = x[a] + f * rows.j_ga[i]
    if b >= 0:
        x[b] = x[b] + f * rows.j_gb[i]


@wp.func
def cone_scale(scale: wp.float64, mu: wp.float64, x: wp.vec3d) -> wp.vec3d:
    """S x."""
    return wp.vec3d(scale * x[0], scale * mu * x[1], scale * mu * x[2])


@wp.func
def is_finite(x: wp.float64) -> bool:
    return wp.abs(x) < wp.float64(1.0e300)


@wp.func
def is_frozen(rows: WhitenedRows, i: int) -> bool:
    """A bounded row that has no choice."""
    return rows.j_upper[i] <= rows.j_lower[i] or rows.j_diagonal[i] <= wp.float64(0.0)


@wp.func
def begin_inside(rows: WhitenedRows, it: InteriorState, at: IslandRange):
    """The first iterate: every velocity and impulse as large as the largest velocity asks for."""
    size = wp.float64(1.0e-100)
    for i in range(at.c0, at.c1):
        size = wp.max(size, it.c_scale[i] * wp.length(rows.c_free[i]))
    for i in range(at.j0, at.j1):
        if not is_frozen(rows, i):
            size = wp.max(size, wp.abs(rows.j_free[i]) / wp.sqrt(rows.j_diagonal[i]))
    for b in range(at.begin, at.begin + at.n):
        it.w[b] = vec6d()
    for i in range(at.c0, at.c1):
        it.z[i] = wp.vec3d(size, wp.float64(0.0), wp.float64(0.0))
        it.y[i] = wp.vec3d(size, wp.float64(0.0), wp.float64(0.0))
    for i in range(at.j0, at.j1):
        low = rows.j_lower[i]
        high = rows.j_upper[i]
        r = wp.clamp(wp.float64(0.0), low, high)
        if not is_frozen(rows, i):
            root = wp.sqrt(rows.j_diagonal[i])
            margin = size / root
            if is_finite(low) and is_finite(high):
                margin = wp.min(margin, wp.float64(0.5) * (high - low))
            r = wp.clamp(wp.float64(0.0), low + margin, high - margin)
            it.s[i] = wp.float64(0.0)
            it.t[i] = wp.float64(0.0)
            if is_finite(low):
                it.s[i] = size * root
            if is_finite(high):
                it.t[i] = size * root
        it.r[i] = r


@wp.func
def residuals(rows: WhitenedRows, it: InteriorState, at: IslandRange) -> wp.vec2d:
    """rd, rp and rho of an iterate; the farthest a row is from its law [m/s], and the mean complementarity."""
    for b in range(at.begin, at.begin + at.n):
        it.rd[b] = it.w[b]
    gap = wp.float64(0.0)
    count = wp.float64(0.0)
    for i in range(at.c0, at.c1):
        scale = it.c_scale[i]
        if scale > wp.float64(0.0):
            r = cone_scale(scale, rows.c_friction[i], it.y[i])
            spread_contact(rows, it.c_pa[i], it.c_pb[i], i, -r, it.rd)
            gap += wp.dot(it.z[i], it.y[i])
            count += wp.float64(1.0)
    for i in range(at.j0, at.j1):
        spread_joint(rows, it.j_pa[i], it.j_pb[i], i, -it.r[i], it.rd)
        if not is_frozen(rows, i):
            if is_finite(rows.j_lower[i]):
                gap += it.s[i] * (it.r[i] - rows.j_lower[i])
                count += wp.float64(1.0)
            if is_finite(rows.j_upper[i]):
                gap += it.t[i] * (rows.j_upper[i] - it.r[i])
                count += wp.float64(1.0)
    worst = wp.float64(0.0)
    total = wp.float64(0.0)  # the largest of two numbers may hide one that is none, a sum does not
    for i in range(at.c0, at.c1):
        scale = it.c_scale[i]
        if scale > wp.float64(0.0):
            mu = rows.c_friction[i]
            a = it.c_pa[i]
            b = it.c_pb[i]
            u = contact_change(rows, a, b, i, it.w) + rows.c_free[i]
            u = u + wp.vec3d(it.c_shift[i], wp.float64(0.0), wp.float64(0.0))
            it.rp[i] = cone_scale(scale, mu, u) - it.z[i]
            r = cone_scale(scale, mu, it.y[i])
            d = wp.float64(1.0) / (scale * scale)
            e = wp.length(r - cone_projection(r - u / d, mu)) * d
            if a >= 0:  # what rd can make of the relative velocity, at most
                e += wp.length(it.rd[a]) / scale
            if b >= 0:
                e += wp.length(it.rd[b]) / scale
            worst = wp.max(worst, e)
            total += e
    for i in range(at.j0, at.j1):
        if not is_frozen(rows, i):
            a = it.j_pa[i]
            b = it.j_pb[i]
            v = joint_change(rows, a, b, i, it.w) + rows.j_free[i] + rows.j_compliance[i] * it.r[i]
            it.rho[i] = v - it.s[i] + it.t[i]
            e = bounded_residual(v, it.r[i], rows.j_diagonal[i], rows.j_lower[i], rows.j_upper[i])
            e += wp.abs(joint_change(rows, a, b, i, it.rd))
            worst = wp.max(worst, e)
            total += e
    return wp.vec2d(worst + wp.float64(0.0) * total, gap / wp.max(count, wp.float64(1.0)))


@wp.func
def add_outer(
    h: BlockFactor, order: EliminationArrays, a: int, b: int, block: int, weight: wp.mat33d, ga: mat36d, gb: mat36d
):
    """H + G^T weight G of a contact."""
    if a >= 0:
        wa = weight * ga
        h.diagonal[a] = h.diagonal[a] + wp.transpose(ga) * wa
        if b >= 0:
            if a > b:
                h.below[block] = h.below[block] + wp.transpose(wa) * gb
            else:
                h.below[block] = h.below[block] + wp.transpose(gb) * wa
    if b >= 0:
        h.diagonal[b] = h.diagonal[b] + wp.transpose(gb) * (weight * gb)


@wp.func
def assemble(rows: WhitenedRows, it: InteriorState, h: BlockFactor, order: EliminationArrays, at: IslandRange):
    """The matrix of an iterate's Newton step, and the scalings it needs."""
    for b in range(at.begin, at.begin + at.n):
        h.diagonal[b] = wp.identity(n=6, dtype=wp.float64)
        first = order.column_first[b]
        for e in range(first, first + order.fill[b]):
            h.below[e] = mat66d()
    for i in range(at.c0, at.c1):
        scale = it.c_scale[i]
        if scale > wp.float64(0.0):
            s = scaling(it.z[i], it.y[i])
            it.scaling[i] = s
            it.lam[i] = scaled_up(s, it.y[i])
            mu = rows.c_friction[i]
            m = inverse_square(s)
            n = scale
            f = scale * mu
            weights = wp.mat33d(
                n * n * m[0, 0], n * f * m[0, 1], n * f * m[0, 2],
                n * f * m[1, 0], f * f * m[1, 1], f * f * m[1, 2],
                n * f * m[2, 0], f * f * m[2, 1], f * f * m[2, 2],
            )  # fmt: skip
            add_outer(h, order, it.c_pa[i], it.c_pb[i], order.c_block[i], weights, rows.c_ga[i], rows.c_gb[i])
    for i in range(at.j0, at.j1):
        if not is_frozen(rows, i):
            give = rows.j_compliance[i] + _REGULARISATION * rows.j_diagonal[i]
            if is_finite(rows.j_lower[i]):
                give += it.s[i] / (it.r[i] - rows.j_lower[i])
            if is_finite(rows.j_upper[i]):
                give += it.t[i] / (rows.j_upper[i] - it.r[i])
            weight = wp.float64(1.0) / give
            it.weight[i] = weight
            a = it.j_pa[i]
            b = it.j_pb[i]
            ga = rows.j_ga[i]
            gb = rows.j_gb[i]
            if a >= 0:
                h.diagonal[a] = h.diagonal[a] + wp.outer(weight * ga, ga)
                if b >= 0:
                    e = order.j_block[i]
                    if a > b:
                        h.below[e] = h.below[e] + wp.outer(weight * ga, gb)
                    else:
                        h.below[e] = h.below[e] + wp.outer(weight * gb, ga)
            if b >= 0:
                h.diagonal[b] = h.diagonal[b] + wp.outer(weight * gb, gb)


@wp.func
def boundary(x: wp.float64, d: wp.float64) -> wp.float64:
    """The largest step that keeps a number positive."""
    if d < wp.float64(0.0):
        return -x / d
    return FAR


@wp.func
def direction(
    rows: WhitenedRows,
    it: InteriorState,
    h: BlockFactor,
    order: EliminationArrays,
    at: IslandRange,
    second: bool,
    target: wp.float64,
) -> wp.float64:
    """Newton's direction to complementarity `target`, with the second-order term of the one before if `second`.

    Returns how far the cones and bounds let it go.
    """
    for b in range(at.begin, at.begin + at.n):
        it.dw[b] = -it.rd[b]
    for i in range(at.c0, at.c1):
        scale = it.c_scale[i]
        if scale > wp.float64(0.0):
            s = it.scaling[i]
            lam = it.lam[i]
            rc = -jordan(lam, lam)
            if second:
                rc = rc - jordan(scaled_down(s, it.dz[i]), scaled_up(s, it.dy[i]))
                rc = rc + wp.vec3d(target, wp.float64(0.0), wp.float64(0.0))
            q = jordan_divide(lam, rc)
            it.dy[i] = scaled_down(s, q)
            f = scaled_down(s, q - scaled_down(s, it.rp[i]))
            spread_contact(rows, it.c_pa[i], it.c_pb[i], i, cone_scale(scale, rows.c_friction[i], f), it.dw)
    for i in range(at.j0, at.j1):
        if not is_frozen(rows, i):
            k = -it.rho[i]
            if is_finite(rows.j_lower[i]):
                p = it.r[i] - rows.j_lower[i]
                c = -it.s[i] * p
                if second:
                    c += target - it.ds[i] * it.dr[i]
                it.ds[i] = c
                k += c / p
            if is_finite(rows.j_upper[i]):
                p = rows.j_upper[i] - it.r[i]
                c = -it.t[i] * p
                if second:
                    c += target + it.dt[i] * it.dr[i]
                it.dt[i] = c
                k -= c / p
            it.dr[i] = k
            spread_joint(rows, it.j_pa[i], it.j_pb[i], i, it.weight[i] * k, it.dw)
    solve_factored(h, order, at.begin, at.n, it.dw)
    step = FAR
    for i in range(at.c0, at.c1):
        scale = it.c_scale[i]
        if scale > wp.float64(0.0):
            s = it.scaling[i]
            u = contact_change(rows, it.c_pa[i], it.c_pb[i], i, it.dw)
            dz = cone_scale(scale, rows.c_friction[i], u) + it.rp[i]
            dy = it.dy[i] - scaled_down(s, scaled_down(s, dz))
            it.dz[i] = dz
            it.dy[i] = dy
            step = wp.min(step, wp.min(step_to_boundary(it.z[i], dz), step_to_boundary(it.y[i], dy)))
    for i in range(at.j0, at.j1):
        if not is_frozen(rows, i):
            dr = it.weight[i] * (it.dr[i] - joint_change(rows, it.j_pa[i], it.j_pb[i], i, it.dw))
            it.dr[i] = dr
            if is_finite(rows.j_lower[i]):
                p = it.r[i] - rows.j_lower[i]
                it.ds[i] = (it.ds[i] - it.s[i] * dr) / p
                step = wp.min(step, wp.min(boundary(p, dr), boundary(it.s[i], it.ds[i])))
            if is_finite(rows.j_upper[i]):
                p = rows.j_upper[i] - it.r[i]
                it.dt[i] = (it.dt[i] + it.t[i] * dr) / p
                step = wp.min(step, wp.min(boundary(p, -dr), boundary(it.t[i], it.dt[i])))
    return step


@wp.func
def advance(rows: WhitenedRows, it: InteriorState, at: IslandRange, step: wp.float64):
    for b in range(at.begin, at.begin + at.n):
        it.w[b] = it.w[b] + step * it.dw[b]
    for i in range(at.c0, at.c1):
        if it.c_scale[i] > wp.float64(0.0):
            it.z[i] = it.z[i] + step * it.dz[i]
            it.y[i] = it.y[i] + step * it.dy[i]
    for i in range(at.j0, at.j1):
        if not is_frozen(rows, i):
            it.r[i] = it.r[i] + step * it.dr[i]
            if is_finite(rows.j_lower[i]):
                it.s[i] = it.s[i] + step * it.ds[i]
            if is_finite(rows.j_upper[i]):
                it.t[i] = it.t[i] + step * it.dt[i]


@wp.func
def keep(rows: WhitenedRows, it: InteriorState, at: IslandRange):
    for i in range(at.c0, at.c1):
        it.c_best[i] = cone_scale(it.c_scale[i], rows.c_friction[i], it.y[i])
    for i in range(at.j0, at.j1):
        it.j_best[i] = it.r[i]


@wp.func
def solve_convex(
    rows: WhitenedRows,
    it: InteriorState,
    h: BlockFactor,
    order: EliminationArrays,
    at: IslandRange,
    most: int,
    tolerance: wp.float64,
) -> int:
    """The convex problem with the shifts as they are; impulses in c_best and j_best. How many iterations it took."""
    begin_inside(rows, it, at)
    best = FAR
    made = int(0)
    go = bool(True)
    while go:
        now = residuals(rows, it, at)
        if now[0] < best:
            best = now[0]
            keep(rows, it, at)
        # not <: also where the numbers are none any more
        if best <= tolerance or made >= most or not (now[0] < wp.float64(1.0e3) * best):
            go = False
        else:
            assemble(rows, it, h, order, at)
            factor(h, order, at.begin, at.n)
            target = wp.float64(0.0)
            t = wp.float64(0.0)
            corrected = int(0)
            while corrected < 2:  # straight to zero, then as much to the middle as that was cut short
                t = direction(rows, it, h, order, at, corrected == 1, target)
                rest = wp.float64(1.0) - wp.min(wp.float64(1.0), t)
                target = rest * rest * rest * now[1]
                corrected += 1
            advance(rows, it, at, wp.min(wp.float64(1.0), _BACK_OFF * t))
            made += 1
    return made


@wp.func
def island_range(islands: IslandArrays, k: int) -> IslandRange:
    at = IslandRange()
    at.c0 = islands.contact_first[k]
    at.c1 = islands.contact_first[k + 1]
    at.j0 = islands.joint_first[k]
    at.j1 = islands.joint_first[k + 1]
    at.begin = islands.body_first[k]
    at.n = islands.body_first[k + 1] - at.begin
    return at


@wp.func
def position_of(order: EliminationArrays, begin: int, body: int) -> int:
    if body < 0:
        return -1
    return begin + order.position[begin + order.place[body]]


@wp.func
def prepare(
    islands: IslandArrays, rows: WhitenedRows, it: InteriorState, order: EliminationArrays, q: int, at: IslandRange
):
    """Columns of the factor, positions of bodies and scales of rows; no shift."""
    list_columns(islands, rows, order, q)
    for i in range(at.c0, at.c1):
        it.c_pa[i] = position_of(order, at.begin, rows.c_a[i])
        it.c_pb[i] = position_of(order, at.begin, rows.c_b[i])
        d = rows.c_delassus[i]
        size = wp.max(d[0, 0], wp.max(d[1, 1], d[2, 2]))
        scale = wp.float64(0.0)
        if d[0, 0] > wp.float64(1.0e-12) * size:
            scale = wp.float64(1.0) / wp.sqrt(size)
        it.c_scale[i] = scale
        it.c_shift[i] = wp.float64(0.0)
    for i in range(at.j0, at.j1):
        it.j_pa[i] = position_of(order, at.begin, rows.j_a[i])
        it.j_pb[i] = position_of(order, at.begin, rows.j_b[i])

"""Block Gauss-Seidel: row after row takes the impulse that satisfies its own law, there and back, until none changes.

Question: which impulses satisfy all rows of an island?
Method:   sweeps over joints and contacts, forwards and backwards in turn, from the impulses of the last step. A contact
          is a block of three with the exact law of Coulomb; a change acts on the two bodies at once. A sweep in which
          no row was farther from its law than the tolerance is the last one. Sweeps that make no more headway may be
          given up: every ten of them the rate of the last ten tells how many would be needed. Where contacts slide much
          faster than the residual they go on: bodies tumble, and nothing that rests depends on the last digits. Islands
          of many rows are swept to the end, and lazily: nine of ten sweeps leave out contacts whose bodies have changed
          by less than a fifth of the largest change since they were last looked at, which are most of them.
Sound:    impulses never leave their cones and bounds; the residual told is that of the impulses that are returned,
          computed anew.
Known as: nonsmooth Gauss-Seidel, NSGS (Jourdan, Alart and Jean 1998); projected Gauss-Seidel; sequential impulses.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.local_law import (
    bounded_residual,
    contact_impulse,
    contact_residual,
)
from tangere.dynamics.solver.problem import vec6d
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Sweeps between two looks at the rate.
PATIENCE = wp.constant(10)
_PATIENCE = wp.constant(wp.float64(10.0))

#: Of the largest change of the last sweep: less is little.
LITTLE = wp.constant(wp.float64(0.2))

#: A change of velocity that is none: up a tower impulses fade until numbers are denormal, and a hundred times as slow.
_TINY = wp.constant(wp.float64(1.0e-100))

#: Why an island's sweeps ended: no row changed by more than the tolerance; all were made; they made no more headway;
#: a number in the island is not finite; none was made, since nothing is new.
CONVERGED, EXHAUSTED, STAGNANT, NOT_FINITE, SOLVED = 0, 1, 2, 3, 4
_CONVERGED, _EXHAUSTED, _STAGNANT, _NOT_FINITE, _SOLVED = (
    wp.constant(CONVERGED), wp.constant(EXHAUSTED), wp.constant(STAGNANT), wp.constant(NOT_FINITE), wp.constant(SOLVED),
)  # fmt: skip


@wp.struct
class SweepOptions:
    """How sweeps go on and end."""

    most: wp.int32  # sweeps
    tolerance: wp.float64  # [m/s]
    good: wp.float64  # residual that sweeps must be able to reach, else they are given up [m/s]; 0: never
    patient: wp.int32  # islands of more rows are swept to the end before that
    sliding: wp.array[wp.float64]  # (1,) residuals below this part of the speed of sliding contacts are good as well
    since: wp.array[wp.int32]  # (1,) contacts from here on are new: islands without any stay as they are; 0: all are
    apart: wp.int32  # an island every so many threads
    alone: wp.int32  # islands of more rows are not for one thread, but for a block of them


@wp.struct
class IslandReport:
    """What became of each island."""

    residual: wp.array[wp.float64]  # of the natural map [m/s]
    iterations: wp.array[wp.int32]  # sweeps
    status: wp.array[wp.int32]


@wp.func
def contact_velocity(rows: WhitenedRows, i: int) -> wp.vec3d:
    u = rows.c_free[i]
    a = rows.c_a[i]
    if a >= 0:
        u = u + rows.c_ga[i] * rows.w[a]
    b = rows.c_b[i]
    if b >= 0:
        u = u + rows.c_gb[i] * rows.w[b]
    return u


@wp.func
def push_contact(rows: WhitenedRows, i: int, change: wp.vec3d):
    a = rows.c_a[i]
    if a >= 0:
        rows.w[a] = rows.w[a] + change * rows.c_ga[i]
    b = rows.c_b[i]
    if b >= 0:
        rows.w[b] = rows.w[b] + change * rows.c_gb[i]


@wp.func
def joint_velocity(rows: WhitenedRows, i: int) -> wp.float64:
    """With compliance."""
    u = rows.j_free[i] + rows.j_compliance[i] * rows.j_impulse[i]
    a = rows.j_a[i]
    if a >= 0:
        u += wp.dot(rows.j_ga[i], rows.w[a])
    b = rows.j_b[i]
    if b >= 0:
        u += wp.dot(rows.j_gb[i], rows.w[b])
    return u


@wp.func
def push_joint(rows: WhitenedRows, i: int, change: wp.float64):
    a = rows.j_a[i]
    if a >= 0:
        rows.w[a] = rows.w[a] + change * rows.j_ga[i]
    b = rows.j_b[i]
    if b >= 0:
        rows.w[b] = rows.w[b] + change * rows.j_gb[i]


@wp.func
def solve_contact(rows: WhitenedRows, i: int) -> wp.float64:
    """One contact takes its own impulse; by how much the relative velocity changes."""
    d = rows.c_delassus[i]
    r = rows.c_impulse[i]
    u = contact_velocity(rows, i)
    active = r[0] != wp.float64(0.0)
    if not active and u[0] >= wp.float64(0.0):
        return wp.float64(0.0)
    new = contact_impulse(u - d * r, r, d, rows.c_inverse[i], rows.c_friction[i])
    change = new - r
    size = wp.length(d * change)
    if size > _TINY:
        rows.c_impulse[i] = new
        push_contact(rows, i, change)
    return size


@wp.func
def solve_joint(rows: WhitenedRows, i: int) -> wp.float64:
    d = rows.j_diagonal[i]
    if d <= wp.float64(0.0):
        return wp.float64(0.0)
    r = rows.j_impulse[i]
    new = wp.clamp(r - joint_velocity(rows, i) / d, rows.j_lower[i], rows.j_upper[i])
    change = new - r
    size = wp.abs(d * change)
    if size > _TINY:
        rows.j_impulse[i] = new
        push_joint(rows, i, change)
    return size


@wp.func
def apply_impulses(rows: WhitenedRows, c0: int, c1: int, j0: int, j1: int):
    """w of the island's bodies from its impulses alone."""
    for i in range(j0, j1):
        if rows.j_a[i] >= 0:
            rows.w[rows.j_a[i]] = vec6d()
        if rows.j_b[i] >= 0:
            rows.w[rows.j_b[i]] = vec6d()
    for i in range(c0, c1):
        if rows.c_a[i] >= 0:
            rows.w[rows.c_a[i]] = vec6d()
        if rows.c_b[i] >= 0:
            rows.w[rows.c_b[i]] = vec6d()
    for i in range(j0, j1):
        push_joint(rows, i, rows.j_impulse[i])
    for i in range(c0, c1):
        push_contact(rows, i, rows.c_impulse[i])


@wp.func
def island_residual(rows: WhitenedRows, c0: int, c1: int, j0: int, j1: int, coulomb: wp.float64) -> wp.float64:
    """The farthest any row is from its law [m/s]; not finite if a number of the island is not."""
    worst = wp.float64(0.0)
    free = wp.float64(0.0)  # the largest of two numbers may hide one that is none, a sum does not
    for i in range(j0, j1):
        v = joint_velocity(rows, i)
        e = bounded_residual(v, rows.j_impulse[i], rows.j_diagonal[i], rows.j_lower[i], rows.j_upper[i])
        worst = wp.max(worst, e)
        free += rows.j_free[i] + e
    for i in range(c0, c1):
        u = contact_velocity(rows, i)
        e = contact_residual(u, rows.c_impulse[i], rows.c_delassus[i], rows.c_friction[i], coulomb)
        worst = wp.max(worst, e)
        free += wp.dot(rows.c_free[i], rows.c_free[i]) + e
    return worst + wp.float64(0.0) * free


@wp.func
def sliding_speed(rows: WhitenedRows, c0: int, c1: int) -> wp.float64:
    """How fast contacts slide on average, each counted by its normal impulse [m/s]."""
    impulse = wp.float64(1.0e-300)
    sliding = wp.float64(0.0)
    for i in range(c0, c1):
        n = rows.c_impulse[i][0]
        if n > wp.float64(0.0):
            u = contact_velocity(rows, i)
            impulse += n
            sliding += n * wp.sqrt(u[1] * u[1] + u[2] * u[2])
    return sliding / impulse


@wp.func
def stir(rows: WhitenedRows, i: int, number: int):
    """The bodies of a contact have changed in a sweep."""
    if rows.c_a[i] >= 0:
        rows.stirred[rows.c_a[i]] = number
    if rows.c_b[i] >= 0:
        rows.stirred[rows.c_b[i]] = number


@wp.func
def is_stirred(rows: WhitenedRows, i: int) -> bool:
    """Whether a body of a contact has changed since a sweep last looked at it."""
    seen = rows.c_seen[i]
    if rows.c_a[i] >= 0:
        if rows.stirred[rows.c_a[i]] >= seen:
            return True
    if rows.c_b[i] >= 0:
        return rows.stirred[rows.c_b[i]] >= seen
    return False


@wp.func
def sweep(
    rows: WhitenedRows, c0: int, c1: int, j0: int, j1: int, number: int, all: bool, little: wp.float64
) -> wp.float64:
    """Once over the rows, there or back by the number of the sweep; the largest change of a relative velocity [m/s].

    Args:
        all: whether contacts are looked at whose bodies have not been stirred since the last time.
        little: changes that stir nobody [m/s].
    """
    worst = wp.float64(0.0)
    joints = j1 - j0
    rest = c1 - c0 + joints
    for step in range(rest):  # joints, then contacts; or all the way back
        k = step
        if number % 2 == 0:
            k = rest - 1 - step
        if k < joints:
            worst = wp.max(worst, solve_joint(rows, j0 + k))
        else:
            i = c0 + k - joints
            if all or is_stirred(rows, i):
                rows.c_seen[i] = number
                change = solve_contact(rows, i)
                if change > little:
                    stir(rows, i, number)
                worst = wp.max(worst, change)
    return worst


@wp.func
def is_solved(islands: IslandArrays, k: int, since: int) -> bool:
    """Whether an island has been solved with the contacts it has: those before `since`, of which the last is last."""
    end = islands.contact_first[k + 1]
    if since == 0:
        return False
    if end == islands.contact_first[k]:
        return True
    return islands.contact_order[end - 1] < since


@wp.kernel
def sweep_islands(
    first: int,
    islands: IslandArrays,
    rows: WhitenedRows,
    options: SweepOptions,
    report: IslandReport,
):
    """All sweeps of an island, on one thread."""
    k = (first + wp.tid()) / options.apart
    if (first + wp.tid()) % options.apart != 0:
        return
    c0 = islands.contact_first[k]
    c1 = islands.contact_first[k + 1]
    j0 = islands.joint_first[k]
    j1 = islands.joint_first[k + 1]
    if c1 - c0 + j1 - j0 > options.alone:
        return
    apply_impulses(rows, c0, c1, j0, j1)
    patient = c1 - c0 + j1 - j0 > options.patient
    made = int(0)
    most = int(options.most)
    status = int(_EXHAUSTED)
    if is_solved(islands, k, options.since[0]):
        most = 0
        status = _SOLVED
    earlier = wp.float64(0.0)
    worst = wp.float64(0.0)
    all = bool(True)
    while made < most:
        worst = sweep(rows, c0, c1, j0, j1, made + 1, all, LITTLE * worst)
        made += 1
        if all and worst <= options.tolerance:
            status = _CONVERGED
            break
        look = made % PATIENCE == 0
        may_stop = look and options.good > wp.float64(0.0) and not patient
        if may_stop and earlier > wp.float64(0.0) and worst > options.good:
            # sweeps that the rate of the last ones still needs
            rate = wp.log(earlier / worst) / _PATIENCE
            needed = wp.log(worst / options.good)
            if needed > rate * wp.float64(most - made):
                if worst > options.sliding[0] * sliding_speed(rows, c0, c1):
                    status = _STAGNANT
                    break
        if look:
            earlier = worst
        all = not patient or worst <= options.tolerance or (made + 1) % PATIENCE == 0
    apply_impulses(rows, c0, c1, j0, j1)
    residual = island_residual(rows, c0, c1, j0, j1, wp.float64(1.0))
    if status == _EXHAUSTED and options.good > wp.float64(0.0):
        if residual > options.good and residual > options.sliding[0] * sliding_speed(rows, c0, c1):
            status = _STAGNANT
    if not (residual < wp.float64(1.0e300)):
        status = _NOT_FINITE
    report.residual[k] = residual
    report.iterations[k] = made
    report.status[k] = status

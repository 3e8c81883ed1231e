"""A thin elastic rod that goes through bodies, solved directly in every sweep, by one thread.

Question: how does a rod bend that is held at its base, pushed at its tip, and held by guides at points of bodies?
Method:   nodes at equal distances l; bending energy B / (2 l^3) sum |x[i+1] - 2 x[i] + x[i-1]|^2, a constant matrix; a
          spring across the rod for every guide (`contact.rows`), to where its point is now; a stiff hold along the
          rod; the first two nodes are clamped. One Cholesky factorisation in blocks of 3 x 3, two beside the diagonal:
          what a row needs of the rows before stays in registers. Then lengths are put right from the base on, and the
          guides get their lines from the rod.
Why:      between sweeps over dofs, rod and body alternate, which converges slowly where both are about as stiff; so the
          rod is part of every sweep, and the acceleration mixes the moves of both.
Sound:    a cantilever of 41 nodes bends 2.5 % too much, of 81 nodes 0.5 %.
Known as: isometric bending of discrete rods (Bergou et al. 2008); block Gauss-Seidel with Anderson acceleration over
          both blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.solver.anderson import WINDOW, Dots

wp.set_module_options(SOUND)

#: The hold along the rod, in bending stiffnesses of one piece.
_AXIAL = wp.constant(wp.float64(1000.0))


@wp.struct
class RodArrays:
    """A rod; none where it has no nodes."""

    count: wp.array[int]  #: nodes, the first row of its guides, and how many of those there are
    x: wp.array[wp.vec3d]  #: (n,) nodes [m]
    base: wp.array[wp.vec3d]  #: (2,) where the first two nodes are held [m]
    push: wp.array[wp.vec3d]  #: (1,) on the tip [N]
    place: wp.array[wp.float64]  #: of each guide along the rod [m]
    spacing: wp.float64
    bending: wp.float64  #: E I [N m^2]
    weight: wp.float64  #: of a node in the acceleration, as the mass of a dof [kg]
    diagonal: wp.array[wp.mat33d]  #: (n,) blocks of the matrix of its energy
    beside: wp.array[wp.mat33d]  #: (n,) of a node and the one before; then of L
    beyond: wp.array[wp.mat33d]  #: (n,) of a node and the second before
    right: wp.array[wp.vec3d]  #: (n,) the right side, and the solution
    before: wp.array[wp.vec3d]  #: (n,) and on: what the acceleration remembers
    last_r: wp.array[wp.vec3d]
    last_x: wp.array[wp.vec3d]
    differences_r: wp.array2d[wp.vec3d]
    differences_x: wp.array2d[wp.vec3d]


def rod_arrays(
    nodes: np.ndarray | None = None, *, bending: float = 0.0, weight: float = 0.0, room: int = 1, device: Any = "cpu"
) -> RodArrays:
    """A rod along nodes (n, 3) [m], with room for so many guides; None: no rod."""
    rod, count = RodArrays(), 0 if nodes is None else len(nodes)
    rod.count = wp.array([count, 0, 0], dtype=wp.int32, device=device)
    rod.x = wp.array(np.zeros((1, 3)) if nodes is None else nodes, dtype=wp.vec3d, device=device)
    rod.base, rod.push = (wp.zeros(k, dtype=wp.vec3d, device=device) for k in (2, 1))
    rod.place = wp.zeros(room, dtype=wp.float64, device=device)
    rod.spacing = 1.0 if nodes is None else float(np.linalg.norm(nodes[1] - nodes[0]))
    rod.bending, rod.weight = bending, weight
    for name in ("diagonal", "beside", "beyond"):
        setattr(rod, name, wp.zeros(max(count, 1), dtype=wp.mat33d, device=device))
    for name in ("right", "before", "last_r", "last_x"):
        setattr(rod, name, wp.zeros(max(count, 1), dtype=wp.vec3d, device=device))
    for name in ("differences_r", "differences_x"):
        setattr(rod, name, wp.zeros((WINDOW, max(count, 1)), dtype=wp.vec3d, device=device))
    return rod


@wp.func
def _bend(rod: RodArrays):
    """The bending matrix and the hold along the rod where it is."""
    n = rod.count[0]
    c = rod.bending / (rod.spacing * rod.spacing * rod.spacing)
    one = wp.identity(n=3, dtype=wp.float64)
    hold = _AXIAL * wp.max(c, wp.float64(1.0))
    for i in range(n):
        # Of each three nodes in a row 1, -2, 1: a node is the first, the middle and the last of some.
        own = wp.float64(0.0)
        before = wp.float64(0.0)
        second = wp.float64(0.0)
        if i + 2 < n:
            own += wp.float64(1.0)
        if i >= 1 and i + 1 < n:
            own += wp.float64(4.0)
            before -= wp.float64(2.0)
        if i >= 2:
            own += wp.float64(1.0)
            before -= wp.float64(2.0)
            second += wp.float64(1.0)
        t = wp.normalize(rod.x[wp.min(i + 1, n - 1)] - rod.x[wp.max(i - 1, 0)])
        rod.diagonal[i] = c * own * one + hold * wp.outer(t, t)
        rod.beside[i] = c * before * one
        rod.beyond[i] = c * second * one
        rod.right[i] = hold * wp.dot(t, rod.x[i]) * t


@wp.func
def rod_point(rod: RodArrays, place: wp.float64):
    """The piece at a place along the rod, and the part of it before the place."""
    i = wp.clamp(int(place / rod.spacing), 0, rod.count[0] - 2)
    return i, place / rod.spacing - wp.float64(i)


@wp.func
def _hold_across(rod: RodArrays, place: wp.float64, point: wp.vec3d, k: wp.float64):
    """A spring across the rod to a point."""
    i, u = rod_point(rod, place)
    t = wp.normalize(rod.x[i + 1] - rod.x[i])
    across = k * (wp.identity(n=3, dtype=wp.float64) - wp.outer(t, t))
    v = wp.float64(1.0) - u
    rod.diagonal[i] = rod.diagonal[i] + v * v * across
    rod.diagonal[i + 1] = rod.diagonal[i + 1] + u * u * across
    rod.beside[i + 1] = rod.beside[i + 1] + u * v * across
    force = across * point
    rod.right[i] = rod.right[i] + v * force
    rod.right[i + 1] = rod.right[i + 1] + u * force


@wp.func
def _inverse_root(m: wp.mat33d) -> wp.mat33d:
    """The inverse of L where m = L L^T: a triangle, which keeps its digits where an inverse of m would not."""
    one = wp.float64(1.0)
    a = one / wp.sqrt(m[0, 0])
    l10 = m[1, 0] * a
    l20 = m[2, 0] * a
    b = one / wp.sqrt(m[1, 1] - l10 * l10)
    l21 = (m[2, 1] - l20 * l10) * b
    c = one / wp.sqrt(m[2, 2] - l20 * l20 - l21 * l21)
    g10 = -l10 * a * b
    zero = wp.float64(0.0)
    return wp.mat33d(a, zero, zero, g10, b, zero, -(l20 * a + l21 * g10) * c, -l21 * b * c, c)


@wp.func
def _solve(rod: RodArrays):
    """With the base where it is held; the solution is in `right`."""
    n = rod.count[0]
    rod.right[0] = rod.base[0]
    rod.right[1] = rod.base[1]
    rod.right[2] = rod.right[2] - rod.beside[2] * rod.base[1] - rod.beyond[2] * rod.base[0]
    rod.right[3] = rod.right[3] - rod.beyond[3] * rod.base[1]
    root_1 = wp.mat33d()  # of one and two rows before
    root_2 = wp.mat33d()
    last = wp.mat33d()  # what the row before has beside
    y_1 = wp.vec3d()
    y_2 = wp.vec3d()
    for i in range(2, n):
        beside = rod.beside[i]
        beyond = rod.beyond[i]
        if i == 2:
            beside = wp.mat33d()
        if i < 4:
            beyond = wp.mat33d()
        beyond = beyond * wp.transpose(root_2)
        beside = (beside - beyond * wp.transpose(last)) * wp.transpose(root_1)
        root_2 = root_1
        root_1 = _inverse_root(rod.diagonal[i] - beyond * wp.transpose(beyond) - beside * wp.transpose(beside))
        last = beside
        y = root_1 * (rod.right[i] - beside * y_1 - beyond * y_2)
        y_2 = y_1
        y_1 = y
        rod.diagonal[i] = root_1
        rod.beside[i] = beside
        rod.beyond[i] = beyond
        rod.right[i] = y
    x_1 = wp.vec3d()  # one and two rows after
    x_2 = wp.vec3d()
    beside_1 = wp.mat33d()
    beyond_1 = wp.mat33d()
    beyond_2 = wp.mat33d()
    for k in range(n - 2):
        i = n - 1 - k
        rest = rod.right[i] - wp.transpose(beside_1) * x_1 - wp.transpose(beyond_2) * x_2
        x_2 = x_1
        x_1 = wp.transpose(rod.diagonal[i]) * rest
        beyond_2 = beyond_1
        beyond_1 = rod.beyond[i]
        beside_1 = rod.beside[i]
        rod.right[i] = x_1


@wp.func
def relax_rod(rod: RodArrays, rows: RowArrays, x: wp.array[Any]):
    """Solve the rod for where the bodies are (three or four numbers each), and give its guides their lines."""
    _bend(rod)
    n = rod.count[0]
    first = rod.count[1]
    for j in range(rod.count[2]):
        point = wp.vec3d()
        for k in range(rows.sizes[first + j]):
            q = x[rows.dofs[first + j][k]]
            point += rows.weights[first + j][k] * wp.vec3d(q[0], q[1], q[2])
        _hold_across(rod, rod.place[j], point, rows.guide[first + j][0])
    rod.right[n - 1] = rod.right[n - 1] + rod.push[0]
    _solve(rod)
    rod.x[0] = rod.base[0]
    for i in range(1, n):
        rod.x[i] = rod.x[i - 1] + rod.spacing * wp.normalize(rod.right[i] - rod.right[i - 1])
    for j in range(rod.count[2]):
        i, u = rod_point(rod, rod.place[j])
        way = rod.x[i + 1] - rod.x[i]
        rows.aim[first + j] = rod.x[i] + u * way
        rows.normal[first + j] = wp.normalize(way)


@wp.func
def record_rod(rod: RodArrays, slot: int) -> Dots:
    """The rod's part of the acceleration, see `anderson.record_differences`."""
    dots = Dots()
    for i in range(rod.count[0]):
        r = rod.x[i] - rod.before[i]
        rod.differences_r[slot, i] = r - rod.last_r[i]
        rod.differences_x[slot, i] = rod.x[i] - rod.last_x[i]
        rod.last_r[i] = r
        rod.last_x[i] = rod.x[i]
        a = rod.differences_r[0, i]
        b = rod.differences_r[1, i]
        c = rod.differences_r[2, i]
        dots[0] += wp.dot(a, a)
        dots[1] += wp.dot(a, b)
        dots[2] += wp.dot(a, c)
        dots[3] += wp.dot(b, b)
        dots[4] += wp.dot(b, c)
        dots[5] += wp.dot(c, c)
        dots[6] += wp.dot(a, r)
        dots[7] += wp.dot(b, r)
        dots[8] += wp.dot(c, r)
        dots[9] += wp.dot(r, r)
    return rod.weight * dots


@wp.func
def accelerate_rod(rod: RodArrays, theta: wp.vec3d):
    """Nodes go where the combination puts them; lengths are put right."""
    before = rod.x[0]
    for i in range(rod.count[0]):
        there = (
            rod.x[i]
            - theta[0] * rod.differences_x[0, i]
            - theta[1] * rod.differences_x[1, i]
            - theta[2] * rod.differences_x[2, i]
        )
        if i > 0:
            rod.x[i] = rod.x[i - 1] + rod.spacing * wp.normalize(there - before)
        before = there
        rod.before[i] = rod.x[i]

"""A thin elastic rod that goes through bodies, solved directly in every sweep, by one thread.

Question: how does a rod bend that is held at its base, pushed at its tip, and held by guides at points of bodies?
Method:   nodes at equal distances l; bending energy B / (2 l^3) sum |x[i+1] - 2 x[i] + x[i-1]|^2, a constant matrix; a
          spring across the rod for every guide (`contact.rows`), to where its point is now; a stiff hold along the
          rod; the first two nodes are clamped. One banded Cholesky factorisation, half width 8. Then lengths are put
          right from the base on, and the guides get their lines from the rod.
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

#: Half of the bandwidth, the diagonal included.
BAND = wp.constant(9)
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
    matrix: wp.array2d[wp.float64]
    right: wp.array[wp.float64]
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
    rod.matrix = wp.zeros((max(3 * count, 1), int(BAND)), dtype=wp.float64, device=device)
    rod.right = wp.zeros(max(3 * count, 1), dtype=wp.float64, device=device)
    for name in ("before", "last_r", "last_x"):
        setattr(rod, name, wp.zeros(max(count, 1), dtype=wp.vec3d, device=device))
    for name in ("differences_r", "differences_x"):
        setattr(rod, name, wp.zeros((WINDOW, max(count, 1)), dtype=wp.vec3d, device=device))
    return rod


@wp.func
def _bend(rod: RodArrays):
    """The bending matrix and the hold along the rod where it is."""
    n = rod.count[0]
    for i in range(3 * n):
        rod.right[i] = wp.float64(0.0)
        for j in range(BAND):
            rod.matrix[i, j] = wp.float64(0.0)
    c = rod.bending / (rod.spacing * rod.spacing * rod.spacing)
    weights = wp.vec3d(wp.float64(1.0), wp.float64(-2.0), wp.float64(1.0))
    for i in range(1, n - 1):
        for a in range(3):
            for e in range(a + 1):
                for d in range(3):
                    row = 3 * (i - 1 + a) + d
                    rod.matrix[row, 3 * (a - e)] = rod.matrix[row, 3 * (a - e)] + c * weights[a] * weights[e]
    hold = _AXIAL * wp.max(c, wp.float64(1.0))
    for i in range(n):
        t = wp.normalize(rod.x[wp.min(i + 1, n - 1)] - rod.x[wp.max(i - 1, 0)])
        force = hold * wp.dot(t, rod.x[i]) * t
        for d in range(3):
            rod.right[3 * i + d] = rod.right[3 * i + d] + force[d]
            for e in range(d + 1):
                rod.matrix[3 * i + d, d - e] = rod.matrix[3 * i + d, d - e] + hold * t[d] * t[e]


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
    force = k * (point - wp.dot(point, t) * t)
    weights = wp.vec2d(wp.float64(1.0) - u, u)
    for a in range(2):
        for e in range(a + 1):
            for d in range(3):
                for g in range(3):
                    row = 3 * (i + a) + d
                    column = 3 * (i + e) + g
                    if column <= row:
                        part = -t[d] * t[g]
                        if d == g:
                            part += wp.float64(1.0)
                        part *= weights[a] * weights[e] * k
                        rod.matrix[row, row - column] = rod.matrix[row, row - column] + part
        for d in range(3):
            rod.right[3 * (i + a) + d] = rod.right[3 * (i + a) + d] + weights[a] * force[d]


@wp.func
def _solve(rod: RodArrays):
    """Clamp the base and solve; the solution is in `right`."""
    size = 3 * rod.count[0]
    for i in range(2):
        for d in range(3):
            r = 3 * i + d
            for j in range(1, BAND):
                if r + j < size:
                    rod.right[r + j] = rod.right[r + j] - rod.matrix[r + j, j] * rod.base[i][d]
                    rod.matrix[r + j, j] = wp.float64(0.0)
                rod.matrix[r, j] = wp.float64(0.0)
            rod.matrix[r, 0] = wp.float64(1.0)
            rod.right[r] = rod.base[i][d]
    for i in range(size):
        low = wp.max(0, i - (BAND - 1))
        for j in range(low, i + 1):
            v = rod.matrix[i, i - j]
            for k in range(wp.max(low, j - (BAND - 1)), j):
                v -= rod.matrix[i, i - k] * rod.matrix[j, j - k]
            if i == j:
                rod.matrix[i, 0] = wp.sqrt(v)
            else:
                rod.matrix[i, i - j] = v / rod.matrix[j, 0]
    for i in range(size):
        v = rod.right[i]
        for j in range(wp.max(0, i - (BAND - 1)), i):
            v -= rod.matrix[i, i - j] * rod.right[j]
        rod.right[i] = v / rod.matrix[i, 0]
    for k in range(size):
        i = size - 1 - k
        v = rod.right[i]
        for j in range(i + 1, wp.min(size, i + BAND)):
            v -= rod.matrix[j, j - i] * rod.right[j]
        rod.right[i] = v / rod.matrix[i, 0]


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
    for d in range(3):
        rod.right[3 * (n - 1) + d] = rod.right[3 * (n - 1) + d] + rod.push[0][d]
    _solve(rod)
    rod.x[0] = rod.base[0]
    for i in range(1, n):
        way = wp.vec3d(
            rod.right[3 * i] - rod.right[3 * i - 3],
            rod.right[3 * i + 1] - rod.right[3 * i - 2],
            rod.right[3 * i + 2] - rod.right[3 * i - 1],
        )
        rod.x[i] = rod.x[i - 1] + rod.spacing * wp.normalize(way)
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

"""Gauss's principle as a projection: the motion nearest to the free one, in the kinetic metric, that rows allow.

Question: x* = argmin |x - x_u|_M^2 / 2 with J x >= c, for accelerations or for velocities after an impact?
Method:   M = Q^T Q and J_Q = J Q^-1 (Redon 2002, chapter 5; the thesis prints J Q^T, which is right for orthogonal Q
          only). "nnls": the nearest point on the cone of the rows of J_Q to s = Q (k - x_u), equations 5.27 and 5.28,
          where J k = c. "ldp": least-distance programming, which needs no k. "lcp": forces in contact space.
          M and J are those of any coordinates: rigid bodies, or the angles of an arm.
Sound:    "nnls" where c is in the range of J only: with redundant rows whose c differ no k exists, and the one of least
          squares breaks rows. "ldp" tells where nothing satisfies all rows.
Known as: Gauss's principle of least constraint; J_Q^T l is the impulse in mass-weighted coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.published.redon_dynamics.dantzig import solve_lcp
from tangere.published.redon_dynamics.wilhelmsen import nearest_in_cone
from tangere.runtime import Arrays, InputError, to_numpy

METHODS = ("ldp", "nnls", "lcp")
#: Below this the last number of least-distance programming is zero: no motion satisfies all rows.
_INFEASIBLE = 1e-9


@dataclass(frozen=True)
class GaussProjection:
    """A projected motion."""

    motion: np.ndarray  #: x*, (k,)
    multipliers: np.ndarray  #: forces or impulses, (m,), not negative
    feasible: bool  #: whether a motion satisfies all rows
    solves: int  #: linear systems solved


def gauss_projection(
    mass: Arrays, jacobian: Arrays, need: Arrays, wanted: Arrays, *, method: str = "ldp"
) -> GaussProjection:
    """The motion nearest to `wanted` (k,) in the metric `mass` (k, k) with `jacobian` (m, k) x >= `need` (m,)."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    m, j = to_numpy(mass, "mass"), to_numpy(jacobian, "jacobian")
    c, x = to_numpy(need, "need"), to_numpy(wanted, "wanted")
    if not len(j):
        return GaussProjection(x.copy(), np.zeros(0), True, 0)
    q = np.linalg.cholesky(m).T
    rows = motion_space_rows(q, j)
    if method == "lcp":
        found = solve_lcp(rows @ rows.T, j @ x - c)
        motion = x + np.linalg.solve(q, rows.T @ found.force)
        return GaussProjection(motion, found.force, bool(found.solved), int(found.solves))
    if method == "nnls":
        k = np.linalg.lstsq(j, c, rcond=None)[0]
        near = nearest_in_cone(rows, q @ (k - x))
        return GaussProjection(x + np.linalg.solve(q, near.point), near.weights, True, int(near.solves))
    lack = c - j @ x
    scale = lack.max(initial=0.0)
    if scale <= 0.0:
        return GaussProjection(x.copy(), np.zeros(len(j)), True, 0)
    system = np.column_stack([rows, lack / scale])
    target = np.eye(system.shape[1])[-1]
    near = nearest_in_cone(system, target)
    residual = near.point - target
    if abs(residual[-1]) < _INFEASIBLE:
        return GaussProjection(x.copy(), np.zeros(len(j)), False, int(near.solves))
    step = -scale * residual[:-1] / residual[-1]
    return GaussProjection(x + np.linalg.solve(q, step), -scale * near.weights / residual[-1], True, int(near.solves))


def motion_space_rows(factor: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
    """J_Q = J Q^-1, (m, k), of Q (k, k), upper triangular."""
    return np.linalg.solve(factor.T, jacobian.T).T

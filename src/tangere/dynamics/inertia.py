"""Inverse inertias with more in the way of turning, whatever is rounded."""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver.whitened_rows import semidefinite_factor
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def stiffened(inverse: wp.mat33d, more: wp.mat33d) -> wp.mat33d:
    """(I + more)^-1 of an inverse inertia I^-1, where I may be infinite about some axes.

    With I^-1 = F F^T and 1 + F^T more F = L L^T it is A^T A of A = L^-1 F^T: symmetric, and never negative. The pivots
    of L are 1 or more, also where what is added is so large that rounding says otherwise."""
    f = semidefinite_factor(inverse)
    s = wp.identity(n=3, dtype=wp.float64) + wp.transpose(f) * more * f
    a = wp.transpose(f)
    for j in range(3):
        root = wp.sqrt(wp.max(s[j, j], wp.float64(1.0)))
        for k in range(3):
            a[j, k] = a[j, k] / root
        for i in range(j + 1, 3):
            part = s[i, j] / root
            for k in range(3):
                a[i, k] = a[i, k] - part * a[j, k]
            for k in range(j + 1, i + 1):
                s[i, k] = s[i, k] - part * s[k, j] / root
    return wp.transpose(a) * a

"""Impacts as one projection: all contacts at once, with one coefficient of restitution.

Question: which velocities do bodies have after an impact that all their contacts feel (Redon 2002, chapter 5)?
Method:   the velocity nearest to the one before, in the kinetic metric, with J v+ >= -e J v- at every contact, whether
          it collides or not (equations 5.14 and 5.19). Friction adds rows in the space of velocities: along t + mu n
          the motion must not exceed the one before; at rest, no motion into the walls of the dimple.
Sound:    with one e for all contacts, and that literal right-hand side, kinetic energy never grows: -e v- is allowed. A
          cradle is not reproduced: all balls fly off together.
Known as: Newton's law of restitution, simultaneous impacts (Moreau 1988).
"""

from __future__ import annotations

import numpy as np

from tangere.published.redon_dynamics.gauss_projection import GaussProjection, gauss_projection
from tangere.runtime import Arrays, InputError, number, to_numpy


def simultaneous_impact(
    mass: Arrays,
    jacobian: Arrays,
    velocity: Arrays,
    restitution: float,
    *,
    sliding: Arrays | None = None,
    dimples: Arrays | None = None,
    method: str = "ldp",
) -> GaussProjection:
    """Velocities after an impact.

    Args:
        mass: (k, k). jacobian: rows along the normals, (m, k). velocity: before, (k,).
        restitution: e, between 0 and 1, the same for all contacts.
        sliding: rows along t + mu n of contacts that slide, (s, k).
        dimples: rows along the walls of contacts at rest, (w, k).
    """
    e = number(restitution, "restitution")
    if not 0.0 <= e <= 1.0:
        raise InputError(f"restitution must be between 0 and 1, not {restitution!r}")
    v, j = to_numpy(velocity, "velocity"), to_numpy(jacobian, "jacobian")
    rows, need = [j], [-e * (j @ v)]
    if sliding is not None:
        d = to_numpy(sliding, "sliding")
        rows.append(-d)
        need.append(-(d @ v))
    if dimples is not None:
        walls = to_numpy(dimples, "dimples")
        rows.append(walls)
        need.append(np.zeros(len(walls)))
    return gauss_projection(mass, np.concatenate(rows), np.concatenate(need), v, method=method)

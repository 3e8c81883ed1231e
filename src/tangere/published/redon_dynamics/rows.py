"""Rows of rigid bodies: non-penetration, friction while sliding, friction at rest as a pyramidal dimple.

Question: which inequalities J x >= c do contacts of rigid bodies and their friction give?
Method:   x holds the motion of each body, linear part (of the centre of mass) first. A row along a direction d has
          d . (x_i(I_i) - x_j(I_j)). Non-penetration: equations 5.5 and 5.8 of Redon 2002. A sliding contact adds one
          row, 5.39: along d = t + mu n the motion must not exceed the free one. A contact at rest has p rows instead of
          one, 5.40: the walls of a dimple, n turned by the angle of friction to p sides.
Sound:    always convex, so that the motion is unique; but p sides stick up to mu cos(pi / p) only between generators,
          and what slides out of a dimple climbs (the thesis says so).
Known as: associated or dilatant friction; polyhedral friction cones.
"""

from __future__ import annotations

import numpy as np

#: Sides of a dimple that looked realistic (Redon 2002, chapter 5).
SIDES = 6


def jacobian_rows(
    bodies: int, body_a: np.ndarray, body_b: np.ndarray, arm_a: np.ndarray, arm_b: np.ndarray, directions: np.ndarray
) -> np.ndarray:
    """Rows (m, 6 n) of the relative motion of contact points along directions (m, 3); a body of -1 is the world."""
    count = len(directions)
    rows = np.zeros((count, bodies, 6))
    for body, arm, sign in ((body_a, arm_a, 1.0), (body_b, arm_b, -1.0)):
        at = np.flatnonzero(np.asarray(body) >= 0)
        which = np.asarray(body)[at]
        np.add.at(rows, (at, which, slice(0, 3)), sign * directions[at])
        np.add.at(rows, (at, which, slice(3, 6)), sign * np.cross(np.asarray(arm)[at], directions[at]))
    return rows.reshape(count, 6 * bodies)


def sliding_directions(normals: np.ndarray, tangents: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """d = t + mu n of contacts that slide along unit vectors t (equation 5.39): the row is -J_d x >= -J_d x_u."""
    return tangents + np.asarray(friction)[:, None] * normals


def dimple_directions(frames: np.ndarray, friction: np.ndarray, sides: int = SIDES) -> np.ndarray:
    """The p walls of each contact's dimple (m, p, 3), from frames (m, 3, 3) with rows n, t1, t2 (equation 5.40)."""
    angle = 2.0 * np.pi * np.arange(1, sides + 1) / sides
    mu = np.asarray(friction)[:, None, None]
    around = np.cos(angle)[:, None] * frames[:, 1][:, None] + np.sin(angle)[:, None] * frames[:, 2][:, None]
    return (frames[:, 0][:, None] - mu * around) / np.sqrt(1.0 + mu * mu)


def curvature_need(
    spin_a: np.ndarray,
    spin_b: np.ndarray,
    arm_a: np.ndarray,
    arm_b: np.ndarray,
    approach: np.ndarray,
    normals: np.ndarray,
    turning: np.ndarray,
) -> np.ndarray:
    """K (m,) of J a >= K (equation 5.8): what velocities alone make of the second derivative of the gap.

    Args:
        spin_a, spin_b: angular velocities (m, 3). arm_a, arm_b: from the centres of mass to the contact points.
        approach: relative velocity of the contact points (m, 3). turning: derivative of the normals.
    """
    centripetal = np.cross(spin_a, np.cross(spin_a, arm_a)) - np.cross(spin_b, np.cross(spin_b, arm_b))
    return -2.0 * np.sum(approach * turning, axis=1) - np.sum(centripetal * normals, axis=1)

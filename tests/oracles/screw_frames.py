"""Tangent screws written in the screw's own frame, as the thesis has them (Redon 2002, section 2.2).

Nothing here shares code with the motion room's formulas or with the polynomials in s that the queries use.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tangere.published.redon_screws import TanScrew

__all__ = ["Screws", "unit"]


class Screws:
    """n random tangent screws given by axis point O, axis u, angle w and slide s."""

    def __init__(self, rng, count, *, angle=(0.01, 1.0), slide=1.0):
        self.angle = rng.uniform(*angle, size=count)
        self.axis = unit(rng.normal(size=(count, 3)))
        self.point = rng.normal(size=(count, 3))
        self.slide = slide * rng.normal(size=count)
        self.start = np.tile(np.eye(4), (count, 1, 1))
        self.start[:, :3, :3] = Rotation.from_rotvec(rng.normal(size=(count, 3))).as_matrix()
        self.start[:, :3, 3] = rng.normal(size=(count, 3))

    def moved(self, x, t):
        """Where world points x (n, k, 3) of t = 0 are at times t (n,)."""
        tau = np.tan(0.5 * self.angle * t)
        beta = self.slide * tau / np.tan(0.5 * self.angle)
        turned = rotate(x - self.point[:, None], self.axis, self.angle * t)
        return self.point[:, None] + turned + (beta[:, None] * self.axis)[:, None]

    @property
    def motion(self):
        end = self.start.copy()
        end[:, :3, :3] = Rotation.from_rotvec(self.axis * self.angle[:, None]).as_matrix() @ self.start[:, :3, :3]
        end[:, :3, 3] = self.moved(self.start[:, None, :3, 3], np.ones(len(end)))[:, 0]
        return TanScrew(self.start, end)

    def to_body(self, x):
        """World points of t = 0 in the body's frame."""
        return np.einsum("nji,nkj->nki", self.start[:, :3, :3], x - self.start[:, None, :3, 3])


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def rotate(x, axis, angle):
    """Rodrigues, for points (n, k, 3)."""
    axis, angle = axis[:, None], angle[:, None, None]
    along = (x * axis).sum(-1, keepdims=True) * axis
    return along + np.cos(angle) * (x - along) + np.sin(angle) * np.cross(axis, x)

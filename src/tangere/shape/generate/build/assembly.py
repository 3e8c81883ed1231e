"""A part, what stands round it, and two ways to move it: one that is free and one that touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.shape.mesh.mesh import Mesh

@dataclass(frozen=True, eq=False)
class PartInPlace:
    """A removal task. All poses place `part` in the frame of `fixed`; between two of them it moves by a screw.

    The two paths start at the same pose, where the part is mounted and touches nothing.
    """

    part: Mesh
    fixed: Mesh
    free_path: np.ndarray  #: (k, 4, 4) poses that take the part out without contact
    touching_path: np.ndarray  #: (m, 4, 4) poses that do not

    @property
    def start(self) -> np.ndarray:
        """(4, 4): where the part is mounted."""
        return self.free_path[0]


def pose(at: tuple[float, float, float] = (0.0, 0.0, 0.0), *, axis: int = 1, angle: float = 0.0) -> np.ndarray:
    """(4, 4): a turn by `angle` [rad] about a coordinate axis, then a shift [m]."""
    result = np.eye(4)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    result[[i, j], [i, j]] = np.cos(angle)
    result[i, j], result[j, i] = -np.sin(angle), np.sin(angle)
    result[:3, 3] = at
    return result


def steps(start: tuple[float, ...], end: tuple[float, ...], count: int, *, axis: int = 1) -> np.ndarray:
    """(count, 4, 4): equal steps from (x, y, z, angle) to another, the start left out [m, rad]."""
    share = np.arange(1, count + 1)[:, None] / count
    places = np.asarray(start) * (1.0 - share) + np.asarray(end) * share
    return np.stack([pose(tuple(place[:3]), axis=axis, angle=place[3]) for place in places])

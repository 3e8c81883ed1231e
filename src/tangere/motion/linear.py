"""Linear motion: every vertex goes along its own straight line at constant speed.

Known as: linear vertex trajectories, the motion of CCD for cloth and soft bodies (Provot 1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.motion.poses import as_times
from tangere.runtime import Arrays, InputError, to_numpy


@dataclass(frozen=True, eq=False)
class Linear:
    """Vertices go from where the shape has them (t = 0) to `end` (t = 1), independently of each other.

    Args:
        end: positions at t = 1, shape (n, 3) [m]; kept as it is, not copied.
    """

    end: Arrays

    def __post_init__(self) -> None:
        if not hasattr(self.end, "shape"):
            object.__setattr__(self, "end", to_numpy(self.end, "Linear: end positions"))
        shape = tuple(self.end.shape)
        if getattr(self.end, "dtype", None) in (wp.vec3d, wp.vec3f):
            shape = (*shape, 3)
        if len(shape) != 2 or shape[1] != 3:
            raise InputError(f"Linear: end positions must have shape (n, 3), not {shape}")

    def positions(self, start: Arrays, time: float) -> np.ndarray:
        """Where vertices that start at `start` are at `time` in [0, 1], shape (n, 3) [m]; exact at 0 and 1."""
        start, end = to_numpy(start, "start"), to_numpy(self.end, "end")
        if start.ndim != 2 or start.shape[1] != 3:
            raise InputError(f"Linear: start must have shape (n, 3), not {start.shape}")
        if len(start) != len(end):
            raise InputError(f"Linear: the shape has {len(start)} vertices, the motion ends with {len(end)}")
        when = as_times(time)
        if when.shape:
            raise InputError(f"Linear: time must be one number, not an array of shape {when.shape}")
        return start * (1.0 - when) + end * when

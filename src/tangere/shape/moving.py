"""A shape and how it moves within one step: what the continuous queries take, for every shape of the room."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.motion import Linear
from tangere.runtime import InputError, described

if TYPE_CHECKING:
    from tangere.shape.analytic.bodies import Analytic
    from tangere.shape.mesh.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Moving:
    """A shape together with its motion over t in [0, 1].

    Args:
        shape: a mesh, whose vertices are where the motion starts from, or analytic bodies.
        motion: how it moves, for instance `Linear`; analytic bodies move by rigid motions, `Twist` and the like.
    """

    shape: Mesh | Analytic
    motion: Any

    def __post_init__(self) -> None:
        if not hasattr(self.motion, "positions"):
            raise InputError(f"{self._name}: {described(self.motion)} is not a motion{_cure(self.motion)}")
        if isinstance(self.motion, Linear):
            if not hasattr(self.shape, "vertices"):
                raise InputError(f"{self._name}: analytic bodies move by rigid motions, not by Linear ones")
            count = len(self.shape.vertices)
            if len(self.motion.end) != count:
                raise InputError(f"{self._name}: has {count} vertices but the motion ends with {len(self.motion.end)}")

    @property
    def _name(self) -> str:
        return f"Mesh {self.shape.name!r}" if hasattr(self.shape, "vertices") else repr(self.shape)

    def __repr__(self) -> str:
        return f"Moving({self.shape!r}, {type(self.motion).__name__})"

    def __reduce__(self):
        return Moving, (self.shape, self.motion)

    def at(self, time: float) -> Any:
        """The shape where it is at `time` in [0, 1]: a mesh that shares the topology, or analytic bodies."""
        if not 0.0 <= time <= 1.0:
            raise InputError(f"{self._name}: a motion is defined for times in [0, 1], not {time}")
        if not hasattr(self.shape, "vertices"):
            return self.shape.at(self.motion.pose(time))
        return self.shape.replace(vertices=self.motion.positions(self.shape.vertices, time))

    @cached_property
    def start(self) -> np.ndarray:
        """Positions of a mesh at t = 0, shape (n, 3) [m]."""
        return self.at(0.0).vertices

    @cached_property
    def end(self) -> np.ndarray:
        """Positions of a mesh at t = 1, shape (n, 3) [m]."""
        return self.at(1.0).vertices


def _cure(given: Any) -> str:
    """What an array that was given for a motion is likely to mean."""
    shape = tuple(getattr(given, "shape", ()))
    if shape == (4, 4):
        return ": for a pose write mesh.at(pose), for a motion to it tg.Screw(start, pose)"
    if len(shape) == 3 and shape[1:] == (4, 4):
        return ": poses on a way go by tg.Path(poses), n motions by tg.Screw(starts, ends)"
    return ": positions at t = 1 go by tg.Linear(array)" if shape else ""

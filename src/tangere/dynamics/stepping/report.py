"""What a step had to hold back: told, never silent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class WorldTruncation:
    """What was held back, in the last step and since the start.

    Truth value: whether anything was truncated in the last step.
    """

    solved_again: int = 0  #: times the last step was solved again with what its motion hit
    bodies: tuple[int, ...] = ()  #: that went only a part of their motion in the last step
    lost_time: float = 0.0  #: of all bodies in the last step [s]
    residual: float = 0.0  #: how far the rows of the last step are from their laws [m/s]
    all_solved_again: int = 0  #: since the start
    all_bodies: int = 0  #: truncated since the start, each step anew
    all_lost_time: float = 0.0  #: since the start [s]
    overlapping: tuple[tuple[int, int], ...] = ()  #: pairs that overlapped at the start and are not compared
    parts: int = 1  #: that the last step was made in, because what it hit could not be solved for in one
    joint_error: float = 0.0  #: how far joints are off their places after the last step, and over their limits [m]
    worst_joint_error: float = 0.0  #: the same, of all steps since the start [m]
    stalled: tuple[str, ...] = ()  #: joints whose motors gave way in the last step, to what they contradicted

    def __bool__(self) -> bool:
        return bool(self.bodies)


@dataclass
class StepTally:
    """Counts while a step is made, and over all of them."""

    solved_again: int = 0
    residual: float = 0.0
    pairs: int = 0
    parts: int = 1
    held: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    lost_time: float = 0.0
    all_solved_again: int = 0
    all_bodies: int = 0
    all_lost_time: float = 0.0
    joint_error: float = 0.0
    worst_joint_error: float = 0.0
    stalled: tuple[str, ...] = ()

    def begin(self) -> None:
        """Another step."""
        self.solved_again, self.residual, self.lost_time, self.parts = 0, 0.0, 0.0, 0
        self.held = np.zeros(0, bool)

    def truncated(self, part: np.ndarray, dt: float) -> None:
        """How much of its motion each body went in a part of the step."""
        self.held = part < 1.0 if not len(self.held) else self.held | (part < 1.0)
        self.lost_time += dt * float((1.0 - part).sum())
        self.parts += 1

    def joints(self, error: float, stalled: tuple[str, ...]) -> None:
        """How far joints are off after a part of the step, and whose motors gave way in it or before."""
        self.joint_error, self.stalled = error, stalled

    def end(self) -> None:
        """The step is done: what it held back counts."""
        self.all_solved_again += self.solved_again
        self.all_bodies += int(self.held.sum())
        self.all_lost_time += self.lost_time
        self.worst_joint_error = max(self.worst_joint_error, self.joint_error)

    def report(self, overlapping: tuple[tuple[int, int], ...] = ()) -> WorldTruncation:
        """As users see it."""
        return WorldTruncation(
            self.solved_again,
            tuple(np.flatnonzero(self.held).tolist()),
            self.lost_time,
            self.residual,
            self.all_solved_again,
            self.all_bodies,
            self.all_lost_time,
            overlapping,
            self.parts,
            self.joint_error,
            self.worst_joint_error,
            self.stalled,
        )

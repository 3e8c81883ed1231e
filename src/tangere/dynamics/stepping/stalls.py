"""Motors and driven bodies give way to joints, limits and contacts: nothing comes apart because something drives it.

Question: which motors ask for what the rest of a world cannot do, and what do they do instead?
Method:   a step is solved with all motors at their speeds first. Where the solver leaves more than a part of the speeds
          there are, or joints cannot be closed where the motion ends, the motors of what is joined there contradict
          something. In this step they are as real ones: the more they fall short of their speed the harder they push,
          and what they have gone is no more than a wish when joints are closed. The step is solved again.
          Driven bodies that push or pull what is joined so that its joints cannot be closed, even in the smallest parts
          of a step, stand still in such a part, and are told as held back.
          Motors that contradict each other share what they want; one that pushes against a stop stands still there,
          and so does a linkage that is driven beyond where it reaches.
Known as: a stalled motor; the torque-speed line of a motor; a soft constraint in a hierarchy of rows (joints first).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.joints.rows import JointRows
from tangere.dynamics.saved_arrays import SavedArrays
from tangere.dynamics.solver import Solver, SolverReport
from tangere.dynamics.state import DRIVEN, BodyConstants
from tangere.dynamics.stepping.jams import Jams

#: Part of the speeds of an island that its solver may leave over before motors give way.
LEFT_OVER = 1e-2


class StalledMotors:
    """Finds motors that contradict something, and lets them give way.

    Args:
        solver: what solves for velocities.
        solved: bodies as it takes them.
    """

    def __init__(self, solver: Solver, rows: RowSet, joints: JointRows, solved: Any, table: BodyConstants) -> None:
        self._solver, self._rows, self._joints, self._solved = solver, rows, joints, solved
        self._radius, driven = table.radius.numpy(), table.held.numpy() & DRIVEN != 0
        self._saved = SavedArrays()
        self._driven = driven
        self.stopped = np.zeros(len(driven), bool)  #: (bodies,) driven ones that stand still in this part of a step

    def keep(self) -> None:
        """Keep what a solve begins with: sweeps that contradict each other leave impulses without bound."""
        joints, rows = self._joints, self._rows
        if joints.may_stall or (self._driven.any() and joints.joints):
            self._saved.save([("joints", joints.rows.impulse)], joints.count)
            self._saved.save([("contacts", rows.arrays.impulse)], rows.count)

    def unsolved(self, report: SolverReport | None) -> bool:
        """Whether motors give way because of what the solver left over."""
        joints = self._joints
        if report is None or not joints.may_stall or report.worst <= self._solver.good:
            return False
        island = self._solver.islands.arrays.number.numpy()[: len(self._radius)]
        known = (joints.group >= 0) & (island >= 0)
        left = np.zeros(joints.groups)
        np.maximum.at(left, joints.group[known], report.residual[island[known]])
        velocity = self._solved.velocity.numpy()
        spin = np.linalg.norm(velocity[:, 3:], axis=1) * self._radius
        speed, size = np.zeros(joints.groups), np.zeros(joints.groups)
        np.maximum.at(speed, joints.group[known], (np.linalg.norm(velocity[:, :3], axis=1) + spin)[known])
        np.maximum.at(size, joints.group[known], self._radius[known])
        speed = np.maximum(speed, joints.wished(size))
        return self._give_way(left > LEFT_OVER * speed + self._solver.good)

    def unclosed(self, strayed: np.ndarray, smallest: bool) -> bool:
        """Whether they do because joints cannot be closed, or because even the smallest part of a step strayed."""
        joints = self._joints
        return joints.may_stall and self._give_way(joints.open_groups | (strayed & smallest))

    def _give_way(self, groups: np.ndarray) -> bool:
        if not groups.any() or not self._joints.give_way(groups):
            return False
        self._restore()
        return True

    def _restore(self) -> None:
        self._saved.restore([("joints", self._joints.rows.impulse), ("contacts", self._rows.arrays.impulse)])

    def stop_drivers(self, free: wp.array, jams: Jams, smallest: bool) -> bool:
        """Whether driven bodies stand still from now on because joints cannot be closed that they push or pull.

        Args:
            free: velocities without contacts, of which theirs become 0.
            smallest: whether this is the smallest part of a step; else only those do that are jammed.
        """
        joints = self._joints
        bad = joints.open_groups
        moving = self._driven & ~self.stopped & free.numpy().any(axis=1)
        if not smallest:
            moving &= jams.jammed
        if not bad.any() or not moving.any():
            return False
        island = self._solver.islands.arrays.number.numpy()[: len(self._radius)]
        struck = np.append(bad, False)[joints.group]
        opened = np.isin(island, np.unique(island[struck & (island >= 0)]))
        pressed = self._rows.impulses().any(axis=1)
        a, b = np.concatenate([np.stack(self._rows.bodies(), axis=1)[pressed], joints.pairs]).T
        found = np.zeros(len(moving), bool)
        found[a[opened[b]]] = found[b[opened[a]]] = True
        found &= moving
        if not found.any():
            return False
        self.stopped |= found
        velocity = free.numpy()
        velocity[self.stopped] = 0.0
        free.assign(velocity)
        self._restore()
        return True

    def go_on(self, velocity: wp.array, before: wp.array) -> None:
        """After a part of a step: those that stood still want the velocity that they had."""
        if self.stopped.any():
            velocity.assign(np.where(self.stopped[:, None], before.numpy(), velocity.numpy()))
            self.stopped = np.zeros(len(self.stopped), bool)

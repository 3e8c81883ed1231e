"""Joints are closed where the motion of a step ends, before it is walked.

Question: which least change of a motion closes all joints where it ends, and keeps to their limits?
Method:   Newton's method: rows linearised at the end of the motion (`JointRows.place`), solved in the metric of kinetic
          energy, are added to it, and again. Where bodies are nearly taut, what is linear would turn them far, as that
          costs less than to move what is heavy, and goes astray: then only a part of that is gone, and the same is
          tried with more inertia against turning, since most joints are linear in translations. Contacts give up no
          more than a part of their play. Bodies that are not joined with each other do not wait for each other.
Known as: nonlinear projection on constraints; line search; Levenberg's and Marquardt's damping.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.inertia import stiffened
from tangere.dynamics.joints.rows import JointRows
from tangere.dynamics.rotations import nearest_branch, rotation_vector, turn
from tangere.dynamics.solver import RigidBodyArrays, Solver, vec6d
from tangere.dynamics.state import BodyConstants, angular_of, joined, linear_of
from tangere.dynamics.stepping.jams import Jams
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: Times that joints are closed in a step at most, and the parts of what was found that are tried.
CLOSINGS, PARTS = 24, (1.0, 0.3, 0.1)
#: Inertia against turning that is tried, in masses of the heaviest that a body is joined with times the square of its
#: size.
STIFF = (0.0, 1e-5, 1e-3, 0.1)
#: Sizes that a body is moved by in one go, at most.
MOST_CLOSED = wp.constant(wp.float64(0.5))


class JointClosing:
    """Closes joints; arrays and launches are kept.

    Args:
        solved: bodies as the solver takes them.
        motion: how bodies go in the step: what is changed.
        dt: (1,) [s].
    """

    def __init__(
        self,
        solver: Solver,
        table: BodyConstants,
        solved: Any,
        rows: RowSet,
        joints: JointRows,
        motion: wp.array,
        dt: wp.array,
        device: wp.Device,
    ) -> None:
        count = len(motion)
        self._solver, self._rows, self._joints, self._motion = solver, rows, joints, motion
        self._mass, self._radius, self._device = table.mass.numpy(), table.radius.numpy(), device
        self._bodies: Any = RigidBodyArrays()
        self._bodies.inverse_mass = solved.inverse_mass
        self._bodies.inverse_inertia = wp.zeros(count, dtype=wp.mat33d, device=device)
        self._bodies.velocity = wp.zeros(count, dtype=vec6d, device=device)
        self._known = wp.zeros(count, dtype=vec6d, device=device)  # the motion before the last change
        self._part = wp.zeros(count, dtype=wp.float64, device=device)
        self._much = wp.zeros(count, dtype=wp.float64, device=device)
        self._against = np.zeros(count)
        arguments = [solved.inverse_inertia, self._much, self._bodies.inverse_inertia]
        self._stiffen = PreparedLaunch(stiffen_rotations, arguments, device, dim=count, grain=512)
        self._add = PreparedLaunch(
            add_closing, [self._bodies.velocity, self._part, table, dt, motion], device, dim=count, grain=512
        )
        self.strayed = np.zeros(0, bool)  #: (groups,) whose motion had left joints far open
        self._version = -1

    def close(self) -> bool:
        """Change the motion; whether smaller steps are better: it had left joints far open, or they cannot be closed.

        What is open already where the step begins contradicts itself: smaller steps do not help."""
        joints = self._joints
        joints.place()
        self.strayed = joints.strayed
        strayed = bool(self.strayed.any())
        if not joints.misplaced:
            return strayed
        if self._version != joints.version:
            self._against = self._inertia()
            self._version = joints.version
        groups = joints.groups
        which, failed = np.zeros(groups, int), np.zeros(groups, int)
        for _ in range(CLOSINGS):
            self._rows.place(pushing=False)
            self._much.assign(self._of_bodies(np.array(STIFF)[which]) * self._against)
            self._stiffen.run()
            self._bodies.velocity.zero_()
            self._solver.solve(self._bodies, self._rows.placing, self._rows.count, joints.placing, joints.count)
            gone = self._go()
            ended = ~joints.open_groups | (failed >= len(STIFF))
            failed = np.where(gone == 0.0, failed + 1, 0)
            ended |= failed >= len(STIFF)
            if ended.all():
                break
            which = np.where(gone < 1.0, (which + 1) % len(STIFF), which)
        return strayed or (joints.open and not joints.open_before())

    def explained(self, jams: Jams) -> bool:
        """Whether smaller steps do not help, since all whose joints were left open are jammed."""
        bad = np.append(self._joints.open_groups | self.strayed, False)[self._joints.group]
        return bool(jams.jammed[bad].all())

    def _go(self) -> np.ndarray:
        """Go so much of what was found as makes the joints of each group better; 0 where nothing does."""
        joints, before = self._joints, self._joints.errors
        wp.copy(self._known, self._motion)
        gone = np.ones(len(before))
        for number, smaller in enumerate((*PARTS[1:], 0.0)):
            self._part.assign(self._of_bodies(gone))
            self._add.run()
            joints.place()
            worse = (joints.errors > (1.0 - 0.5 * gone) * before) & joints.open_groups & (gone == PARTS[number])
            if not worse.any():
                return gone
            gone[worse] = smaller
            wp.copy(self._motion, self._known)
        self._part.assign(self._of_bodies(gone))
        self._add.run()
        joints.place()
        return gone

    def _of_bodies(self, values: np.ndarray) -> np.ndarray:
        """What is of groups, of each body; 1 for those of none."""
        return np.append(values, 1.0)[self._joints.group]

    def _inertia(self) -> np.ndarray:
        """What inertia is much for each body: of the heaviest that it is joined with, at its own size."""
        group = self._joints.group
        heaviest = np.zeros(len(group))
        joined = group >= 0
        np.maximum.at(heaviest, group[joined], self._mass[joined])
        return np.where(joined, heaviest[group], 0.0) * self._radius**2


@wp.kernel
def stiffen_rotations(
    first: int,
    inverse_inertia: wp.array[wp.mat33d],
    much: wp.array[wp.float64],
    result: wp.array[wp.mat33d],
):
    """Inertia for closing joints: with so much more of it, rather bodies are moved than turned, which is linear."""
    i = first + wp.tid()
    inverse = inverse_inertia[i]
    more = much[i]
    if more > wp.float64(0.0):
        inverse = stiffened(inverse, more * wp.identity(n=3, dtype=wp.float64))
    result[i] = inverse


@wp.kernel
def add_closing(
    first: int,
    placed: wp.array[vec6d],
    part: wp.array[wp.float64],
    constants: BodyConstants,
    dt: wp.array[wp.float64],
    motion: wp.array[vec6d],
):
    """Go what closes joints, after the motion: rotations one after the other."""
    i = first + wp.tid()
    more = part[i] * dt[0] * placed[i]
    held = constants.held[i]
    for k in range(6):
        if (held >> k) & 1 == 1:
            more[k] = wp.float64(0.0)
    way = wp.length(linear_of(more)) + wp.length(angular_of(more)) * constants.radius[i]
    if way > MOST_CLOSED * constants.radius[i]:
        more = more * (MOST_CLOSED * constants.radius[i] / way)
    if way == wp.float64(0.0):
        return
    before = angular_of(motion[i])
    angle = before + angular_of(more)
    if (held >> 3) & 7 == 0:
        angle = nearest_branch(rotation_vector(turn(angular_of(more)) * turn(before)), angle)
    motion[i] = joined(linear_of(motion[i]) + linear_of(more), angle)

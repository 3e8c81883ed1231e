"""Joints as rows: each direction that a joint does not leave free is an equation on velocities.

Question: what do joints, limits, motors, held axes and pulls ask of the velocities?
Method:   one row a direction. Points that must stay together have the second-order term of their arms, so that a
          pendulum neither gains nor loses by the length of the step. What they are off by where the motion ends is
          moved back by rows linearised there (`place`), again until they are closed, which changes no velocities. A
          limit is an inequality with the gap to it, one for each end; a motor an equation whose impulse is bounded,
          with compliance where it has to give way; a pull an equation with compliance, an implicit spring with critical
          damping.
          Tension swings light bodies to and fro faster than a step can follow: these get more inertia against impulses.
Known as: bilateral constraints (Redon 2002, section 5.2.3); constraint force mixing (Smith 2004) for springs; nonlinear
          projection by Newton's method; geometric stiffness (Tournier et al. 2015; Andrews et al. 2017); mass scaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tangere.dynamics.body import Body
from tangere.dynamics.joint import WITH_COORDINATE, WorldJoint
from tangere.dynamics.joints.kernels import (
    ALIGN,
    ANGLE,
    DISTANCE,
    HELD,
    LIMIT,
    MOTOR,
    POINT,
    PULL,
    WAY,
    JointsOfBodies,
    JointTable,
    make_joint_rows,
    measure_joints,
    place_joint_rows,
    slow_light_bodies,
)
from tangere.dynamics.saved_arrays import SavedArrays
from tangere.dynamics.solver import JointRowArrays, reserve
from tangere.dynamics.state import BodyConstants, RigidState
from tangere.runtime import PreparedLaunch, launch

#: Errors of joints below this part of the size of the bodies are not worth a solve, nor, after one, another.
LEAST_ERROR, CLOSED = 1e-8, 1e-6
#: Parts of the size by which a motion may leave joints open before it is made in smaller steps.
STRAYED = 0.02
#: Parts of the size by which joints may be open where only a part of a motion is gone.
HELD_OPEN = 1e-4
#: Of the speed that a motor which gives way wants: it misses so much where it brings all that it moves to it in a step.
GIVES = 0.1


class JointRows:
    """The rows of all joints, held axes and pulls of a world.

    Args:
        free: velocities without contacts.
        motion, part: how bodies go in the step, and how much of it.
        solved: bodies as the solver takes them.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        table: BodyConstants,
        state: RigidState,
        free: wp.array,
        motion: wp.array,
        part: wp.array,
        solved: Any,
        dt: wp.array,
        device: wp.Device,
    ) -> None:
        self._table, self._state, self._free, self._dt, self._device = table, state, free, dt, device
        self._motion, self._part, self._solved = motion, part, solved
        self._moves, self._fixed = np.array([(body.moves, body.fixed) for body in bodies]).T
        self._centres = table.centre.numpy()
        self._held = [
            (number, axis)
            for number, body in enumerate(bodies)
            if body.moves and not body.held[:3].all()
            for axis in range(3)
            if body.held[axis]
        ]
        self._size = float(np.median([body.mesh.extent for body in bodies if body.ground is None] or [1.0]))
        self.joints: list[WorldJoint] = []
        self._motors: dict[int, tuple[float, float, bool]] = {}  #: by joint: speed, force, whether always
        self._stalled = np.zeros(0, bool)  #: (joints,) whose motors give way
        self.work = np.zeros(0)  #: (joints,) what their motors have done [J]
        self._pulls: dict[int, tuple[np.ndarray, np.ndarray, float]] = {}  #: by body: point, to, stiffness
        self.rows: Any = JointRowArrays()
        self.placing: Any = JointRowArrays()
        self.count, self.error, self.errors = 0, 0.0, np.zeros(0)
        self.version = 0  #: another one when arrays are
        self._saved = SavedArrays()
        self._lay_out()

    # -- what there is -------------------------------------------------------------------------------------------------

    def add(self, joint: WorldJoint) -> None:
        """One more."""
        self.joints.append(joint)
        self._lay_out()

    def extend(
        self, joints: Sequence[WorldJoint], motors: dict[int, tuple[float, float, bool]], coordinates: np.ndarray
    ) -> None:
        """Many more, where there are none, with what drives some of them, by their numbers, and their coordinates."""
        self.joints += joints
        self._motors |= motors
        self._lay_out()
        if len(coordinates):
            self._angle.assign(coordinates)

    @property
    def motors(self) -> dict[int, tuple[float, float, bool]]:
        """What drives joints, by their numbers: speed, force, whether the force always acts."""
        return dict(self._motors)

    def drive(self, number: int, motor: tuple[float, float, bool] | None) -> None:
        """Set or take away what drives a joint."""
        self._motors.pop(number, None)
        if motor is not None:
            self._motors[number] = motor
        self._lay_out()

    def pull(self, body: int, point: np.ndarray, to: np.ndarray, stiffness: float) -> None:
        """Pull a point of a body, in its mesh's frame, to a place in the world."""
        self._pulls[body] = (point, to, stiffness)
        self._lay_out()

    def motor(self, number: int) -> tuple[float | None, float | None]:
        """Speed and force that drive a joint; None for what it has not."""
        if number not in self._motors:
            return None, None
        speed, force, always = self._motors[number]
        return None if always else speed, force if np.isfinite(force) else None

    def set_coordinate(self, number: int, value: float) -> None:
        """A joint is at a coordinate that is not 0 where it is now."""
        values = self._angle.numpy().copy()
        values[number] = value
        self._angle.assign(values)

    def release(self, body: int | None = None) -> None:
        """Pull a body no more; None means none."""
        self._pulls = {} if body is None else {k: v for k, v in self._pulls.items() if k != body}
        self._lay_out()

    def _lay_out(self) -> None:
        """Rows for everything there is, in a fixed order; impulses of what was there stay."""
        self.version += 1
        self._laid_out = False  # until all is there
        before = dict(zip(self._labels, self.rows.impulse.numpy(), strict=False)) if self.count else {}
        specs: list[tuple[int, int, int]] = [(HELD, body, axis) for body, axis in self._held]  # type, of what, axis
        for number, joint in enumerate(self.joints):
            specs += _rows_of(joint, number)
            if joint.kind in WITH_COORDINATE and np.isfinite(joint.limits).any():
                specs += [(LIMIT, number, end) for end in (0, 1) if np.isfinite(joint.limits[end])]
            if number in self._motors:
                specs.append((MOTOR, number, 0))
        pulled = list(self._pulls)
        specs += [(PULL, k, axis) for k in range(len(pulled)) for axis in range(3)]
        self._labels = specs
        count, device = len(specs), self._device
        reserve(self.rows, max(count, 1), device)
        reserve(self.placing, max(count, 1), device)
        self.count = count
        start = np.array([before.get(label, 0.0) for label in specs])
        if count:
            wp.copy(self.rows.impulse, wp.array(start, dtype=wp.float64, device=device), count=count)
        self._data = self._table_of(specs, pulled)
        self._motor_rows = np.array([row for row, (kind, _, _) in enumerate(specs) if kind == MOTOR], int)
        self._driven = np.array([specs[row][1] for row in self._motor_rows], int)
        ends = [(self.joints[number].body_a, self.joints[number].body_b) for number in self._driven]
        self._ends_driven = np.array(ends, int).reshape(-1, 2)
        self.work = np.append(self.work, np.zeros(len(self.joints) - len(self.work)))
        works = np.array([kind in (MOTOR, PULL) for kind, _, _ in specs] or [False], np.int32)
        self.driving = wp.array(works, dtype=wp.int32, device=device)  #: rows that may do work
        size = max(count, 1)
        old = getattr(self, "_angle", None)
        self._angle = wp.zeros(max(len(self.joints), 1), dtype=wp.float64, device=device)  # coordinates
        if old is not None:
            wp.copy(self._angle, old, count=min(len(old), len(self._angle)))
        self._error = wp.zeros(size, dtype=wp.float64, device=device)
        arguments = [self._data, self._table, self._state]
        self._make = PreparedLaunch(
            make_joint_rows, [*arguments, self._free, self._angle, self._dt, self.rows], device, grain=256
        )
        at_end = [*arguments, self._angle, self.rows, self._motion]
        self._place, self._look = (
            PreparedLaunch(place_joint_rows, [*at_end, part, self._dt, self.placing, self._error], device, grain=256)
            for part in (1.0, 0.0)
        )
        at_end = [self._motion, self._part, self._angle]
        self._measure = PreparedLaunch(measure_joints, [self._data, self._state, *at_end], device, grain=256)
        bodies = self._solved.inverse_mass, self._solved.inverse_inertia
        sides = self._sides_of_bodies(specs)
        self._slow = PreparedLaunch(
            slow_light_bodies, [sides, self._state, self.rows, self._dt, *bodies], device, grain=256
        )
        self.group, self.groups = self._groups()  #: (bodies,) which are joined with each other, -1: none; how many
        self._group_of_row = self._group_of_rows(specs, pulled)
        self.may_stall = any(not always for _, _, always in self._motors.values())  #: whether motors want a speed
        self._lightness = self._lightness_of_groups()
        self._laid_out = True

    def _sides_of_bodies(self, specs: list[tuple[int, int, int]]) -> Any:
        """Where rows of joints pull at bodies."""
        joints, device = self.joints, self._device
        first: dict[int, int] = {}
        pulling: dict[int, int] = {}
        for row, (kind, number, _) in enumerate(specs):
            if kind in (POINT, WAY, DISTANCE):
                first.setdefault(number, row)
                pulling[number] = pulling.get(number, 0) + 1
        found: list[list[tuple[np.ndarray, int, int, float]]] = [[] for _ in self._moves]
        for number, row in first.items():
            joint = joints[number]
            length = joint.length if joint.kind == "distance" else 0.0
            for body, anchor in ((joint.body_a, joint.anchor_a), (joint.body_b, joint.anchor_b)):
                if body >= 0 and self._moves[body]:
                    found[body].append((anchor - self._centres[body], row, pulling[number], length))
        flat = [side for sides in found for side in sides]
        sides: Any = JointsOfBodies()
        starts = np.concatenate([[0], np.cumsum([len(each) for each in found])]).astype(np.int32)
        sides.first = wp.array(starts, dtype=wp.int32, device=device)
        anchors = np.array([side[0] for side in flat], float).reshape(-1, 3) if flat else np.zeros((1, 3))
        sides.anchor = wp.array(anchors, dtype=wp.vec3d, device=device)
        for k, name in ((1, "row"), (2, "rows")):
            column = _filled(np.array([side[k] for side in flat], np.int32))
            setattr(sides, name, wp.array(column, dtype=wp.int32, device=device))
        lengths = np.array([side[3] for side in flat] or [0.0])
        sides.length = wp.array(lengths, dtype=wp.float64, device=device)
        return sides

    def _groups(self) -> tuple[np.ndarray, int]:
        """Which bodies that move are joined with each other, or with what does not; and how many groups there are."""
        count, group = len(self._moves), np.full(len(self._moves), -1)
        pairs = np.array([(j.body_a, j.body_b) for j in self.joints], int).reshape(-1, 2)
        joined = np.unique(pairs[pairs >= 0])
        joined = joined[self._moves[joined]]
        pairs = pairs[(pairs >= 0).all(axis=1)]
        pairs = pairs[self._moves[pairs].all(axis=1)]
        if not len(joined):
            return group, 0
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
        number = connected_components(links, directed=False)[1]
        found, group[joined] = np.unique(number[joined], return_inverse=True)
        return group, len(found)

    def _group_of_rows(self, specs: list[tuple[int, int, int]], pulled: list[int]) -> np.ndarray:
        """The group that each row is of; one behind the last for those of none."""
        found = []
        for kind, item, _ in specs:
            if kind == HELD:
                group = self.group[item]
            elif kind == PULL:
                group = self.group[pulled[item]]
            else:
                group = self._group_of(item)
            found.append(group if group >= 0 else self.groups)
        return np.array(found, int)

    def _group_of(self, number: int) -> int:
        """The group of the bodies of a joint."""
        joint = self.joints[number]
        group = int(self.group[joint.body_a])
        return int(self.group[joint.body_b]) if group < 0 and joint.body_b >= 0 else group

    def _lightness_of_groups(self) -> np.ndarray:
        """(joints,) one over the mass, or the inertia, that the motor of a joint moves at most."""
        mass, length = np.zeros(self.groups), np.zeros(self.groups)
        joined = self.group >= 0
        np.add.at(mass, self.group[joined], self._table.mass.numpy()[joined])
        np.add.at(length, self.group[joined], 2.0 * self._table.radius.numpy()[joined])
        group = np.array([self._group_of(k) for k in range(len(self.joints))], int)
        slides = np.array([joint.kind == "slider" for joint in self.joints], bool)
        return 1.0 / (mass[group] * np.where(slides, 1.0, length[group] ** 2))

    def _table_of(self, specs: list[tuple[int, int, int]], pulled: list[int]) -> Any:
        device, joints = self._device, self.joints
        data: Any = JointTable()
        columns = np.array(specs, np.int32).reshape(-1, 3)
        for k, name in enumerate(("type", "item", "axis")):
            setattr(data, name, wp.array(_filled(columns[:, k]), dtype=wp.int32, device=device))
        data.body_a = wp.array(_filled([j.body_a for j in joints]).astype(np.int32), dtype=wp.int32, device=device)
        data.body_b = wp.array(_filled([j.body_b for j in joints]).astype(np.int32), dtype=wp.int32, device=device)

        def vectors(rows: list[np.ndarray]) -> wp.array:
            return wp.array(
                np.array(rows, float).reshape(-1, 3) if rows else np.zeros((1, 3)), dtype=wp.vec3d, device=device
            )

        def numbers(rows: list[float]) -> wp.array:
            return wp.array(np.array(rows, float) if rows else np.zeros(1), dtype=wp.float64, device=device)

        data.anchor_a = vectors([j.anchor_a - self._centres[j.body_a] for j in joints])
        data.anchor_b = vectors([j.anchor_b - (self._centres[j.body_b] if j.body_b >= 0 else 0.0) for j in joints])
        data.axis_a, data.axis_b = vectors([j.axis_a for j in joints]), vectors([j.axis_b for j in joints])
        relative = np.array([j.relative for j in joints]) if joints else np.zeros((1, 3, 3))
        data.relative = wp.array(relative, dtype=wp.mat33d, device=device)
        data.length = numbers([j.length for j in joints])
        data.slides = wp.array(
            _filled([j.kind == "slider" for j in joints]).astype(np.int32), dtype=wp.int32, device=device
        )
        data.lower, data.upper = (numbers([j.limits[k] for j in joints]) for k in (0, 1))
        motors = [self._motors.get(k, (0.0, 0.0, False)) for k in range(len(joints))]
        data.speed = numbers([0.0 if always else speed for speed, _, always in motors])
        data.least_force = numbers([force if always else -force for _, force, always in motors])
        data.most_force = numbers([force for _, force, _ in motors])
        self._stalled = np.zeros(len(joints), bool)
        data.give = numbers([0.0] * len(joints))
        data.pull_body = wp.array(_filled(pulled).astype(np.int32), dtype=wp.int32, device=device)
        pulls = [self._pulls[body] for body in pulled]
        data.pull_point = vectors(
            [point - self._centres[body] for body, (point, _, _) in zip(pulled, pulls, strict=True)]
        )
        data.pull_to = vectors([to for _, to, _ in pulls])
        data.pull_stiffness = numbers([stiffness for _, _, stiffness in pulls])
        return data

    # -- in a step -----------------------------------------------------------------------------------------------------

    def gather(self) -> None:
        """The rows where the bodies are now; light bodies under tension get the inertia that the step needs."""
        self._make(self.count)
        if self.joints:
            self._slow(len(self._moves))

    def hold(self) -> None:
        """No motor gives way."""
        if self._stalled.any():
            self._stalled[:] = False
            self._data.give.zero_()

    def give_way(self, groups: np.ndarray) -> bool:
        """Motors of these groups give way from now on; whether any does that did not before."""
        wishing = [k for k, (_, _, always) in self._motors.items() if not always]
        new = [k for k in wishing if groups[self._group_of(k)] and not self._stalled[k]]
        if not new:
            return False
        self._stalled[new] = True
        self._data.give.assign(np.where(self._stalled, GIVES * self._lightness, 0.0))
        self._make(self.count)
        return True

    @property
    def stalled(self) -> tuple[str, ...]:
        """Names of the joints whose motors give way."""
        return tuple(self.joints[k].name for k in np.flatnonzero(self._stalled))

    def wished(self, size: np.ndarray) -> np.ndarray:
        """(groups,) the fastest that motors want, at half the sizes of what is joined [m/s]."""
        found = np.zeros(self.groups)
        for number, (speed, _, always) in self._motors.items():
            group = self._group_of(number)
            if not always:
                lever = 1.0 if self.joints[number].kind == "slider" else size[group]
                found[group] = max(found[group], abs(speed) * lever)
        return found

    def place(self) -> None:
        """The rows that move back what is wrong after the motion; `error` is by how much it is so [m], and `errors` in
        each group of bodies that are joined."""
        self.error, self.errors = 0.0, np.zeros(self.groups)
        if self.count:
            self._place(self.count)
            found = np.zeros(self.groups + 1)
            np.maximum.at(found, self._group_of_row, self._error.numpy()[: self.count])
            self.error, self.errors = float(found.max()), found[:-1]

    def _held_open(self, part: np.ndarray, opened: bool) -> np.ndarray:
        """(bodies,) Whose joints would be open, and more so than now, where bodies go these parts of their motions."""
        going = part[self.group >= 0]
        if not opened and not ((going > 0.0) & (going < 1.0)).any():
            return np.zeros(len(part), bool)
        motion, errors = self._motion.numpy().copy(), []
        for gone in (0.0 * part, part):
            self._motion.assign(gone[:, None] * motion)
            self.place()
            errors.append(self.errors)
        self._motion.assign(motion)
        return np.append((errors[1] > HELD_OPEN * self._size) & (errors[1] > errors[0]), False)[self.group]

    @property
    def misplaced(self) -> bool:
        """Whether joints are off by so much that it is worth a solve."""
        return self.error > LEAST_ERROR * self._size

    @property
    def open_groups(self) -> np.ndarray:
        """(groups,) Whose are."""
        return self.errors > CLOSED * self._size

    @property
    def open(self) -> bool:
        """Whether they are off by so much that, after a solve, it is worth another."""
        return self.error > CLOSED * self._size

    def open_before(self) -> bool:
        """Whether they are so where the step begins."""
        self._look(self.count)
        return float(self._error.numpy()[: self.count].max()) > 10.0 * CLOSED * self._size

    @property
    def strayed(self) -> np.ndarray:
        """(groups,) Whose motion leaves them so far off that it is to be made in smaller steps."""
        return self.errors > STRAYED * self._size

    @property
    def pairs(self) -> np.ndarray:
        """(n, 2) Bodies that joints hold together, none of them fixed."""
        pairs = np.array([(joint.body_a, joint.body_b) for joint in self.joints], int).reshape(-1, 2)
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return pairs[~self._fixed[pairs].any(axis=1)]

    def together(self, part: np.ndarray, opened: bool = False) -> np.ndarray:
        """Parts of their motions that bodies go, where those that are joined with each other go equal ones, and none
        where their joints would be open then.

        Args:
            opened: whether these may be so where all of a motion is gone.
        """
        if not (self.group >= 0).any():
            return part
        part = self._equal(part)
        part[self._held_open(part, opened)] = 0.0
        return self._equal(part)

    def _equal(self, part: np.ndarray) -> np.ndarray:
        joined = self.group >= 0
        part, before = part.copy(), np.zeros(len(part))
        while (part != before).any():  # driven bodies are of no group, and may hold several
            before = part.copy()
            least = np.ones(self.groups)
            np.minimum.at(least, self.group[joined], part[joined])
            part[joined] = least[self.group[joined]]
            for a, b in self.pairs.tolist():
                part[a] = part[b] = min(part[a], part[b])
        return part

    def measure(self) -> None:
        """Coordinates where the bodies are now, of all that differ by turns those nearest to what they were."""
        if self.joints:
            still = wp.zeros(len(self._moves), dtype=wp.float64, device=self._device)
            inputs = [self._data, self._state, self._motion, still]
            launch(measure_joints, len(self.joints), inputs, [self._angle], device=self._device)

    def keep(self) -> float:
        """After a step: the coordinates where the bodies are now; how far joints are off there [m]."""
        self._measure(len(self.joints))
        if not self.count:
            return 0.0
        self._look(self.count)
        return float(self._error.numpy()[: self.count].max())

    def count_work(self, before: wp.array, after: wp.array, length: float, order: int) -> None:
        """After a step: add what motors did, by their impulses along the mean of the rates of their joints.

        Args:
            before, after: velocities of all bodies where the step began, and at its end.
            length: of the step [s], in all of which the latter hold where there is no inertia (order 1).
        """
        chosen = self._motor_rows
        if not len(chosen):
            return
        rate, first, last = np.zeros(len(chosen)), before.numpy(), after.numpy()
        velocity = 0.5 * (first + last) if order == 2 else length * last
        for jacobian, body in zip((self.rows.jacobian_a, self.rows.jacobian_b), self._ends_driven.T, strict=True):
            there = body >= 0
            rate[there] += np.einsum("ni,ni->n", jacobian.numpy()[chosen[there]], velocity[body[there]])
        self.work = self.work.copy()  # whoever kept it keeps it
        np.add.at(self.work, self._driven, rate * self.rows.impulse.numpy()[chosen])

    def scale(self, ratio: float) -> None:
        """Warm starts for a step that is so many times as long."""
        wp.copy(self.rows.impulse, wp.array(ratio * self.rows.impulse.numpy(), dtype=wp.float64, device=self._device))

    def save(self) -> None:
        """Keep what a step overwrites."""
        if not self._laid_out:  # whoever changed it last was interrupted
            self._lay_out()
        self._saved.save([("impulse", self.rows.impulse)], self.count)
        self._saved.save([("coordinate", self._angle)], len(self.joints))
        self._saved_work = self.work

    def restore(self) -> None:
        """As it was kept."""
        self._saved.restore([("impulse", self.rows.impulse), ("coordinate", self._angle)])
        self.work = self._saved_work

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What moves joints and pulls bodies, and what the next step begins with, by name."""
        pulls, motors = list(self._pulls.values()), list(self._motors.values())
        return {
            "impulse": self.rows.impulse.numpy()[: self.count].copy(),
            "coordinate": self.coordinates(),
            "motor": np.array(list(self._motors), np.int64),
            "motor_values": np.array(motors, float).reshape(-1, 3),
            "pulled": np.array(list(self._pulls), np.int64),
            "pull_values": np.array([[*point, *to, by] for point, to, by in pulls], float).reshape(-1, 7),
        }

    def resume(self, kept: dict[str, np.ndarray]) -> None:
        """Go on with the same joints as a checkpoint has it."""
        motors = zip(kept["motor"].tolist(), kept["motor_values"].tolist(), strict=True)
        pulls = zip(kept["pulled"].tolist(), kept["pull_values"], strict=True)
        self._motors = {joint: (speed, force, bool(always)) for joint, (speed, force, always) in motors}
        self._pulls = {body: (row[:3].copy(), row[3:6].copy(), float(row[6])) for body, row in pulls}
        self._lay_out()
        for column, values in ((self.rows.impulse, kept["impulse"]), (self._angle, kept["coordinate"])):
            if len(values):
                wp.copy(column, wp.array(values, dtype=wp.float64, device=self._device), count=len(values))

    # -- looking -------------------------------------------------------------------------------------------------------

    def coordinates(self) -> np.ndarray:
        """(joints,) angles and ways [rad or m], any number of turns; 0 for joints that have none."""
        return self._angle.numpy()[: len(self.joints)].copy()

    def driven_bodies(self) -> np.ndarray:
        """Numbers of bodies that motors or pulls move."""
        moved = [body for number in self._motors for body in (self.joints[number].body_a, self.joints[number].body_b)]
        return np.array([body for body in [*moved, *self._pulls] if body >= 0], int)

    def impulses(self) -> dict[int, np.ndarray]:
        """Of each joint, of its rows in their order [N s or N m s]."""
        values = self.rows.impulse.numpy()[: self.count]
        found: dict[int, list[float]] = {number: [] for number in range(len(self.joints))}
        for (kind, item, _), value in zip(self._labels, values, strict=True):
            if kind not in (HELD, PULL):
                found[item].append(float(value))
        return {number: np.array(rows) for number, rows in found.items()}


def _rows_of(joint: WorldJoint, number: int) -> list[tuple[int, int, int]]:
    if joint.kind == "distance":
        return [(DISTANCE, number, 0)]
    if joint.kind == "slider":
        return [(WAY, number, k) for k in (1, 2)] + [(ANGLE, number, k) for k in range(3)]
    rows = [(POINT, number, k) for k in range(3)]
    if joint.kind == "hinge":
        rows += [(ALIGN, number, k) for k in (1, 2)]
    if joint.kind == "weld":
        rows += [(ANGLE, number, k) for k in range(3)]
    return rows


def _filled(values: Any) -> np.ndarray:
    array = np.asarray(values)
    return array if len(array) else np.zeros(1, np.int32)

"""A device that is not there: a handle with a mass, a hand that pulls it along a path, and a force that comes late.

Question: where is the handle of a device when somebody moves it along a path and the loop pushes back?
Method:   the handle is a mass with the device's friction; the hand is a spring and a damper to where it wants to be.
          Both are integrated in steps of a tenth of a millisecond by one kernel. A force acts a delay after it was
          written, and until the next one does.
Known as: the impedance model of the human arm in the analysis of haptic stability (Colgate and Brown 1994; Hogan 1989);
          zero-order hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.solver import vec6d
from tangere.hand.coupling.frames import angular, linear, orthonormal, rotation_of, six, vector_of
from tangere.hand.devices.device import ALL_AXES, DeviceState, checked_axes
from tangere.motion import Path, as_poses
from tangere.runtime import SOUND, Arrays, InputError, NonCopyable, PreparedLaunch, not_negative, positive, to_numpy

wp.set_module_options(SOUND)

#: Steps of the integration in a second.
STEPS_PER_SECOND = 10_000
#: How late a force may act [s].
MOST_DELAY = 10.0
_STANDING = np.eye(4)


@wp.struct
class HandleSettings:
    """What a handle and a hand are."""

    step: wp.float64  # [s]
    mass: vec6d  # [kg], [kg m^2]
    friction: vec6d  # of the device [N s/m], [N m s/rad]
    stiffness: vec6d  # of the hand [N/m], [N m/rad]
    damping: vec6d  # of the hand
    measured: vec6d  # 1 for axes along which the handle can move
    forced: vec6d  # 1 for axes on which it can be pushed


@wp.struct
class HandleState:
    """Where the handle is."""

    position: wp.vec3d
    rotation: wp.mat33d
    velocity: vec6d
    given: wp.float64  # work of the forces on the handle [J]
    steps: wp.int32  # made so far
    acted: wp.int32  # forces that have begun to act


@wp.kernel
def integrate(
    first: int,
    settings: HandleSettings,
    states: wp.array[HandleState],
    count: wp.array[wp.int32],
    wanted_position: wp.array[wp.vec3d],
    wanted_rotation: wp.array[wp.mat33d],
    written: wp.array[wp.int32],
    begins: wp.array[wp.int32],
    forces: wp.array[vec6d],
):
    """So many steps.

    Args:
        count: how many.
        wanted_position, wanted_rotation: (2,) of the hand, at the first step and behind the last.
        written: how many forces were written so far.
        begins: the step from which on each acts; forces stand in a ring, one after the other.
    """
    s = states[0]
    begin = vector_of(wanted_rotation[1] * wp.transpose(wanted_rotation[0]))
    for k in range(count[0]):
        while s.acted < written[0] and begins[s.acted % begins.shape[0]] <= s.steps:
            s.acted += 1
        force = vec6d()
        if s.acted > 0:
            force = forces[(s.acted - 1) % forces.shape[0]]
        part = wp.float64(k) / wp.float64(count[0])
        wanted = wanted_position[0] + part * (wanted_position[1] - wanted_position[0])
        turned = rotation_of(part * begin) * wanted_rotation[0]
        error = six(wanted - s.position, vector_of(turned * wp.transpose(s.rotation)))
        for a in range(6):
            push = settings.forced[a] * force[a]
            pull = settings.stiffness[a] * error[a] - (settings.damping[a] + settings.friction[a]) * s.velocity[a]
            speed = settings.measured[a] * (s.velocity[a] + settings.step * (push + pull) / settings.mass[a])
            s.velocity[a] = speed
            s.given += settings.step * push * speed
        s.position = s.position + settings.step * linear(s.velocity)
        s.rotation = orthonormal(rotation_of(settings.step * angular(s.velocity)) * s.rotation)
        s.steps += 1
    states[0] = s


class SimulatedDevice(NonCopyable):
    """A handle that a simulated hand moves along a path; the same every time.

    Args:
        path: where the hand wants the handle: a function of time [s] with poses (4, 4), a `Path`, or one pose.
        start: (4, 4) where the handle is at first; None means where the hand wants it then.
        mass: of the handle [kg].
        inertia: of the handle, about each axis [kg m^2].
        friction: of the device [N s/m]; turns have a two-hundredth of it [N m s/rad].
        hand_stiffness: of the hand [N/m]; turns have a five-hundredth of it [N m/rad].
        hand_damping: of the hand [N s/m]; turns have a five-hundredth of it [N m s/rad].
        delay: how long a force takes until it acts [s], at most 10.
        measured_axes: along which the handle can move, x y z and the turns about them.
        forced_axes: on which it can be pushed.
        buttons: a function of time with one bit for each button that is held; None means none.

    Example:
        >>> import numpy as np
        >>> from tangere.hand import SimulatedDevice
        >>> def along_x(time):
        ...     pose = np.eye(4)
        ...     pose[0, 3] = 0.1 * time
        ...     return pose
        >>> device = SimulatedDevice(along_x)
        >>> for tick in range(501):
        ...     state = device.read(0.001 * tick)
        >>> print(f"{1e3 * state.pose[0, 3]:.1f} mm, {1e3 * state.velocity[0]:.0f} mm/s")
        48.9 mm, 99 mm/s
    """

    def __init__(
        self,
        path: Callable[[float], np.ndarray] | Path | Arrays,
        *,
        start: Arrays | None = None,
        mass: float = 0.25,
        inertia: float = 4e-4,
        friction: float = 0.2,
        hand_stiffness: float = 400.0,
        hand_damping: float = 4.0,
        delay: float = 1e-3,
        measured_axes: tuple[bool, ...] = ALL_AXES,
        forced_axes: tuple[bool, ...] = ALL_AXES,
        buttons: Callable[[float], int] | None = None,
    ) -> None:
        self._wanted = _function_of(path)
        self._buttons = buttons
        self.measured_axes, self.forced_axes = checked_axes(measured_axes), checked_axes(forced_axes)
        settings: Any = HandleSettings()
        settings.step = 1.0 / STEPS_PER_SECOND
        spring, damper = not_negative(hand_stiffness, "hand_stiffness"), not_negative(hand_damping, "hand_damping")
        drag = not_negative(friction, "friction")
        settings.mass = _six(positive(mass, "mass"), positive(inertia, "inertia"))
        settings.friction = _six(drag, drag / 200.0)
        settings.stiffness, settings.damping = _six(spring, spring / 500.0), _six(damper, damper / 500.0)
        settings.measured, settings.forced = vec6d(*self.measured_axes), vec6d(*self.forced_axes)
        if not_negative(delay, "delay") > MOST_DELAY:
            raise InputError(f"delay must be at most {MOST_DELAY:g} s, not {delay:g}")
        self._delay = round(delay * STEPS_PER_SECOND)
        cpu = wp.get_device("cpu")
        self._states = wp.zeros(1, dtype=HandleState, device=cpu)
        self._count = wp.zeros(1, dtype=wp.int32, device=cpu)
        self._positions = wp.zeros(2, dtype=wp.vec3d, device=cpu)
        self._rotations = wp.zeros(2, dtype=wp.mat33d, device=cpu)
        # One force for each step that is still to come, and the one that acts.
        ring = self._delay + 2
        written, begins, forces = (wp.zeros(n, dtype=kind, device=cpu) for n, kind in (
            (1, wp.int32), (ring, wp.int32), (ring, vec6d)
        ))  # fmt: skip
        arrays = [self._states, self._count, self._positions, self._rotations, written, begins, forces]
        self._launch = PreparedLaunch(integrate, [settings, *arrays], cpu, dim=1, serial=True)
        self._state, self._line = self._states.numpy()[0], (written.numpy(), begins.numpy(), forces.numpy())
        self._steps = 0  # as in the state
        self._told = tuple(self._state[name] for name in ("rotation", "position", "velocity"))
        self._hosts = self._count.numpy(), self._positions.numpy(), self._rotations.numpy()
        first = as_poses(self._wanted(0.0) if start is None else start, "start")
        if first.shape != (4, 4):
            raise InputError(f"start must have shape (4, 4), not {first.shape}")
        self._state["position"], self._state["rotation"] = first[:3, 3], first[:3, :3]
        self._last_pose = np.array(self._wanted(0.0), float)

    @property
    def given(self) -> float:
        """Work of the forces on the handle so far [J]; what was taken from the hand counts less than nothing."""
        return float(self._state["given"])

    def read(self, time: float) -> DeviceState:
        """Go on to a time [s], and tell where the handle is; times rise."""
        steps = round(time * STEPS_PER_SECOND) - self._steps
        if steps > 0:
            wanted = np.asarray(self._wanted(time), float)
            count, positions, rotations = self._hosts
            count[0] = steps
            positions[0], positions[1] = self._last_pose[:3, 3], wanted[:3, 3]
            rotations[0], rotations[1] = self._last_pose[:3, :3], wanted[:3, :3]
            self._launch.run()
            self._last_pose = wanted
            self._steps += steps
        pose, (rotation, position, velocity) = _STANDING.copy(), self._told
        pose[:3, :3], pose[:3, 3] = rotation, position
        buttons = 0 if self._buttons is None else int(self._buttons(time))
        return DeviceState(pose, velocity.copy(), buttons)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """A force and a torque that act after the delay, until others do."""
        written, begins, forces = self._line
        step, last = self._steps + self._delay, (int(written[0]) - 1) % len(begins)
        if written[0] == 0 or begins[last] != step:  # else it is instead of the last one
            last = int(written[0]) % len(begins)
            written[0] += 1
        begins[last] = step
        forces[last, :3], forces[last, 3:] = force, torque

    def close(self) -> None:
        """No force is left on it."""
        self._line[0][0] = self._state["acted"] = 0


def _six(ways: float, turns: float) -> vec6d:
    return vec6d(ways, ways, ways, turns, turns, turns)


def _function_of(path: Any) -> Callable[[float], np.ndarray]:
    """Poses by time."""
    if callable(path):
        return path
    if isinstance(path, Path):
        begin, end = path.clock
        return lambda time: path.pose(float(np.clip((time - begin) / (end - begin), 0.0, 1.0)))
    pose = to_numpy(path, "path")
    if pose.shape != (4, 4):
        raise InputError(f"path must be a function of time, a Path or a pose of shape (4, 4), not of {pose.shape}")
    pose = as_poses(pose, "path")
    return lambda time: pose

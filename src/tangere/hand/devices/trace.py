"""Traces: what a device told in a run, written to a file, and a device that tells it again.

A trace is a path file, `t,x,y,z,qw,qx,qy,qz` in the header, and after these columns the velocities and the buttons. A
plain path file is one too: its velocities are those between its poses, and there are no buttons. At the times of its
lines a trace tells what they say, to the last bit; between them it goes on a screw.
"""

from __future__ import annotations

import bisect
import csv
from os import PathLike, fspath
from pathlib import Path as FilePath

import numpy as np

from tangere.hand.devices.device import ALL_AXES, Device, DeviceState
from tangere.motion import Path, Screw, quaternions_of, rotations_of
from tangere.runtime import InputError, NonCopyable, check_out_file, writing

#: Columns of a trace; the first eight are those of a path file.
COLUMNS = ("t", "x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz", "buttons")


class TraceDevice(NonCopyable):
    """A device that tells what a file says.

    Args:
        file: a trace, or a path file.
    """

    measured_axes = ALL_AXES
    forced_axes = ALL_AXES

    def __init__(self, file: str | PathLike[str]) -> None:
        name = fspath(file)
        header, rows = _read(name)
        if header == COLUMNS:
            self._times = rows[:, 0].tolist()
            self._velocity, self._buttons = rows[:, 8:14], _buttons(rows[:, 14], name)
            poses = np.tile(np.eye(4), (len(rows), 1, 1))
            poses[:, :3, :3] = rotations_of(rows[:, 4:8], f"{name}: quaternions")
            poses[:, :3, 3] = rows[:, 1:4]
            self._poses = poses
            if not (np.diff(rows[:, 0]) > 0.0).all():
                raise InputError(f"{name}: times must rise")
        else:
            path = Path.load(name)
            begin, end = path.clock
            self._poses, self._times = path.poses, (begin + (end - begin) * path.times).tolist()
            self._velocity, self._buttons = _velocities(self._times, path), np.zeros(len(path.poses), int)
        self._between = Screw(self._poses[:-1], self._poses[1:]) if len(self._poses) > 1 else None
        #: (n, 6) forces and torques that were written to it, in turn.
        self.written: list[np.ndarray] = []

    @property
    def end(self) -> float:
        """The time of its last line [s]."""
        return self._times[-1]

    def read(self, time: float) -> DeviceState:
        """What the file says about a time; before its first line and after its last what these say, at rest."""
        at = bisect.bisect_right(self._times, time) - 1
        if at < 0 or (at == len(self._times) - 1 and time > self._times[-1]):
            return DeviceState(self._poses[max(at, 0)].copy(), np.zeros(6), int(self._buttons[max(at, 0)]))
        if self._times[at] == time or self._between is None:
            return DeviceState(self._poses[at].copy(), self._velocity[at].copy(), int(self._buttons[at]))
        part = (time - self._times[at]) / (self._times[at + 1] - self._times[at])
        pose = self._between[at].pose(part)
        velocity = (1.0 - part) * self._velocity[at] + part * self._velocity[at + 1]
        return DeviceState(pose, velocity, int(self._buttons[at]))

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Kept in `written`: nobody feels it."""
        self.written.append(np.r_[force, torque])

    def close(self) -> None:
        """There is nothing to let go of."""


class TraceRecorder(NonCopyable):
    """Stands between a hand and its device, and keeps what the device tells.

    Rotations are told as the quaternions in the file say them, so that the run that was recorded and its replay are the
    same to the last bit.

    Args:
        device: the device.
        file: where `close` writes the trace.
    """

    def __init__(self, device: Device, file: str | PathLike[str]) -> None:
        self.device, self.file = device, FilePath(fspath(file))
        self.measured_axes, self.forced_axes = device.measured_axes, device.forced_axes
        check_out_file(self.file, "a trace", ".csv")
        self._rows: list[list[float]] = []

    def read(self, time: float) -> DeviceState:
        """What the device tells."""
        state = self.device.read(time)
        quaternion = quaternions_of(state.pose[None, :3, :3])
        pose = state.pose.copy()
        pose[:3, :3] = rotations_of(quaternion, "pose")[0]
        self._rows.append([time, *state.pose[:3, 3], *quaternion[0], *state.velocity, state.buttons])
        return DeviceState(pose, state.velocity, state.buttons)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """To the device."""
        self.device.write(force, torque)

    def save(self) -> None:
        """Write what was told so far."""
        with writing(self.file), open(self.file, "w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened, lineterminator="\n")
            writer.writerow(COLUMNS)
            for *numbers, buttons in self._rows:
                writer.writerow([*(repr(float(x)) for x in numbers), int(buttons)])

    def close(self) -> None:
        """Write the file, and let go of the device."""
        self.save()
        self.device.close()


def _read(file: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The header of a trace and its numbers; of any other file an empty one, and no numbers."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as opened:
            lines = list(csv.reader(opened))
    except FileNotFoundError as error:
        raise InputError(f"{file}: no such file") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read as a CSV file: {error}") from error
    header = tuple(word.strip() for word in lines[0]) if lines else ()
    if header != COLUMNS:
        return (), np.zeros((0, len(COLUMNS)))
    rows = np.zeros((len(lines) - 1, len(COLUMNS)))
    for number, words in enumerate(lines[1:], start=2):
        try:
            rows[number - 2] = [float(word) for word in words]
        except ValueError as error:
            raise InputError(f"{file}: line {number} is not {len(COLUMNS)} numbers") from error
    if not len(rows):
        raise InputError(f"{file}: there is nothing in it")
    if not np.isfinite(rows).all():
        raise InputError(f"{file}: line {int(np.argmax(~np.isfinite(rows).all(axis=1))) + 2} has a number that is none")
    return header, rows


def _buttons(column: np.ndarray, file: str) -> np.ndarray:
    """Buttons as whole numbers of at most 32 bits."""
    wrong = (column != np.floor(column)) | (column < 0) | (column >= 2.0**32)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{file}: line {at + 2} has buttons {column[at]:g}, which is no whole number of 32 bits")
    return column.astype(np.int64)


def _velocities(times: list[float], path: Path) -> np.ndarray:
    """(n, 6) of the origin, between the poses of a path; the last is that before it."""
    spans = np.diff(times)
    linear = np.diff(path.poses[:, :3, 3], axis=0) / spans[:, None]
    angular = path.segments.twist(np.zeros(len(spans)))[0] / spans[:, None]
    velocity = np.column_stack([linear, angular])
    return np.concatenate([velocity, velocity[-1:]])

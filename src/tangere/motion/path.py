"""Long motions: screws one after the other through given poses, and how finely to cut a motion into screws.

Question: how does a body move through a list of poses, and into how many screws is any motion to be cut?
Method:   a screw from each pose to the next (Chasles' theorem). A screw between two poses leaves a straight way of its
          pivot by at most (m / 2) tan(w / 4), about m w / 8: w is the angle turned and m the way across the axis; half
          the step makes a quarter of that. This says when a step is to be split, which Redon 2002, section 2.2, leaves
          open.
Known as: piecewise screw (ScLERP) interpolation of a trajectory.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from tangere.motion.pose_files import read_poses, write_poses
from tangere.motion.poses import as_body_points, as_poses, as_times, rotation_between
from tangere.motion.rigid_motion import Rigid
from tangere.motion.screw import Screw
from tangere.runtime import Arrays, CapacityError, InputError, described, to_numpy

#: Steps a motion is cut into at most.
MOST_STEPS = 1_000_000
#: The largest turn of a step when a motion is cut: well below half a turn, where a screw would go the other way round.
LARGEST_TURN = 1.5


class Path:
    """Screws through poses, over t in [0, 1].

    Args:
        poses: shape (k, 4, 4), k >= 2.
        times: when the poses are reached, rising from 0 to 1, shape (k,); None means evenly.
        clock: what t = 0 and t = 1 are called in the file or the program the path comes from, for instance in seconds.
    """

    poses: np.ndarray  #: (k, 4, 4)
    times: np.ndarray  #: (k,) from 0 to 1
    clock: tuple[float, float]

    def __init__(self, poses: Arrays, times: Arrays | None = None, *, clock: tuple[float, float] = (0.0, 1.0)) -> None:
        self.poses = as_poses(poses, "Path: poses")
        if self.poses.ndim != 3 or len(self.poses) < 2:
            raise InputError(f"Path: poses must have shape (k, 4, 4) with k >= 2, not {self.poses.shape}")
        count = len(self.poses)
        self.times = np.linspace(0.0, 1.0, count) if times is None else np.array(to_numpy(times, "Path: times"))
        if self.times.shape != (count,):
            raise InputError(f"Path: {count} poses and times of shape {self.times.shape}")
        if self.times[0] != 0.0 or self.times[-1] != 1.0 or not (np.diff(self.times) > 0.0).all():
            raise InputError("Path: times must rise from 0 to 1")
        self.segments = Screw(self.poses[:-1], self.poses[1:])  #: (k - 1) motions, each over [0, 1]
        self.clock = _checked_clock(clock)

    @classmethod
    def load(cls, path: str | PathLike[str], *, quaternion: str | None = None) -> Path:
        """Read a CSV file with a line `t,x,y,z,qw,qx,qy,qz` [s, m] for each pose; `clock` has its first and last time.

        Args:
            path: the file. Times rise; quaternions may have any length but zero.
            quaternion: "wxyz" or "xyzw" (TUM and ROS): the order in a file without a header, where columns may be
                apart by blanks. None means what the header says.
        """
        times, poses = read_poses(path, quaternion, timed=True)
        if len(poses) < 2:
            raise InputError(f"{path}: a path needs at least two poses, not {len(poses)}")
        if not (np.diff(times) > 0.0).all():
            at = int(np.argmax(np.diff(times) <= 0.0))
            raise InputError(f"{path}: times must rise, but t = {times[at]:g} is followed by t = {times[at + 1]:g}")
        share = (times - times[0]) / (times[-1] - times[0])
        share[-1] = 1.0
        return cls(poses, share, clock=(float(times[0]), float(times[-1])))

    def save(self, path: str | PathLike[str], *, quaternion: str = "wxyz") -> None:
        """Write a CSV file that `load` reads, its times between those of `clock`.

        Args:
            path: the file.
            quaternion: "wxyz" or "xyzw": the order of the columns.
        """
        write_poses(path, self.clock[0] + (self.clock[1] - self.clock[0]) * self.times, self.poses, quaternion)

    def __len__(self) -> int:
        return len(self.segments)

    def __repr__(self) -> str:
        return f"Path({len(self)} segments)"

    def segment_of(self, t: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """The segment each time is in, and the time within it in [0, 1]; a pose's time belongs to what follows it."""
        at = as_times(t)
        segment = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, len(self) - 1)
        within = (at - self.times[segment]) / (self.times[segment + 1] - self.times[segment])
        return segment, np.clip(within, 0.0, 1.0)

    def between(self, begin: np.ndarray, end: np.ndarray) -> Rigid:
        """The motions between times (n,) that have no pose strictly between them, as n motions."""
        segment, first = self.segment_of(begin)
        last = (end - self.times[segment]) / (self.times[segment + 1] - self.times[segment])
        return self.segments[segment].part(first, np.clip(last, first, 1.0))

    def pose(self, t: Arrays) -> np.ndarray:
        """Poses at the times `t` in [0, 1], shape (…, 4, 4)."""
        return self._at(t)[0]

    def positions(self, points: Arrays, time: float) -> np.ndarray:
        """Where points of the body, (m, 3) in its frame [m], are at `time`, (m, 3)."""
        pose = self.pose(time)
        return as_body_points(points, "points") @ pose[:3, :3].T + pose[:3, 3]

    def twist(self, t: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Angular velocity, and linear velocity of the body's point at the world origin, each (…, 3) per unit of t."""
        segment, _ = self.segment_of(t)
        pace = (self.times[segment + 1] - self.times[segment])[..., None]
        _, angular, linear = self._at(t)
        return angular / pace, linear / pace

    def _at(self, t: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        segment, within = self.segment_of(t)
        if segment.ndim == 0:
            return self.segments[int(segment)].state(within)
        pose, angular, linear = self.segments[segment.reshape(-1)].state(within.reshape(-1))
        return pose.reshape(*within.shape, 4, 4), angular.reshape(*within.shape, 3), linear.reshape(*within.shape, 3)


def deviation(start: Arrays, end: Arrays) -> np.ndarray:
    """How far the screw between two poses leaves the straight way of the body's origin, shape () or (n,) [m]."""
    first, last = np.broadcast_arrays(as_poses(start, "start"), as_poses(end, "end"))
    axis, angle = rotation_between(first.reshape(-1, 4, 4)[:, :3, :3], last.reshape(-1, 4, 4)[:, :3, :3])
    way = (last - first).reshape(-1, 4, 4)[:, :3, 3]
    across = np.linalg.norm(way - np.einsum("ni,ni->n", way, axis)[:, None] * axis, axis=1)
    return (0.5 * across * np.tan(0.25 * angle)).reshape(first.shape[:-2])


def split(motion: Any, tolerance: float) -> Path:
    """The motion as screws that leave straight ways by at most `tolerance` each [m]: halved where they would not.

    Args:
        motion: anything with `pose(t)` and `twist(t)`: one rigid motion, or a `Path`.
    """
    if not tolerance > 0.0:
        raise InputError(f"tolerance must be a length > 0, not {described(tolerance)}")
    times = np.linspace(0.0, 1.0, 2)
    while True:
        poses = motion.pose(times)
        steps = np.diff(times)
        # The rate at both ends tells several turns from none.
        rate = np.linalg.norm(motion.twist(np.stack([times[:-1], times[1:]]))[0], axis=-1)
        turn = np.where(np.isfinite(rate), rate, 0.0).max(axis=0) * steps
        coarse = (deviation(poses[:-1], poses[1:]) > tolerance) | (turn > LARGEST_TURN)
        if not coarse.any():
            return Path(poses, times, clock=getattr(motion, "clock", (0.0, 1.0)))
        if len(times) + coarse.sum() > MOST_STEPS:
            raise CapacityError(f"split: a tolerance of {described(tolerance)} needs more than {MOST_STEPS} steps")
        times = np.sort(np.concatenate([times, times[:-1][coarse] + 0.5 * steps[coarse]]))


def _checked_clock(clock: tuple[float, float]) -> tuple[float, float]:
    try:
        begin, end = (float(time) for time in clock)
    except (TypeError, ValueError):
        begin, end = np.nan, np.nan
    if not (np.isfinite(begin) and np.isfinite(end) and begin < end):
        raise InputError(f"Path: clock must be two times, the second one later, not {described(clock)}")
    return begin, end

"""What all rigid motions have in common: poses, point positions and twists at a time, and records for kernels.

The formula of a motion exists once, in `tangere.motion.kinematics`; these methods run it on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from tangere.motion.kinematics import COSINE, RigidMotion, pose_at, velocity_at
from tangere.motion.poses import as_body_points, as_times
from tangere.runtime import SOUND, Arrays, InputError, LaunchCache, PreparedLaunch, described, launch, to_numpy

wp.set_module_options(SOUND)

#: The layout of `RigidMotion` for NumPy.
RECORD = np.dtype(RigidMotion.numpy_dtype())


class Rigid:
    """A rigid motion over t in [0, 1], or n of them: x(t) = T(t) + R(t) p for every point p of the body.

    Subclasses say how to make it: `Rest`, `Twist`, `Screw`, `TanScrew`, `CosineScrew`, and the links of a `Chain`.
    """

    shape: tuple[int, ...]  #: () for one motion, (n,) for n
    links: int = 1  #: records whose product makes one motion, the outermost first
    _records: np.ndarray

    def _set(self, records: np.ndarray, shape: tuple[int, ...]) -> None:
        records.flags.writeable = False
        self._records, self.shape = records, shape

    @staticmethod
    def join(motions: Sequence[Rigid]) -> Rigid:
        """One batch of all the motions, in order; single ones and batches of any kinds, chains of one length."""
        links = {motion.links for motion in motions}
        if len(links) != 1:
            raise InputError(f"motions joined must be some, and of as many links, not {sorted(links)}")
        return motions_of(joined_records([motion.records() for motion in motions]), links.pop())

    @staticmethod
    def of(record: np.ndarray) -> Rigid:
        """One motion from its record, (1,)."""
        return motions_of(record, 1, ())

    def __getitem__(self, rows: Any) -> Rigid:
        """The motions chosen by a slice, an index array or a mask; one of them by a number."""
        records = self._records.reshape(-1, self.links)[rows]
        return motions_of(
            records.reshape(-1), self.links, () if np.ndim(rows) == 0 and not isinstance(rows, slice) else None
        )

    @cached_property
    def smooth(self) -> bool:
        """Whether one of the motions is a COSINE: bounds then hold on another clock (`bounds.motion_bounds`)."""
        return bool((self._records["kind"] == COSINE).any())

    @cached_property
    def largest(self) -> float:
        """The largest number in the records, by size; NaN or inf where one is not finite."""
        rows = self._records
        fields = [np.abs(rows[name]) for name in RECORD.names or () if rows[name].dtype == np.float64]
        return max((float(field.max()) for field in fields if field.size), key=lambda x: (x != x, x), default=0.0)

    def records(self) -> np.ndarray:
        """The motions as kernels take them (`RigidMotion.numpy_dtype()`), shape (n * links,), n = 1 for one motion."""
        return self._records

    def pose(self, t: Arrays) -> np.ndarray:
        """Poses at the times `t` in [0, 1], shape (…, 4, 4): the shape of the motions broadcast with that of t."""
        return self.state(t)[0]

    def part(self, begin: Arrays, end: Arrays) -> Rigid:
        """The part of the motion from `begin` to `end`, as a motion over [0, 1]; n parts of one motion make n motions.

        Args:
            begin, end: times in [0, 1], begin <= end, each a number or shape (n,).
        """
        first, last = np.broadcast_arrays(to_numpy(begin, "begin"), to_numpy(end, "end"))
        if first.ndim > 1 or not ((first >= 0.0) & (first <= last) & (last <= 1.0)).all():
            interval = f"{described(begin)} to {described(end)}"
            raise InputError(f"a part goes from one time in [0, 1] to a later one, not {interval}")
        shape = np.broadcast_shapes(self.shape, first.shape)
        records = np.broadcast_to(self._records.reshape(*self.shape, self.links), (*shape, self.links)).copy()
        records["begin"] += records["span"] * first[..., None]
        records["span"] *= (last - first)[..., None]
        return motions_of(records.reshape(-1), self.links, shape)

    def positions(self, points: Arrays, time: float) -> np.ndarray:
        """Where points of the body, (m, 3) in its frame [m], are at `time`: (m, 3), or (n, m, 3) for n motions."""
        pose = self.pose(time)
        return as_body_points(points, "points") @ np.swapaxes(pose[..., :3, :3], -1, -2) + pose[..., None, :3, 3]

    def twist(self, t: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Angular velocity, and linear velocity of the body's point at the world origin, each (…, 3) per unit of t."""
        _, angular, linear = self.state(t)
        return angular, linear

    def state(self, t: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`pose` and both of `twist` at the times `t`."""
        links = self._records.reshape(*self.shape, self.links)
        pose, angular, linear = evaluated(links[..., 0], t)
        for k in range(1, self.links):
            # An inner twist is carried into the outer frame's world; twists at the world origin then add up.
            inner, turning, moving = evaluated(links[..., k], t)
            rotation, offset = pose[..., :3, :3], pose[..., :3, 3]
            turning = np.einsum("...ij,...j->...i", rotation, turning)
            angular = angular + turning
            linear = linear + np.einsum("...ij,...j->...i", rotation, moving) + np.cross(offset, turning)
            pose = pose @ inner
        return pose, angular, linear

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("one motion has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'one motion' if not self.shape else f'{self.shape[0]} motions'})"


def motions_of(records: np.ndarray, links: int = 1, shape: tuple[int, ...] | None = None) -> Rigid:
    """Motions from records; of shape (n,) unless given."""
    motion = Rigid()
    motion.links = links
    motion._set(records, (len(records) // links,) if shape is None else shape)
    return motion


def joined_records(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Records one after the other (np.concatenate would pack them and lose the layout of the kernels' struct)."""
    rows = blank_records(sum(map(len, parts)))
    place = 0
    for part in parts:
        rows[place : place + len(part)] = part
        place += len(part)
    return rows


def blank_records(count: int) -> np.ndarray:
    """`count` motions that rest at the identity, to be filled in."""
    records = np.zeros(count, RECORD)
    records["axis"] = [0.0, 0.0, 1.0]
    records["rotation"] = np.eye(3)
    records["span"] = 1.0
    return records


def evaluated(records: np.ndarray, t: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses (…, 4, 4), angular and linear velocities at the world origin (…, 3) of records at times, broadcast."""
    times = as_times(t)
    if records.size == 1 and times.ndim == 0 and records.ndim <= 1:
        return _evaluations.of().evaluated(records, times)
    shape = np.broadcast_shapes(records.shape, times.shape)
    each = np.broadcast_to(records, shape).reshape(-1)
    poses = np.zeros((len(each), 4, 4))
    angular, linear = np.zeros((len(each), 3)), np.zeros((len(each), 3))
    cpu = wp.get_device("cpu")

    def shared(array: np.ndarray, dtype: Any) -> wp.array:
        return wp.array(array, dtype=dtype, device=cpu, copy=False)

    launch(
        _evaluate,
        len(each),
        [
            wp.array(np.ascontiguousarray(each), dtype=RigidMotion, device=cpu),
            shared(np.ascontiguousarray(np.broadcast_to(times, shape), dtype=np.float64).reshape(-1), wp.float64),
        ],
        [shared(poses, wp.mat44d), shared(angular, wp.vec3d), shared(linear, wp.vec3d)],
        device=cpu,
    )
    return poses.reshape(*shape, 4, 4), angular.reshape(*shape, 3), linear.reshape(*shape, 3)


class PreparedEvaluation:
    """One motion at one time, with arrays and a launch that are kept: small questions take less than making them."""

    def __init__(self) -> None:
        kinds = RigidMotion, wp.float64, wp.mat44d, wp.vec3d, wp.vec3d
        arrays = [wp.zeros(1, dtype=dtype, device="cpu") for dtype in kinds]
        self._rows = [array.numpy() for array in arrays]
        self._launch = PreparedLaunch(_evaluate, arrays, wp.get_device("cpu"))

    def evaluated(self, record: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `evaluated`, of records of shape () or (1,)."""
        self._rows[0][:], self._rows[1][:] = record, time
        self._launch.launch(1, 0)
        pose, angular, linear = (row.copy() for row in self._rows[2:])
        return (pose, angular, linear) if record.ndim else (pose[0], angular[0], linear[0])


_evaluations = LaunchCache(PreparedEvaluation)


@wp.kernel
def _evaluate(
    first: int,
    motions: wp.array[RigidMotion],
    times: wp.array[wp.float64],
    poses: wp.array[wp.mat44d],
    angular: wp.array[wp.vec3d],
    linear: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    pose = pose_at(motions[i], times[i])
    matrix = wp.identity(4, dtype=wp.float64)
    for row in range(3):
        for column in range(3):
            matrix[row, column] = pose.rotation[row, column]
        matrix[row, 3] = pose.translation[row]
    poses[i] = matrix
    velocity = velocity_at(motions[i], times[i])
    angular[i] = velocity.angular
    linear[i] = velocity.linear - wp.cross(velocity.angular, velocity.point)

"""How distances, the time of a first contact and clearances of robots change with the configurations of a plan.

Question: which way do joints, or the configurations of a trajectory, have to go for more room, or a later contact?
Method:   `tangere.query.gradients` tells slopes by the poses of the two bodies at the time of the answer; Jacobians
          make them slopes by the configuration there, which is on the line between two configurations of the plan.
Known as: swept-volume (continuous-time) collision gradients by both ends of a segment, as trajopt wants them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Rest
from tangere.query import gradients
from tangere.query.clearance import LeastClearance
from tangere.query.contacts import Status
from tangere.query.distance import distance, distances
from tangere.query.first_contact import FirstContact
from tangere.query.gradients import GradientStatus
from tangere.robot.cell_kinematics import CellKinematics, body_motion
from tangere.robot.result import RobotCheck
from tangere.robot.trajectory_checker import clock_of, configurations_of
from tangere.robot.workcell import Workcell
from tangere.runtime import Arrays, InputError, check_kind, choose_device, to_numpy, using_threads
from tangere.shape.mesh import Mesh


@dataclass(frozen=True, eq=False)
class RobotDistances:
    """Distances of pairs of bodies at n configurations: every array is (n, pairs), or (pairs,) for one."""

    pairs: tuple[tuple[str, str], ...]  #: names
    lower: np.ndarray  #: [m]
    upper: np.ndarray  #: [m]; inf beyond the cap
    point_a: np.ndarray  #: (…, 3) in the world
    point_b: np.ndarray
    normal: np.ndarray  #: (…, 3) unit, pushes the first body away from the second
    gradient: np.ndarray  #: (…, dof) of the distance by the joint values; zero where `status` says that there is none
    status: np.ndarray  #: `GradientStatus`

    def __repr__(self) -> str:
        return f"RobotDistances({len(self.pairs)} pairs, least {self.upper.min(initial=np.inf):.6g} m)"


@dataclass(frozen=True, eq=False)
class TrajectoryGradient:
    """The gradient of the time of a first contact by a trajectory."""

    value: float  #: the time, on the clock of the trajectory; inf where there is none
    status: GradientStatus
    configurations: np.ndarray  #: (k, dof) slopes by all configurations; two of them have some
    pair: tuple[str, str] | None


@dataclass(frozen=True, eq=False)
class SegmentGradients:
    """The gradients of the clearance of each segment of a trajectory by both its ends."""

    value: np.ndarray  #: (segments,) the least distance of the two bodies in the segment [m]; inf where it was farther
    status: np.ndarray  #: (segments,) `GradientStatus`
    ends: np.ndarray  #: (segments, 2, dof)
    pair: list[Any]  #: names of these bodies; None where there are none

    @cached_property
    def configurations(self) -> np.ndarray:
        """(segments, k, dof) slopes of each segment's clearance by all configurations."""
        count, _, dof = self.ends.shape
        table = np.zeros((count, count + 1, dof))
        rows = np.arange(count)
        table[rows, rows], table[rows, rows + 1] = self.ends[:, 0], self.ends[:, 1]
        return table


def distances_in_cell(
    cell: Workcell,
    pairs: np.ndarray,
    q: Arrays,
    *,
    time: float = 0.0,
    cap: float | None = None,
    tie: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> RobotDistances:
    """Distances of pairs of bodies, (m, 2), at configurations (dof,) or (n, dof) of the whole cell, with gradients."""
    given = to_numpy(q, "q")
    if given.ndim not in (1, 2) or given.shape[-1] != cell.dof or not np.isfinite(given).all():
        raise InputError(f"q must be finite, of shape ({cell.dof},) or (n, {cell.dof}), not {given.shape}")
    rows = np.atleast_2d(given).astype(np.float64)
    count, chosen = len(rows), choose_device(device)
    placed = CellKinematics(cell, rows, np.full(count, float(time)))
    shape = (count, len(pairs))
    columns: dict[str, np.ndarray] = {name: np.full(shape, np.inf) for name in ("lower", "upper")}
    columns |= {name: np.zeros((*shape, 3)) for name in ("point_a", "point_b", "normal")}
    columns |= {"gradient": np.zeros((*shape, cell.dof)), "status": np.zeros(shape, np.uint8)}
    if count and len(pairs):
        with using_threads(threads):
            _PartDistances(cell, pairs, placed, cap, tie, chosen).write(columns)
    names = tuple((cell.names[one], cell.names[other]) for one, other in pairs.tolist())
    return RobotDistances(names, **(columns if given.ndim == 2 else {k: v[0] for k, v in columns.items()}))


class _PartDistances:
    """The distances of all parts of pairs of bodies at n configurations, and the nearest parts of each pair."""

    def __init__(
        self,
        cell: Workcell,
        pairs: np.ndarray,
        placed: CellKinematics,
        cap: float | None,
        tie: float | None,
        device: wp.Device,
    ) -> None:
        self.pairs, self.placed, self.cap, self.tie, self.device = pairs, placed, cap, tie, device
        self.shapes = tuple(dict.fromkeys(part for parts in cell.surfaces for part in parts))
        number = {part: k for k, part in enumerate(self.shapes)}
        owner, which = [], []
        for row, (one, other) in enumerate(pairs.tolist()):
            for a, b in product(cell.surfaces[one], cell.surfaces[other]):
                owner.append(row)
                which.append((number[a], number[b]))
        self.owner, self.which = np.array(owner), np.array(which)
        bodies = np.unique(pairs)
        frames = {int(body): (placed.pose(body), placed.jacobian(body)) for body in bodies}
        self.poses, self.jacobians = (
            [np.stack([frames[int(body)][k] for body in pairs[:, side]], axis=1) for side in range(2)] for k in range(2)
        )

    def write(self, columns: dict[str, np.ndarray]) -> None:
        """Fill the columns of `RobotDistances`, (n, pairs) each."""
        found = self._distances()
        count = len(self.poses[0])
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        # The nearest parts of each pair; beyond a cap any.
        nearest = np.stack(
            [first + part.argmin(axis=1) for first, part in zip(starts, np.split(found["upper"], starts[1:], axis=1))],
            axis=1,
        )
        rows = np.arange(count)[:, None]
        for name in ("lower", "upper", "point_a", "point_b", "normal"):
            columns[name][:] = found[name][rows, nearest]
        columns["lower"][:] = np.minimum.reduceat(found["lower"], starts, axis=1)
        which = self.which[nearest].reshape(-1, 2)
        poses = tuple(side.reshape(-1, 4, 4) for side in self.poses)
        *points, normals = (columns[name].reshape(-1, 3) for name in _VECTORS)
        status = gradients.distance_status(
            self.shapes,
            which,
            (poses[0], poses[1]),
            (points[0], points[1]),
            normals,
            columns["upper"].reshape(-1),
            tie=self.tie,
            device=self.device,
        )
        columns["status"][:] = status.reshape(count, -1)
        told = np.isin(columns["status"], (GradientStatus.SMOOTH, GradientStatus.TIE))[..., None]
        normal = np.where(told, columns["normal"], 0.0)
        for side, sign in ((0, 1.0), (1, -1.0)):
            arm = np.where(told, columns[_VECTORS[side]], 0.0) - self.poses[side][..., :3, 3]
            slope = sign * np.concatenate([normal, np.cross(arm, normal)], axis=-1)
            columns["gradient"] += np.einsum("npi,npij->npj", slope, self.jacobians[side])

    def _distances(self) -> dict[str, np.ndarray]:
        """Columns of `Distance`, (n, parts) each."""
        count, parts = len(self.poses[0]), len(self.owner)
        columns: dict[str, np.ndarray] = {name: np.full((count, parts), np.inf) for name in ("lower", "upper")}
        columns |= {name: np.full((count, parts, 3), np.nan) for name in _VECTORS}
        is_mesh = np.array([isinstance(shape, Mesh) for shape in self.shapes])
        both = is_mesh[self.which].all(axis=1)
        meshes = tuple(shape for shape in self.shapes if isinstance(shape, Mesh))
        if both.any():
            number = (np.cumsum(is_mesh) - 1)[self.which[both]]
            sides = [side[:, self.owner[both]].reshape(-1, 4, 4) for side in self.poses]
            which = [np.tile(number[:, k], count) for k in range(2)]
            found = distances(meshes, *which, *sides, cap=self.cap, device=self.device)
            for name, column in columns.items():
                column[:, both] = getattr(found, name).reshape(count, -1, *column.shape[2:])
        for part in np.flatnonzero(~both):
            bodies = [
                self.shapes[shape].moving(Rest(side[:, self.owner[part]]))
                for shape, side in zip(self.which[part], self.poses, strict=True)
            ]
            found = distance(*bodies, device=self.device)
            far = np.asarray(found.lower) > (np.inf if self.cap is None else self.cap)
            for name, column in columns.items():
                column[:, part] = getattr(found, name)
            columns["upper"][far, part] = np.inf
        return columns


_VECTORS = ("point_a", "point_b", "normal")


class _CellPlan:
    """A trajectory of a cell, looked at where an answer is about it."""

    def __init__(self, cell: Workcell, q: Arrays, times: Arrays | None, device: Any, threads: int | None) -> None:
        self.cell = cell
        rows = to_numpy(q, "q")
        names = tuple(f"{p.prefix}{name}" for p in cell.robots for name in p.robot.joint_names)
        self.points = configurations_of(rows[None] if rows.ndim == 2 else rows, cell.dof, names)[0]
        self.clock = clock_of(times, len(self.points))
        if len(self.points) < 2:
            raise InputError("a trajectory has two configurations at least; for one ask `Robot.distances`")
        self.options: dict[str, Any] = {"device": choose_device(device), "threads": threads}
        self.span = (self.clock - self.clock[0]) / (self.clock[-1] - self.clock[0])

    def bodies(self, pair: tuple[str, str], when: float, segment: int) -> tuple[list[Any], float, float]:
        """Two bodies in motion over the step that a time of the clock is in, and that step's ends on `span`."""
        for name in pair:
            if name not in self.cell.names:
                raise InputError(f"the answer names {name!r}, which is not in this cell: {', '.join(self.cell.names)}")
        at = (when - self.clock[0]) / (self.clock[-1] - self.clock[0])
        breaks = np.union1d(self.span[segment : segment + 2], self.cell.breaks())
        breaks = breaks[(breaks >= self.span[segment]) & (breaks <= self.span[segment + 1])]
        k = int(np.clip(np.searchsorted(breaks, at, side="right") - 1, 0, len(breaks) - 2))
        begin, end = breaks[k : k + 2]
        ends = tuple(self._configuration(segment, t) for t in (begin, end))
        numbers = [self.cell.names.index(name) for name in pair]
        motions = [body_motion(self.cell, n, ends, (begin, end)) for n in numbers]
        share = float(np.clip((at - begin) / (end - begin), 0.0, 1.0))
        return self._nearest(numbers, motions, share), begin, end

    def _nearest(self, numbers: list[int], motions: list[Any], share: float) -> list[Any]:
        """The parts of two bodies that are nearest at a time of the step, in motion."""
        choices = [
            [part.moving(motion) for part, motion in zip(parts, motions, strict=True)]
            for parts in product(*(self.cell.surfaces[n] for n in numbers))
        ]
        if len(choices) == 1:
            return choices[0]
        device = self.options["device"]
        return min(choices, key=lambda both: float(distance(*both, time=share, device=device).upper))

    def slopes(self, found: Any, pair: tuple[str, str], segment: int, at: float) -> np.ndarray:
        """(2, dof) by both ends of a segment, at a time of `span`."""
        share = (at - self.span[segment]) / (self.span[segment + 1] - self.span[segment])
        placed = CellKinematics(self.cell, self._configuration(segment, at)[None], np.array([at]))
        numbers = [self.cell.names.index(name) for name in pair]
        by = found.by_joints(*(placed.jacobian(n)[0] for n in numbers))
        return np.array([(1.0 - share) * by, share * by])

    def _configuration(self, segment: int, at: float) -> np.ndarray:
        first, last = self.points[segment : segment + 2]
        return first + (at - self.span[segment]) / (self.span[segment + 1] - self.span[segment]) * (last - first)


def time_gradient(
    cell: Workcell,
    found: RobotCheck,
    q: Arrays,
    *,
    times: Arrays | None = None,
    separation: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> TrajectoryGradient:
    """The gradient of the first contact that `Robot.check` found by the configurations of the trajectory.

    Args:
        cell: the robots and things, as a `Workcell`.
        found: the answer about one trajectory.
        q: its configurations, (k, dof) of the whole cell.
        times, separation, device, threads: as for `Robot.check`.
    """
    check_kind(found, RobotCheck, "found")
    plan = _CellPlan(cell, q, times, device, threads)
    table = np.zeros_like(plan.points)
    code = {Status.FREE: GradientStatus.FREE, Status.START: GradientStatus.START}.get(found.status)
    if code is None and found.segment is not None and found.segments.status[found.segment] == Status.START:
        code = GradientStatus.START  # a segment that begins in contact, by rounding
    if code is not None or found.pair is None or found.segment is None:
        return TrajectoryGradient(found.time, code or GradientStatus.UNRESOLVED, table, found.pair)
    (a, b), begin, end = plan.bodies(found.pair, found.time, found.segment)
    at = (found.time - plan.clock[0]) / (plan.clock[-1] - plan.clock[0])
    hit = FirstContact(float(np.clip((at - begin) / (end - begin), 0.0, 1.0)), np.inf, found.status)
    slope = gradients.time(hit, a, b, separation=separation, **plan.options)
    length = (end - begin) * (plan.clock[-1] - plan.clock[0])
    when = begin + slope.time * (end - begin)
    table[found.segment : found.segment + 2] = length * plan.slopes(slope, found.pair, found.segment, when)
    value = plan.clock[0] + (begin + slope.value * (end - begin)) * (plan.clock[-1] - plan.clock[0])
    return TrajectoryGradient(float(value), slope.status, table, found.pair)


def clearance_gradients(
    cell: Workcell,
    found: RobotCheck,
    q: Arrays,
    *,
    times: Arrays | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> SegmentGradients:
    """The gradients of the clearances that `Robot.check(…, clearance=)` found, segment by segment.

    Args:
        cell, found, q, times, device, threads: as for `time_gradient`.
    """
    check_kind(found, RobotCheck, "found")
    plan = _CellPlan(cell, q, times, device, threads)
    segments = found.segments
    count = len(plan.points) - 1
    if len(segments) != count:
        raise InputError(f"the answer is about {len(segments)} segments, but q has {count}")
    if np.isnan(segments.clearance_lower).all():
        raise InputError("the answer has no clearance: ask `check` with clearance=")
    value, ends = np.full(count, np.inf), np.zeros((count, 2, cell.dof))
    status, pairs = np.full(count, GradientStatus.FREE, np.uint8), segments.clearance_pair
    for k, pair in enumerate(pairs):
        if pair is None:
            continue
        when = float(segments.clearance_time[k])
        (a, b), begin, end = plan.bodies(pair, when, k)
        at = (when - plan.clock[0]) / (plan.clock[-1] - plan.clock[0])
        upper = float(segments.clearance_upper[k])
        near = LeastClearance(0.0, upper, float(np.clip((at - begin) / (end - begin), 0.0, 1.0)), -1, -1)
        slope = gradients.clearance(near, a, b, **plan.options)
        value[k], status[k] = slope.value, slope.status
        ends[k] = plan.slopes(slope, pair, k, begin + slope.time * (end - begin))
    return SegmentGradients(value, status, ends, pairs)

"""Whole trajectories of robots against themselves, each other and the world, certified in one batch.

Question: along each trajectory, when do which two bodies first touch, and how near do any come at the least?
Method:   between two configurations every joint goes at a constant rate. All pairs of bodies in all segments are asked
          at once (`tangere.query.articulated`), in blocks that fit into memory. Where things move along a `Path`,
          segments are cut at its poses; joint values there lie on the same lines.
Sound:    as `first_contact`: a segment that is free has no contact between any two configurations, however thin the
          things are; times are never late. Pairs that are ignored are told with the answer.
Known as: continuous collision checking of joint-space paths; motion validation.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.motion.joints import joint_arrays
from tangere.query.articulated import ArticulatedQueries
from tangere.query.contacts import Contacts, Status
from tangere.robot.allowed_pairs import AllowedPairs
from tangere.robot.result import RobotChecks, TrajectorySegments
from tangere.robot.workcell import Workcell
from tangere.runtime import (
    Arrays,
    InputError,
    NonCopyable,
    choose_device,
    described,
    fraction,
    not_negative,
    on_own_threads,
    positive,
    to_numpy,
    whole,
)

#: Questions, pairs times steps, that are asked at once: what a cache holds, and what keeps a GPU busy.
BLOCK, CUDA_BLOCK = 1 << 15, 1 << 20
#: Steps of each trajectory that are asked at first where the first contact is enough, and how that grows.
FIRST_WAVE, GROWTH = 2, 2
#: A joint turns by no more than this in a segment [rad].
MOST_TURN = 200.0
_FREE, _CONTACT, _START, _UNRESOLVED = map(int, (Status.FREE, Status.CONTACT, Status.START, Status.UNRESOLVED))


class TrajectoryChecker(NonCopyable):
    """A work cell prepared for many trajectories: what `Robot.check` keeps from call to call.

    Args:
        cell: the robots and what is around them.
        allowed: pairs that are not compared.
        device: where to search; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
        reduced: ask each pair in the frame of its nearest common ancestor; False for comparison.

    Example:
        >>> import tangere as tg
        >>> arm = tg.robot.generate.arm()
        >>> checker = tg.robot.TrajectoryChecker(tg.robot.Workcell({"": arm}), arm.default_allowed(), device="cpu")
        >>> checker.check([[[0.0, 0.5, 0.5, 0.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0, 0.0, 0.0]]]).status.tolist()
        [0]
    """

    def __init__(
        self,
        cell: Workcell,
        allowed: AllowedPairs,
        *,
        device: str | wp.Device | None = None,
        threads: int | None = None,
        reduced: bool = True,
    ) -> None:
        self.cell, self.allowed, self.device = cell, allowed, choose_device(device)
        self.threads = None if threads is None else whole(threads, "threads", 1)
        self.pairs = cell.pairs(allowed)
        self._reduced = reduced
        self._joints = joint_arrays(
            cell.origins,
            np.array([joint.axis for joint in cell.joints]).reshape(-1, 3),
            [joint.kind == "sliding" for joint in cell.joints],
            cell.value,
            [joint.factor for joint in cell.joints],
            [joint.offset for joint in cell.joints],
            self.device,
        )
        self.limits = np.full((cell.dof, 2), [-np.inf, np.inf])
        names: list[str] = [""] * cell.dof
        for placed in cell.robots:
            for k, name in enumerate(placed.robot.joint_names):
                names[placed.values.start + k] = placed.prefix + name
        for joint, value in zip(cell.joints, cell.value, strict=True):
            if joint.follows == joint.name:
                self.limits[value] = joint.limits
        self.joint_names = tuple(names)
        self._breaks = cell.breaks()
        self._queries: ArticulatedQueries | None = None
        block = CUDA_BLOCK if self.device.is_cuda else BLOCK
        self._largest = max(block // max(len(self.pairs), 1), 1)

    def __repr__(self) -> str:
        return f"TrajectoryChecker({len(self.cell.names)} bodies, {len(self.pairs)} pairs, on {self.device})"

    def queries(self, steps: int) -> ArticulatedQueries:
        """Room for so many steps, at most as many as are asked at once."""
        room = min(1 << max(steps - 1, 0).bit_length(), self._largest)
        if self._queries is None or self._queries.steps < room:
            cell = self.cell
            self._queries = ArticulatedQueries(
                cell.meshes,
                cell.parts,
                cell.paths,
                self.pairs,
                self._joints,
                len(cell.joints),
                room,
                self.device,
                reduced=self._reduced,
            )
        return self._queries

    @on_own_threads
    def check(
        self,
        q: Arrays,
        *,
        times: Arrays | None = None,
        separation: float = 0.0,
        tolerance: float | None = None,
        clearance: float | None = None,
        accuracy: float = 0.5,
        until: Literal["end", "contact"] = "end",
    ) -> RobotChecks:
        """Check n trajectories.

        Args:
            q: configurations of the whole cell, (n, k, dof); k = 1 asks about single configurations.
            times, separation, tolerance, clearance, accuracy, until: as for `Robot.check`.
        """
        points = configurations_of(q, self.cell.dof, self.joint_names)
        self._refuse_turns(points)
        not_negative(separation, "separation")
        if tolerance is not None:
            not_negative(tolerance, "tolerance")
        if clearance is not None:
            positive(clearance, "clearance")
            if not fraction(accuracy, "accuracy") > 0.0:
                raise InputError(f"accuracy must be above 0 and below 1, not {described(accuracy)}")
        if until not in ("end", "contact"):
            raise InputError(f"until must be 'end' or 'contact', not {described(until)}")
        clock = clock_of(times, points.shape[1])
        question = _Question(self.answering(points), points, clock, float(separation), tolerance, clearance, accuracy)
        question.search(until)
        return question.answer()

    def answering(self, points: np.ndarray) -> TrajectoryChecker:
        """Who answers about configurations, (…, dof): where joints leave their limits, proved pairs are compared."""
        return self._beyond_limits if beyond(points, self.limits).any() else self

    @cached_property
    def _beyond_limits(self) -> TrajectoryChecker:
        """Who answers where joints leave their limits, which is what proofs are for."""
        allowed = self.allowed.without_proofs()
        if allowed is self.allowed:
            return self
        return TrajectoryChecker(self.cell, allowed, device=self.device, threads=self.threads, reduced=self._reduced)

    def _refuse_turns(self, points: np.ndarray) -> None:
        """Raise where a segment turns a joint round and round: the search would follow it."""
        if points.shape[1] < 2 or not points.size or not self.cell.joints:
            return
        factor = np.array([joint.factor if joint.kind == "turning" else 0.0 for joint in self.cell.joints])
        turns = np.abs(np.diff(points, axis=1)).max(axis=(0, 1))[self.cell.value] * np.abs(factor)
        worst = int(turns.argmax())
        if turns[worst] > MOST_TURN:
            name = self.joint_names[self.cell.value[worst]]
            raise InputError(
                f"q turns joint {name!r} by {turns[worst]:.4g} rad in one segment, {MOST_TURN:g} at most: are these"
                " degrees, or are configurations missing?"
            )


def configurations_of(q: Arrays, dof: int, names: tuple[str, ...]) -> np.ndarray:
    """(n, k, dof) numbers, or what is wrong with them."""
    points = to_numpy(q, "q")
    if points.ndim != 3 or points.shape[2] != dof or not points.shape[1]:
        wanted = f"(k, {dof}) or (n, k, {dof})"
        joints = f"the joints {', '.join(names)}" if names else "no joint that moves"
        raise InputError(f"q must have shape {wanted} for {joints}, not {np.shape(q)}")
    if not np.isfinite(points).all():
        i, k, joint = (int(at) for at in np.argwhere(~np.isfinite(points))[0])
        raise InputError(f"q[{i}, {k}] has {points[i, k, joint]} for joint {names[joint]!r}")
    return np.ascontiguousarray(points, np.float64)


def beyond(points: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """(…, dof) whether joints are beyond their limits, (dof, 2)."""
    return (points < limits[:, 0]) | (points > limits[:, 1])


def clock_of(times: Arrays | None, count: int) -> np.ndarray:
    """(k,) when the configurations are reached."""
    if times is None:
        return np.linspace(0.0, 1.0, count) if count > 1 else np.zeros(1)
    clock = to_numpy(times, "times").astype(np.float64)
    if clock.shape != (count,) or not np.isfinite(clock).all() or not (clock[1:] > clock[:-1]).all():
        raise InputError(f"times must be {count} numbers that rise, not {described(times)}")
    if not math.isfinite(float(clock[-1]) - float(clock[0])):
        raise InputError(f"times must not be so far apart: {clock[0]:g} to {clock[-1]:g} is no finite time")
    return clock


class _Question:
    """Trajectories that are being checked: steps are what is searched, segments what is told."""

    def __init__(
        self,
        checker: TrajectoryChecker,
        points: np.ndarray,
        clock: np.ndarray,
        separation: float,
        tolerance: float | None,
        clearance: float | None,
        accuracy: float,
    ) -> None:
        self.checker, self.points, self.clock = checker, points, clock
        self.separation, self.tolerance, self.cap, self.accuracy = separation, tolerance, clearance, accuracy
        count, k, _ = points.shape
        span = (clock - clock[0]) / (clock[-1] - clock[0]) if k > 1 else np.zeros(1)
        # Steps: segments, cut where something given has a break.
        grid = np.union1d(span, checker._breaks) if k > 1 and len(checker._breaks) else span
        if len(grid) != k:
            at = np.clip(np.searchsorted(span, grid, side="right") - 1, 0, k - 2)
            share = ((grid - span[at]) / (span[at + 1] - span[at]))[:, None]
            rows = points[:, at] + share * (points[:, at + 1] - points[:, at])
            rows[:, np.isin(grid, span)] = points  # the same bits
        else:
            rows = points
        self.steps = max(len(grid) - 1, 1)
        self.begin, self.end = (grid[:-1], grid[1:]) if k > 1 else (np.zeros(1), np.zeros(1))
        self.segment = np.clip(np.searchsorted(span, self.begin, side="right") - 1, 0, max(k - 2, 0))
        self.segments = max(k - 1, 1)
        self.width = rows.shape[1]
        self.rows = wp.array(
            rows.reshape(count * self.width, checker.cell.dof), dtype=wp.float64, device=checker.device, ndim=2
        )
        self.given = checker.cell.records(self.begin, self.end)
        shape = count, self.steps
        self.status, self.asked = np.full(shape, _UNRESOLVED, np.uint8), np.zeros(shape, bool)
        self.time, self.upper = np.full(shape, np.inf), np.full(shape, np.inf)
        self.pair = np.full(shape, -1, np.int32)
        self.contacts: list[Contacts] = []
        self.low, self.high, self.near = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
        self.nearest = np.full(shape, -1, np.int32)

    def search(self, until: str) -> None:
        """Ask all steps, or those up to the first contact of each trajectory."""
        count = len(self.points)
        alive = np.arange(count)
        place, size = 0, self.steps if until == "end" else FIRST_WAVE
        while place < self.steps and len(alive):
            stop = min(place + size, self.steps)
            self._ask(np.repeat(alive, stop - place), np.tile(np.arange(place, stop), len(alive)))
            if until == "contact":
                alive = alive[(self.status[alive, place:stop] == _FREE).all(axis=1)]
            place, size = stop, GROWTH * size

    def _ask(self, trajectory: np.ndarray, step: np.ndarray) -> None:
        checker = self.checker
        if not len(checker.pairs):
            self.status[trajectory, step], self.asked[trajectory, step] = _FREE, True
            if self.cap is not None:
                self.low[trajectory, step], self.high[trajectory, step] = self.cap, np.inf
            return
        queries = checker.queries(len(step))
        for first in range(0, len(step), queries.steps):
            rows = slice(first, first + queries.steps)
            self._ask_block(queries, trajectory[rows], step[rows])

    def _ask_block(self, queries: ArticulatedQueries, trajectory: np.ndarray, step: np.ndarray) -> None:
        begin = trajectory * self.width + step
        end = begin + (1 if self.width > 1 else 0)
        given = self.given if len(self.given) == 1 else self.given[step]
        lengths: dict[str, Any] = {"separation": self.separation, "tolerance": self.tolerance}
        self.asked[trajectory, step] = True
        self.status[trajectory, step] = _FREE
        open_ = np.arange(len(step))
        if self.cap is not None:
            queries.ask(self.rows, begin, end, given, beyond=(1.0 - self.accuracy) * self.cap, **lengths)
            nearest, lower, pair = queries.least(np.full(len(step), self.cap), self.accuracy)
            seen = pair >= 0
            self.low[trajectory, step], self.nearest[trajectory, step] = lower, pair
            self.high[trajectory, step] = np.where(seen, nearest["upper"], np.inf)
            self.near[trajectory, step] = np.where(seen, self._on_clock(nearest["time"], step), np.nan)
            # What stays farther apart than a contact is has none.
            open_ = np.flatnonzero(lower <= self.separation + queries.tolerance)
            if not len(open_):
                return
            trajectory, step, begin, end = trajectory[open_], step[open_], begin[open_], end[open_]
            given = given if len(given) == 1 else given[open_]
        queries.ask(self.rows, begin, end, given, **lengths)
        hits = queries.search()
        touching = np.flatnonzero(hits["pair"] >= 0)
        if len(touching):
            status, upper, contacts = queries.details(touching, hits[touching])
            i, k = trajectory[touching], step[touching]
            self.status[i, k], self.pair[i, k] = status, hits["pair"][touching]
            self.time[i, k] = self._on_clock(contacts.time, k)
            self.upper[i, k] = self._on_clock(upper, k)
            contacts.query[:] = i * self.steps + k
            contacts.time[:] = self.time[i, k]
            self.contacts.append(contacts)
            if self.cap is not None:
                self._touch(i, k, contacts.gap, status)

    def _touch(self, i: np.ndarray, k: np.ndarray, gap: np.ndarray, status: np.ndarray) -> None:
        """Steps with a contact: their clearance is no more than its gap."""
        upper = np.where((status == _START) & (self.separation == 0.0), 0.0, np.maximum(gap, 0.0))
        nearer = upper < self.high[i, k]
        i, k, upper = i[nearer], k[nearer], upper[nearer]
        self.high[i, k], self.near[i, k], self.nearest[i, k] = upper, self.time[i, k], self.pair[i, k]
        self.low[i, k] = np.minimum(self.low[i, k], upper)

    def _on_clock(self, time: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Times within steps on the clock of the trajectory."""
        begin, end, clock = self.begin[step], self.end[step], self.clock
        share = begin + (end - begin) * time
        return np.where(np.isfinite(time), clock[0] + (clock[-1] - clock[0]) * share, np.inf)

    def answer(self) -> RobotChecks:
        """What the steps say of the segments and of whole trajectories."""
        pairs = self.checker.pairs
        segments = self._segments()
        hit = (self.status != _FREE) & self.asked
        first = np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
        rows = np.arange(len(first))
        touching = first >= 0
        status = np.where(touching, self.status[rows, first], _FREE).astype(np.uint8)
        status[(status == _START) & (first > 0)] = _CONTACT
        time = np.where(touching, self.time[rows, first], np.inf)
        bodies = np.full((len(first), 2), -1, np.int32)
        bodies[touching] = pairs[self.pair[rows, first][touching]]
        found = Contacts.joined(self.contacts) if self.contacts else Contacts()
        found = found[np.isin(found.query, rows[touching] * self.steps + first[touching])]
        found = found[np.argsort(found.query, kind="stable")]
        found.query[:] = found.query // self.steps
        broken, limit_time = self._limits()
        valid = np.minimum(np.minimum(time, limit_time), self.clock[-1])
        valid[(status == _START) | (limit_time == self.clock[0]) & broken.any(axis=1)] = np.nan
        return RobotChecks(
            status,
            time,
            np.where(touching, self.upper[rows, first], np.inf),
            bodies[:, 0],
            bodies[:, 1],
            np.where(touching, self.segment[first], -1),
            found,
            segments,
            broken,
            valid,
            self.points,
            self.clock,
            self.checker.joint_names,
            self.checker.allowed,
            len(pairs),
        )

    def _segments(self) -> TrajectorySegments:
        """The earliest and the nearest of the steps of each segment."""
        pairs, names = self.checker.pairs, tuple(self.checker.cell.names)
        count = len(self.points)
        starts = np.searchsorted(self.segment, np.arange(self.segments))
        if self.steps == self.segments:
            status, asked, time, upper, pair = self.status, self.asked, self.time, self.upper, self.pair
            low, high, near, nearest = self.low, self.high, self.near, self.nearest
        else:
            rows = np.arange(count)[:, None]
            chosen = np.stack([self._earliest(k) for k in range(self.segments)], axis=1)
            status = self.status[rows, chosen].copy()
            status[(status == _START) & (chosen > starts)] = _CONTACT
            asked = np.logical_and.reduceat(self.asked, starts, axis=1)
            time, upper, pair = (column[rows, chosen] for column in (self.time, self.upper, self.pair))
            low = np.minimum.reduceat(self.low, starts, axis=1)
            least = np.stack(
                [s + np.argmin(part, axis=1) for s, part in zip(starts, np.split(self.high, starts[1:], axis=1))],
                axis=1,
            )
            high, near, nearest = (column[rows, least] for column in (self.high, self.near, self.nearest))
        bodies = pairs if len(pairs) else np.full((1, 2), -1, np.int32)
        a, b = (np.where(pair >= 0, bodies[pair, side], -1) for side in range(2))
        c, d = (np.where(nearest >= 0, bodies[nearest, side], -1) for side in range(2))
        beyond = self._beyond().any(axis=2)
        limit = beyond[:, :-1] | beyond[:, 1:] if beyond.shape[1] > 1 else beyond
        return TrajectorySegments(status, asked, time, upper, a, b, limit, low, high, near, c, d, names)

    def _earliest(self, segment: int) -> np.ndarray:
        """(n,) the first step of a segment that is not free, or its first."""
        steps = np.flatnonzero(self.segment == segment)
        return steps[0] + (self.status[:, steps] != _FREE).argmax(axis=1)

    def _beyond(self) -> np.ndarray:
        return beyond(self.points, self.checker.limits)

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Which joints leave their limits, (n, dof), and when the first of them does, (n,)."""
        beyond, limits = self._beyond(), self.checker.limits
        broken = beyond.any(axis=1)
        when = np.full(len(self.points), np.inf)
        rows, joints = np.nonzero(broken)
        first = beyond.argmax(axis=1)[rows, joints]
        time = np.full(len(rows), self.clock[0])
        late = np.flatnonzero(first > 0)
        i, k, joint = rows[late], first[late], joints[late]
        before, after = self.points[i, k - 1, joint], self.points[i, k, joint]
        limit = np.where(after > before, limits[joint, 1], limits[joint, 0])
        time[late] = self.clock[k - 1] + (limit - before) / (after - before) * (self.clock[k] - self.clock[k - 1])
        np.minimum.at(when, rows, time)
        return broken, when

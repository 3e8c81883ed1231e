"""Where agents go: the waypoints of each, and how far along they are.

Question: which waypoints does an agent have, which is next, and how fast does it want to go there?
Method:   routes are flat arrays (agent n owns a range of them), so that a million goals cost no more than their
          numbers.
Known as: lists of goals (Pitiot 2015, sections 8.1 and 8.2.2); preferred velocity (van den Berg et al. 2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND, Arrays, InputError, described, to_numpy

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
#: A waypoint may be passed at so many times the distance that counts as near: others may be in the way.
_PASSING = wp.constant(wp.float64(4.0))
#: An agent brakes for its last goal over this time [s].
_BRAKING = wp.constant(wp.float64(0.5))

#: (n, 2 | 3), or for each agent its waypoints (k, 2 | 3); None: none.
Goals = Arrays | Sequence[Arrays] | None


@wp.struct
class Routes:
    """Waypoints of agent n: points[begin[n]] … points[end[n] - 1]; current[n] is the next, end[n] when done."""

    points: wp.array[wp.vec3d]
    begin: wp.array[int]
    end: wp.array[int]
    current: wp.array[int]
    repeat: wp.array[int]
    arrived: wp.array[wp.float64]  # when it was done, for the first time [s]; inf before
    has_detour: wp.array[int]  # 1: the waypoint is hidden, and a place from where to go on comes first
    detour: wp.array[wp.vec3d]
    goal_radius: wp.float64  # a waypoint is reached within this distance [m]


@dataclass(frozen=True)
class WaypointLists:
    """The waypoints of agents, one after the other."""

    points: np.ndarray  #: (k, 3) [m]
    sizes: np.ndarray  #: (n,) how many each agent has

    @classmethod
    def of(cls, goals: Goals, count: int, dimension: int = 2) -> WaypointLists:
        """Those a user gives for `count` agents; goals of the plane (`dimension` 2) get z = 0."""
        if goals is None:
            return cls(np.empty((0, 3)), np.zeros(count, np.int64))
        try:
            goal_count = len(goals)
        except TypeError as error:  # a number, or an array of one
            raise InputError(f"goals must be one for each agent, not {described(goals)}") from error
        if goal_count != count:
            raise InputError(f"goals: there are {goal_count} for {count} agents")
        if isinstance(goals, np.ndarray) and goals.ndim == 2 and goals.dtype != object:
            rows, sizes = to_numpy(goals, "goals"), np.ones(count, np.int64)
            if rows.shape[1] not in (dimension, 3):
                raise InputError(f"goals must have shape (n, {dimension}) or (n, 3), not {rows.shape}")
            points = _in_space(rows)
        else:
            each = [_waypoints(number, goal, dimension) for number, goal in enumerate(goals)]
            points = np.concatenate([np.empty((0, 3)), *each])
            sizes = np.array([len(way) for way in each], np.int64)
        wrong = ~np.isfinite(points).all(axis=1)
        if wrong.any():
            number = int(np.searchsorted(np.cumsum(sizes), np.argmax(wrong), side="right"))
            raise InputError(f"goals: agent {number} has a waypoint that is not finite")
        return cls(points, sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def begins(self) -> np.ndarray:
        """(n,) the place of each agent's first waypoint."""
        return np.cumsum(self.sizes) - self.sizes

    def with_more(self, more: WaypointLists) -> WaypointLists:
        """With those of more agents."""
        return WaypointLists(np.concatenate([self.points, more.points]), np.concatenate([self.sizes, more.sizes]))

    def replaced(self, numbers: np.ndarray, ways: WaypointLists) -> WaypointLists:
        """With other ones for some agents."""
        begins, sizes = self.begins, self.sizes.copy()
        begins[numbers], sizes[numbers] = len(self.points) + ways.begins, ways.sizes
        return WaypointLists(np.concatenate([self.points, ways.points])[_ranges(begins, sizes)], sizes)


def routes_of(ways: WaypointLists, traits: dict[str, np.ndarray], device: wp.Device) -> Routes:
    """Routes for kernels. Traits: repeat, arrived, and waypoints done (see `route_progress`)."""
    r = Routes()
    r.points = wp.array(ways.points, dtype=wp.vec3d, device=device)
    begins = ways.begins
    columns = {
        "begin": begins,
        "end": begins + ways.sizes,
        "current": begins + traits["done"],
        "repeat": traits["repeat"],
    }
    for name, values in columns.items():
        setattr(r, name, wp.array(values.astype(np.int32), dtype=wp.int32, device=device))
    r.has_detour = wp.zeros(len(ways), dtype=wp.int32, device=device)
    r.detour = wp.zeros(len(ways), dtype=wp.vec3d, device=device)
    r.arrived = wp.array(traits["arrived"], dtype=wp.float64, device=device)
    return r


def route_progress(r: Routes) -> dict[str, np.ndarray]:
    """How far along everybody is, as traits: with it routes may be sent again."""
    return {"done": r.current.numpy().astype(np.int64) - r.begin.numpy(), "arrived": r.arrived.numpy().copy()}


def first_headings(ways: Sequence[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """(n, d) from each start towards the first waypoint that is not there; any direction where there is none."""
    headings = np.tile(np.array([1.0, 0.7, 0.3])[: starts.shape[1]], (len(starts), 1))
    for heading, way, start in zip(headings, ways, starts, strict=True):
        away = way - start
        far = np.linalg.norm(away, axis=1) > 1e-6
        if far.any():
            heading[:] = away[np.argmax(far)]
    return headings


def _ranges(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """begins[n], begins[n] + 1, … sizes[n] times, for each n."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes), sizes)


def _waypoints(number: int, goal: Any, dimension: int) -> np.ndarray:
    way = np.atleast_2d(to_numpy(goal, f"goals: that of agent {number}"))
    if way.ndim != 2 or way.shape[1] not in (dimension, 3):
        wanted = f"(k, {dimension}) or (k, 3)"
        raise InputError(f"goals: those of agent {number} must have shape {wanted}, not {way.shape}")
    return _in_space(way)


def _in_space(points: np.ndarray) -> np.ndarray:
    return np.concatenate([points, np.zeros((len(points), 3 - points.shape[1]))], axis=1)


@wp.func
def _is_reached(r: Routes, at: int, end: int, x: wp.vec3d) -> bool:
    """Whether waypoint `at` is reached: x is near it or, before the last one, beside it and past it."""
    square = wp.length_sq(r.points[at] - x)
    if square <= r.goal_radius * r.goal_radius:
        return True
    if at + 1 == end:
        return False
    return (
        square <= _PASSING * _PASSING * r.goal_radius * r.goal_radius
        and wp.dot(x - r.points[at], r.points[at + 1] - r.points[at]) > _ZERO
    )


@wp.func
def preferred_velocity(r: Routes, n: int, x: wp.vec3d, speed: wp.float64, time: wp.float64) -> wp.vec3d:
    """The velocity agent n wants at x, all else apart; goes on to the next waypoint where one is reached."""
    at = int(r.current[n])
    end = r.end[n]
    turned = bool(False)
    while at < end and _is_reached(r, at, end, x):
        at += 1
        if at == end:
            r.arrived[n] = wp.min(r.arrived[n], time)
            if r.repeat[n] == 1 and not turned:
                at = r.begin[n]
                turned = True
    r.current[n] = at
    if at >= end:
        if r.repeat[n] == 1:
            r.current[n] = int(r.begin[n])  # here all are reached at once; whoever is pushed away comes back
        return wp.vec3d()
    way = r.points[at] - x
    if r.has_detour[n] == 1:
        way = r.detour[n] - x
    length = wp.length(way)
    fast = speed
    if at == end - 1 and r.repeat[n] == 0 and r.has_detour[n] == 0:
        fast = wp.min(speed, length / _BRAKING)
    return way * (fast / wp.max(length, wp.float64(1.0e-12)))

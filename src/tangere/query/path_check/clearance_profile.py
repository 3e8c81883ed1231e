"""How far is a part from its obstacles along a path, and how near does it come at the least?

Method:   the distance is measured at regular instants and where segments touch (`distance`). The least of them bounds
          a search of all segments (`tangere.query.clearance`), which finds where the part comes nearer in between.
Sound:    between two instants no point of the part moves farther than `way`, so the distance is at least
          (lower before + lower after - way) / 2; and at least the separation where the search for contacts certified
          it, and the lower bound that the search for the least clearance found for the segment.
Known as: clearance (distance) profile of a trajectory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Path, Rest
from tangere.query.clearance.api import search_clearance
from tangere.query.containment.api import starting_inside
from tangere.query.distance.api import distance
from tangere.query.first_contact.options import RigidOptions
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies, bodies_of
from tangere.query.path_check.segments import PathSegments, path_segment
from tangere.runtime import text_below

#: Segments asked at a time: enough to keep every core busy, few enough to tell of progress.
BLOCK = 64


@dataclass(frozen=True, eq=False)
class Clearance:
    """Distance of the part to the nearest obstacle at instants on the path, contacts among them."""

    time: np.ndarray  #: (m,) along the path, rising from 0 to 1
    lower: np.ndarray  #: (m,) the true distance is not smaller [m]
    upper: np.ndarray  #: (m,) … and not larger [m]; both 0 where they overlap
    obstacle: np.ndarray  #: (m,) number of the nearest one
    between: np.ndarray  #: (m - 1,) the distance is not smaller at any time between two instants [m]

    def __repr__(self) -> str:
        return f"Clearance({self.told}; {len(self.time)} instants)"

    @property
    def told(self) -> str:
        """The least distance, from below and from above, and when."""
        return f"{text_below(self.certain)} to {self.least:.6g} m at t={self.least_time:.9g}"

    @property
    def least(self) -> float:
        """The least distance on the path, from above [m]: 0 where contact is certain, else at most its gap."""
        return float(self.upper.min())

    @property
    def least_time(self) -> float:
        """When that is, along the path."""
        return float(self.time[self.upper.argmin()])

    @property
    def certain(self) -> float:
        """The least distance on the path, from below [m]: at least the separation of a free path, and (1 - accuracy)
        of `least` or of the cap."""
        return float(min(self.lower.min(), self.between.min()))

    def with_skin(self, thickest: float) -> Clearance:
        """That of a part which was measured without its skin: it may be nearer by the thickest of the skin."""
        lower, between = (np.maximum(column - thickest, 0.0) for column in (self.lower, self.between))
        return replace(self, lower=lower, between=between)


@dataclass(frozen=True, eq=False)
class PathQuestion:
    """A part, its path and what is in the way."""

    part: Any  #: a Mesh; see `bodies` for others
    obstacles: list[Any]
    path: Path
    separation: float
    tolerance: float | None
    solid: bool  #: a part inside an obstacle touches it
    device: str | wp.Device | None
    progress: Callable[[int, int], object] | None

    def first_contacts(self, obstacle: Any, block: slice) -> FirstContacts:
        """Of each segment of a block with an obstacle."""
        found = rigid_first_contacts(
            MovingBodies((self.part,), self.path.segments[block]),
            obstacle,
            separation=self.separation,
            tolerance=self.tolerance,
            details=False,
            device=self.device,
        )
        if self.solid:
            starts = self.part.moving(Rest(self.path.pose(self.path.times[:-1][block])))
            found = starting_inside(found, starts, obstacle, device=self.device)
        return found

    def hit(self, segment: int, obstacle: Any) -> FirstContact:
        """All that touches at the first contact of a segment."""
        moving = self.part.moving(self.path.segments[segment])
        asked = {"separation": self.separation, "tolerance": self.tolerance, "device": self.device}
        found = rigid_first_contact(moving, obstacle, options=RigidOptions(contacts="all"), **asked)
        return starting_inside(found, moving, obstacle, device=self.device) if self.solid else found

    def nearest(self, obstacle: Any, block: slice, bound: float, accuracy: float) -> tuple[np.ndarray, ...]:
        """Of each segment of a block: when it is nearer to an obstacle than `bound` (-1: never), and how near; and how
        near it certainly does not come."""
        bounds = np.full(len(self.path.times[:-1][block]), bound)
        found, lower = search_clearance(
            MovingBodies((self.part,), self.path.segments[block]),
            bodies_of(obstacle, "obstacle"),
            bounds,
            accuracy=accuracy,
            tolerance=self.tolerance,
            device=self.device,
        )
        return found["time"], found["upper"], lower

    @property
    def ball(self) -> tuple[np.ndarray, float]:
        """Centre and radius of a ball around the part, in its own frame [m]."""
        centre = 0.5 * (self.part.bounds[0] + self.part.bounds[1])
        return centre, float(np.linalg.norm(self.part.vertices - centre, axis=1).max())

    def blocks(self, part: int) -> Iterator[tuple[int, Any, slice]]:
        """Every obstacle with every block of segments; tells of progress after each, in one of two parts of it."""
        starts = range(0, len(self.path), BLOCK)
        steps = count(part * len(self.obstacles) * len(starts) + 1)
        for number, obstacle in enumerate(self.obstacles):
            for first in starts:
                yield number, obstacle, slice(first, first + BLOCK)
                if self.progress is not None:
                    self.progress(next(steps), 2 * len(self.obstacles) * len(starts))

    def distances(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From below and from above, each (obstacles, len(times)) [m]."""
        poses = self.path.pose(times)
        part = self.part.moving(Rest(poses))
        found = [distance(part, each, solid=self.solid, device=self.device) for each in self.obstacles]
        return np.stack([each.lower for each in found]), np.stack([each.upper for each in found])


def clearance_profile(
    question: PathQuestion, segments: PathSegments, *, instants: int, accuracy: float, cap: float
) -> Clearance:
    """Distances at regular instants, where segments touch, and where the part comes nearest."""
    path = question.path
    share = np.arange(instants) / instants
    times = np.append((path.times[:-1, None] + np.diff(path.times)[:, None] * share).ravel(), 1.0)
    certain = segments.touching[np.isfinite(segments.time_upper[segments.touching])]
    if len(segments.touching):
        times = np.unique(np.concatenate([times, segments.time[segments.touching], segments.time_upper[certain]]))
    lower, upper = question.distances(times)
    # Contact is certain there whatever rounding does to the pose.
    reached = segments.obstacle[certain], np.searchsorted(times, segments.time_upper[certain])
    upper[reached] = np.minimum(upper[reached], question.separation)
    lower[reached] = np.minimum(lower[reached], upper[reached])

    dips, kept = _search_between(question, float(min(upper.min(), cap)), accuracy)
    dips = np.setdiff1d(dips, times)
    if len(dips):
        rows = np.searchsorted(times, dips)
        times = np.insert(times, rows, dips)
        measured = question.distances(dips)
        lower, upper = (np.insert(old, rows, new, axis=1) for old, new in zip((lower, upper), measured, strict=True))

    nearest = np.argmin(upper, axis=0)
    least, most = lower.min(axis=0), upper[nearest, np.arange(len(times))]
    between = np.maximum(0.5 * (least[:-1] + least[1:] - _way(question.ball, path, times)), 0.0)
    free = segments.certified(path, times)
    between = np.maximum(between, np.where(free, question.separation, 0.0))
    between = np.maximum(between, kept[path_segment(path, times[:-1])])
    # What is certified of a stretch holds at both its ends, but for contacts with the separation.
    touching = np.isin(times, segments.time[segments.touching])
    ends = (np.append(free, False) | np.append(False, free)) & ~touching
    least[ends] = np.maximum(least[ends], question.separation)
    least = np.maximum(least, kept[path_segment(path, times)])
    return Clearance(times, np.minimum(least, most), most, nearest, between)


def _search_between(question: PathQuestion, bound: float, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    """Times when segments are nearer than `bound`, and how near each one certainly does not come, (segments,)."""
    path, obstacles = question.path, question.obstacles
    kept = np.full((len(obstacles), len(path)), np.inf)
    seen, when = np.full(kept.shape, np.inf), np.full(kept.shape, np.nan)
    for number, obstacle, block in question.blocks(1):
        if bound > 0.0:  # else there is a contact, and nothing nearer
            times, upper, kept[number, block] = question.nearest(obstacle, block, bound, accuracy)
            seen[number, block] = np.where(times >= 0.0, upper, np.inf)
            when[number, block] = np.where(times >= 0.0, times, np.nan)
        else:
            kept[number, block] = 0.0
    nearest = np.argmin(seen, axis=0)
    rows = np.flatnonzero(np.isfinite(seen.min(axis=0)))
    times = path.times[rows] + when[nearest[rows], rows] * np.diff(path.times)[rows]
    return times, kept.min(axis=0)


def _way(ball: tuple[np.ndarray, float], path: Path, times: np.ndarray) -> np.ndarray:
    """(m - 1,) how far any point of the part goes between two times at most [m]: rates are constant along a screw."""
    middle = 0.5 * (times[:-1] + times[1:])
    angular, linear = path.twist(middle)
    centre, radius = ball
    pose = path.pose(middle)
    at = pose[:, :3, :3] @ centre + pose[:, :3, 3]
    speed = np.linalg.norm(linear + np.cross(angular, at), axis=1) + np.linalg.norm(angular, axis=1) * radius
    return speed * np.diff(times) * (1.0 + 1e-9)

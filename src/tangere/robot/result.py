"""What a check of robot trajectories tells: of each segment, of each trajectory, with the names of what touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.query.clearance import reached_accuracy
from tangere.query.contacts import Contacts, Status
from tangere.robot.allowed_pairs import AllowedPairs
from tangere.runtime import text_below, view_room


@dataclass(frozen=True, eq=False)
class LastValid:
    """How far a trajectory may be followed."""

    time: float  #: on the clock of the trajectory
    configuration: np.ndarray  #: (dof,) there
    segment: int
    fraction: float  #: of that segment, in [0, 1]


@dataclass(frozen=True, eq=False)
class TrajectorySegments:
    """The segments of one trajectory, or of n: every array has shape (segments,), or (n, segments)."""

    status: np.ndarray  #: `Status`; UNRESOLVED at its start where a segment was not asked about
    asked: np.ndarray  #: whether the segment was looked at, or came after a contact that was enough
    time: np.ndarray  #: of the first contact, on the clock of the trajectory; inf where there is none
    time_upper: np.ndarray  #: contact is certain by then; inf where unknown
    body_a: np.ndarray  #: number of the body in contact, see `names`; -1
    body_b: np.ndarray
    limit_broken: np.ndarray  #: whether a joint is beyond its limits at a time of the segment
    clearance_lower: np.ndarray  #: no two bodies come nearer [m]; NaN where not asked
    clearance_upper: np.ndarray  #: … and two once come as near as this [m]; inf where farther than was asked for
    clearance_time: np.ndarray  #: when, on the clock of the trajectory; NaN where clearance_upper is inf
    clearance_a: np.ndarray  #: which two bodies; -1
    clearance_b: np.ndarray
    names: tuple[str, ...]  #: of all bodies

    def __len__(self) -> int:
        return self.status.shape[-1]

    def __repr__(self) -> str:
        free = int((self.status == Status.FREE).sum())
        return f"TrajectorySegments({free} of {self.status.size} free)"

    @property
    def pair(self) -> list[Any]:
        """The names of the two bodies that first touch in each segment; None where none do; nested for n."""
        return _named(self.body_a, self.body_b, self.names)

    @property
    def clearance_pair(self) -> list[Any]:
        """The names of the two bodies that come nearest in each segment; None where not asked or far."""
        return _named(self.clearance_a, self.clearance_b, self.names)

    @property
    def clearance_accuracy(self) -> np.ndarray:
        """What was reached: clearance_lower is (1 - clearance_accuracy) clearance_upper; NaN where that is inf or was
        not asked, 0 where both are 0."""
        return reached_accuracy(self.clearance_lower, self.clearance_upper)

    def of(self, trajectory: int) -> TrajectorySegments:
        """The segments of one of n trajectories."""
        columns = {name: value[trajectory] for name, value in vars(self).items() if name != "names"}
        return TrajectorySegments(**columns, names=self.names)


@dataclass(frozen=True, eq=False)
class RobotCheck:
    """Whether a trajectory touches anything; true if it does."""

    status: Status
    time: float  #: of the first contact, never too late, on the clock of the trajectory; inf if there is none
    time_upper: float  #: contact is certain by then; inf where unknown
    pair: tuple[str, str] | None  #: the bodies that touch then
    segment: int | None  #: in which it is
    contact: Contacts  #: that contact in the world: one row, or none
    segments: TrajectorySegments
    limits_broken: tuple[str, ...]  #: joints that leave their limits
    last_valid: LastValid | None  #: until the first contact or the first limit; None where the start is not valid
    ignored: AllowedPairs  #: pairs that were not compared, and why
    compared: int  #: pairs that were

    def __bool__(self) -> bool:
        return self.status != Status.FREE

    @property
    def valid(self) -> bool:
        """Whether nothing touches and no joint leaves its limits."""
        return not self and not self.limits_broken

    @property
    def clearance(self) -> tuple[float, float]:
        """The least distance of any two bodies on the whole trajectory, from below and from above [m]; NaN if not
        asked."""
        low, high = self.segments.clearance_lower, self.segments.clearance_upper
        return float(low.min(initial=np.inf)), float(high.min(initial=np.inf))

    def __repr__(self) -> str:
        told = [str(self.status)]
        if self.pair is not None:
            told = [f"{self.status} at t={text_below(self.time, 9)}", f"{self.pair[0]} - {self.pair[1]}"]
        told.append(f"{len(self.segments)} segments x {self.compared} pairs")
        if np.isfinite(self.clearance[0]):
            low, high = self.clearance
            told.append(f"clearance {text_below(low, 4)} to {high:.4g} m")
        if self.limits_broken:
            told.append(f"beyond the limits of {', '.join(self.limits_broken)}")
        if len(self.ignored):
            told.append("not compared: " + ", ".join(f"{n} {why}" for why, n in self.ignored.counts().items()))
        return f"RobotCheck({'; '.join(told)})"

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, what touches, what was left out."""
        facts = {"status": str(self.status), "segments": str(len(self.segments)), "pairs": str(self.compared)}
        if self.pair is not None:
            facts |= {"time": text_below(self.time, 9), "bodies": " and ".join(self.pair)}
        if np.isfinite(self.clearance[0]):
            low, high = self.clearance
            facts["clearance"] = f"{text_below(low)} to {high:.6g} m"
        if self.limits_broken:
            facts["beyond limits"] = ", ".join(self.limits_broken)
        facts["not compared"] = ", ".join(f"{n} {why}" for why, n in self.ignored.counts().items()) or "none"
        return view_room().html("RobotCheck", facts)


@dataclass(frozen=True, eq=False)
class RobotChecks:
    """Whether each of n trajectories touches anything; `checks[i]` is one of them."""

    status: np.ndarray  #: (n,) `Status`
    time: np.ndarray  #: (n,) of the first contact; inf
    time_upper: np.ndarray  #: (n,)
    body_a: np.ndarray  #: (n,) which bodies, see `segments.names`; -1
    body_b: np.ndarray
    segment: np.ndarray  #: (n,) -1
    contacts: Contacts  #: the first contact of each trajectory that has one; `query` says of which
    segments: TrajectorySegments  #: (n, segments)
    limit_broken: np.ndarray  #: (n, dof)
    last_valid: np.ndarray  #: (n,) time until which a trajectory may be followed; NaN where its start is not valid
    configurations: np.ndarray  #: (n, k, dof)
    times: np.ndarray  #: (k,) the clock
    joint_names: tuple[str, ...]
    ignored: AllowedPairs
    compared: int

    def __len__(self) -> int:
        return len(self.status)

    def __repr__(self) -> str:
        touching = int((self.status != Status.FREE).sum())
        left = f"; not compared: {len(self.ignored)} pairs" if len(self.ignored) else ""
        return f"RobotChecks({touching} of {len(self)} trajectories touch; {self.compared} pairs{left})"

    @property
    def valid(self) -> np.ndarray:
        """(n,) whether nothing touches and no joint leaves its limits."""
        return (self.status == Status.FREE) & ~self.limit_broken.any(axis=1)

    @property
    def pair(self) -> list[tuple[str, str] | None]:
        """The names of the two bodies that first touch on each trajectory."""
        return _named(self.body_a, self.body_b, self.segments.names)

    def __getitem__(self, trajectory: int) -> RobotCheck:
        i = range(len(self))[trajectory]
        rows = np.flatnonzero(self.contacts.query == i)
        hit = self.status[i] != Status.FREE
        broken = tuple(name for name, out in zip(self.joint_names, self.limit_broken[i], strict=True) if out)
        return RobotCheck(
            Status(int(self.status[i])),
            float(self.time[i]),
            float(self.time_upper[i]),
            self.pair[i],
            int(self.segment[i]) if hit else None,
            self.contacts[rows],
            self.segments.of(i),
            broken,
            self._last_valid(i),
            self.ignored,
            self.compared,
        )

    def _last_valid(self, i: int) -> LastValid | None:
        time = float(self.last_valid[i])
        if np.isnan(time):
            return None
        times, points = self.times, self.configurations[i]
        if len(points) == 1:
            return LastValid(time, points[0], 0, 0.0)
        segment = int(np.clip(np.searchsorted(times, time, side="right") - 1, 0, len(times) - 2))
        share = (time - times[segment]) / (times[segment + 1] - times[segment])
        at = points[segment] + share * (points[segment + 1] - points[segment])
        return LastValid(time, at, segment, float(share))


def _named(a: np.ndarray, b: np.ndarray, names: tuple[str, ...]) -> list[Any]:
    if a.ndim > 1:
        return [_named(one, other, names) for one, other in zip(a, b, strict=True)]
    return [(names[i], names[j]) if i >= 0 else None for i, j in zip(a.tolist(), b.tolist(), strict=True)]

"""Which links of a robot touch: never, sometimes or always; by samples, and by proof.

Question: which pairs of links need not be compared, and which must be?
Method:   random configurations within the limits; how often each pair touched is counted. Of pairs that no sample saw
          touching it may be proved that none ever does (`never_touching`).
Sound:    what was never seen touching may touch: only "never" is proved. What touched in all samples is ignored by
          default, for it hides all else; what it touches elsewhere on the two links is then hidden as well.
Known as: self-collision matrix generation (MoveIt Setup Assistant), there by sampling alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from tangere.robot.allowed_pairs import PROVED, AllowedPairs
from tangere.robot.never_touching import prove_never
from tangere.robot.trajectory_checker import TrajectoryChecker
from tangere.robot.workcell import Workcell
from tangere.runtime import random_source, using_threads, view_room, whole
from tangere.shape.robot import RobotDescription

if TYPE_CHECKING:
    from tangere.robot.robot import Robot

#: What is taken for joints without limits: a whole turn, or a metre to either side.
WHOLE_TURN, FAR = np.pi, 1.0
#: A range of more than this is as good as none [rad].
MOST_TURN = 8.0 * np.pi


@dataclass(frozen=True, eq=False)
class TouchingPair:
    """What is known of two links."""

    pair: tuple[str, str]
    verdict: str  #: "never" (proved), "touches", "always" (in all samples), "open" (never seen, not proved)
    count: int  #: samples in which they touched
    adjacent: bool  #: whether a joint lies between them and no other link with a body
    configuration: np.ndarray | None  #: (dof,) at which they touch, where one is known
    cells: int  #: parts of the joints' ranges that the proof looked at


@dataclass(frozen=True, eq=False)
class TouchingTable:
    """What is known of all pairs of links that can move against each other."""

    rows: tuple[TouchingPair, ...]
    samples: int

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TouchingPair]:
        return iter(self.rows)

    def __getitem__(self, pair: tuple[str, str]) -> TouchingPair:
        return next(row for row in self.rows if set(row.pair) == set(pair))

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items())
        return f"TouchingTable({len(self)} pairs, {self.samples} samples: {told})"

    def _repr_html_(self) -> str:
        """For notebooks: how many pairs there are of each kind."""
        return view_room().html("TouchingTable", {"samples": str(self.samples)} | _texts(self.counts()))

    def counts(self) -> dict[str, int]:
        """How many pairs have each verdict."""
        verdicts = [row.verdict for row in self.rows]
        return {name: verdicts.count(name) for name in ("always", "touches", "never", "open") if name in verdicts}

    @property
    def allowed(self) -> AllowedPairs:
        """What need not be compared: pairs that touched in all samples, and those that were proved never to touch."""
        always = f"touched in all {self.samples} samples"
        reasons = {"always": always, "never": PROVED}
        return AllowedPairs({_sorted(row.pair): reasons[row.verdict] for row in self.rows if row.verdict in reasons})


def touching_table(
    robot: Robot,
    samples: int,
    *,
    prove: bool,
    cells: int,
    seed: int,
    progress: bool,
    device: str | wp.Device | None,
    threads: int | None,
) -> TouchingTable:
    """See `Robot.touching`."""
    samples, cells = whole(samples, "samples", 1), whole(cells, "cells", 1)
    checker = TrajectoryChecker(Workcell({"": robot}), AllowedPairs(), device=device, threads=threads)
    ranges, whole_ranges = sampled_ranges(checker.limits, robot)
    points = random_source(seed, "seed").uniform(ranges[:, 0], ranges[:, 1], (samples, len(ranges)))
    with using_threads(threads):
        counts, seen = count_contacts(checker, points)
        neighbours = _neighbours(robot)
        rows = []
        names = checker.cell.names
        for k, (a, b) in enumerate(_shown(checker.pairs, progress and prove)):
            pair, count = (names[a], names[b]), int(counts[k])
            verdict, at, done = "touches", points[seen[k]] if count else None, 0
            if count == samples:
                verdict = "always"
            elif not count:
                verdict = "open"
                if prove:
                    verdict, at, done = prove_never(checker, int(a), int(b), ranges, whole_ranges, cells)
            rows.append(TouchingPair(pair, verdict, count, frozenset(pair) in neighbours, at, done))
    return TouchingTable(tuple(rows), samples)


def sampled_ranges(limits: np.ndarray, robot: RobotDescription) -> tuple[np.ndarray, np.ndarray]:
    """(dof, 2) finite ranges of the joints; and of which of them, (dof,), these are all there is."""
    kinds = {joint.name: joint.kind for joint in robot.joints}
    reach = np.array([FAR if kinds[name] == "sliding" else WHOLE_TURN for name in robot.joint_names])
    low, high = limits.T
    some = np.stack(
        [np.where(np.isfinite(high), high - 2.0 * reach, -reach), np.where(np.isfinite(low), low + 2.0 * reach, reach)],
        axis=1,
    )
    ranges = np.where(np.isfinite(limits), limits, some)
    # A joint that goes round and round is everywhere within a turn, unless another follows it at another rate.
    led = {joint.follows for joint in robot.joints if joint.follows != joint.name}
    alone = np.array([kinds[name] == "turning" and name not in led for name in robot.joint_names], bool)
    round_and_round = alone & (ranges[:, 1] - ranges[:, 0] > MOST_TURN)
    ranges = np.where(round_and_round[:, None], np.stack([-reach, reach], axis=1), ranges)
    return ranges, alone | np.isfinite(limits).all(axis=1)


def count_contacts(checker: TrajectoryChecker, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In how many configurations, (n, dof), each pair touches, and in which for the first time, (pairs,) each."""
    pairs = len(checker.pairs)
    counts, seen = np.zeros(pairs, np.int64), np.full(pairs, -1)
    if not pairs:
        return counts, seen
    rows = wp.array(points, dtype=wp.float64, device=checker.device, ndim=2)
    queries = checker.queries(len(points))
    for first in range(0, len(points), queries.steps):
        number = np.arange(first, min(first + queries.steps, len(points)))
        queries.ask(rows, number, number, checker.cell.records(np.zeros(1), np.zeros(1)))
        queries.search()
        touching = queries.hits() <= 1.0
        fresh = (counts == 0) & touching.any(axis=0)
        seen[fresh] = first + touching[:, fresh].argmax(axis=0)
        counts += touching.sum(axis=0)
    return counts, seen


def _neighbours(robot: Robot) -> set[frozenset[str]]:
    """Pairs of bodies between which there is one joint and no other body."""
    bodies = [name for name, mesh in zip(robot.links, robot.shapes, strict=True) if mesh is not None]
    return {frozenset((bodies[a], bodies[b])) for a, b in robot.linked_pairs()}


def _shown(pairs: np.ndarray, progress: bool) -> Iterator[np.ndarray]:
    if not progress:
        yield from pairs
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(pairs, "proving", console=Console(stderr=True), transient=True)


def _sorted(pair: tuple[str, str]) -> tuple[str, str]:
    return (pair[0], pair[1]) if pair[0] <= pair[1] else (pair[1], pair[0])


def _texts(counts: dict[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}

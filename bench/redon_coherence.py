"""Coherence tables: start each search where the last one ended (Redon, chapter 3)?

The thesis reports a small gain for much memory. Here the table is the front of the last search, the pairs of boxes
where it ended. The lifter's actions are replayed by the interval engine one after the
other, from the roots or from the front; the contacts must be the same.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, count, seconds
from bench.redon_table_3_2 import lifter
from bench.replay import Trajectory
from tangere.published.redon_intervals import IntervalFront, IntervalOptions, first_contacts_by_intervals

FEATURES = ["F-R-35"]


def run(report: Report, quick: bool = False) -> None:
    trajectory = lifter(quick)
    trajectory = trajectory if quick else trajectory[600:1400]  # through the slot and along the skins
    _replayed(trajectory[:3], True)
    rounds = [[_replayed(trajectory, kept) for kept in (False, True)] for _ in range(2 if quick else 3)]
    taken = np.array([[one[0] for one in pair] for pair in rounds]).min(axis=0).sum(axis=1)  # least of each step
    (_, roots, _, times), (_, front, memory, others) = rounds[0]
    report.table(
        ["", "T", "box tests", "largest table"],
        [
            ["from the roots", seconds(taken[0]), count(roots), None],
            ["from the last front", seconds(taken[1]), count(front), f"{count(memory)}B"],
        ],
    )
    hit = np.isfinite(times)
    same = bool((hit == np.isfinite(others)).all())
    apart = np.abs(times[hit] - others[hit]).max(initial=0.0) if same else np.inf
    report.note(
        f"""{len(trajectory)} actions. Box tests: {100.0 * front / roots - 100.0:+.0f} %; T:
        {100.0 * taken[1] / taken[0] - 100.0:+.0f} %; for {count(memory)}B of memory. The same actions touch:
        {"yes" if same else "NO"}; their times differ by at most {apart:.1e} of a step (the tolerance is 1e-4).
        The thesis prints no figures, only that the gain is small and the memory large."""
    )


def _replayed(trajectory: Trajectory, kept: bool) -> tuple[np.ndarray, int, int, np.ndarray]:
    """Seconds of each action, box tests, bytes of the largest front, and contact times."""
    options, front = IntervalOptions.printed(), IntervalFront() if kept else None
    taken, times = np.zeros(len(trajectory)), np.zeros(len(trajectory))
    boxes = memory = 0
    for step in range(len(trajectory)):
        body = trajectory.part.moving(trajectory.motion[step])
        found = first_contacts_by_intervals(body, trajectory.fixed, options, front=front, device="cpu", threads=1)
        taken[step], times[step] = found.seconds, found.time[0]
        boxes += found.counters.boxes
        memory = max(memory, 0 if front is None else front.nbytes)
    return taken, boxes, memory, times

"""What the tasks of a crowd's step cost, in the circle of the thesis.

Experiments E2 and E3 (figure 8.17), on Pitiot 2015, section 8.3.3: 500 points and 50 bodies, twice the points,
and twice the bodies. Crowds take turns of a few steps, and all is done twice; a time is the mean of all steps, each
with its faster run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.harness import Report, count, seconds
from bench.pitiot_crowd_figures import STAGES, Timed, looking_cost, make_steps, points_cost, timed, verdict
from tangere.crowd import Bubbles, Simulation
from tangere.crowd.scenarios import circle

FEATURES = ["F-P-63"]

#: Crowds that differ in the speeds of their points: whether one costs more than another is to hold for each.
_SEEDS = 3
#: A circle is over when nobody has arrived for so many steps, a quarter of the way across; how often one looks.
_QUIET, _LOOK = 1000, 100


def run(report: Report, quick: bool = False) -> None:
    points, steps = (60, 100) if quick else (1000, None)
    crowds = {f"{n} + {m}": (n, m) for n, m in ((points // 2, 50), (points, 50), (points // 2, 100))}
    found = _circles(crowds, steps)
    _table(report, found)
    _checks(report, found, points)
    report.section("Rings that points trickle through")
    seen_late = {"shape": (1.0, 0.5), "anticipation": 0.25, "behaviour": Bubbles(panic=0.5)}
    fewer = {key: crowds[key] for key in list(crowds)[::2]}
    found = _circles(fewer, steps or len(found[next(iter(found))][0].timed.behaviour), **seen_late)
    _table(report, found)
    report.table(_COLUMNS, _bodies_rows(found))
    report.note(
        "Boxes of 1 x 0.5 m, seen 0.25 s ahead, panic within 0.5 m. Here points do as in the thesis: with more bodies "
        "they get in one by one, and fewer are in the middle at a time. It is dearer all the same: those who wait are "
        "near bodies, and those who crowd the middle are in small cells, where a crowd costs little."
    )
    _other_boxes(report, crowds, steps)


@dataclass(frozen=True)
class _Circle:
    """One crowd: its times, and its course until it is over."""

    timed: Timed
    over: int  #: steps
    near: float  #: others within range of a point, a mean
    within: int  #: the most points inside the inner ring
    arrived: float  #: part of the points


_COLUMNS = ["what", "asked for", "found", ""]


def _table(report: Report, found: dict[str, list[_Circle]]) -> None:
    rows = []
    for name, circles in found.items():
        times = [np.mean([one.timed.step for one in circles])]
        times += [np.mean([one.timed.parts[task] for one in circles]) for task in STAGES]
        courses = [(one.over, one.near, one.within, one.arrived) for one in circles]
        over, near, within, arrived = np.mean(courses, axis=0)
        course = [f"{count(round(over))} steps", f"{near:.2f}", f"{within:.0f}", f"{100 * arrived:.0f} %"]
        rows.append([name, *map(seconds, times), *course])
    columns = ["points + bodies", "step", *STAGES, "over after", "others near", "most in the middle", "arrived"]
    report.table(columns, rows)


def _checks(report: Report, found: dict[str, list[_Circle]], points: int) -> None:
    means = {
        name: {task: float(np.mean([one.timed.parts[task] for one in circles])) for task in STAGES}
        for name, circles in found.items()
    }
    control, more, wide = means.values()
    alone, looking = (cost(more) / cost(control) for cost in (points_cost, looking_cost))
    by_bodies = wide["bodies"] / control["bodies"]
    share = max(
        means[name]["multiresolution"] / np.mean([one.timed.step for one in circles]) for name, circles in found.items()
    )
    rows = [
        ["twice the points: tracking and sorting them", "x 2 ± 25 %", f"x {alone:.2f}", verdict(1.5 <= alone <= 2.5)],
        ["the same with all they look at", "-", f"x {looking:.2f}", verdict(1.5 <= looking <= 2.5)],
        ["twice the bodies: their update", "x 2 ± 25 %", f"x {by_bodies:.2f}", verdict(1.5 <= by_bodies <= 2.5)],
        ["share of adapting cells", "at most 5 %", f"{100 * share:.1f} %", verdict(share <= 0.05)],
    ]
    report.table(_COLUMNS, rows + _bodies_rows(dict(list(found.items())[::2])))
    steps = len(next(iter(found.values()))[0].timed.behaviour)
    report.note(
        f"Means of {_SEEDS} seeds; in brackets, from seed to seed. All are run for {count(steps)} steps, until the "
        f"last of them is over: nobody has arrived for {_QUIET} steps. A body costs "
        f"{more['bodies'] / 50 / (points_cost(more) / points):.0f} points (the thesis: 20). Where a cost grows by "
        "less than its number, starting the kernels is what takes the time at these sizes. The last columns, until a "
        "crowd is over: others within range of a point, a mean; points inside the ring of 40 m, the most at a time; "
        "and those at their goals in the end. The thesis counts choosing neighbours as an update of points; here it is "
        "one kernel with what they do about them, and in its time."
    )
    report.note(
        "In the thesis more bodies let the points trickle through, fewer are in the middle at a time, and behaviour "
        "gets slightly cheaper. That is not found here. Of fifty boxes at 3 m/s on a ring of 40 m one comes by every "
        "1.7 s, and what a box keeps clear with the virtual edge ahead of it (1 s of its way, panic within 2.25 m) "
        "reaches from box to box. Nobody gets into the middle: the crowd waits before the rings, denser than it would "
        "cross them, then walks around and is done. With fewer bodies many get in and not out again. So behaviour is "
        "dearer with twice the bodies while they are under way, and the longer one counts afterwards the cheaper: "
        "everybody has arrived, and nobody is near a body."
    )


def _bodies_rows(found: dict[str, list[_Circle]]) -> list[list[str]]:
    """Cost of behaviour of the second crowd as a part of that of the first, over stretches of the run."""
    fewer, more = found.values()
    pairs = [(a, b, a.timed.behaviour, b.timed.behaviour) for a, b in zip(fewer, more, strict=True)]
    views = {"each until it is over": [y[: b.over].mean() / x[: a.over].mean() for a, b, x, y in pairs]}
    steps = len(pairs[0][2])
    for first in (2500, 5000, 10_000, steps):
        if first <= steps:
            views[f"first {count(first)} steps"] = [y[:first].mean() / x[:first].mean() for _, _, x, y in pairs]
    rows = []
    for how, ratios in views.items():
        spread = f"x {np.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        rows.append([f"twice the bodies: behaviour, {how}", "a finding", spread, "-"])
    return rows


def _other_boxes(report: Report, crowds: dict[str, tuple[int, int]], steps: int | None) -> None:
    """What the thesis (Pitiot 2015, section 8.3.3) does not say of the boxes: does the answer hang on it?"""
    report.section("Twice the bodies, boxes of other sizes and speeds")
    fewer, more = list(crowds)[::2]
    rows, ratios = [], []
    for shape in ((4.0, 2.0), (2.0, 1.0), (1.0, 0.5)):
        for speed in (1.0, 3.0, 5.0, 8.0):
            pair = {key: crowds[key] for key in (fewer, more)}
            found = _circles(pair, steps, seeds=1, runs=1, shape=shape, speed=speed)
            a, b = found[fewer][0], found[more][0]
            ratios.append(b.timed.behaviour[: b.over].mean() / a.timed.behaviour[: a.over].mean())
            course = [f"{x} and {y}" for x, y in ((a.within, b.within), (count(a.over), count(b.over)))]
            course.append(f"{100 * a.arrived:.0f} and {100 * b.arrived:.0f} %")
            rows.append([f"{shape[0]:g} x {shape[1]:g} m", f"{speed:g} m/s", f"x {ratios[-1]:.2f}", *course])
    columns = ["boxes", "speed", "behaviour", "most in the middle", "over after steps", "arrived"]
    report.table(columns, rows)
    report.note(
        f"{more} as a part of {fewer}, each until it is over; one seed: x {min(ratios):.2f} to {max(ratios):.2f}. "
        "The thesis does not say how large the boxes are and how fast, so that a pass at some of them "
        "would be a choice and not a finding."
    )


def _circles(
    crowds: dict[str, tuple[int, int]], steps: int | None, *, seeds: int = _SEEDS, runs: int = 2, **options: Any
) -> dict[str, list[_Circle]]:
    """Each crowd, one a seed, all for as many steps; until the last is over unless told."""
    makers = {
        (name, seed): partial(circle, *numbers, seed=seed, separate=True, device="cpu", **options)
        for seed in range(seeds)
        for name, numbers in crowds.items()
    }
    courses = {key: _course(make(), steps) for key, make in makers.items()}
    times = timed(makers, steps or max(course[0] for course in courses.values()), runs=runs)
    return {name: [_Circle(times[name, seed], *courses[name, seed]) for seed in range(seeds)] for name in crowds}


def _course(simulation: Simulation, most: int | None) -> tuple[int, float, int, float]:
    """Run a circle until it is over, or for so many steps; what `_Circle` says of it."""
    middle = simulation.map.positions.mean(axis=0)
    near, within, arrived = [], [], [0]
    while _anybody_arrives(arrived) and (most is None or len(near) * _LOOK < most):
        make_steps(simulation, _LOOK)
        near.append(simulation.observe().neighbours.mean())
        within.append((np.linalg.norm(simulation.positions - middle, axis=1) < 40.0).sum())
        arrived.append(int(np.isfinite(simulation.arrived).sum()))
    return len(near) * _LOOK, float(np.mean(near)), int(np.max(within)), arrived[-1] / len(simulation.points)


def _anybody_arrives(arrived: list[int]) -> bool:
    """Whether anybody has arrived lately, or nobody yet, by how many had at every look."""
    return arrived[-1] == 0 or arrived[-1] > arrived[max(0, len(arrived) - 1 - _QUIET // _LOOK)]

"""The crowd experiments of the thesis: linear in bodies, cost by task, kinds of cells, size of the map, real time.

E1 (figure 8.16), E2 and E3 (8.17), E4 (8.18), E5, E6 and E13 of specs/pitiot-multiresolution-interactions 3.4. The
thesis gives no times; what it claims is printed beside what is found here. Those compared take turns of a few steps, so
that a machine's slow times are the same for all; a simulation is the same from run to run, so all is done twice or
three times, and each step counts with its fastest run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.harness import Report, count, seconds
from tangere.cells.maps import quad_grid
from tangere.cells.registration import Density
from tangere.crowd import Bubbles, Simulation, box
from tangere.crowd.scenarios import circle, city, corridor, field, swarm
from tangere.runtime import using_threads

#: Checks that pass as the spec has them: F-P-18 (E6), 36 (E2, E4), 62 (E1), 63 (E2, E3), 64 (E4), 65 (real time).
FEATURES = ["F-P-18", "F-P-36", "F-P-62", "F-P-63", "F-P-64", "F-P-65", "F-P-66"]

STAGES = ("behaviour", "tracking", "registration", "bodies", "multiresolution")
#: Crowds of E2 that differ in the speeds of their points: whether one costs more than another is to hold for each.
_SEEDS = 3
#: Steps of a turn.
_TURN = 20
#: A circle is over when nobody has arrived for so many steps, a quarter of the way across; how often one looks.
_QUIET, _LOOK = 1000, 100
#: Of a step whose steering and going are one kernel.
_SHOWN = ("behaviour", "bodies")


def run(report: Report, quick: bool = False) -> None:
    points, steps = (60, 3) if quick else (1000, 60)
    _linear(report, points, 10 * steps, quick)
    _tasks(report, points, 100 if quick else None)
    _cells(report, points, steps // 2, quick)
    _sizes(report, points // 2, 10 * steps, quick)
    _real_time(report, points, steps, quick)


@dataclass(frozen=True)
class Timed:
    """Seconds per step, in all and by task, the slowest one, and the simulation at the end."""

    step: float
    parts: dict[str, float]
    early: tuple[float, float]  #: of behaviour in the first quarter and the first half of the run
    worst: float
    simulation: Simulation


def timed(makers: Mapping[str, Callable[[], Simulation]], steps: int, runs: int = 3) -> dict[str, Timed]:
    """Run simulations in turns, each `runs` times from its start; ten steps before the first do not count."""
    wholes: dict[str, list] = {name: [] for name in makers}
    stages: dict[str, list] = {name: [] for name in makers}
    last: dict[str, Simulation] = {}
    for _ in range(runs):
        for name, make in makers.items():
            last[name] = make()
            last[name].step(min(10, steps))
            wholes[name].append([])
            stages[name].append([])
        for begin in range(0, steps, _TURN):
            for name, simulation in last.items():
                measured = [_one_step(simulation) for _ in range(min(_TURN, steps - begin))]
                wholes[name][-1] += [whole for whole, _ in measured]
                stages[name][-1] += [parts for _, parts in measured]
    result = {}
    for name in makers:
        fastest, parts = np.min(wholes[name], axis=0), np.min(stages[name], axis=0)
        early = tuple(float(parts[: -(-steps // part), 0].mean()) for part in (4, 2))
        by_task = dict(zip(STAGES, parts.mean(axis=0).tolist(), strict=True))
        result[name] = Timed(float(fastest.mean()), by_task, early, float(fastest.max()), last[name])
    return result


def _one_step(simulation: Simulation) -> tuple[float, list[float]]:
    simulation.timers.update(dict.fromkeys(STAGES, 0.0))
    begin = time.perf_counter()
    simulation.step()
    return time.perf_counter() - begin, [simulation.timers[name] for name in STAGES]


def verdict(holds: bool) -> str:
    return "pass" if holds else "fail"


def _linear(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E1: the cost is linear in the number of bodies (the thesis: linear)")
    numbers = (0, 5, 10) if quick else (0, 25, 50, 100, 150, 200)

    with using_threads(1):
        found = timed({str(n): partial(corridor, points, n, device="cpu") for n in numbers}, steps)
    taken = np.array([found[str(n)].step for n in numbers])
    line = np.polyfit(numbers, taken, 1)
    off = np.var(taken - np.polyval(line, numbers)) / np.var(taken)
    bend = np.polyfit(numbers, taken, 2)[0] * max(numbers) / line[0]
    report.note(
        f"R^2 of a straight line {1 - off:.4f} (asked for: 0.98, {verdict(off <= 0.02)}); a parabola would add "
        f"{100 * bend:.0f} % of the slope over the whole range (no growth above linear: at most 20 %, "
        f"{verdict(bend <= 0.2)})."
    )
    rows = [[str(n), seconds(found[str(n)].step), *(seconds(found[str(n)].parts[x]) for x in _SHOWN)] for n in numbers]
    report.table(["bodies", "step", "behaviour and tracking", "bodies"], rows)
    report.note(
        f"{count(points)} points, one thread, {count(steps)} steps: the corridor of the spec, 200 x 40 m, boxes of 4 x "
        "2 m in two columns. 200 of them cannot each have a lane to cross it: they go in 16 loops, up one lane and "
        "down the next, and come within range of each other."
    )


def _tasks(report: Report, points: int, steps: int | None) -> None:
    report.section("E2, E3: cost by task in the circle")
    crowds = {f"{n} + {m}": (n, m) for n, m in ((points // 2, 50), (points, 50), (points // 2, 100))}
    found, rows, taken = _circles(crowds, steps)
    columns = ["points + bodies", "step", *STAGES, "over after", "others near", "most in the middle", "arrived"]
    report.table(columns, rows)
    means = {name: {x: float(np.mean([run.parts[x] for run in runs])) for x in STAGES} for name, runs in found.items()}
    control, more, wide = means.values()
    by_points = _points_cost(more) / _points_cost(control)
    by_bodies = wide["bodies"] / control["bodies"]
    share = max(
        means[name]["multiresolution"] / float(np.mean([run.step for run in runs])) for name, runs in found.items()
    )
    ratios = _ratios(*list(found.values())[::2])
    checks = [
        ["twice the points: their update", "x 2 ± 25 %", f"x {by_points:.2f}", verdict(1.5 <= by_points <= 2.5)],
        ["twice the bodies: their update", "x 2 ± 25 %", f"x {by_bodies:.2f}", verdict(1.5 <= by_bodies <= 2.5)],
        ["share of adapting cells", "at most 5 %", f"{100 * share:.1f} %", verdict(share <= 0.05)],
        ["twice the bodies: behaviour", "not more, with any seed", _spread(ratios[2]), verdict(max(ratios[2]) <= 1.0)],
        ["the same in the first half", "-", _spread(ratios[1]), verdict(max(ratios[1]) <= 1.0)],
        ["and in the first quarter", "-", _spread(ratios[0]), verdict(max(ratios[0]) <= 1.0)],
    ]
    report.table(["what", "asked for", "found", ""], checks)
    report.note(
        f"Means of {_SEEDS} seeds; in brackets, from seed to seed. All are run for {count(taken)} steps, until the "
        f"last of them is over: nobody has arrived for {_QUIET} steps. A body costs "
        f"{more['bodies'] / 50 / (_points_cost(more) / points):.0f} points (the thesis: 20). Where a cost grows by "
        "less than its number, starting the kernels is what takes the time at these sizes. The last columns, until a "
        "crowd is over: others within range of a point, a mean; points inside the ring of 40 m, the most at a time; "
        "and those at their goals in the end."
    )
    report.note(
        "The thesis does not say how long its circle is run, and it matters. In the thesis more bodies let the points "
        "trickle through, fewer are in the middle at a time, and behaviour gets slightly cheaper. Here fewer are in "
        "the middle, too, and over the whole of it behaviour is cheaper, but not at first. Of fifty boxes at 3 m/s on "
        "40 m one comes by every 1.7 s, and what a box keeps clear with the virtual edge ahead of it (1 s of its way, "
        "panic within 2.25 m) reaches from box to box. Nobody gets into the middle: the crowd waits before the rings, "
        "denser than it would cross them, which costs more; then it walks around and is done, while with fewer bodies "
        "many get in and not out again."
    )
    report.note("**Rings that points trickle through: boxes of 1 x 0.5 m, seen 0.25 s ahead, panic within 0.5 m**")
    seen_late = {"shape": (1.0, 0.5), "anticipation": 0.25, "behaviour": Bubbles(panic=0.5)}
    found, rows, _ = _circles({key: crowds[key] for key in list(crowds)[::2]}, taken, **seen_late)
    report.table(columns, rows)
    report.note(
        f"Twice the bodies: behaviour {_spread(_ratios(*found.values())[2])}. Here points do as in the thesis, and it "
        "costs more, not less: those who wait are near bodies, and those who crowd the middle are in small cells."
    )


def _circles(
    crowds: dict[str, tuple[int, int]], steps: int | None, **options: Any
) -> tuple[dict[str, list[Timed]], list[list[str]], int]:
    """The runs of each crowd, one a seed, a row of their means, and for how many steps they were run."""
    makers = {
        f"{name}, seed {seed}": partial(circle, *numbers, seed=seed, separate=True, device="cpu", **options)
        for seed in range(_SEEDS)
        for name, numbers in crowds.items()
    }
    courses = {key: _course(make(), steps) for key, make in makers.items()}
    steps = steps or max(course[0] for course in courses.values())
    timings = timed(makers, steps, runs=2)
    found, rows = {}, []
    for name in crowds:
        alike = [key for key in makers if key.startswith(f"{name},")]
        runs = found[name] = [timings[key] for key in alike]
        over, near, within, there = np.mean([courses[key] for key in alike], axis=0)
        told = [np.mean([run.step for run in runs]), *(np.mean([run.parts[x] for run in runs]) for x in STAGES)]
        last = f"{count(round(over))} steps", f"{near:.2f}", f"{within:.0f}", f"{100 * there:.0f} %"
        rows.append([name, *map(seconds, told), *last])
    return found, rows, steps


def _ratios(some: list[Timed], others: list[Timed]) -> list[list[float]]:
    """Cost of the others' behaviour as a part of that of some, by seed: in the first quarter, the first half, all."""
    runs = [[(*run.early, run.parts["behaviour"]) for run in alike] for alike in (some, others)]
    return (np.array(runs[1]) / np.array(runs[0])).T.tolist()


def _spread(ratios: list[float]) -> str:
    return f"x {np.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _course(simulation: Simulation, steps: int | None) -> tuple[int, float, float, float]:
    """Run a circle until it is over, or for so many steps.

    Returns how many that were, others within range of a point (a mean), the most points in the inner ring, and the
    part that has arrived.
    """
    middle = simulation.map.positions.mean(axis=0)
    near, within, arrived = [], [], [0]
    while len(near) * _LOOK < steps if steps else _anybody_arrives(arrived):
        simulation.step(_LOOK)
        near.append(simulation.observe().neighbours.mean())
        within.append((np.linalg.norm(simulation.positions - middle, axis=1) < 40.0).sum())
        arrived.append(int(np.isfinite(simulation.arrived).sum()))
    part = arrived[-1] / len(simulation.points)
    return len(near) * _LOOK, float(np.mean(near)), float(np.max(within)), part


def _anybody_arrives(arrived: list[int]) -> bool:
    """Whether anybody has arrived lately, or nobody yet, by how many had at every look."""
    return arrived[-1] == 0 or arrived[-1] > arrived[max(0, len(arrived) - 1 - _QUIET // _LOOK)]


def _points_cost(parts: dict[str, float]) -> float:
    return parts["tracking"] + parts["registration"]


def _looking_cost(parts: dict[str, float]) -> float:
    return parts["behaviour"] + _points_cost(parts)


def _cells(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E4, E5: coarse, fine and adaptive cells (the thesis: adaptive is the cheapest)")
    # The fine cells of the spec's corridor, 1 m, are as wide as agents may look.
    near_sighted = Bubbles(range=1.0, panic=1.0)

    def in_corridor(**options) -> Simulation:
        return corridor(points, 50, separate=True, device="cpu", behaviour=near_sighted, **options)

    def gathered(**options) -> Simulation:
        return gathering(4 * points, 100.0 if quick else 600.0, **options)

    def in_circle(**options) -> Simulation:
        return circle(points, 50, separate=True, device="cpu", behaviour=near_sighted, **options)

    scenes = {
        f"corridor {points} + 50, range 1 m": (in_corridor, 1.0, 40 * steps),
        f"{4 * points} points at one place of a large field, 40 bodies elsewhere": (gathered, 2.0, 4 * steps),
        f"circle {points} + 50, range 1 m: nowhere crowded": (in_circle, 1.0, 40 * steps),
    }
    for scene, (make, finest, long) in scenes.items():
        kinds = {
            f"coarse, {8.0:.0f} m": partial(make, cell=8.0, adaptive=None),
            f"fine, {finest:.0f} m": partial(make, cell=finest, adaptive=None),
            "adaptive between them": partial(make, cell=8.0),
            "the same, split above 8": partial(make, cell=8.0, adaptive=Density(8, 4)),
        }
        with using_threads(1):
            found = timed(kinds, long)
        rows = []
        for name, one in found.items():
            changed = _changed(one.simulation)
            told = [seconds(one.parts[stage]) for stage in STAGES]
            cells = str(len(one.simulation.map.leaves))
            rows.append([name, seconds(one.step), *told, cells, f"{100 * changed:.1f} %, {verdict(changed < 0.1)}"])
        report.note(f"**{scene}**")
        columns = ["cells", "step", *STAGES, "cells at the end", "points that change cell in a step (below 10 %)"]
        report.table(columns, rows)
        coarse, fine, adaptive, _ = found.values()
        gain = min(coarse.step, fine.step) / adaptive.step
        share = adaptive.parts["multiresolution"] / adaptive.step
        looking, points_alone = (cost(fine.parts) / cost(coarse.parts) for cost in (_looking_cost, _points_cost))
        report.note(
            f"Adaptive the cheapest: x {gain:.2f} against the better of the two, {verdict(gain > 1.0)}; adapting takes "
            f"{100 * share:.1f} % of a step (at most 5 %, {verdict(share <= 0.05)}). Fine against coarse: behaviour "
            f"x {fine.parts['behaviour'] / coarse.parts['behaviour']:.2f} (thesis: less), bodies "
            f"x {fine.parts['bodies'] / coarse.parts['bodies']:.2f} (thesis: more), points with all they look at "
            f"x {looking:.2f} (thesis: less), without x {points_alone:.2f}."
        )
    report.note(
        "One thread. Sizes of the corridor's cells are those of the spec. What the thesis calls the update of points "
        "is also the choice of their neighbours, which is most of it and here part of behaviour; being tracked and "
        "sorted alone is dearer in fine cells, where they change cell more often. Agents do not look at cells beyond "
        "their range, so that coarse cells cost less here than in the thesis, and finer ones gain less: where it is "
        "nowhere crowded, as in the circle, coarse cells are as good and adaptive ones only pay for being looked at. "
        "When cells split (the library's default, above 12) was chosen by the first two scenes as they were before; "
        "the corridor is another since, and the circle had no part in it."
    )


def _changed(simulation: Simulation) -> float:
    """The part of the points that change cell in one more step, of cells that stay."""
    before, simulation.adaptive = simulation.cells, None
    simulation.step()
    return float((simulation.cells != before).mean())


def gathering(points: int, size: float, cell: float = 8.0, **options) -> Simulation:
    """All points in one corner of a large field, bodies in the rest of it."""
    dense = field(points, per_area=0.9, cell=cell, device="cpu", adaptive=None)
    cells = round(size / cell)
    simulation = Simulation(quad_grid(cells, cells, size=cell, device="cpu"), separate=True, **options)
    places = dense.positions[:, :2]
    simulation.add_points(places, goals=places[::-1].copy(), speed=1.4)
    way = np.linspace(0.3 * size, 0.9 * size, 40)
    start = np.stack([way, np.full(40, 0.9 * size)], axis=1)
    ends = [np.array([[x, 0.2 * size], [x, 0.9 * size]]) for x in way]
    heading = np.tile([0.0, -1.0], (40, 1))
    simulation.add_bodies(box(12.0, 3.0), start, headings=heading, goals=ends, speed=5.0, repeat=True)
    return simulation


def _sizes(report: Report, points: int, turns: int, quick: bool) -> None:
    report.section("E6: a city of any size, the same crowd (the thesis: independent)")
    sizes, district = ((2, 3), 2) if quick else ((5, 10, 20, 40), 5)
    ways = {f"in a district of {district} x {district}": district, "all over": None}
    cities = {
        (n, where): city(
            points, blocks=n, district=blocks, visits=1, device="cpu", reroute=0.0, adaptive=None, separate=True
        )
        for n in sizes
        for where, blocks in ways.items()
    }
    for simulation in cities.values():
        simulation.step(min(10, turns))
    # Walking on changes a sparse crowd little: windows in turns, and the fastest of each city. All of them together
    # take longer than a machine is slow for.
    windows = {key: [] for key in cities}
    for _ in range(turns):
        for key, simulation in cities.items():
            measured = [_one_step(simulation) for _ in range(_TURN)]
            windows[key].append(np.median([[whole, *parts] for whole, parts in measured], axis=0))
    best = {key: np.min(windows[key], axis=0) for key in cities}
    for where in ways:
        report.note(f"**{points} points {where}**")
        rows = []
        for n in sizes:
            times = (seconds(x) for x in best[n, where][:4])
            rows.append([f"{n} x {n}", count(len(cities[n, where].map.leaves)), *times])
        report.table(["blocks", "cells", "step", "behaviour", "tracking", "registration"], rows)
        grown = [best[sizes[-1], where][k] / best[sizes[0], where][k] - 1.0 for k in (0, 2)]
        report.note(
            f"Largest against smallest city: step {100 * grown[0]:+.0f} % (asked for: ± 10 %, "
            f"{verdict(abs(grown[0]) <= 0.1)}), tracking alone {100 * grown[1]:+.0f} % "
            f"({verdict(abs(grown[1]) <= 0.1)})."
        )
    report.note(
        "All over a larger city nothing more is searched, but agents who share no cells share no lines of the cache. "
        "So an agent knows how far it may go before it asks for its cell again, a cell's sides, neighbours and walls "
        "lie side by side, and sorting asks for the cells of those who change theirs only. What is left is that of a "
        "new cell, nothing of which is in the cache in a large city."
    )


def _real_time(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("Real time, E13: 30 steps a second")
    cases = {
        f"corridor {points} + 50": lambda: corridor(points, 50, device="cpu"),
        f"circle {points} + 50": lambda: circle(points, 50, device="cpu"),
        f"circle {5 * points} + 300": lambda: circle(5 * points, 300, size=400.0, device="cpu"),
        f"in space {points // 2}": lambda: swarm(points // 2, device="cpu"),
        f"in space {10 * points}": lambda: swarm(10 * points, device="cpu"),
    }
    rows = []
    for name, one in timed(cases, max(1, steps // 3), runs=1).items():
        rows.append(
            [name, seconds(one.step), f"{1 / one.step:.0f} Hz", verdict(one.step <= 1 / 30), seconds(one.worst)]
        )
    report.table(["crowd", "step", "rate", "30 Hz", "slowest step"], rows)

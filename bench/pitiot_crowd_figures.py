"""The crowd experiments of the thesis: linear in bodies, kinds of cells, points that change cell.

Experiments E1 (figure 8.16), E4 (8.18) and E5, on Pitiot 2015, section 8.3.3; cost by task and sizes of maps have
pages of their own. The thesis gives no times; what it claims is printed beside what is found here. Those compared take
turns of a few steps, so that a machine's slow times are the same for all; a simulation is the same from run to run, so
all is done three times. A time is the mean of all steps, each with its fastest run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.harness import Report, count, seconds
from tangere.cells import Density
from tangere.cells.generate import quad_grid
from tangere.crowd import Bubbles, Simulation, box
from tangere.crowd.scenarios import circle, corridor, field
from tangere.runtime import using_threads

#: E1: F-P-62; E4: F-P-36 and 64.
FEATURES = ["F-P-36", "F-P-62", "F-P-64"]

STAGES = ("behaviour", "tracking", "registration", "bodies", "multiresolution")
#: Steps of a turn.
TURN = 20
#: Of a step whose steering and going are one kernel.
_SHOWN = ("behaviour", "bodies")


def run(report: Report, quick: bool = False) -> None:
    points, steps = (60, 3) if quick else (1000, 60)
    _linear(report, points, 10 * steps, quick)
    _cells(report, points, steps // 2, quick)


@dataclass(frozen=True)
class Timed:
    """Seconds per step, in all and by task, behaviour step by step, the slowest, and the simulation at the end."""

    step: float
    parts: dict[str, float]
    behaviour: np.ndarray  #: (steps,)
    slowest: float
    simulation: Simulation


def timed(makers: Mapping[Any, Callable[[], Simulation]], steps: int, runs: int = 3) -> dict[Any, Timed]:
    """Run simulations in turns, each `runs` times from its start; ten steps before the first do not count."""
    wholes: dict[Any, list] = {name: [] for name in makers}
    stages: dict[Any, list] = {name: [] for name in makers}
    last: dict[Any, Simulation] = {}
    for _ in range(runs):
        for name, make in makers.items():
            last[name] = make()
            make_steps(last[name], min(10, steps))
            wholes[name].append([])
            stages[name].append([])
        for begin in range(0, steps, TURN):
            for name, simulation in last.items():
                measured = [one_step(simulation) for _ in range(min(TURN, steps - begin))]
                wholes[name][-1] += [whole for whole, _ in measured]
                stages[name][-1] += [parts for _, parts in measured]
    result = {}
    for name in makers:
        fastest, parts = np.min(wholes[name], axis=0), np.min(stages[name], axis=0)
        by_task = dict(zip(STAGES, parts.mean(axis=0).tolist(), strict=True))
        result[name] = Timed(float(fastest.mean()), by_task, parts[:, 0], float(fastest.max()), last[name])
    return result


def one_step(simulation: Simulation) -> tuple[float, list[float]]:
    begin = time.perf_counter()
    simulation.step()
    taken, timings = time.perf_counter() - begin, simulation.timings
    return taken, [timings[name] for name in STAGES]


def make_steps(simulation: Simulation, count: int) -> None:
    for _ in range(count):
        simulation.step()


def verdict(holds: bool) -> str:
    return "pass" if holds else "fail"


def _linear(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E1: the cost is linear in the number of bodies (the thesis: linear)")
    numbers = (0, 3, 6, 10) if quick else (0, 25, 50, 100, 150, 200)

    with using_threads(1):
        found = timed({str(n): partial(corridor, points, n, device="cpu") for n in numbers}, steps)
    taken = np.array([found[str(n)].step for n in numbers])
    line = np.polyfit(numbers, taken, 1)
    off = np.var(taken - np.polyval(line, numbers)) / np.var(taken)
    bend, without = (np.polyfit(numbers[k:], taken[k:], 2)[0] * max(numbers) / line[0] for k in (0, 1))
    report.note(
        f"R^2 of a straight line {1 - off:.4f} (asked for: 0.98, {verdict(off <= 0.02)}); a parabola would add "
        f"{100 * bend:.0f} % of the slope over the whole range (no growth above linear: at most 20 %, "
        f"{verdict(bend <= 0.2)}), and {100 * without:.0f} % without the row of no bodies."
    )
    rows = [[str(n), seconds(found[str(n)].step), *(seconds(found[str(n)].parts[x]) for x in _SHOWN)] for n in numbers]
    report.table(["bodies", "step", "behaviour and tracking", "bodies"], rows)
    report.note(
        f"{count(points)} points, one thread, {count(steps)} steps: a corridor of 200 x 40 m, boxes of 4 x "
        "2 m in two columns. 200 of them cannot each have a lane to cross it: they go in 16 loops, up one lane and "
        "down the next, and come within range of each other, the more of them the more often: a further body costs "
        f"{seconds((taken[2] - taken[1]) / (numbers[2] - numbers[1]))} at first and "
        f"{seconds((taken[-1] - taken[-2]) / (numbers[-1] - numbers[-2]))} in the end. The first ones also bring the "
        "cost of starting their kernels."
    )


def points_cost(parts: dict[str, float]) -> float:
    return parts["tracking"] + parts["registration"]


def looking_cost(parts: dict[str, float]) -> float:
    return parts["behaviour"] + points_cost(parts)


def _cells(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E4, E5: coarse, fine and adaptive cells (the thesis: adaptive is the cheapest)")
    # The fine cells of the corridor, 1 m, are as wide as agents may look.
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
            changed = changed_cell(one.simulation)
            told = [seconds(one.parts[stage]) for stage in STAGES]
            cells = str(len(one.simulation.map.leaves))
            rows.append([name, seconds(one.step), *told, cells, f"{100 * changed:.1f} %, {verdict(changed < 0.1)}"])
        report.note(f"**{scene}**")
        columns = ["cells", "step", *STAGES, "cells at the end", "points that change cell in a step (below 10 %)"]
        report.table(columns, rows)
        coarse, fine, adaptive, finer = found.values()
        gain = min(coarse.step, fine.step) / adaptive.step
        share, other = (one.parts["multiresolution"] / one.step for one in (adaptive, finer))
        looking, points_alone = (cost(fine.parts) / cost(coarse.parts) for cost in (looking_cost, points_cost))
        report.note(
            f"Adaptive the cheapest: x {gain:.2f} against the better of the two, {verdict(gain > 1.0)}; adapting takes "
            f"{100 * share:.1f} % of a step (at most 5 %, {verdict(share <= 0.05)}; {100 * other:.1f} % if they split "
            "above 8). Fine against coarse: behaviour "
            f"x {fine.parts['behaviour'] / coarse.parts['behaviour']:.2f} (thesis: less), bodies "
            f"x {fine.parts['bodies'] / coarse.parts['bodies']:.2f} (thesis: more), points with all they look at "
            f"x {looking:.2f} (thesis: less), being tracked and sorted alone x {points_alone:.2f} "
            f"(less, by the letter: {verdict(points_alone < 1.0)})."
        )
    report.note(
        "One thread. The corridor is meant for these cells; agents look 1 m far in it, not 1.5 m, since its fine "
        "cells are 1 m wide and no cell is narrower than agents look. The other two scenes are ours. What the thesis "
        "calls the update of points is also the choice of their neighbours, which is most of it and here part of "
        "behaviour; being tracked and "
        "sorted alone is dearer in fine cells, where they change cell more often. Agents do not look at cells beyond "
        "their range, so that coarse cells cost less here than in the thesis, and finer ones gain less: where it is "
        "nowhere crowded, as in the circle, coarse cells are as good and adaptive ones only pay for being looked at. "
        "When cells split (the library's default, above 12) was chosen by the first two scenes as they were before; "
        "the corridor is another since, and the circle had no part in it."
    )


def changed_cell(simulation: Simulation) -> float:
    """The part of the points that change cell in a step, of cells that stay; a mean of some more steps."""
    simulation.adaptive, parts = None, []
    for _ in range(TURN):
        before = simulation.cells
        simulation.step()
        parts.append((simulation.cells != before).mean())
    return float(np.mean(parts))


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

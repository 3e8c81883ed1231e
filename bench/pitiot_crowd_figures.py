"""The crowd experiments of the thesis: linear in bodies, cost by task, kinds of cells, size of the map.

E1 (figure 8.16), E2 and E3 (8.17), E4 (8.18), E5, E6 and E13 of specs/pitiot-multiresolution-interactions 3.4. The
thesis gives no times; what it claims is printed beside what is found here. A simulation is the same from run to run, so
it is run several times and each step counts with its fastest run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.harness import Report, seconds
from tangere.cells.maps import quad_grid
from tangere.cells.registration import Density
from tangere.crowd import Simulation, box
from tangere.crowd.scenarios import circle, city, corridor, field, swarm

#: The real-time section prints the check of F-P-65. Those of F-P-18 (E6), 36 (E2), 62 (E1), 63 (E2, E3) and 64 (E4) are
#: printed too, and join the list when a recorded page shows that they pass.
FEATURES = ["F-P-65"]

STAGES = ("behaviour", "tracking", "registration", "bodies", "multiresolution")


def run(report: Report, quick: bool = False) -> None:
    points, steps = (60, 3) if quick else (1000, 60)
    _linear(report, points, steps, quick)
    _tasks(report, points, steps)
    _cells(report, points, steps, quick)
    _sizes(report, points, steps, quick)
    _real_time(report, points, steps, quick)


def timed(make: Callable[[], Simulation], steps: int, runs: int = 3) -> tuple[float, dict[str, float], Simulation]:
    """Seconds per step, in all and by task, and the simulation at the end; a few steps before do not count."""
    every: list[list[float]] = []
    stages: list[list[list[float]]] = []
    for _ in range(runs):
        simulation = make()
        simulation.step(min(10, steps))
        whole, parts = [], []
        for _ in range(steps):
            simulation.timers.update(dict.fromkeys(STAGES, 0.0))
            begin = time.perf_counter()
            simulation.step()
            whole.append(time.perf_counter() - begin)
            parts.append([simulation.timers[name] for name in STAGES])
        every.append(whole)
        stages.append(parts)
    shares = np.min(stages, axis=0).mean(axis=0)
    return float(np.min(every, axis=0).mean()), dict(zip(STAGES, shares.tolist(), strict=True)), simulation


def verdict(holds: bool) -> str:
    return "pass" if holds else "fail"


def _linear(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E1: the cost is linear in the number of bodies (the thesis: linear)")
    numbers = (0, 2, 4) if quick else (0, 25, 50, 100, 150, 200)

    def make(n: int) -> Callable[[], Simulation]:
        return lambda: corridor(points, n, shape=(2.0, 1.0), device="cpu", width=24.0 if quick else 40.0)

    taken = np.array([timed(make(n), steps // 2)[0] for n in numbers])
    # The first body brings the whole stage of bodies with it: a constant, whatever their number.
    with_bodies = np.array(numbers[1:]), taken[1:]
    fit = np.polyfit(*with_bodies, 1)
    all_of_it = np.var(taken - np.polyval(np.polyfit(numbers, taken, 1), numbers)) / np.var(taken)
    left = np.var(taken[1:] - np.polyval(fit, with_bodies[0])) / np.var(taken[1:])
    bend = np.polyfit(*with_bodies, 2)[0] * max(numbers) / fit[0]
    report.table(["bodies", "step"], [[str(n), seconds(t)] for n, t in zip(numbers, taken, strict=True)])
    report.note(
        f"R^2 of a straight line: {1 - all_of_it:.4f} (asked for: 0.98, {verdict(all_of_it <= 0.02)}); through those "
        f"with bodies only: {1 - left:.4f}. "
        f"A parabola would add {100 * bend:.0f} % of the slope over the whole range "
        f"(no growth above linear: at most 20 %, {verdict(bend <= 0.2)})."
    )


def _tasks(report: Report, points: int, steps: int) -> None:
    report.section("E2, E3: cost by task in the circle")
    rows, costs, wholes = [], {}, {}
    for n, bodies in ((points // 2, 50), (points, 50), (points // 2, 100)):

        def make(n: int = n, bodies: int = bodies) -> Simulation:
            return circle(n, bodies, separate=True, device="cpu")

        wholes[n, bodies], costs[n, bodies], _ = timed(make, steps)
        told = (seconds(costs[n, bodies][name]) for name in STAGES)
        rows.append([f"{n} + {bodies}", seconds(wholes[n, bodies]), *told])
    report.table(["points + bodies", "step", *STAGES], rows)
    control, more, wide = costs[points // 2, 50], costs[points, 50], costs[points // 2, 100]
    by_points = _points_cost(more) / _points_cost(control)
    by_bodies = wide["bodies"] / control["bodies"]
    share = max(cost["multiresolution"] / wholes[key] for key, cost in costs.items())
    checks = [
        ["twice the points: their update", "x 2 ± 25 %", f"x {by_points:.2f}", verdict(1.5 <= by_points <= 2.5)],
        ["twice the bodies: their update", "x 2 ± 25 %", f"x {by_bodies:.2f}", verdict(1.5 <= by_bodies <= 2.5)],
        ["share of adapting cells", "at most 5 %", f"{100 * share:.1f} %", verdict(share <= 0.05)],
        [
            "behaviour with twice the bodies",
            "not more",
            f"x {wide['behaviour'] / control['behaviour']:.2f}",
            verdict(wide["behaviour"] <= control["behaviour"]),
        ],
    ]
    report.table(["what", "asked for", "found", ""], checks)
    report.note(
        f"A body costs {more['bodies'] / 50 / (_points_cost(more) / points):.0f} points (the thesis: 20). Where a "
        "cost grows by less than its number, starting the kernels is what takes the time at these sizes; and agents "
        "of this library are sorted anew at every step, so what a point costs does not depend on changing cells."
    )


def _points_cost(parts: dict[str, float]) -> float:
    return parts["tracking"] + parts["registration"]


def _cells(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E4, E5: coarse, fine and adaptive cells (the thesis: adaptive is the cheapest)")
    kinds = {
        "coarse": {"adaptive": None, "cell": 8.0},
        "fine": {"adaptive": None, "cell": 2.0},
        "adaptive": {"cell": 8.0, "adaptive": Density(8, 4)},
    }
    scenes = {
        f"corridor {points} + 50": lambda options: corridor(points, 50, separate=True, device="cpu", **options),
        f"{4 * points} points at one place of a large field, 40 bodies elsewhere": lambda options: gathering(
            4 * points, 100.0 if quick else 600.0, **options
        ),
    }
    for scene, make in scenes.items():
        rows, wholes, parts = [], {}, {}
        for name, options in kinds.items():
            made = lambda make=make, options=options: make(options)  # noqa: E731
            wholes[name], parts[name], simulation = timed(made, steps // 2)
            before = simulation.cells
            simulation.adaptive = None
            simulation.step()
            changed = float((simulation.cells != before).mean())
            told = [seconds(parts[name][stage]) for stage in STAGES]
            cells = str(len(simulation.map.leaves))
            rows.append([name, seconds(wholes[name]), *told, cells, f"{100 * changed:.1f} %, {verdict(changed < 0.1)}"])
        report.note(f"**{scene}**")
        columns = ["cells", "step", *STAGES, "cells at the end", "points that change cell in a step (below 10 %)"]
        report.table(columns, rows)
        best = wholes["adaptive"] <= min(wholes["coarse"], wholes["fine"])
        report.note(
            f"Adaptive the cheapest: {verdict(best)}. Fine against coarse: behaviour "
            f"x {parts['fine']['behaviour'] / parts['coarse']['behaviour']:.2f} (thesis: less), bodies "
            f"x {parts['fine']['bodies'] / parts['coarse']['bodies']:.2f} (thesis: more)."
        )
    report.note(
        "In the corridor agents are so few for their room that coarse cells already hold eight each: there is little "
        "for adapting to gain. The second scene is what adaptive cells are for: its density differs from place to "
        "place."
    )


def gathering(points: int, size: float, cell: float = 8.0, **options) -> Simulation:
    """All points in one corner of a large field, bodies in the rest of it."""
    dense = field(points, per_area=0.9, cell=cell, device="cpu", adaptive=None)
    count = round(size / cell)
    simulation = Simulation(quad_grid(count, count, size=cell, device="cpu"), separate=True, **options)
    places = dense.positions[:, :2]
    simulation.add_points(places, goals=places[::-1].copy(), speed=1.4)
    way = np.linspace(0.3 * size, 0.9 * size, 40)
    start = np.stack([way, np.full(40, 0.9 * size)], axis=1)
    ends = [np.array([[x, 0.2 * size], [x, 0.9 * size]]) for x in way]
    heading = np.tile([0.0, -1.0], (40, 1))
    simulation.add_bodies(box(12.0, 3.0), start, headings=heading, goals=ends, speed=5.0, repeat=True)
    return simulation


def _sizes(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E6: a city of any size, the same crowd (the thesis: independent)")
    rows, taken = [], []
    for blocks in (2, 3) if quick else (5, 10, 20):

        def make(blocks: int = blocks) -> Simulation:
            return city(points // 2, blocks=blocks, visits=1, device="cpu", reroute=0.0, adaptive=None)

        whole, _, simulation = timed(make, steps // 2, runs=2)
        taken.append(whole)
        rows.append([f"{blocks} x {blocks}", str(len(simulation.map.leaves)), seconds(whole)])
    report.table(["blocks", "cells", "step"], rows)
    spread = max(taken) / min(taken) - 1.0
    report.note(f"Largest against smallest step: + {100 * spread:.0f} % (asked for: ± 10 %, {verdict(spread <= 0.1)}).")


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
    for name, make in cases.items():
        taken = timed(make, max(1, steps // 3), runs=1)[0]
        rows.append([name, seconds(taken), f"{1 / taken:.0f} Hz", verdict(taken <= 1 / 30)])
    report.table(["crowd", "step", "rate", "30 Hz"], rows)

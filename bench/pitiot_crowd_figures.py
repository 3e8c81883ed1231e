"""The crowd experiments of the thesis: linear in bodies, cost by task, kinds of cells, size of the map.

E1 (figure 8.16), E2 and E3 (8.17), E4 (8.18), E5, E6 and E13 of specs/pitiot-multiresolution-interactions 3.4. The
thesis gives no times; what it claims is printed beside what is found here.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, seconds
from tangere.crowd import Simulation
from tangere.crowd.scenarios import circle, city, corridor, swarm

FEATURES: list[str] = []

STAGES = ("behaviour", "tracking", "registration", "bodies", "multiresolution")


def run(report: Report, quick: bool = False) -> None:
    points, steps = (60, 3) if quick else (1000, 300)
    _linear(report, points, steps, quick)
    _tasks(report, points, steps)
    _cells(report, points, steps)
    _sizes(report, points, steps, quick)
    _real_time(report, points, steps, quick)


def timed(simulation: Simulation, steps: int) -> tuple[float, dict[str, float]]:
    """Seconds per step, in all and by task, after a few steps that do not count."""
    simulation.step(min(10, steps))
    simulation.timers.update(dict.fromkeys(STAGES, 0.0))
    begin = time.perf_counter()
    simulation.step(steps)
    return (time.perf_counter() - begin) / steps, {name: simulation.timers[name] / steps for name in STAGES}


def _linear(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E1: the cost is linear in the number of bodies (the thesis: linear)")
    numbers = (0, 2, 4) if quick else (0, 25, 50, 100, 200)
    taken = [timed(corridor(points, n, device="cpu", width=24.0 if quick else 40.0), steps)[0] for n in numbers]
    fit = np.polyfit(numbers, taken, 1)
    left = np.var(np.array(taken) - np.polyval(fit, numbers)) / np.var(taken)
    report.table(["bodies", "step"], [[str(n), seconds(t)] for n, t in zip(numbers, taken, strict=True)])
    report.note(f"R^2 of a straight line: {1 - left:.4f} (asked for: 0.98).")


def _tasks(report: Report, points: int, steps: int) -> None:
    report.section("E2, E3: cost by task in the circle")
    rows, costs = [], {}
    for n, bodies in ((points // 2, 50), (points, 50), (points // 2, 100)):
        simulation = circle(n, bodies, separate=True, device="cpu")
        whole, parts = timed(simulation, steps)
        costs[n, bodies] = parts
        rows.append([f"{n} + {bodies}", seconds(whole), *(seconds(parts[name]) for name in STAGES)])
    report.table(["points + bodies", "step", *STAGES], rows)
    parts = costs[points, 50]
    one_point = sum(parts[name] for name in ("tracking", "registration")) / points
    report.note(f"A body costs {parts['bodies'] / 50 / one_point:.0f} points (the thesis: 20).")


def _cells(report: Report, points: int, steps: int) -> None:
    report.section("E4, E5: coarse, fine and adaptive cells in the corridor (the thesis: adaptive is the cheapest)")
    rows = []
    kinds = {
        "coarse": {"adaptive": None, "cell": 8.0},
        "fine": {"adaptive": None, "cell": 2.0},
        "adaptive": {"cell": 8.0},
    }
    for name, options in kinds.items():
        simulation = corridor(points, 50, separate=True, device="cpu", **options)
        whole, parts = timed(simulation, steps)
        before = simulation.cells
        simulation.adaptive = None
        simulation.step()
        changed = float((simulation.cells != before).mean())
        told = [seconds(parts[stage]) for stage in STAGES]
        rows.append([name, seconds(whole), *told, str(len(simulation.map.leaves)), f"{100 * changed:.1f} %"])
    report.table(["cells", "step", *STAGES, "cells at the end", "points that change cell in a step (below 10 %)"], rows)


def _sizes(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E6: a city of any size, the same crowd (the thesis: independent)")
    rows = []
    for blocks in (2, 3) if quick else (5, 10, 20):
        simulation = city(points, blocks=blocks, visits=1, device="cpu", reroute=0.0)
        rows.append([f"{blocks} x {blocks}", str(len(simulation.map.leaves)), seconds(timed(simulation, steps)[0])])
    report.table(["blocks", "cells", "step"], rows)


def _real_time(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("Real time: 30 steps a second")
    cases = {
        f"corridor {points} + 50": lambda: corridor(points, 50, device="cpu"),
        f"circle {points} + 50": lambda: circle(points, 50, device="cpu"),
        f"circle {5 * points} + 300": lambda: circle(5 * points, 300, size=400.0, device="cpu"),
        f"in space {points // 2}": lambda: swarm(points // 2, device="cpu"),
        f"in space {10 * points}": lambda: swarm(10 * points, device="cpu"),
    }
    rows = []
    for name, make in cases.items():
        taken = timed(make(), max(1, steps // 3))[0]
        rows.append([name, seconds(taken), f"{1 / taken:.0f} Hz"])
    report.table(["crowd", "step", "rate"], rows)

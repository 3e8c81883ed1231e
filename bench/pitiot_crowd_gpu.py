"""Crowds on a CUDA device: rates, tasks of a step, and agreement with the CPU.

Experiment E13, on Pitiot 2015, section 9.1.1, and crowds of up to a million agents. Times are of one run as it
comes, without the first steps, which compile. Skipped on a machine without a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, seconds
from bench.pitiot_crowd_figures import STAGES, TURN, make_steps, verdict
from tangere.crowd import Orca, Simulation
from tangere.crowd.scenarios import circle, city, corridor, field, planet, swarm

FEATURES = ["F-P-66"]

_BUDGET = 60
#: Steps after which a crowd is compared with that of the CPU.
_COMPARED = 2 * TURN


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    _rates(report, 100 if quick else 1)
    _agreement(report)


def _rates(report: Report, fewer: int) -> None:
    report.section("Real time: 30 steps a second")
    cases: dict[str, tuple[Callable[..., Simulation], int]] = {
        f"field {count(1_000_000 // fewer)}, cells adapt": (
            lambda **options: field(1_000_000 // fewer, per_area=0.6, cell=12.0, device="cuda", **options),
            400,
        ),
        f"in space {count(500)}": (lambda **options: swarm(500, device="cuda", **options), 1200),
        f"in space {count(10_000 // fewer)}": (
            lambda **options: swarm(10_000 // fewer, device="cuda", **options),
            1200,
        ),
        f"in space {count(100_000 // fewer)}": (
            lambda **options: swarm(100_000 // fewer, size=256.0, device="cuda", **options),
            3000,
        ),
        f"the same, {_BUDGET} splits at a look": (
            lambda **options: swarm(100_000 // fewer, size=256.0, budget=_BUDGET, device="cuda", **options),
            3000,
        ),
        "circle 5000 + 300": (lambda **options: circle(5000, 300, size=400.0, device="cuda", **options), 1000),
    }
    rows, tasks = [], []
    for name, (make, steps) in cases.items():
        each = _timed(make(), steps)
        dearest = float(each.reshape(-1, TURN).mean(axis=1).max())
        times, late = [float(each.mean()), dearest, float(each.max())], int((each > 1 / 30).sum())
        rates = [f"{1 / times[0]:.0f} Hz", f"{1 / dearest:.0f} Hz, {verdict(dearest <= 1 / 30)}"]
        rows.append([name, count(each.size), *map(seconds, times), str(late), *rates])
        simulation = make(separate=True)
        make_steps(simulation, steps // 2)
        before = simulation.total_timings
        make_steps(simulation, TURN)
        after = simulation.total_timings
        tasks.append([name, *(seconds((after[task] - before[task]) / TURN) for task in STAGES)])
    columns = ["crowd", "steps", "step", f"dearest {TURN} steps", "slowest step", "steps over 33 ms", "rate"]
    report.table([*columns, "rate of the dearest (30 Hz)"], rows)
    report.note(
        "Crowds in space: until they have met in the middle and parted. The slowest steps are those in which thousands "
        "of cells split and merge; a budget spreads them over more steps. By task, half way:"
    )
    report.table(["crowd", *STAGES], tasks)


def _timed(simulation: Simulation, steps: int) -> np.ndarray:
    """(steps,) seconds."""
    make_steps(simulation, 10)
    each = []
    for _ in range(steps):
        wp.synchronize()
        begin = time.perf_counter()
        simulation.step()
        wp.synchronize()
        each.append(time.perf_counter() - begin)
    return np.array(each)


def _agreement(report: Report) -> None:
    report.section("Agreement with the CPU")
    scenes: dict[str, Callable[[str], Simulation]] = {
        "field 3000": lambda device: field(3000, device=device),
        "field 3000, ORCA": lambda device: field(3000, behaviour=Orca(), device=device),
        "circle 400 + 100": lambda device: circle(400, 100, device=device),
        "corridor 400 + 50": lambda device: corridor(400, 50, device=device),
        "city 400, ways around walls": lambda device: city(400, blocks=3, visits=1, device=device),
        "planet 300 + 10": lambda device: planet(300, 10, device=device),
        "in space 500": lambda device: swarm(500, device=device),
    }
    rows = []
    for name, make in scenes.items():
        here, there = make("cpu"), make("cuda")
        for simulation in (here, there):
            make_steps(simulation, _COMPARED)
        apart = [
            float(np.abs(a - b).max(initial=0.0))
            for a, b in ((here.positions, there.positions), (here.bodies.positions, there.bodies.positions))
        ]
        same = here.operations == there.operations
        rows.append([name, *(f"{x:.1e} m" for x in apart), "the same" if same else "others"])
    report.table(["crowd", "points apart", "bodies apart", "cells split and merged"], rows)
    report.note(f"After {_COMPARED} steps from the same start; the city looks for ways around walls once in them.")

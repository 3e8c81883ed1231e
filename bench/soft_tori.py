"""Whole steps of two soft tori in contact: how long, phase by phase, at three resolutions and many stiffnesses.

The scene of the document (specs/leonard-deformable-gpu 3.1): two tori, 300 steps of 20 ms, hard response. Its target is
a whole step in less than 50 ms at 51,200 triangles; the document's own totals are those of its table 4.7.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, seconds
from tangere.soft import scenes

FEATURES: list[str] = []

RESOLUTIONS = (3_200, 12_800, 51_200)
STIFFNESSES = (1e2, 1e3, 1e4, 1e5, 1e6)


def run(report: Report, quick: bool = False) -> None:
    steps = 70 if quick else 300
    report.section("Whole steps")
    rows = [_row(triangles, 1e4, steps) for triangles in (RESOLUTIONS[:1] if quick else RESOLUTIONS)]
    rows += [_row(RESOLUTIONS[0 if quick else -1], stiffness, steps) for stiffness in STIFFNESSES if stiffness != 1e4]
    columns = ["triangles", "stiffness [Pa]", "sweeps", "mean", "p99", "most", "contacts", "held back", "energy"]
    report.table([*columns, *(f"{name} (mean)" for name in ("detect", "solve", "truncate"))], rows)
    report.note(
        "Energy is the largest total during the run above that of the start, as part of what the upper torus falls"
        " through; held back is the largest number of vertices that ran out of room in a step."
    )


def _row(triangles: int, stiffness: float, steps: int) -> list:
    simulation = scenes.tori(triangles, stiffness=stiffness)
    simulation.step()  # compiles
    start, most_energy = simulation.energy().total, -np.inf
    totals, phases = [], {name: [] for name in simulation.phases}
    rows = held = 0
    for _ in range(steps - 1):
        began = time.perf_counter()
        simulation.step()
        totals.append(time.perf_counter() - began)
        for name, taken in simulation.timings.items():
            phases[name].append(taken)
        rows, held = max(rows, simulation.rows.count), max(held, simulation.held.vertices)
        most_energy = max(most_energy, simulation.energy().total)
    fall = 9.81 * 10.0 * float(simulation.bodies[1].vertex_mass.sum())
    return [
        *(triangles, f"{stiffness:g}", simulation.sweeps),
        *(seconds(float(value)) for value in (np.mean(totals), np.percentile(totals, 99), max(totals))),
        *(rows, held, f"{(most_energy - start) / fall:+.2%}"),
        *(seconds(float(np.mean(phases[name]))) for name in ("detect", "solve", "truncate")),
    ]

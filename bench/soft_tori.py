"""Whole steps of two soft tori in contact: how long, phase by phase, at several resolutions and stiffnesses.

The scene of the document (Léonard 2021, section 4.1): two tori, steps of 20 ms, hard response. Its target is a
whole step in less than 50 ms at 51,200 triangles, 20 to 60 steps a second; its own totals are those of its table 4.7.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, seconds
from tangere.soft import scenes

FEATURES = ["F-L-8", "F-L-10", "F-L-13"]

#: Triangles, stiffness [Pa], steps: the standard scene to its end, the largest through fall and impact.
RUNS = (
    (3_200, 1e4, 300),
    (12_800, 1e4, 300),
    (51_200, 1e4, 300),
    (51_200, 1e3, 300),
    (51_200, 1e5, 300),
    (51_200, 1e6, 300),
    (204_800, 1e4, 70),
)
QUICK = ((3_200, 1e4, 60), (3_200, 1e6, 60))
TARGET = 0.05  # s
COLUMNS = ["triangles", "stiffness [Pa]", "steps", "sweeps", "mean", "p99", "most", "rate", "below 50 ms"]
MEASURED = ["CPU time", "contacts", "held back", "energy", "detect", "solve", "truncate"]


def run(report: Report, quick: bool = False) -> None:
    report.section("Whole steps")
    report.table([*COLUMNS, *MEASURED], [_row(*chosen) for chosen in (QUICK if quick else RUNS)])
    report.note(
        "Rate is steps per second on average; below 50 ms is the part of all steps. CPU time is that of all threads, a"
        " step: on a machine busy with other work it tells more than the clock. Contacts and held back are the largest"
        " number of contacts, and of vertices that ran out of room, in a step. Energy is the largest total during the"
        " run above that of the start, as part of what the upper torus falls through."
    )


def _row(triangles: int, stiffness: float, steps: int) -> list:
    simulation = scenes.tori(triangles, youngs_modulus=stiffness, device="cpu")
    simulation.step()  # compiles
    start, most_energy = simulation.energy.total, -np.inf
    totals, worked = [], 0.0
    phases: dict[str, list[float]] = {name: [] for name in simulation.phases}
    rows = held = 0
    for _ in range(steps - 1):
        began, busy = time.perf_counter(), time.process_time()
        simulation.step()
        totals.append(time.perf_counter() - began)
        worked += time.process_time() - busy
        for name, taken in simulation.timings.items():
            phases[name].append(taken)
        rows, held = max(rows, simulation.rows.count), max(held, simulation.truncation.limited_vertices)
        most_energy = max(most_energy, simulation.energy.total)
    fall = 9.81 * 10.0 * float(simulation.bodies[1].vertex_mass.sum())
    return [
        *(triangles, f"{stiffness:g}", steps, simulation.sweeps),
        *(seconds(float(value)) for value in (np.mean(totals), np.percentile(totals, 99), max(totals))),
        *(f"{1.0 / np.mean(totals):.0f} Hz", f"{np.mean(np.array(totals) < TARGET):.1%}"),
        *(seconds(worked / (steps - 1)), rows, held, f"{(most_energy - start) / fall:+.2%}"),
        *(seconds(float(np.mean(phases[name]))) for name in ("detect", "solve", "truncate")),
    ]

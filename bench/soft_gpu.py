"""Whole steps of soft bodies on a CUDA device: how long, how they agree with the CPU, and what the host is told.

Everything stays on the device (Léonard 2021, section 5.4.2): phases are captured graphs, and a step reads a few
counters back, once. The target is 5 ms for a whole step at 51,200 triangles. Skipped on a machine without a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, seconds
from oracles.soft_bodies import overlaps
from tangere.soft import Simulation, scenes

FEATURES = ["F-L-67"]

RESOLUTIONS = (3_200, 12_800, 51_200, 204_800)
STIFFNESSES = (1e3, 1e5, 1e6)
PHASES = ("detect", "respond", "solve", "truncate")


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    steps = 70 if quick else 150
    report.section("Whole steps")
    rows = [_row(f"tori {n:,}", 1e4, _tori(n, 1e4), steps) for n in RESOLUTIONS[: 2 if quick else None]]
    if not quick:
        rows += [_row(f"tori {51_200:,}", e, _tori(51_200, e), steps) for e in STIFFNESSES]
        rows.append(_row("knot 3,960", 3e3, scenes.knot, steps))
    columns = ["scene", "stiffness [Pa]", "sweeps", "median", "p99", "most", *PHASES, "contacts"]
    report.table([*columns, "reads a step", "bytes a step", "against the CPU", "intersections"], rows)
    report.note(
        "Against the CPU: the largest difference after one step from the same state, every tenth step [m]."
        " Intersections are counted then, too, by the exact test."
    )


def _tori(triangles: int, stiffness: float) -> Callable[..., Simulation]:
    return lambda **options: scenes.tori(triangles, youngs_modulus=stiffness, **options)


def _row(name: str, stiffness: float, scene: Callable[..., Simulation], steps: int) -> list:
    there, here = scene(device="cuda"), scene(device="cpu")
    totals, phases, reads = [], {phase: [] for phase in PHASES}, []
    apart, crossed, contacts = 0.0, 0, 0
    plain = wp.array.numpy

    def counted(array: wp.array) -> np.ndarray:
        told = plain(array)
        reads.append(told.nbytes)
        return told

    read_count = read_bytes = 0
    for step in range(steps):
        look = step % 10 == 9
        if look:
            for body in range(len(here.bodies)):
                here[body].set_state(positions=there[body].positions, velocities=there[body].velocities)
        wp.synchronize()
        wp.array.numpy = counted
        began = time.perf_counter()
        there.step()
        wp.synchronize()
        taken = time.perf_counter() - began
        wp.array.numpy = plain
        if step >= 3:  # the first ones compile and capture
            totals.append(taken)
            read_count, read_bytes = read_count + len(reads), read_bytes + sum(reads)
            for phase, spent in there.timings.items():
                if phase in phases:
                    phases[phase].append(spent)
        reads.clear()
        contacts = max(contacts, there.rows.count)
        if look:
            here.step()
            for body in range(len(here.bodies)):
                apart = max(apart, float(np.abs(there[body].positions - here[body].positions).max()))
            crossed += overlaps(there)
    return [
        *(name, f"{stiffness:g}", there.sweeps),
        *(seconds(float(value)) for value in (np.median(totals), np.percentile(totals, 99), max(totals))),
        *(seconds(float(np.median(phases[phase]))) for phase in PHASES),
        *(contacts, f"{read_count / len(totals):.2f}", f"{read_bytes / len(totals):.0f}", f"{apart:.1e}", crossed),
    ]

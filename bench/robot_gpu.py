"""Whole robot trajectories on a CUDA device: segments of a UR5 and a Panda in a second, self and cell.

A trajectory has fifty segments of a spline through four random configurations, in a cell with a table and a box. Half
of them are free, half as they come, most of which touch something. All pairs that are not linked are asked about, in
every segment. Joint values go in as NumPy arrays and answers come back as such, everything in between included: it is
`Robot.check` that is measured. Robots are those of the wheel example-robot-data. Skipped on a machine without CUDA.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import warp as wp

import tangere as tg
from bench.harness import Report, SkippedError, count, measure, seconds
from bench.redon_table_3_2 import criteria
from bench.robots import SEGMENTS, cell, linked, load, splines
from tangere.query.articulated.rigid_pairs import RigidPairs
from tangere.query.first_contact.rigid.cuda.block_search import search_blocks
from tangere.query.first_contact.rigid.cuda.frontier_search import search_frontier

FEATURES: list[str] = []

DEVICE = "cuda"
ROBOTS = "UR5", "Panda"
TOLERANCE, CAP, ACCURACY = 1e-6, 0.1, 0.5
#: Trajectories of a batch, and of what is compared with the CPU.
BATCHES, COMPARED = (10, 200, 2000), 100


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    batches, compared = ((4, 20), 8) if quick else (BATCHES, COMPARED)
    cells = {name: _Cell(name, max(batches)) for name in ROBOTS}
    wrong = _agreement(report, cells, compared)
    rates = _rates(report, cells, batches)
    asked = [
        ("answers that contradict the CPU's", str(wrong), wrong == 0),
        *(
            (f"{name}, {what}: at least {count(least)} segments/s", count(rates[name, what]), found >= least)
            for what, least in (("verdict", 130e3), ("with clearance", 35e3))
            for name in ROBOTS
            for found in [rates[name, what]]
        ),
    ]
    criteria(report, asked)
    _stages(report, cells, 4 if quick else 200)
    _roads(report, cells, 4 if quick else 200)


class _Cell:
    """A robot in its cell, and trajectories."""

    def __init__(self, name: str, most: int) -> None:
        self.name, self.robot, self.world = name, load(name), cell()
        self.allowed = linked(self.robot)
        rng = np.random.default_rng(9)
        free: list[np.ndarray] = []
        while len(free) < min(most // 2, 100):
            q = splines(rng, self.robot, 1000)
            free += [*q[self.check(q, until="contact").status == 0]]
        # A free one is moved on a little from copy to copy.
        chosen = np.array(free)[np.arange(most // 2) % len(free)]
        shifts = np.where(np.arange(most // 2) < len(free), 0.0, 1.0)[:, None, None]
        low, high = self.robot.limits.T
        chosen = np.clip(chosen + shifts * rng.normal(0.0, 0.03, (most // 2, 1, len(low))), low, high)
        self.q = np.empty((2 * (most // 2), SEGMENTS + 1, len(low)))
        self.q[::2], self.q[1::2] = chosen, splines(rng, self.robot, most // 2)

    def check(self, q: np.ndarray, device: str = "", **options: Any) -> Any:
        return self.robot.check(q, self.world, self.allowed, tolerance=TOLERANCE, device=device or DEVICE, **options)


def _agreement(report: Report, cells: dict[str, _Cell], compared: int) -> int:
    """How many answers of the two devices cannot both be right."""
    report.section("Agreement with the CPU")
    rows, wrong = [], 0
    for name, one in cells.items():
        q = one.q[:compared]
        cpu, gpu = (one.check(q, device, clearance=CAP, accuracy=ACCURACY).segments for device in ("cpu", DEVICE))
        plain = one.check(q).segments
        both = np.isfinite(cpu.time) & np.isfinite(gpu.time)
        others = int((cpu.status != gpu.status).sum() + (plain.status != gpu.status).sum())
        crossed = int(((cpu.time > gpu.time_upper) | (gpu.time > cpu.time_upper))[both].sum())
        apart = int(((cpu.clearance_lower > gpu.clearance_upper) | (gpu.clearance_lower > cpu.clearance_upper)).sum())
        late = float(np.abs(cpu.time[both] - gpu.time[both]).max(initial=0.0)) * SEGMENTS
        rows.append([name, cpu.status.size, int((cpu.status != 0).sum()), others, f"{late:.1e}", crossed, apart])
        wrong += others + crossed + apart
    report.table(
        [
            "robot",
            "segments",
            "touch",
            "other status",
            "largest difference of time, in segments",
            "after the other's certainty",
            "clearances that exclude each other",
        ],
        rows,
    )
    return wrong


def _rates(report: Report, cells: dict[str, _Cell], batches: tuple[int, ...]) -> dict[tuple[str, str], float]:
    """Segments a second of the largest batch, by robot and question."""
    report.section("Batches")
    rows, rates = [], {}
    for name, one in cells.items():
        for n in batches:
            q = one.q[:n]
            ways = {
                "verdict": partial(one.check, q),
                "with clearance": partial(one.check, q, clearance=CAP, accuracy=ACCURACY),
                "to the first contact": partial(one.check, q, until="contact"),
            }
            for what, timing in measure(ways, rounds=3).items():
                rate = n * SEGMENTS / timing.median
                rates[name, what] = max(rates.get((name, what), 0.0), rate)
                told = None if what == "to the first contact" else f"{count(rate)}/s"
                rows.append([name, count(n), what, timing, told, f"{count(n / timing.median)}/s"])
    report.table(["robot", "trajectories", "question", "time", "segments", "trajectories a second"], rows)
    report.note(f"With clearance: certified up to {CAP} m, to a half.")
    return rates


def _stages(report: Report, cells: dict[str, _Cell], n: int) -> None:
    """Where the time of a call goes: a block of segments, step by step."""
    rows = []
    for name, one in cells.items():
        queries, ask, asked = _asked(one, n)
        bounds = np.full(asked, CAP)
        taken: dict[str, list[float]] = {}

        def clocked(stage: str, step: Any, taken: dict[str, list[float]] = taken) -> Any:
            begin = time.perf_counter()
            result = step()
            wp.synchronize_device(DEVICE)
            taken.setdefault(stage, []).append(time.perf_counter() - begin)
            return result

        for _ in range(6):
            clocked("write motions and questions", ask)
            hits = clocked("search", queries.search)
            touching = np.flatnonzero(hits["pair"] >= 0)
            clocked("describe contacts", partial(queries.details, touching, hits[touching]))
            clocked("the same, for clearance", partial(ask, beyond=(1.0 - ACCURACY) * CAP))
            clocked("search for clearance", partial(queries.least, bounds, ACCURACY))
        rows += [[name, asked, stage, seconds(float(np.median(rounds[1:])))] for stage, rounds in taken.items()]
    report.section("Stages of a block")
    report.table(["robot", "segments", "stage", "time"], rows)


def _roads(report: Report, cells: dict[str, _Cell], n: int) -> None:
    """The search of meshes alone: a block for each question, and rounds over all."""
    rows = []
    for name, one in cells.items():
        queries, ask, asked = _asked(one, n)
        ask()
        batch: Any = next(engine for engine in queries.engines if isinstance(engine, RigidPairs)).batch
        for road, search in {
            "blocks of 32": partial(search_blocks, batch, 32),
            "blocks of 64": partial(search_blocks, batch, 64),
            "rounds": partial(search_frontier, batch),
        }.items():

            def searched(batch: Any = batch, search: Any = search) -> None:
                batch.reset_hits()
                search()
                wp.synchronize_device(batch.device)

            timing = measure({road: searched}, rounds=5)[road]
            rows.append([name, asked, batch.count, road, timing, f"{count(asked / timing.median)}/s"])
    report.section("The search alone, of meshes")
    report.table(["robot", "segments", "questions left by boxes", "road", "time", "segments a second"], rows)


def _asked(one: _Cell, n: int) -> tuple[Any, Any, int]:
    """Room for a block of the segments of n trajectories, what writes them down there, and how many they are."""
    cell_of = tg.robot.Workcell({"": one.robot}, world=one.world)
    checker = tg.robot.TrajectoryChecker(cell_of, one.robot.allowed(one.allowed), device=DEVICE)
    queries = checker.queries(n * SEGMENTS)
    points = one.q[:n].reshape(-1, one.q.shape[2])
    values = wp.array(points, dtype=wp.float64, device=DEVICE, ndim=2)
    begin = (np.arange(n)[:, None] * (SEGMENTS + 1) + np.arange(SEGMENTS)).reshape(-1)[: queries.steps]
    return queries, partial(queries.ask, values, begin, begin + 1, tolerance=TOLERANCE), len(begin)

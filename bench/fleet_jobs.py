"""Fleets: what a shard costs beside its jobs, and ten thousand clash jobs on two processes.

A clash job compares two of six bumpy balls of 1,280 triangles each, where they are. *Useful* is the process time of the
same jobs asked one after the other in a plain loop, warm, without fleet, one thread: every third of them, times three,
by a third process at the same time, because a core that is shared is slower. *Spent* is the process time of everything
that a run takes: who asks, and two workers with their start, imports, kernels, prepared parts, files, and reading the
answers back. Efficiency is useful / spent, times how evenly the workers were busy (the mean of their process times over
the largest). On two cores that nobody else uses it is the speed-up over the plain loop, halved; process time does not
count the waiting for others who use them.
"""

from __future__ import annotations

import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import tangere as tg
from bench.harness import Report, seconds
from tangere.fleet import JobTools

FEATURES: list[str] = []

JOBS, SHARDS, WORKERS = 10_000, 300, 2
_EVERY = 3  #: of so many jobs one is also asked in a plain loop


def nothing(row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
    return {"y": row["x"]}


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["pyarrow"]
    with tempfile.TemporaryDirectory() as folder:
        _overhead(report, Path(folder), 20 if quick else SHARDS)
        _efficiency(report, Path(folder), 40 if quick else JOBS)


def _overhead(report: Report, folder: Path, count: int) -> None:
    """Jobs that do nothing, one a shard."""
    rows = []
    for name, executor in (("here", None), ("one process", 1)):
        spent = {}
        for shards in (2, 1, count):  # the first is to load what there is to load
            jobs = tg.fleet.Jobs(nothing, {"x": [0.0] * shards, "cost": [1.0] * shards}, answers={"y": float})
            begin = _spent()
            found = tg.fleet.run(jobs, folder / f"{name} {shards}", executor, seconds_per_shard=1.0)
            spent[shards] = _spent() - begin
            assert found.fine == found.shards == shards
        each = (spent[count] - spent[1]) / (count - 1)
        rows.append([name, count, seconds(each)])
    report.section("What a shard costs beside its jobs")
    report.table(["workers", "shards", "process time of a shard, all processes"], rows)
    report.note("The time of a run of one shard is taken off: starting a process is not a matter of shards.")


def _efficiency(report: Report, folder: Path, count: int) -> None:
    jobs = clash_jobs(folder, count)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        begin, wall = _spent(), time.perf_counter()
        plain = beside.submit(_plain, *_some(jobs), folder / "plain")
        found = tg.fleet.run(jobs, folder / "fleet", WORKERS, seconds_per_shard=2.0)
        spent, wall = _spent() - begin, time.perf_counter() - wall  # the one beside has not ended
        useful = plain.result() * len(jobs)
    assert found.failed == 0
    busy = np.array(list(found.workers.values()))
    even = float(busy.mean() / busy.max())
    again = time.process_time()
    assert tg.fleet.run(jobs, folder / "fleet", WORKERS).done == 0
    again = time.process_time() - again
    report.section(f"{count:,} clash jobs on {WORKERS} processes")
    report.table(
        ["jobs", "shards", "useful", "spent", "useful / spent", "evenness", "efficiency", "wall clock"],
        [
            [
                f"{count:,}",
                found.shards,
                seconds(useful),
                seconds(spent),
                f"{useful / spent:.3f}",
                f"{even:.3f}",
                f"{useful / spent * even:.3f}",
                seconds(wall),
            ]
        ],
    )
    counts = ", ".join(f"{number:,} {status}" for status, number in found.counts.items())
    report.note(f"Found: {counts}. A second run, which does nothing: {seconds(again)}.")


def clash_jobs(folder: Path, count: int) -> tg.fleet.Jobs:
    """Pairs of six bumpy balls, at random places near each other."""
    for k in range(6):
        ball = tg.generate.icosphere(3)
        bumps = 1.0 + 0.1 * np.sin(5.0 * ball.vertices[:, [k % 3]] + k)
        ball.replace(vertices=0.5 * bumps * ball.vertices).save(folder / f"ball-{k}.ply")
    random, rows = np.random.default_rng(0), []
    for _ in range(count):
        a, b = random.choice(6, 2, replace=False)
        place = [*(0.6 * random.normal(size=3)), 1.0, *(0.3 * random.normal(size=3))]
        rows.append({"a": f"ball-{a}.ply", "b": f"ball-{b}.ply", "pose_b": place})
    return tg.fleet.Jobs("clash", rows, base=folder, depth=False)


def _some(jobs: tg.fleet.Jobs) -> tuple[Any, ...]:
    """What a plain loop needs to ask some of the jobs."""
    files = {path: each.digest for path, each in jobs.stamps.items()}
    return jobs.kind, jobs.rows(np.arange(0, len(jobs), _EVERY)), files


def _plain(kind: Any, rows: list[dict[str, Any]], files: dict[str, str], folder: Path) -> float:
    """Process time of a job in a loop of one's own [s]."""
    for part in ("parts", "unfinished"):
        (folder / part).mkdir(parents=True)
    tools = JobTools(folder, files, None, "cpu", 1)
    for row in rows[:20]:
        kind.answer(row, tools)  # parts and kernels
    begin = time.process_time()
    for row in rows:
        kind.answer(row, tools)
    return (time.process_time() - begin) / len(rows)


def _spent() -> float:
    """Process time of this process and of those that it has started and that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime

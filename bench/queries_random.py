"""Random vertex-face and edge-edge queries, about half of them colliding.

How many queries a second, on one thread and on several; what a query costs in small and large batches, and alone; how
much memory it takes. The peer has no call for arrays of queries: it is measured as Python users call it, one query at a
time on a smaller sample, and through its own C++ loop over the candidates of a mesh.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np

from bench import machine
from bench.harness import Report, count, measure, ratio, seconds
from bench.peers import ipctk
from bench.plots import Plot
from oracles.families.feature_queries import random_half_colliding
from tangere.query.contacts import Kind
from tangere.query.first_contact import FirstContacts, edge_edge, vertex_face

FEATURES = ["F-T-21"]

ROOT = Path(__file__).resolve().parents[1]
ASK = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}
NAMES = {Kind.VERTEX_FACE: "vertex-face", Kind.EDGE_EDGE: "edge-edge"}


def run(report: Report, quick: bool = False) -> None:
    report.packages.append("ipctk")
    scale = 100 if quick else 1
    queries = {kind: _queries(kind, 1_000_000 // scale) for kind in ASK}
    _throughput(report, queries, 2_000_000 // scale // 100)
    _candidate_loop(report, queries, 400_000 // scale)
    _batch_sizes(report, queries, 10_000_000 // scale)
    _one_by_one(report, queries, 2_000 // (10 if quick else 1))
    _memory(report, 1_000_000 // scale)


def _queries(kind: Kind, n: int) -> tuple[np.ndarray, np.ndarray]:
    points = random_half_colliding(kind, n, np.random.default_rng(1)).points
    return np.ascontiguousarray(points[:, :4]), np.ascontiguousarray(points[:, 4:])


def _ours(kind: Kind, x0: np.ndarray, x1: np.ndarray, threads: int = 1, details: bool = False) -> FirstContacts:
    return ASK[kind](x0, x1, details=details, threads=threads, device="cpu")


def _throughput(report: Report, queries: dict, sample: int) -> None:
    report.section("Queries per second")
    rows = []
    for kind, (x0, x1) in queries.items():
        # TightInclusion takes about a millisecond a query: a tenth of the sample is enough of it.
        sizes = {"AdditiveCCD 0.999": sample, "TightInclusion": sample // 10}
        contenders = {f"tangere, {t} threads": partial(_ours, kind, x0, x1, t) for t in _thread_counts()}
        contenders["tangere, 1 thread, with points and normals"] = partial(_ours, kind, x0, x1, details=True)
        for method, n in sizes.items():
            contenders[method] = partial(ipctk.answers, kind, method, x0[:n], x1[:n])
        timings = measure(contenders, rounds=5)
        per_query = {name: timings[name].median / sizes.get(name, len(x0)) for name in contenders}
        ours = per_query["tangere, 1 threads"]
        time = timings["tangere, 1 threads"].result.time
        for name in contenders:
            peer = name in sizes
            rows.append(
                [
                    NAMES[kind],
                    f"ipctk {name}, called from Python" if peer else name.replace("1 threads", "1 thread"),
                    count(sizes.get(name, len(x0))),
                    timings[name],
                    count(1 / per_query[name]),
                    ratio(per_query[name], ours),
                    _agreement(time[: sizes[name]], timings[name].result) if peer else None,
                ]
            )
    report.table(
        ["kind", "method", "queries", "time", "queries/s", "time per query against ours on 1 thread", "hits"], rows
    )


def _agreement(ours: np.ndarray, theirs: np.ndarray) -> str:
    both = np.isfinite(ours) & np.isfinite(theirs)
    early = ours[both] - theirs[both]
    return (
        f"{np.isfinite(theirs).sum()} (ours {np.isfinite(ours).sum()}); times earlier than ours by "
        f"{np.median(early):.1e} (median), {early.max():.1e} (most)"
    )


def _candidate_loop(report: Report, queries: dict, n: int) -> None:
    report.section("Against the peer's own C++ loop")
    rows = []
    for kind, (x0, x1) in queries.items():
        x0, x1 = x0[:n], x1[:n]
        free = ~np.isfinite(_ours(kind, x0, x1).time)
        for label, chosen in (("those that do not collide", free), ("all", np.ones(n, dtype=bool))):
            some0, some1 = np.ascontiguousarray(x0[chosen]), np.ascontiguousarray(x1[chosen])
            loop = ipctk.CandidateLoop(kind, some0, some1)
            for threads in _thread_counts():
                contenders = {"ours": partial(_ours, kind, some0, some1, threads)}
                contenders |= {method: partial(loop.earliest, method, threads) for method in ipctk.METHODS}
                timings = measure(contenders, rounds=5)
                ours = timings["ours"].median
                rows.append(
                    [
                        NAMES[kind],
                        f"{label} ({count(len(some0))})",
                        threads,
                        count(len(some0) / ours),
                        *(
                            f"{count(len(some0) / timings[m].median)} ({ratio(timings[m].median, ours)})"
                            for m in ipctk.METHODS
                        ),
                    ]
                )
    report.table(["kind", "queries", "threads", "ours, queries/s", *(f"ipctk {m}" for m in ipctk.METHODS)], rows)
    report.note(
        """The loop answers one question, the earliest time of all queries, and hands the earliest time so far on to
        the next query, which may then stop there; ours answers every query. Where none collides there is nothing to
        hand on, and both do the same work. In brackets: how many times longer the peer takes than ours."""
    )


def _batch_sizes(report: Report, queries: dict, largest: int) -> None:
    report.section("Size of a batch")
    sizes = [10**k for k in range(3, 8) if 10**k <= largest]
    costs: dict[str, list[float | None]] = {}
    for kind, (x0, x1) in queries.items():
        for threads in _thread_counts():
            costs[f"{NAMES[kind]}, {threads} thread{'s' * (threads > 1)}"] = series = []
            for n in sizes:
                repeats = -(-n // len(x0))
                some0, some1 = (np.tile(x, (repeats, 1, 1))[:n] if repeats > 1 else x[:n] for x in (x0, x1))
                timing = measure({"ours": partial(_ours, kind, some0, some1, threads)}, rounds=5)["ours"]
                series.append(timing.median / n)
    report.table(
        ["time per query in a batch of", *map(count, sizes)],
        [[name, *(seconds(cost or 0.0) for cost in series)] for name, series in costs.items()],
    )
    report.plot(
        "batches", Plot("Cost of a query by size of the batch", "queries in a batch", "seconds per query", sizes, costs)
    )


def _one_by_one(report: Report, queries: dict, n: int) -> None:
    report.section("One query at a time")
    rows = []
    for kind, (x0, x1) in queries.items():

        def alone(kind: Kind = kind, x0: np.ndarray = x0[:n], x1: np.ndarray = x1[:n]) -> np.ndarray:
            return np.concatenate([_ours(kind, x0[i : i + 1], x1[i : i + 1]).time for i in range(len(x0))])

        timings = measure({"alone": alone, "batch": partial(_ours, kind, x0[:n], x1[:n])}, rounds=5)
        same = np.array_equal(timings["alone"].result, timings["batch"].result.time)
        if not same:
            raise AssertionError(f"{NAMES[kind]}: a query alone and in a batch got different answers")
        rows.append([NAMES[kind], *(seconds(timings[k].median / n) for k in ("alone", "batch")), "identical bits"])
    report.table(["kind", "a query alone", f"in a batch of {n}", "answers"], rows)


def _memory(report: Report, n: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    report.section("Memory")
    rows = [[NAMES[kind], count(n), 192, f"{_peak_bytes(kind, n) / n:.0f}"] for kind in ASK]
    report.table(["kind", "queries", "bytes per query, input", "bytes per query, most held beyond the input"], rows)


def _peak_bytes(kind: Kind, n: int) -> int:
    """How far resident memory rises during one call, in a process of its own."""
    code = f"""
        from pathlib import Path
        from bench.queries_random import Kind, _ours, _queries

        def resident(field):
            return int(Path("/proc/self/status").read_text().partition(field)[2].split()[0]) * 1024

        kind = Kind({int(kind)})
        x0, x1 = _queries(kind, {n})
        _ours(kind, x0[:1000], x1[:1000])
        before = resident("VmRSS:")
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
        answer = _ours(kind, x0, x1)
        print(resident("VmHWM:") - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout)


def _thread_counts() -> list[int]:
    return sorted({1, min(2, machine.cores()), machine.cores()})

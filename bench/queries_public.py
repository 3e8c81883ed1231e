"""Public sample queries with exact answers: what is missed, what is a false alarm, what a query costs.

The queries are hand-made degenerate cases (Wang, Ferguson, Schneider, Jiang, Attene, Panozzo, "A Large-Scale Benchmark
and an Inclusion-Based Algorithm for Continuous Collision Detection", 2021). A missed collision is an error; a false
alarm is a near touch reported as a touch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.data import SampleQueries, sample_queries
from bench.harness import Report, measure, seconds
from bench.peers import ipctk
from tangere.published.course.robust import robust_filter
from tangere.query.contacts import Kind
from tangere.query.first_contact import edge_edge, vertex_face

FEATURES: list[str] = []

ASK = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}


def run(report: Report, quick: bool = False) -> None:
    report.packages.append("ipctk")
    rows = []
    for kind, name in ((Kind.VERTEX_FACE, "vertex-face"), (Kind.EDGE_EDGE, "edge-edge")):
        queries = sample_queries(kind)
        if quick:
            queries = SampleQueries(queries.x0[:20], queries.x1[:20], queries.collides[:20])
        timings = measure(_contenders(kind, queries), rounds=3)
        for method, timing in timings.items():
            hit = timing.result
            rows.append(
                [
                    name,
                    f"{len(hit)} ({queries.collides.sum()})",
                    method,
                    int((queries.collides & ~hit).sum()),
                    int((hit & ~queries.collides).sum()),
                    seconds(timing.median / len(hit)),
                ]
            )
    report.table(["kind", "queries (that collide)", "method", "missed", "false alarms", "time per query"], rows)
    report.note(
        """One thread. `published` is the document as printed, in its most charitable reading, and is offered for
        comparison only. The time of ipctk's TightInclusion is ruled by a few degenerate queries."""
    )


def _contenders(kind: Kind, queries: SampleQueries) -> dict[str, Callable[[], np.ndarray]]:
    x0, x1 = queries.x0, queries.x1

    def ours(mode: str) -> np.ndarray:
        return np.isfinite(ASK[kind](x0, x1, mode=mode, details=False, threads=1, device="cpu").time)

    return {
        **{f"tangere, {mode}": partial(ours, mode) for mode in ("sound", "exact", "published")},
        "tangere, robust filter alone": lambda: np.isfinite(robust_filter(kind, x0, x1, device="cpu").time),
        **{f"ipctk {m}": lambda m=m: np.isfinite(ipctk.answers(kind, m, x0, x1)) for m in ipctk.METHODS},
    }

"""When should the interval of a continuous box test be halved? The constant k (Redon, figure 3.6).

A test that halves its interval eagerly costs more and rejects more: between the two lies a best k. The thesis keeps
k = 0.15; its curve cannot be read any more. The criterion as printed (3.13) looks at one box only; the symmetric one at
both. The fast actions of the lifter, where steps are long and intervals matter, are replayed by the interval engine as
printed, for each k and both criteria. Nothing else bounds the halving here (30 times at most), as in the thesis.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, count, seconds
from bench.operator import recorded
from bench.plots import Plot
from bench.redon_table_3_2 import box_time, criteria, played
from tangere.published.redon_intervals import IntervalOptions

FEATURES = ["F-R-28"]

EVERY = 4
CONSTANTS = (1e-4, 1e-3, 0.01, 0.04, 0.15, 0.6, 2.5, 10.0, 40.0)
DEPTH = 30
CRITERIA = ("literal", "symmetric")


def run(report: Report, quick: bool = False) -> None:
    recording = recorded("lifter", 80 if quick else None)
    trajectory = recording.trajectory[recording.regime == "fast"][::EVERY]
    constants = CONSTANTS[::3] if quick else CONSTANTS
    settings = {
        f"{criterion}, k = {k:g}": IntervalOptions.printed(criterion=criterion, k=k, depth=DEPTH)
        for criterion in CRITERIA
        for k in constants
    }
    results = played(trajectory, settings, rounds=2 if quick else 3)
    boxes = {name: box_time(results, name) for name in results}
    rows, series = [], {}
    for k in constants:
        row: list[str] = [f"{k:g}"]
        for criterion in CRITERIA:
            name = f"{criterion}, k = {k:g}"
            totals = results[name].totals
            row += [seconds(results[name].seconds.sum()), seconds(boxes[name])]
            row += [count(totals["boxes"]), count(totals["box_intervals"])]
        rows.append(row)
    for criterion in CRITERIA:
        series[f"T, {criterion}"] = [results[f"{criterion}, k = {k:g}"].seconds.sum() for k in constants]
        series[f"T_BV, {criterion}"] = [boxes[f"{criterion}, k = {k:g}"] for k in constants]
    columns = [f"{what} ({criterion})" for criterion in CRITERIA for what in ("T", "T_BV", "N_BV", "intervals")]
    report.table(["k", *columns], rows)
    report.plot("k", Plot("Time of the trajectory against k", "k", "seconds", list(constants), series))
    best = {c: constants[int(np.argmin(series[f"T, {c}"]))] for c in CRITERIA}
    inside = {c: k not in (constants[0], constants[-1]) for c, k in best.items()}
    times = [result.time for result in results.values()]
    apart = max(float(np.abs(_finite(times[0]) - _finite(other)).max()) for other in times)
    report.note(
        f"""{len(trajectory)} actions, every {EVERY}th of the fast ones. The thesis keeps k = 0.15. The contact times
        differ by at most {apart:.1e} of a step; the time tolerance is 1e-4."""
    )
    criteria(
        report,
        [(f"a least T inside the range of k, {c} criterion", f"at k = {best[c]:g}", inside[c]) for c in CRITERIA],
    )


def _finite(times: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(times), times, 2.0)

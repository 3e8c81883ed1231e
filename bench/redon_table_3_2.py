"""Discrete pre-tests before the continuous box test: do they pay, and how many steps a second (Redon, tables 3.2, 3.3).

The window lifter, 20,000 triangles, goes through the 2,604 actions of the virtual operator. Every other one is replayed
by the interval engine as printed (engine B), with the boxes tested at the end of the step first, at its start, at both,
or at neither. The thesis's part and hand are not ours, so only the proportions can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.harness import Report, count, seconds
from bench.operator import recorded
from bench.replay import Replay, Trajectory, replay
from tangere.published.redon_intervals import IntervalOptions

__all__ = ["box_time", "criteria", "lifter", "percent", "played"]

FEATURES = ["F-R-33", "F-R-37"]

SETTINGS = {
    "none": IntervalOptions.printed(final_test=False, initial_test=False),
    "final only": IntervalOptions.printed(initial_test=False),
    "initial only": IntervalOptions.printed(final_test=False),
    "both": IntervalOptions.printed(),
}
#: T_BV and T [s], N^f, N^i, N^c.
PRINTED = {
    "none": (44.73, 55.99, None, None, 5_050_305),
    "final only": (30.75, 41.83, 5_050_305, None, 2_577_968),
    "initial only": (30.11, 41.21, None, 5_050_305, 2_653_086),
    "both": (27.99, 39.10, 5_075_137, 2_600_063, 2_430_508),
}
PRINTED_RATE = 66.0  # steps per second, both pre-tests


def run(report: Report, quick: bool = False) -> None:
    trajectory = lifter(quick)
    results = played(trajectory, SETTINGS, rounds=2 if quick else 3)
    rows = []
    for name, result in results.items():
        boxes, whole, final, initial, continuous = PRINTED[name]
        totals = result.totals
        ours = box_time(results, name), float(result.seconds.sum())
        first = box_time(results, "none"), float(results["none"].seconds.sum())
        for source, (t_boxes, t_all), base, counts in (
            ("ours", ours, first, (totals["box_final"], totals["box_initial"], totals["box_continuous"])),
            ("thesis", (boxes, whole), PRINTED["none"][:2], (final, initial, continuous)),
        ):
            rows.append(
                [
                    f"{name} ({source})",
                    f"{seconds(t_boxes)} ({percent(t_boxes, base[0])})",
                    f"{seconds(t_all)} ({percent(t_all, base[1])})",
                    *(count(number) if number else None for number in counts),
                ]
            )
    report.table(["pre-tests", "T_BV", "T", "N^f", "N^i", "N^c"], rows)
    same = all(results["none"].same_answers(result) for result in results.values())
    drop = 100.0 - 100.0 * box_time(results, "both") / box_time(results, "none")
    report.note(
        f"""{len(trajectory)} actions, {touching(results["both"])} of them with a contact; times and features of contact
        are {"the same, bit for bit, in all four" if same else "NOT the same"}. T is the sum over the actions of the
        least of {2 if quick else 3} replays in turns; T_BV is its share by the thesis's own cost model (3.19), whose
        constants are fitted to all steps of all replays."""
    )
    report.section("Steps per second")
    sound = played(trajectory, {"sound": None}, rounds=2 if quick else 5)["sound"]
    rates = {"interval engine as printed, both pre-tests": results["both"], "first contact, mode sound": sound}
    report.table(
        ["engine", "steps/s, one core", "against the thesis's 66", "median", "95 %", "99 %", "slowest"],
        [
            [name, count(result.rate), f"{result.rate / PRINTED_RATE:.1f}x", *percentiles(result)]
            for name, result in rates.items()
        ],
    )
    report.note(
        """For the sound engine a step is the public call, Python included; for the interval engine it is the search
        alone."""
    )
    least = min(results, key=lambda name: results[name].seconds.sum())
    criteria(
        report,
        [
            ("T_BV at least 30 % smaller with both pre-tests", f"{drop:.0f} %", drop >= 30.0),
            ("both pre-tests are best", f"least T: {least}", least == "both"),
            ("660 steps/s on one core, ten times the thesis", f"{count(sound.rate)} steps/s", sound.rate >= 660.0),
        ],
    )


def criteria(report: Report, asked: Sequence[tuple[str, str, bool]]) -> None:
    """What the specification asks of an experiment, what was found, and whether that will do."""
    report.section("Verdict")
    rows = [[wanted, found, "pass" if fine else "**fail**"] for wanted, found, fine in asked]
    report.table(["asked for", "found", "verdict"], rows)


def lifter(quick: bool, every: int = 2) -> Trajectory:
    """Every so many of the 2,604 actions of the window lifter, or a short rehearsal."""
    return recorded("lifter", 80).trajectory if quick else recorded("lifter").trajectory[::every]


def played(
    trajectory: Trajectory,
    settings: Mapping[str, IntervalOptions | None],
    *,
    rounds: int = 3,
    cones: Mapping[str, Any] | None = None,
) -> dict[str, Replay]:
    """Replay a trajectory under every setting on one thread, in turns; of each step the least time counts.

    Args:
        settings: of the interval engine; None is the sound engine.
        rounds: how often, after a warm-up on a few actions.
        cones: recession cones by setting.
    """
    given = cones or {}
    for name, setting in settings.items():
        replay(trajectory[:3], setting, cones=given.get(name), device="cpu", threads=1)
    results: dict[str, Replay] = {}
    for _ in range(rounds):
        for name, setting in settings.items():
            once = replay(trajectory, setting, cones=given.get(name), device="cpu", threads=1)
            known = results.get(name)
            results[name] = once if known is None else replace(once, seconds=np.minimum(once.seconds, known.seconds))
    return results


def box_time(results: Mapping[str, Replay], name: str) -> float:
    """Seconds one of the replays spent on box tests: T_step = C_disc (N^i + N^f) + C_cont n + C_T N_T + C_0, fitted.

    n are the intervals of the continuous tests and N_T those of the elementary tests; constants are not negative.
    """
    from scipy.optimize import nnls

    def table(result: Replay) -> np.ndarray:
        counts = result.counts
        tests = counts["edge_edge"] + counts["vertex_face"] + counts["face_vertex"]
        discrete = counts["box_final"] + counts["box_initial"]
        columns = [discrete, counts["box_intervals"], tests, counts["leaf_intervals"], counts["recession"]]
        return np.stack([*columns, np.ones(len(result))], axis=1).astype(float)

    rows = np.concatenate([table(result) for result in results.values()])
    taken = np.concatenate([result.seconds for result in results.values()])
    scale = np.maximum(rows.max(axis=0), 1.0)
    constants = nnls(rows / scale, taken)[0] / scale
    return float((table(results[name])[:, :2] @ constants[:2]).sum())


def percent(value: float, base: float) -> str:
    return f"{100.0 * value / base - 100.0:+.0f} %" if value != base else "100 %"


def touching(result: Replay) -> int:
    return int(np.isfinite(result.time).sum())


def percentiles(result: Replay) -> list[str]:
    """Median, 95 %, 99 % and slowest of the steps."""
    return [seconds(float(value)) for value in np.quantile(result.seconds, [0.5, 0.95, 0.99, 1.0])]

"""Recession tests: leaving out what moves away from the other body (Redon, table 4.1).

A door of 3,530 triangles slides on an identical one. The actions of the virtual operator are replayed by the interval
engine as printed: without recession tests, with the test of triangles at the leaves, and with recession cones on the
tree (at most 6 vectors, top-down); the last also without stamps, that is asking every box again in every pair.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, count, seconds
from bench.operator import recorded
from bench.redon_table_3_2 import box_time, criteria, played, touching
from bench.replay import Replay, Trajectory, replay
from tangere.published.redon_intervals import IntervalOptions

FEATURES = ["F-R-44", "F-R-46"]

EVERY = 8
SETTINGS = {
    "none": IntervalOptions.printed(),
    "elementary": IntervalOptions.printed(recession="elementary"),
    "hierarchical": IntervalOptions.printed(recession="hierarchical"),
}
FIELDS = {
    "N_BV": "boxes",
    "N_EE": "edge_edge",
    "N_VF": "vertex_face",
    "N_FV": "face_vertex",
    "N_rec": "recession",
}
PRINTED = {
    "N_BV": (7_483_916, 6_197_548, 4_860_450),
    "N_EE": (6_290_371, 2_968_201, 2_945_669),
    "N_VF": (2_068_579, 971_035, 966_109),
    "N_FV": (2_062_241, 968_633, 965_067),
    "N_rec": (0, 219_935, 521_290),
    "T_BV": (32.42, 26.58, 20.82),
    "T": (49.81, 39.31, 32.69),
    "frames/s": (48, 61, 73),
}
PRINTED_WITHOUT_STAMPS = 2_136_234


def run(report: Report, quick: bool = False) -> None:
    trajectory = doors(quick)
    results = played(trajectory, SETTINGS, rounds=2 if quick else 3)
    ours: dict[str, list[float]] = {
        name: [result.totals[field] for result in results.values()] for name, field in FIELDS.items()
    }
    ours["T_BV"] = [box_time(results, name) for name in results]
    ours["T"] = [float(result.seconds.sum()) for result in results.values()]
    ours["frames/s"] = [result.rate for result in results.values()]
    rows = []
    for name, printed in PRINTED.items():
        show = seconds if name.startswith("T") else count
        rows.append([name, *(show(value) for value in ours[name]), *(show(value) for value in printed)])
    gains = [f"{gain(results[name], results['none']):+.0f} %" for name in SETTINGS]
    rows.append(["gain", None, *gains[1:], None, "+27 %", "+52 %"])
    columns = [f"{name} ({source})" for source in ("ours", "thesis") for name in SETTINGS]
    report.table(["", *columns], rows)

    unstamped = replay(
        trajectory, IntervalOptions.printed(recession="hierarchical", stamps=False), device="cpu", threads=1
    ).totals["recession"]
    stamped = results["hierarchical"].totals["recession"]
    printed_ratio = PRINTED_WITHOUT_STAMPS / PRINTED["N_rec"][2]
    fine = {
        name: IntervalOptions(
            recession=setting.recession, time_tolerance=1e-12, tolerance=1e-12 * trajectory.fixed.extent
        )
        for name, setting in SETTINGS.items()
    }
    some = trajectory[np.isfinite(results["none"].time)][:: 2 if quick else 4]
    exact = played(some, fine, rounds=1)
    report.note(
        f"""{len(trajectory)} actions, every {EVERY}th of 2,390; {touching(results["none"])} with a contact. The same
        actions touch in all three: {_yes(_same_hits(results))}; contact times differ by at most {_apart(results):.1e}
        of a step (the time tolerance is 1e-4). Asked again for {len(some)} of the touching actions with a
        tolerance of 1e-12, they differ by at most {_apart(exact):.1e}. Without the stamps N_rec is
        {unstamped / max(stamped, 1):.1f} times as large (thesis: {printed_ratio:.1f})."""
    )
    rates = [result.rate for result in results.values()]
    criteria(
        report,
        [
            ("at least 40 % more frames/s with cones (the thesis claims 50)", gains[2], rates[2] >= 1.4 * rates[0]),
            (
                "frames/s: none < elementary < hierarchical",
                " < ".join(map(count, rates)),
                rates[0] < rates[1] < rates[2],
            ),
            (
                "the same contacts at the same times in all three",
                f"apart by {_apart(exact):.1e} of a step at a tolerance of 1e-12",
                _same_hits(results) and _apart(results) <= 1e-4 and _apart(exact) <= 1e-11,
            ),
            (
                "3 times as many recession tests without stamps",
                f"{unstamped / max(stamped, 1):.1f} times",
                unstamped >= 3 * stamped,
            ),
        ],
    )


def doors(quick: bool) -> Trajectory:
    """Every eighth action of the doors, or a short rehearsal from where they slide."""
    return recorded("doors", 60).trajectory[20:40] if quick else recorded("doors").trajectory[::EVERY]


def gain(result: Replay, base: Replay) -> float:
    """How many per cent more steps per second."""
    return 100.0 * float(base.seconds.sum() / result.seconds.sum()) - 100.0


def _same_hits(results: dict[str, Replay]) -> bool:
    return all((np.isfinite(r.time) == np.isfinite(results["none"].time)).all() for r in results.values())


def _apart(results: dict[str, Replay]) -> float:
    hit = np.isfinite(results["none"].time)
    return max(float(np.abs(r.time[hit] - results["none"].time[hit]).max(initial=0.0)) for r in results.values())


def _yes(fact: bool) -> str:
    return "yes" if fact else "NO"

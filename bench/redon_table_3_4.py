"""Passing the earliest contact time on to all later tests: what does it save (Redon, table 3.4)?

The lifter's actions, replayed by the interval engine as printed, searching every pair of boxes and of triangles over
the whole step, or only until the first contact found so far.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, count, seconds
from bench.redon_table_3_2 import criteria, lifter, percent, played, touching
from tangere.published.redon_intervals import IntervalOptions

FEATURES = ["F-R-15"]

SETTINGS = {"without": IntervalOptions.printed(pass_time=False), "with": IntervalOptions.printed()}
FIELDS = {"N_BV": "boxes", "N_EE": "edge_edge", "N_VF": "vertex_face", "N_FV": "face_vertex"}
PRINTED = {
    "without": (6_685_889, 7_226_139, 2_335_435, 2_363_427, 79.59),
    "with": (5_075_137, 3_191_041, 1_036_723, 1_050_031, 38.93),
}


def run(report: Report, quick: bool = False) -> None:
    trajectory = lifter(quick)
    results = played(trajectory, SETTINGS, rounds=2 if quick else 3)
    ours = {
        name: (*(result.totals[field] for field in FIELDS.values()), float(result.seconds.sum()))
        for name, result in results.items()
    }
    rows = []
    for k, column in enumerate([*FIELDS, "T"]):
        show = seconds if column == "T" else count
        row = [column]
        for values in (ours, PRINTED):
            row += [
                show(values["without"][k]),
                f"{show(values['with'][k])} ({percent(values['with'][k], values['without'][k])})",
            ]
        rows.append(row)
    report.table(["", "without (ours)", "with (ours)", "without (thesis)", "with (thesis)"], rows)
    elementary = [sum(ours[name][1:4]) for name in SETTINGS]
    hit = np.isfinite(results["with"].time)
    apart = np.abs(results["with"].time[hit] - results["without"].time[hit]).max(initial=0.0)
    same = bool((hit == np.isfinite(results["without"].time)).all())
    report.note(
        f"""{len(trajectory)} actions, {touching(results["with"])} with a contact,
        {"the same ones" if same else "NOT the same"} both ways; their times differ by at most {apart:.1e} of a step
        (the tolerance is 1e-4, and bisection starts from another interval)."""
    )
    share = ours["with"][4] / ours["without"][4]
    criteria(
        report,
        [
            (
                "elementary tests 40 % fewer",
                percent(elementary[1], elementary[0]),
                elementary[1] <= 0.6 * elementary[0],
            ),
            ("T 40 % smaller", percent(ours["with"][4], ours["without"][4]), share <= 0.6),
            ("the same contacts", "yes" if same else "no", same),
        ],
    )

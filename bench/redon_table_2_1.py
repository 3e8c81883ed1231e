"""The label method and the tables of pairs: how many tests they save (Redon, table 2.1).

One of two identical combs with large flat faces, covered by many leaf spheres, comes near the other, slides between its
teeth, is pushed against them now and then, and leaves again; every step is one search with tangent screws, cubics and
sphere trees. The thesis prints the numbers of tests over such a trajectory, without table, with the table of labels
(sphere/sphere), with the tables of feature pairs, and with all of them. Its objects are not known, so only the
proportions can be compared. The time of contact of every step must be the same in all four.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bench.harness import Report, count, measure, ratio
from bench.shapes.traps import comb_plates
from tangere.published.redon_cubics import Counts, Switches, search
from tangere.published.redon_screws import TanScrew
from tangere.shape.generate.build.assembly import pose

FEATURES = ["F-R-16"]

SETTINGS = {
    "no table": (False, False),
    "S/S table": (True, False),
    "EE, VF, FV tables": (False, True),
    "all four": (True, True),
}
#: Table 2.1, in the order of the settings.
PRINTED = {
    "sphere/sphere": (1_213_596, 1_017_112, 1_213_596, 1_017_112),
    "EE": (87_284, 61_916, 20_717, 20_717),
    "VF": (3_963, 3_155, 2_367, 2_367),
    "FV": (3_858, 3_098, 2_317, 2_317),
    "total": (1_308_701, 1_085_281, 1_238_997, 1_042_513),
}
FIELDS = {
    "sphere/sphere": "spheres",
    "EE": "edge_edge",
    "VF": "vertex_face",
    "FV": "face_vertex",
    "total": "tests",
}


def run(report: Report, quick: bool = False) -> None:
    combs = comb_plates(6)
    steps = _trajectory(6 if quick else 24)
    radius = 0.08 if quick else 0.05

    def whole(name: str) -> tuple[Counts, list[float]]:
        label, pairs = SETTINGS[name]
        switches = Switches(leaf_radius=radius, label_table=label, pair_tables=pairs)
        found = [search(combs.part.moving(step), combs.fixed, switches=switches) for step in steps]
        return sum((one.counts for one in found), Counts()), [one.contact.time for one in found]

    timings = measure({name: lambda name=name: whole(name) for name in SETTINGS}, rounds=3)
    counts = {name: timing.result[0] for name, timing in timings.items()}
    contacts = [timing.result[1] for timing in timings.values()]
    same = all(other == contacts[0] for other in contacts)

    columns = [f"{name} ({source})" for name in SETTINGS for source in ("ours", "thesis")]
    rows = []
    for label, printed in PRINTED.items():
        ours = [getattr(counts[name], FIELDS[label]) for name in SETTINGS]
        rows.append([label, *(cell for k in range(4) for cell in (_part(ours, k), _part(printed, k)))])
    report.table(["tests", *columns], rows)
    report.table(
        ["", *SETTINGS],
        [
            ["time of the trajectory", *(timing for timing in timings.values())],
            ["against no table", *(ratio(timings["no table"].median, timing.median) for timing in timings.values())],
        ],
    )
    touching = int(np.isfinite(contacts[0]).sum())
    report.note(
        f"""{len(steps)} steps, {touching} of them with a contact; the times of contact are
        {"the same, bit for bit, in all four" if same else "NOT the same"}. Asked for: at least 15 % fewer sphere/sphere
        tests with their table and 18 % fewer tests in all with the four tables; found:
        {_saved(counts, "S/S table", "spheres")} and {_saved(counts, "all four", "tests")}."""
    )


def _trajectory(count: int) -> list[TanScrew]:
    """There and back again: from 0.9 m before the other comb to 0.1 m from the bottom of its gaps, shaking a little.

    On the way, every third pose is also the start of a push sideways, which ends at the other comb's teeth.
    """
    share = np.linspace(0.0, 2.0, count + 1)
    shaking = np.random.default_rng(0).normal(size=(count + 1, 3)) * [0.006, 0.01, 0.004]

    def at(there: float, x: float, z: float, angle: float) -> np.ndarray:
        return pose((x, 0.9 * abs(1.0 - there), z), axis=2, angle=angle)

    poses = [at(there, *shake) for there, shake in zip(share, shaking, strict=True)]
    pushed = [at(there, *(shake + [0.05, 0.0, 0.01])) for there, shake in zip(share, shaking, strict=True)]
    return [TanScrew(start, end) for start, end in [*pairwise(poses), *zip(poses[::3], pushed[::3], strict=True)]]


def _part(values, k: int) -> str:
    return count(values[k]) if k == 0 else f"{count(values[k])} ({100.0 * values[k] / values[0] - 100.0:+.1f} %)"


def _saved(counts: dict[str, Counts], name: str, field: str) -> str:
    part = 1.0 - getattr(counts[name], field) / getattr(counts["no table"], field)
    return f"{100.0 * part:.1f} %"

"""All fifteen separating axes, or the six face normals alone (Redon, tables 3.5, 3.6)?

The lifter's actions, replayed by the interval engine as printed with 6 or 15 axes in the discrete pre-tests and in the
continuous test. With 6 continuous axes, boxes that only an edge axis separates are halved again and again in vain; the
thesis also shows 15 / 6 without subdivision. Four other parts follow: the lifter meets few triangles.
"""

from __future__ import annotations

from bench.harness import Report, count, seconds
from bench.operator import recorded
from bench.redon_table_3_2 import box_time, criteria, lifter, played
from tangere.published.redon_intervals import IntervalOptions

FEATURES = ["F-R-34"]

SETTINGS = {
    "6 / 6": IntervalOptions.printed(discrete_axes=6, continuous_axes=6),
    "15 / 6": IntervalOptions.printed(continuous_axes=6),
    "6 / 15": IntervalOptions.printed(discrete_axes=6),
    "15 / 15": IntervalOptions.printed(),
    "15 / 6, undivided": IntervalOptions.printed(continuous_axes=6, criterion="never"),
}
#: T_BV [s], N_BV, T [s], N^f, N^i, N^c.
PRINTED = {
    "6 / 6": (29.03, 6_629_533, 46.15, 6_629_533, 3_198_136, 2_967_062),
    "15 / 6": (214.61, 6_602_937, 231.65, 6_602_937, 4_028_541, 2_845_285),
    "6 / 15": (26.93, 6_499_411, 43.56, 6_499_411, 3_082_978, 2_856_755),
    "15 / 15": (27.82, 5_075_137, 38.63, 5_075_137, 2_600_063, 2_430_508),
    "15 / 6, undivided": (32.23, 7_725_989, 57.08, None, None, None),
}
#: The other trajectories, and which of their actions are replayed: every so many.
OTHERS = {"doors": 12, "crowned doors": 4, "door on body": 20, "pylon": 10}


def run(report: Report, quick: bool = False) -> None:
    trajectory = lifter(quick, every=1)
    results = played(trajectory, SETTINGS, rounds=2 if quick else 3)
    rows = []
    for name, result in results.items():
        totals = result.totals
        rows.append(
            [
                f"{name} (ours)",
                seconds(box_time(results, name)),
                count(totals["boxes"]),
                seconds(result.seconds.sum()),
                *(count(totals[field]) for field in ("box_final", "box_initial", "box_continuous", "box_intervals")),
            ]
        )
        boxes, tests, whole, *kinds = PRINTED[name]
        shown = [None if number is None else count(number) for number in kinds]
        rows.append([f"{name} (thesis)", seconds(boxes), count(tests), seconds(whole), *shown, None])
    report.table(["discrete / continuous axes", "T_BV", "N_BV", "T", "N^f", "N^i", "N^c", "intervals"], rows)
    same = all(results["15 / 15"].same_answers(result) for result in results.values())
    report.note(
        f"""{len(trajectory)} actions; the contacts are {"the same, bit for bit," if same else "NOT the same"} for all
        sets. Intervals are halved six times at most here, so 15 / 6 cannot go as wrong as the thesis's."""
    )
    report.section("T of all parts")
    rounds = 2 if quick else 3
    taken = {"lifter": {name: float(result.seconds.sum()) for name, result in results.items()}}
    for scene, every in OTHERS.items():
        actions = recorded(scene, 40 if quick else None).trajectory[::every]
        replays = played(actions, SETTINGS, rounds=rounds)
        taken[scene] = {name: float(result.seconds.sum()) for name, result in replays.items()}
    report.table(
        ["discrete / continuous axes", *taken],
        [[name, *(_beside(times[name], times["15 / 15"]) for times in taken.values())] for name in SETTINGS],
    )
    report.note("In brackets: against 15 / 15.")
    fewest = min(results, key=lambda name: results[name].totals["boxes"])
    divided = [name for name in SETTINGS if "undivided" not in name]
    slowest = max(divided, key=lambda name: box_time(results, name))
    shares = {name: sum(times[name] / times["15 / 15"] for times in taken.values()) / len(taken) for name in SETTINGS}
    fastest, second = sorted(shares, key=shares.__getitem__)[:2]
    criteria(
        report,
        [
            ("15 / 15 has the fewest box tests", fewest, fewest == "15 / 15"),
            (
                "15 / 15 has the least T, all parts counting alike",
                f"{fastest}, then {second} with {shares[second] / shares[fastest] - 1.0:+.1%}",
                fastest == "15 / 15",
            ),
            ("15 / 6 with subdivision has the largest T_BV", slowest, slowest == "15 / 6"),
        ],
    )


def _beside(taken: float, full: float) -> str:
    return seconds(taken) if taken == full else f"{seconds(taken)} ({taken / full - 1.0:+.0%})"

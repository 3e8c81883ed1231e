"""Explicit against implicit multiresolution maps: time to walk through the levels, and memory.

E12 of specs/pitiot-multiresolution-interactions 3.4. Both walk over the same darts of every level; the implicit map
finds coarser links by labels, the explicit one has them in tables. Memory counts what links need: phi and the words
for level and labels on one side, the tables of all levels on the other.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, measure, seconds
from tangere.cells.maps import explicit_levels, hex_grid, level_links, quad_grid, split

FEATURES = ["F-P-8"]


def run(report: Report, quick: bool = False) -> None:
    rng = np.random.default_rng(0)
    for dimension, reference in ((2, "+ 15 % time, - 33 % memory"), (3, "+ 15 % time, - 14 % memory")):
        report.section(f"{dimension}D (the thesis: implicit {reference})")
        map = quad_grid(12, 12, device="cpu") if dimension == 2 else hex_grid(3, 3, 3, device="cpu")
        rows = []
        for deepest in range(1, 3 if quick else 6 if dimension == 2 else 4):
            leaves = map.leaves[map.levels[map.leaves] == deepest - 1]
            split(map, rng.choice(leaves, max(1, len(leaves) // (3 if dimension == 2 else 4)), replace=False))
            rows.append([str(deepest), *_row(map)])
        columns = ["levels", "darts", "implicit", "explicit", "implicit takes", "implicit memory", "explicit", "saved"]
        report.table(columns, rows)
    report.note(
        "The implicit walk is a kernel that follows labels; the explicit one looks tables up with NumPy. Times are for "
        "phi1 and phi2 (in 3D phi3 too) of every dart on every level."
    )


def _row(map) -> list[str]:
    tables, deepest = explicit_levels(map), int(map.levels.max())
    darts = [np.flatnonzero(tables.row[k] >= 0) for k in range(deepest + 1)]

    def implicit() -> list:
        return [level_links(map, k) for k in range(deepest + 1)]

    def explicit() -> list:
        found = []
        for k, own in enumerate(darts):
            found.append([tables.phi1(own, k), tables.phi2(own, k), tables.phi3(own, k)])
        return found

    timings = measure({"implicit": implicit, "explicit": explicit}, rounds=5)
    for k, links in enumerate(timings["implicit"].result):
        for mine, theirs in zip((links.phi1, links.phi2, links.phi3), timings["explicit"].result[k], strict=True):
            assert np.array_equal(mine[darts[k]], theirs), "both maps have the same links"
    links = 4 if map.dimension == 2 else 5  # phi1, phi_1, phi2, (phi3,) tag
    own = links * 4 * map.dart_count
    theirs = tables.nbytes + 4 * map.dart_count  # phi_1 is stored once in both
    one, other = timings["implicit"].median, timings["explicit"].median
    slower = f"{100 * (one / other - 1):+.0f} %"
    saved = f"{100 * (own / theirs - 1):+.0f} %"
    return [str(map.dart_count), seconds(one), seconds(other), slower, _kb(own), _kb(theirs), saved]


def _kb(size: int) -> str:
    return f"{size / 1024:.0f} kB"

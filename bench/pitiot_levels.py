"""Explicit against implicit multiresolution maps: time to walk around all faces of all levels, and memory.

Experiment E12, on Pitiot 2015, section 3.2. Two kernels do the same walk: around every face of every level,
over the edge of every dart (in 3D through its face as well). The implicit map finds the links of a coarser level by
labels, going over the parts an edge was cut into; the explicit one looks them up in the tables of that level. Memory
counts what links need: phi and the words for level and labels on one side, the tables of all levels on the other.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from bench.harness import Report, measure, seconds
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import CellMap, MapArrays, split
from tangere.cells.maps.arrays import level
from tangere.cells.maps.orbits import last_part
from tangere.published.pitiot_trackers import ExplicitLevels, explicit_levels
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

FEATURES = ["F-P-8"]


def run(report: Report, quick: bool = False) -> None:
    rng = np.random.default_rng(0)
    for dimension, reference in ((2, "+ 15 % time, - 33 % memory"), (3, "+ 15 % time, - 14 % memory")):
        report.section(f"{dimension}D (the thesis: implicit {reference})")
        map = quad_grid(12, 12, device="cpu") if dimension == 2 else hex_grid(3, 3, 3, device="cpu")
        rows = []
        for deepest in range(1, 3 if quick else 7 if dimension == 2 else 5):
            leaves = map.leaves[map.levels[map.leaves] == deepest - 1]
            split(map, rng.choice(leaves, max(1, len(leaves) // (3 if dimension == 2 else 4)), replace=False))
            rows.append([str(deepest), *_row(map, 3 if quick else 15)])
        columns = ["levels", "darts", "implicit", "explicit", "implicit takes", "implicit memory", "explicit", "saved"]
        report.table(columns, rows)
    report.note("Times are of the walk alone: one kernel launch on one thread, the start of a launch included in both.")


def _row(map: CellMap, rounds: int) -> list[str]:
    tables = explicit_levels(map)
    count, levels = len(map.numpy("phi1")), len(tables.row)
    row, links = (wp.array(x, dtype=wp.int32, device="cpu") for x in (tables.row, tables.links))
    sums = {name: wp.zeros(count, dtype=wp.int64, device="cpu") for name in ("implicit", "explicit")}

    def implicit() -> np.ndarray:
        launch(_walk_labels, count, [map.arrays, levels], [sums["implicit"]], device=map.device, threads=1)
        return sums["implicit"].numpy()

    def explicit() -> np.ndarray:
        launch(_walk_tables, count, [row, links, levels], [sums["explicit"]], device=map.device, threads=1)
        return sums["explicit"].numpy()

    timings = measure({"implicit": implicit, "explicit": explicit}, rounds=rounds)
    assert np.array_equal(sums["implicit"].numpy(), sums["explicit"].numpy()), "both walk over the same darts"
    own, theirs = _memory(map, tables)
    one, other = timings["implicit"].median, timings["explicit"].median
    slower, saved = (f"{100 * (ours / peer - 1):+.0f} %" for ours, peer in ((one, other), (own, theirs)))
    return [str(map.dart_count), seconds(one), seconds(other), slower, _kb(own), _kb(theirs), saved]


def _memory(map: CellMap, tables: ExplicitLevels) -> tuple[int, int]:
    """Bytes of the links of both kinds of map."""
    links = 4 if map.dimension == 2 else 5  # phi1, phi_1, phi2, (phi3,) tag
    return links * 4 * map.dart_count, tables.nbytes + 4 * map.dart_count  # phi_1 is stored once in both


def _kb(size: int) -> str:
    return f"{size / 1024:.0f} kB"


@wp.kernel
def _walk_labels(first: int, m: MapArrays, levels: int, total: wp.array[wp.int64]):
    """Add up the numbers of the darts met on the way around the face of each dart, on every level it is on."""
    d = first + wp.tid()
    met = wp.int64(0)
    if m.tag[d] >= 0:
        for k in range(level(m, d), levels):
            x = int(d)
            turning = bool(True)
            while turning:
                # The last of the parts that the edge was cut into leads over it, and to the next edge.
                part = last_part(m, x, k)
                met += wp.int64(m.phi2[part[0]]) + wp.int64(m.phi3[part[0]])
                x = part[1]
                turning = x != d
    total[d] = met


@wp.kernel
def _walk_tables(first: int, row: wp.array2d[int], links: wp.array2d[int], levels: int, total: wp.array[wp.int64]):
    d = first + wp.tid()
    met = wp.int64(0)
    for k in range(levels):
        if row[k, d] >= 0:
            x = int(d)
            turning = bool(True)
            while turning:
                r = row[k, x]
                met += wp.int64(links[r, 1]) + wp.int64(links[r, 2])
                x = links[r, 0]
                turning = x != d
    total[d] = met

"""Steps of a soft plate on a CUDA device while it is cut: how long, and do they agree with the CPU?

Topology changes on the host, which sends the rows that are others; all else stays on the device, and its captured
graphs go on. The target is 8 ms for a step with a cut at 51,200 triangles. Skipped on a machine without a GPU.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, seconds
from bench.leonard_cut import counted_layouts, cut_body, plate
from oracles.soft_bodies import overlaps
from tangere.runtime import choose_device

FEATURES: list[str] = []

CELLS = {"4,160": (40, 20, 4), "51,200": (140, 85, 4)}
#: How far the blade goes on in a step, in elements.
ADVANCE = (1.0, 3.5)
SCENES: dict[str, dict[str, Any]] = {
    "nothing touches it": {},
    "on a bed": {"bed": True, "gravity": (0.0, 0.0, -9.81)},
}


def run(report: Report, quick: bool = False) -> None:
    if not choose_device(None).is_cuda:
        raise SkippedError("there is no CUDA device")
    report.section("Steps with a cut")
    rows = [
        _row(f"plate of {size} triangles, {name}", cells, advance, options)
        for size, cells in list(CELLS.items())[: 1 if quick else None]
        for name, options in SCENES.items()
        for advance in ADVANCE
    ]
    columns = ["scene", "touched", "step before", "step with a cut, median", "p90", "most", "cut alone", "contacts"]
    report.table([*columns, "the first cut", "in place", "from the CPU", "intersections"], rows)
    report.note(
        "Time until the device is done. Before: steps without a cut. The first cut makes tables beside the arrays and"
        " is not among the others. In place: of the cuts that change something, those after which nothing is laid out"
        " anew. From the CPU: the largest difference of places after the first six of these steps [m]. Intersections"
        " are counted at the end, by the exact test."
    )


def _row(name: str, cells: tuple[int, int, int], advance: float, options: dict[str, Any]) -> list[Any]:
    options = {"sweeps": None} | options
    there, line = plate(cells, device="cuda", **options)
    here, _ = plate(cells, **options)
    anew = counted_layouts(there)
    ways = np.arange(-0.53 * cells[1], 0.45 * cells[1], advance)[:26]
    before, first, cuts, steps, touched, changed, apart = [], 0.0, [], [], [], 0, 0.0
    for _ in range(8):
        before.append(_timed(there.step)[0])
        here.step()
    for number, (begin, end) in enumerate(itertools.pairwise(ways)):
        cut, events = _timed(partial(there.cut, 0, line(begin), line(end)))
        step, _ = _timed(there.step)
        if number < 6:
            here.cut(0, line(begin), line(end))
            here.step()
            apart = float(np.abs(there.positions - here.positions).max())
        if events:
            changed += 1
            if changed > 3:
                cuts.append(cut)
                steps.append(cut + step)
                touched.append(len(cut_body(there).looked_at()))
        first = max(first, cut if changed <= 1 else 0.0)
    return [
        *(name, f"{np.mean(touched):.0f}", seconds(float(np.median(before[4:])))),
        *(seconds(float(value)) for value in (np.median(steps), np.percentile(steps, 90), max(steps))),
        *(seconds(float(np.median(cuts))), count(there.rows.count), seconds(first)),
        *(f"{changed - len(anew)} of {changed}", f"{apart:.1e}", int(overlaps(there))),
    ]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long it takes until the device is done [s], and what it answers."""
    wp.synchronize()
    begin = time.perf_counter()
    answer = work()
    wp.synchronize()
    return time.perf_counter() - begin, answer

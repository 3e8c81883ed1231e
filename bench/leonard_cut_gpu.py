"""Steps of a soft plate on a CUDA device while it is cut: how long, and do they agree with the CPU?

Topology changes on the host, which sends the rows that are others; all else stays on the device, and its captured
graphs go on. The target is 8 ms for a step with a cut at 51,200 triangles: it names triangles of the surface, so plates
with as many are cut that have one, two and four layers of elements. Skipped on a machine without a GPU.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, seconds
from bench.leonard_cut import counted_layouts, cut_body, plate
from oracles.soft_bodies import overlaps
from tangere.runtime import choose_device
from tangere.soft.cutting.cut_body import CutBody
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.solver.cuda import sweeps

FEATURES: list[str] = []

#: Triangles of the surface of a plate, its cells, and how far the blade goes on in a step, in cells.
PLATES: list[tuple[str, tuple[int, int, int], tuple[float, ...]]] = [
    ("4,160", (40, 20, 4), (1.0, 3.5)),
    ("51,200", (50, 250, 1), (1.0, 9.0)),
    ("51,200", (130, 95, 2), (1.0, 6.0)),
    ("51,200", (140, 85, 4), (1.0, 3.5)),
]
SCENES: dict[str, dict[str, Any]] = {
    "nothing touches it": {},
    "on a bed": {"bed": True, "gravity": (0.0, 0.0, -9.81)},
}
TARGET = 8e-3  # [s], of a step with a cut at 51,200 triangles
#: What a cut does on the host, in this order; each waits for nothing but what it says.
PARTS: dict[str, tuple[type, str]] = {
    "read": (InPlaceUpdate, "refresh"),
    "topology": (CutBody, "cut"),
    "update": (InPlaceUpdate, "apply"),
    "exact test": (InPlaceUpdate, "is_apart"),
    "send": (InPlaceUpdate, "send"),
}
PHASES = ("reset", "predict", "detect", "respond", "solve", "truncate", "record")


def run(report: Report, quick: bool = False) -> None:
    if not choose_device(None).is_cuda:
        raise SkippedError("there is no CUDA device")
    steps, cuts, phases = [], [], []
    for size, cells, advances in PLATES[: 1 if quick else None]:
        for scene, options in SCENES.items():
            for advance in advances:
                name = f"{size} triangles, {count(6 * int(np.prod(cells)))} tetrahedra, {scene}"
                row = _measured(cells, advance, options, size == "51,200")
                for rows, columns in zip((steps, cuts, phases), row, strict=True):
                    rows.append([name, *columns])
    report.section("Steps with a cut")
    columns = ["plate", "touched", "step before", "step with a cut, median", "p90", "most", "at most 8 ms", "contacts"]
    report.table([*columns, "in place", "from the CPU", "intersections"], steps)
    report.note(
        "Time until the device is done. Before: steps without a cut. In place: of the cuts that change something, those"
        " after which nothing is laid out anew. From the CPU: the largest difference of places after the first six of"
        " these steps [m]. Intersections are counted at the end, by the exact test. The target is of the median."
    )
    report.section("What a cut takes")
    report.table(["plate", "touched", *PARTS, "all else", "the device then", "a cut", "the first one"], cuts)
    report.note(
        "Time of the host, medians. Read: places, velocities and boxes come from the device, which has fitted them;"
        " nothing else waits for it. Topology: of the material, and where the blade is in it. Update: dofs, materials,"
        " lanes, surface, tree, walls, sharp edges. Send: what has been written is packed, and put to where it belongs;"
        " the device then: until that is done. The first cut makes tables beside the arrays."
    )
    report.section("What a step takes on the device")
    report.table(["plate", "touched", *itertools.chain(*((p, f"{p} after a cut") for p in PHASES))], phases)
    report.note("Medians of the time between events before and after each phase, of steps before and after cuts.")
    _lanes(report, quick)


def _measured(
    cells: tuple[int, int, int], advance: float, options: dict[str, Any], targeted: bool
) -> tuple[list[Any], list[Any], list[Any]]:
    """Rows of the three tables, without the name."""
    options = {"sweeps": None} | options
    there, line = plate(cells, device="cuda", **options)
    here, _ = plate(cells, **options)
    anew = counted_layouts(there)
    ways = np.arange(-0.53 * cells[1], 0.45 * cells[1], advance)[:26]
    before, first, steps, touched, changed, apart = [], 0.0, [], [], 0, 0.0
    parts: defaultdict[str, list[float]] = defaultdict(list)
    phases: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
    for _ in range(8):
        before.append(_timed(there.step)[0])
        phases["before"].append(there.timings)
        here.step()
    for number, (begin, end) in enumerate(itertools.pairwise(ways)):
        with _timed_parts() as spent:
            began = time.perf_counter()
            events = there.cut(0, line(begin), line(end))
            host = time.perf_counter() - began
            wp.synchronize()
            cut = time.perf_counter() - began
        step, _ = _timed(there.step)
        if number < 6:
            here.cut(0, line(begin), line(end))
            here.step()
            apart = float(np.abs(there.positions - here.positions).max())
        if events:
            changed += 1
            if changed > 3:
                spent |= {"all else": host - sum(spent.values()), "the device then": cut - host, "a cut": cut}
                for part, value in spent.items():
                    parts[part].append(value)
                steps.append(cut + step)
                touched.append(len(cut_body(there).looked_at()))
                phases["after"].append(there.timings)
        first = max(first, cut if changed <= 1 else 0.0)
    middle = float(np.median(steps))
    mean = f"{np.mean(touched):.0f}"
    on_time = None if not targeted else "yes" if middle <= TARGET else "no"
    whole = [
        *(mean, seconds(float(np.median(before[4:]))), seconds(middle)),
        *(seconds(float(np.percentile(steps, 90))), seconds(max(steps)), on_time, count(there.rows.count)),
        *(f"{changed - len(anew)} of {changed}", f"{apart:.1e}", int(overlaps(there))),
    ]
    names = [*PARTS, "all else", "the device then", "a cut"]
    of_cut = [mean, *(seconds(float(np.median(parts[name]))) for name in names), seconds(first)]
    of_step = [mean]
    for phase in PHASES:
        for told in (phases["before"][4:], phases["after"]):
            of_step.append(seconds(float(np.median([timings[phase] for timings in told]))))
    return whole, of_cut, of_step


def _lanes(report: Report, quick: bool) -> None:
    """How long the solver takes by the lanes that a vertex has in colours with many vertices."""
    report.section("Lanes to a vertex")
    settings, rows, usual = (sweeps.LANES, 16, 8, 4), [], (sweeps.FEW_LANES, sweeps.MANY)
    for size, cells, _ in PLATES[: 1 if quick else None]:
        simulation, _ = plate(cells, device="cuda", sweeps=None)
        taken = []
        for lanes in settings:
            sweeps.FEW_LANES, sweeps.MANY = lanes, 1 if lanes < sweeps.LANES else 1 << 30
            simulation._pipeline._graphs.invalidate()
            told = []
            for _ in range(10):
                simulation.step()
                told.append(simulation.timings["solve"])
            taken.append(float(np.median(told[3:])))
        rows.append([f"{size} triangles, {count(6 * int(np.prod(cells)))} tetrahedra", *map(seconds, taken)])
    sweeps.FEW_LANES, sweeps.MANY = usual
    report.table(["plate", *map(str, settings)], rows)
    report.note(
        f"Time of the phase `solve`. Colours with {count(usual[1])} vertices or more have {usual[0]} lanes each."
    )


@contextmanager
def _timed_parts() -> Iterator[dict[str, float]]:
    """Seconds of what cuts do within, by `PARTS`."""
    spent = dict.fromkeys(PARTS, 0.0)
    plain = {name: getattr(*place) for name, place in PARTS.items()}

    def timed(name: str) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return plain[name](*arguments, **named)
            finally:
                spent[name] += time.perf_counter() - began

        return run

    for name, (owner, method) in PARTS.items():
        setattr(owner, method, timed(name))
    try:
        yield spent
    finally:
        for name, (owner, method) in PARTS.items():
            setattr(owner, method, plain[name])


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long it takes until the device is done [s], and what it answers."""
    wp.synchronize()
    begin = time.perf_counter()
    answer = work()
    wp.synchronize()
    return time.perf_counter() - begin, answer

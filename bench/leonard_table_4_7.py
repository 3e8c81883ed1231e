"""Deforming bodies: what do more threads, and a GPU, make of each stage?

Experiment E5, table 4.7 of the document: milliseconds of each stage of detection on one thread and on more, and on a
GPU where there is one, over every 20th step of tangere's own simulation. The document used six cores of an i5-9400F and
found that they at least halve the time of detection (hypothesis H1), and that whole steps stay below 50 ms (H2); both
are checked where there are as many cores. It proposes to test pairs as they are found, without a list of them; so the
last two stages are measured as one, too, with the memory that a detection holds at most.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from bench import machine
from bench.harness import Report, count, seconds
from bench.leonard_table_4_1 import (
    DISTANCE,
    EVERY,
    PRINTED_PAIRS,
    RUNS,
    SCENES,
    Measured,
    frames,
    in_turns,
    lost_by_published_rules,
    settings_of,
)
from bench.memory import peak_bytes
from tangere.broad_phase.triangles import Surfaces
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.proximity import Detector
from tangere.soft import scenes as simulated

FEATURES = ["F-L-6", "F-L-7", "F-L-8", "F-L-10", "F-L-13", "F-L-58", "F-L-87", "F-L-88"]

#: The rows of the document, and the stages of ours that do their work.
ROWS = {
    "2 triangles in the region": ("triangles",),
    "3 grid": ("grid",),
    "4 entries": ("entries",),
    "5 sort": ("sort",),
    "6 runs and pairs": ("runs", "pairs"),
    "7 primitive tests, contacts": ("features", "contacts"),
    "positions, bodies": ("positions", "objects"),
}
#: Printed [ms], one thread and six cores, by these rows (the knot with cones, which took 0.80 and 0.27 of its sixth).
PRINTED = {
    "tori 3200": ((0.19, 0.00, 0.05, 0.06, 0.11, 0.10, 0.01), (0.10, 0.00, 0.02, 0.06, 0.04, 0.02, 0.01)),
    "tori 12800": ((0.81, 0.00, 0.18, 0.27, 0.67, 0.45, 0.01), (0.38, 0.01, 0.06, 0.27, 0.16, 0.10, 0.01)),
    "tori 51200": ((4.18, 0.05, 0.75, 1.21, 6.16, 2.73, 0.05), (1.79, 0.03, 0.29, 1.25, 0.97, 0.79, 0.05)),
    "knot 3960": ((0.85, 0.04, 0.71, 0.95, 3.61, 3.69, 0.04), (1.66, 0.02, 0.23, 0.97, 1.02, 0.92, 0.04)),
}
#: Printed totals of detection, and of the whole step [ms]: one thread, six cores.
TOTALS = {
    "tori 3200": (0.51, 0.25, 15.32, 9.79),
    "tori 12800": (2.39, 0.99, 19.61, 13.04),
    "tori 51200": (15.13, 5.18, 42.08, 27.85),
    "knot 3960": (9.90, 4.87, 56.99, 27.84),
}
#: Printed for the knot without cones [ms]: finding pairs, primitive tests (table 4.4).
WITHOUT_CONES = {"knot 3960": (3.66, 5.83)}
#: What is done by one stage where pairs are tested as they are found.
LAST_STAGES = ("pairs", "features", "contacts")
#: Detectors with kept trees are timed turn by turn, as often as these seconds allow, because a host's clock comes and
#: goes. A turn of each lasts so many seconds: threads that slept while others had theirs are woken, and find their part
#: of the memory, by a first time through the frames, which is told apart.
TURNS_TAKE, TURN_TAKES = 4.0, 0.02
#: Below this share of detection a stage is too short for threads to matter.
NOTHING = 0.01


def run(report: Report, quick: bool = False) -> None:
    names, runs = (["tori 3200"], 1) if quick else (list(SCENES), RUNS)
    threads = sorted({1, 2, 6, 16} & set(range(1, machine.cores() + 1)) | {machine.cores()})
    ways: dict[Hashable, dict] = {_named(n): {"device": "cpu", "threads": n} for n in threads}
    if wp.is_cuda_available():
        ways["H200" if "H200" in wp.get_device("cuda").name else "CUDA"] = {"device": "cuda"}
    totals, spread, losses, slower, each, fused, gains = [], [], [], [], [], [], {}
    for name in names:
        scenes, settings = frames(name, quick), settings_of(name)
        _same_contacts(scenes, settings, list(ways.values()))
        asked = {way: {"settings": settings, **on} for way, on in ways.items()}
        asked |= {(way, "fused"): {"settings": replace(settings, fused=True), **on} for way, on in ways.items()}
        everything = in_turns(scenes, asked, runs)
        measured = {way: everything[way] for way in ways}
        table = {way: [sum(m.stages.get(s, 0.0) for s in row) for row in ROWS.values()] for way, m in measured.items()}
        report.section(f"{name}: milliseconds a step, by stage, means of {runs} runs over {len(scenes)} frames")
        one, most = _named(1), _named(threads[-1])
        rows = [
            [row, *(f"{1e3 * column[k]:.3f}" for column in table.values()), f"{table[one][k] / table[most][k]:.2f}"]
            + [f"{serial:.2f}", f"{six:.2f}"]
            for k, (row, serial, six) in enumerate(zip(ROWS, *PRINTED[name], strict=True))
        ]
        mean = {way: 1e3 * m.mean for way, m in measured.items()}
        rows.append(
            ["total", *(f"{ms:.3f}" for ms in mean.values()), f"{mean[one] / mean[most]:.2f}", *TOTALS[name][:2]]
        )
        report.table(["stage", *ways, f"1 to {threads[-1]}", "printed, 1", "printed, 6 cores"], rows)
        slower += [
            f"{row} of {name}, {way}: {by:.2f}"
            for row, stages in ROWS.items()
            for way, m in measured.items()
            if "threads" in str(way) and (by := _slower_by(stages, m, measured[one])) > 1.0
        ]
        fused += [_fused_row(name, way, scenes, settings, everything, on) for way, on in ways.items()]
        kept, woken = _detectors_ms(scenes, settings, runs, ways)
        serial, six, _, _ = TOTALS[name]
        by_turns = {n: np.quantile(kept[one] / kept[_named(n)], (0.5, 0.25, 0.75)) for n in threads}
        gains[name] = {n: (max(mean[one] / mean[_named(n)], by_turns[n][0]), *by_turns[n]) for n in threads}
        totals.append([name, *(f"{ms:.2f}" for ms in mean.values()), f"{serial} / {six} ({serial / six:.2f})"])
        for what, times in (("kept trees", kept), ("kept trees, after a break", woken)):
            totals.append([f"{name}, {what}", *(f"{ms.mean():.2f}" for ms in times.values()), "-"])
        spread += [
            [name, way, *(f"{1e3 * np.quantile(m.totals, q):.2f}" for q in (0.5, 0.95, 1.0))]
            for way, m in measured.items()
        ]
        losses.append([name, *lost_by_published_rules(scenes, settings)])
        each.append([name, *_per_pair(name, scenes, settings, table[one])])
    report.section("Detection in all [ms]")
    report.table(["scene", *ways, "printed: 1 / 6 cores"], totals)
    report.note(
        f""""Kept trees" is `Detector`, which an own simulation would use; the other rows are the document's stages,
        timed one by one from positions in main memory to contacts, which on CUDA waits for the device after each.
        Means of {runs} runs in turns over every {EVERY}th step; of kept trees at least {runs} turns of
        {1e3 * TURN_TAKES:g} ms, again and again over the same frames; the first time in each turn is "after a break",
        the others are the row before. Contacts are equal for all numbers of threads and devices; entries and pairs are
        counted and filled, without a critical section."""
    )
    _verdicts(report, gains, slower)
    report.section("Pairs listed, then tested; and tested as they are found")
    columns = ["ms listed", "ms fused", "pairs", "contacts", "MB held listed", "MB held fused", "drop"]
    report.table(["scene", "", *columns], fused)
    report.note(
        """Times are of stages 6 and 7, means over the frames. Memory is the most that the arrays of a detection of the
        frame with most contacts hold, contacts included, 81 bytes each. The contacts are the same, in the same order.
        On CUDA pairs are listed by default, as a thread that finds and tests keeps its neighbours waiting."""
    )
    report.section("Over the steps [ms]")
    report.table(["scene", "", "p50", "p95", "longest"], spread)
    report.section("For each pair of triangles, one thread")
    report.table(["scene", "pairs per step, ours / printed", "to find one", "to test one"], each)
    report.note("How many pairs there are depends on the motion, which is not printed; the time for one hardly does.")
    report.section("What the published rules lose, per step")
    report.table(["scene", "pairs of triangles", "of", "contacts", "of"], losses)
    report.section("Whole steps of the simulation")
    columns = ["scene", "on", "steps", "mean", "p99", "longest", "steps per second", "p99 in the limit"]
    devices = ["cpu", *(["cuda"] if wp.is_cuda_available() else [])]
    report.table(
        [*columns, "printed: 1 / 6 cores"], [_whole_steps(name, on, quick) for on in devices for name in names]
    )
    report.note("The limits are 50 ms on a CPU and 16 ms on a GPU. All steps of the scenes are timed, but the first.")


def _named(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _verdicts(report: Report, gains: dict[str, dict[int, tuple[float, ...]]], slower: list[str]) -> None:
    """Hypothesis H1, and whether threads make any stage slower.

    Args:
        gains: by scene and threads: the better of stages and kept trees; of kept trees the median and quartiles.
    """
    for threads in (n for n in next(iter(gains.values())) if n >= 6):
        by_scene = {name: gain[threads] for name, gain in gains.items()}
        text = ", ".join(f"{name} {best:.2f}" for name, (best, *_) in by_scene.items())
        turns = ", ".join(f"{low:.2f} to {high:.2f}" for _, _, low, high in by_scene.values())
        halved = all(best >= 2.0 for best, *_ in by_scene.values())
        report.note(
            f"""{threads} threads at least halve the time of detection in every scene: {"yes" if halved else "no"}
            (the better of stages and kept trees: {text}; half of the turns of kept trees gain {turns})."""
        )
    report.note(
        f"""Stages that more threads make slower: {"; ".join(slower) or "none"}. Slower is a stage whose median over the
        runs is above that of one thread by a tenth, and by more than both medians vary (interquartile ranges);
        stages below {100.0 * NOTHING:g} % of detection are left out."""
    )


def _slower_by(stages: tuple[str, ...], many: Measured, one: Measured) -> float:
    """How many times as long stages take on many threads as on one; 1 where that is within what runs vary by."""
    rows = [np.array([sum(run.get(s, 0.0) for s in stages) for run in m.runs]) for m in (one, many)]
    (serial, less), (shared, more) = ((np.median(row), np.subtract(*np.percentile(row, [75, 25]))) for row in rows)
    if serial < NOTHING * one.mean or shared < max(1.1 * serial, serial + less + more):
        return 1.0
    return float(shared / serial)


def _fused_row(name: str, way: Hashable, scenes: list, settings: Settings, measured: dict, on: dict) -> list[str]:
    """Time of stages 6 and 7, and the most memory of a detection, with a list of pairs and without."""
    took = [1e3 * sum(measured[w].stages.get(s, 0.0) for s in LAST_STAGES) for w in (way, (way, "fused"))]
    crowded = max(scenes, key=lambda scene: len(detect(scene, distance=DISTANCE, settings=settings, device="cpu").near))
    surfaces = Surfaces.of(crowded, on["device"])
    found, held = None, []
    for fused in (False, True):
        ask = partial(
            detect,
            surfaces,
            distance=DISTANCE,
            settings=replace(settings, fused=fused),
            threads=on.get("threads"),
        )
        for _ in range(3):  # room for contacts is made by the first
            found = ask()
        held.append(peak_bytes(ask, surfaces.device))
    assert found is not None
    return [name, str(way), *(f"{ms:.3f}" for ms in took), count(found.counts["pairs"]), count(len(found.near))] + [
        *(f"{bytes_ / 1e6:.2f}" for bytes_ in held),
        f"{100.0 * (1.0 - held[1] / held[0]):.0f} %",
    ]


def _per_pair(name: str, scenes: list, settings: Settings, took: list[float]) -> list[str]:
    """Pairs per step, and the time to find and to test one, ours and printed."""
    found = [detect(scene, distance=DISTANCE, settings=settings, device="cpu").counts for scene in scenes]
    ours, theirs = float(np.mean([counts.get("pairs", 0) for counts in found])), PRINTED_PAIRS[name][1]
    printed = [1e-3 * ms for ms in WITHOUT_CONES.get(name, PRINTED[name][0][4:6])]
    times = [f"{seconds(a / ours)} / {seconds(b / theirs)}" for a, b in zip(took[4:6], printed, strict=True)]
    return [f"{ours:.0f} / {theirs}", *times]


def _detectors_ms(
    scenes: list, settings: Settings, runs: int, ways: dict[Hashable, dict]
) -> tuple[dict[Hashable, np.ndarray], dict[Hashable, np.ndarray]]:
    """Mean time over the frames of a detector that is kept from frame to frame [ms], in several ways, turn by turn; and
    of the first time in each turn.
    """
    options: dict[str, Any] = {"distance": DISTANCE, "within": settings.within, "between": settings.between}
    detectors = {way: Detector(scenes[0], **options, **on) for way, on in ways.items()}
    points = [np.concatenate([mesh.vertices for mesh in scene]) for scene in scenes]
    places = {way: [wp.array(p, dtype=wp.vec3d, device=d.device) for p in points] for way, d in detectors.items()}
    took: dict[Hashable, list[tuple[float, float]]] = {way: [] for way in ways}
    until = time.perf_counter() + TURNS_TAKE
    while len(took[_named(1)]) <= runs or time.perf_counter() < until:
        for way, detector in detectors.items():
            took[way].append(_turn(detector, places[way]))
    # The very first turn makes room.
    warm, woken = ({way: 1e3 * np.array(each[1:])[:, k] for way, each in took.items()} for k in range(2))
    return warm, woken


def _turn(detector: Detector, places: list[wp.array]) -> tuple[float, float]:
    """Mean time of a detection over the frames [s]: again and again, and the first time."""

    def once() -> float:
        begin = time.perf_counter()
        for place in places:
            detector.find(place)
        wp.synchronize_device(detector.device)
        return (time.perf_counter() - begin) / len(places)

    first, until, rest = once(), time.perf_counter() + TURN_TAKES, []
    while not rest or time.perf_counter() < until:
        rest.append(once())
    return float(np.mean(rest)), first


def _same_contacts(scenes: list, settings: Settings, ways: list[dict]) -> None:
    """Listed, fused and with kept trees, on all threads and devices."""
    compared = {"within": settings.within, "between": settings.between}
    for scene in scenes[:: max(1, len(scenes) // 3)]:
        found = []
        for on in ways:
            listed_and_fused = [replace(settings, fused=fused) for fused in (False, True)]
            found += [detect(scene, distance=DISTANCE, settings=each, **on).contacts for each in listed_and_fused]
            kept = Detector(scene, distance=DISTANCE, **compared, **on)
            found.append(kept.contacts([mesh.vertices for mesh in scene]))
        for other in found[1:]:
            assert np.array_equal(found[0].key, other.key), "threads, device or way change the contacts"


def _whole_steps(name: str, device: str, quick: bool) -> list:
    """The whole simulation of a scene, step by step."""
    triangles, steps = SCENES[name]
    simulation = simulated.knot(device=device) if triangles is None else simulated.tori(triangles, device=device)
    simulation.step()  # compiles
    took = []
    for _ in range(20 if quick else steps - 1):
        wp.synchronize_device(simulation.device)
        begin = time.perf_counter()
        simulation.step()
        wp.synchronize_device(simulation.device)
        took.append(time.perf_counter() - begin)
    mean, p99 = float(np.mean(took)), float(np.quantile(took, 0.99))
    _, _, serial, six = TOTALS[name]
    return [name, device.upper(), len(took), seconds(mean), seconds(p99), seconds(max(took)), f"{1.0 / mean:.1f}"] + [
        "yes" if p99 <= (0.05 if device == "cpu" else 0.016) else "no",
        f"{serial} / {six} ms",
    ]

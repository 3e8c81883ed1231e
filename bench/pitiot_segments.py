"""Segments in cells of several sizes: how often an update is free, and three ways to keep who is near.

Experiments E16 and E17, on Pitiot 2015, sections 5.2 and 5.4. An update is free where both ends stay in the one cell
that holds the segment. For E17 points are registered anew in full, by the difference of the rings they leave and enter,
or with no lists of who is near at all (what is near is read from the ring when asked for), which is what the library
does; the claims of the thesis are in its section 5.2 and in section 2.1 of its conclusion. Last, what the thesis
proposes as future work (section 2.3 there): the points where a segment crosses edges are followed, instead of sending a
particle along it at every step.
"""

from __future__ import annotations

from itertools import cycle

import numpy as np
import warp as wp

from bench.harness import Report, count, measure, ratio, seconds
from tangere.cells import Density
from tangere.cells.generate import quad_grid
from tangere.cells.maps import CellMap
from tangere.cells.registration import Registration, adapt
from tangere.cells.tracking import MARCH_UNLESS_ONE_CELL, Segments, as_map_points, cross_segments, locate_darts
from tangere.cells.tracking.crossings import Crossings
from tangere.published.pitiot_trackers import CrossingPoints
from tangere.runtime import using_threads

#: E17 after each step: 22. Crossing points, equal to marches and their cost compared: 82.
FEATURES = ["F-P-22", "F-P-82"]


def run(report: Report, quick: bool = False) -> None:
    _free(report, 60 if quick else 1000)
    _ways(report, 200 if quick else 5000)
    _followed(report, 300 if quick else 20_000)


def _free(report: Report, number: int) -> None:
    report.section(f"E16: {count(number)} segments of 1 m, moving by 5 cm a step: updates that are free")
    rng, size = np.random.default_rng(0), 64.0
    start = rng.uniform(2, size - 2, (number, 2))
    start[: 3 * number // 4] = np.clip(size / 2 + rng.normal(0, 3.0, (3 * number // 4, 2)), 2, size - 2)
    angle = rng.uniform(0, 2 * np.pi, number)
    ends = start + np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.concatenate([start, ends])
    edges = np.stack([np.arange(number), number + np.arange(number)], axis=1)
    shares, rows = {}, []
    kinds = {"cells of 8 m": 8.0, "cells of 4 m": 4.0, "cells of 2 m": 2.0, "adaptive, 8 to 2 m": 8.0}
    for name, cell in kinds.items():
        map = quad_grid(round(size / cell), round(size / cell), size=cell, device="cpu")
        registration = Registration(map, points, edges)
        if name.startswith("adaptive"):
            while len(adapt(registration, Density(12, 6), level_limit=2)[1]):
                pass
        free, again = [], np.random.default_rng(1)
        for _ in range(10):
            drift = np.tile(again.normal(0, 0.05, (number, 2)), (2, 1))
            before = [registration.crossed("segments", k)[0] for k in range(number)]
            single = [len(registration.crossed("segments", k)) == 1 for k in range(number)]
            registration.move(registration.points[:, :2] + drift)
            cells = registration.cells
            stayed = (cells[:number] == before) & (cells[number:] == before)
            free.append(np.mean(stayed & single))
        shares[name] = float(np.mean(free))
        rows.append([name, str(len(map.leaves)), f"{100 * shares[name]:.1f} %"])
    report.table(["", "cells", "free"], rows)
    coarse, middle, fine, adaptive = shares.values()
    grows, between = coarse > middle > fine, fine <= adaptive <= coarse
    report.note(
        f"More with larger cells: {'pass' if grows else 'fail'}. Adaptive between coarse and fine: "
        f"{'pass' if between else 'fail'}."
    )


def _ways(report: Report, number: int) -> None:
    report.section(f"E17: {count(number)} points, ways to keep `present` and `near`")
    rng, side = np.random.default_rng(2), 40
    map = quad_grid(side, side, device="cpu")
    registration = Registration(map, rng.uniform(0.1, side - 0.1, (number, 2)))
    rings = {int(c): set(map.rings.row(int(c)).tolist()) for c in map.leaves}
    before = registration.cells.copy()
    registration.move(np.clip(registration.points[:, :2] + rng.normal(0, 0.1, (number, 2)), 0.1, side - 0.1))
    after = registration.cells.copy()
    changed = np.flatnonzero(before != after)

    def fresh() -> tuple[list[set], list[set]]:
        present: list[set] = [set() for _ in rings]
        near: list[set] = [set() for _ in rings]
        for i, c in enumerate(before.tolist()):
            present[c].add(i)
            for b in rings[c]:
                near[b].add(i)
        return present, near

    state = {"full": fresh(), "difference": fresh(), "on demand": fresh()}

    def full(back: bool) -> int:
        present, near = state["full"]
        touched = 0
        for i in changed.tolist():
            a, b = (after, before) if back else (before, after)
            old, new = int(a[i]), int(b[i])
            present[old].discard(i)
            present[new].add(i)
            for c in rings[old]:
                near[c].discard(i)
            for c in rings[new]:
                near[c].add(i)
            touched += len(rings[old]) + len(rings[new])
        return touched

    def difference(back: bool) -> int:
        present, near = state["difference"]
        touched = 0
        for i in changed.tolist():
            a, b = (after, before) if back else (before, after)
            old, new = int(a[i]), int(b[i])
            present[old].discard(i)
            present[new].add(i)
            left, entered = rings[old] - rings[new], rings[new] - rings[old]
            for c in left:
                near[c].discard(i)
            for c in entered:
                near[c].add(i)
            touched += len(left) + len(entered)
        return touched

    def on_demand(back: bool) -> int:
        present, _ = state["on demand"]
        for i in changed.tolist():
            a, b = (after, before) if back else (before, after)
            present[int(a[i])].discard(i)
            present[int(b[i])].add(i)
        return 0

    ways = {"full": full, "difference": difference, "on demand": on_demand}
    touched = {name: way(False) for name, way in ways.items()}
    agree = all(state[name][0] == state["full"][0] for name in ways) and state["difference"][1] == state["full"][1]
    # There and back, so that every round finds the same state.
    timings = measure({name: lambda way=way: (way(True), way(False)) for name, way in ways.items()}, rounds=5)
    asked = rng.choice(list(rings), 500)

    def stored() -> int:
        return sum(len(state["full"][1][c]) for c in asked)

    def gathered() -> int:
        return sum(len(set().union(*(state["on demand"][0][b] for b in rings[int(c)]))) for c in asked)

    looks = measure({"stored": stored, "gathered": gathered}, rounds=5)
    rows = []
    for name, timing in timings.items():
        each = timing.median / 2 / max(len(changed), 1)
        look = looks["gathered" if name == "on demand" else "stored"].median / len(asked)
        lists = f"{touched[name] / max(len(changed), 1):.1f}"
        rows.append([name, seconds(each), lists, seconds(look)])
    report.table(["way (the same Python sets for all)", "update of one point", "lists touched", "one look"], rows)
    kernels = measure(
        {form: _mover(map, registration.points.copy(), form) for form in ("sorted", "incremental")}, rounds=5
    )
    told = ", ".join(f"{form}: {seconds(timing.median)}" for form, timing in kernels.items())
    report.note(
        f"All three keep the same lists: {'pass' if agree else 'fail'}; {100 * len(changed) / number:.1f} % of the "
        f"points changed cell. The library's own registration of all {count(number)} points, for a move and all lists: "
        f"{told}."
    )


def _mover(map, points: np.ndarray, form: str):
    registration = Registration(map, points, form=form)
    there = [np.clip(points + shift, 0.1, None) * [1, 1, 0] for shift in (0.01, 0.0)]

    def once() -> None:
        for targets in there:
            registration.move(targets)
            registration.present("points")

    return once


def _segments(a: wp.array, b: wp.array, dart_a: wp.array, dart_b: wp.array) -> Segments:
    segments = Segments()
    segments.a, segments.b, segments.dart_a, segments.dart_b = a, b, dart_a, dart_b
    segments.method = wp.full(len(a), int(MARCH_UNLESS_ONE_CELL), dtype=wp.int32, device="cpu")
    return segments


def _followed(report: Report, number: int) -> None:
    report.section(f"Crossing points that are followed against marches: {count(number)} segments, one thread")
    rng, side, rows, equal = np.random.default_rng(3), 100, [], True
    map = quad_grid(side, side, device="cpu")
    for length in (0.3, 1.0, 3.0, 10.0):
        for step in (0.005, 0.05):
            frames = _frames(map, number, side, length, step, rng)
            segments = CrossingPoints(map, *frames[0][:2])
            marched = [_segments(*frame) for frame in frames]
            turns = {"followed": cycle(frames), "marched": cycle(marched)}

            def follow(segments: CrossingPoints = segments, turns: dict = turns) -> None:
                with using_threads(1):
                    segments.move(*next(turns["followed"])[:2])

            def march(turns: dict = turns) -> Crossings:
                with using_threads(1):
                    return cross_segments(map, next(turns["marched"]))[0]

            timings = measure({"followed": follow, "marched": march}, rounds=2 * len(frames) - 1)
            first, cells = segments.cells
            marched = timings["marched"].result
            equal &= np.array_equal(first, marched.first.numpy()) and np.array_equal(cells, marched.cells.numpy())
            each = [timings[name].median / number for name in ("followed", "marched")]
            passed = f"{100 * segments.counters['vertices passed'] / number:.1f} %"
            rows.append(
                [f"{length:g} cells, {step:g} a step", *(seconds(t) for t in each), ratio(each[1], each[0]), passed]
            )
    columns = ["length and motion", "followed, a segment", "marched", "", "vertices passed, of the segments"]
    report.table(columns, rows)
    report.note(f"The same cells for every segment by both: {'pass' if equal else 'fail'}.")


def _frames(map: CellMap, number: int, side: int, length: float, step: float, rng: np.random.Generator) -> list[tuple]:
    """Ends of segments and darts of the cells that hold them, for a few steps that come back to where they began."""
    a = rng.uniform(1, side - 1, (number, 2))
    angle = rng.uniform(0, 2 * np.pi, number)
    b = a + length * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    frames = []
    for _ in range(4):
        ends = [as_map_points(map, np.clip(x, 0.05, side - 0.05), "points") for x in (a, b)]
        frames.append((*ends, *(locate_darts(map, x, None)[0] for x in ends)))
        a, b = (x + rng.normal(0, step, x.shape) for x in (a, b))
    return frames + frames[-2:0:-1]

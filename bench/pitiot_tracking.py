"""Where points are, again after a small move: walks through 40,000 triangles and 134,000 tetrahedra.

Peers in the same run: `scipy.spatial.Delaunay.find_simplex` and matplotlib's trifinder. All get the same points; ours
start from the cells of the step before, cells numbered along a curve and points sorted by cell as a simulation keeps
them (scipy goes from point to point, so that order helps it as well; it is also timed without). Answers are compared
one by one.
Experiment E11, on Pitiot 2015, chapter 7, is in `pitiot_deformation`. Last, tracking in E6: the same number of
points in an environment of any size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from tangere.cells.generate import quad_grid
from tangere.cells.maps import CellMap
from tangere.cells.tracking import as_map_points, locate, locate_darts, move_darts
from tangere.published.pitiot_trackers import Simplices
from tangere.runtime import thread_count, using_threads

#: The last section shows tracking alone for F-P-18, whose check, E6 in a city, is in `pitiot_crowd_figures`.
FEATURES: list[str] = []

#: Asked for on two cores [points/s].
TARGETS = {2: 20e6, 3: 15e6}


def run(report: Report, quick: bool = False) -> None:
    try:
        from scipy.spatial import Delaunay
    except ImportError as error:
        raise SkippedError("scipy is not installed") from error
    report.packages += ["scipy", "matplotlib"]
    rng = np.random.default_rng(0)
    for dimension, sites in ((2, 20_300), (3, 20_100)):
        mesh = Delaunay(rng.uniform(0, 1, (sites // 20 if quick else sites, dimension)))
        _table(report, mesh, dimension, 2_000 if quick else 200_000, rng)
    _environments(report, quick)


def _environments(report: Report, quick: bool) -> None:
    """E6 for tracking alone: as many points in maps of rising size, in one district or all over, there and back."""
    number, steps, rounds = 500, 4 if quick else 40, 5 if quick else 31
    sides = (20, 24) if quick else (32, 64, 128, 256)
    report.section(f"E6: {number} points that go a tenth of a cell a step, in environments of rising size")
    contenders, rng = {}, np.random.default_rng(1)
    for side in sides:
        map = quad_grid(side, side, device="cpu")
        for where, extent in (("in one district", sides[0]), ("all over", side)):
            start = rng.uniform(1, extent - 1, (number, 2))
            start = start[np.argsort(locate(map, start).cell, kind="stable")]  # as a simulation keeps them
            there = start + rng.normal(0, 0.1, start.shape)
            contenders[side, where] = _there_and_back(map, start, there, steps // 2)
    timings = measure(contenders, rounds=rounds)
    # What others do on the machine only adds to a round: the fastest one is the least disturbed.
    best = {key: min(timing.rounds) / steps for key, timing in timings.items()}
    kinds = ("in one district", "all over")
    rows = [[f"{count(side**2)} cells", *(seconds(best[side, where]) for where in kinds)] for side in sides]
    report.table(["environment", *kinds], rows)
    grown = [best[sides[-1], where] / best[sides[0], where] - 1.0 for where in kinds]
    told = [f"{100 * more:+.0f} % (asked for: ± 10 %, {'pass' if abs(more) <= 0.1 else 'fail'})" for more in grown]
    report.note(
        f"In {ratio(sides[-1] ** 2, sides[0] ** 2)} the cells a step takes {told[0]} in one district and {told[1]} all "
        "over. The walks are the same; what is added must be memory: some seven cache lines a point, each on a page of "
        f"its own when points are far apart. The fastest of {rounds} rounds of {steps} steps, one thread."
    )


def _there_and_back(map: CellMap, start: np.ndarray, there: np.ndarray, times: int) -> Callable[[], None]:
    a, b = (as_map_points(map, x, "points") for x in (start, there))
    held = locate_darts(map, a, None)[0]

    def track() -> None:
        darts = held
        with using_threads(1):
            for _ in range(times):
                darts = move_darts(map, a, b, darts)[0]
                darts = move_darts(map, b, a, darts)[0]

    return track


def along_a_curve(points: np.ndarray) -> np.ndarray:
    """The order of points of the unit square or cube along a Morton curve: neighbours in space are so in memory."""
    whole, key = (1023 * points).astype(np.int64), np.zeros(len(points), np.int64)
    for bit in range(10):
        for axis in range(points.shape[1]):
            key |= ((whole[:, axis] >> bit) & 1) << (points.shape[1] * bit + axis)
    return np.argsort(key, kind="stable")


def _table(report: Report, mesh, dimension: int, number: int, rng: np.random.Generator) -> None:
    order = along_a_curve(mesh.points[mesh.simplices].mean(axis=1))
    cells, place = mesh.simplices[order], np.argsort(order)
    kind = "triangles" if dimension == 2 else "tetrahedra"
    report.section(f"{count(number)} points in {count(len(cells))} {kind}")
    start = np.sort(rng.integers(0, len(cells), number))
    corners = mesh.points[cells[start]]
    before = np.einsum("nk,nkd->nd", rng.dirichlet(np.ones(dimension + 1), number), corners)
    width = np.median(np.ptp(corners, axis=1))
    points = before + rng.normal(0, 0.08 * width, before.shape)
    inside = mesh.find_simplex(points) >= 0
    points[~inside] = before[~inside]
    truth = place[mesh.find_simplex(points)]
    vector = wp.vec2d if dimension == 2 else wp.vec3d
    walk = Simplices(mesh.points, cells, device="cpu")
    places, first = wp.array(points, dtype=vector, device="cpu"), wp.array(start, dtype=wp.int32, device="cpu")
    # The map numbers its cells as they come, and turns those that are clockwise.
    turned = _counter_clockwise(mesh.points, cells)
    make = CellMap.from_polygons if dimension == 2 else CellMap.from_polyhedra
    map = make(mesh.points, turned, device="cpu")
    darts = wp.array(map.numpy("anchor")[start], dtype=wp.int32, device="cpu")
    spots = as_map_points(map, points, "points")
    aimed = locate_darts(map, as_map_points(map, before, "points"), darts)[0]
    mixed = rng.permutation(number)
    shuffled = points[mixed]
    back = np.argsort(mixed)
    contenders = {
        "scipy find_simplex": lambda: place[mesh.find_simplex(points)],
        "scipy, points in no order": lambda: place[mesh.find_simplex(shuffled)[back]],
    }
    if dimension == 2:
        from matplotlib.tri import Triangulation

        finder = Triangulation(*mesh.points.T, turned).get_trifinder()
        contenders["matplotlib trifinder"] = lambda: finder(*points.T)
    for threads in sorted({1, thread_count()}):

        def simplices(threads: int = threads) -> np.ndarray:
            with using_threads(threads):
                return walk.walk(places, first)[0].numpy()

        def dart_walk(threads: int = threads) -> np.ndarray:
            with using_threads(threads):
                return map.arrays.cell.numpy()[locate_darts(map, spots, aimed)[0].numpy()]

        contenders[f"walk on cells, {threads} threads"] = simplices
        contenders[f"walk on darts, {threads} threads"] = dart_walk
    timings = measure(contenders, rounds=5, at_most=20.0)
    best = timings["scipy find_simplex"].median
    rows = []
    for name, timing in timings.items():
        wrong = int((np.asarray(timing.result) != truth).sum())
        rows.append([name, str(timing), count(number / timing.median), ratio(best, timing.median), str(wrong)])
    report.table(["", "time", "points/s", "against scipy", "other cells than scipy"], rows)
    rate = number / timings[f"walk on cells, {thread_count()} threads"].median
    passed = "pass" if rate >= TARGETS[dimension] else "fail"
    report.note(
        f"Asked for: {count(TARGETS[dimension])} points/s on two cores; {count(rate)} on {thread_count()}, {passed}. "
        f"{100 * float((truth != start).mean()):.0f} % of the points change cell."
    )


def _counter_clockwise(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    size = np.linalg.det(points[cells[:, 1:]] - points[cells[:, :1]])
    swap = [1, 0, *range(2, cells.shape[1])]
    return np.where(size[:, None] < 0, cells[:, swap], cells)

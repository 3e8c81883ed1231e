"""Who is near: bounded neighbourhoods in adaptive cells, and what trees, grids, hashing and triangulations take.

Experiments E7 and E8, on Pitiot 2015, section 5.7, with the structures of its chapter 2 as baselines. In radius mode
every method must find the same pairs. Each is timed as a simulation would use it: all points moved a little since the
last time, then all pairs within the radius. Regular cells as wide as the radius and a kd-tree are strong in open space;
where they win, the table says so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from bench.plots import Plot
from tangere.cells import Density
from tangere.cells.generate import quad_grid
from tangere.cells.registration import Registration, adapt, in_ring, pairs_within, things_around
from tangere.runtime import thread_count

#: A look through the library is flat: 21. Points and segments scale: 29. Neighbours in the ring are near: 77. E8: 78.
FEATURES = ["F-P-21", "F-P-29", "F-P-77", "F-P-78"]


def run(report: Report, quick: bool = False) -> None:
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        raise SkippedError("scipy is not installed") from error
    report.packages += ["scipy"]
    _bounded(report, quick)
    _constant(report, quick)
    _edges(report, quick)
    _coherent(report, quick)
    _baselines(report, quick)


def places(number: int, size: float, clustered: bool, seed: int = 0) -> np.ndarray:
    """(n, 2) points of a square, evenly or nine tenths of them in a few clusters."""
    rng = np.random.default_rng(seed)
    even = rng.uniform(0.01 * size, 0.99 * size, (number, 2))
    if not clustered:
        return even
    centres = rng.uniform(0.2 * size, 0.8 * size, (5, 2))
    close = centres[rng.integers(0, 5, number)] + rng.normal(0, 0.03 * size, (number, 2))
    some = rng.random(number) < 0.9
    return np.clip(np.where(some[:, None], close, even), 0.01 * size, 0.99 * size)


def adapted(points: np.ndarray, size: float, cells: int, limit: int = 8) -> Registration:
    """Points in cells that were split until none holds more than the limit."""
    registration = Registration(quad_grid(cells, cells, size=size / cells, device="cpu"), points)
    while len(adapt(registration, Density(limit, limit // 2), level_limit=12)[1]):
        pass
    return registration


def _bounded(report: Report, quick: bool) -> None:
    report.section("E7: neighbours in the one-ring as the density grows: a fixed grid and adaptive cells")
    rows, found = [], []
    for factor in (1, 4) if quick else (1, 4, 16, 64):
        number, size = 500 * factor, 40.0
        points = places(number, size, True)
        grid = Registration(quad_grid(10, 10, size=4.0, device="cpu"), points)
        cells = adapted(points, size, 10)
        sample = np.random.default_rng(1).choice(number, min(number, 300), replace=False)
        seen = [[len(in_ring(r, "points", int(i))) for i in sample] for r in (grid, cells)]
        found.append([max(seen[0]), max(seen[1])])
        told = [f"{np.quantile(s, 0.99):.0f}" for s in seen]
        rows.append([str(number), told[0], str(max(seen[0])), told[1], str(max(seen[1])), str(len(cells.map.leaves))])
    columns = ["points", "grid: 99 %", "most", "adaptive: 99 %", "most", "cells"]
    report.table(columns, rows)
    grown, bound = found[-1][0] / found[0][0], max(most for _, most in found)
    limit = 8 * 20
    passed = "pass" if bound <= limit and grown > 2 else "fail"
    report.note(
        f"The grid's neighbourhood grew by x {grown:.1f}; in adaptive cells nobody ever sees more than {bound} "
        f"(bounded by eight in each of a ring of at most 20 cells: {limit}, {passed})."
    )


def _constant(report: Report, quick: bool) -> None:
    report.section("Cost of one look and of one move as the crowd grows, the density being the same")
    rows, looks, moves = [], [], []
    numbers = (500, 1000) if quick else (1_000, 10_000, 100_000)
    for number in numbers:
        size = np.sqrt(number)
        points = places(number, size, False)
        cells = round(size / 2)
        registration = Registration(quad_grid(cells, cells, size=size / cells, device="cpu"), points)
        registration.present("points")
        targets = np.clip(points + 0.05, 0.01, size - 0.01)
        look = _looks(registration, np.random.default_rng(2).choice(number, 200))

        def move(r: Registration = registration, targets: np.ndarray = targets) -> None:
            r.move(targets)
            r.present("points")

        timings = measure({"look": look, "move": move}, rounds=5)
        looks.append(timings["look"].median / 200)
        moves.append(timings["move"].median / number)
        rows.append([count(number), seconds(looks[-1]), seconds(moves[-1])])
    report.table(["points", "neighbours of one point", "move and register, a point"], rows)
    series = {"neighbours of one point": looks, "move and register, a point": moves}
    report.plot("scaling", Plot("Cost as the crowd grows", "points", "seconds", numbers, series))
    flat, linear = looks[-1] / looks[0], moves[-1] / moves[0]
    report.note(
        f"A look takes x {flat:.2f} of what it took in the smallest crowd (flat: within x 2, memory being farther away "
        f"in a larger one; {'pass' if flat <= 2.0 else 'fail'}). A move takes x {linear:.2f} for each point (not above "
        f"linear: {'pass' if linear <= 1.25 else 'fail'})."
    )


def _looks(registration: Registration, chosen: np.ndarray) -> Callable[[], int]:
    """Asks for the neighbours of each chosen point."""

    def look() -> int:
        return sum(len(in_ring(registration, "points", int(i))) for i in chosen)

    return look


def _edges(report: Report, quick: bool) -> None:
    report.section("Cost of segments: neighbours of one by the cells it crosses, an update by their number")
    size, rng = (20, np.random.default_rng(4)) if quick else (100, np.random.default_rng(4))
    map, points = quad_grid(size, size, device="cpu"), places(4 * size * size, size, False)
    rows, asked, crossed = [], [], []
    lengths = (1, 4, 16) if quick else (1, 4, 16, 64)
    contenders = {}
    for length in lengths:
        ends = _segments(rng, 50, length, size)
        registration = Registration(map, np.concatenate([points, *ends]), len(points) + _pairs(50))
        registration.present("points")
        crossed.append(float(np.mean([len(registration.crossed("segments", i)) for i in range(50)])))
        contenders[length] = lambda r=registration: [len(things_around(r, "segments", i, "points")) for i in range(50)]
    timings = measure(contenders, rounds=5)
    asked = [timings[length].median / 50 for length in lengths]
    moves, numbers = [], (200, 400) if quick else (1_000, 10_000, 100_000)
    for number in numbers:
        ends = _segments(rng, number, 4, size)
        registration = Registration(map, np.concatenate(ends), _pairs(number))
        targets = np.clip(registration.points[:, :2] + 0.01, 0.01, size - 0.01)

        def move(r: Registration = registration, targets: np.ndarray = targets) -> None:
            r.move(targets)
            r.present("segments")

        moves.append(measure({"move": move}, rounds=5)["move"].median / number)
    for cells, taken in zip(crossed, asked):
        rows.append([f"{cells:.1f}", seconds(taken), seconds(taken / cells)])
    report.table(["cells crossed", "neighbours of a segment", "for each cell"], rows)
    report.table(["segments", "move and register, a segment"], [[count(n), seconds(t)] for n, t in zip(numbers, moves)])
    report.plot("edges", Plot("Neighbours of a segment", "cells crossed", "seconds", crossed, {"one segment": asked}))
    slope = np.diff(asked) / np.diff(crossed)
    more, linear = slope[-1] / slope[-2], moves[-1] / moves[-2]
    report.note(
        f"Among the longest segments each cell more costs x {more:.2f} of what it costs among shorter ones (not above "
        f"linear: {'pass' if more <= 1.5 else 'fail'}). Of the most segments an update takes x {linear:.2f} for "
        f"each (not above linear: {'pass' if linear <= 1.25 else 'fail'})."
    )


def _segments(rng: np.random.Generator, number: int, length: float, size: float) -> list[np.ndarray]:
    """Both ends, (n, 2) each, of segments of a length in a square."""
    angle = rng.uniform(0, 2 * np.pi, number)
    half = 0.5 * length * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    middle = rng.uniform(0.5 * length + 0.1, size - 0.5 * length - 0.1, (number, 2))
    return [middle - half, middle + half]


def _pairs(number: int) -> np.ndarray:
    return np.stack([np.arange(number), number + np.arange(number)], axis=1)


def _coherent(report: Report, quick: bool) -> None:
    report.section("Neighbours in the map are neighbours in space")
    number, size = (400, 20.0) if quick else (4000, 60.0)
    points = places(number, size, True)
    registration = adapted(points, size, 10)
    away, anyone = [], []
    for i in np.random.default_rng(3).choice(number, 200, replace=False):
        distance = np.linalg.norm(points - points[i], axis=1)
        ring = in_ring(registration, "points", int(i))
        away.append(distance[ring].mean() if len(ring) else np.nan)
        nearest = np.sort(distance)[1 : len(ring) + 1]
        anyone.append(nearest.mean() if len(ring) else np.nan)
    mean, best = np.nanmean(away), np.nanmean(anyone)
    report.note(
        f"Mean distance of those in the ring: {mean:.3g} m; of as many truly nearest ones (brute force): {best:.3g} m, "
        f"x {mean / best:.2f}; of all points: {np.linalg.norm(points - points.mean(axis=0), axis=1).mean():.3g} m."
    )


def _baselines(report: Report, quick: bool) -> None:
    report.section("E8: all pairs within a radius, by method")
    from scipy.spatial import cKDTree

    radius, rows, identical = 1.5, [], True
    for clustered in (False, True):
        for number in (300,) if quick else (1_000, 10_000, 100_000, *(() if clustered else (1_000_000,))):
            size = np.sqrt(number / 0.5) * (2.0 if clustered else 1.0)
            points = places(number, size, clustered)
            cells = max(2, int(size / (8 * radius)))
            registration = adapted(points, size, cells, limit=32)
            regular = Registration(_regular(size, radius), points)

            def pairs_of(r: Registration, x: np.ndarray = points) -> int:
                r.move(x)
                return len(pairs_within(r, radius))

            contenders = {
                "adaptive cells": lambda r=registration: pairs_of(r),
                "regular cells": lambda r=regular: pairs_of(r),
                "kd-tree": lambda x=points: len(cKDTree(x).query_pairs(radius, output_type="ndarray")),
            }
            if number <= 100_000:
                contenders["hashing"] = lambda x=points: hashed(x, radius)
            if number <= 10_000:
                contenders["Delaunay"] = lambda x=points: through_triangles(x, radius)
                contenders["neighbourhood grid"] = lambda x=points: moore(x, radius)
            if number <= 1_000:
                contenders["brute force"] = lambda x=points: brute(x, radius)
            timings = measure(contenders, rounds=7, at_most=1.0)
            truth = timings["kd-tree"].result
            exact = [name for name in timings if name != "neighbourhood grid"]
            identical &= all(timings[name].result == truth for name in exact)
            told = []
            for name in ("adaptive cells", "regular cells", "kd-tree", "hashing", "Delaunay", "brute force"):
                told.append(seconds(timings[name].median) if name in timings else None)
            missed = None
            if "neighbourhood grid" in timings:
                grid = timings["neighbourhood grid"]
                missed = f"{seconds(grid.median)}, finds {100 * grid.result / truth:.0f} %"
            best = min(exact, key=lambda name: timings[name].median)
            against = ratio(timings["kd-tree"].median, timings["adaptive cells"].median)
            kind = "clustered" if clustered else "even"
            rows.append([f"{count(number)}, {kind}", count(truth), *told, missed, best, against])
    columns = ["points", "pairs", "adaptive cells", "regular cells", "kd-tree", "hashing", "Delaunay", "brute force"]
    report.table([*columns, "neighbourhood grid", "fastest", "kd-tree / adaptive"], rows)
    report.note(
        f"Same number of pairs by every exact method: {'pass' if identical else 'fail'}. Adaptive cells hold at most "
        f"32 points. Ours run on {thread_count()} threads, the kd-tree, which knows no threads for pairs, on one. In "
        "small crowds it wins: a move and a search of ours start some thirty kernels from Python, about a "
        "millisecond whatever their number. Hashing and the search over triangles are NumPy and SciPy code; the "
        "neighbourhood grid keeps one point per cell and looks at the Moore neighbours only, so it misses some."
    )


def _regular(size: float, radius: float):
    cells = int(size / radius)
    return quad_grid(cells, cells, size=size / cells, device="cpu")


def hashed(points: np.ndarray, radius: float) -> int:
    """Spatial hashing: points by cell, then the cells around (Teschner et al. 2003), with NumPy."""
    cell = np.floor(points / radius).astype(np.int64)
    key = cell[:, 0] * 1_000_003 + cell[:, 1]
    order = np.argsort(key, kind="stable")
    sorted_keys, found = key[order], 0
    for dx, dy in ((0, 0), (1, 0), (1, 1), (0, 1), (-1, 1)):
        there = key + dx * 1_000_003 + dy
        low, high = np.searchsorted(sorted_keys, there), np.searchsorted(sorted_keys, there, side="right")
        a = np.repeat(np.arange(len(points)), high - low)
        sizes = high - low
        b = order[np.arange(len(a)) + np.repeat(low - (np.cumsum(sizes) - sizes), sizes)]
        near = ((points[a] - points[b]) ** 2).sum(axis=1) <= radius**2
        found += int((near & (a < b)).sum()) if (dx, dy) == (0, 0) else int(near.sum())
    return found


def through_triangles(points: np.ndarray, radius: float) -> int:
    """Delaunay triangulation, then from each point along its edges as long as they stay within the radius."""
    from scipy.sparse import coo_matrix
    from scipy.spatial import Delaunay

    first, around = Delaunay(points).vertex_neighbor_vertices
    row = np.repeat(np.arange(len(points)), np.diff(first))
    # Every pair within the radius is joined by edges inside the disc over it, hence inside the disc of that radius.
    reached = coo_matrix((np.ones(len(row), bool), (row, around)), shape=(len(points),) * 2).tocsr()
    edges, known = reached, set()
    pairs = np.stack([row, around], axis=1)
    while len(pairs):
        near = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1) <= radius**2
        fresh = np.unique(pairs[near & (pairs[:, 0] != pairs[:, 1])], axis=0)
        keys = fresh[:, 0] * len(points) + fresh[:, 1]
        new = np.setdiff1d(keys, np.fromiter(known, np.int64, len(known)))
        known.update(new.tolist())
        a, b = np.divmod(new, len(points))
        sizes = np.diff(edges.indptr)[b]
        start = np.repeat(edges.indptr[b] - (np.cumsum(sizes) - sizes), sizes)
        pairs = np.stack([np.repeat(a, sizes), edges.indices[np.arange(sizes.sum()) + start]], axis=1)
    return len(known) // 2


def moore(points: np.ndarray, radius: float) -> int:
    """Neighbourhood grid: one point per cell, sorted by rows and columns; pairs among Moore neighbours."""
    side = int(np.ceil(np.sqrt(len(points))))
    number = np.full(side * side, -1)
    by_x = np.argsort(points[:, 0], kind="stable")
    for column in range(side):
        part = by_x[column * side : (column + 1) * side]
        number[column * side : column * side + len(part)] = part[np.argsort(points[part, 1], kind="stable")]
    grid, found = number.reshape(side, side), 0
    for dx, dy in ((1, 0), (1, 1), (0, 1), (-1, 1)):
        a = grid[max(0, -dx) : side - max(0, dx), : side - dy]
        b = grid[max(0, dx) : side - max(0, -dx), dy:]
        both = (a >= 0) & (b >= 0)
        found += int((((points[a[both]] - points[b[both]]) ** 2).sum(axis=1) <= radius**2).sum())
    return found


def brute(points: np.ndarray, radius: float) -> int:
    square = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return int((square <= radius**2).sum() - len(points)) // 2

"""Cylinders on ground larger than memory wants: does a grid of 10,000 x 10,000 cells in tiles cost more than 100 x 100?

The rough ground of `strashnov_peers`, cells of 20 cm: 20 m of it in memory, and 2 km of it in files of tiles. The same
cylinders at the same place ask for the same cells of both.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial

import numpy as np

from bench.harness import Report, count, measure, ratio, seconds
from bench.strashnov_peers import HEIGHT, RADIUS, SIZE, TILTS, lowered_poses, rough_waves
from tangere.query.manifold import manifold
from tangere.shape import Heightfield, write_tiles
from tangere.shape.analytic import Cylinder

#: Size of a cell [m].
CELL = 0.2


def run(report: Report, quick: bool = False) -> None:
    small, large, bodies = round(SIZE / CELL), 500 if quick else 10_000, 200 if quick else 2000
    left, right = _factors(large + 1)

    def heights(rows: slice, columns: slice) -> np.ndarray:
        return left[rows] @ right[:, columns]

    near = Heightfield(heights(slice(small + 1), slice(small + 1)), CELL)
    with tempfile.TemporaryDirectory() as folder:
        far = write_tiles(folder, heights, CELL, shape=(large, large))
        rows = []
        begin = time.perf_counter()
        manifold(Cylinder(RADIUS, HEIGHT).at(np.eye(4)[None]), far, device="cpu")
        opened = time.perf_counter() - begin
        for tilt, angle in TILTS.items():
            cylinders = Cylinder(RADIUS, HEIGHT).at(lowered_poses(near, angle, bodies))
            ask = partial(manifold, cylinders, margin=0.0, device="cpu", threads=1)
            timings = measure({"small": partial(ask, near), "large": partial(ask, far)}, rounds=3 if quick else 25)
            small_one, large_one = timings["small"], timings["large"]
            for name in ("gap", "normal", "point_a"):
                assert np.array_equal(getattr(small_one.result, name), getattr(large_one.result, name)), name
            times = [timing.median / bodies for timing in (small_one, large_one)]
            rows.append([tilt, *map(seconds, times), ratio(times[1], times[0])])
    report.section(f"A full manifold of one of {count(bodies)} cylinders, one thread")
    report.table(["pose", f"{small} x {small} in memory", f"{large:,} x {large:,} in tiles", "tiles / memory"], rows)
    report.note(
        f"The manifolds are equal. Before, the first question of all looks through the tiles: {seconds(opened)}."
    )


def _factors(vertices: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices whose product are the heights: sin(a + b) = sin a cos b + cos a sin b for each wave."""
    x = CELL * np.arange(vertices)
    left, right = [], []
    for wave, phase, turn in rough_waves():
        along, across = wave * np.sin(turn) * x + phase, wave * np.cos(turn) * x
        left += [0.15 / wave * np.sin(along), 0.15 / wave * np.cos(along)]
        right += [np.cos(across), np.sin(across)]
    return np.stack(left, axis=1), np.stack(right)

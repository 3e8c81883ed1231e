"""Cylinders on ground larger than memory wants: does a grid of 10,000 x 10,000 cells in tiles cost more than 100 x 100?

The rough ground of `strashnov_peers`, cells of 20 cm, heights in float32: 20 m of it in memory, and 2 km of it in files
of tiles. The same cylinders at the same place ask for the same cells of both. Then they are spread over all 2 km: tiles
are read where the cylinders are. On CUDA poses lie on the device before the clock starts and contacts stay there.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from bench.harness import Report, count, measure, ratio, seconds
from bench.strashnov_peers import DEPTH, HEIGHT, RADIUS, SIZE, TILTS, lowered_poses, rough_waves
from tangere.query.contacts import Contacts
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield, TiledHeightfield

#: Size of a cell [m].
CELL = 0.2
#: Tiles cost the same as memory if they take no more than this many times longer.
SAME = 1.2
#: Memory that is not enough for all tiles of the cylinders that are spread [bytes].
LITTLE = 64 << 20


def run(report: Report, quick: bool = False) -> None:
    small, large = round(SIZE / CELL), 500 if quick else 10_000
    left, right = _factors(large + 1)

    def heights(rows: slice, columns: slice) -> np.ndarray:
        return (left[rows] @ right[:, columns]).astype(np.float32)

    near = Heightfield(heights(slice(small + 1), slice(small + 1)), CELL)
    with tempfile.TemporaryDirectory() as folder:
        wrote, far = _timed(partial(TiledHeightfield.create, folder, heights, CELL, shape=(large, large)))
        opened, far = _timed(partial(TiledHeightfield.load, folder))
        one = Cylinder(RADIUS, HEIGHT).at(lowered_poses(near, 0.0, 1))
        manifold(one, TiledHeightfield(near.heights, CELL), device="cpu")  # kernels are compiled
        asked, _ = _timed(partial(manifold, one, far, device="cpu"))
        _same_place(report, near, far, 200 if quick else 2000)
        report.note(
            f"""Writing the tiles took {seconds(wrote)}, opening them {seconds(opened)}, and the first question of all
            {seconds(asked)}."""
        )
        _all_over(report, near, far, 200 if quick else 5000)
        if wp.is_cuda_available():
            for bodies in (1000,) if quick else (10_000, 1_000_000):
                _on_cuda(report, near, TiledHeightfield.load(folder), bodies)
        else:
            report.note("On CUDA it was not measured: there is no such device here.")


def _same_place(report: Report, near: Heightfield, far: TiledHeightfield, bodies: int) -> None:
    rows = []
    for tilt, angle in TILTS.items():
        cylinders = Cylinder(RADIUS, HEIGHT).at(lowered_poses(near, angle, bodies))
        ask = partial(manifold, cylinders, distance=0.0, device="cpu", threads=1)
        rows.append([tilt, *_compared(partial(ask, near), partial(ask, far), bodies)])
    report.section(f"A full manifold of one of {count(bodies)} cylinders at the same place, one thread")
    report.table(["pose", *_grids(near, far), "tiles / memory", "same cost"], rows)
    report.note(f"The manifolds are equal. It is the same cost if tiles take at most {SAME} times as long.")


def _all_over(report: Report, near: Heightfield, far: TiledHeightfield, bodies: int) -> None:
    """Cylinders everywhere: how long are they lowered, then asked for, with tiles not in memory yet and in memory?"""
    rows = []
    for tilt, angle in TILTS.items():
        poses = _spread(lowered_poses(near, angle, bodies), far)
        beside = Cylinder(RADIUS, HEIGHT).at(lowered_poses(near, angle, bodies))
        fresh = TiledHeightfield.load(far.heights.folder)
        lowering, poses = _timed(partial(_lowered, poses, fresh, "cpu"))
        cylinders = Cylinder(RADIUS, HEIGHT).at(poses)
        first, _ = _timed(partial(manifold, cylinders, TiledHeightfield.load(far.heights.folder), device="cpu"))
        ask = partial(manifold, device="cpu")
        timings = measure({"small": partial(ask, beside, near), "large": partial(ask, cylinders, fresh)}, rounds=5)
        times = [timings[name].median for name in ("small", "large")]
        little = TiledHeightfield.load(far.heights.folder, budget=LITTLE)
        ask(cylinders, little)
        paging, _ = _timed(partial(ask, cylinders, little))
        rows.append([tilt, *map(seconds, (lowering, first, *times)), ratio(times[1], times[0]), seconds(paging)])
    report.section(f"{count(bodies)} cylinders spread over {far.shape[1] * CELL / 1000:g} km, all threads")
    columns = ["pose", "lowered by 40 questions", "manifold, no tile read yet", "as many within 20 m", "manifold again"]
    report.table([*columns, "again / within 20 m", f"again, in {LITTLE >> 20} MB"], rows)
    report.note(
        f"""Tiles that have been read stay in memory, unless they are given a budget: in {LITTLE >> 20} MB not all fit
        that these cylinders touch, and every question reads them again."""
    )


def _on_cuda(report: Report, near: Heightfield, far: TiledHeightfield, bodies: int) -> None:
    rows, spread_rows = [], []
    for tilt, angle in TILTS.items():
        some = lowered_poses(near, angle, min(bodies, 10_000))
        cylinders = _on_device(some, bodies)
        times = _compared(partial(_synchronised, cylinders, near), partial(_synchronised, cylinders, far), bodies)
        rows.append([tilt, *times])
        poses = _lowered(_spread(np.resize(some, (min(bodies, 100_000), 4, 4)), far), far, "cuda")
        wide = _on_device(poses, bodies)
        first, _ = _timed(partial(_synchronised, wide, TiledHeightfield.load(far.heights.folder)))
        again = measure({"far": partial(_synchronised, wide, far)}, rounds=9)["far"]
        part = Cylinder(RADIUS, HEIGHT).at(poses[:2000])
        _check_equal(manifold(part, far, device="cpu"), manifold(part, far, device="cuda"))
        spread_rows.append([tilt, seconds(first), again, seconds(again.median / bodies)])
    report.section(f"A full manifold of one of {count(bodies)} cylinders at the same place, CUDA")
    report.table(["pose", *_grids(near, far), "tiles / memory", "same cost"], rows)
    report.note("The manifolds are equal.")
    report.section(f"{count(bodies)} cylinders spread over {far.shape[1] * CELL / 1000:g} km, CUDA")
    report.table(["pose", "manifold, no tile read yet", "again", "per cylinder"], spread_rows)
    report.note("Of 2,000 cylinders the CPU has the same manifolds.")


def _compared(near: Callable[[], Contacts], far: Callable[[], Contacts], bodies: int) -> list[str]:
    """Cells of a table: the time of a body on both grounds, their ratio, and whether that is the same cost."""
    timings = measure({"near": near, "far": far}, rounds=25, at_most=30.0)
    _check_equal(timings["near"].result, timings["far"].result)
    times = [timings[name].median for name in ("near", "far")]
    same = "yes" if times[1] <= SAME * times[0] else "**no**"
    return [*(seconds(each / bodies) for each in times), ratio(times[1], times[0]), same]


def _check_equal(one: Contacts, other: Contacts) -> None:
    for name in ("query", "gap", "normal", "point_a"):  # keys have the number of an edge, which is another in each grid
        columns = [getattr(each, name) for each in (one, other)]
        a, b = (each.numpy() if isinstance(each, wp.array) else each for each in columns)
        assert np.array_equal(a, b), f"{name} differs"


def _spread(poses: np.ndarray, far: TiledHeightfield) -> np.ndarray:
    """The same cylinders anywhere on the ground, not yet lowered."""
    poses = poses.copy()
    poses[:, :2, 3] = np.random.default_rng(5).uniform(2.0, far.bounds[1, :2] - 2.0, (len(poses), 2))
    return poses


def _lowered(poses: np.ndarray, field: TiledHeightfield, device: str) -> np.ndarray:
    """Cylinders that must be lifted by DEPTH to be free."""
    poses = poses.copy()
    low, high = np.full(len(poses), field.bounds[0, 2] - 1.0), np.full(len(poses), field.bounds[1, 2] + 3.0)
    for _ in range(40):
        poses[:, 2, 3] = 0.5 * (low + high)
        hit = touches(Cylinder(RADIUS, HEIGHT).at(poses), field, device=device).hit
        low, high = np.where(hit, poses[:, 2, 3], low), np.where(hit, high, poses[:, 2, 3])
    poses[:, 2, 3] = high - DEPTH
    return poses


def _grids(near: Heightfield, far: TiledHeightfield) -> list[str]:
    return [f"{near.shape[0]} x {near.shape[1]} in memory", f"{far.shape[0]:,} x {far.shape[1]:,} in tiles"]


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def _on_device(poses: np.ndarray, bodies: int) -> Cylinder:
    return Cylinder(RADIUS, HEIGHT).at(wp.array(np.resize(poses, (bodies, 4, 4)), dtype=wp.mat44d, device="cuda"))


def _synchronised(bodies: Cylinder, ground: Heightfield | TiledHeightfield) -> Contacts:
    found = manifold(bodies, ground, device="cuda")
    wp.synchronize_device("cuda")
    return found


def _factors(vertices: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices whose product are the heights: sin(a + b) = sin a cos b + cos a sin b for each wave."""
    x = CELL * np.arange(vertices)
    left, right = [], []
    for wave, phase, turn in rough_waves():
        along, across = wave * np.sin(turn) * x + phase, wave * np.cos(turn) * x
        left += [0.15 / wave * np.sin(along), 0.15 / wave * np.cos(along)]
        right += [np.cos(across), np.sin(across)]
    return np.stack(left, axis=1), np.stack(right)

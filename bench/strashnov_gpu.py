"""Cylinders on terrain on a CUDA device: do the manifolds agree with the CPU's, and how many fit in 10 ms?

The ground and poses of `strashnov_peers`: flat, rough and kerbed, upright, lying and tilted, five millimetres deep.
Poses lie on the device before the clock starts and contacts stay there; a run ends with a synchronisation. Skipped on a
machine without one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, measure, seconds
from bench.strashnov_peers import (
    FRAMES,
    HEIGHT,
    RADIUS,
    TILTS,
    Ground,
    fitting,
    ground_of,
    lowered_poses,
    told_frames,
)
from tangere.query.contacts import Contacts
from tangere.query.manifold import manifold
from tangere.shape.analytic import Cylinder

FEATURES = ["F-S-22", "F-S-23"]

Placed = dict[tuple[Ground, str], np.ndarray]

#: Contacts of CPU and GPU may differ by this much [m] (F-S-23).
AGREE = 1e-5
#: Different poses; a million cylinders are these over and over.
POSES = 10_000


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    poses = 500 if quick else POSES
    grounds = [ground_of(name, 50 if quick else 100) for name in ("flat", "rough", "kerbs")]
    placed = {(ground, tilt): lowered_poses(ground.field, TILTS[tilt], poses) for ground in grounds for tilt in TILTS}
    _agreement(report, placed)
    if not quick:
        for ground in (ground_of("rough", 50), ground_of("rough", 1000)):
            placed |= {(ground, tilt): lowered_poses(ground.field, TILTS[tilt], poses // 4) for tilt in TILTS}
    _many(report, placed, 10_000 if quick else 1_000_000)
    _budget(report, {ground: placed[ground, "tilted"] for ground in grounds}, quick)


def _agreement(report: Report, placed: Placed) -> None:
    report.section("Agreement with the CPU")
    rows = []
    for (ground, tilt), poses in placed.items():
        n = len(poses)
        bodies = Cylinder(RADIUS, HEIGHT).at(poses)
        cpu, gpu = (_sorted(manifold(bodies, ground.field, device=device)) for device in ("cpu", "cuda"))
        same = len(cpu.key) == len(gpu.key) and bool((cpu.key == gpu.key).all() and (cpu.query == gpu.query).all())
        assert same, f"{ground.name}, {tilt}: CPU and GPU have other contacts"
        off = [float(np.abs(getattr(cpu, name) - getattr(gpu, name)).max()) for name in ("point_a", "normal", "gap")]
        assert max(off) <= AGREE, f"{ground.name}, {tilt}: contacts of CPU and GPU differ by {max(off)}"
        rows.append([ground.name, tilt, count(n), count(len(cpu)), *(f"{value:.1e}" for value in off)])
    report.table(["ground", "pose", "cylinders", "contacts, the same keys", "points [m]", "normals", "gaps [m]"], rows)


def _sorted(found: Contacts) -> Contacts:
    order = np.lexsort([found.key, found.query])
    return Contacts(**{name: np.asarray(getattr(found, name))[order] for name in Contacts.__dataclass_fields__})


def _many(report: Report, placed: Placed, n: int) -> None:
    report.section(f"{count(n)} cylinders in one call")
    rows = []
    for (ground, tilt), poses in placed.items():
        bodies = _on_device(poses, n)
        timing = measure({"gpu": partial(_synchronised, bodies, ground)}, rounds=9)["gpu"]
        found: Contacts = timing.result
        size = sum(getattr(found, name).capacity for name in Contacts.__dataclass_fields__)
        contacts = count(len(found.gap))
        rows.append([ground.name, tilt, timing, seconds(timing.median / n), contacts, f"{size / 1e6:,.0f} MB"])
    report.table(["ground", "pose", "time", "per cylinder", "contacts", "their size"], rows)
    report.note(
        f"""Grids of 50, 100 and 1000 cells a side have cells of 40, 20 and 2 cm; the cylinders are
        {2 * RADIUS:g} m wide and {HEIGHT:g} m long. Writing the contacts once is the least that must be done: at the
        4.8 TB/s of an H200 a hundred megabytes take 0.02 ms."""
    )


def _budget(report: Report, placed: dict[Ground, np.ndarray], quick: bool) -> None:
    report.section("Cylinders in 10 ms")
    rows = []
    for k, (ground, poses) in enumerate(placed.items()):

        def frame_of(n: int, poses=poses, ground=ground) -> Callable[[], Any]:
            return partial(_synchronised, _on_device(poses, n), ground)

        fits, taken = fitting(
            frame_of, 10_000 if quick else 1_000_000, 20 if quick else FRAMES if k == 0 else FRAMES // 10
        )
        rows.append([ground.name, count(fits), *told_frames(taken)])
    columns = ["ground", "cylinders", "frames", "median frame", "99 % of frames within", "frames over 10 ms"]
    report.table(columns, rows)
    report.note(
        """Tilted cylinders with the default margin, contacts made anew in each frame; as many as are done within 10 ms
        in 99 % of the frames."""
    )


def _on_device(poses: np.ndarray, n: int) -> Cylinder:
    return Cylinder(RADIUS, HEIGHT).at(wp.array(np.resize(poses, (n, 4, 4)), dtype=wp.mat44d, device="cuda"))


def _synchronised(bodies: Cylinder, ground: Ground) -> Any:
    found = manifold(bodies, ground.field, device="cuda")
    wp.synchronize_device("cuda")
    return found

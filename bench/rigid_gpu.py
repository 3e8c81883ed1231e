"""Rigid parts on a CUDA device: batches of motions of parts of 5,000 triangles, and one question about 70,000.

The parts are a torus and a bumpy sphere that fly at each other and spin; nearly all of them touch. A batch goes in as
NumPy motions and comes back as NumPy times, transfers included. Skipped on a machine without CUDA.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, measure, ratio
from bench.redon_table_3_2 import criteria
from bench.tori import TASKS
from tangere.bvh.obb.overlap import _boxes_apart
from tangere.motion import Twist
from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts
from tangere.runtime import launch
from tangere.shape import generate

FEATURES = ["F-R-36"]


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    part, other = generate.torus(5000), generate.bumpy_sphere(5120)
    rng = np.random.default_rng(0)
    report.section("Agreement with the CPU")
    flights = part.moving(thrown(rng, 200 if quick else 5000))
    cpu, gpu = (rigid_first_contacts(flights, other, details=False, device=device) for device in ("cpu", "cuda"))
    both = np.isfinite(cpu.time) & np.isfinite(gpu.time)
    difference = float(np.abs(cpu.time[both] - gpu.time[both]).max())
    assert (np.isfinite(cpu.time) == np.isfinite(gpu.time)).all(), "CPU and GPU disagree about who touches"
    assert difference <= 1e-5, "CPU and GPU disagree about when"  # both keep the tolerance, by other boxes
    rows = [[count(len(cpu)), int(both.sum()), int((cpu.status != gpu.status).sum()), f"{difference:.1e}"]]
    report.table(["motions", "touch", "other status", "largest difference of time"], rows)

    report.section("Batches")
    rows = []
    for n in (1000,) if quick else (1000, 10_000, 100_000, 400_000):
        flights = part.moving(thrown(rng, n))
        ask = partial(rigid_first_contacts, flights, other, details=False, device="cuda")
        timing = measure({"cuda": ask}, rounds=3)["cuda"]
        rows.append([count(n), timing, count(n / timing.median)])
    report.table(["motions", "time", "queries/s"], rows)

    report.section("One question, two tori of 69,696 triangles")
    torus = generate.bumpy_torus() if not quick else generate.bumpy_torus(48, 24)
    rows = []
    for task in TASKS:
        moving = torus.moving(task.motion)
        ways = {
            "cuda": partial(rigid_first_contact, moving, torus, device="cuda"),
            "one CPU core": partial(rigid_first_contact, moving, torus, device="cpu", threads=1),
        }
        timings = measure(ways, rounds=9)
        times = [timings[way].result.time for way in ways]
        assert times[0] == times[1] or abs(times[0] - times[1]) <= 1e-9
        cuda, core = timings["cuda"], timings["one CPU core"]
        rows.append([task.name, f"{times[0]:.9g}", cuda, core, ratio(core.median, cuda.median)])
    report.table(["motion", "first contact", "CUDA", "one CPU core", "core / CUDA"], rows)
    report.note(
        """One question is a chain of some forty rounds that wait for each other, each tens of microseconds of double
        precision latency: a CPU core is faster. A GPU is for batches."""
    )
    _box_tests(report, rng, 100_000 if quick else 1_000_000)


def _box_tests(report: Report, rng: np.random.Generator, pairs: int) -> None:
    """The discrete 15-axis test of many pairs of boxes: one after the other, and thousands at a time."""
    report.section("Discrete box tests")
    frames = [np.linalg.qr(rng.normal(size=(pairs, 3, 3)))[0] for _ in range(2)]
    columns = [
        (rng.normal(size=(pairs, 3)), wp.vec3d),
        (rng.uniform(0.05, 1.0, (pairs, 3)), wp.vec3d),
        (frames[0], wp.mat33d),
        (rng.normal(size=(pairs, 3)), wp.vec3d),
        (rng.uniform(0.05, 1.0, (pairs, 3)), wp.vec3d),
        (frames[1], wp.mat33d),
    ]
    answers, ways = {}, {}
    for name in ("cpu", "cuda"):
        device = wp.get_device(name)
        boxes = [wp.array(data, dtype=dtype, device=device) for data, dtype in columns]
        answers[name] = wp.empty(pairs, dtype=wp.bool, device=device)

        def test(boxes=boxes, apart=answers[name], device=device) -> None:
            launch(_boxes_apart, pairs, [*boxes, 1, 2.0**-46], [apart], device=device, threads=1)
            wp.synchronize_device(device)

        ways[name] = test
    timings = measure(ways, rounds=9)
    rows = [[name, timing, f"{count(pairs / timing.median)}/s"] for name, timing in timings.items()]
    report.table(["one core, or all of a GPU", f"{count(pairs)} pairs", "pairs"], rows)
    same = bool((answers["cpu"].numpy() == answers["cuda"].numpy()).all())
    slow, fast = timings["cpu"].median, timings["cuda"].median
    criteria(
        report,
        [
            ("parallel box tests at least twice as fast as one by one", ratio(slow, fast), slow >= 2.0 * fast),
            ("the same answers", "yes" if same else "no", same),
        ],
    )


def thrown(rng: np.random.Generator, n: int) -> Twist:
    """Motions from 4 m away towards the origin and a little past it, turning by some radians."""
    poses = np.tile(np.eye(4), (n, 1, 1))
    away = rng.normal(size=(n, 3))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    poses[:, :3, 3] = 4.0 * away
    return Twist(poses, 0.5 * rng.normal(size=(n, 3)) - 4.0 * away, 3.0 * rng.normal(size=(n, 3)))

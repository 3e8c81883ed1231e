"""Deforming bodies: what do more threads, and a GPU, make of each stage?

Experiment E5, table 4.7 of the document: seconds of each stage of detection on one thread and on more, frames recorded
from tangere's own simulation. The document used six cores of an i5-9400F; where there are as many its hypothesis, that
six cores at least halve the time, is checked.
"""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from bench import machine
from bench.harness import Report
from bench.leonard_table_4_1 import DISTANCE, FRAMES, RUNS, SCENES, frames, mean_times
from tangere.partition.pipeline import Settings
from tangere.query.proximity import Detector, detect
from tangere.soft import scenes as simulated

FEATURES = ["F-L-6", "F-L-10", "F-L-13"]

#: Printed totals of detection and of the whole step [ms]: serial, six cores.
PRINTED = {
    "tori 3200": (0.51, 0.25, 15.32, 9.79),
    "tori 12800": (2.39, 0.99, 19.61, 13.04),
    "tori 51200": (15.13, 5.18, 42.08, 27.85),
    "knot 3960": (9.90, 4.87, 56.99, 27.84),
}


def run(report: Report, quick: bool = False) -> None:
    names = ["tori 3200"] if quick else list(SCENES)
    counts = sorted({1, 2, 6, 16} & set(range(1, machine.cores() + 1)) | {machine.cores()})
    most, cuda = counts[-1], wp.is_cuda_available()
    totals, rates = [], []
    for name in names:
        scenes = frames(name, 2 if quick else FRAMES, quick)
        within = name.startswith("knot")
        settings = Settings(within=within, between=not within)
        runs = 1 if quick else RUNS if len(scenes[0][0].faces) < 20_000 else 2
        times = {n: mean_times(scenes, settings, runs, threads=n) for n in counts}
        if cuda:
            times["H200" if "H200" in wp.get_device("cuda").name else "CUDA"] = mean_times(
                scenes, settings, runs, device="cuda"
            )
        report.section(f"{name}: milliseconds a step, by stage, means of {runs} runs over {len(scenes)} frames")
        report.table(
            ["stage", *(f"{n} thread{'s' if n != 1 else ''}" if isinstance(n, int) else n for n in times), "speed-up"],
            [
                [stage, *(f"{1e3 * t.get(stage, 0.0):.3f}" for t in times.values())]
                + [f"{times[1][stage] / max(times[most][stage], 1e-9):.2f}"]
                for stage in times[1]
            ],
        )
        total = {n: 1e3 * sum(t.values()) for n, t in times.items()}
        kept = {n: _detector_ms(scenes, within, runs, n) for n in times}
        serial, six, _, _ = PRINTED[name]
        speed = total[1] / total[most]
        totals.append(
            [name, *(f"{ms:.2f}" for ms in total.values()), f"{speed:.2f}", f"{serial} / {six} ({serial / six:.2f})"]
        )
        totals.append(
            [f"{name}, kept trees", *(f"{ms:.2f}" for ms in kept.values()), f"{kept[1] / kept[most]:.2f}", "-"]
        )
        _same_contacts(scenes, settings, counts)
        rates.append(_rate(name, quick))
    report.section("Detection in all [ms]")
    columns = [f"{n} threads" if isinstance(n, int) else n for n in times]
    report.table(["scene", *columns, f"speed-up, {most} threads", "printed: 1 / 6 cores"], totals)
    report.note(
        """"Kept trees" is `Detector`, which an own simulation would use; the other rows are the seven stages of the
        document, timed one by one, which on CUDA waits for the device after each. Contacts are equal for all numbers
        of threads, bit by bit; entries of stage 4, and pairs, are counted and filled, without a critical section."""
    )
    if most >= 6:
        halved = all(float(row[-2]) >= 2.0 for row in totals[::2])
        report.note(f"Six cores at least halve the time of detection in every scene: {'yes' if halved else 'no'}.")
    report.section("Whole steps of the simulation")
    report.table(["scene", "steps", "ms a step (mean)", "steps per second", "20 Hz or more", "printed ms"], rates)


def _detector_ms(scenes: list, within: bool, runs: int, where: int | str) -> float:
    """Mean time of a detector that is kept from frame to frame [ms]."""
    on = {"device": "cpu", "threads": where} if isinstance(where, int) else {"device": "cuda"}
    detector = Detector(scenes[0], distance=DISTANCE, within=within, between=not within, **on)
    points = [np.concatenate([mesh.vertices for mesh in scene]) for scene in scenes]
    places = [wp.array(p, dtype=wp.vec3d, device=detector.device) for p in points]
    took = []
    for turn in range(runs + 1):
        for place in places:
            wp.synchronize_device(detector.device)
            begin = time.perf_counter()
            detector.find(place)
            if turn:
                took.append(time.perf_counter() - begin)
    return 1e3 * float(np.mean(took))


def _same_contacts(scenes: list, settings: Settings, counts: list[int]) -> None:
    for scene in scenes[:: max(1, len(scenes) // 3)]:
        found = [detect(scene, distance=DISTANCE, settings=settings, device="cpu", threads=n).contacts for n in counts]
        assert all(np.array_equal(found[0].key, other.key) for other in found), "threads change the contacts"


def _rate(name: str, quick: bool) -> list:
    """How fast the whole simulation runs around its middle."""
    triangles, steps = SCENES[name], 10 if quick else 40
    simulation = simulated.knot() if triangles is None else simulated.tori(triangles)
    simulation.run(5 if quick else 80)
    begin = time.perf_counter()
    simulation.run(steps)
    took = (time.perf_counter() - begin) / steps
    _, _, serial, six = PRINTED[name]
    verdict = "yes" if took <= 0.05 else "no"
    return [name, steps, f"{1e3 * took:.2f}", f"{1.0 / took:.1f}", verdict, f"{serial} / {six}"]

"""Deforming bodies on a GPU: how long is a detection, from a thousand triangles to a million?

Positions lie on the device and contacts stay there; `Detector` replays one captured graph a step and reads back its
counters. Contacts are compared with those of the CPU. The seven stages of the document's pipeline are timed as well,
with and without regions of interest (experiment E7). Skipped on a machine without a CUDA device.
"""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from bench.plots import Plot
from tangere.partition.pipeline import Settings
from tangere.query.proximity import Detector, detect, proximity
from tangere.shape import Mesh, generate

FEATURES = ["F-L-11", "F-L-61", "F-L-62", "F-L-63"]

#: Grids of each of the two tori.
GRIDS = [(20, 12), (40, 20), (80, 40), (160, 80), (320, 160), (504, 248), (708, 354)]


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    rows, sizes, curve = [], [], {"CUDA": [], "CPU, one thread": []}
    for grid in GRIDS[:3] if quick else GRIDS:
        mesh = tori(grid)
        distance = 0.2 * _edge(mesh)
        gpu = Detector(mesh, distance=distance, device="cuda")
        cpu = Detector(mesh, distance=distance, device="cpu", threads=1)
        where = wp.array(mesh.vertices, dtype=wp.vec3d, device="cuda")
        found, expected = gpu.find(where).contacts, cpu.contacts(mesh.vertices)
        assert np.array_equal(found.key, expected.key), "CPU and CUDA disagree"
        took = _times(gpu, where, 20 if quick else 300)
        serial = measure({"": lambda d=cpu, m=mesh: d.find(m.vertices)}, rounds=3)[""].median
        p50, p99 = np.percentile(took, [50, 99])
        rows.append(
            [count(len(mesh.faces)), len(found), seconds(p50), seconds(p99), seconds(max(took)), seconds(serial)]
            + [ratio(serial, float(p50))]
        )
        sizes.append(f"{len(mesh.faces)}")
        curve["CUDA"].append(float(p50))
        curve["CPU, one thread"].append(serial)
    report.section("A detection, self-collision included")
    report.table(["triangles", "contacts", "p50", "p99", "longest", "CPU, one thread", "ratio"], rows)
    report.plot("scaling", Plot("Time for one detection", "triangles", "seconds", sizes, curve))
    report.note("All contacts are equal to those of the CPU, feature by feature.")
    _stages(report, quick)


def _stages(report: Report, quick: bool) -> None:
    mesh = tori(GRIDS[2] if quick else GRIDS[3])
    half = len(mesh.faces) // 2
    bodies = [Mesh(mesh.vertices, part) for part in (mesh.faces[:half], mesh.faces[half:])]
    distance = 0.2 * _edge(mesh)
    columns = {}
    for name, device, regions in (("CPU", "cpu", True), ("CUDA", "cuda", True), ("CUDA, all triangles", "cuda", False)):
        settings = Settings(regions=regions, within=False)
        runs = [detect(bodies, distance=distance, settings=settings, device=device, threads=1) for _ in range(12)]
        columns[name] = {s: float(np.mean([r.seconds[s] for r in runs[2:]])) for s in runs[-1].seconds}
        assert np.array_equal(runs[-1].contacts.key, proximity(*bodies, distance=distance, device="cpu").key)
    report.section(f"The stages for {count(2 * half)} triangles, two bodies")
    stages = [[stage, *(seconds(columns[c].get(stage, 0.0)) for c in columns)] for stage in columns["CPU"]]
    stages.append(["total", *(seconds(sum(columns[c].values())) for c in columns)])
    report.table(["stage", *columns], stages)
    sort = ratio(columns["CPU"]["sort"], columns["CUDA"]["sort"])
    report.note(
        f"Every stage ends with a synchronisation here. The sort alone is {sort} faster than on one CPU thread."
    )


def tori(grid: tuple[int, int]) -> Mesh:
    """Two bumpy tori that just touch, as one mesh."""
    torus = generate.torus(grid=grid, bumps=0.1)
    x, y, z = torus.vertices.T
    return Mesh.join([torus, torus.replace(vertices=np.stack([x + 1.30, -z, y], axis=1))])


def _edge(mesh: Mesh) -> float:
    return float(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1).mean())


def _times(detector: Detector, positions: wp.array, rounds: int) -> list[float]:
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        detector.find(positions)  # ends with the read-back of the counters
        took.append(time.perf_counter() - begin)
    return took

"""Deforming bodies on a GPU: how long is a detection, from a thousand triangles to a million?

Positions lie on the device and contacts stay there; `Detector` replays one captured graph a step and reads back its
counters. The bodies move and bend from step to step, so that contacts come and go; they are compared with those of the
CPU. Pairs of triangles by a tree in Morton order (LBVH) are timed beside those of a grid. The seven stages of the
document's pipeline are timed as well, with and without regions of interest (experiment E7). Skipped on a machine
without a CUDA device.
"""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from bench.plots import Plot
from tangere.broad_phase.triangles import Surfaces, triangle_pairs
from tangere.bvh.lbvh import LinearTree
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.proximity import Detector, proximity
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES = ["F-L-11", "F-L-61", "F-L-62", "F-L-63", "F-L-75"]

#: Different positions of a moving scene; steps go through them again and again.
FRAMES = 50

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
        steps = moving(mesh)
        where = [wp.array(step, dtype=wp.vec3d, device="cuda") for step in steps]
        contacts = []
        for k in range(0, FRAMES, FRAMES // 5):
            found, expected = gpu.find(where[k]).contacts, cpu.contacts(steps[k])
            assert np.array_equal(found.key, expected.key), "CPU and CUDA disagree"
            contacts.append(len(found))
        took = _times(gpu, where, 20 if quick else 300)
        serial = measure({"": lambda d=cpu, m=steps: [d.find(x) for x in m[:: FRAMES // 5]]}, rounds=3)[""].median / 5
        p50, p99 = np.percentile(took, [50, 99])
        rows.append(
            [count(len(mesh.faces)), f"{min(contacts)} to {max(contacts)}"]
            + [seconds(p50), seconds(p99), seconds(max(took)), seconds(serial), ratio(serial, float(p50))]
        )
        sizes.append(f"{len(mesh.faces)}")
        curve["CUDA"].append(float(p50))
        curve["CPU, one thread"].append(serial)
    report.section("A detection, self-collision included")
    report.table(["triangles", "contacts", "p50", "p99", "longest", "CPU, one thread", "ratio"], rows)
    report.plot("scaling", Plot("Time for one detection", "triangles", "seconds", sizes, curve))
    report.note(
        f"""Two tori that turn, sink into each other and bend, {FRAMES} different steps. In every tenth of them all
        contacts are equal to those of the CPU, feature by feature."""
    )
    _trees(report, quick)
    _stages(report, quick)


def _trees(report: Report, quick: bool) -> None:
    """Making a tree, and finding pairs by it: the boxes are fitted each time."""
    rows = []
    for grid in GRIDS[:3] if quick else GRIDS[:6]:
        mesh = tori(grid)
        distance = 0.2 * _edge(mesh)
        gpu, cpu = (Surfaces.of([mesh], device) for device in ("cuda", "cpu"))
        ways = {
            "making": lambda s=gpu, m=mesh: LinearTree.build(s.layout.faces, s.positions, m.bounds),
            "tree": lambda s=gpu, d=distance: triangle_pairs(s, d, broad_phase="tree"),
            "grid": lambda s=gpu, d=distance: triangle_pairs(s, d, broad_phase="grid"),
        }
        timings = measure({name: lambda w=way: _finished(w()) for name, way in ways.items()}, rounds=20)
        expected = _sorted(triangle_pairs(cpu, distance, broad_phase="sweep"))
        for name in ("tree", "grid"):
            assert np.array_equal(_sorted(timings[name].result), expected), "broad phases disagree"
        rows.append([count(len(mesh.faces)), count(len(expected)), *timings.values()])
    report.section("Pairs of triangles by a tree in Morton order (LBVH) and by a grid")
    report.table(["triangles", "pairs", "making the tree", "pairs by the tree", "pairs by the grid"], rows)
    report.note("The pairs of both are those that sweep and prune finds on the CPU.")


def _finished(result):
    wp.synchronize()
    return result


def _sorted(pairs: wp.array) -> np.ndarray:
    rows = pairs.numpy().reshape(-1, 2).astype(np.int64)
    return np.sort((rows[:, 0] << 32) | rows[:, 1])


def _stages(report: Report, quick: bool) -> None:
    mesh = tori(GRIDS[2] if quick else GRIDS[3])
    half = len(mesh.faces) // 2
    bodies = [Mesh(mesh.vertices, part) for part in (mesh.faces[:half], mesh.faces[half:])]
    distance = 0.2 * _edge(mesh)
    columns = {}
    ways = {
        "CPU": ("cpu", {"fused": False}),
        "CUDA": ("cuda", {"fused": False}),
        "CUDA, all triangles": ("cuda", {"fused": False, "regions": False}),
        "CPU, fused": ("cpu", {}),
        "CUDA, fused": ("cuda", {}),
    }
    for name, (device, switches) in ways.items():
        settings = Settings(within=False, **switches)
        runs = [detect(bodies, distance=distance, settings=settings, device=device, threads=1) for _ in range(12)]
        columns[name] = {s: float(np.mean([r.seconds[s] for r in runs[2:]])) for s in runs[-1].seconds}
        assert np.array_equal(runs[-1].contacts.key, proximity(*bodies, distance=distance, device="cpu").key)
    report.section(f"The stages for {count(2 * half)} triangles, two bodies")
    stages = [[stage, *(seconds(columns[c].get(stage, 0.0)) for c in columns)] for stage in columns["CPU"]]
    stages.append(["total", *(seconds(sum(columns[c].values())) for c in columns)])
    report.table(["stage", *columns], stages)
    sort = ratio(columns["CPU"]["sort"], columns["CUDA"]["sort"])
    report.note(
        f"""Every stage ends with a synchronisation here. The sort alone is {sort} faster than on one CPU thread. Fused:
        pairs of triangles are tested as they are found, and not listed."""
    )


def tori(grid: tuple[int, int]) -> Mesh:
    """Two bumpy tori that just touch, as one mesh."""
    torus = generate.torus(grid=grid, bumps=0.1)
    x, y, z = torus.vertices.T
    return Mesh.join([torus, torus.replace(vertices=np.stack([x + 1.30, -z, y], axis=1))])


def moving(mesh: Mesh) -> list[np.ndarray]:
    """Steps of a scene: the second torus sinks into the first and comes out again, turning, while both bend."""
    first, second = np.split(mesh.vertices, 2)
    middle, steps = second.mean(axis=0), []
    for phase in np.linspace(0.0, 2.0 * np.pi, FRAMES, endpoint=False):
        turn, depth = 0.2 * np.sin(2.0 * phase), 0.04 * (1.0 - np.cos(phase))
        x, y, z = (second - middle).T
        turned = np.stack([x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn), z], axis=1)
        both = np.concatenate([first, turned + middle - [depth, 0.0, 0.0]])
        both[:, 2] += 0.03 * np.sin(3.0 * both[:, 0] + phase)
        steps.append(both)
    return steps


def _edge(mesh: Mesh) -> float:
    return float(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1).mean())


def _times(detector: Detector, steps: list[wp.array], rounds: int) -> list[float]:
    took = []
    for k in range(rounds):
        begin = time.perf_counter()
        detector.find(steps[k % len(steps)])  # ends with the read-back of the counters
        took.append(time.perf_counter() - begin)
    return took

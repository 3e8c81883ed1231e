"""Queries and meshes on a CUDA device: do they agree with the CPU, and how fast are they?

Data lies on the device before the clock starts and answers stay there; a run ends with a synchronisation. Skipped on a
machine without one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

import tangere as tg
from bench.data import cloth_ball
from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from oracles.families.feature_queries import FAMILIES, random_half_colliding
from tangere.query.contacts import Kind
from tangere.query.first_contact import edge_edge, vertex_face
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES = ["F-T-22"]

ASK = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}
#: A query is eight points of 24 bytes; its answer two times and a status.
BYTES = 8 * 24 + 17


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    _agreement(report, 2_000 if quick else 50_000)
    _throughput(report, [10_000] if quick else [1_000_000, 4_000_000, 16_000_000])
    _meshes(report, quick)


def _agreement(report: Report, n: int) -> None:
    report.section("Agreement with the CPU")
    rows = []
    for kind, ask in ASK.items():
        other_hits, other_status, difference, total = 0, 0, 0.0, 0
        for family in FAMILIES.values():
            points = family(kind, n, np.random.default_rng(3)).points
            x0, x1 = np.ascontiguousarray(points[:, :4]), np.ascontiguousarray(points[:, 4:])
            cpu, gpu = (ask(x0, x1, details=False, device=device) for device in ("cpu", "cuda"))
            both = np.isfinite(cpu.time) & np.isfinite(gpu.time)
            total += n
            other_hits += int((np.isfinite(cpu.time) != np.isfinite(gpu.time)).sum())
            other_status += int((cpu.status != gpu.status).sum())
            difference = max(difference, float(np.abs(cpu.time[both] - gpu.time[both]).max(initial=0.0)))
        rows.append([kind, count(total), other_hits, other_status, f"{difference:.1e}"])
        assert other_hits == 0, "CPU and GPU disagree about who touches"
        assert difference <= 1e-9, "CPU and GPU disagree about when"
    report.table(["queries", "how many", "other hit", "other status", "largest difference of time"], rows)
    report.note("All families of tests/oracles/families, random and degenerate, in equal parts.")


def _throughput(report: Report, sizes: list[int]) -> None:
    report.section("Queries per second")
    rows = []
    for kind, ask in ASK.items():
        for n in sizes:
            part = random_half_colliding(kind, min(n, 1_000_000), np.random.default_rng(1)).points
            points = np.tile(part, (n // len(part), 1, 1))
            x0, x1 = (wp.array(points[:, k : k + 4], dtype=wp.vec3d, device="cuda") for k in (0, 4))
            contenders = {
                "time and status": partial(_synchronised, ask, x0, x1, details=False),
                "with points and normals": partial(_synchronised, ask, x0, x1, details=True),
            }
            for name, timing in measure(contenders, rounds=9).items():
                traffic = n * BYTES / timing.median / 1e12
                rate = f"{count(n / timing.median)}/s"
                rows.append([kind, count(n), name, timing, rate, f"{traffic:.2f} TB/s"])
    report.table(["queries", "batch", "answer", "time", "rate", "memory traffic"], rows)
    report.note(
        f"""The floor is reading and writing {BYTES} bytes a query once: an H200 moves 4.8 TB/s, so 23 G queries/s. The
        kernels are bound by float64 arithmetic and by divergence (root finding is needed by half the queries)."""
    )


def _meshes(report: Report, quick: bool) -> None:
    report.section("Whole meshes over one step")
    rows = []
    scenes = [("two tori of 20,480 triangles, two bodies", *_tori((128, 80)))]
    if not quick:
        scenes.append(("two tori, 1,002,528 triangles in all, one body", *_joined(*_tori((531, 472)))))
        try:
            mesh, end = cloth_ball()
            scenes.append(("cloth over a ball, 92,230 triangles, itself", mesh.moving(tg.Linear(_upload(end))), None))
        except SkippedError as reason:
            report.note(f"Without the cloth: {reason}.")
    for name, a, b in scenes:
        questions: dict[str, Callable[[], Any]] = {
            "first contact, start trusted": lambda a=a, b=b: tg.first_contact(a, b, start="trusted", device="cuda"),
            "first contact, start checked": lambda a=a, b=b: tg.first_contact(a, b, device="cuda"),
            "all contacts": lambda a=a, b=b: tg.all_contacts(a, b, start="trusted", device="cuda"),
        }
        gpu = measure(questions, rounds=5)
        cpu = measure({"cpu": lambda a=a, b=b: tg.first_contact(a, b, start="trusted", device="cpu")}, rounds=3)["cpu"]
        found = gpu["first contact, start trusted"].result
        rows.append([name, "first contact, start trusted, CPU", cpu, f"{cpu.result.time:.12g}"])
        for question, timing in gpu.items():
            answer = f"{found.time:.12g}" if "trusted" in question else timing.result
            rows.append([name, question, f"{timing} ({ratio(cpu.median, timing.median)} CPU)", answer])
        assert abs(found.time - cpu.result.time) <= 1e-9, "CPU and GPU disagree"
    report.table(["scene", "question", "time", "answer"], rows)
    report.note(f"The CPU of this table runs on all its threads. Smallest launch seen: {seconds(_launch_cost())}.")


def _tori(grid: tuple[int, int]) -> tuple[Any, Any]:
    torus = generate.torus(grid=grid, bumps=0.1)
    x, y, z = torus.vertices.T
    other = torus.replace(vertices=np.stack([x + 1.05, -z, y], axis=1))
    return torus, other.moving(tg.Linear(_upload(other.vertices + [0.4, 0.0, 0.0])))


def _joined(a: Mesh, b: Any) -> tuple[Any, None]:
    mesh = Mesh.join([a, b.shape])
    return mesh.moving(tg.Linear(_upload(np.concatenate([a.vertices, b.motion.end.numpy()])))), None


def _upload(points: np.ndarray) -> wp.array:
    return wp.array(points, dtype=wp.vec3d, device="cuda")


def _synchronised(ask: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    answer = ask(*arguments, **options)
    wp.synchronize_device("cuda")
    return answer


def _launch_cost() -> float:
    flag = wp.zeros(1, dtype=wp.int32, device="cuda")
    return measure({"zero": lambda: (flag.zero_(), wp.synchronize_device("cuda"))}, rounds=50)["zero"].median

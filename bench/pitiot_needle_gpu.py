"""Needles in tissue on a CUDA device: whole steps of 10 ms with 20 sweeps, rigid and bending, up to 10^5 tetrahedra.

Asked for: at most 10 ms for a step at 10^5 tetrahedra. The tip, particles and channel are on the CPU, the tissue and
the rod on the device. Steps after a puncture are made in ten parts and counted apart. Skipped without a GPU.
"""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count
from tangere.needle import Bevel, Needle, Simulation, Tissue
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    report.section("A step of 10 ms, 20 sweeps [ms]")
    rows = []
    for cells in ((10, 10, 8), (26, 26, 25))[: 1 if quick else None]:
        rows += [_row(cells, rigid, 40 if quick else 150) for rigid in (True, False)]
    report.table(["tetrahedra", "needle", "p50", "p99", "steps in parts, p50", "depth [mm]", "force [N]"], rows)


def _row(cells: tuple[int, int, int], rigid: bool, steps: int) -> list[str]:
    block = solid_block(cells, size=(0.1, 0.1, 0.09), mirrored=True)
    block = TetMesh(block.vertices - [0.0, 0.0, 0.045], block.tets)
    held = block.vertices[:, 2] < -0.09 + 1e-9
    body = Body(block, youngs_modulus=1e4, poisson=0.45, damping=20.0, fixed=held)
    needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5), rigid=rigid)
    start = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1]}
    simulation = Simulation(body, needle, Tissue(patch=0.012), dt=0.01, sweeps=20, device="cuda", **start)
    whole, parted = [], []
    for _ in range(steps):
        short = simulation.soft._pipeline.dt < simulation.soft.dt
        began = time.perf_counter()
        simulation.step(0.02)
        wp.synchronize_device("cuda")
        taken = time.perf_counter() - began
        # What is prepared anew when the length of steps changes is in the parted ones.
        short |= simulation.soft._pipeline.dt < simulation.soft.dt
        (parted if short else whole).append(taken)
    p50, p99 = (f"{1e3 * q:.2f}" for q in np.quantile(whole[5:], [0.5, 0.99]))
    parts = f"{1e3 * np.median(parted):.1f}" if parted else "none"
    force = float(np.linalg.norm(simulation.force))
    kind = "rigid" if rigid else "bends"
    return [count(len(block.tets)), kind, p50, p99, parts, f"{1e3 * simulation.depth:.1f}", f"{force:.2f}"]

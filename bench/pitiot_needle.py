"""Needles: the tip a thousand times a second, cells that follow it, and a step of the tissue.

Experiments E14 and E15, on Pitiot 2015, section 9.1, which has no figures of its own: at least 1,000 moves of the tip a
second and 30 full steps were asked for. A unit cube of 6 x 6 x 6 hexahedra, lock length and distance 0.02. Times are of
one thread. That no contact is missed (E15) is shown by the tests, against brute force that is written apart.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, count
from tangere.cells.generate import hex_grid
from tangere.needle import Bevel, KinematicSimulation, Needle, Simulation, Tissue, Vessel
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body

FEATURES = ["F-P-68"]

_RADIUS, _DISTANCE = 1e-4, 0.02


def run(report: Report, quick: bool = False) -> None:
    _tip(report, 60 if quick else 300)
    _cells(report, 40 if quick else 250)
    _tissue(report, 12 if quick else 150)


def _anatomy(many: int) -> tuple[list[Vessel], list[Mesh]]:
    rng, vessels, sheets = np.random.default_rng(1), [], []
    for _ in range(200 * many):
        points, way = [rng.uniform(0.15, 0.85, 3)], rng.normal(size=3)
        for _ in range(12):
            way = way / np.linalg.norm(way) + 0.3 * rng.normal(size=3)
            points.append(np.clip(points[-1] + 0.025 * way / np.linalg.norm(way), 0.02, 0.98))
        vessels.append(Vessel(np.array(points), radius=_RADIUS))
    line = np.linspace(-0.15, 0.15, 11)
    u, v = np.meshgrid(line, line, indexing="ij")
    flat = np.stack([u, v, 0.02 * np.sin(20 * u) * np.cos(20 * v)], axis=-1).reshape(-1, 3)
    corner = (np.arange(10)[:, None] * 11 + np.arange(10)).ravel()
    faces = [np.stack([corner, corner + 11, corner + 12], axis=1), np.stack([corner, corner + 12, corner + 1], axis=1)]
    for _ in range(10 * many):
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        sheets.append(Mesh(rng.uniform(0.3, 0.7, 3) + flat @ axes, np.concatenate(faces)))
    return vessels, sheets


def _needle(level: int, many: int, radius: float, curvature: float = 0.0, **options) -> KinematicSimulation:
    vessels, sheets = _anatomy(many) if many else ([], [])
    map = hex_grid(6, 6, 6, size=1 / 6, device="cpu")
    map.reserve(400_000, 60_000, 20_000)
    given = {"entry": [0.5003, 0.5007, 0.4951], "direction": [1.0, 0.7, 0.3], "lock_length": _DISTANCE, **options}
    needle = Needle(length=40.0, radius=_RADIUS, tip=Bevel(curvature=curvature))
    return KinematicSimulation(
        map, needle, vessels=vessels, membranes=sheets, distance=_DISTANCE, radius=radius, level=level, **given
    )


def _quantiles(seconds: list[float], unit: float) -> list[str]:
    return [f"{unit * q:.3g}" for q in np.quantile(seconds, [0.5, 0.99])]


def _tip(report: Report, moves: int) -> None:
    report.section("E14: one move of the tip: march, deposit, search [us]")
    rows = []
    for many in (1, 10):
        for level in (2, 4, 6):
            simulation = _needle(level, many, 0.03 if level < 6 else 0.01)
            search, taken = simulation._search, []
            for k in range(moves + 20):
                ahead = np.array([0.003 * np.sin(0.1 * k), 0.003 * np.cos(0.1 * k), 1e-5 * k])
                target = [0.5003, 0.5007, 0.4951] + ahead
                began = time.thread_time()
                search.advance(target)
                taken.append(time.thread_time() - began)
            p50, p99 = _quantiles(taken[20:], 1e6)
            entities = len(simulation.anatomy.owner)
            rows.append([count(entities), str(level), str(simulation.visited), p50, p99])
    report.table(["entities", "level at the tip", "cells looked at", "p50", "p99"], rows)
    report.section("E14: the same against locked segments of the needle itself (level 0, nothing else) [us]")
    rows = []
    for locked in (50, 200, 1000):
        start = {"entry": [0.5, 0.5, 0.1], "direction": [1.0, 0.0, 0.1], "lock_length": 0.004}
        simulation = _needle(0, 0, 0.03, curvature=5.0, **start)
        while len(simulation.particles) < locked and not simulation.stopped:
            simulation.advance(0.004)
        taken = []
        for _ in range(moves):
            began = time.thread_time()
            simulation._search.advance(simulation._search.tip[0].copy())
            taken.append(time.thread_time() - began)
        rows.append([str(len(simulation.particles) - 1), *_quantiles(taken, 1e6)])
    report.table(["locked segments", "p50", "p99"], rows)


def _cells(report: Report, moves: int) -> None:
    report.section("E14: cells that follow the tip, 4,400 entities, 1.3 mm a move [ms]")
    rows = []
    for mode, deadline, level in (("soft", 1 / 30, 4), ("hard", 0.002, 4), ("soft", 1 / 30, 5), ("hard", 0.002, 5)):
        simulation = _needle(level, 1, 0.02, entry=[0.1, 0.4, 0.4], mode=mode, deadline=deadline)
        taken, leaves, least = [], [], level
        for _ in range(moves):
            simulation.advance(0.0013)
            began = time.thread_time()
            simulation.refine()
            taken.append(time.thread_time() - began)
            leaves.append(simulation.report.leaves)
            least = min(least, simulation.tip.level)
        late = np.mean(np.array(taken[10:]) > deadline)
        rows.append(
            [f"{mode}, {1e3 * deadline:.0f} ms", str(level), *_quantiles(taken[10:], 1e3), f"{100 * late:.1f} %"]
            + [str(simulation.report.postponed), f"{min(leaves)} to {max(leaves)}", str(least)]
        )
    head = ["mode, deadline", "level", "p50", "p99", "late", "postponed", "leaves", "least level at the tip"]
    report.table(head, rows)


def _tissue(report: Report, steps: int) -> None:
    report.section("A step of the tissue, with all that the needle adds, 20 sweeps of 10 ms [ms]")
    rows = []
    for cells in ((6, 6, 5), (10, 10, 8), (16, 16, 13)):
        for rigid in (True, False):
            block = solid_block(cells, size=(0.1, 0.1, 0.09), mirrored=True)
            block = TetMesh(block.vertices - [0.0, 0.0, 0.045], block.tets)
            body = Body(
                block, youngs_modulus=1e4, poisson=0.45, damping=20.0, fixed=block.vertices[:, 2] < -0.09 + 1e-9
            )
            needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5), rigid=rigid)
            start = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1]}
            simulation = Simulation(body, needle, Tissue(), dt=0.01, sweeps=20, device="cpu", threads=1, **start)
            taken = []
            for _ in range(steps):
                began = time.thread_time()
                simulation.step(0.02)
                taken.append(time.thread_time() - began)
            rows.append([count(len(block.tets)), "rigid" if rigid else "bends", *_quantiles(taken[5:], 1e3)])
    report.table(["tetrahedra", "needle", "p50", "p99"], rows)
    report.note("p99 is of the few steps after the puncture, which are made in ten parts.")

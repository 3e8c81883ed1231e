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
from tangere.cells.maps import split
from tangere.needle import Bevel, KinematicSimulation, Needle, Simulation, Tissue, Vessel
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body

FEATURES = ["F-P-68"]

_RADIUS, _DISTANCE = 1e-4, 0.02


def run(report: Report, quick: bool = False) -> None:
    _tip(report, 60 if quick else 300)
    _itself(report, 150 if quick else 400)
    _one_split(report, 20 if quick else 200)
    _cells(report, 40 if quick else 400)
    _tissue(report, 12 if quick else 150)
    _curve(report, quick)


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


def _itself(report: Report, moves: int) -> None:
    report.section("E15: a needle that goes round and meets itself, 4,400 entities; a move of its tip, and with cells")
    start = {"entry": [0.5, 0.7, 0.5], "direction": [0.0, 0.0, 1.0]}
    simulation = _needle(4, 1, 0.02, curvature=5.0, **start)
    rows, moved, refined, met = [], [], [], 0
    for k in range(moves):
        began = time.thread_time()
        simulation.advance(0.01)
        moved.append(time.thread_time() - began)
        simulation.refine()
        refined.append(time.thread_time() - began)
        met += int((simulation.contacts.body_b == 0).sum())
        if (k + 1) % (moves // 4) == 0 and not simulation.stopped:
            last = slice(-(moves // 4), None)
            rows.append([str(len(simulation.particles) - 1), str(simulation.tip.level), str(simulation.report.leaves)])
            rows[-1] += [str(met), *_quantiles(moved[last], 1e6), *_quantiles(refined[last], 1e3)]
            met = 0
    head = [
        "locked segments",
        "level at the tip",
        "leaves",
        "contacts with itself",
        "move p50 [us]",
        "p99",
        "all p50 [ms]",
    ]
    report.table([*head, "p99"], rows)


def _one_split(report: Report, splits: int) -> None:
    report.section("One hexahedron split in one call [ms]")
    rows = []
    for lists in (False, True):
        simulation = _needle(1, 1, 0.02)
        map, registration, taken = simulation.map, simulation.anatomy.registration, []
        for cell in [cell for cell in map.leaves if map.levels[cell] == 0][: splits + 5]:
            began = time.thread_time()
            registration.split([cell]) if lists else split(map, [cell])
            taken.append(time.thread_time() - began)
        rows.append(["and everybody in it registered" if lists else "the map alone", *_quantiles(taken[5:], 1e3)])
    report.table(["", "p50", "p99"], rows)


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


def _block(cells: tuple[int, int, int], *, rigid: bool, **options) -> Simulation:
    block = solid_block(cells, size=(0.1, 0.1, 0.09), mirrored=True)
    block = TetMesh(block.vertices - [0.0, 0.0, 0.045], block.tets)
    held = block.vertices[:, 2] < -0.09 + 1e-9
    body = Body(block, youngs_modulus=1e4, poisson=0.45, damping=20.0, fixed=held)
    needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5), rigid=rigid)
    start = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1]}
    return Simulation(body, needle, Tissue(), device="cpu", threads=1, **start, **options)


def _tissue(report: Report, steps: int) -> None:
    report.section("A step of the tissue, with all that the needle adds [ms]")
    rows = []
    sizes = [((6, 6, 5), 0.001, 8), ((6, 6, 5), 0.01, 20), ((10, 10, 8), 0.01, 20), ((16, 16, 13), 0.01, 20)]
    for cells, dt, sweeps in sizes:
        for rigid in (True, False):
            simulation, whole, parted = _block(cells, rigid=rigid, dt=dt, sweeps=sweeps), [], []
            for _ in range(steps * (2 if dt < 0.01 else 1)):
                settling = simulation._settling > 0.0 and dt > 0.001
                began = time.thread_time()
                simulation.step(0.02)
                (parted if settling else whole).append(time.thread_time() - began)
            tets = count(len(simulation.soft.bodies[0].shape.tets))
            parts = _quantiles(parted, 1e3)[0] + f" ({1e3 * max(parted):.3g})" if parted else "none"
            rows.append([tets, f"{1e3 * dt:g} ms, {sweeps}", "rigid" if rigid else "bends"])
            rows[-1] += [*_quantiles(whole[5:], 1e3), parts]
    report.table(["tetrahedra", "dt, sweeps", "needle", "p50", "p99", "steps in seven parts (longest)"], rows)
    report.note("For 30 ms after a puncture steps of 10 ms are made in seven parts; these are counted apart.")


def _curve(report: Report, quick: bool) -> None:
    """What is asked for by the tissue, and what a hand feels."""
    report.section("Force against depth: asked and measured, and the path of a bevel tip for other steps and sweeps")
    simulation, log = _block((6, 6, 5), rigid=True, dt=0.005, sweeps=16), []
    for _ in range(120 if quick else 450):
        simulation.step(0.02)
        log.append((simulation.depth, float(simulation.force[2])))
    depth, force = np.array(log).T
    late = len(log) * 2 // 3
    slope, constant = np.polyfit(depth[late:], force[late:], 1)
    rows = [["peak at puncture [N]", "1", f"{force.max():.3f}"], ["friction [N/m]", "10", f"{slope:.3f}"]]
    rows.append(["cutting [N]", "0.4", f"{constant:.3f}"])
    for _ in range(0 if quick else 200):
        simulation.step(0.0)
    rows.append(["held for a second [N]", f"{force[-1]:.3f}", f"{float(simulation.force[2]):.3f}"])
    for dt, sweeps in () if quick else ((0.01, 20), (0.002, 20), (0.001, 20), (0.01, 160)):
        simulation = _block((10, 10, 8), rigid=False, dt=dt, sweeps=sweeps)
        while simulation.travel < 0.03 - 1e-9:
            simulation.step(0.02)
        aside = 1e3 * np.hypot(*(simulation.tip_rest - simulation.particles.rest[0])[:2])
        name = f"aside after 30 mm, dt {1e3 * dt:g} ms, {sweeps} sweeps [mm]"
        rows.append([name, "", f"{aside:.3f}"])
    report.table(["", "asked", "measured"], rows)

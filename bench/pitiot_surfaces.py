"""Ten thousand steps on a sphere, a knotted tube and a blob: does anybody leave the surface or the right triangle?

Experiment E10, on Pitiot 2015, section 8.3.2. Points wander with headings that are carried along and turned at
random; after every so many steps it is checked, with nothing but the positions of the triangles' corners, that each is
in the plane and within the sides of the triangle it says it is on. Crowds do so with agents that avoid each other.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, count, seconds
from tangere.cells import Density
from tangere.cells.generate import map_of_mesh
from tangere.cells.maps import CellMap, split
from tangere.cells.tracking import glide, on_surface
from tangere.crowd.scenarios import knot, planet, potatoid
from tangere.shape import generate

FEATURES = ["F-P-45"]

SURFACES = {
    "sphere": lambda: generate.icosphere(3),
    "knot": lambda: generate.trefoil_knot(2400),
    "blob": lambda: generate.bumpy_sphere(1280),
}


def run(report: Report, quick: bool = False) -> None:
    points, steps = (20, 50) if quick else (300, 10_000)
    rows = []
    for name, make in SURFACES.items():
        map = map_of_mesh(make(), device="cpu")
        rng = np.random.default_rng(0)
        split(map, rng.choice(map.leaves, 40, replace=False))
        begin = time.perf_counter()
        wrong, drift = wander(map, points, steps, rng)
        taken = (time.perf_counter() - begin) / steps
        rows.append([name, count(len(map.leaves)), f"{wrong}, {_verdict(wrong)}", f"{drift:.1e}", seconds(taken)])
    report.section(f"{points} points, {count(steps)} steps")
    report.table(["surface", "cells", "outside their triangle", "farthest off, of the extent", "step"], rows)
    rows = []
    # Cells stay at least as wide as agents see: those of a large planet may become finer.
    large = {"radius": 90.0, "adaptive": Density(2, 1)}
    scenes = {"planet": (planet, {}), "large planet": (planet, large), "knot": (knot, {}), "potatoid": (potatoid, {})}
    for name, (scene, options) in scenes.items():
        agents, done = (30, 5) if quick else (400, 300)
        simulation = scene(agents, 4 if quick else 20, device="cpu", **options)
        begin = time.perf_counter()
        for _ in range(done):
            simulation.step()
        taken = (time.perf_counter() - begin) / done
        c = simulation.points.arrays
        wrong, drift = off(simulation.map, c.position.numpy(), c.dart.numpy())
        told = [f"{wrong}, {_verdict(wrong)}", f"{drift:.1e}", seconds(taken)]
        rows.append([f"{name}, {simulation.operations[0]} merges, {simulation.operations[1]} splits", *told])
    report.section("Crowds with slugs; the cells of the large planet adapt")
    report.table(["scene", "outside their triangle", "farthest off, of the extent", "step"], rows)


def wander(map: CellMap, points: int, steps: int, rng: np.random.Generator) -> tuple[int, float]:
    """How many points were ever found outside their triangle, and how far off at most, as a part of the extent."""
    darts = rng.choice(map.darts, points)
    place = on_surface(map, darts, rng.dirichlet([1, 1, 1], points))
    size = np.ptp(map.positions, axis=0).max()
    heading = rng.normal(0, 0.01 * size, (points, 3))
    wrong, drift = 0, 0.0
    for step in range(steps):
        found = glide(map, place, heading, darts, heading)
        place, darts = found.position, found.dart
        heading = found.heading + rng.normal(0, 0.001 * size, (points, 3))
        if step % 10 == 0 or step == steps - 1:
            bad, away = off(map, place, darts)
            wrong, drift = wrong + bad, max(drift, away)
    return wrong, drift


def off(map: CellMap, points: np.ndarray, darts: np.ndarray) -> tuple[int, float]:
    """Points outside the triangles of their darts, and the largest distance from their planes (of the extent)."""
    c = map.numpy("centre")[map.numpy("cell")[darts]]
    s, e = (map.positions[map.numpy("origin")[d]] for d in (darts, map.numpy("phi1")[darts]))
    n = np.cross(s - c, e - c)
    area = (n * n).sum(axis=1)
    parts = [(np.cross(b - a, points - a) * n).sum(axis=1) / area for a, b in ((c, s), (s, e), (e, c))]
    away = np.abs(((points - c) * n).sum(axis=1)) / np.sqrt(area) / np.ptp(map.positions, axis=0).max()
    return int(((np.min(parts, axis=0) < -1e-9) | (away > 1e-9)).sum()), float(away.max())


def _verdict(wrong: int) -> str:
    return "pass" if wrong == 0 else "fail"

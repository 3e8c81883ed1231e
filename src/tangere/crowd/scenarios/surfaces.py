"""Crowds on closed surfaces: a planet with buildings, a knotted tube, blobs; walkers and slugs that give way.

The scenes: Pitiot 2015, section 8.3.2 (2D surfaces).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.generate import map_of_mesh
from tangere.cells.maps import CellMap
from tangere.cells.tracking import on_surface
from tangere.crowd.bodies import deformable
from tangere.crowd.navigation.planning import Planner
from tangere.crowd.navigation.routes import first_headings
from tangere.crowd.simulation import Simulation
from tangere.crowd.validation import whole_counts
from tangere.runtime import InputError
from tangere.shape.generate import bumpy_sphere, icosphere, trefoil_knot
from tangere.shape.mesh import Mesh


def planet(
    points: int = 1000, slugs: int = 50, *, radius: float = 30.0, buildings: int = 12, **more: Any
) -> Simulation:
    """A sphere with buildings: obstacle cells, each with its ring."""
    return _on_mesh(icosphere(triangles=1280, radius=radius), points, slugs, buildings, **more)


def knot(points: int = 1000, slugs: int = 50, **more: Any) -> Simulation:
    """The tube of a (2, 3) torus knot."""
    return _on_mesh(trefoil_knot(2400), points, slugs, 0, extent=150.0, **more)


def potatoid(points: int = 1000, slugs: int = 50, *, seed: int = 0, **more: Any) -> Simulation:
    """A sphere with low bumps."""
    return _on_mesh(bumpy_sphere(1280, seed=seed), points, slugs, 0, extent=60.0, seed=seed, **more)


def _on_mesh(
    mesh: Mesh,
    points: int,
    slugs: int,
    buildings: int,
    *,
    extent: float | None = None,
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    points, slugs, buildings = whole_counts(points=points, slugs=slugs, buildings=buildings)
    vertices = np.asarray(mesh.vertices, float)
    if extent is not None:
        vertices = vertices * (extent / np.ptp(vertices, axis=0).max())
    map = map_of_mesh(Mesh(vertices, mesh.faces), device=device)
    random = np.random.default_rng(seed)
    leaves = map.leaves
    if buildings:
        chosen = random.choice(leaves, min(buildings, len(leaves)), replace=False)
        map.block("cell", np.union1d(chosen, map.rings.rows(chosen)))
    simulation = Simulation(map, seed=seed, **options)
    free = leaves[map.arrays.obstacle.numpy()[leaves] == 0]
    blocked = np.setdiff1d(leaves, free)
    away_from_buildings = np.setdiff1d(free, map.rings.rows(blocked)) if len(blocked) else free
    if len(away_from_buildings) == 0:
        raise InputError(f"buildings: {buildings} leave no cell free")
    planner = Planner(map, clearance=0.3)
    homes = _reachable(planner, away_from_buildings, random)
    starts = homes[random.integers(0, len(homes), points)]
    goals = homes[random.integers(0, len(homes), min(16, len(homes)))][random.integers(0, min(16, len(homes)), points)]
    place = _random_points(map, starts, random)
    ways = planner.routes(place, map.numpy("centre")[goals])
    simulation.add_points(place, goals=ways, speed=random.uniform(1.0, 1.8, points))
    if slugs:
        turn = 2 * np.pi * np.arange(16) / 16
        body = deformable(np.stack([1.2 * np.cos(turn), 0.5 * np.sin(turn)], axis=1))
        if slugs > len(homes):
            raise InputError(f"{slugs} slugs do not fit into {len(homes)} cells, one in each")
        cells = random.choice(homes, slugs, replace=False)
        place = map.numpy("centre")[cells]
        ends = goals[random.integers(0, len(goals), slugs)]
        ways = planner.routes(place, map.numpy("centre")[ends])
        heading = first_headings(ways, place)
        simulation.add_bodies(body, place, headings=heading, goals=ways, speed=1.0)
    return simulation


def _reachable(planner: Planner, cells: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Those of the cells from which one of them, the first to reach most, can be reached."""
    for target in random.permutation(cells)[:8]:
        before = planner.next_cells(np.array([target]))[0]
        found = cells[(before[cells] >= 0) | (cells == target)]
        if 2 * len(found) > len(cells):
            return found
    return cells


def _random_points(map: CellMap, cells: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A random point of each cell, not too near its sides."""
    darts = map.numpy("anchor")[cells]
    phi1 = map.numpy("phi1")
    for _ in range(2):
        darts = np.where(random.random(len(darts)) < 0.5, phi1[darts], darts)
    weights = random.dirichlet([2.0, 1.0, 1.0], len(darts)) * [0.9, 0.9, 0.9] + [0.1, 0.0, 0.0]
    return on_surface(map, darts, weights)

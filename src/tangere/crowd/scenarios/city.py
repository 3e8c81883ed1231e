"""A city of blocks: buildings are obstacle cells, agents go from one point of interest to the next through the streets.

The scene: Pitiot 2015, section 8.3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.generate import quad_grid
from tangere.cells.maps import CellMap
from tangere.crowd.bodies import box
from tangere.crowd.navigation.planning import Planner
from tangere.crowd.navigation.routes import first_headings
from tangere.crowd.simulation import Simulation
from tangere.crowd.validation import whole_counts
from tangere.runtime import InputError, whole


def city(
    points: int = 1000,
    bodies: int = 0,
    *,
    blocks: int = 5,
    street: float = 8.0,
    building: float = 16.0,
    cell: float = 4.0,
    visits: int = 3,
    district: int | None = None,
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    """`blocks` x `blocks` buildings between streets; everybody visits random points of interest, round and round.

    Args:
        street, building: widths, multiples of `cell` [m].
        visits: points of interest on each round, which ends at home.
        district: everybody is and goes within so many blocks from one corner of the city; None: anywhere.
    """
    points, bodies = whole_counts(points=points, bodies=bodies)
    blocks, visits = whole(blocks, "blocks", 1), whole(visits, "visits", 1)
    if district is not None and whole(district, "district", 1) > blocks:
        raise InputError(f"district must be between 1 and {blocks} blocks, not {district}")
    map = city_map(blocks, street=street, building=building, cell=cell, device=device)
    simulation = Simulation(map, seed=seed, **options)
    random = np.random.default_rng(seed)
    crossings = (street + building) * np.arange((district or blocks) + 1) + street / 2
    interests = np.stack(np.meshgrid(crossings, crossings), axis=-1).reshape(-1, 2)
    walkable = map.leaves[map.arrays.obstacle.numpy()[map.leaves] == 0]
    centres = map.numpy("centre")[walkable, :2]
    centres = centres[(centres < crossings[-1] + street / 2).all(axis=1)]
    slots = centres[:, None] + 0.2 * cell * np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])[None]
    place = slots.reshape(-1, 2)
    if points > len(place):
        raise InputError(f"{points} agents do not fit into {len(centres)} street cells, four in each")
    place = place[np.sort(random.choice(len(place), points, replace=False))]
    ways = visiting_routes(map, place, interests, visits, random, clearance=0.6)
    simulation.add_points(place, goals=ways, speed=random.uniform(1.0, 1.8, points), repeat=True)
    if bodies:
        if bodies > len(interests):
            raise InputError(f"{bodies} cars do not fit on {len(interests)} crossings, one on each")
        start = interests[random.choice(len(interests), bodies, replace=False)]
        ways = visiting_routes(map, start, interests, visits, random, clearance=2.0)
        heading = first_headings([way[:, :2] for way in ways], start)
        body, speed = box(3.0, 1.6), random.uniform(3.0, 8.0, bodies)
        simulation.add_bodies(body, start, headings=heading, goals=ways, speed=speed, repeat=True)
    return simulation


def city_map(
    blocks: int,
    *,
    street: float = 8.0,
    building: float = 16.0,
    cell: float = 4.0,
    device: str | wp.Device | None = None,
) -> CellMap:
    """Streets and buildings; buildings are obstacles."""
    wide, solid = round(street / cell), round(building / cell)
    if abs(wide * cell - street) > 1e-9 or abs(solid * cell - building) > 1e-9 or wide < 1 or solid < 1:
        raise InputError(f"street {street} and building {building} must be multiples of cell {cell}")
    count = blocks * (wide + solid) + wide
    map = quad_grid(count, count, size=cell, device=device)
    inside = np.arange(count) % (wide + solid) >= wide
    centre = map.numpy("centre")[: map.cell_capacity]
    column, row = (np.clip((centre[:, k] / cell).astype(int), 0, count - 1) for k in (0, 1))
    map.block("cell", np.flatnonzero(inside[column] & inside[row]))
    return map


def visiting_routes(
    map: CellMap,
    starts: np.ndarray,
    interests: np.ndarray,
    visits: int,
    random: np.random.Generator,
    *,
    clearance: float,
) -> list[np.ndarray]:
    """Waypoints of each agent from its start over `visits` points of interest, none twice running, and back."""
    planner = Planner(map, clearance=clearance)
    here, last = np.asarray(starts, float), np.full(len(starts), -1)
    ways: list[list[np.ndarray]] = [[] for _ in starts]
    known: dict[tuple[int, int], np.ndarray] = {}
    for _ in range(visits):
        goal = random.integers(0, len(interests) - 1, len(starts))
        goal += goal >= np.where(last < 0, len(interests), last)
        todo = [k for k in range(len(starts)) if (int(last[k]), int(goal[k])) not in known or last[k] < 0]
        found = planner.routes(here[todo], interests[goal[todo]])
        for k, way in zip(todo, found, strict=True):
            ways[k].append(way)
            if last[k] >= 0:
                known[int(last[k]), int(goal[k])] = way
        for k in set(range(len(starts))) - set(todo):
            ways[k].append(known[int(last[k]), int(goal[k])])
        here, last = interests[goal], goal
    home = planner.routes(here, starts)
    return [np.concatenate([*way, last]) for way, last in zip(ways, home, strict=True)]

"""Scenarios in the plane: two groups in a corridor, a circle of antipodes, a crowd crossed by snakes, an open field.

Common values (scenes: Pitiot 2015, section 8.3.2): radius 0.3 m, speeds 1.0 to 1.8 m/s, steps of 1/30 s, range 1.5 m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.generate import quad_grid
from tangere.crowd.bodies import box, chain
from tangere.crowd.simulation import Simulation
from tangere.crowd.validation import whole_counts
from tangere.runtime import InputError, positive, whole

#: Radii of the rings of boxes, as parts of the size, and at least from box to box [m].
_RINGS, _BETWEEN = (0.2, 0.3), 0.1
#: From snake to snake [m].
_LANE = 10.0


def corridor(
    points: int = 1000,
    bodies: int = 50,
    *,
    length: float = 200.0,
    width: float = 40.0,
    cell: float = 8.0,
    shape: tuple[float, float] = (4.0, 2.0),
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    """Two groups swap sides of a rectangle, again and again, while two columns of boxes cross it to and fro.

    Each group starts in a tenth of the length. A column fills the space up to the middle with loops, up one lane and
    down the next, each two and a half boxes wide: so that 200 boxes of 4 x 2 m have room in 200 x 40 m.

    Args:
        length, width: in whole cells: 100 m of cells of 8 m are 96 m.
        shape: length and width of a box [m].
    """
    points, bodies = whole_counts(points=points, bodies=bodies)
    body = box(*shape)
    columns, rows = _cells(length, cell), _cells(width, cell)
    length, width = columns * cell, rows * cell
    simulation = Simulation(quad_grid(columns, rows, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    half = points // 2
    margin, deep = 1.0, 0.1 * length
    left = spread_points(half, (margin, margin), (deep, width - margin), 0.8, random)
    right = spread_points(points - half, (length - deep, margin), (length - margin, width - margin), 0.8, random)
    here = np.concatenate([left, right])
    there = here * [-1, 1] + [length, 0]
    ways = [np.stack([b, a]) for a, b in zip(here, there, strict=True)]
    simulation.add_points(here, goals=ways, speed=random.uniform(1.0, 1.8, points), repeat=True)
    if bodies:
        place, heading, ways, speed = _boxes_in_loops(bodies, length, width, shape, random)
        simulation.add_bodies(body, place, headings=heading, goals=ways, speed=speed, repeat=True)
    return simulation


def _boxes_in_loops(
    count: int, length: float, width: float, shape: tuple[float, float], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
    """Boxes of a corridor, as many in each loop: their places, headings, waypoints and speeds (one to a loop)."""
    lane, low, high = 2.5 * shape[1], shape[0], width - shape[0]
    column = 0.4 * length
    each, rise = int(column / (2.0 * lane)), max(high - low, 0.0)
    most = 2 * each * int(2.0 * rise / (1.2 * shape[0]))
    if count > most:
        raise InputError(f"{count} boxes do not fit into {length:g} x {width:g} m, where {most} go in loops")
    first = 0.1 * length + 2.0 * lane * np.arange(each) + 0.5 * lane
    # The other column turns the other way; loops take turns in getting a box, from the middle outwards.
    x = np.stack([first[::-1], length - first[::-1]], axis=1).reshape(-1)
    other = x + np.where(np.arange(len(x)) % 2, -lane, lane)
    speeds, phases = random.uniform(3.0, 5.0, len(x)), random.uniform(0.0, 1.0, len(x))
    loop = np.arange(count) % len(x)
    along = 2.0 * ((phases[loop] + np.arange(count) // len(x) / np.bincount(loop)[loop]) % 1.0)
    down = along >= 1.0  # in the second lane
    place = np.stack([np.where(down, other[loop], x[loop]), low + rise * np.where(down, 2.0 - along, along)], axis=1)
    heading = np.stack([np.zeros(count), np.where(down, -1.0, 1.0)], axis=1)
    corners = [np.array([[a, low], [a, high], [b, high], [b, low]]) for a, b in zip(x, other, strict=True)]
    ways = [np.roll(corners[n], -3 if back else -1, axis=0) for n, back in zip(loop, down, strict=True)]
    return place, heading, ways, speeds[loop]


def circle(
    points: int = 1000,
    bodies: int = 50,
    *,
    size: float = 200.0,
    cell: float = 8.0,
    shape: tuple[float, float] = (4.0, 2.0),
    speed: float = 3.0,
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    """Points on a large circle go to their antipodes; two rings of boxes turn in opposite directions.

    Args:
        size: of the square around it all [m], in whole cells.
        shape: length and width of a box [m]. speed: of the boxes [m/s].
    """
    points, bodies = whole_counts(points=points, bodies=bodies)
    body, count = box(*shape), _cells(size, cell)
    size = count * cell
    # As many in one ring as in the other, unless they would touch there.
    room = [int(2 * np.pi * part * size / (shape[0] + _BETWEEN)) for part in _RINGS]
    inner = min(bodies // 2, room[0])
    if bodies - inner > room[1]:
        raise InputError(f"{bodies} boxes do not fit on two rings of {size:g} m, where {sum(room)} do")
    simulation = Simulation(quad_grid(count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    middle, radius = np.array([size / 2, size / 2]), 0.45 * size
    # Several rows where a circle of one row would be too tight.
    rows = max(1, int(np.ceil(points * 0.7 / (2 * np.pi * radius))))
    angle = 2 * np.pi * np.arange(points) / max(points, 1)
    away = radius - 0.8 * (np.arange(points) % rows)
    out = np.stack([np.cos(angle), np.sin(angle)], axis=1) * away[:, None]
    simulation.add_points(middle + out, goals=middle - out, speed=random.uniform(1.0, 1.8, points))
    for ring, (far, number) in enumerate(((_RINGS[0] * size, inner), (_RINGS[1] * size, bodies - inner))):
        if number:
            turn = -1.0 if ring else 1.0
            start = 2 * np.pi * np.arange(number) / number
            steps = turn * 2 * np.pi * np.arange(1, 33) / 32
            ways = [middle + far * np.stack([np.cos(a + steps), np.sin(a + steps)], axis=1) for a in start]
            place = middle + far * np.stack([np.cos(start), np.sin(start)], axis=1)
            heading = turn * np.stack([-np.sin(start), np.cos(start)], axis=1)
            simulation.add_bodies(body, place, headings=heading, goals=ways, speed=speed, repeat=True)
    return simulation


def snake(
    points: int = 2000,
    snakes: int = 2,
    *,
    speed: float = 6.0,
    size: float = 100.0,
    cell: float = 5.0,
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    """A dense crowd in the middle that stays, crossed to and fro by chains of twelve boxes."""
    points, snakes = whole_counts(points=points, snakes=snakes)
    count = _cells(size, cell)
    size = count * cell
    if snakes * _LANE > size:
        raise InputError(f"{snakes} snakes do not fit into {size:g} m, in lanes of {_LANE:g} m")
    simulation = Simulation(quad_grid(count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    middle = np.array([size / 2, size / 2])
    # A disc of 12 m for 2000 points, filled evenly along a spiral.
    k = np.arange(points) + 0.5
    far, angle = 12.0 * np.sqrt(k / 2000.0), np.pi * (3.0 - np.sqrt(5.0)) * k
    place = middle + far[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    simulation.add_points(place, goals=place, speed=random.uniform(1.0, 1.8, points), radius=0.15)
    if snakes:
        lanes = middle[1] + (np.arange(snakes) - (snakes - 1) / 2) * _LANE
        start = np.stack([np.full(snakes, 0.3 * size), lanes], axis=1)
        ways = [np.array([[0.92 * size, y], [0.08 * size, y]]) for y in lanes]
        heading = np.tile([1.0, 0.0], (snakes, 1))
        simulation.add_bodies(chain(12, 2.0, 1.2), start, headings=heading, goals=ways, speed=speed, repeat=True)
    return simulation


def field(
    points: int = 10_000,
    *,
    per_area: float = 0.5,
    cell: float = 3.0,
    seed: int = 0,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Simulation:
    """An open square with random starts and goals, so many points per square metre."""
    points = whole(points, "points")
    count = max(1, int(np.ceil(np.sqrt(points / positive(per_area, "per_area")) / positive(cell, "cell"))))
    simulation = Simulation(quad_grid(count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    size = count * cell
    place = spread_points(points, (0.5, 0.5), (size - 0.5, size - 0.5), 0.7, random)
    goals = random.uniform(0.5, size - 0.5, (points, 2))
    simulation.add_points(place, goals=goals, speed=random.uniform(1.0, 1.8, points))
    return simulation


def _cells(length: float, cell: float) -> int:
    """How many cells are so long; at least one."""
    return max(1, round(positive(length, "length") / positive(cell, "cell")))


def spread_points(
    count: int, low: tuple[float, float], high: tuple[float, float], apart: float, random: np.random.Generator
) -> np.ndarray:
    """(count, 2) random places of a rectangle, no two nearer than `apart` [m]: a shaken grid."""
    if count == 0:
        return np.empty((0, 2))
    size = np.subtract(high, low)
    columns = max(1, int(np.ceil(np.sqrt(count * size[0] / size[1]))))
    rows = -(-count // columns)
    step = size / [columns, rows]
    if min(step) < apart:
        place = f"{size[0]:.4g} x {size[1]:.4g} m, {apart} m apart, where some {int(size.prod() / apart**2)} would"
        raise InputError(f"{count} agents do not fit into {place}")
    chosen = np.sort(random.choice(columns * rows, count, replace=False))
    grid = np.stack([chosen % columns, chosen // columns], axis=1) + 0.5
    return np.array(low) + grid * step + random.uniform(-0.5, 0.5, (count, 2)) * (step - apart)

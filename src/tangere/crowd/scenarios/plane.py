"""Scenarios in the plane: two groups in a corridor, a circle of antipodes, a crowd crossed by snakes, an open field.

Common values (spec 3.3): radius 0.3 m, speeds 1.0 to 1.8 m/s, steps of 1/30 s, range 1.5 m.
Spec: specs/pitiot-multiresolution-interactions 3.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.cells.maps.generate import quad_grid
from tangere.crowd.bodies import box, chain
from tangere.crowd.simulation import Simulation
from tangere.runtime import InputError

__all__ = ["circle", "corridor", "field", "snake", "spread_out"]


def corridor(
    points: int = 1000,
    bodies: int = 50,
    *,
    length: float = 200.0,
    width: float = 40.0,
    cell: float = 8.0,
    depth: float | None = None,
    shape: tuple[float, float] | None = None,
    seed: int = 0,
    device: str | None = None,
    **options: Any,
) -> Simulation:
    """Two groups swap sides of a rectangle, again and again, while boxes cross it to and fro.

    Args:
        depth: of the room of each group at its end [m]; None: a quarter of the length. Boxes cross between the two.
        shape: length and width of a box [m]; None: 4 x 2, or 2 x 1 where there are too many for that.
    """
    map = quad_grid(round(length / cell), round(width / cell), size=cell, device=device)
    simulation = Simulation(map, seed=seed, **options)
    random = np.random.default_rng(seed)
    half = points // 2
    margin, deep = 1.0, 0.25 * length if depth is None else depth
    left = spread_out(half, (margin, margin), (deep, width - margin), 0.8, random)
    right = spread_out(points - half, (length - deep, margin), (length - margin, width - margin), 0.8, random)
    here = np.concatenate([left, right])
    there = here * [-1, 1] + [length, 0]
    ways = [np.stack([b, a]) for a, b in zip(here, there, strict=True)]
    simulation.add_points(here, goals=ways, speed=random.uniform(1.0, 1.8, points), repeat=True)
    if bodies:
        rows, free = -(-bodies // 2), 0.05 * length if depth is None else 10.0
        lanes = np.linspace(deep + free, length - deep - free, rows) if rows > 1 else np.array([0.4 * length])
        side = np.arange(bodies) % 2
        x = lanes[np.arange(bodies) // 2] + np.where(side, 0.35, -0.35) * (lanes[1] - lanes[0] if rows > 1 else 6.0)
        phase = random.uniform(5.0, width - 5.0, bodies)
        ends = np.where(side, width - 4.0, 4.0)
        ways = [np.array([[a, b], [a, width - b]]) for a, b in zip(x, ends, strict=True)]
        heading = np.stack([np.zeros(bodies), np.where(side, 1.0, -1.0)], axis=1)
        simulation.add_bodies(
            box(*(shape or ((4.0, 2.0) if rows * 6.0 < 0.8 * length else (2.0, 1.0)))),
            np.stack([x, phase], axis=1),
            headings=heading,
            goals=ways,
            speed=random.uniform(3.0, 5.0, bodies),
            repeat=True,
        )
    return simulation


def circle(
    points: int = 1000,
    bodies: int = 50,
    *,
    size: float = 200.0,
    cell: float = 8.0,
    seed: int = 0,
    device: str | None = None,
    **options: Any,
) -> Simulation:
    """Points on a large circle go to their antipodes; two rings of boxes turn in opposite directions."""
    count = round(size / cell)
    simulation = Simulation(quad_grid(count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    middle, radius = np.array([size / 2, size / 2]), 0.45 * size
    # Several rows where a circle of one row would be too tight.
    rows = max(1, int(np.ceil(points * 0.7 / (2 * np.pi * radius))))
    angle = 2 * np.pi * np.arange(points) / max(points, 1)
    away = radius - 0.8 * (np.arange(points) % rows)
    out = np.stack([np.cos(angle), np.sin(angle)], axis=1) * away[:, None]
    simulation.add_points(middle + out, goals=middle - out, speed=random.uniform(1.0, 1.8, points))
    for ring, (far, number) in enumerate(((0.2 * size, bodies // 2), (0.3 * size, bodies - bodies // 2))):
        if number:
            turn = -1.0 if ring else 1.0
            start = 2 * np.pi * np.arange(number) / number
            steps = turn * 2 * np.pi * np.arange(1, 33) / 32
            ways = [middle + far * np.stack([np.cos(a + steps), np.sin(a + steps)], axis=1) for a in start]
            place = middle + far * np.stack([np.cos(start), np.sin(start)], axis=1)
            heading = turn * np.stack([-np.sin(start), np.cos(start)], axis=1)
            simulation.add_bodies(box(4.0, 2.0), place, headings=heading, goals=ways, speed=3.0, repeat=True)
    return simulation


def snake(
    points: int = 2000,
    snakes: int = 2,
    *,
    speed: float = 6.0,
    size: float = 100.0,
    cell: float = 5.0,
    seed: int = 0,
    device: str | None = None,
    **options: Any,
) -> Simulation:
    """A dense crowd in the middle that stays, crossed to and fro by chains of twelve boxes."""
    count = round(size / cell)
    simulation = Simulation(quad_grid(count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    middle = np.array([size / 2, size / 2])
    # A disc of 12 m for 2000 points, filled evenly along a spiral.
    k = np.arange(points) + 0.5
    far, angle = 12.0 * np.sqrt(k / 2000.0), np.pi * (3.0 - np.sqrt(5.0)) * k
    place = middle + far[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    simulation.add_points(place, goals=place, speed=random.uniform(1.0, 1.8, points), radius=0.15)
    if snakes:
        lanes = middle[1] + (np.arange(snakes) - (snakes - 1) / 2) * 10.0
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
    device: str | None = None,
    **options: Any,
) -> Simulation:
    """An open square with random starts and goals, so many points per square metre."""
    count = max(1, int(np.ceil(np.sqrt(points / per_area) / cell)))
    simulation = Simulation(quad_grid(count, count, size=cell, device=device), seed=seed, **options)
    random = np.random.default_rng(seed)
    size = count * cell
    place = spread_out(points, (0.5, 0.5), (size - 0.5, size - 0.5), 0.7, random)
    goals = random.uniform(0.5, size - 0.5, (points, 2))
    simulation.add_points(place, goals=goals, speed=random.uniform(1.0, 1.8, points))
    return simulation


def spread_out(
    count: int, low: tuple[float, float], high: tuple[float, float], apart: float, random: np.random.Generator
) -> np.ndarray:
    """(count, 2) random places of a rectangle, no two nearer than `apart` [m]: a shaken grid."""
    size = np.subtract(high, low)
    columns = max(1, int(np.ceil(np.sqrt(count * size[0] / size[1]))))
    rows = -(-count // columns)
    step = size / [columns, rows]
    if min(step) < apart:
        raise InputError(f"{count} agents do not fit into {size[0]:.4g} x {size[1]:.4g} m, {apart} m apart")
    chosen = np.sort(random.choice(columns * rows, count, replace=False))
    grid = np.stack([chosen % columns, chosen // columns], axis=1) + 0.5
    return np.array(low) + grid * step + random.uniform(-0.5, 0.5, (count, 2)) * (step - apart)

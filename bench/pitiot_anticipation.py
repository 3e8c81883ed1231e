"""A fast snake through a dense crowd: how many it runs over, with and without virtual edges and panic.

Experiment E9, on Pitiot 2015, section 8.2.2. A point is run over if it is ever inside one of the snake's boxes.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report
from tangere.crowd import Bubbles
from tangere.crowd.scenarios import snake

FEATURES = ["F-P-56", "F-P-57"]


def run(report: Report, quick: bool = False) -> None:
    points, speeds = (100, (12.0,)) if quick else (1000, (2.0, 6.0, 12.0))
    kinds = {"neither": (0.0, 0.0), "virtual edge": (1.0, 0.0), "virtual edge and panic": (1.0, 2.25)}
    rows, last, hardest = [], {}, 0.0
    for speed in speeds:
        row = [f"{speed:g} m/s"]
        for name, (horizon, panic) in kinds.items():
            last[name], pull = overrun(points, speed, horizon, panic, quick)
            hardest = max(hardest, pull)
            row.append(f"{100 * last[name]:.1f} %")
        rows.append(row)
    report.table(["speed", *kinds], rows)
    # Where nobody is run over anyway there is nothing to save, and nothing shown.
    saved = 1.0 - last["virtual edge and panic"] / last["neither"] if last["neither"] > 0 else 0.0
    most = Bubbles().acceleration * Bubbles().panic_factor
    report.note(
        f"At the highest speed {100 * saved:.0f} % fewer are run over (asked for: 50 %, "
        f"{'pass' if saved >= 0.5 else 'fail'}). Nobody accelerated by more than {hardest:.1f} m/s^2 "
        f"(allowed in panic: {most:g}, {'pass' if hardest <= most + 1e-6 else 'fail'})."
    )


def overrun(points: int, speed: float, horizon: float, panic: float, quick: bool) -> tuple[float, float]:
    """The part of the points that a snake runs over on its way through, and the hardest acceleration [m/s^2]."""
    simulation = snake(points, 1, speed=speed, anticipation=horizon, behaviour=Bubbles(panic=panic), device="cpu")
    hit, hardest = np.zeros(points, bool), 0.0
    for _ in range(30 if quick else round(36.0 / speed / simulation.dt)):
        before = simulation.velocities
        simulation.step()
        hardest = max(hardest, np.linalg.norm(simulation.velocities - before, axis=1).max() / simulation.dt)
        places = simulation.positions[:, :2]
        for section in range(12):
            hit |= inside(simulation.bodies.outline(0, section)[:, :2], places)
    return float(hit.mean()), float(hardest)


def inside(outline: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which points a convex counter-clockwise polygon holds."""
    ahead = np.roll(outline, -1, axis=0) - outline
    away = points[:, None] - outline[None]
    return (ahead[None, :, 0] * away[..., 1] - ahead[None, :, 1] * away[..., 0] > 0).all(axis=1)

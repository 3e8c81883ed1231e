"""The push on a point from its ring is that of everybody and of every edge, in cells of many shapes and levels."""

from __future__ import annotations

import numpy as np
import pytest

from crowd.test_cell_sizes import MAPS
from tangere.cells.generate import quad_grid
from tangere.cells.maps import split
from tangere.crowd import Bubbles, Simulation, box
from tangere.crowd.agents.cell_sizes import cell_widths


def squares_in_levels():
    map = quad_grid(5, 5, size=8.0, device="cpu")
    split(map, [6, 7, 12, 13], balanced=True)
    return map


GROUNDS = {"squares in levels": squares_in_levels} | {name: MAPS[name] for name in ("jitter 0.35", "triangles")}


def pushes(rule, x, v, bodies):
    """On each point, the sum over all others and all edges of all bodies, which are at rest."""
    away = x[:, None] - x[None]
    d = np.linalg.norm(away, axis=2) + np.eye(len(x)) * 2 * rule.range
    unit = away / d[..., None]
    rate = (unit * (v[:, None] - v[None])).sum(axis=2)
    force = (bubbles(rule, d, rate)[..., None] * unit).sum(axis=1)
    for outline in bodies:
        for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True):
            ua, ub = ((x - end) / np.linalg.norm(x - end, axis=1, keepdims=True) for end in (a, b))
            d = (np.linalg.norm(x - a, axis=1) + np.linalg.norm(x - b, axis=1) - np.linalg.norm(b - a)) / 2
            gradient = (ua + ub) / 2
            push = bubbles(rule, d, (gradient * v).sum(axis=1))
            force += push[:, None] * gradient / np.linalg.norm(gradient, axis=1, keepdims=True)
    return force


def bubbles(rule, d, rate):
    push = rule.stiffness * (rule.range - d) ** 2 - rule.damping * rate * (1 - d / rule.range)
    return np.where(d < rule.range, np.maximum(push, 0), 0)


@pytest.mark.feature("F-P-53")
@pytest.mark.parametrize("name", GROUNDS)
def test_the_sum_over_the_ring_is_that_over_everybody_and_all_edges(name, rng):
    map = GROUNDS[name]()
    width = float(cell_widths(map)[map.leaves].min())
    length = 0.8 * width
    # As far as an edge of that length acts, cells must show.
    reach = -length / 2 + np.sqrt(length**2 / 4 + width**2)
    options = {"acceleration": 1e9, "max_speed_factor": 1e9, "wall_range": 1e-3, "noise": 0.0}
    rule = Bubbles(range=reach * (1 - 1e-9), **options)
    assert rule.edge_reach(length) == pytest.approx(width)
    simulation = Simulation(map, behaviour=rule, adaptive=None, anticipation=0.0, whole_edges=True, reroute=0.0)
    low, high = map.positions.min(axis=0)[:2], map.positions.max(axis=0)[:2]
    # Far from each other and from walls, boxes stay where they are.
    middles = low + (high - low) * np.array([[0.25, 0.25], [0.75, 0.25], [0.75, 0.75], [0.25, 0.75]])
    simulation.add_points(rng.uniform(low + 0.1, high - 0.1, (500, 2)), radius=0.1)
    simulation.add_points(middles[np.arange(200) % 4] + rng.uniform(-width, width, (200, 2)), radius=0.1)
    angle = rng.uniform(0, 6.28, 4)
    simulation.add_bodies(box(length, length / 3), middles, headings=np.c_[np.cos(angle), np.sin(angle)])
    bodies = [simulation.bodies.outline(k) for k in range(4)]
    for _ in range(3):
        x, v = simulation.positions, simulation.velocities
        expected = v + simulation.dt * (pushes(rule, x, v, bodies) - v / rule.relaxation)
        assert (np.linalg.norm(pushes(rule, x, v, []) - pushes(rule, x, v, bodies), axis=1) > 0).sum() > 20
        simulation.step()
        ends = (x + simulation.dt * expected)[:, :2]
        inner = ((x[:, :2] > low + 0.1) & (x[:, :2] < high - 0.1) & (ends > low) & (ends < high)).all(axis=1)
        assert inner.mean() > 0.8
        np.testing.assert_allclose(simulation.velocities[inner], expected[inner], atol=1e-8)
    np.testing.assert_allclose(simulation.bodies.outline(3), bodies[3], atol=1e-9)

"""Reciprocal avoidance against pyrvo, step by step, and as a behaviour like any other."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.cells.generate import quad_grid
from tangere.crowd import Bubbles, Orca, Simulation


@pytest.mark.parametrize("count", [2, 8, 40])
def test_small_crowds_move_as_in_pyrvo(count):
    pyrvo = pytest.importorskip("pyrvo")
    random = np.random.default_rng(count)
    rule, dt, radius = Orca(range=3.0, horizon=2.0, max_speed_factor=1.5), 0.1, 0.3
    simulation = Simulation(quad_grid(10, 10, size=4.0, device="cpu"), behaviour=rule, dt=dt, adaptive=None)
    angle = 2 * np.pi * np.arange(count) / count + random.uniform(-0.02, 0.02, count)
    far = 3.0 + 0.05 * count
    start = 20.0 + far * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    goals = 20.0 + (20.0 - start) * 4.0  # beyond the antipode, so that nobody brakes while we look
    speed = random.uniform(1.0, 1.8, count)
    simulation.add_points(start, goals=goals, speed=speed, radius=radius)
    peer = pyrvo.RVOSimulator()
    peer.set_time_step(dt)
    for k in range(count):
        peer.add_agent(start[k].tolist(), 3.0, 10, 2.0, 2.0, radius, float(1.5 * speed[k]))
    worst = 0.0
    for _ in range(25):
        x = simulation.positions[:, :2]
        wish = goals - x
        wish *= (speed / np.linalg.norm(wish, axis=1))[:, None]
        velocity = simulation.velocities
        for k in range(count):  # from the same state, so that a chaotic crowd does not multiply single precision
            peer.set_agent_position(k, x[k].tolist())
            peer.set_agent_velocity(k, velocity[k, :2].tolist())
            peer.set_agent_pref_velocity(k, wish[k].tolist())
        peer.do_step()
        simulation.step()
        theirs = np.array([(v.x, v.y) for v in (peer.get_agent_velocity(k) for k in range(count))])
        worst = max(worst, np.abs(simulation.velocities[:, :2] - theirs).max())
    assert np.linalg.norm(simulation.positions[:, :2] - start, axis=1).min() > 0.2
    assert worst < 2e-4  # pyrvo computes in single precision


@pytest.mark.feature("F-P-58")
def test_one_scene_runs_with_either_behaviour_and_everybody_arrives():
    for rule in (Bubbles(), Orca(range=1.5)):
        simulation = Simulation(quad_grid(10, 5, size=3.0, device="cpu"), behaviour=rule)
        left = np.stack([np.full(12, 2.0), 1.5 + np.arange(12)], axis=1)
        here = np.concatenate([left, left * [-1, 1] + [30, 0]])
        simulation.add_points(here, goals=here * [-1, 1] + [30, 0], speed=1.4)
        simulation.run(steps=30 * 60)
        assert np.isfinite(simulation.arrived).all()


def test_walls_stop_agents_before_they_touch():
    simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"), behaviour=Orca())
    simulation.add_points([[6.0, 6.0], [6.0, 3.0]], goals=[[6.0, 30.0], [-9.0, 3.0]], speed=1.4)
    simulation.run(steps=400)
    x = simulation.positions
    assert 12 - 0.31 < x[0, 1] <= 12 - 0.3 + 1e-6
    assert 0.3 - 1e-6 <= x[1, 0] < 0.31

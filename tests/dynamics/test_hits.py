"""What the walk of a step runs into: hits of one body at several times."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.dynamics.contact.hits import hits_apart


def test_every_moving_body_has_one_time_in_each_group_of_hits():
    rng = np.random.default_rng(0)
    for _ in range(50):
        bodies, count = int(rng.integers(2, 12)), int(rng.integers(1, 30))
        pairs = np.array([rng.choice(bodies, 2, replace=False) for _ in range(count)])
        times = rng.choice([0.0, 0.25, 0.5, 0.75], count)
        still = rng.random(bodies) < 0.3
        groups = hits_apart(pairs, times, still)
        assert sorted(np.concatenate(groups).tolist()) == list(range(count))
        for group in groups:
            for body in np.flatnonzero(~still):
                of_body = times[group][(pairs[group] == body).any(axis=1)]
                assert len(set(of_body.tolist())) <= 1


def test_hits_of_different_bodies_and_on_a_floor_are_one_group():
    pairs = np.array([[0, 1], [0, 2], [3, 4]])
    groups = hits_apart(pairs, np.array([0.3, 0.6, 0.1]), np.array([True, False, False, False, False]))
    assert [group.tolist() for group in groups] == [[0, 1, 2]]


def test_a_hit_that_comes_early_is_trusted_where_rows_have_not_done():
    """A point of a turning rod falls behind its line by half of its acceleration times the square of time."""
    rod = Body(tg.generate.box((2.0, 0.1, 0.1)), np.eye(4), spin=(0, 30.0, 0))
    place = np.eye(4)
    place[2, 3] = -2.0
    floor = Body(tg.generate.box((4.0, 4.0, 0.1)), place, fixed=True)
    world = World([rod, floor], gravity=(0, 0, 0), dt=0.01, device="cpu")
    world.step()
    step, rows, time, turn = world._step, world._step.rows, 0.05, 0.3
    motion = np.zeros((2, 6))
    motion[0, 4] = turn
    step.motion.assign(motion)
    # the second derivative of its height is -0.9 turn^2
    later = world.positions[0] + [0.9 * np.sin(turn * time), 0.0, 0.9 * np.cos(turn * time)]
    below = later - [0.0, 0.0, 0.01]
    hit = SimpleNamespace(
        pairs=np.array([[0, 1]]), times=np.array([time]), point_a=[later], point_b=[below], normal=[[0.0, 0.0, 1.0]]
    )
    bends = {}
    for trusted in (True, False):
        rows.clear()
        rows.trust_early_hits(trusted)
        rows.add_analytic_hits(hit)
        bends[trusted] = float(rows.facts.bend.numpy()[0])
    expected = -0.5 * 0.9 * turn**2
    assert bends[True] == pytest.approx(expected, rel=1e-3)
    assert bends[False] == pytest.approx(expected * (time / 0.25) ** 2, rel=1e-3)

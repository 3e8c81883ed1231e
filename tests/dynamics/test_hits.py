"""What the walk of a step runs into: hits of one body at several times."""

from __future__ import annotations

import numpy as np

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

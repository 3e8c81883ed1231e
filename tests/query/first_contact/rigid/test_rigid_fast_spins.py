"""Bodies that spin many times within a step: never late, and in the time of bodies that do not."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.rigid_scenes import at, shape
from oracles.rigid_distances import closest_approach
from tangere.motion import Rest, Twist
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid.api import Counters, rigid_first_contact
from tangere.shape import generate

TOLERANCE = 1e-5


def flight(rng, start, spin):
    """Through the origin, nearly, turning by `spin` about a pivot near the middle of the body."""
    way = -2.0 * np.asarray(start) + rng.normal(scale=0.3, size=3)
    axis = rng.normal(size=3)
    return Twist(at(start), way, spin * axis / np.linalg.norm(axis), pivot=rng.normal(scale=0.2, size=3))


@pytest.mark.parametrize("both", [False, True])
def test_a_fast_spin_is_never_told_late(rng, effort, both):
    a, b = shape("cone"), shape("ring")
    hits = 0
    for _ in range(effort(20)):
        one = flight(rng, [3.0, 0.2, 0.1], rng.uniform(13.0, 200.0))
        other = flight(rng, [-2.0, 0.1, -0.3], rng.uniform(0.0, 100.0)) if both else Rest(np.eye(4))
        found = rigid_first_contact(a.moving(one), b.moving(other), tolerance=TOLERANCE, device="cpu", threads=1)
        assert closest_approach(a, b, one, other, min(found.time, 1.0), samples=600) > 0.49 * TOLERANCE
        hits += found.status == Status.CONTACT
    assert hits > 0


def test_work_does_not_grow_with_the_turns_on_the_way():
    """Until the balls around both bodies meet, turns do not matter."""
    ball = generate.icosphere(triangles=320)
    work = []
    for turns in (100.0, 10_000.0):
        spinning = ball.moving(Twist(at([-3.0, 0.0, 0.0]), [2.0, 0.0, 0.0], [0.0, 0.0, 2.0 * np.pi * turns]))
        counters = Counters()
        found = rigid_first_contact(spinning, ball, counters=counters, device="cpu", threads=1)
        assert found.status == Status.CONTACT
        assert 0.499 <= found.time <= 0.51
        work.append(counters.box_tests)
    assert work[1] < 2 * work[0]  # a hundred times as many steps without the balls


def test_turning_in_place_is_never_told_late_however_slow(rng, effort):
    """Bodies that hardly go anywhere are balls to the search at any angular speed: here they meet by turning."""
    a, b = shape("cone"), shape("ring")
    hits = 0
    for _ in range(effort(10)):
        start = rng.normal(size=3)
        start *= rng.uniform(1.0, 1.7) / np.linalg.norm(start)
        turn = rng.normal(size=3) * rng.choice([0.3, 1.0, 5.0])
        one = Twist(at(start), 1e-3 * rng.normal(size=3), turn, pivot=rng.normal(scale=0.2, size=3))
        found = rigid_first_contact(a.moving(one), b, tolerance=TOLERANCE, device="cpu", threads=1)
        if found.status == Status.START:
            continue
        assert closest_approach(a, b, one, Rest(), min(found.time, 1.0), samples=100) > 0.49 * TOLERANCE
        hits += found.status == Status.CONTACT
    assert hits > 0


@pytest.mark.parametrize("turns", [0.2, 1.0, 10.0, 100.0])
def test_a_ball_that_turns_within_a_shell_never_comes_down_to_triangles(turns):
    """Boxes of the ball stay within 0.501, those of the shell beyond 0.505: no turn brings them together."""
    ball, shell = generate.icosphere(triangles=1280, radius=0.5), generate.icosphere(triangles=1280, radius=0.53)
    spinning = ball.moving(Twist(np.eye(4), [0.0, 0.0, 0.0], 2.0 * np.pi * turns * np.array([0.36, 0.48, 0.8])))
    counters = Counters()
    found = rigid_first_contact(spinning, shell, counters=counters, device="cpu", threads=1)
    assert found.status == Status.FREE
    assert counters.triangle_tests == 0
    assert counters.box_tests < 400_000  # of 1.6 million pairs of triangles; it was 9 million for ten turns

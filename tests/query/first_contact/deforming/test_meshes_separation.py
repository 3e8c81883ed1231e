"""Coming closer than a separation: never late against dense sampling in time, and certified apart until then."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import scene
from oracles.mesh_contacts import corners_at, distances, ends, feature_pairs
from tangere.motion import Linear
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import DeformingOptions, all_contacts, first_contact
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def distance_at(a, b, time: float, reach: float) -> float:
    """The least distance of features that share no vertex, if it is below `reach`; else `reach`."""
    start, end = ends(a, b)
    points = start * (1.0 - time) + end * time
    nearest = reach
    for pairs in feature_pairs(a, b):
        corners = points[pairs.corners]
        split = 1 if pairs.kind == Kind.VERTEX_FACE else 2
        one, other = corners[:, :split], corners[:, split:]
        gap = np.maximum(other.min(axis=1) - one.max(axis=1), one.min(axis=1) - other.max(axis=1)).max(axis=1)
        near = corners[gap < nearest]
        nearest = min(nearest, distances(np.full(len(near), pairs.kind), near).min(initial=nearest))
    return nearest


@pytest.mark.parametrize("family", ["soup", "two bodies", "one at rest", "one part twice", "loose vertices"])
@pytest.mark.parametrize("separation", [0.02, 0.2])
def test_the_time_of_coming_too_close_is_never_late_and_not_early(family, separation):
    for seed in range(2):
        a, b = scene(family, seed)
        hit = first_contact(a, b, separation=separation, start="trusted", device="cpu")
        size = np.ptp(np.concatenate(ends(a, b)), axis=0).max()
        before = np.linspace(0.0, min(hit.time, 1.0), 12, endpoint=not hit) if hit.time > 0.0 else []
        for time in before:
            assert distance_at(a, b, time, 2.0 * separation) > separation * (1.0 - 1e-12)
        if hit:
            reached = distance_at(a, b, hit.time, 2.0 * separation)
            assert reached <= separation + 1e-6 * size
            assert reached >= separation * (1.0 - 1e-9) or hit.status == Status.START


def test_every_pair_that_comes_too_close_is_told_with_its_distance():
    a, b = scene("one at rest", 2)
    for separation in (0.05, 0.3):
        contacts = all_contacts(a, b, separation=separation, start="trusted", device="cpu")
        brute = all_contacts(
            a, b, separation=separation, start="trusted", options=DeformingOptions("brute"), device="cpu"
        )
        assert contacts.key.tolist() == brute.key.tolist()
        apart = np.linalg.norm(contacts.point_a - contacts.point_b, axis=1)
        assert np.allclose(apart, distances(contacts.kind, corners_at(a, b, contacts)), atol=1e-9)
        late = contacts.time > 0.0
        assert np.allclose(apart[late], separation, atol=1e-5)
        assert len(contacts) > 0


def test_a_ball_stops_one_separation_before_a_plate():
    ball = generate.icosphere(subdivisions=2)
    plate = Mesh([[-9.0, -9.0, -3.0], [9.0, -9.0, -3.0], [0.0, 18.0, -3.0]], [[0, 1, 2]])
    falling = ball.moving(Linear(ball.vertices - [0.0, 0.0, 4.0]))
    lowest = -ball.bounds[0, 2]
    for separation in (0.0, 0.25, 1.0):
        hit = first_contact(falling, plate, separation=separation, device="cpu")
        assert hit.time == pytest.approx((3.0 - lowest - separation) / 4.0, abs=1e-6)
        assert hit.time <= (3.0 - lowest - separation) / 4.0 + 1e-15
    assert first_contact(falling, plate, separation=2.5, device="cpu").status == Status.START


@pytest.mark.parametrize("mode", ["exact", "published"])
def test_modes_that_decide_contact_refuse_a_separation(mode):
    with pytest.raises(InputError, match="separation must be 0"):
        first_contact(generate.box(), generate.box(), mode=mode, separation=0.1)

"""The thesis' simulator goes from event to event, and keeps its distances."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.motion import Rest
from tangere.published.redon_dynamics import EventLoop
from tangere.query.intersection import intersects

SECURITY = 2e-4
FLOOR, BOX = tg.generate.box((4.0, 4.0, 1.0)), tg.generate.box((0.5, 0.5, 0.5))


def loop(height, velocity=(0.0, 0.0, 0.0), **options):
    """A box above a floor."""
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[0, 2, 3], poses[1, 2, 3] = -0.5, 0.25 + height
    found = BOX.mass_properties()
    speeds = np.zeros((2, 6))
    speeds[1, :3] = velocity
    return EventLoop(
        [FLOOR, BOX], mass=[np.inf, found.mass], inertia=[np.eye(3), found.inertia], poses=poses, velocity=speeds,
        security=SECURITY, **options,
    )  # fmt: skip


def gap(simulated):
    return simulated.poses[1, 2, 3] - 0.25


def meet(simulated):
    floor, box = (mesh.moving(Rest(pose)) for mesh, pose in zip((FLOOR, BOX), simulated.poses, strict=True))
    return bool(intersects(floor, box, device="cpu"))


@pytest.mark.feature("F-R-1")
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_steps_are_accepted_until_a_contact_where_time_goes_on_to_it(restitution):
    simulated = loop(0.1, velocity=(0.0, 0.0, -1.0), gravity=(0, 0, 0), restitution=restitution)
    events = []
    while not events or events[-1].kind == "accepted":
        events.append(simulated.next_step())
        assert not meet(simulated)
    assert all(event.time == simulated.step for event in events[:-1])
    assert 0.0 < events[-1].time < simulated.step
    assert simulated.time == pytest.approx(0.1, abs=2 * SECURITY)  # the height at one metre a second
    assert simulated.velocity[1, 2] == pytest.approx(restitution, abs=1e-9)
    after = simulated.next_step()
    assert after.kind == "accepted"
    assert after.time == simulated.step


@pytest.mark.feature("F-R-65")
def test_what_is_too_near_is_repositioned_within_five_cycles():
    simulated = loop(0.1 * SECURITY)
    cycles = simulated.reposition()
    assert 1 <= cycles <= 5
    assert gap(simulated) >= (1.0 - 0.03) * SECURITY
    assert not meet(simulated)


@pytest.mark.feature("F-R-64")
def test_a_sliding_box_keeps_between_alert_and_rupture_without_artificial_collisions():
    simulated = loop(SECURITY, velocity=(1.0, 0.3, 0.0))
    within, contacts = 0, 0
    for _ in range(100):
        contacts += simulated.next_step().kind == "contact"
        within += 0.44 * SECURITY <= gap(simulated) <= 2.3 * SECURITY
        assert not meet(simulated)
    assert contacts == 0
    assert within > 99
    np.testing.assert_allclose(simulated.velocity[1, :2], [1.0, 0.3], atol=1e-9)


@pytest.mark.feature("F-R-66")
def test_worlds_of_both_orders_come_to_rest_on_the_floor():
    for order in (1, 2):
        simulated = loop(0.02, order=order, gravity=(0.0, 0.0, -1.0))
        for _ in range(40):
            simulated.next_step()
            assert not meet(simulated)
        assert gap(simulated) == pytest.approx(SECURITY, rel=1.4)
        assert abs(simulated.velocity[1, 2]) < 1e-2

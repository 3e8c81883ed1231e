"""The coupling gives the hand no energy, and its one kernel does what the formulas say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from hand.test_hand import cube_on_table, posed, pressed
from tangere.hand import Hand, SimulatedDevice
from tangere.hand.coupling import ContactRowSet
from tangere.motion import Twist


@pytest.mark.parametrize("law", ["coupling", "drag"])
@pytest.mark.parametrize(
    ("stiffness", "damping", "fast", "slow"),
    [(500.0, None, 1000.0, 50.0), (2000.0, None, 1000.0, 200.0), (5000.0, 20.0, 1000.0, 500.0),
     (2000.0, 8.0, 500.0, 100.0)],
)  # fmt: skip
@pytest.mark.feature("F-R-72")
def test_the_discrete_coupling_is_passive(law, stiffness, damping, fast, slow):
    """Pressed, slid, lifted and pressed again: the work of both laws on the device never rises above zero."""

    def path(time):
        return posed(0.02 * np.sin(3.0 * time), 0.0, 0.1 + 0.015 * np.cos(5.0 * time))

    device = SimulatedDevice(path, delay=0.0)
    hand = Hand(
        cube_on_table(0.115), "cube", device, stiffness=stiffness, damping=damping, law=law, fast_rate=fast,
        slow_rate=slow, tank=None,
    )  # fmt: skip
    given, observed = [], []
    hand.run(1.4, after_tick=lambda time: (given.append(device.given), observed.append(hand.report.given)))
    assert max(given) <= 1e-12  # the device's own account
    assert hand.report.passive
    assert min(observed) < -1e-4
    # the observer sees ways and forces of ticks; the device adds up what happens in its hundred microseconds
    assert np.abs(np.array(given) - observed).max() < 1e-6


def test_the_laws_differ_in_free_motion_as_they_should():
    """(6.5) drags where nothing touches, by b times the velocity; (6.4) does not."""
    forces = {}
    for law in ("coupling", "drag"):
        device = SimulatedDevice(lambda t: posed(0.05 * t, 0.0, 0.5), forced_axes=(False,) * 6)
        hand = Hand(cube_on_table(0.5), "cube", device, law=law)
        pulls = []
        hand.run(1.0, after_tick=lambda time, hand=hand, pulls=pulls: pulls.append(hand._fast.state["pull"][0]))
        forces[law] = pulls[-1]
    assert abs(forces["coupling"]) < 1e-9
    assert forces["drag"] == pytest.approx(-4.0 * 0.05, rel=1e-3)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_a_tick_is_the_nearest_motion_that_contacts_allow(seed):
    """Against a general solver: min of the metric's distance to the wanted motion, rows . (moved + dx) >= -room."""
    random = np.random.default_rng(seed)
    hand = Hand(cube_on_table(0.5), "cube", SimulatedDevice(posed(z=0.5), forced_axes=(False,) * 6), most_change=1e9)
    hand.fast_tick(0.001)
    count = 6
    rows = random.normal(size=(count, 6)) * [1, 1, 1, 0.05, 0.05, 0.05]
    room = random.uniform(0.0, 1e-5, count)
    start = hand.proxy
    grip = start[:3, 3]
    hand.put_rows(ContactRowSet(grip, start[:3, :3], rows, room, 1.0).packed())
    way, turn = random.normal(size=3) * 1e-4, random.normal(size=3) * 1e-3
    told = Twist(posed(z=0.5), way, turn).pose(1.0)
    hand._fast.device = SimulatedDevice(told)
    hand.fast_tick(0.002)
    moved = np.r_[hand.proxy[:3, 3] - grip, _vector(hand.proxy[:3, :3])]
    period, k, b = 1e-3, np.r_[3 * [2000.0], 3 * [2.0]], np.r_[3 * [4.0], 3 * [4e-3]]
    metric = period * b + period**2 * k
    wanted = period**2 * k * np.r_[way, turn] / metric
    scale = np.sqrt(metric)
    # least-distance programming by non-negative least squares (Lawson and Hanson 1974, chapter 23)
    lack = -room - rows @ wanted
    size = np.abs(lack).max()
    columns = np.vstack([(rows / scale).T, lack / size])
    residual = columns @ nnls(columns, np.r_[np.zeros(6), 1.0])[0] - np.r_[np.zeros(6), 1.0]
    best = wanted - size * residual[:6] / residual[6] / scale
    assert (rows @ best >= -room - 1e-12).all()
    assert np.allclose(moved, best, rtol=1e-4, atol=1e-9)


def _vector(rotation):
    return 0.5 * np.array(
        [rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]]
    )


def test_a_part_with_a_mass_swings_and_one_without_does_not():
    ends = {}
    for mass in (0.0, 0.5):
        device = SimulatedDevice(lambda t: posed(0.01 * (t > 0.2), 0.0, 0.5), hand_stiffness=1500.0, hand_damping=40.0)
        hand, places = Hand(cube_on_table(0.5), "cube", device, mass=mass, most_reach=0.05, most_change=1e6), []
        hand.run(0.6, after_tick=lambda time, hand=hand, places=places: places.append(hand.pose[0, 3]))
        ends[mass] = max(places)
    assert ends[0.0] < 0.0101
    assert ends[0.5] > 0.0103


def test_a_tank_limits_only_when_it_must():
    """A hand that shakes a stiff coupling with a late force is given energy; the tank takes it back, and only then."""

    def run(tank, delay, stiffness):
        device = SimulatedDevice(pressed(0.03), delay=delay, hand_stiffness=100.0, hand_damping=0.5, mass=0.1)
        hand = Hand(
            cube_on_table(), "cube", device, stiffness=stiffness, damping=0.5, tank=tank, most_change=1e6,
            slow_rate=500.0,
        )  # fmt: skip
        hand.run(1.2)
        return hand.report, device

    report, _ = run(None, 0.004, 5000.0)
    assert report.most_given > 5e-3
    limited, _ = run(1e-3, 0.004, 5000.0)
    assert limited.limited > 0
    assert limited.withheld > 0.0
    assert limited.most_given < 0.2 * report.most_given
    calm, _ = run(1e-3, 0.0, 1000.0)
    assert calm.limited == 0

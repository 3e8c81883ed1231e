"""What a device's motion means, and what comes back: metaphors, clutch, scale, laws, masks of devices."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from hand.test_hand import cube_on_table, posed, pressed
from tangere.hand import Hand, SimulatedDevice
from tangere.motion import Twist


def down_and_up(time):
    """Ten millimetres into the table within 0.3 s, and back where it was at 0.6 s."""
    return posed(0.0, 0.0, 0.11 - 0.02 * (1.0 - abs(1.0 - min(time / 0.3, 2.0))))


@pytest.mark.feature("F-R-71")
def test_an_offset_stays_in_the_incremental_metaphor_and_goes_in_that_of_the_spring():
    """Redon 2002, figures 6.10 and 6.11: the device goes 10 mm too far, and back."""
    ends = {}
    for metaphor in ("spring", "incremental"):
        hand = Hand(cube_on_table(), "cube", SimulatedDevice(down_and_up, hand_stiffness=1500.0), metaphor=metaphor)
        hand.run(0.3)
        assert hand.pose[2, 3] == pytest.approx(0.1 + hand.world.separation, abs=1e-5)
        hand.run(0.7)
        ends[metaphor] = hand.pose[2, 3] - hand.device.read(1.0).pose[2, 3]
    assert abs(ends["spring"]) < 1e-6
    # the deepest that the handle went below where the part lay
    assert 5e-3 < ends["incremental"] < 10.1e-3


def test_the_part_stays_while_the_clutch_is_pressed_and_goes_on_from_there():
    buttons = lambda time: int(0.2 <= time < 0.6)  # noqa: E731
    hand = Hand(cube_on_table(0.5), "cube", SimulatedDevice(lambda t: posed(0.1 * t, 0.0, 0.5), buttons=buttons))
    hand.run(0.4)
    assert hand.clutch
    assert not hand.holding
    stays = hand.pose
    hand.run(0.15)
    assert np.array_equal(hand.pose, stays)
    hand.run(0.35)
    assert not hand.clutch
    gone = hand.pose[0, 3] - stays[0, 3]
    assert gone == pytest.approx(0.1 * 0.3, abs=1e-3)  # from 0.6 to 0.9 s
    hand.clutch = True
    hand.run(0.1)
    assert hand.clutch


def test_a_pressed_part_that_is_let_go_pushes_less_and_less():
    hand, forces = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03))), []
    hand.run(1.0)
    before = hand.force[2]
    hand.clutch = True
    hand.run(0.1, after_tick=lambda time: forces.append(hand.force[2]))
    assert before > 5.0
    assert np.diff([before, *forces]).min() == pytest.approx(-before / 50.0, rel=0.2)  # 50 ms, tick by tick
    assert forces[-1] == 0.0


def test_scaled_ways_are_as_much_work():
    hand = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03)), scale=0.5)
    hand.run(2.0)
    assert hand.pose[2, 3] == pytest.approx(0.1 + hand.world.separation, abs=1e-7)
    # the hand's 400 N/m and, seen from the device, 2000 N/m times 0.5 squared; 20 mm of its ways touch at once
    assert hand.force[2] == pytest.approx((0.03 - 0.02) / (1 / 400.0 + 1 / 500.0), rel=0.02)
    assert hand.report.passive


@pytest.mark.parametrize(
    ("measured", "forced"),
    [
        ((1, 1, 1, 0, 0, 0), (1, 1, 1, 0, 0, 0)),  # Phantom, SPIDAR: 3 in and out
        ((1, 1, 1, 1, 1, 1), (1, 1, 1, 0, 0, 0)),  # a pen on a SPIDAR: 6 in, 3 out
        ((1, 1, 1, 1, 1, 0), (1, 1, 1, 1, 1, 0)),  # two-point SPIDAR: 5 in and out
        ((1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1)),  # Virtuose: 6 in and out
    ],
)
@pytest.mark.feature("F-R-73")
def test_devices_of_three_five_and_six_degrees_of_freedom_press_and_turn_a_part(measured, forced):
    start, written = posed(z=0.13), []

    def path(time):
        part = min(time, 1.0)
        return Twist(start, [0.02 * part, 0.0, -0.05 * part], [0.3 * part, 0.2 * part, 0.25 * part]).pose(1.0)

    world = cube_on_table(0.13)
    device = SimulatedDevice(path, measured_axes=measured, forced_axes=forced)
    hand = Hand(world, "cube", device)
    hand.run(1.5, after_tick=lambda time: written.append(np.r_[hand.force, hand.torque]))
    forces, moved = np.array(written), device.read(1.5)
    assert (forces[:, ~np.array(forced, bool)] == 0.0).all()
    assert (np.abs(forces[-1][:3]) > 1e-3).any()
    turned = Twist(start, np.zeros(3), np.zeros(3)).pose(1.0)[:3, :3].T @ moved.pose[:3, :3]
    if not any(measured[3:]):
        assert np.array_equal(turned, np.eye(3))
    assert (moved.velocity[~np.array(measured, bool)] == 0.0).all()
    assert np.linalg.norm(moved.velocity[:3]) < 1e-3
    assert not tg.intersects(*world.meshes())
    assert hand.report.walks_stopped == 0
    assert device.given <= 0.0


def test_axes_of_the_part_that_are_held_stay():
    table = tg.dynamics.Body(tg.generate.box((1.0, 1.0, 0.1)), name="table", fixed=True)
    held = (False, True, False, True, True, True)
    cube = tg.dynamics.Body(tg.generate.box((0.1, 0.1, 0.1)), posed(z=0.13), fixed=held, name="cube")
    world = tg.dynamics.World([table, cube], device="cpu")
    path = lambda t: Twist(posed(z=0.13), [0.02 * t, 0.03 * t, -0.05 * t], [0.3 * t, 0.1 * t, 0.2 * t]).pose(1.0)  # noqa: E731
    hand = Hand(world, "cube", SimulatedDevice(path))
    hand.run(1.0)
    assert np.array_equal(hand.pose[:3, :3], np.eye(3))
    assert hand.pose[1, 3] == 0.0
    assert hand.pose[0, 3] == pytest.approx(0.02, abs=3e-3)
    assert hand.pose[2, 3] == pytest.approx(0.1 + world.separation, abs=1e-6)

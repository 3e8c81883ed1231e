"""A needle held by a device at 1 kHz: what the hand feels, and how soon the tissue knows what the hand does."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.hand import NeedleHand, SimulatedDevice, TraceDevice, TraceRecorder
from tangere.needle import Needle, Simulation, Tissue
from tangere.runtime import InputError
from tangere.shape.tets import solid_block
from tangere.soft import Body
from tests.hand.real_time_devices import in_and_out


def held_needle(path, *, dt=0.01, direction=(0.0, 0.0, -1.0), device=None, **options):
    block = solid_block((4, 4, 4), size=(0.08, 0.08, 0.06), mirrored=True)
    body = Body(block, youngs_modulus=1e4, damping=20.0, fixed=block.vertices[:, 2] < -0.029)
    start = {"entry": [0.001, 0.001, 0.03], "direction": direction}
    simulation = Simulation(body, Needle(rigid=True), Tissue(), dt=dt, device="cpu", **start)
    return NeedleHand(simulation, SimulatedDevice(path) if device is None else device, **options)


@pytest.mark.feature("F-P-73")
def test_what_a_hand_does_is_in_the_next_step_of_the_tissue():
    """A device that stands still and moves at once: the very next frame begins with where it is."""
    still, moved = np.eye(4), np.eye(4)
    moved[2, 3] = -0.004

    class Stepping(SimulatedDevice):
        def read(self, time):
            told = super().read(time)
            told.pose[:] = moved if time >= 0.0995 else still
            told.velocity[:] = 0.0
            return told

    hand = held_needle(None, device=Stepping(still))
    hand.run(0.09)
    assert hand.simulation.travel == 0.0
    hand.run(0.01)  # the device moves at the last tick before the step of the tissue at 0.1 s
    first = hand.simulation.travel
    assert hand.simulation.time == pytest.approx(0.1)
    assert first > 0.1 * 0.004
    assert first == pytest.approx(hand.pose[2, 3] * -1.0 + hand._slow._base[2], abs=1e-12)
    hand.run(0.02)
    assert 0.8 * 0.004 < hand.simulation.travel < 0.004  # the tissue pushes back


def test_a_hand_feels_puncture_cutting_and_friction_without_a_jolt():
    hand, felt, shown = held_needle(in_and_out), [], []

    def after(time):
        felt.append(hand.force[2])
        shown.append((hand.simulation.force[2], hand.simulation.inside, hand.simulation.depth))

    hand.run(1.6, after_tick=after)
    felt, tissue = np.array(felt), np.array([row[0] for row in shown])
    inside, depth = np.array([row[1] for row in shown]), np.array([row[2] for row in shown])
    assert not inside[100]
    assert inside[-1]
    assert depth.max() > 0.01
    assert np.abs(np.diff(felt)).max() <= 0.3 + 1e-9  # N in 1 ms
    assert felt.max() > 0.8  # the puncture needs 1 N
    assert felt[1200:1500].min() < -0.05  # friction holds it when it is drawn out
    # the hand feels what the tissue does, up to the time that forces take to come
    assert np.abs(felt[200:] - tissue[200:]).mean() < 0.05
    assert hand.report.passive
    assert hand.device.given < 0.0


def test_a_needle_askew_is_guided_and_turned():
    axis = np.array([0.6, 0.0, -0.8])

    def path(time):
        pose, angle = np.eye(4), 0.5 * min(time, 1.0)
        k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        pose[:3, :3] += np.sin(angle) * k + (1 - np.cos(angle)) * k @ k
        pose[:3, 3] = 0.02 * min(time, 1.0) * axis + [0.0, 0.002 * min(time, 1.0), 0.0]
        return pose

    hand = held_needle(path, direction=axis)
    hand.run(1.0)
    gone = hand.pose[:3, 3] - hand._slow._base
    assert np.linalg.norm(np.cross(gone, axis)) < 1e-12  # it goes along its direction only
    assert gone @ axis == pytest.approx(0.02, abs=2e-3)
    assert hand._slow._roll == pytest.approx(0.5, abs=0.03)
    assert hand.force[1] < -0.3  # the hand is 2 mm aside of the guide


def test_a_needle_is_replayed_to_the_last_bit(tmp_path):
    file, forces = tmp_path / "needle.csv", []
    for device in (TraceRecorder(SimulatedDevice(in_and_out), file), None):
        hand = held_needle(None, device=TraceDevice(file) if device is None else device)
        told = []
        hand.run(0.4, after_tick=lambda time, hand=hand, told=told: told.append(np.r_[hand.force, hand.torque]))
        hand.close()
        forces.append(np.array(told))
    assert np.array_equal(*forces)


def test_steps_of_the_tissue_must_be_whole_ticks():
    with pytest.raises(InputError, match="step of the simulation"):
        held_needle(in_and_out, dt=0.0105)

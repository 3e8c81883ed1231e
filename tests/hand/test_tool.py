"""Tools and blades among soft bodies, held by a device at 1 kHz: what the hand feels, what the bodies know."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.hand import DeviceState, SimulatedDevice, ToolHand, TraceDevice, TraceRecorder, led_tool
from tangere.hand.coupling import ContactRowSet, FastLoop, coupling_settings
from tangere.hand.tool_hand import secant
from tangere.runtime import InputError, TangereError, UnsupportedError
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation


def ball_on_block(*, youngs_modulus=1e4, dt=0.01, **options):
    """A ball of 2 cm over a block of 10 cm that is held below."""
    block, ball = solid_block((4, 4, 4), size=(0.1, 0.1, 0.1)), generate.icosphere(subdivisions=2)
    bodies = [
        Body(block, youngs_modulus=youngs_modulus, fixed=block.vertices[:, 2] < -0.049, name="block"),
        Body(ball.replace(vertices=0.02 * ball.vertices + [0.0, 0.0, 0.08]), fixed=True, name="ball"),
    ]
    return Simulation(bodies, dt=dt, gravity=(0.0, 0.0, 0.0), device="cpu", **options)


def down(depth, slide=0.0):
    def path(time):
        pose = np.eye(4)
        pose[:3, 3] = slide * np.clip(time - 0.6, 0.0, 0.6), 0.0, -depth * min(time / 0.6, 1.0)
        return pose

    return path


def felt_in(hand, seconds):
    """(n, 6) on the device, and of the bodies on the tool, tick by tick."""
    felt, load = [], []

    def after(time):
        felt.append(np.r_[hand.force, hand.torque])
        load.append(hand.load)

    hand.run(seconds, after_tick=after)
    return np.array(felt), np.array(load)


def largest_jump(felt):
    return np.linalg.norm(np.diff(felt[:, :3], axis=0), axis=1).max()


@pytest.mark.feature("F-L-55")
@pytest.mark.parametrize(("youngs_modulus", "dt"), [(1e3, 0.01), (1e4, 0.02), (1e5, 0.005)])
def test_a_tool_that_pushes_a_soft_block_is_felt_without_a_jolt(youngs_modulus, dt):
    """Simulated input at 1 kHz, force output through the coupling, bodies in steps of 5 to 20 ms."""
    simulation = ball_on_block(youngs_modulus=youngs_modulus, dt=dt)
    hand = ToolHand(simulation, "ball", SimulatedDevice(down(0.04)))
    felt, load = felt_in(hand, 1.2)
    assert largest_jump(felt) <= 0.3  # N in 1 ms
    assert felt[-1, 2] > 1.0
    # the coupling, the hand and the block are springs in a row: at rest the hand feels what pushes the tool
    assert np.abs(felt[1000:, 2] - load[1000:, 2]).max() < 0.05
    assert np.ptp(felt[1000:, 2]) < 0.05
    way = -hand.target[2, 3] - hand.force[2] / 2000.0
    assert hand.pose[2, 3] == pytest.approx(-way, abs=1e-4)
    assert hand.report.most_given <= 1e-4
    assert hand.device.given < 0.0
    assert len(hand.contacts) > 0
    assert hand.clearance < simulation.distance


@pytest.mark.feature("F-L-55")
def test_a_blade_cuts_a_block_and_is_felt_without_a_jolt():
    made = led_tool("cut", device="cpu")
    device = SimulatedDevice(made.way)
    hand, opened = made.held_by(device), []
    felt, load = [], []

    def after(time):
        felt.append(np.r_[hand.force, hand.torque])
        load.append(hand.load)
        opened.extend(event for event in made.simulation.events if event.kind == "opened")

    hand.run(1.8, after_tick=after)
    felt, load = np.array(felt), np.array(load)
    assert opened
    assert hand.why_stopped is None
    assert largest_jump(felt) <= 0.3
    # it presses on the block, cuts it, and is held by the walls when it is drawn out
    assert felt[:, 2].max() > 2.0
    assert np.abs(felt[200:, 2] - load[200:, 2]).mean() < 0.5
    assert hand.report.passive
    assert device.given < 0.0
    middle = hand.handle[:3, 3]
    assert middle[0] == pytest.approx(made.way.poses[0, 0, 3], abs=1e-3)  # guided in its plane


def test_what_a_hand_does_is_in_the_next_step_of_the_bodies():
    """A device that stands still and moves at once: the very next step has the tool where it is."""
    moved = np.eye(4)
    moved[2, 3] = -0.004

    class Stepping(SimulatedDevice):
        def read(self, time):
            told = super().read(time)
            told.pose[:] = moved if time >= 0.0995 else np.eye(4)
            told.velocity[:] = 0.0
            return told

    hand = ToolHand(ball_on_block(), "ball", Stepping(np.eye(4)))
    start = hand.simulation["ball"].positions
    hand.run(0.09)
    assert np.abs(hand.simulation["ball"].positions - start).max() < 1e-15
    hand.run(0.01)  # the device moves at the last tick before the step at 0.1 s
    gone = hand.simulation["ball"].positions - start
    assert gone[:, 2].max() < -0.09 * 0.004  # a tick's share of the way that a step allows
    assert np.ptp(gone, axis=0).max() < 1e-12
    assert hand.pose[2, 3] == pytest.approx(gone[0, 2], abs=1e-12)
    assert hand.proxy[2, 3] == pytest.approx(hand.pose[2, 3], abs=1e-12)


def test_a_tool_turns_with_the_device_and_what_turns_it_back_is_felt():
    """A slab that is pressed on the block with one end: the block turns it about its grip."""
    simulation = ball_on_block()
    slab = generate.box((0.12, 0.02, 0.02))
    bodies = [simulation.bodies[0], Body(slab.replace(vertices=slab.vertices + [0.05, 0, 0.07]), fixed=True, name="s")]
    simulation = Simulation(bodies, dt=0.01, gravity=(0.0, 0.0, 0.0), device="cpu")
    hand = ToolHand(simulation, "s", SimulatedDevice(down(0.03)))
    felt, load = felt_in(hand, 1.0)
    assert load[-1, 4] > 0.02  # N m about y: the block is on the side of -x
    assert felt[-1, 4] == pytest.approx(load[-1, 4], rel=0.05)
    rest, now = bodies[1].shape.vertices, simulation["s"].positions
    turn, move = hand.pose[:3, :3], hand.pose[:3, 3]
    assert turn[2, 0] < -0.003  # the end that is free goes down
    np.testing.assert_allclose(rest @ turn.T + move, now, atol=1e-5)


def test_the_torque_is_that_about_the_grip():
    loads = []
    for grip in ([0.0, 0.0, 0.08], [0.03, -0.02, 0.1]):
        hand = ToolHand(ball_on_block(), "ball", SimulatedDevice(down(0.04)), grip=grip, free_axes=[1, 1, 1, 0, 0, 0])
        hand.run(0.8)
        loads.append(hand.load)
    np.testing.assert_allclose(loads[0][:3], loads[1][:3], atol=1e-9)
    arm = np.array([0.0, 0.0, 0.08]) - [0.03, -0.02, 0.1]
    np.testing.assert_allclose(loads[1][3:], loads[0][3:] + np.cross(arm, loads[0][:3]), atol=1e-9)


def test_a_tool_is_replayed_to_the_last_bit(tmp_path):
    file, told = tmp_path / "tool.csv", []
    for device in (TraceRecorder(SimulatedDevice(down(0.04, slide=0.05)), file), None):
        hand = ToolHand(ball_on_block(), "ball", TraceDevice(file) if device is None else device)
        told.append(felt_in(hand, 0.9)[0])
        hand.close()
    assert np.abs(told[0]).max() > 1.0
    assert np.array_equal(*told)


class Held:
    """A device that is held at a place."""

    measured_axes = forced_axes = (True,) * 6

    def __init__(self):
        self.at = np.zeros(3)

    def read(self, time):
        pose = np.eye(4)
        pose[:3, 3] = self.at
        return DeviceState(pose)

    def write(self, force, torque):
        pass

    def close(self):
        pass


@pytest.mark.parametrize("most", [np.inf, 1.5])
def test_between_two_steps_the_load_is_a_spring_that_pushes_no_more_than_it_may(most):
    device = Held()
    settings = coupling_settings(
        1000.0, (True,) * 6, (True,) * 6, 0.01, stiffness=1000.0, damping=None, turn_stiffness=None, turn_damping=None,
        mass=0.0, metaphor="spring", law="coupling", scale=1.0, most_force=None, most_change=300.0, tank=None,
        fading=0.01, most_jump=0.1, delay=0.0,
    )  # fmt: skip
    fast = FastLoop(device, settings, np.zeros(3), np.eye(3), level=np.inf, ticks_per_look=10, clutch_buttons=0)
    rows = ContactRowSet(
        np.zeros(3), np.eye(3), np.zeros((0, 6)), np.zeros(0), 0.1, load=np.array([0.5, 0, 0, 0, 0, 0]),
        load_stiffness=np.array([500.0, 0, 0, 0, 0, 0]), most_load=most,
    )  # fmt: skip
    assert ContactRowSet.unpacked(rows.packed()).most_load == most
    fast.put(ContactRowSet.unpacked(rows.packed()))
    for tick in range(400):
        device.at = np.array([-min(2e-5 * tick, 6e-3), 0.0, 0.0])
        fast.tick(1e-3 * tick)
    # 1000 (x - d) = 0.5 - 500 x where it is a spring
    x = (0.5 - 6.0) / 1500.0
    assert fast.force[0] == pytest.approx(min(0.5 - 500.0 * x, most), rel=1e-6)


def test_the_secant_is_the_nearest_diagonal_that_explains_a_change(rng):
    for _ in range(50):
        known, way, less = rng.uniform(0.0, 5.0, 3), rng.normal(size=3), rng.normal(size=3)
        found = secant(known, way, less)
        assert way @ (found * way) == pytest.approx(way @ less)
        for _ in range(20):
            other = known + rng.normal(size=3)
            other += (way @ less - other @ way**2) / (way**2).sum()  # explains it as well
            assert np.linalg.norm(found - known) <= np.linalg.norm(other - known) + 1e-12
    np.testing.assert_allclose(secant(np.zeros(3), np.array([0.0, 0.0, 2.0]), np.array([9.0, 9.0, 6.0])), [0, 0, 3.0])


def test_a_step_that_fails_leaves_the_tool_where_it_is_and_is_told(monkeypatch):
    hand = ToolHand(ball_on_block(), "ball", SimulatedDevice(down(0.03)))
    hand.run(0.3)
    there, step = hand.pose, hand.simulation.step

    def fail():
        raise TangereError("the walls would touch")

    monkeypatch.setattr(hand.simulation, "step", fail)
    hand.run(0.05)
    assert hand.why_stopped == "the walls would touch"
    assert hand.report.walks_stopped == 5
    assert np.array_equal(hand.pose, there)
    monkeypatch.setattr(hand.simulation, "step", step)
    hand.run(0.05)
    assert hand.why_stopped is None
    assert hand.pose[2, 3] < there[2, 3] - 1e-3


def test_what_cannot_be_held_or_used_is_told():
    simulation = ball_on_block()
    with pytest.raises(InputError, match="deforms: a hand holds tools"):
        ToolHand(simulation, "block", SimulatedDevice(np.eye(4)))
    with pytest.raises(InputError, match="no body called 'knife'"):
        ToolHand(simulation, "knife", SimulatedDevice(np.eye(4)))
    with pytest.raises(InputError, match="step of the simulation"):
        ToolHand(ball_on_block(dt=0.0105), "ball", SimulatedDevice(np.eye(4)))
    with pytest.raises(InputError, match="most_way must be positive"):
        ToolHand(simulation, "ball", SimulatedDevice(np.eye(4)), most_way=0.0)
    with pytest.raises(InputError, match="six truth values"):
        ToolHand(simulation, "ball", SimulatedDevice(np.eye(4)), free_axes=(1, 1, 1))
    with pytest.raises(InputError, match="simulation must be"):
        ToolHand(None, "ball", SimulatedDevice(np.eye(4)))
    hand = ToolHand(simulation, "ball", SimulatedDevice(np.eye(4)))
    with pytest.raises(UnsupportedError, match="place"):
        hand.place(np.eye(4))
    with pytest.raises(InputError, match="not one of the scenes"):
        led_tool("saw")


@pytest.mark.cuda
def test_bodies_on_cuda_are_felt_as_those_on_the_cpu():
    felt = []
    for device in ("cpu", "cuda:0"):
        made = led_tool("press", device=device)
        felt.append(felt_in(made.held_by(SimulatedDevice(made.way)), 0.8)[0])
    assert np.abs(felt[0] - felt[1]).max() < 0.05

"""Simulated devices and traces; devices that are lost, tell nonsense or jump."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hand.test_hand import cube_on_table, posed, pressed
from tangere.hand import DeviceLostError, DeviceState, Hand, SimulatedDevice, TraceDevice, TraceRecorder
from tangere.motion import Path, Twist
from tangere.runtime import InputError


def test_a_simulated_handle_moves_as_its_equations_say():
    """m x'' = k (w - x) - (c + b) x' + f, by SciPy; the force comes 3 ms late."""
    device = SimulatedDevice(lambda t: posed(0.02 * np.sin(8.0 * t)), delay=0.003, mass=0.3, friction=0.5)
    places = []
    for tick in range(1, 401):
        places.append(device.read(1e-3 * tick).pose[0, 3])
        device.write(np.array([0.5 if tick >= 100 else 0.0, 0.0, 0.0]), np.zeros(3))

    def slope(t, state):
        push = 0.5 if t >= 0.103 else 0.0
        return state[1], (400.0 * (0.02 * np.sin(8.0 * t) - state[0]) - 4.5 * state[1] + push) / 0.3

    true = solve_ivp(slope, (0.0, 0.4), [0.0, 0.0], t_eval=1e-3 * np.arange(1, 401), max_step=1e-4, rtol=1e-9)
    assert np.abs(np.array(places) - true.y[0]).max() < 3e-5


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.064, 0.35])
def test_a_force_acts_after_the_delay_however_long_and_how_often_forces_are_written(delay):
    """A free handle without friction: its speed is the sum of the forces that have begun to act, over its mass."""
    device = SimulatedDevice(np.eye(4), delay=delay, hand_stiffness=0.0, hand_damping=0.0, friction=0.0, mass=1.0)
    for tick in range(600):
        state = device.read(1e-3 * tick)
        begun = max(0.0, 1e-3 * tick - delay)  # the force that was written at t is t
        assert state.velocity[0] == pytest.approx(0.5 * begun * max(0.0, begun - 1e-3), abs=1e-9)
        device.write(np.array([7.0, 0.0, 0.0]), np.zeros(3))  # instead of which there is another at the same time
        device.write(np.array([1e-3 * tick, 0.0, 0.0]), np.zeros(3))


def test_a_delay_that_is_too_long_is_refused():
    with pytest.raises(InputError, match="delay must be at most 10 s, not 11"):
        SimulatedDevice(np.eye(4), delay=11.0)


def test_a_handle_turns_as_it_is_wanted_and_its_account_is_the_work_of_the_forces():
    device, work, before = (
        SimulatedDevice(lambda t: Twist(np.eye(4), np.zeros(3), [0, 0, t]).pose(1.0), delay=0.0),
        0.0,
        None,
    )
    for tick in range(1, 1001):
        state = device.read(1e-3 * tick)
        if before is not None:
            way = state.pose[:3, :3] @ before.T
            work += 0.01 * 0.5 * (way[1, 0] - way[0, 1])
        before = state.pose[:3, :3]
        device.write(np.zeros(3), np.array([0.0, 0.0, 0.01]))
    angle = np.arctan2(before[1, 0], before[0, 0])
    assert angle == pytest.approx(1.0 - (0.009 - 0.01) / 0.8, abs=5e-3)  # it trails by damping, and is pushed
    assert device.given == pytest.approx(work, rel=1e-4)


def test_axes_that_are_no_axes_are_refused():
    with pytest.raises(InputError, match="axes must be six truth values"):
        SimulatedDevice(np.eye(4), measured_axes=(True, False))
    with pytest.raises(InputError, match="path must be"):
        SimulatedDevice(np.eye(3))


def test_a_recorded_run_is_replayed_to_the_last_bit(tmp_path):
    file, forces = tmp_path / "run.csv", {}
    start = posed(z=0.12)

    def path(time):
        return Twist(start, [0.03 * time, 0.0, -0.04 * time], [0.2 * time, 0.1, 0.05 * time]).pose(1.0)

    buttons = lambda time: int(0.5 < time < 0.6)  # noqa: E731
    recorder = TraceRecorder(SimulatedDevice(path, buttons=buttons), file)
    ends = []
    for name, device in (("run", recorder), ("replay", None)):
        hand = Hand(cube_on_table(0.12), "cube", TraceDevice(file) if device is None else device)
        told = forces.setdefault(name, [])
        hand.run(0.8, after_tick=lambda time, hand=hand, told=told: told.append(np.r_[hand.force, hand.torque]))
        hand.close()
        ends.append(hand.pose)
    assert np.array_equal(np.array(forces["run"]), np.array(forces["replay"]))
    assert np.array_equal(*ends)
    assert np.abs(forces["run"][-1]).max() > 0.1


def test_a_path_file_is_a_trace(tmp_path):
    file = tmp_path / "path.csv"
    Path([posed(z=0.5), posed(0.1, z=0.5)], clock=(0.0, 1.0)).save(file)
    device = TraceDevice(file)
    state = device.read(0.25)
    assert state.pose[0, 3] == pytest.approx(0.025)
    assert state.velocity == pytest.approx([0.1, 0, 0, 0, 0, 0])
    assert device.end == 1.0
    assert (device.read(2.0).velocity == 0.0).all()
    assert device.read(2.0).pose[0, 3] == 0.1
    hand = Hand(cube_on_table(0.5), "cube", device)
    hand.run(1.2)
    assert hand.pose[0, 3] == pytest.approx(0.1, abs=1e-4)
    assert len(device.written) == 1200


def test_a_trace_that_cannot_be_read_says_why(tmp_path):
    file = tmp_path / "bad.csv"
    with pytest.raises(InputError, match="no such file"):
        TraceDevice(file)
    header = "t,x,y,z,qw,qx,qy,qz,vx,vy,vz,wx,wy,wz,buttons\n"
    for text, told in (
        ("0,0,0,0,1,0,0,0,0,0,0,0,0,0,zero\n", "line 2 is not 15 numbers"),
        ("", "nothing in it"),
        ("0,0,0,0,1,0,0,0,0,0,0,0,0,nan,0\n", "line 2 has a number that is none"),
        (2 * "0,0,0,0,1,0,0,0,0,0,0,0,0,0,0\n", "times must rise"),
        ("0,0,0,0,1,0,0,0,0,0,0,0,0,0,0.5\n", "line 2 has buttons 0.5, which is no whole number"),
        ("0,0,0,0,1,0,0,0,0,0,0,0,0,0,1e30\n", "line 2 has buttons 1e[+]30, which is no whole number"),
    ):
        file.write_text(header + text)
        with pytest.raises(InputError, match=told):
            TraceDevice(file)


class FailingDevice(SimulatedDevice):
    """Presses, and at 1 s does something that no device should do."""

    def __init__(self, fault):
        super().__init__(pressed(0.03))
        self.fault = fault

    def read(self, time):
        state = super().read(time)
        if 1.0 <= time < 1.2:
            if self.fault == "silent":
                raise DeviceLostError("no answer")
            pose, velocity = state.pose.copy(), state.velocity.copy()
            if self.fault == "nan":
                velocity[1] = np.nan
            elif self.fault == "mirror":
                pose[:3, 0] *= -1.0
            else:
                pose[0, 3] += 0.5
            return DeviceState(pose, velocity)
        return state


@pytest.mark.parametrize(
    ("fault", "why"),
    [("silent", "did not answer"), ("nan", "that is none"), ("mirror", "that is none"), ("jump", "jumped")],
)
def test_the_force_of_a_lost_device_fades_and_nothing_moves_further(fault, why):
    hand, forces = Hand(cube_on_table(), "cube", FailingDevice(fault)), []
    hand.run(0.99)
    stays, before = hand.pose, hand.force[2]
    hand.run(0.31, after_tick=lambda time: forces.append(hand.force))
    forces = np.array(forces)
    assert before > 5.0
    assert np.isfinite(forces).all()
    assert np.abs(np.diff(forces[:, 2])).max() < 0.025 * before  # 50 ms to nothing
    assert (forces[100:] == 0.0).all()
    assert why in hand.report.lost
    assert why in str(hand.report)
    assert np.abs(hand.pose - stays).max() < 1e-6
    assert not hand.holding
    hand.resume()  # from where both are: without a jump
    hand.run(0.1, after_tick=lambda time: None)
    assert hand.report.lost is None
    assert hand.holding
    assert np.abs(hand.pose[:3, 3] - stays[:3, 3]).max() < 2e-3


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OSError("usb gone"), "OSError: usb gone"),
        (ZeroDivisionError("driver bug"), "driver bug"),
        (None, "NoneType"),
        (DeviceState(np.eye(3)), "IndexError"),
    ],
)
def test_a_driver_that_raises_or_tells_anything_is_let_go_and_its_words_are_kept(fault, told):
    class Driver(SimulatedDevice):
        def read(self, time):
            if time < 0.5:
                return super().read(time)
            if isinstance(fault, Exception):
                raise fault
            return fault

    hand, forces = Hand(cube_on_table(), "cube", Driver(pressed(0.06))), []
    hand.run(1.0, after_tick=lambda time: forces.append(hand.force[2]))
    assert max(forces) > 1.0
    assert hand.force[2] == 0.0
    assert told in hand.report.lost


def test_whatever_ends_a_run_leaves_no_force_on_the_device():
    written = []

    class Noted(SimulatedDevice):
        def write(self, force, torque):
            written.append(force.copy())
            super().write(force, torque)

    hand = Hand(cube_on_table(), "cube", Noted(pressed(0.06)))

    def stop(time):
        if time > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hand.run(2.0, after_tick=stop)
    assert written[-2][2] > 1.0
    assert not written[-1].any()
    for tick in range(2000):
        state = hand.device.read(0.7 + 1e-3 * tick)
    assert state.pose[2, 3] == pytest.approx(0.05, abs=1e-6)  # where it is wanted: nothing pushes it
    hand.run(0.3)
    assert hand.force[2] > 1.0  # and it can go on

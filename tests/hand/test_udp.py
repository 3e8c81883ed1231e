"""A driver in another process: what it says arrives, nonsense does not, silence is noticed."""

from __future__ import annotations

import socket
import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from hand.test_hand import cube_on_table, posed
from tangere.hand import DeviceLostError, ForcePacket, Hand, StatePacket, UdpDevice, UdpDriver
from tangere.runtime import InputError


@pytest.fixture
def listener():
    made = UdpDevice(0, timeout=5.0)
    yield made
    made.close()


@pytest.fixture
def driver(listener):
    made = UdpDriver(listener.port)
    yield made
    made.close()


def pose(seed: int = 0) -> np.ndarray:
    made = np.eye(4)
    made[:3, :3] = Rotation.random(random_state=seed).as_matrix()
    made[:3, 3] = [0.1, -0.2, 0.3]
    return made


def read(device: UdpDevice, received: int):
    """Read when so many packets have come; the loopback interface loses none of a few."""
    end = time.monotonic() + 5.0
    while device.received + sum(device.refused.values()) < received:
        assert time.monotonic() < end
        device._take()
    return device.read(0.5)


def test_a_state_arrives_and_a_force_goes_back_that_says_which_state_it_answers(listener, driver):
    driver.send(pose(1), np.arange(6.0), buttons=5)
    state = read(listener, 1)
    np.testing.assert_allclose(state.pose, pose(1), atol=1e-12)
    np.testing.assert_array_equal(state.velocity, np.arange(6.0))
    assert state.buttons == 5
    listener.write(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]))
    back = driver.force(2.0)
    assert (back.number, back.answers, back.time) == (1, 1, 0.5)
    np.testing.assert_array_equal(np.r_[back.force, back.torque], [1.0, 2.0, 3.0, 0.1, 0.2, 0.3])


def test_the_bytes_are_those_of_the_page(listener):
    """By offsets, as a driver in another language writes them."""
    packet = bytearray(136)
    packet[0:8] = b"TGHD\x01\x01" + bytes([0b111111, 0b000111])
    struct.pack_into("<II", packet, 8, 7, 1)
    struct.pack_into("<d", packet, 16, 12.5)
    struct.pack_into("<3d", packet, 24, 0.1, 0.2, 0.3)
    struct.pack_into("<4d", packet, 48, 0.0, 1.0, 0.0, 0.0)
    struct.pack_into("<6d", packet, 80, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.sendto(packet, ("127.0.0.1", listener.port))
        state = read(listener, 1)
        assert state.pose[:3, 3] == pytest.approx([0.1, 0.2, 0.3])
        np.testing.assert_allclose(state.pose[:3, :3], np.diag([1.0, -1.0, -1.0]), atol=1e-15)
        assert listener.forced_axes == (True, True, True, False, False, False)
        listener.write(np.ones(3), np.ones(3))
        other.settimeout(2.0)
        back = other.recv(200)
    assert back[:8] == b"TGHD\x01\x02\x00\x00"
    assert struct.unpack_from("<II", back, 8) == (1, 7)
    assert struct.unpack_from("<3d", back, 24) == (1.0, 1.0, 1.0)
    assert struct.unpack_from("<3d", back, 48) == (0.0, 0.0, 0.0)  # it cannot turn the handle
    assert len(back) == 72


def test_of_several_the_newest_counts_and_late_ones_are_left_out(listener, driver):
    for number in (3, 5, 4, 5, 1):
        driver.send_bytes(StatePacket(np.full(3, number), [1, 0, 0, 0], np.zeros(6), number=number).packed())
    assert read(listener, 5).pose[0, 3] == 5.0
    assert listener.refused == {"old": 3}
    driver.send_bytes(StatePacket(np.zeros(3), [1, 0, 0, 0], np.zeros(6), number=2**32 - 1).packed())
    read(listener, 6)
    assert listener.refused == {"old": 4}


def test_numbers_may_go_round(listener, driver):
    for number in (2**32 - 2, 2**32 - 1, 0, 1):
        driver.send_bytes(StatePacket(np.full(3, number % 7), [1, 0, 0, 0], np.zeros(6), number=number).packed())
    assert read(listener, 4).pose[0, 3] == 1.0
    assert not listener.refused


def test_nonsense_is_counted_and_changes_nothing(listener, driver):
    driver.send(pose(2))
    good = StatePacket(np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(6), number=9).packed()
    hurt = bytearray(good)
    struct.pack_into("<d", hurt, 24, float("nan"))
    driver.send_bytes(bytes(hurt))
    struct.pack_into("<4d", hurt, 48, 0.5, 0.0, 0.0, 0.0)
    struct.pack_into("<d", hurt, 24, 0.0)
    driver.send_bytes(bytes(hurt))
    driver.send_bytes(good[:-1])
    driver.send_bytes(b"")
    driver.send_bytes(b"HTTP" + good[4:])
    driver.send_bytes(good[:4] + b"\x02" + good[5:])  # another version
    state = read(listener, 7)
    np.testing.assert_allclose(state.pose, pose(2), atol=1e-12)
    assert listener.refused == {"not finite": 1, "quaternion": 1, "size": 2, "head": 2}


@given(st.binary(max_size=200))
def test_no_bytes_can_break_the_reading_of_packets(packet):
    assert isinstance(StatePacket.unpacked(packet), str | StatePacket)
    assert isinstance(ForcePacket.unpacked(packet), str | ForcePacket)


def test_a_driver_that_has_not_spoken_or_is_silent_is_lost_and_may_come_back():
    device = UdpDevice(0, timeout=0.05)
    with pytest.raises(DeviceLostError, match="yet"):
        device.read(0.0)
    with pytest.raises(DeviceLostError, match="no driver has spoken"):
        device.wait(0.01)
    driver = UdpDriver(device.port)
    driver.send(pose())
    device.wait(5.0)
    device.read(0.0)
    time.sleep(0.1)
    driver.send_bytes(b"nonsense does not keep it alive")
    with pytest.raises(DeviceLostError, match=r"silent for 0\.\d+ s \(1 size\)"):
        read(device, 2)
    driver.send(pose(4))
    assert read(device, 3).pose == pytest.approx(pose(4))
    driver.close()
    device.close()
    device.close()


def test_a_second_driver_is_not_heard_while_the_first_speaks_and_takes_over_when_it_is_silent():
    device = UdpDevice(0, timeout=0.2)
    first, second = UdpDriver(device.port), UdpDriver(device.port)
    for _ in range(5):
        first.send(pose(1))
    read(device, 5)
    second.send(pose(2))
    assert read(device, 6).pose == pytest.approx(pose(1))
    assert device.refused == {"stranger": 1}
    time.sleep(0.25)
    second.send(pose(2))
    assert read(device, 7).pose == pytest.approx(pose(2))
    device.write(np.ones(3), np.zeros(3))
    assert second.force(2.0) is not None
    assert first.force(0.0) is None
    for one in (first, second, device):
        one.close()


def test_a_port_that_is_taken_or_none_is_refused(listener):
    with pytest.raises(InputError, match="port"):
        UdpDevice(listener.port)
    with pytest.raises(InputError, match="port"):
        UdpDevice(70_000)
    with pytest.raises(InputError, match="timeout"):
        UdpDevice(0, timeout=0.0)
    with pytest.raises(InputError, match="port must be at most 65535"):
        UdpDriver(70_000)


def test_what_is_not_measured_stands_still_as_it_was_at_first(listener):
    driver = UdpDriver(listener.port, measured_axes=(True, True, False, False, False, True))
    driver.send(pose(1), np.ones(6))
    first = read(listener, 1)
    turned = Rotation.from_rotvec([0.1, 0.2, 0.5]).as_matrix()
    there = pose(1)
    there[:3, :3], there[:3, 3] = turned @ there[:3, :3], [0.4, 0.5, 0.6]
    driver.send(there, np.ones(6))
    state = read(listener, 2)
    driver.close()
    np.testing.assert_allclose(first.pose, pose(1), atol=1e-12)
    np.testing.assert_allclose(state.pose[:3, 3], [0.4, 0.5, 0.3])
    about_z = Rotation.from_rotvec([0.0, 0.0, 0.5]).as_matrix()
    np.testing.assert_allclose(state.pose[:3, :3], about_z @ pose(1)[:3, :3], atol=1e-12)
    np.testing.assert_array_equal(state.velocity, [1.0, 1.0, 0.0, 0.0, 0.0, 1.0])


def test_a_hand_counts_the_work_on_the_axes_that_a_driver_tells_later(listener):
    """The hand is made before the driver speaks: of its torques, which nobody pushes with, no work is counted."""
    driver, hand = (
        UdpDriver(listener.port, forced_axes=3 * (True,) + 3 * (False,)),
        Hand(cube_on_table(), "cube", listener),
    )
    driver.send(posed(z=0.11))
    listener.wait(5.0)
    work, before = 0.0, np.zeros(3)
    for tick in range(1, 401):
        pressed = posed(z=0.11 - 1e-4 * min(tick, 300))
        pressed[:3, :3] = Rotation.from_rotvec([2e-3 * tick, 0.0, 0.0]).as_matrix()
        driver.send(pressed, np.array([0.0, 0.0, -0.1 if tick < 300 else 0.0, 2.0, 0.0, 0.0]))
        read(listener, tick + 1)
        work += before[2] * (-1e-4 if tick <= 300 else 0.0)
        hand.run(1e-3)
        before = hand.force
    driver.close()
    assert np.abs(hand.torque).max() == 0.0
    assert hand.force[2] > 1.0
    assert hand.report.given == pytest.approx(work, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((np.eye(3),), "pose must have shape"),
        ((np.eye(4), np.zeros(3)), "velocity must be six numbers"),
        ((np.eye(4), None, 0.5), "buttons must be a whole number"),
    ],
)
def test_a_driver_is_told_what_is_wrong_with_what_it_sends(driver, arguments, told):
    with pytest.raises(InputError, match=told):
        driver.send(*arguments)

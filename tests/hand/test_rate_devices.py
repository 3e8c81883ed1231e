"""Keys, gamepads and caps: deflections become velocities, and velocities poses; the integral is SciPy's."""

from __future__ import annotations

import struct
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tangere.hand import CapReports, DeviceLostError, GamepadDevice, KeyboardDevice, SpaceMouseDevice
from tangere.hand.devices.handle_motion import FollowingHandle, turn_of, vector_of_turn
from tangere.hand.devices.spacemouse import first_spacemouse
from tangere.runtime import InputError, MissingExtraError


@given(st.lists(st.floats(-3.1, 3.1), min_size=3, max_size=3))
def test_turns_and_their_vectors_are_those_of_scipy(vector):
    vector = np.array(vector)
    turn = turn_of(vector)
    np.testing.assert_allclose(turn, Rotation.from_rotvec(vector).as_matrix(), atol=1e-9)
    back = vector_of_turn(turn)
    np.testing.assert_allclose(turn_of(back), turn, atol=1e-7)
    assert np.linalg.norm(back) <= np.pi + 1e-9


def test_the_vector_of_half_a_turn_is_half_a_turn():
    for axis in (*np.eye(3), np.array([0.6, 0.0, -0.8])):
        np.testing.assert_allclose(np.abs(vector_of_turn(turn_of(np.pi * axis))), np.pi * np.abs(axis), atol=1e-6)


def test_a_key_that_is_held_moves_at_the_speed_and_its_velocity_is_the_way_by_the_time():
    keyboard = KeyboardDevice(speed=0.2, spin=1.5, easing=0.03)
    keyboard.hold({"ArrowUp", "KeyQ", "KeyZ"})
    keyboard.read(0.0)
    states = [keyboard.read(0.001 * k) for k in range(1, 1001)]
    way = np.diff([state.pose[:3, 3] for state in states], axis=0) / 1e-3
    np.testing.assert_allclose(way, [state.velocity[:3] for state in states[1:]], atol=1e-9)
    assert states[-1].velocity == pytest.approx([0.0, 0.2, 0.0, 0.0, 0.0, 1.5], abs=1e-9)
    # What easing takes is the velocity times its time; the turn is about one axis, so it adds up.
    assert states[-1].pose[1, 3] == pytest.approx(0.2 * (1.0 - 0.03), rel=0.02)
    turned = Rotation.from_matrix(states[-1].pose[:3, :3]).as_rotvec()
    assert turned == pytest.approx([0.0, 0.0, 1.5 * (1.0 - 0.03)], rel=0.02)
    keyboard.hold(())
    stopped = [keyboard.read(1.0 + 0.001 * k) for k in range(1, 400)][-1]
    assert np.abs(stopped.velocity).max() < 1e-5


def test_opposite_keys_cancel_space_is_a_button_and_the_axes_are_those_of_the_camera():
    keyboard = KeyboardDevice(speed=1.0, easing=0.0)
    keyboard.look_from(Rotation.from_euler("z", 90, degrees=True).as_matrix())
    keyboard.read(0.0)
    keyboard.hold({"ArrowLeft", "ArrowRight", "Space"})
    state = keyboard.read(0.05)
    assert state.buttons == 1
    assert not state.velocity.any()
    keyboard.hold({"ArrowRight"})
    assert keyboard.read(0.10).velocity[:3] == pytest.approx([0.0, 1.0, 0.0])


def test_who_was_away_does_not_find_the_part_elsewhere():
    keyboard = KeyboardDevice(speed=1.0, easing=0.0)
    keyboard.hold({"ArrowRight"})
    keyboard.read(0.0)
    assert keyboard.read(60.0).pose[0, 3] == pytest.approx(0.1)
    assert keyboard.read(59.0).pose[0, 3] == pytest.approx(0.1)  # nor does a clock that goes back move it


def test_a_gamepad_has_a_dead_zone_full_deflection_is_full_speed_and_the_clutch_is_under_the_thumb():
    pad = GamepadDevice(speed=0.5, spin=2.0, dead=0.1, easing=0.0)
    pad.read(0.0)
    pad.feed([0.09, -0.05, 0.0, 0.1], [0.0] * 17)
    assert not pad.read(0.01).velocity.any()
    pad.feed([1.0, -1.0, 0.55, -1.0], [1.0, 0, 0, 0, 1.0, 0, 0, 1.0])
    state = pad.read(0.02)
    assert state.velocity == pytest.approx([0.5, 0.5, -0.5, -2.0, 1.0, 2.0])
    assert state.buttons == 1
    pad.feed([0.0, 0.0], [])  # one with a single stick
    assert not pad.read(0.03).velocity.any()
    pad.feed([1.0, 0.0, 0.0, 0.0], [])
    pad.rest()
    assert not pad.read(0.04).velocity.any()
    with pytest.raises(InputError, match="finite"):
        pad.feed([np.nan, 0.0], [])


#: Reports of a SpaceNavigator, translation and rotation in turn, and its buttons: what its driver tells of the motions
#: t(-7, 0, 10), r(-29, 0, -14), t(0, -129, 0), r(-37, 0, -111), a press and a release.
NAVIGATOR = [
    "01 f9 ff 00 00 0a 00",
    "02 e3 ff 00 00 f2 ff",
    "01 00 00 7f ff 00 00",
    "02 db ff 00 00 91 ff",
    "03 01 00",
    "03 00 00",
]


def test_reports_of_an_older_cap_come_in_two_parts():
    reports, told = CapReports(), []
    for report in NAVIGATOR:
        reports.take(bytes.fromhex(report))
        told.append((reports.deflection * 350.0, reports.buttons))
    np.testing.assert_allclose(told[0][0], [-7, -10, 0, 0, 0, 0])
    np.testing.assert_allclose(told[1][0], [-7, -10, 0, -29, 14, 0])
    np.testing.assert_allclose(told[2][0], [0, 0, -129, -29, 14, 0])
    np.testing.assert_allclose(told[3][0], [0, 0, -129, -37, 111, 0])
    assert [buttons for _, buttons in told[3:]] == [0, 1, 0]


def test_reports_of_a_newer_cap_have_all_six_and_others_are_left_out():
    reports = CapReports()
    reports.take(bytes([1]) + struct.pack("<6h", 350, -175, 0, 0, 700, -350))
    assert reports.deflection == pytest.approx([1.0, 0.0, -0.5, 0.0, 1.0, 1.0])
    reports.take(bytes([0x17, 100]))  # its battery
    reports.take(bytes([3, 0, 0, 1, 0]))
    assert reports.buttons == 1 << 16
    for short in (b"\x01\x00", b"\x02", b"\x03", b""):
        reports.take(short)
    assert reports.refused == 3
    assert reports.deflection == pytest.approx([1.0, 0.0, -0.5, 0.0, 1.0, 1.0])


@given(st.binary(max_size=70))
def test_no_bytes_can_break_the_reading_of_reports(report):
    reports = CapReports()
    reports.take(report)
    assert np.abs(reports.deflection).max() <= 1.0


class PluggedIn:
    """What hidapi opens: reports, then an end."""

    def __init__(self, reports: list[bytes]) -> None:
        self.reports, self.closed = reports, 0

    def read(self, most: int) -> list[int]:
        if not self.reports:
            raise OSError("read error")
        return list(self.reports.pop(0)[:most])

    def close(self) -> None:
        self.closed += 1


def test_a_cap_moves_the_handle_until_it_is_unplugged():
    reports = [
        bytes([1]) + struct.pack("<6h", 350, 0, 0, 0, 0, 0),
        b"",
        b"",
        b"",
        b"",
    ]  # a reading ends with an empty one
    opened = PluggedIn(reports)
    mouse = SpaceMouseDevice(opened, speed=0.3, easing=0.0, dead=0.0)
    mouse.read(0.0)
    assert mouse.read(0.1).pose[0, 3] == pytest.approx(0.03)
    mouse.read(0.2)
    mouse.read(0.3)
    with pytest.raises(DeviceLostError, match="SpaceMouse"):
        mouse.read(0.4)
    mouse.close()
    assert opened.closed == 1


def test_the_first_cap_that_is_plugged_in_is_opened_and_other_things_are_not(monkeypatch):
    opened = []

    class Opening:
        def open_path(self, path: bytes) -> None:
            opened.append(path)
            if path == b"locked":
                raise OSError("open failed")

        def set_nonblocking(self, on: bool) -> None:
            opened.append(on)

    found = [
        {"vendor_id": 0x046D, "product_id": 0xC52B, "usage_page": 1, "usage": 2, "path": b"a mouse"},
        {"vendor_id": 0x256F, "product_id": 0xC635, "usage_page": 1, "usage": 6, "path": b"keys of a cap"},
        {"vendor_id": 0x256F, "product_id": 0xC635, "usage_page": 1, "usage": 8, "path": b"a cap"},
    ]
    fake = types.SimpleNamespace(enumerate=lambda: found, device=Opening)
    monkeypatch.setitem(sys.modules, "hid", fake)
    first_spacemouse()
    assert opened == [b"a cap", True]
    found[2]["path"] = b"locked"
    with pytest.raises(DeviceLostError, match="permission"):
        first_spacemouse()
    found.clear()
    with pytest.raises(DeviceLostError, match="no SpaceMouse"):
        first_spacemouse()
    monkeypatch.setitem(sys.modules, "hid", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[device\]"):
        SpaceMouseDevice()


def test_a_handle_settles_within_its_time_never_overshoots_and_keeps_its_speed():
    handle = FollowingHandle(settling=0.016, most_speed=3.0)
    target = np.eye(4)
    target[:3, 3], target[:3, :3] = [0.01, 0.0, 0.0], turn_of(np.array([0.0, 0.1, 0.0]))
    handle.follow(target, 0.0)
    ways = []
    for k in range(1, 60):
        handle.follow(target, 0.001 * k)
        ways.append([handle.pose[0, 3], vector_of_turn(handle.pose[:3, :3])[1]])
    ways = np.array(ways)
    assert (np.diff(ways, axis=0) >= -1e-12).all()
    assert (ways <= [0.01 + 1e-12, 0.1 + 1e-12]).all()
    assert ways[15] == pytest.approx([0.0095, 0.095], rel=1e-3)
    assert ways[-1] == pytest.approx([0.01, 0.1], rel=1e-3)
    target[0, 3] = 5.0
    before = handle.pose[0, 3]
    handle.follow(target, 0.060)
    for k in range(50):
        handle.follow(target, 0.061 + 0.001 * k)
        assert np.linalg.norm(handle.velocity[:3]) <= 3.0 + 1e-12
    assert handle.pose[0, 3] - before <= 3.0 * 0.052


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: KeyboardDevice(speed=0.0), "speed"),
        (lambda: GamepadDevice(dead=1.0), "dead"),
        (lambda: KeyboardDevice({"KeyX": (7, 1.0)}), "axis 7"),
        (lambda: GamepadDevice(start=np.zeros((3, 3))), "start"),
    ],
)
def test_bad_options_are_refused_by_name(make, named):
    with pytest.raises(InputError, match=named):
        make()

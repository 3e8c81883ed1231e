"""The pointer of a picture: what is under it stays under it, by a projection of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tangere.hand import PointerDevice, Sight
from tangere.runtime import InputError

ASPECT, HALF = 1.6, 0.4


def sight(rng: np.random.Generator) -> Sight:
    return Sight(rng.normal(size=3), Rotation.random(random_state=7).as_matrix(), HALF, ASPECT)


def seen_at(camera: Sight, point: np.ndarray) -> tuple[float, float]:
    """Where a point is in the picture: the projection of a pinhole camera, as matrices have it."""
    right, up, back = camera.axes.T @ (point - camera.eye)
    return 0.5 + 0.5 * right / (-back * HALF * ASPECT), 0.5 - 0.5 * up / (-back * HALF)


def depth_of(camera: Sight, point: np.ndarray) -> float:
    return -float(camera.axes[:, 2] @ (point - camera.eye))


def settled(device: PointerDevice) -> np.ndarray:
    for k in range(400):
        state = device.read(1.0 + 0.001 * k)
    return state.pose


def taken(rng: np.random.Generator, kind: str = "plane", x: float = 0.3, y: float = 0.6):
    camera = sight(rng)
    point = camera.eye + 2.0 * camera.ray(x, y)
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=3).as_matrix()
    pose[:3, 3] = point + [0.1, -0.2, 0.05]
    device = PointerDevice()
    device.read(0.0)
    device.press(pose, point, camera, x, y, kind)
    return device, camera, pose, point, pose[:3, :3].T @ (point - pose[:3, 3])


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.integers(0, 2**31))
def test_the_point_that_was_pressed_stays_under_the_pointer_and_in_its_plane(x, y, seed):
    device, camera, pose, point, local = taken(np.random.default_rng(seed))
    device.drag(x, y)
    target = device._target
    np.testing.assert_array_equal(target[:3, :3], pose[:3, :3])
    there = target[:3, :3] @ local + target[:3, 3]
    assert seen_at(camera, there) == pytest.approx((x, y), abs=1e-9)
    assert depth_of(camera, there) == pytest.approx(depth_of(camera, point))
    assert device.point == pytest.approx(there)


def test_the_wheel_moves_in_depth_and_the_point_stays_under_the_pointer(rng):
    device, camera, _, point, local = taken(rng)
    device.drag(0.7, 0.2, notches=5.0)
    there = device.point
    assert seen_at(camera, there) == pytest.approx((0.7, 0.2), abs=1e-9)
    assert depth_of(camera, there) == pytest.approx(1.1 * depth_of(camera, point))


def test_with_the_modifier_for_depth_it_goes_along_the_direction_of_sight_only(rng):
    device, camera, pose, point, _ = taken(rng, "depth")
    device.drag(0.9, 0.1)  # up is away
    way = device.point - point
    assert np.linalg.norm(np.cross(way, camera.axes[:, 2])) < 1e-12
    assert depth_of(camera, device.point) > depth_of(camera, point)
    device.drag(0.9, 0.8)
    assert depth_of(camera, device.point) < depth_of(camera, point)
    np.testing.assert_array_equal(device._target[:3, :3], pose[:3, :3])


def test_with_the_modifier_for_turns_it_turns_about_the_point_that_was_pressed(rng):
    device, camera, pose, point, local = taken(rng, "turn", 0.3, 0.2)
    device.drag(0.4, 0.2)
    target = device._target
    assert target[:3, :3] @ local + target[:3, 3] == pytest.approx(point)
    turned = Rotation.from_matrix(target[:3, :3] @ pose[:3, :3].T).as_rotvec()
    along = camera.axes.T @ turned
    # To the right: what is in front goes right, about the axis up; the height of the picture is half a turn.
    assert along == pytest.approx([0.0, 0.1 * ASPECT * np.pi, 0.0], abs=1e-9)
    device.drag(0.3, 0.45)  # down: what is in front goes down
    turned = Rotation.from_matrix(device._target[:3, :3] @ pose[:3, :3].T)
    assert camera.axes.T @ turned.as_rotvec() == pytest.approx([0.25 * np.pi, 0.0, 0.0], abs=1e-9)
    near = turned.apply(camera.axes[:, 2])
    assert near @ camera.axes[:, 1] < -0.5
    device.drag(0.3, 0.2, notches=2.0)
    turned = Rotation.from_matrix(device._target[:3, :3] @ pose[:3, :3].T).as_rotvec()
    assert camera.axes.T @ turned == pytest.approx([0.0, 0.0, -np.deg2rad(10.0)], abs=1e-9)
    assert device.point == pytest.approx(point)
    device.turn_to(np.eye(3))
    assert device._target[:3, :3] == pytest.approx(np.eye(3))
    assert device.point == pytest.approx(point)


def test_the_handle_comes_to_what_it_was_told_and_velocities_belong_to_poses(rng):
    device, _, pose, *_ = taken(rng)
    device.drag(0.302, 0.6)
    states = [device.read(0.001 * k) for k in range(1, 200)]
    np.testing.assert_array_equal(states[0].pose, np.eye(4))  # it is taken where the device is
    way = np.diff([state.pose[:3, 3] for state in states], axis=0) / 1e-3
    speeds = np.array([state.velocity[:3] for state in states])
    np.testing.assert_allclose(way, (speeds[1:] + speeds[:-1]) / 2.0, atol=0.1 * np.abs(speeds).max())
    way = device._target[:3, 3] - pose[:3, 3]
    assert states[-1].pose[:3, 3] == pytest.approx(way, abs=1e-6)
    device.turn_to(np.eye(3))
    state = settled(device)
    assert state[:3, :3] == pytest.approx(pose[:3, :3].T, abs=1e-6)
    assert state[:3, 3] == pytest.approx(device._target[:3, 3] - pose[:3, 3], abs=1e-6)
    assert {state.buttons for state in states} == {0}


def test_nothing_is_held_before_a_press_and_after_the_release(rng):
    device, *_ = taken(rng)
    device.drag(0.9, 0.9)
    held = device.read(0.01)
    device.release()
    assert not device.pressed
    after = [device.read(0.02 + 0.001 * k) for k in range(50)]
    assert {state.buttons for state in after} == {1}
    assert after[-1].pose == pytest.approx(after[0].pose)
    assert not after[-1].velocity.any()
    device.drag(0.1, 0.1)
    device.turn_to(np.eye(3))
    assert device.read(0.2).pose == pytest.approx(held.pose, abs=0.05)
    assert device.point is None


def test_a_new_kind_of_drag_goes_on_from_where_the_part_is(rng):
    device, camera, pose, point, local = taken(rng)
    device.drag(0.5, 0.5)
    there = device._target.copy()
    device.press(pose, device.point, camera, 0.5, 0.5, "depth")
    device.drag(0.5, 0.5)
    assert device._target == pytest.approx(there)
    with pytest.raises(InputError, match="kind"):
        device.press(pose, point, camera, 0.5, 0.5, "roll")


def test_numbers_that_are_none_are_not_followed(rng):
    device, *_ = taken(rng)
    device.drag(0.5, 0.5)
    before = device._target.copy()
    device.drag(float("nan"), 0.5)
    np.testing.assert_array_equal(device._target, before)

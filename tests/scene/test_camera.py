"""The camera finds its place: an independent projection says what is inside the picture."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tangere.runtime import InputError
from tangere.scene import Camera


def projected(viewpoint, points, aspect):
    """Picture coordinates from -1 to 1, by homogeneous coordinates and a look-at matrix."""
    half = np.tan(np.radians(viewpoint.field_of_view) / 2.0)
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2], pose[:3, 3] = (
        viewpoint.right,
        viewpoint.up,
        -viewpoint.forward,
        viewpoint.eye,
    )
    seen = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ np.linalg.inv(pose).T
    return seen[:, :2] / -seen[:, 2:3] / (half * aspect, half), -seen[:, 2]


@given(seed=st.integers(0, 10_000), aspect=st.floats(0.5, 2.5), scale=st.sampled_from([1e-6, 1.0, 1e5]))
def test_every_point_is_inside_the_picture_and_the_picture_is_not_far_too_wide(seed, aspect, scale):
    random = np.random.default_rng(seed)
    points = scale * (random.normal(size=(30, 3)) + random.normal(size=3))
    direction = random.normal(size=3)
    viewpoint = Camera(tuple(direction)).placed(points, aspect)
    across, depth = projected(viewpoint, points, aspect)
    assert (depth > 0.0).all()
    assert (np.abs(across) <= 1.0).all()
    assert np.abs(across).max() > 0.75


def test_the_axes_of_a_viewpoint_are_orthonormal_and_up_looks_up():
    viewpoint = Camera((1.0, 2.0, 0.5)).placed(np.eye(3), 1.5)
    frame = np.stack([viewpoint.right, viewpoint.up, viewpoint.forward])
    assert frame @ frame.T == pytest.approx(np.eye(3), abs=1e-14)
    assert viewpoint.up[2] > 0.0
    assert np.cross(viewpoint.right, viewpoint.up) == pytest.approx(-viewpoint.forward)


def test_a_target_stays_in_the_middle_and_zoom_divides_the_distance():
    points = np.random.default_rng(3).normal(size=(20, 3))
    far, near = (Camera(zoom=zoom, target=(0.1, 0.2, 0.3)).placed(points, 1.0) for zoom in (1.0, 4.0))
    assert far.target == pytest.approx([0.1, 0.2, 0.3])
    assert np.linalg.norm(far.eye - far.target) == pytest.approx(4.0 * np.linalg.norm(near.eye - near.target))


def test_a_single_point_can_be_looked_at():
    viewpoint = Camera().placed(np.array([[3.0, 4.0, 5.0]]), 1.0)
    assert np.linalg.norm(viewpoint.eye - viewpoint.target) > 0.0


@pytest.mark.parametrize(
    "hint", [{"direction": (0, 0, 2)}, {"direction": (0, 0, 0)}, {"zoom": 0}, {"field_of_view": 180}]
)
def test_a_camera_that_cannot_look_is_refused(hint):
    with pytest.raises(InputError, match="Camera"):
        Camera(**hint)

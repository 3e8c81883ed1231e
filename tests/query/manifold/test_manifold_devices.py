"""Where poses are, where the work is done, where contacts come back: whatever is mixed, the contacts are the same."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.query.manifold import manifold
from tangere.runtime import InputError, to_numpy
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield

DEVICES = ["cpu", *([pytest.param("cuda", marks=pytest.mark.cuda)] if wp.is_cuda_available() else [])]


def scene(rng, count: int = 100) -> tuple[np.ndarray, Heightfield]:
    field = Heightfield(rng.uniform(0.0, 0.2, (30, 30)), 0.5)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :2, 3] = rng.uniform(1.0, 13.0, (count, 2))
    poses[:, 2, 3] = rng.uniform(0.4, 0.7, count)
    return poses, field


def assert_same(found, expected) -> None:
    assert len(expected.gap)
    for name in ("query", "key", "gap", "point_a", "normal"):
        np.testing.assert_array_equal(to_numpy(getattr(found, name), name, None), getattr(expected, name))


@pytest.mark.parametrize("asked", [None, *DEVICES])
@pytest.mark.parametrize("given", DEVICES)
def test_warp_poses_of_any_device_give_warp_contacts_where_the_work_was_done(given, asked, rng):
    poses, field = scene(rng)
    bodies = Cylinder(0.4, 1.0).at(wp.array(poses, dtype=wp.mat44d, device=given))
    found = manifold(bodies, field, device=asked)
    assert found.gap.device == wp.get_device(asked or given)
    assert_same(found, manifold(Cylinder(0.4, 1.0).at(poses), field, device="cpu"))


@pytest.mark.parametrize("asked", [None, *DEVICES])
def test_sizes_and_worlds_may_be_warp_arrays(asked, rng):
    poses, field = scene(rng)
    radius, world = rng.uniform(0.3, 0.4, len(poses)), np.arange(len(poses), dtype=np.int32) % 2
    device = asked or "cpu"
    bodies = Cylinder(wp.array(radius, dtype=wp.float64, device=device), 1.0).at(poses)
    found = manifold(bodies, [field, field], world=wp.array(world, dtype=wp.int32, device=device), device=asked)
    expected = manifold(Cylinder(radius, 1.0).at(poses), [field, field], world=world, device="cpu")
    assert isinstance(found.gap, np.ndarray)
    assert_same(found, expected)
    np.testing.assert_array_equal(found.body_b, world[found.query])


@pytest.mark.parametrize("asked", [None, *DEVICES])
@pytest.mark.parametrize("given", DEVICES)
def test_torch_tensors_of_any_device_are_taken_and_those_on_a_gpu_stay_there(given, asked, rng):
    torch = pytest.importorskip("torch")
    poses, field = scene(rng)
    heights, tensor = torch.tensor(field.heights, device=given), torch.tensor(poses, device=given)
    bodies = Cylinder(0.4, 1.0).at(tensor)
    found = manifold(bodies, Heightfield(heights, 0.5), device=asked)
    assert_same(found, manifold(Cylinder(0.4, 1.0).at(poses), field, device="cpu"))
    if given == "cuda":
        assert bodies.poses is tensor
        assert found.gap.device.type == (asked or given)
    else:
        assert isinstance(bodies.poses, np.ndarray)


def test_warp_poses_stay_where_they_are_and_place_bodies_once(rng):
    poses = wp.array(scene(rng, 3)[0], dtype=wp.mat44d, device="cpu")
    bodies = Cylinder(0.4, 1.0).at(poses)
    assert bodies.poses is poses
    with pytest.raises(InputError, match="not placed before"):
        bodies.at(poses)
    with pytest.raises(InputError, match="shape"):
        Cylinder(0.4, 1.0).at(wp.zeros((3, 4, 4), dtype=wp.float64, device="cpu"))
    with pytest.raises(InputError, match="one pose for each of 2 bodies"):
        Cylinder(0.4, [1.0, 2.0]).at(poses[:1])
    raised = np.eye(4)
    raised[2, 3] = 1.0
    np.testing.assert_array_equal(bodies.at(raised).poses[:, 2, 3], poses.numpy()[:, 2, 3] + 1.0)


def test_a_device_that_is_not_there_is_refused(rng):
    poses, field = scene(rng, 3)
    with pytest.raises(InputError, match="is not one of: cpu"):
        manifold(Cylinder(0.4, 1.0).at(poses), field, device="cuda:99")

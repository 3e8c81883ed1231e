"""A mesh with a motion: where it is at each time, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import warp as wp

from tangere.motion import Linear
from tangere.runtime import InputError
from tangere.shape import Moving, generate


def test_a_linear_motion_starts_at_the_mesh_and_ends_at_its_goal(rng):
    mesh = generate.torus(512)
    goal = rng.normal(size=mesh.vertices.shape)
    moving = mesh.moving(Linear(goal))
    assert isinstance(moving, Moving)
    assert moving.shape is mesh
    assert np.array_equal(moving.start, mesh.vertices)
    assert np.array_equal(moving.end, goal)
    middle = moving.at(0.25)
    assert np.allclose(middle.vertices, 0.75 * mesh.vertices + 0.25 * goal, rtol=1e-15, atol=1e-15)
    assert middle.topology is mesh.topology


@pytest.mark.parametrize(
    "kind",
    [
        lambda x: x.tolist(),
        lambda x: x.astype(np.float32),
        lambda x: wp.array(x, dtype=wp.vec3d, device="cpu"),
        lambda x: wp.array(x, dtype=wp.float64, device="cpu"),
    ],
    ids=["list", "float32", "warp vectors", "warp numbers"],
)
def test_the_goal_may_be_any_array(kind):
    mesh = generate.box((2.0, 4.0, 8.0))
    assert np.array_equal(mesh.moving(Linear(kind(mesh.vertices * 2.0))).end, mesh.vertices * 2.0)


def test_a_goal_for_another_number_of_vertices_is_refused():
    with pytest.raises(InputError, match="Mesh 'box': has 8 vertices but the motion ends with 7"):
        generate.box().moving(Linear(np.zeros((7, 3))))


def test_what_is_no_motion_is_refused():
    with pytest.raises(InputError, match=r"Mesh 'box': 3.0 is not a motion"):
        generate.box().moving(3.0)


@pytest.mark.parametrize("goal", [np.zeros(3), np.zeros((3, 2)), [[0.0, 0.0], [1.0]]])
def test_a_goal_of_the_wrong_shape_is_refused(goal):
    with pytest.raises(InputError, match="Linear: end positions"):
        Linear(goal)


@pytest.mark.parametrize("time", [-1e-9, 1.0 + 1e-9, np.nan, np.inf])
def test_there_is_no_motion_outside_the_step(time):
    mesh = generate.box()
    with pytest.raises(InputError, match=r"Mesh 'box': a motion is defined for times in \[0, 1\], not"):
        mesh.moving(Linear(mesh.vertices)).at(time)


def test_a_goal_that_is_not_finite_is_refused_when_it_is_reached():
    mesh = generate.box()
    goal = mesh.vertices.copy()
    goal[3, 1] = np.nan
    with pytest.raises(InputError, match="Mesh 'box': vertex 3 is not finite"):
        mesh.moving(Linear(goal)).at(1.0)


def test_a_moving_mesh_is_frozen_pickles_and_has_a_short_repr():
    mesh = generate.box()
    moving = mesh.moving(Linear(mesh.vertices + 1.0))
    with pytest.raises(AttributeError):
        moving.shape = mesh
    assert moving.end[0, 0] == mesh.vertices[0, 0] + 1.0
    assert np.array_equal(pickle.loads(pickle.dumps(moving)).end, moving.end)
    assert repr(moving) == "Moving(Mesh('box', 8 vertices, 12 triangles), Linear)"


def test_an_array_that_is_no_motion_is_named_by_its_shape_with_the_cure():
    mesh = generate.box((1.0, 1.0, 1.0))
    with pytest.raises(InputError, match=r"an array of float64 of shape \(8, 3\) is not a motion.*tg\.Linear\(array\)"):
        mesh.moving(mesh.vertices)

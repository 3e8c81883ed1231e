"""Torch and JAX take the gradients: chains through their own rotations against differences (`make test-extras`)."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.differences import displaced, least_error, random_pose
from query.gradients.test_gradients import A, B, approaching, times
from tangere.runtime import InputError, MissingExtraError


def torch_library():
    return pytest.importorskip("torch", reason="Torch is not installed: make test-extras")


def jax_library():
    jax = pytest.importorskip("jax", reason="JAX is not installed: make test-extras")
    jax.config.update("jax_enable_x64", True)
    return jax


def rotation_of(library, vector):
    """exp of a rotation vector, in the library's own functions."""
    x, y, z = vector[0], vector[1], vector[2]
    zero = 0.0 * x
    rows = [library.stack(row) for row in ([zero, -z, y], [z, zero, -x], [-y, x, zero])]
    across = library.stack(rows)
    angle = library.sqrt(x * x + y * y + z * z)
    sine, cosine = library.sin(angle) / angle, (1.0 - library.cos(angle)) / (angle * angle)
    return library.eye(3, dtype=across.dtype) + sine * across + cosine * (across @ across)


def pose_of(library, numbers):
    """(4, 4) from a place and a rotation vector, (6,)."""
    join = getattr(library, "concatenate", None) or library.cat
    top = join([rotation_of(library, numbers[3:]), numbers[:3, None]], 1)
    last = library.eye(4, dtype=top.dtype)[3:]
    return join([top, last], 0)


def value_of(numbers: np.ndarray) -> np.ndarray:
    """The distances at rows of (n, 6), by SciPy's rotations."""
    poses = np.concatenate([displaced(np.eye(4), row[None]) for row in numbers])
    return tg.distance(A.moving(tg.Rest(poses)), B, device="cpu").upper


NUMBERS = np.array([1.6, 1.2, 0.9, 0.4, -0.3, 0.8])


def test_torch_goes_through_its_own_rotations():
    torch = torch_library()
    given = torch.tensor(NUMBERS, requires_grad=True)
    apart = tg.gradients.torch_distance(A, B, pose_of(torch, given), device="cpu")
    assert float(apart.detach()) == pytest.approx(value_of(NUMBERS[None])[0], abs=1e-12)
    apart.backward()
    assert least_error(given.grad.numpy(), lambda d: value_of(NUMBERS + d), (1e-4, 1e-5)) < 1e-8


def test_torch_sums_over_what_was_broadcast(rng):
    torch = torch_library()
    poses = torch.tensor(np.array([random_pose(rng, 2.4) for _ in range(5)]), requires_grad=True)
    still = torch.eye(4, dtype=torch.float64, requires_grad=True)
    vertices = torch.tensor(np.array(A.vertices), requires_grad=True)
    total = tg.gradients.torch_distance(A, B, poses, still, vertices_a=vertices, device="cpu").sum()
    total.backward()
    assert poses.grad.shape == (5, 4, 4)
    assert still.grad.shape == (4, 4)
    np.testing.assert_allclose(still.grad[:3, 3], -poses.grad[:, :3, 3].sum(dim=0), atol=1e-12)
    assert np.count_nonzero(np.abs(vertices.grad.numpy()).sum(axis=1)) <= 15
    # All vertices shifted in the body's frame are a shift of the pose.
    turned = sum(p[:3, :3].T @ g[:3, 3] for p, g in zip(poses.detach(), poses.grad, strict=True))
    np.testing.assert_allclose(vertices.grad.sum(dim=0), turned, atol=1e-12)


def test_torch_times_and_clearances(rng):
    torch = torch_library()
    start, way, turn = approaching(rng)
    parts = [torch.tensor(np.array([part]), requires_grad=True) for part in (start, way, turn)]
    time = tg.gradients.torch_time(A, B, *parts, device="cpu")
    assert float(time.detach()[0]) == pytest.approx(times(A.moving(tg.Twist(start, way, turn)), B), abs=1e-6)
    time.sum().backward()
    hit = A.moving(tg.Twist(start, way, turn))
    slope = tg.gradients.time(tg.first_contact(hit, B, device="cpu"), hit, B, device="cpu")
    np.testing.assert_allclose(parts[1].grad[0], slope.a.displacement, atol=1e-9)
    np.testing.assert_allclose(parts[2].grad[0], slope.a.rotation, atol=1e-9)
    by_turn = [np.sum(parts[0].grad[0, :3, :3].numpy() * (np.cross(np.eye(3)[k], start[:3, :3].T).T)) for k in range(3)]
    np.testing.assert_allclose(by_turn, slope.a.start[3:], atol=1e-9)
    side = torch.tensor(np.array([way + np.cross(start[:3, 3], [0.0, 0.0, 1.5])]), requires_grad=True)
    near = tg.gradients.torch_clearance(A, B, parts[0], side, parts[2], device="cpu", accuracy=0.01)
    near.sum().backward()
    assert torch.isfinite(near).all()
    assert side.grad.abs().max() > 0.0
    free = torch.tensor(np.array([-way]), requires_grad=True)
    never = tg.gradients.torch_time(A, B, parts[0], free, parts[2], device="cpu")
    never.sum().backward()
    assert torch.isinf(never).all()
    assert not free.grad.any(), "zeros, not NaN"


def test_both_differentiate_what_moves_past_an_analytic_body(rng):
    torch, jax = torch_library(), jax_library()
    start, way, turn = approaching(rng)
    ball = tg.Sphere(0.7).at(displaced(np.eye(4), np.array([[0.2, -0.1, 0.1, 0.3, 0.2, 0.1]]))[0])
    numbers = np.concatenate([way, turn])

    def asked(d):
        return times(A.moving(tg.Twist(np.tile(start, (len(d), 1, 1)), way + d[:, :3], turn + d[:, 3:])), ball)

    given = torch.tensor(numbers, requires_grad=True)
    tg.gradients.torch_time(A, ball, torch.tensor(start), given[:3], given[3:], device="cpu").backward()
    told = np.asarray(given.grad)
    assert least_error(told, asked, (1e-4, 1e-5)) < 1e-5 * np.linalg.norm(told)
    slope = jax.grad(lambda x: tg.gradients.jax_time(A, ball, start, x[:3], x[3:], device="cpu"))
    np.testing.assert_allclose(slope(numbers), told, atol=1e-9)


def test_jax_goes_through_its_own_rotations_in_jit_and_vmap():
    jax = jax_library()

    def apart(numbers):
        return tg.gradients.jax_distance(A, B, pose_of(jax.numpy, numbers), device="cpu")

    for slope in (jax.grad(apart), jax.jit(jax.grad(apart))):
        assert least_error(np.asarray(slope(NUMBERS)), lambda d: value_of(NUMBERS + d), (1e-4, 1e-5)) < 1e-8
    rows = jax.numpy.asarray(NUMBERS + np.linspace(0.0, 0.2, 4)[:, None])
    np.testing.assert_allclose(jax.vmap(apart)(rows), value_of(np.array(rows)), atol=1e-12)
    every = jax.vmap(jax.grad(apart))(rows)
    np.testing.assert_allclose(every, [jax.grad(apart)(row) for row in rows], atol=1e-12)


def test_jax_times_clearances_and_vertices(rng):
    jax = jax_library()
    start, way, turn = approaching(rng)
    hit = A.moving(tg.Twist(start, way, turn))
    slope = tg.gradients.time(tg.first_contact(hit, B, device="cpu"), hit, B, device="cpu")

    def time(*parts):
        return tg.gradients.jax_time(A, B, *parts, device="cpu")

    _, by_way, by_turn = jax.grad(time, argnums=(0, 1, 2))(start, way, turn)
    np.testing.assert_allclose(by_way, slope.a.displacement, atol=1e-9)
    np.testing.assert_allclose(by_turn, slope.a.rotation, atol=1e-9)
    assert not np.asarray(jax.grad(time, argnums=1)(start, -way, turn)).any()
    side = way + np.cross(start[:3, 3], [0.0, 0.0, 1.5])
    near = jax.grad(lambda w: tg.gradients.jax_clearance(A, B, start, w, turn, device="cpu"))(side)
    assert np.abs(near).max() > 0.0
    pose = random_pose(rng, 2.4)
    by = jax.grad(lambda v: tg.gradients.jax_distance(A, B, pose, vertices_a=v, device="cpu"))(np.array(A.vertices))
    placed = A.moving(tg.Rest(pose))
    told = tg.gradients.distance(tg.distance(placed, B, device="cpu"), placed, B, device="cpu")
    np.testing.assert_allclose(np.asarray(by)[told.a.corners], told.a.vertices, atol=1e-12)
    assert np.count_nonzero(np.abs(np.asarray(by)).sum(axis=1)) <= 3


def test_shapes_that_do_not_fit_are_told():
    jax_library()
    with pytest.raises(InputError, match=r"poses_a must have a shape that ends with \(4, 4\)"):
        tg.gradients.jax_distance(A, B, np.eye(3))
    with pytest.raises(InputError, match=r"^poses_a must be an array of numbers, not 'x'$"):
        tg.gradients.jax_distance(A, B, "x")
    with pytest.raises(InputError, match=r"^rotation must be an array of numbers, not "):
        tg.gradients.jax_time(A, B, np.eye(4), np.zeros(3), "turn")
    with pytest.raises(InputError, match="a must be a Mesh"):
        tg.gradients.jax_time("x", B, np.eye(4), np.zeros(3), np.zeros(3))


def test_a_library_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[torch\]"):
        tg.gradients.torch_distance(A, B, np.eye(4))

"""The law of one contact alone: exact for any block, friction and velocity."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.contact_problems import project
from tangere.dynamics.solver.local_law import contact_impulse, contact_residual
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@wp.kernel
def alone(
    first: int,
    q: wp.array[wp.vec3d],
    last: wp.array[wp.vec3d],
    d: wp.array[wp.mat33d],
    inverse: wp.array[wp.mat33d],
    mu: wp.array[wp.float64],
    impulse: wp.array[wp.vec3d],
    residual: wp.array[wp.float64],
):
    i = first + wp.tid()
    r = contact_impulse(q[i], last[i], d[i], inverse[i], mu[i])
    impulse[i] = r
    residual[i] = contact_residual(q[i] + d[i] * r, r, d[i], mu[i], wp.float64(1.0))


@pytest.mark.parametrize("friction", [0.0, 0.05, 0.5, 2.0, 1e3])
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_any_contact_alone_obeys_coulomb_s_law(rng, effort, device, friction, spread):
    """Blocks of bodies whose arms are `spread` times their radius of gyration couple normal and tangents strongly."""
    count = effort(4000)
    place = wp.get_device(device)
    turn = rng.normal(size=(count, 3, 3)) * spread
    d = np.eye(3) + turn @ turn.transpose(0, 2, 1)
    q = rng.normal(size=(count, 3)) * [0.3, 1.0, 1.0]
    last = project(rng.normal(size=(count, 3)), np.full(count, friction))
    last[::2] = 0.0
    mu = np.full(count, friction)
    impulse = wp.zeros(count, dtype=wp.vec3d, device=place)
    residual = wp.zeros(count, dtype=wp.float64, device=place)
    given = [(q, wp.vec3d), (last, wp.vec3d), (d, wp.mat33d), (np.linalg.inv(d), wp.mat33d), (mu, wp.float64)]
    inputs = [wp.array(column, dtype=kind, device=place) for column, kind in given]
    launch(alone, count, inputs, [impulse, residual], device=place)
    r = impulse.numpy()
    u = q + np.einsum("nij,nj->ni", d, r)
    tangent, speed = np.linalg.norm(r[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    scale = np.linalg.norm(q, axis=1) * np.linalg.cond(d)
    assert (r[:, 0] >= 0.0).all()
    assert (tangent <= mu * r[:, 0] * (1.0 + 1e-12)).all()
    assert (u[:, 0] >= -1e-9 * scale).all()
    assert (np.abs(u[:, 0] * (r[:, 0] > 0.0)) <= 1e-9 * scale).all()
    slides = (r[:, 0] > 0.0) & (speed > 1e-9 * scale)
    np.testing.assert_allclose(tangent[slides], mu[slides] * r[slides, 0], rtol=1e-9)
    along = np.einsum("ni,ni->n", r[:, 1:], u[:, 1:])[slides]
    np.testing.assert_allclose(along, -(tangent * speed)[slides], rtol=1e-7, atol=1e-12)
    assert (residual.numpy() <= 1e-8 * scale * (1.0 + friction)).all()
    if 0.0 < friction < 10.0:
        assert 0 < slides.sum() < count

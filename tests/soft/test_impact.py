"""Fast bodies: what hits something hard neither gains energy nor loses momentum, and never passes through."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.soft_bodies import passes_through
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation


def shifted(shape, *by: float):
    pose = np.eye(4)
    pose[:3, 3] = by
    return shape.at(pose)


@pytest.mark.parametrize("stiffness", [1e3, 1e4, 1e6])
@pytest.mark.parametrize("speed", [10.0, 30.0, 100.0, 300.0])
def test_a_block_thrown_on_a_floor_never_has_more_energy_than_at_the_start(stiffness, speed):
    block = Body(
        shifted(solid_block((4, 4, 4)), 0.0, 0.0, 1.5),
        youngs_modulus=stiffness,
        velocity=(0.0, 0.0, -speed),
        density=1.0,
    )
    simulation = Simulation([block, Body(generate.sheet(8, size=(8.0, 8.0)), fixed=True)], device="cpu")
    start, met = simulation.energy.total, 0
    for _ in range(20):
        simulation.step()
        met += simulation.rows.count > 0
        assert simulation.energy.total < 1.02 * start
    assert met > 0
    assert simulation[0].velocities[:, 2].mean() > -0.2 * speed  # it did not go on through the floor


@pytest.mark.parametrize(("speed", "stiffness"), [(10.0, 1e4), (30.0, 1e6), (100.0, 1e3), (300.0, 1e4)])
def test_two_free_blocks_that_meet_fast_keep_their_momentum_and_gain_no_energy(speed, stiffness):
    one = Body(solid_block((3, 3, 3)), youngs_modulus=stiffness, velocity=(speed, 0.0, 0.0), density=1.0)
    other = Body(
        shifted(solid_block((3, 3, 3)), 1.6, 0.2, 0.1),
        youngs_modulus=stiffness,
        density=2.0,
        velocity=(-speed, 0.0, 0.0),
    )
    simulation = Simulation([one, other], device="cpu", gravity=(0, 0, 0), distance=0.1)
    momentum, start, held = simulation.momentum, simulation.energy.total, 0
    for _ in range(20):
        before = simulation.meshes()
        simulation.step()
        held += simulation.truncation.iterations
        assert np.abs(simulation.momentum - momentum).max() < 1e-11 * np.abs(momentum).max()
        assert simulation.energy.total < 1.02 * start
        assert not passes_through(before, simulation.meshes())
    assert held > 0
    assert simulation[0].velocities[:, 0].mean() < simulation[1].velocities[:, 0].mean() + 0.1 * speed  # no longer so


def test_what_meets_fast_does_not_stop_what_rests_elsewhere():
    """A block that lies on another one flies with it at a wall: as both come near it, they do not hang in the air."""
    lower, upper = solid_block((2, 2, 2)), shifted(solid_block((2, 2, 2)), 0.0, 0.0, 1.0 + 1e-3)
    wall = generate.sheet(8, size=(8.0, 8.0))
    wall = wall.replace(vertices=wall.vertices[:, [2, 0, 1]] + [7.0, 0.0, 0.0])
    bodies = [Body(shape, youngs_modulus=1e4, velocity=(60.0, 0.0, 0.0), density=1.0) for shape in (lower, upper)]
    simulation = Simulation([*bodies, Body(wall, fixed=True)], device="cpu", gravity=(0, 0, 0), distance=0.02)
    places = []
    for _ in range(8):
        simulation.step()
        places.append(simulation[1].positions[:, 0].max())
    assert places[3] == pytest.approx(0.5 + 4 * 1.2, abs=1e-6)  # nothing in its way yet
    assert 6.5 < places[-1] < 7.0  # at the wall


def test_bodies_of_which_some_are_struck_keep_their_momentum_together():
    """Two blocks meet; a third, lighter one that rests on one of them is not struck, but gets its share."""
    places, speeds = [(0.0, 0.0, 0.0), (0.1, 0.1, 1.05), (-0.1, 0.0, 2.06)], [(17, -23, -7), (-20, -28, -20)]
    bodies = [
        Body(shifted(solid_block((3, 3, 3)), *at), youngs_modulus=k, density=density, velocity=velocity)
        for at, k, density, velocity in zip(
            places, (600.0, 2300.0, 900.0), (10, 10, 1), (*speeds, speeds[1]), strict=True
        )
    ]
    simulation = Simulation(bodies, device="cpu", gravity=(0, 0, 0), distance=0.05, friction=0.0)
    momentum, struck = simulation.momentum, 0
    for _ in range(12):
        simulation.step()
        struck += simulation.truncation.impact_substep < 1.0
        assert np.abs(simulation.momentum - momentum).max() < 1e-11 * np.abs(momentum).max()
    assert struck > 0


@pytest.mark.parametrize("stiffness", [1e4, 1e6])
def test_a_block_that_lies_on_a_floor_takes_over_the_motion_of_one_that_strikes_it(stiffness):
    one = Body(
        shifted(solid_block((3, 3, 3)), -2.0, 0.0, 0.55),
        youngs_modulus=stiffness,
        velocity=(15.0, 0.0, 0.0),
        density=1.0,
    )
    other = Body(shifted(solid_block((3, 3, 3)), 0.0, 0.0, 0.55), youngs_modulus=stiffness, density=1.0)
    ground = Body(generate.sheet(8, size=(40.0, 8.0)), fixed=True)
    simulation = Simulation([one, other, ground], device="cpu", friction=0.0, distance=0.1)
    simulation.run(steps=30)
    assert simulation[0].velocities[:, 0].mean() < simulation[1].velocities[:, 0].mean()
    assert simulation[1].velocities[:, 0].mean() > 7.0  # half of 15 m/s, as in a plastic blow


def test_blocks_that_fly_close_together_at_a_floor_gain_no_energy():
    """The upper one is slowed down because the lower one is; nothing was fast between them."""
    velocity = (35.0, 13.0, -9.0)
    lower = Body(shifted(solid_block((3, 3, 3)), 0.0, 0.0, 0.6), youngs_modulus=640.0, velocity=velocity, density=1.0)
    upper = Body(shifted(solid_block((3, 3, 3)), 0.1, 0.0, 1.605), youngs_modulus=7e3, density=2.0, velocity=velocity)
    ground = Body(generate.sheet(8, size=(12.0, 12.0)), fixed=True)
    simulation = Simulation([lower, upper, ground], device="cpu", gravity=(0, 0, 0), distance=0.02)
    start = simulation.energy.total
    for _ in range(20):
        simulation.step()
        assert simulation.energy.total < 1.02 * start

"""What nothing touches keeps its velocity, however near and fast it goes by: corners, ends of tunnels, entries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import warp as wp

import tangere as tg
from tangere.dynamics import Body, World
from tangere.dynamics.contact.passing import nearest_on_the_way
from tests.oracles.rigid_worlds import meeting_pairs

CUBE = tg.generate.box((1.0, 1.0, 1.0))
LENGTH = 4.0


def at(x=0.0, y=0.0, z=0.0, yaw=0.0):
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    pose[:3, 3] = x, y, z
    return pose


def tunnel(play, y):
    middle = 0.6 + play
    inner = 2.0 * (middle - 0.1) - 1e-6
    sides = [
        ((1.5, 0.2), 0.0, middle),
        ((1.5, 0.2), 0.0, -middle),
        ((0.2, inner), middle, 0.0),
        ((0.2, inner), -middle, 0.0),
    ]
    return [Body(tg.generate.box((LENGTH, *side)), at(0.0, y + by, z), fixed=True) for side, by, z in sides]


def cubes_in_tunnels(starts, play, friction):
    """One cube in each of many tunnels side by side; starts: (x, y, z, yaw, speed)."""
    bodies = []
    for number, (x, y, z, yaw, speed) in enumerate(starts):
        bodies += tunnel(play, 3.0 * number)
        bodies.append(Body(CUBE, at(x, 3.0 * number + y, z, yaw), velocity=(speed, 0.0, 0.0)))
    return World(bodies, device="cpu", gravity=(0.0, 0.0, 0.0), friction=friction)


def keeps_its_velocity(world, speed, steps):
    before = world.positions[4::5]
    for step in range(steps):
        world.step()
        if step % 4 == 3:
            assert meeting_pairs(world) == []
    velocities = np.zeros((len(before), 6))
    velocities[:, 0] = speed
    np.testing.assert_allclose(world.velocities[4::5], velocities, rtol=0.0, atol=1e-9 * speed)
    before[:, 0] += speed * steps * world.dt
    np.testing.assert_allclose(world.positions[4::5], before, rtol=0.0, atol=1e-9)
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.parametrize("speed", [10.0, 1.0, 0.1])
@pytest.mark.parametrize(("play", "friction"), [(2e-4, 0.5), (1e-4, 0.5), (1e-5, 0.0), (1e-5, 0.5)])
def test_cubes_leave_tunnels_nearer_than_the_security_distance_at_full_speed(play, friction, speed, rng, effort):
    """Their front or their rear is about to pass the end, off the middle and turned by anything down to 1e-9 m."""
    starts = []
    for end in (1.5, 2.5):
        for _ in range(effort(8, 4)):
            y, z = rng.uniform(-1.0, 1.0, 2) * 10.0 ** rng.uniform(-9.0, np.log10(0.4 * play))
            yaw = rng.choice([0.0, rng.uniform(-0.3, 0.3) * play])
            starts.append((end - rng.uniform(0.0, 3.0) * 0.01 * speed, y, z, yaw, speed))
    world = cubes_in_tunnels(starts, play, friction)
    assert play < world.separation
    keeps_its_velocity(world, speed, 12)


@pytest.mark.parametrize("speed", [10.0, 1.0, 0.1])
@pytest.mark.parametrize("play", [4e-4, 1e-3, 1e-2])
def test_cubes_go_into_tunnels_wider_than_the_security_distance_at_full_speed(play, speed, rng, effort):
    """The ends of the walls are ahead of the edges of the cubes, and beside their way."""
    starts = []
    for _ in range(effort(10, 4)):
        y, z = rng.uniform(-1.0, 1.0, 2) * 10.0 ** rng.uniform(-9.0, np.log10(0.1 * play))
        yaw = rng.choice([0.0, rng.uniform(-0.1, 0.1) * play])
        starts.append((-2.501 - rng.uniform(0.0, 3.0) * 0.01 * speed, y, z, yaw, speed))
    world = cubes_in_tunnels(starts, play, 0.5)
    assert play > world.separation
    keeps_its_velocity(world, speed, 12)


@pytest.mark.parametrize("beside", [3.0, -3.0])
def test_a_cube_flies_past_the_corner_of_another_or_is_stopped_by_it(beside):
    """By three security distances, at 20 m/s, edges first: the same way on the other side of the corner is a hit."""
    turned = at(0.0, 0.0, 0.0, 0.25 * np.pi)
    still = Body(CUBE, turned, fixed=True)
    flying = Body(CUBE, turned, velocity=(20.0, 0.0, 0.0))
    world = World([still, flying], device="cpu", gravity=(0.0, 0.0, 0.0), friction=0.0)
    pose = turned.copy()
    pose[:3, 3] = -2.13, np.sqrt(2.0) + beside * world.separation, 0.0
    world[1].set_state(pose=pose)
    for _ in range(20):
        world.step()
        assert meeting_pairs(world) == []
    if beside > 0.0:
        np.testing.assert_allclose(world.velocities[1], [20.0, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-9)
    else:
        assert np.abs(world.velocities[1] - [20.0, 0.0, 0.0, 0.0, 0.0, 0.0]).max() > 0.1
    assert world.truncation.all_lost_time == 0.0


def test_cubes_that_go_down_past_the_rim_of_a_table_are_not_held_at_its_height(rng, effort):
    """A corner is above the table where a step begins, and beyond its rim and below where it ends."""
    size, bodies, wanted = 0.2, [], []
    for number in range(effort(30)):
        speed, angle, far = rng.uniform(2.0, 25.0), rng.uniform(0.3, 1.2), 10.0 ** rng.uniform(-2.5, -1.5)
        way, aside = np.array([np.cos(angle), 0.0, -np.sin(angle)]), np.array([np.sin(angle), 0.0, np.cos(angle)])
        corner = np.array([1.0, 4.0 * number, 0.0]) + far * aside - (far + rng.uniform(0.0, 0.05)) * way
        bodies.append(Body(tg.generate.box((2.0, 2.0, 1.0)), at(0.0, 4.0 * number, -0.5), fixed=True))
        pose = at(*(corner + [0.5 * size, rng.uniform(-0.5, 0.5), 0.5 * size]))
        bodies.append(Body(tg.generate.box((size, size, size)), pose, velocity=speed * way))
        wanted.append(speed * way)
    world = World(bodies, device="cpu", gravity=(0.0, 0.0, 0.0), friction=0.5)
    for _ in range(6):
        world.step()
        assert meeting_pairs(world) == []
    np.testing.assert_allclose(world.velocities[1::2, :3], wanted, atol=1e-8)
    assert not world.truncation.all_bodies


@wp.kernel
def nearest_of_all(columns: wp.array2d[wp.vec3d], found: wp.array[wp.vec3d]):
    k = wp.tid()
    found[k] = nearest_on_the_way(columns[k, 0], columns[k, 1], columns[k, 2], columns[k, 3])


def test_the_least_distance_on_the_way_is_that_of_bounded_least_squares(rng, effort):
    """SciPy's bounded linear least squares is the oracle; edges may be parallel or nearly so, and of no length."""
    from scipy.optimize import lsq_linear

    count = effort(300)
    columns = rng.normal(size=(count, 4, 3))
    for k, kind in zip(range(count), itertools.cycle(range(6)), strict=False):
        if kind == 1:
            columns[k, 3] = 0.0
        if kind == 2:
            columns[k, 1] = columns[k, 3] = 0.0
        if kind == 3:
            columns[k, 3] = 1.5 * columns[k, 1]
        if kind == 4:
            columns[k, 3] = columns[k, 1] + 1e-4 * rng.normal(size=3)
        if kind == 5:
            columns[k, 2] *= 1e-3
    found = wp.zeros(count, dtype=wp.vec3d, device="cpu")
    wp.launch(nearest_of_all, count, [wp.array(columns, dtype=wp.vec3d, device="cpu"), found], device="cpu")
    for (apart, edge_a, way, edge_b), place in zip(columns, found.numpy(), strict=True):
        assert (place >= 0.0).all()
        assert (place <= 1.0).all()
        matrix = np.stack([edge_a, way, -edge_b], axis=1)
        best = lsq_linear(matrix, -apart, bounds=(0.0, 1.0), method="bvls", tol=1e-15)
        least = np.linalg.norm(apart + matrix @ best.x)
        assert np.linalg.norm(apart + matrix @ place) <= least + 1e-9

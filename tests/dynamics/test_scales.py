"""The same scene at any size: lengths times s, times times the root of s, under the same gravity, is the same motion.

With s a power of four all of this is exact in binary numbers, so that a single length or speed in metres anywhere in a
step would show in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World

STEPS = 60


def at(x=0.0, y=0.0, z=0.0, axis=(0.0, 0.0, 1.0), angle=0.0):
    k = np.cross(np.eye(3), -np.asarray(axis, float) / np.linalg.norm(axis))
    pose = np.eye(4)
    pose[:3, :3] = np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k
    pose[:3, 3] = x, y, z
    return pose


def scaled(mesh: tg.Mesh, s: float) -> tg.Mesh:
    return tg.Mesh(s * mesh.vertices, mesh.faces, name=mesh.name)


def box(s: float, *size: float) -> tg.Mesh:
    return scaled(tg.generate.box(size), s)


def world_of(bodies: list[Body], s: float, **options) -> World:
    return World(bodies, dt=0.01 * np.sqrt(s), device="cpu", **options)


def placed(s: float, x: float, y: float, z: float, axis=(0.0, 0.0, 1.0), angle: float = 0.0) -> np.ndarray:
    return at(s * x, s * y, s * z, axis, angle)


def floor(s: float) -> Body:
    return Body(box(s, 8.0, 8.0, 0.5), placed(s, 0.0, 0.0, -0.25), fixed=True, name="floor")


def stack(s: float) -> World:
    cube = box(s, 1.0, 1.0, 1.0)
    return world_of([floor(s), *(Body(cube, placed(s, 0.1 * (k % 2), 0.0, 0.505 + 1.01 * k)) for k in range(4))], s)


def tumbling(s: float) -> World:
    brick = box(s, 1.0, 0.7, 0.4)
    poses = [placed(s, 0.13 * k, 0.05 * k, 0.7 + 0.9 * k, (1.0, 2.0, k), 0.4 + 0.3 * k) for k in range(3)]
    return world_of([floor(s), *(Body(brick, pose) for pose in poses)], s, restitution=0.4)


def mechanism(s: float) -> World:
    """A motor, limits, a slider, a ball joint and a spring, which turn into a fixed box."""
    bar = box(s, 0.8, 0.2, 0.2)
    bodies = [Body(bar, placed(s, k + 0.5, 0.0, 0.0)) for k in range(4)]
    bodies.append(Body(box(s, 0.5, 2.0, 2.0), placed(s, 2.0, 0.0, -2.0), fixed=True))
    world = world_of(bodies, s)
    world.join("hinge", 0, at=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), limits=(-1.0, 0.3))
    world.join("hinge", 0, 1, at=(s, 0.0, 0.0), axis=(0.0, 1.0, 0.0), speed=2.0 / np.sqrt(s))
    world.join("slider", 1, 2, at=(2.0 * s, 0.0, 0.0), axis=(1.0, 0.0, 0.0), limits=(-0.1 * s, 0.3 * s))
    world.join("ball", 2, 3, at=(3.0 * s, 0.0, 0.0))
    world.pull(3, (3.5 * s, 0.0, 0.0), (3.5 * s, s, s), stiffness=3e4 * s**2)
    return world


def pressed(s: float) -> World:
    """What is pressed against the floor cannot yield: the press is held back."""
    cube = box(s, 1.0, 1.0, 1.0)
    bodies = [floor(s), *(Body(cube, placed(s, 0.0, 0.0, 0.51 + 1.01 * k)) for k in range(2))]
    press = box(s, 2.0, 2.0, 0.2)
    down = (0.0, 0.0, -np.sqrt(s))
    return world_of([*bodies, Body(press, placed(s, 0.0, 0.0, 2.3), driven=True, velocity=down)], s)


def weightless(s: float) -> World:
    rod = box(s, 1.0, 0.2, 0.2)
    bodies = [
        Body(
            rod,
            placed(s, 1.2 * k, 0.1 * k, 0.0),
            velocity=(-0.9 * k * np.sqrt(s), 0.0, 0.0),
            spin=(0.0, 0.0, k / np.sqrt(s)),
        )
        for k in range(4)
    ]
    return world_of(bodies, s, gravity=(0.0, 0.0, 0.0), restitution=0.3)


def by_formulas(s: float) -> World:
    bodies = [
        floor(s),
        Body(tg.Cylinder(0.4 * s, s), placed(s, 0.0, 0.0, 0.7, (1.0, 0.0, 0.0), 1.2)),
        Body(tg.Sphere(0.3 * s), placed(s, 0.1, 0.1, 1.7)),
    ]
    return world_of(bodies, s, restitution=0.2)


def trajectory(make: Callable[[float], World], s: float) -> tuple[np.ndarray, int]:
    """Poses and velocities of all steps in the units of the scene, and how many bodies were held back."""
    world, found, root = make(s), [], np.sqrt(s)
    for _ in range(STEPS):
        world.step()
        poses, velocities = world.poses, world.velocities
        poses[:, :3, 3] /= s
        velocities[:, :3] /= root
        velocities[:, 3:] *= root
        found.append(np.concatenate([poses.reshape(len(world), -1), velocities], axis=1))
    return np.array(found), world.truncation.all_bodies


@pytest.mark.parametrize("make", [stack, tumbling, mechanism, pressed, weightless, by_formulas])
def test_a_scene_of_micrometres_or_kilometres_moves_to_the_last_bit_as_that_of_metres(make):
    expected, held = trajectory(make, 1.0)
    assert np.abs(expected[-1] - expected[0]).max() > 1e-3  # something happens
    for s in (4.0**-10, 4.0**7):
        found, also = trajectory(make, s)
        np.testing.assert_array_equal(found, expected)
        assert also == held


@pytest.mark.parametrize("s", [1e-6, 1e4])
@pytest.mark.parametrize("make", [mechanism, weightless, by_formulas])
def test_at_any_other_size_it_does_so_to_rounding(make, s):
    np.testing.assert_allclose(trajectory(make, s)[0], trajectory(make, 1.0)[0], rtol=0.0, atol=1e-9)


def test_a_tower_of_micrometres_stands():
    """In m/s nothing moves fast here: what is left over has to be told in the units of the scene."""
    world = stack(1e-6)
    world.run(steps=100)
    heights = world.positions[1:, 2] / 1e-6
    np.testing.assert_allclose(heights, 0.5 + np.arange(4), atol=4e-3)
    assert np.abs(world.velocities[1:, :3]).max() < 1e-5 * np.sqrt(1e-6 * 9.81)
    assert not world.truncation.all_bodies


def test_hulls_of_micrometres_lie_on_ground_as_those_of_metres():
    x = np.linspace(-4.0, 4.0, 17)
    heights = 0.3 * np.sin(x)[:, None] * np.cos(x)
    for z in (0.3, 0.5, 1.5):
        found = []
        for s in (1.0, 4.0**-10, 4.0**7):
            ground = tg.Heightfield(s * heights, 0.5 * s, origin=(-4.0 * s, -4.0 * s, 0.0))
            hull = tg.ConvexMesh(box(s, 0.6, 0.5, 0.4))
            contacts = tg.manifold(hull.at(placed(s, 0.1, 0.1, z)), ground, distance=0.1 * s)
            found.append(np.c_[contacts.point_a / s, contacts.normal, contacts.gap / s])
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])

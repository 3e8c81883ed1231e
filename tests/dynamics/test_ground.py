"""Analytic bodies on height grids: they rest outside, roll, topple and stay as mechanics says."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.dynamics.analytic.analytic_body import mass_of, surface_of
from tangere.runtime import InputError

GRAVITY = 9.81


def at(x=0.0, y=0.0, z=0.0, turn=None):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    if turn is not None:
        pose[:3, :3] = turn
    return pose


def about(axis, angle):
    k = np.cross(np.eye(3), np.asarray(axis, float) / np.linalg.norm(axis))
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def slope(angle, cell=0.2, size=(40.0, 8.0)):
    """Ground that falls along x."""
    across, along = round(size[1] / cell) + 1, round(size[0] / cell) + 1
    return tg.Heightfield(np.tile(-np.tan(angle) * cell * np.arange(along), (across, 1)), cell)


def on_ground(field, *bodies, **options):
    return World([Body(field, name="ground"), *bodies], device="cpu", **options)


def least_gap(world, field, body):
    """How far a body is above the ground, by the question itself."""
    found = tg.manifold(world.bodies[body].form.at(world.poses[body]), field, distance=1.0, device="cpu")
    return found.gap.min()


SHAPES = [
    tg.Cylinder(0.3, 0.8),
    tg.Sphere(0.4),
    tg.Capsule(0.2, 0.5),
    tg.Cone(0.4, 0.9),
    tg.Box([0.3, 0.2, 0.1]),
    tg.ConvexMesh(tg.generate.prism(5, radius=0.4, height=0.5)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_formulas_of_mass_are_the_limit_of_fine_meshes(shape, monkeypatch):
    errors = []
    for sides, rings in ((48, 8), (192, 32)):
        monkeypatch.setattr("tangere.dynamics.analytic.analytic_body.SIDES", sides)
        monkeypatch.setattr("tangere.dynamics.analytic.analytic_body.RINGS", rings)
        mesh, formula = surface_of(shape, "body").mass_properties(700.0), mass_of(shape, 700.0)
        scale = np.abs(formula.inertia).max()
        errors.append(max(abs(mesh.mass / formula.mass - 1.0), np.abs(mesh.inertia - formula.inertia).max() / scale))
        np.testing.assert_allclose(mesh.centre, formula.centre, atol=2e-3)
    assert errors[1] < 2e-3
    assert errors[1] < 0.1 * errors[0] or errors[1] < 1e-12


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_every_kind_of_body_rests_outside_by_the_security_distance(shape):
    field = tg.Heightfield(np.zeros((41, 41)), 0.1)
    world = on_ground(field, Body(shape, at(2.03, 2.01, 0.75, about([1, 2, 0], 0.3)), name="body"), friction=0.6)
    for _ in range(200):
        world.step()
        assert least_gap(world, field, 1) > 0.0
    assert least_gap(world, field, 1) == pytest.approx(world.separation, rel=0.05)
    assert np.abs(world.velocities[1]).max() < 2e-2
    assert world.truncation.all_lost_time == 0.0
    weight = world.forces[world.contacts.body_a == 1].sum(axis=0)
    np.testing.assert_allclose(weight, [0.0, 0.0, GRAVITY * world.bodies[1].mass], rtol=0.02, atol=20.0)


@pytest.mark.feature("F-S-26")
@pytest.mark.parametrize("degrees", [5.0, 15.0, 30.0])
def test_a_barrel_rolls_with_two_thirds_of_the_pull(degrees):
    angle, radius = np.radians(degrees), 0.3
    field = slope(angle)
    start = at(2.0, 4.0, -np.tan(angle) * 2.0 + (radius + 1e-4) / np.cos(angle), about([1, 0, 0], np.pi / 2))
    world = on_ground(field, Body(tg.Cylinder(radius, 0.8), start, name="barrel"), friction=0.8)
    world.run(0.2)
    before = np.linalg.norm(world.velocities[1, :3])
    world.run(1.0)
    found = np.linalg.norm(world.velocities[1, :3]) - before
    assert found == pytest.approx(2.0 / 3.0 * GRAVITY * np.sin(angle), rel=1e-3)
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.feature("F-S-26")
@pytest.mark.parametrize(("ratio", "topples"), [(0.99, False), (1.01, True)])
def test_a_barrel_topples_if_and_only_if_the_slope_is_above_its_width(ratio, topples):
    radius, height = 0.3, 1.2
    angle = np.arctan(ratio * 2.0 * radius / height)
    field = slope(angle, size=(12.0, 8.0))
    turn = about([0, 1, 0], angle)
    start = at(4.0, 4.0, -np.tan(angle) * 4.0, turn)
    start[:3, 3] += turn[:, 2] * (0.5 * height + 2e-4)
    world = on_ground(field, Body(tg.Cylinder(radius, height), start, name="barrel"), friction=2.0)
    world.run(3.0)
    tilt = np.arccos(np.clip(world.poses[1, :3, 2] @ turn[:, 2], -1.0, 1.0))
    assert (tilt > 0.5) == topples
    if not topples:
        assert np.linalg.norm(world.positions[1] - start[:3, 3]) < 1e-3


@pytest.mark.feature("F-S-24")
def test_three_barrels_rest_on_road_and_kerb():
    scene = tg.generate.barrels(drop=1e-3)
    barrels = [Body(scene.bodies[k], name=name) for k, name in enumerate(scene.names)]
    world = on_ground(scene.terrain, *barrels, friction=0.7)
    world.run(2.0)
    before, poses = world.positions[1:], world.poses[1:]
    corners = np.array([[0.3, 0.0, 0.45], [0.0, 0.3, -0.45], [-0.3, 0.0, 0.45]])
    for number in range(1000):
        world.step()
        if number % 20 == 0:
            assert min(least_gap(world, scene.terrain, k) for k in (1, 2, 3)) > 0.0
    drift = np.linalg.norm(world.positions[1:] - before, axis=1)
    now = world.poses[1:]
    turned = [np.abs(corners @ (now[k] - poses[k])[:3, :3].T).max() for k in range(3)]
    assert drift.max() < 1e-3
    assert max(turned) < 1e-3
    assert world.truncation.all_lost_time == 0.0
    pushing = np.linalg.norm(world.forces, axis=1) > 1.0
    normals = world.contacts.normal[pushing & (world.contacts.body_a == 1)]
    assert np.linalg.norm(normals - normals[0], axis=1).max() > 0.1  # road and kerb
    flat = world.contacts.normal[pushing & (world.contacts.body_a == 2)]
    np.testing.assert_allclose(flat, np.broadcast_to([0.0, 0.0, 1.0], flat.shape), atol=1e-9)


def robot_with_trailer(field, scene, **options):
    """Four driven wheels on a chassis, and a trailer of two on a ball."""
    wheels = [Body(scene.bodies[k], density=400.0, name=name) for k, name in enumerate(scene.names)]
    places = np.array([wheel.pose[:3, 3] for wheel in wheels])
    bodies = [Body(field, name="ground"), *wheels]
    for name, rows, half in (("chassis", slice(0, 4), (0.6, 0.25, 0.1)), ("trailer", slice(4, 6), (0.3, 0.25, 0.1))):
        bodies.append(Body(tg.Box(half), at(*(places[rows].mean(axis=0) + [0.0, 0.0, 0.1])), density=300.0, name=name))
    world = World(bodies, device="cpu", friction=0.9, **options)
    for number, (name, place) in enumerate(zip(scene.names, places, strict=True)):
        carrier = "chassis" if number < 4 else "trailer"
        drive = {"speed": 3.0, "force": 200.0} if number < 4 else {}
        world.join("hinge", name, carrier, at=place, axis=[0, 1, 0], name=f"axle of {name}", **drive)
    hitch = 0.5 * (world["chassis"].position + world["trailer"].position)
    world.join("ball", "chassis", "trailer", at=hitch, name="hitch")
    return world


def joint_error(world):
    """How far apart the two points of each joint are, at most [m]."""
    worst = 0.0
    for joint in world.joints:
        ends = [np.append(anchor, 1.0) for anchor in (joint.anchor_a, joint.anchor_b)]
        a = world.poses[joint.body_a] @ ends[0]
        b = ends[1] if joint.body_b < 0 else world.poses[joint.body_b] @ ends[1]
        if joint.kind in ("ball", "hinge", "weld"):
            worst = max(worst, float(np.linalg.norm((a - b)[:3])))
    return worst


@pytest.mark.feature("F-S-25")
def test_a_robot_pulls_its_trailer_over_rough_ground_with_every_wheel_outside():
    scene = tg.generate.robot_with_trailer(drop=0.02)
    world = robot_with_trailer(scene.terrain, scene)
    start, deepest, error, seconds = world["chassis"].position[0], np.inf, 0.0, []
    for _ in range(300):
        world.step()
        deepest = min(deepest, *(least_gap(world, scene.terrain, k) for k in range(1, 7)))
        error = max(error, joint_error(world))
        seconds.append(sum(world.timings.values()))
    assert deepest > 0.0
    assert error < 5e-4
    assert abs(world["chassis"].position[0] - start) > 0.5  # it drives
    assert world.truncation.all_lost_time <= 0.01 * 8 * 300 * world.dt
    assert min(seconds) > 0.0


def test_what_lies_in_the_ground_is_refused():
    field = tg.Heightfield(np.zeros((11, 11)), 1.0)
    world = on_ground(field, Body(tg.Sphere(0.5), at(5.0, 5.0, 0.4), name="ball"))
    with pytest.raises(InputError, match=r"body 1 \('ball'\) lies in the ground at the start"):
        world.step()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Body(tg.Heightfield(np.zeros((2, 2))), at(1.0)), "is ground: it has no pose"),
        (lambda: Body(tg.Sphere([1.0, 2.0])), "are not one body"),
        (
            lambda: World([Body(tg.Heightfield(np.zeros((2, 2)))) for _ in range(2)], device="cpu"),
            "are both ground",
        ),
    ],
)
def test_bad_ground_is_refused(make, told):
    with pytest.raises(InputError, match=told):
        make()

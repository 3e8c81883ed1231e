"""Rigid worlds: free motion, rest, friction, bounces; what users do; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import tangere as tg
from tangere.dynamics import Body, ContactMaterial, World
from tangere.runtime import InputError
from tests.oracles.rigid_worlds import EnergyRule, meeting_pairs

BOX = tg.generate.box((1.0, 1.0, 1.0))


def at(x=0.0, y=0.0, z=0.0, turn=None):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    if turn is not None:
        pose[:3, :3] = turn
    return pose


def about(axis, angle):
    """A rotation, by the exponential series' closed form."""
    k = np.cross(np.eye(3), -np.asarray(axis, float) / np.linalg.norm(axis))
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def floor(**options):
    return Body(tg.generate.box((20.0, 20.0, 1.0)), at(z=-0.5), fixed=True, name="floor", **options)


def world_of(*bodies, **options):
    return World(list(bodies), device="cpu", **options)


# -- nothing touches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.1, 0.01])
def test_what_falls_falls_along_its_parabola(dt):
    world = world_of(Body(BOX, at(z=10.0), velocity=[1.0, 0.0, 2.0]), dt=dt)
    world.run(0.5)
    np.testing.assert_allclose(world.positions[0], [0.5, 0.0, 10.0 + 1.0 - 0.5 * 9.81 * 0.25], atol=1e-12)
    np.testing.assert_allclose(world.velocities[0, :3], [1.0, 0.0, 2.0 - 9.81 * 0.5], atol=1e-12)


def test_a_tumbling_plate_keeps_its_momentum_and_its_energy():
    """Turning about the middle axis is unstable: the plate flips over and over."""
    plate = tg.generate.box((3.0, 1.0, 0.3))
    world = world_of(Body(plate, spin=[0.01, 6.0, 0.02]), gravity=(0, 0, 0), dt=0.01)
    momentum, energy = world.angular_momentum, world.energy.kinetic
    energies, along = [], []
    for _ in range(1000):
        world.step()
        energies.append(world.energy.kinetic)
        along.append(momentum @ world.poses[0, :3, 1])
    np.testing.assert_allclose(world.angular_momentum, momentum, rtol=1e-11, atol=1e-9 * np.linalg.norm(momentum))
    np.testing.assert_allclose(energies, energy, rtol=1e-3)
    assert min(along) < 0.0 < max(along)  # it did flip


# -- touching ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [1.0, 4.0, 20.0])
def test_what_turns_by_radians_in_a_step_keeps_its_energy(turned):
    """Boxes of any shape about any axis: by so many radians in every step, more than a turn included."""
    rng = np.random.default_rng(5)
    bodies = []
    for number in range(8):
        spin = rng.normal(size=3)
        spin *= turned / 0.01 / np.linalg.norm(spin)
        bodies.append(Body(tg.generate.box(rng.uniform(0.1, 1.0, 3)), at(x=3.0 * number), spin=spin))
    world = World(bodies, dt=0.01, gravity=(0.0, 0.0, 0.0), device="cpu")
    momentum, before = world.angular_momentum, world.energy.total
    for _ in range(100):
        world.step()
        assert world.energy.total == pytest.approx(before, rel=5e-4)
    np.testing.assert_allclose(world.angular_momentum, momentum, atol=1e-10 * np.linalg.norm(momentum))


@pytest.mark.parametrize(
    "size", [(1, 1 / 80, 1 / 80), (1, 1 / 80, 1 / 40), (1, 1e-3, 1e-3), (1, 1e-4, 2e-4), (1, 1, 0.01)]
)
def test_thin_bodies_that_tumble_keep_their_energy_and_their_momentum(size):
    """Their moments differ by up to 1e8: what an error carries from one axis to another grows by that."""
    rates, tilts = (5.0, 40.0, 150.0, 2e3, 1e5), (0.01, 0.1, 0.5)
    spins = [rate * np.array([np.sin(tilt), 1e-3, np.cos(tilt)]) for rate in rates for tilt in tilts]
    worlds = [
        World([Body(tg.generate.box(size), spin=spin)], dt=0.01, gravity=(0, 0, 0), device="cpu") for spin in spins
    ]
    for world in worlds:
        momentum, before = world.angular_momentum, world.energy.kinetic
        for _ in range(40):
            world.step()
            assert world.energy.kinetic == pytest.approx(before, rel=1e-6)
        np.testing.assert_allclose(world.angular_momentum, momentum, atol=1e-9 * np.linalg.norm(momentum))


def test_a_thin_rod_that_tumbles_goes_where_eulers_equations_lead():
    size, spin = np.array([1.0, 1 / 80, 1 / 60]), np.array([4.0, 0.04, 39.8])
    inertia = (size**2).sum() - size**2  # but for a factor

    def change(_, state):
        turning, rotation = state[:3], state[3:].reshape(3, 3)
        faster = -np.cross(turning, inertia * turning) / inertia
        return np.concatenate([faster, (rotation @ np.cross(np.eye(3), turning)).ravel()])

    start = np.concatenate([spin, np.eye(3).ravel()])
    exact = solve_ivp(change, (0.0, 0.2), start, rtol=1e-11, atol=1e-11).y[3:, -1].reshape(3, 3)
    world = world_of(Body(tg.generate.box(size), spin=spin), gravity=(0, 0, 0), dt=0.01)
    world.run(0.2)
    np.testing.assert_allclose(world.poses[0, :3, :3], exact, atol=0.02)


@pytest.mark.parametrize("rate", [10.0, 100.0, 250.0])
def test_a_thin_rod_that_spins_and_strikes_gains_no_energy(rate):
    rod = Body(tg.generate.box((4, 0.05, 0.05)), spin=(0.0, 0.0, rate))
    world = world_of(
        rod, Body(tg.generate.box((0.1, 0.1, 0.5)), at(x=1.0, y=0.8), mass=1.0), gravity=(0, 0, 0), dt=0.01
    )
    highest = world.energy.kinetic
    for _ in range(60):
        world.step()
        assert world.energy.kinetic <= (1.0 + 1e-3) * highest
        highest = min(highest, world.energy.kinetic)
    assert world.velocities[1].any()  # it did strike


def test_a_crate_comes_to_rest_at_the_security_distance():
    world = world_of(floor(), Body(BOX, at(z=1.0)))
    energy = EnergyRule(world)
    for _ in range(100):
        world.step()
        energy.look()
    assert world.positions[1, 2] == pytest.approx(0.5 + world.separation, abs=1e-3 * world.separation)
    assert np.abs(world.velocities[1]).max() < 1e-9
    assert energy.part < 5e-4
    assert meeting_pairs(world) == []
    total = world.forces[world.contacts.body_a == 0].sum(axis=0)  # the floor is pushed down by the weight
    np.testing.assert_allclose(total, [0.0, 0.0, -9810.0], atol=1e-3)


@pytest.mark.parametrize(("ratio", "sticks"), [(0.98, True), (1.02, False)])
def test_a_block_sticks_if_and_only_if_the_slope_is_below_its_friction(ratio, sticks):
    friction = 0.5
    slope = np.arctan(ratio * friction)
    turn = about([0, 1, 0], slope)
    ground = Body(tg.generate.box((40.0, 4.0, 1.0)), at(turn=turn) @ at(z=-0.5), fixed=True)
    block = Body(tg.generate.box((1.0, 1.0, 0.4)), at(turn=turn) @ at(z=0.2 + 1e-4), name="block")
    world = world_of(ground, block, friction=friction)
    world.run(1.0)
    speed = float(np.linalg.norm(world.velocities[1, :3]))
    pull = max(9.81 * (np.sin(slope) - friction * np.cos(slope)), 0.0)
    assert speed < 1e-3 if sticks else speed == pytest.approx(pull * 1.0, rel=1e-3)


@pytest.mark.feature("F-R-60")
@pytest.mark.parametrize("friction", [0.1, 0.4])
def test_what_slides_is_slowed_by_friction_times_gravity(friction):
    plate = Body(tg.generate.box((1.0, 1.0, 0.1)), at(z=0.05 + 1e-4), velocity=[3.0, 0.0, 0.0], name="plate")
    world = world_of(floor(), plate, friction=friction, separation=1e-4)
    world.run(steps=5)
    before = world["plate"].velocity[0]
    world.run(steps=20)
    assert (before - world["plate"].velocity[0]) / (20 * world.dt) == pytest.approx(9.81 * friction, abs=1e-9)


@pytest.mark.feature("F-R-63")
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_an_oblique_impact_takes_tangential_speed_by_coulomb_and_adds_no_energy(restitution):
    ball, friction = tg.generate.icosphere(subdivisions=2), 0.05
    flying = Body(ball, at(z=1.0 - ball.vertices[:, 2].min()), velocity=[4.0, 0.0, -3.0], name="ball")
    world = world_of(floor(), flying, restitution=restitution, friction=friction, gravity=(0, 0, 0))
    before, energy = world["ball"].velocity, world.energy.total
    while world["ball"].velocity[2] < -1e-6:
        world.step()
    change = world["ball"].velocity - before
    assert world["ball"].velocity[2] >= 3.0 * restitution * (1.0 - 0.1) - 1e-9  # the lowest vertex may turn it
    assert change[0] == pytest.approx(-friction * change[2], rel=1e-6)
    assert world.energy.total <= energy * (1.0 + 1e-12)


@pytest.mark.parametrize("restitution", [1.0, 0.5])
@pytest.mark.parametrize("dt", [0.01, 1.0 / 30.0])
def test_a_ball_bounces_to_its_share_of_the_height(restitution, dt):
    ball = tg.generate.icosphere(subdivisions=2)
    low = -ball.vertices[:, 2].min()
    world = world_of(floor(), Body(ball, at(z=1.0 + low)), restitution=restitution, dt=dt)
    heights, energies = [], [world.energy.total]
    for _ in range(round(1.1 / dt)):
        world.step()
        heights.append(world.positions[1, 2] - low)
        energies.append(world.energy.total)
    top = max(heights[round(0.47 / dt) :])
    fallen = 1.0 - world.separation
    reached = (top - world.separation) / fallen
    assert reached == pytest.approx(restitution**2, rel=5e-3 if dt == 0.01 else 2e-2)
    assert max(np.diff(energies)) <= 1e-12 * energies[0]


@pytest.mark.parametrize("scale", [1e-2, 1e-6])
def test_small_worlds_bounce_as_large_ones_do(scale):
    """Lengths and gravity are smaller by a factor, times are not."""

    def bounced(scale):
        ground = Body(tg.generate.box((4 * scale, 4 * scale, 0.2 * scale)), at(z=-0.1 * scale), fixed=True)
        ball = Body(tg.Sphere(0.1 * scale), at(z=1.1 * scale))
        world = world_of(ground, ball, restitution=0.8, gravity=(0, 0, -9.81 * scale))
        heights, impacts = [], 0
        for _ in range(80):
            world.step()
            heights.append(world.positions[1, 2] / scale - 0.1)
            impacts += len(world.events)
        return max(heights[50:]), impacts

    height, impacts = bounced(scale)
    assert (height, impacts) == (pytest.approx(bounced(1.0)[0], rel=1e-6), 1)
    assert height == pytest.approx(0.64, rel=5e-3)


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_an_impact_is_told_with_its_speed_and_impulse(restitution):
    ball = tg.generate.icosphere(subdivisions=2)
    low = -ball.vertices[:, 2].min()
    flying = Body(ball, at(z=0.5 + low), velocity=[0.0, 0.0, -2.0], name="ball")
    world = world_of(floor(), flying, restitution=restitution, gravity=(0, 0, 0))
    assert len(world.events) == 0
    told = []
    for _ in range(60):
        world.step()
        told += [world.events] if len(world.events) else []
    # what does not bounce is slowed so that it arrives at the end of a step, and stopped in the next one
    assert 1 <= len(told) <= (1 if restitution else 2)
    assert all((event.body_a[0], event.body_b[0]) == (0, 1) for event in told)
    assert told[0].speed[0] == pytest.approx(2.0, rel=1e-6)
    change = world.bodies[1].mass * (world.velocities[1, :3] - [0.0, 0.0, -2.0])
    impulse = -sum(event.impulse[0] for event in told)
    np.testing.assert_allclose(impulse, change, rtol=1e-6, atol=1e-6 * np.abs(change).max())
    assert abs(told[0].point[0, 2]) < 0.1


def test_what_rests_has_forces_and_no_events():
    world = world_of(floor(), Body(BOX, at(z=0.5 + 1e-4)))
    world.run(steps=20)
    for _ in range(5):
        world.step()
        assert len(world.events) == 0
        assert np.abs(world.forces).max() > 0.0


def test_newtons_cradle_hands_its_speed_to_the_last_ball():
    ball = tg.generate.icosphere(subdivisions=2)
    width = float(np.ptp(ball.vertices[:, 0]))
    balls = [Body(ball, at(width * k + 0.0008 * k)) for k in range(1, 5)]
    world = world_of(
        *balls, Body(ball, at(-1.0), velocity=[2.0, 0.0, 0.0]), restitution=1.0, gravity=(0, 0, 0), dt=0.005
    )
    world.run(1.0)
    np.testing.assert_allclose(world.velocities[:, 0], [0.0, 0.0, 0.0, 2.0, 0.0], atol=1e-6)


def test_a_stray_vertex_changes_neither_the_security_distance_nor_the_weight():
    """As in files that keep points which no triangle uses."""
    stray = tg.Mesh(np.concatenate([BOX.vertices, [[1e4, 0.0, 0.0]]]), BOX.faces)
    sheet = tg.Mesh(np.concatenate([BOX.vertices, [[1e4, 0.0, 0.0]]]), BOX.faces[:-2])
    assert Body(sheet).mass == pytest.approx(Body(tg.Mesh(BOX.vertices, BOX.faces[:-2])).mass)
    world = world_of(floor(), Body(stray, at(z=0.6), name="box"))
    assert world.separation == pytest.approx(world_of(floor(), Body(BOX, at(z=0.6))).separation)
    world.run(0.4)
    assert world["box"].position[2] == pytest.approx(0.5 + world.separation, abs=1e-6)


def test_materials_of_a_pair_come_before_what_each_body_says():
    ice = {("steel", "ice"): ContactMaterial(friction=0.0)}
    sled = Body(BOX, at(z=0.5 + 1e-4), velocity=[1.0, 0.0, 0.0], material="steel", name="sled")
    world = world_of(floor(material="ice"), sled, friction=0.9, materials=ice)
    world.run(0.5)
    assert world["sled"].velocity[0] == pytest.approx(1.0, abs=1e-9)


# -- promises ----------------------------------------------------------------------------------------------------------


def pile(seed=0, count=12):
    rng = np.random.default_rng(seed)
    box = tg.generate.box((0.5, 0.4, 0.3))
    bodies = [floor()]
    for k in range(count):
        turn = about(rng.normal(size=3), rng.uniform(0.0, 3.0))
        bodies.append(Body(box, at(*rng.uniform(-0.3, 0.3, 2), 0.6 + 0.7 * k, turn), name=f"box {k}"))
    return bodies


@pytest.mark.parametrize("sweeps", [10, 150])
def test_no_state_of_a_pile_has_an_intersection_however_few_the_sweeps(sweeps):
    world = World(pile(), device="cpu", sweeps=sweeps)
    for _ in range(80):
        world.step()
        assert meeting_pairs(world) == []


def test_threads_and_a_second_run_make_the_same_bits():
    found = []
    for threads in (1, 2, 1):
        world = World(pile(3), device="cpu", threads=threads)
        world.run(steps=60)
        found.append((world.poses.tobytes(), world.velocities.tobytes()))
    assert found[0] == found[1] == found[2]


def test_a_step_that_fails_leaves_the_world_as_it_was():
    world = world_of(floor(), Body(BOX, at(z=0.8)))
    world.run(steps=5)
    poses, velocities, steps = world.poses, world.velocities, world.steps
    walk = world.phases["walk"]

    def broken(step):
        walk(step)
        raise KeyboardInterrupt

    world.phases["walk"] = broken
    with pytest.raises(KeyboardInterrupt):
        world.step()
    assert (world.poses == poses).all()
    assert (world.velocities == velocities).all()
    assert world.steps == steps
    world.phases["walk"] = walk
    world.run(steps=60)
    assert world.positions[1, 2] == pytest.approx(0.5 + world.separation, rel=1e-4)


# -- what users do -----------------------------------------------------------------------------------------------------


def test_pushes_drives_and_pulls():
    table = Body(tg.generate.box((4.0, 4.0, 0.2)), at(z=-0.1), driven=True, name="table")
    world = world_of(table, Body(BOX, at(z=0.5 + 1e-3), name="box"), friction=0.8)
    world.drive("table", velocity=[0.2, 0.0, 0.0])
    world.run(1.0)
    assert world["box"].velocity[0] == pytest.approx(0.2, abs=1e-6)  # carried
    world.push("box", force=[0.0, 0.0, 2 * 9810.0])
    world.run(0.1)
    assert world["box"].velocity[2] == pytest.approx(9.81 * 0.1, rel=1e-3)
    world.push("box")
    world["box"].set_state(pose=at(0.0, 0.0, 3.0), velocity=[0, 0, 0], spin=[0, 0, 0])
    world.pull("box", world["box"].position, [0.0, 0.0, 3.0])
    world.run(2.0)
    sag = 9.81 / 100.0  # of a spring of 100 times the mass
    assert world["box"].position[2] == pytest.approx(3.0 - sag, abs=1e-3)
    world.let_go()
    world.run(0.1)
    assert world["box"].velocity[2] < -0.9


def test_a_world_without_inertia_goes_as_it_is_pushed():
    world = world_of(floor(), Body(BOX, at(z=0.6), name="box"), order=1, gravity=(0, 0, -0.1), friction=0.0)
    world.push("box", force=[500.0, 0.0, 0.0])
    world.run(1.0)
    assert world["box"].velocity[0] == pytest.approx(0.5)
    assert world["box"].position[0] == pytest.approx(0.5, rel=1e-6)
    world.push("box")
    world.step()
    assert abs(world["box"].velocity[0]) < 1e-12


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Body(BOX, density=0.0), "moves: density must be positive"),
        (lambda: Body(BOX, mass=-1.0), "moves: mass must be positive"),
        (lambda: Body(BOX, inertia=np.diag([1.0, 1.0, 5.0])), "no body has the moments"),
        (lambda: Body(BOX, inertia=-np.eye(3)), "no body has the moments"),
        (lambda: Body(tg.Mesh(np.zeros((3, 3)), [[0, 1, 2]])), "triangles are all in one point"),
        (lambda: Body(BOX, velocity=[0, 0, np.nan]), "velocity must be three finite"),
        (lambda: Body(BOX, fixed=[True, False]), "fixed is True, False or six"),
        (lambda: Body(BOX, restitution=1.5), "restitution must be between 0 and 1"),
        (lambda: Body(BOX, pose=2.0 * np.eye(4)), "pose"),
        (lambda: world_of(), "there are no bodies"),
        (lambda: world_of(Body(BOX), dt=0.0), "dt must be positive"),
        (lambda: world_of(Body(BOX), order=3), "order is 1"),
        (lambda: world_of(Body(BOX), friction=-0.1), "friction must be finite and not negative"),
        (lambda: world_of(Body(BOX), materials={("a", "b"): ContactMaterial()}), "no body is made of 'a'"),
        (
            lambda: world_of(Body(BOX), Body(BOX, at(0.5))).step(),
            r"bodies 0 \('box'\) and 1 \('box'\) overlap at the start",
        ),
        (lambda: world_of(Body(BOX)).push(0, force=[np.nan, 0, 0]), "force of body 0"),
        (lambda: world_of(floor()).push(0, force=[1, 0, 0]), "is fixed"),
        (lambda: world_of(Body(BOX)).drive(0, velocity=[1, 0, 0]), "is not driven"),
        (lambda: world_of(Body(BOX))["door"], "there is no body called 'door'"),
        (lambda: world_of(floor()).join("ball", 0, at=[0, 0, 0]), "neither of its bodies can move"),
        (lambda: world_of(Body(BOX)).join("hinge", 0, at=[0, 0, 0]), "a hinge needs an axis"),
        (lambda: world_of(Body(BOX)).join("screw", 0, at=[0, 0, 0]), "a joint is ball, hinge"),
        (lambda: world_of(Body(BOX)).run(), "say how long"),
        (lambda: world_of(Body(BOX), allowed=5), "allowed is a list of pairs"),
        (lambda: world_of(Body(BOX), allowed=None), "allowed is a list of pairs"),
        (lambda: world_of(Body(BOX), allowed=[[0, 0]]), r"allowed\[0\] names the same body twice"),
        (lambda: World.load(Path(__file__).parent), "not from a folder"),
        (lambda: Body(BOX, driven="yes"), "driven is True or False"),
        (lambda: Body(BOX, fixed=True, driven=True), "fixed bodies never move and driven ones do"),
        (lambda: Body(BOX, group="left"), "group must be a whole number"),
        (lambda: Body(BOX, group=-2), "group must be a whole number"),
        (lambda: Body(BOX, material=5), "material is a name"),
        (lambda: world_of(Body(BOX)).resume(cast(Any, 5)), "a checkpoint is a dictionary"),
        (lambda: world_of(Body(BOX)).resume({}), "the checkpoint has no 'position'"),
        (lambda: world_of(Body(BOX), separation=1e150), r"separation: 1e\+150 m is more than 1e\+15"),
        (lambda: Body(tg.Mesh(1e37 * BOX.vertices, BOX.faces)), r"reaches 5e\+36 m from its origin, more than 1e\+15"),
        (lambda: Body(tg.Mesh(1e-38 * BOX.vertices, BOX.faces), fixed=True), "less than 1e-36, the least it may"),
        (lambda: Body(tg.Sphere(1e300)), r"'sphere' reaches 1e\+300 m from its origin"),
        (lambda: Body(tg.Sphere(1e-100)), r"'sphere' reaches 1e-100 m from its origin"),
        (lambda: Body(tg.Cylinder(1e-20, 1.0)), "'cylinder' is so thin that it has no surface"),
        (lambda: Body(BOX, centre=[1e300, 0, 0]), r"centre is farther than 1e\+15 m"),
        (lambda: World.load(cast(Any, None)), "a world is named by a path, not by a NoneType"),
        (lambda: World.load("a.toml", meshes=cast(Any, 5)), "the folder of meshes is named by a path, not by a int"),
        (lambda: world_of(Body(BOX)).save(cast(Any, 5)), "what a world is saved to is named by a path"),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, told):
    with pytest.raises(InputError, match=told):
        make()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda kept: {**kept, "position": kept["position"] * np.nan}, "'position' holds what is not a finite number"),
        (lambda kept: {**kept, "velocity": kept["velocity"][:1]}, r"'velocity' has the shape \(1, 6\), not \(2, 6\)"),
        (lambda kept: {**kept, "load": "none"}, r"'load' has the shape \(\)"),
        (lambda kept: {name: kept[name] for name in kept if name != "count"}, "the checkpoint has no 'count'"),
        (lambda kept: {**kept, "count": np.full(4, 99)}, "'count' or 'lost_time' is not what a world has counted"),
        (lambda kept: {**kept, "count": -kept["count"] - 1}, "'count' or 'lost_time' is not what"),
        (lambda kept: {**kept, "lost_time": np.array([np.nan])}, "'count' or 'lost_time' is not what"),
    ],
)
def test_a_checkpoint_that_does_not_fit_changes_nothing(spoil, told):
    world = world_of(floor(), Body(BOX, at(z=0.6)))
    kept = world.checkpoint()
    world.run(steps=3)
    poses, steps = world.poses, world.steps
    with pytest.raises(InputError, match=told):
        world.resume(spoil(kept))
    assert (world.poses == poses).all()
    assert world.steps == steps
    world.resume(kept)
    assert world.steps == 0


def test_a_force_too_large_for_numbers_is_told_and_leaves_the_world_as_it_was():
    world = world_of(floor(), Body(BOX, at(z=0.6), name="box"))
    world.push("box", force=[0.0, 0.0, -1e300])
    poses = [world.poses]

    def steps():
        for _ in range(5):
            world.step()
            poses.append(world.poses)

    with pytest.raises(InputError, match="a force, a torque or a speed is too large"):
        steps()
    assert (world.poses == poses[-1]).all()
    assert world.steps == len(poses) - 1
    world.push("box")
    world["box"].set_state(velocity=[0.0, 0.0, 0.0])
    world.run(steps=5)
    assert meeting_pairs(world) == []


def test_allowed_pairs_may_overlap_and_are_not_compared():
    world = world_of(Body(BOX, name="a"), Body(BOX, at(0.5), name="b"), allowed=[("a", "b")], gravity=(0, 0, 0))
    world.run(steps=3)
    np.testing.assert_array_equal(world.velocities, 0.0)
    assert world.truncation.overlapping == ((0, 1),)


def test_only_pairs_that_overlap_are_told_whether_allowed_or_joined():
    bodies = [Body(BOX, at(x), name=f"box {k}") for k, x in enumerate((0.0, 0.5, 2.0, 2.6))]
    world = world_of(*bodies, allowed=[(0, 1), (1, 2)], gravity=(0, 0, 0))
    assert world.truncation.overlapping == ()  # nobody has looked yet
    world.join("weld", 3, 2, at=[2.3, 0.0, 0.0])
    world.step()
    assert world.truncation.overlapping == ((0, 1), (2, 3))


def test_a_stack_a_thousandth_of_the_security_distance_apart_is_not_held():
    """As the page on rigid worlds says of bodies that are put close to each other."""
    box, apart = tg.generate.box((1.0, 1.0, 1.0)), 2e-7
    poses = np.tile(np.eye(4), (8, 1, 1))
    poses[:, 2, 3] = (1.0 + apart) * np.arange(8)
    world = World([Body(box, pose, fixed=k == 0) for k, pose in enumerate(poses)], separation=2e-4, device="cpu")
    world.run(steps=30)
    assert world.truncation.all_bodies == 0
    assert np.abs(world.positions[:, 2] - poses[:, 2, 3]).max() < world.separation
    assert np.abs(world.velocities).max() < 1e-4

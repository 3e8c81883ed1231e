"""Spheres, boxes, cylinders and their like among each other: bodies as their formulas say, never as facets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.runtime import InputError
from tests.dynamics.test_ground import GRAVITY, SHAPES, about, at
from tests.oracles.rigid_worlds import EnergyRule, least_distance


def block(half, pose=None, **more):
    return Body(tg.Box(half), np.eye(4) if pose is None else pose, **more)


def floor(angle=0.0):
    """Its top goes through the origin, and falls along x."""
    turn = about([0, 1, 0], angle)
    return block([8.0, 4.0, 0.5], at(*(turn @ [0.0, 0.0, -0.5]), turn), fixed=True, name="floor")


def on_slope(angle, along, height, turn=None):
    """The pose of a body over a slope, so far along it and above it."""
    slope = about([0, 1, 0], angle)
    return at(*(slope @ [along, 0.0, height]), slope if turn is None else slope @ turn)


FLOORS = {
    "box": floor(),
    "mesh": Body(tg.generate.box((16, 8, 1)), at(0, 0, -0.5), fixed=True, name="floor"),
    "sheet": Body(tg.generate.sheet(32, size=(16, 8)), fixed=True, name="floor"),
}


@pytest.mark.parametrize("base", FLOORS.values(), ids=list(FLOORS))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_every_kind_rests_on_a_body_by_the_security_distance(shape, base):
    world = World([base, Body(shape, at(0.03, 0.01, 0.75, about([1, 2, 0], 0.3)))], friction=0.6, device="cpu")
    energy = EnergyRule(world)
    for _ in range(150):
        world.step()
        energy.look()
        assert least_distance(world) > 0.0
    assert least_distance(world) == pytest.approx(world.separation, rel=0.15)
    assert np.abs(world.velocities[1]).max() < 2e-2
    assert world.truncation.all_lost_time == 0.0
    assert energy.part < 5e-4
    first = np.where(world.contacts.body_a == 1, 1.0, -1.0)
    np.testing.assert_allclose(first @ world.forces, [0, 0, GRAVITY * world.bodies[1].mass], rtol=0.02, atol=20.0)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
@pytest.mark.parametrize("below", SHAPES, ids=lambda shape: type(shape).__name__)
def test_every_kind_stops_at_every_other_however_fast(shape, below):
    """At 500 m/s, turning, 5 m a step: both are far smaller."""
    target = Body(below, at(0, 0, 0, about([1, 1, 0], 0.4)), name="target", density=2000.0)
    shot = Body(shape, at(0.02, 0.01, 2.0), velocity=(0, 0, -500), spin=(40, 10, 5), name="shot")
    world = World([target, shot], gravity=(0, 0, 0), device="cpu")
    momentum, energy = world.momentum, world.energy.total
    for _ in range(3):
        world.step()
        assert least_distance(world) > 0.0
    assert world.velocities[0, 2] < -1.0  # what is shot through stays where it is
    np.testing.assert_allclose(world.momentum, momentum, atol=1e-9 * np.abs(momentum).max())
    assert world.energy.total <= energy


@pytest.mark.parametrize("triangles", [False, True], ids=["box", "mesh"])
@pytest.mark.parametrize(
    ("shape", "turn", "part"),
    [
        (tg.Sphere(0.4), None, 5.0 / 7.0),
        (tg.Cylinder(0.3, 0.8), about([1, 0, 0], np.pi / 2), 2.0 / 3.0),
    ],
    ids=["sphere", "cylinder"],
)
def test_what_rolls_down_a_slope_gains_speed_as_its_inertia_says(shape, turn, part, triangles):
    angle = 0.2
    radius = float(shape.records["radius"][0])
    body, slope = Body(shape, on_slope(angle, -5.0, radius + 1e-4, turn)), floor(angle)
    if triangles:  # of a plate whose top is cut into many, over whose edges it rolls
        slope = Body(tg.generate.sheet(512, size=(16, 8)), at(turn=about([0, 1, 0], angle)), fixed=True)
    world = World([slope, body], friction=0.8, dt=0.01, device="cpu")
    world.run(0.2)
    before = np.linalg.norm(world.velocities[1, :3])
    world.run(1.0)
    gained = np.linalg.norm(world.velocities[1, :3]) - before
    assert gained == pytest.approx(part * GRAVITY * np.sin(angle), rel=1e-3)
    speed = np.linalg.norm(world.velocities[1, :3])
    assert np.linalg.norm(world.velocities[1, 3:]) * radius == pytest.approx(speed, rel=1e-3)


@pytest.mark.parametrize(("factor", "falls"), [(0.99, False), (1.01, True)])
@pytest.mark.parametrize("shape", [tg.Cylinder(0.25, 1.0), tg.Box([0.25, 0.25, 0.5])], ids=["cylinder", "box"])
def test_what_is_too_steep_topples(shape, factor, falls):
    """Where the foot is half as wide as the body is high: tan(angle) = 0.5."""
    angle = np.arctan(factor * 0.5)
    world = World([floor(angle), Body(shape, on_slope(angle, 0.0, 0.5 + 1e-4))], friction=2.0, device="cpu")
    world.run(1.2 if falls else 0.8)
    leaned = np.degrees(np.arccos(np.clip((about([0, 1, 0], angle).T @ world.poses[1, :3, :3])[2, 2], -1, 1)))
    assert leaned > 2.0 if falls else leaned < 0.1


@pytest.mark.parametrize(("ratio", "sticks"), [(0.98, True), (1.02, False)])
def test_a_box_on_a_box_sticks_if_and_only_if_the_slope_is_below_its_friction(ratio, sticks):
    angle = np.arctan(0.4 * ratio)
    pose = on_slope(angle, -4.0, 0.1 + 2e-4, about([0, 0, 1], 0.3))
    world = World([floor(angle), Body(tg.Box([0.3, 0.2, 0.1]), pose)], friction=0.4, device="cpu")
    world.run(0.2)
    before = np.linalg.norm(world.velocities[1, :3])
    world.run(0.5)
    gained = (np.linalg.norm(world.velocities[1, :3]) - before) / 0.5
    assert gained == pytest.approx(0.0 if sticks else GRAVITY * (np.sin(angle) - 0.4 * np.cos(angle)), abs=1e-5)


def test_a_stack_of_boxes_and_one_of_drums_come_to_rest():
    boxes = [block([0.5, 0.5, 0.5], at(-1.5, 0, 0.501 + 1.001 * k)) for k in range(8)]
    drums = [Body(tg.Cylinder(0.5, 0.6), at(1.5, 0, 0.301 + 0.601 * k)) for k in range(5)]
    world = World([floor(), *boxes, *drums], device="cpu")
    energy = EnergyRule(world)
    for number in range(120):
        world.step()
        energy.look()
        assert number % 10 or least_distance(world) > 0.0
    assert np.abs(world.velocities).max() < 1e-3
    assert np.abs(world.positions[1:9, :2] - [-1.5, 0]).max() < 1e-5
    assert np.abs(world.positions[9:, :2] - [1.5, 0]).max() < 1e-3
    assert energy.part < 5e-3


def test_it_is_the_limit_of_fine_meshes():
    """A ball strikes a crate beside its middle, which turns, and strikes a drum; then all slide on a floor."""
    ends = {}
    for sides in (12, 120, None):
        ball, crate, drum = tg.Sphere(0.3), tg.Box([0.4, 0.3, 0.2]), tg.Cylinder(0.3, 0.5)
        if sides is not None:
            ball = tg.generate.icosphere(triangles={12: 80, 120: 1280}[sides], radius=0.3)
            crate, drum = tg.generate.box((0.8, 0.6, 0.4)), tg.generate.prism(sides, radius=0.3, height=0.5)
        base = floor()
        bodies = [
            base if sides is None else Body(base.mesh, base.pose, fixed=True, name="floor"),
            Body(ball, at(-1.5, 0.17, 0.3002), velocity=(6, 0, 0), mass=90.0, name="ball"),
            Body(crate, at(0, 0, 0.2002), mass=60.0, name="crate"),
            Body(drum, at(0.9, 0.1, 0.2502), mass=70.0, name="drum"),
        ]
        world = World(bodies, friction=0.3, separation=1e-4, dt=0.005, device="cpu")
        world.run(0.5)
        ends[sides] = world.poses[1:]
    moved = np.linalg.norm(ends[None][1:, :3, 3] - [[0, 0, 0.2002], [0.9, 0.1, 0.2502]], axis=1)
    assert moved.min() > 0.3
    far = {sides: np.abs(ends[sides] - ends[None])[1:, :3, 3].max() for sides in (12, 120)}
    assert far[120] < 0.02 * moved.max()
    assert far[120] < 0.2 * far[12]


def test_a_cradle_of_spheres_passes_the_blow_on():
    balls = [Body(tg.Sphere(0.5), at(1.001 * k, 0, 0), name=str(k)) for k in range(5)]
    balls[0] = Body(tg.Sphere(0.5), at(-0.5, 0, 0), velocity=(2.0, 0, 0))
    world = World(balls, gravity=(0, 0, 0), restitution=1.0, friction=0.0, device="cpu")
    world.run(0.6)
    np.testing.assert_allclose(world.velocities[:, 0], [0, 0, 0, 0, 2.0], atol=1e-3)


def test_any_of_them_in_a_closed_box_never_overlap(effort):
    """Fast, spinning, bouncing, light and heavy: every state by certified distances."""
    for seed in range(effort(3)):
        rng = np.random.default_rng(seed)
        walls = []
        for axis, side in itertools.product(range(3), (-1, 1)):
            half, place = np.full(3, 1.3), np.zeros(3)
            half[axis], place[axis] = 0.05, side * 1.4
            walls.append(block(half, at(*place), fixed=True, name=f"wall {axis} {side}"))
        places = rng.permutation(np.array(list(itertools.product([-0.8, 0.0, 0.8], repeat=3))))
        loose = [
            Body(
                shape,
                at(*place, about(rng.normal(size=3), rng.uniform(0, 3))),
                velocity=rng.normal(size=3) * 30.0,
                spin=rng.normal(size=3) * 50.0,
                density=10.0 ** rng.uniform(2, 4),
            )
            for shape, place in zip(
                [*SHAPES[1:3], *SHAPES[4:], tg.Cylinder(0.25, 0.3), tg.Cone(0.25, 0.4)], places, strict=False
            )
        ]
        world = World([*walls, *loose], restitution=(0.0, 0.5, 1.0)[seed % 3], device="cpu")
        energy = EnergyRule(world)
        for _ in range(25):
            world.step()
            energy.look()
            assert least_distance(world) > 0.0
        assert energy.part < 5e-3
        assert world.truncation.all_lost_time <= 0.01 * len(loose) * world.time


@pytest.mark.parametrize("wall", [tg.Box([0.1, 1, 1]), tg.generate.box((0.2, 2, 2))], ids=["box", "mesh"])
def test_what_overlaps_by_its_formula_is_refused_though_its_facets_do_not(wall):
    """Between two corners of its 48 sides a drum is 2 mm in the wall."""
    between = np.pi / 48
    drum = Body(tg.Cylinder(1.0, 1.0), at(0, 0, 0, about([0, 0, 1], between)), name="drum")
    for gap, fits in ((-1e-4, False), (1e-4, True)):
        world = World([Body(wall, at(1.1 + gap, 0, 0), fixed=True, name="wall"), drum], device="cpu")
        if fits:
            world.step()
            assert least_distance(world) > 0.0
        else:
            with pytest.raises(InputError, match=r"\('wall'\) and 1 \('drum'\) overlap at the start"):
                world.step()
            allowed = World(world.bodies, allowed=[(0, 1)], device="cpu")
            allowed.step()
            assert allowed.truncation.overlapping == ((0, 1),)


@pytest.mark.parametrize("inner", ["box", "hull", "mesh"])
@pytest.mark.parametrize("outer", ["box", "hull"])
def test_what_is_wholly_inside_a_polytope_is_refused(inner, outer):
    """Its triangles, by which it meets others on their ways, touch nothing there."""
    mesh = tg.generate.box((1.0, 1.0, 1.0))
    made = {"box": tg.Box([0.5, 0.5, 0.5]), "hull": tg.ConvexMesh(mesh), "mesh": mesh}
    small = {"box": tg.Box([0.1, 0.1, 0.1]), "mesh": tg.generate.box((0.2, 0.2, 0.2))}
    small["hull"] = tg.ConvexMesh(small["mesh"])
    for order in (1, -1):
        bodies = [Body(made[outer], name="outer"), Body(small[inner], at(0.1, 0.0, 0.05), name="inner")][::order]
        with pytest.raises(InputError, match="overlap at the start"):
            World(bodies, device="cpu").step()
    World([Body(made["mesh"], fixed=True), Body(small[inner], at(0.1, 0.0, 0.05))], device="cpu").step()  # a hollow one


def test_polytopes_go_as_their_triangles_do():
    """Boxes and hulls that fall onto each other, turned a little, and the same as meshes."""
    found = []
    box = tg.generate.box((0.5, 0.4, 0.3))
    for shapes in ([tg.Box([0.25, 0.2, 0.15]), tg.ConvexMesh(box)], [box, box]):
        ground = tg.generate.box((4, 4, 1)) if shapes[0] is box else tg.Box([2.0, 2.0, 0.5])
        bodies = [Body(ground, at(z=-0.5), fixed=True)]
        bodies += [
            Body(shapes[k % 2], at(0.03 * k, 0.02 * k, 0.25 + 0.4 * k, about([1, 1, 0], 0.05 * k))) for k in range(4)
        ]
        world = World(bodies, device="cpu")
        again = 0
        for _ in range(60):
            world.step()
            again += world.truncation.solved_again
        found.append((world.positions, len(world.contacts), again))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-4)
    assert abs(found[0][1] - found[1][1]) <= 2
    assert abs(found[0][2] - found[1][2]) <= 2


def test_a_run_goes_on_from_any_frame_with_the_same_bits_and_copies_are_worlds(tmp_path):
    bodies = [floor(), *(Body(shape, at(0.1 * k, 0, 0.6 + 1.1 * k)) for k, shape in enumerate(SHAPES))]
    world = World(bodies, device="cpu")
    run = world.record(steps=40)
    run.save(tmp_path / "run.npz")
    again = World.load(tmp_path / "run.npz", device="cpu")
    fresh = World(bodies, device="cpu")
    fresh.run(steps=20)
    copies = fresh.copies(3)
    for _ in range(20):
        copies.step()
    np.testing.assert_array_equal(copies.poses, np.tile(world.poses, (3, 1, 1, 1)))
    again.run(steps=10)
    world.run(steps=10)
    np.testing.assert_array_equal(again.poses, world.poses)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
@pytest.mark.parametrize("base", ["box", "sheet", "ground"])
def test_where_a_formula_is_in_the_frame_of_its_body_does_not_matter(shape, base, tmp_path):
    offset, start = at(0.3, -0.2, 0.1, about([1, 2, 3], 0.7)), at(2.0, 2.0, 1.0, about([1, 2, 0], 0.3))
    ground = Body(tg.Heightfield(np.zeros((41, 41)), 0.1), name="floor") if base == "ground" else FLOORS[base]
    placed, plain = Body(shape.at(offset), start @ np.linalg.inv(offset)), Body(shape, start)
    np.testing.assert_allclose(placed.mesh.at(placed.pose).vertices, plain.mesh.at(start).vertices, atol=1e-12)
    worlds = [World([ground, body], separation=5e-5, device="cpu") for body in (placed, plain)]
    for world in worlds:
        world.run(steps=35)
    np.testing.assert_allclose(worlds[0].poses[1] @ offset, worlds[1].poses[1], atol=1e-7)
    np.testing.assert_allclose(worlds[0].velocities[1], worlds[1].velocities[1], atol=1e-5)
    worlds[0].record(steps=1).save(tmp_path / "run.npz")
    again = World.load(tmp_path / "run.npz", device="cpu")
    for world in (worlds[0], again):
        world.run(steps=3)
    if not isinstance(shape, tg.ConvexMesh):  # whose hull is made anew of its triangles
        np.testing.assert_array_equal(again.poses, worlds[0].poses)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_boxes_and_balls_round_bodies_hold_what_is_beyond_their_facets(shape, rng):
    """Whatever the frame and the centre of mass: by supports of the formula, from certified distances of far points."""
    for _ in range(10):
        turn = about(rng.normal(size=3), rng.uniform(0, 3))
        body = Body(shape.at(at(*rng.normal(size=3), turn)), np.eye(4), centre=rng.normal(size=3))
        table = World([body], device="cpu")._step.table
        centre, radius = table.centre.numpy()[0], table.radius.numpy()[0]
        lower, upper = table.lower.numpy()[0] + centre, table.upper.numpy()[0] + centre
        for way in rng.normal(size=(20, 3)):
            way /= np.linalg.norm(way)
            tip = tg.Sphere(1e-6).at(at(*(centre + (radius + 2e-6) * way)))
            assert tg.distance(tip, body.by_formula_at(body.pose), device="cpu").lower > 0.0
        for axis in range(3):
            for bound, sign in ((lower, -1.0), (upper, 1.0)):
                half, middle = np.full(3, 9.0), 0.5 * (lower + upper)
                half[axis], middle[axis] = 0.5, bound[axis] + sign * (0.5 + 1e-9)
                plate = tg.Box(half).at(at(*middle))
                assert tg.distance(plate, body.by_formula_at(body.pose), device="cpu").lower > 0.0


@pytest.mark.parametrize("mesh_first", [False, True])
def test_meshes_and_formulas_push_each_other_about(mesh_first):
    """A ring lies on a drum, a ball falls through it; who has the lower number does not matter."""
    ring = Body(tg.generate.torus(grid=(24, 12), radius=0.5, tube=0.15), at(0, 0, 0.8), name="ring")
    loose = [
        Body(tg.Cylinder(0.6, 0.6), at(0, 0, 0.301), name="drum"),
        Body(tg.Sphere(0.2), at(0.2, 0, 1.6), name="ball"),
    ]
    loose = [ring, *loose] if mesh_first else [*loose, ring]
    world = World([FLOORS["sheet"], *loose], device="cpu")
    energy = EnergyRule(world)
    for _ in range(100):
        world.step()
        energy.look()
        assert least_distance(world) > 0.0
    assert energy.part < 5e-3
    assert world.truncation.all_lost_time == 0.0
    assert world["ball"].position[2] == pytest.approx(0.8 + 3 * world.separation, abs=1e-3)  # in the ring, on the drum
    assert world["ring"].position[2] == pytest.approx(0.75, abs=2e-2)


def test_sleepers_wake_when_they_are_struck():
    world = World([floor(), block([0.3] * 3, at(0, 0, 0.3005)), Body(tg.Sphere(0.2), at(0.1, 0, 5.0))], device="cpu")
    while not world.asleep[1]:
        world.step()
        assert world.time < 3.0
    assert world.positions[2, 2] > 0.85
    for _ in range(80):
        world.step()
        assert least_distance(world) > 0.0
    assert world.positions[2, 2] > 0.5

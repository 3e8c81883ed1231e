"""What a world promises of every state, over many steps and every kind of scene."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from bench import dynamics_soak
from bench.shapes.pot import pot
from tangere.dynamics import Body, World
from tests.oracles.rigid_worlds import meeting_pairs


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def floor(**options):
    return Body(tg.generate.box((20.0, 20.0, 1.0)), at(z=-0.5), fixed=True, name="floor", **options)


@pytest.mark.parametrize("sweeps", [0, 10])
@pytest.mark.parametrize("scene", dynamics_soak.SCENES)
def test_ten_thousand_steps_of_small_worlds_have_no_intersection(scene, sweeps):
    """380 of most scenes and both numbers of sweeps; a million are in the benchmark."""
    found = dynamics_soak.soak(scene, sweeps, 1000 + sweeps, 240 if scene in ("formulas", "ground") else 380, look=10)
    assert found.intersections == 0
    assert found.lost <= (0.01 if not sweeps else 0.2)


def test_a_soak_goes_on_where_it_was_interrupted(tmp_path):
    file = tmp_path / "soak.csv"
    assert dynamics_soak.read(file) == []
    chunks = [dynamics_soak.soak("bouncing", 0, number, 5) for number in range(2)]
    for chunk in chunks:
        dynamics_soak.append(file, chunk)
    assert dynamics_soak.read(file) == chunks


def test_a_soak_comes_to_the_same_whoever_makes_its_chunks():
    wanted = [("bouncing", sweeps, number) for number in range(2) for sweeps in (0, 10)]
    alone = list(dynamics_soak.chunks(wanted, 120))
    assert [chunk.key for chunk in alone] == wanted
    assert sorted(dynamics_soak.chunks(wanted, 120, processes=2)) == sorted(alone)
    assert list(dynamics_soak.chunks(wanted, 120, seconds=0.0)) == []


def six_cubes(**options):
    """A driven cube pushes five others along the floor, against each other."""
    cube = tg.generate.box((0.5, 0.5, 0.5))
    bodies = [floor(), Body(cube, at(-1.5, 0.0, 0.26), driven=True, name="pusher")]
    bodies += [Body(cube, at(-0.8 + 0.6 * k, 0.1 * (-1) ** k, 0.26), name=f"cube {k}") for k in range(5)]
    return World(bodies, device="cpu", friction=0.3, **options)


def push_about(world, steps, look):
    """To and fro and sideways, so that cubes meet in ever new ways."""
    rng = np.random.default_rng(0)
    for step in range(steps):
        if step % 50 == 0:
            world.drive("pusher", velocity=[*rng.uniform(-1.0, 1.0, 2), 0.0], spin=[0.0, 0.0, rng.uniform(-1.0, 1.0)])
        if step % 400 == 399:  # back to the middle
            for body in world:
                if body.body.moves and np.abs(body.position[:2]).max() > 3.0:
                    body.set_state(velocity=[*(-0.8 * np.sign(body.position[:2])), 0.0])
        world.step()
        if step % look == look - 1:
            assert meeting_pairs(world) == []


def test_six_cubes_push_each_other_and_none_passes_into_another():
    world = six_cubes()
    push_about(world, 300, 5)
    assert world.truncation.all_lost_time <= 0.01 * 6 * 300 * world.dt


def test_a_press_that_closes_on_what_cannot_yield_is_held_back_and_told_and_opens_again():
    """A cube between floor and press: once it is jammed steps are made in one part, until the press goes up."""
    plate = Body(tg.generate.box((3.0, 3.0, 0.2)), at(z=1.2), driven=True, name="press")
    world = World([floor(), Body(tg.generate.box((1.0, 1.0, 1.0)), at(z=0.501)), plate], device="cpu", dt=0.01)
    world.drive("press", velocity=[0.0, 0.0, -1.0])
    parts = []
    for _ in range(40):
        world.step()
        parts.append(world.truncation.parts)
        assert meeting_pairs(world) == []
    assert max(parts) > 1
    assert parts[-10:] == [1] * 10
    assert 2 in world.truncation.bodies
    assert 0 not in world.truncation.bodies  # the floor has nowhere to go, and loses no time
    assert world.positions[2, 2] > 1.1
    kept, frozen = world.checkpoint(), world.poses
    world.run(steps=5)
    ended = world.poses
    world.resume(kept)
    np.testing.assert_array_equal(world.poses, frozen)
    world.run(steps=5)
    np.testing.assert_array_equal(world.poses, ended)
    world.drive("press", velocity=[0.0, 0.0, 1.0])
    lost = world.truncation.all_lost_time
    world.run(steps=20)
    assert world.truncation.all_lost_time == lost
    assert world.positions[2, 2] == pytest.approx(ended[2, 2, 3] + 0.2, abs=1e-9)


@pytest.mark.parametrize("gap", [4e-10, 1e-8, 1e-6])
def test_bodies_that_start_nearly_as_near_as_rounding_lets_decide_are_not_held_for_good(gap):
    cubes = [Body(tg.generate.box((1.0, 1.0, 1.0)), at(0.1 * k, z=0.5 + gap + (1.0 + gap) * k)) for k in range(4)]
    world = World([floor(), *cubes], device="cpu")
    for _ in range(15):
        world.step()
        assert meeting_pairs(world) == []
    assert world.truncation.all_lost_time <= 0.01 * 4 * 15 * world.dt


@pytest.mark.parametrize(("play", "friction"), [(1e-4, 0.5), (1e-5, 0.0)])
def test_a_cube_leaves_a_tunnel_that_is_hardly_wider_at_full_speed(play, friction):
    """Four walls nearer than the security distance, which adapts to them."""
    size, length = 1.0, 4.0
    middle = 0.5 * size + play + 0.1
    walls = [
        Body(tg.generate.box((length, *side)), at(0.0, y, z), fixed=True)
        for side, y, z in (
            ((1.5, 0.2), 0.0, middle),
            ((1.5, 0.2), 0.0, -middle),
            ((0.2, 2.0 * (middle - 0.1) - 1e-6), middle, 0.0),
            ((0.2, 2.0 * (middle - 0.1) - 1e-6), -middle, 0.0),
        )
    ]
    cube = Body(tg.generate.box((size, size, size)), at(x=-1.4), velocity=[10.0, 0.0, 0.0], name="cube")
    world = World([*walls, cube], device="cpu", gravity=(0.0, 0.0, 0.0), friction=friction)
    assert world.separation > play
    for _ in range(50):
        world.step()
        assert meeting_pairs(world) == []
    assert world["cube"].position[0] == pytest.approx(-1.4 + 10.0 * 0.5, abs=world.separation)
    np.testing.assert_allclose(world["cube"].velocity, [10.0, 0.0, 0.0], atol=1e-5)
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.slow
@pytest.mark.feature("F-R-23")
def test_six_cubes_push_each_other_for_ten_thousand_steps():
    push_about(six_cubes(), 10_000, 1)


@pytest.mark.feature("F-R-18")
def test_an_open_pot_of_loose_triangles_drops_onto_a_sheet_and_a_bar():
    """Edges are not shared: every triangle stands alone, and nothing has an inside."""
    mesh = pot(800)
    assert mesh.topology.open_edge_count == 3 * len(mesh.faces)
    size = mesh.extent
    sheet = Body(tg.generate.sheet(2, size=(4 * size, 4 * size)), fixed=True, name="sheet")
    bar = Body(tg.generate.box((size, 0.1 * size, 0.1 * size)), at(z=0.08 * size), name="bar")
    high = 0.25 * size - float(mesh.vertices[:, 2].min())
    world = World([sheet, bar, Body(mesh, at(0.1 * size, 0.0, high), mass=1.0, name="pot")], device="cpu", friction=0.4)
    for _ in range(100):
        world.step()
        assert meeting_pairs(world) == []
    lowest = world["pot"].mesh.vertices[:, 2].min()
    assert 0.0 < lowest < 0.2 * size
    assert world.truncation.all_lost_time == 0.0


def rough_mesh(rng):
    """A shape as files have it: triangles missing, turned round, there twice, or none of it."""
    shapes = [
        tg.generate.icosphere(subdivisions=2, radius=0.5),
        tg.generate.torus(300, radius=0.4, tube=0.15),
        tg.generate.box((0.9, 0.5, 0.2)),
        tg.generate.gear(384),
        tg.generate.sheet(6, size=(0.8, 0.8)),
    ]
    mesh = shapes[rng.integers(len(shapes))]
    mesh = mesh.replace(vertices=(mesh.vertices - mesh.bounds.mean(axis=0)) / mesh.extent)
    faces = mesh.faces.copy()
    if rng.random() < 0.8:
        turned = rng.random(len(faces)) < 0.2
        faces[turned] = faces[turned, ::-1]
        faces = np.concatenate([faces[rng.random(len(faces)) < 0.8], faces[:3], [faces[0, [0, 0, 1]]]])
    return tg.Mesh(mesh.vertices, faces)


@pytest.mark.parametrize("seed", range(6))
def test_meshes_with_every_fault_at_any_scale_never_meet(seed):
    """Millimetres to kilometres, masses up to ten thousand times as large, sheets and bins without thickness."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** (seed - 2.5)
    corners = np.array([[-0.5, -0.5, -0.6], [0.5, -0.5, -0.6], [0.5, 0.5, -0.6], [-0.5, 0.5, -0.6]])
    rim = np.concatenate([corners, 3.0 * corners * [1, 1, 0] + [0, 0, 2.0]])
    sides = [t for k in range(4) for t in ([k, (k + 1) % 4, 4 + (k + 1) % 4], [k, 4 + (k + 1) % 4, 4 + k])]
    bin_of_sheets = tg.Mesh(scale * rim, np.array([[0, 1, 2], [0, 2, 3], *sides]))
    bodies = [Body(bin_of_sheets, fixed=True, name="bin")]
    for k in range(4):
        mesh = rough_mesh(rng)
        pose = at(*(0.2 * scale * rng.uniform(-1.0, 1.0, 2)), scale * (0.6 + 1.05 * k))
        pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        pose[:3, 0] *= np.sign(np.linalg.det(pose[:3, :3]))
        speed = np.sqrt(9.81 * scale)
        moving = {"velocity": [0.0, 0.0, -2.0 * speed], "spin": rng.normal(size=3) * speed / scale}
        mesh = mesh.replace(vertices=scale * mesh.vertices)
        bodies.append(Body(mesh, pose, mass=10.0 ** rng.uniform(-2.0, 2.0), **moving))
    world = World(
        bodies, dt=0.02 * np.sqrt(scale), friction=float(rng.uniform()), device="cpu", sweeps=[None, 10][seed % 2]
    )
    met = 0
    for _ in range(60):
        world.step()
        assert meeting_pairs(world) == []
        met += len(world.contacts) > 0
    assert met > 10
    assert np.isfinite(world.poses).all()


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
def test_a_light_box_carries_a_heavy_one_and_both_come_to_rest(ratio):
    box = tg.generate.box((1.0, 1.0, 1.0))
    light, heavy = (Body(box, at(z=z), mass=mass) for z, mass in ((0.51, ratio**-0.5), (1.53, ratio**0.5)))
    world = World([floor(), light, heavy], device="cpu")
    world.run(1.0)
    assert np.abs(world.velocities).max() < 1e-3
    np.testing.assert_allclose(world.positions[1:, 2], [0.5, 1.5], atol=3.0 * world.separation)
    assert meeting_pairs(world) == []
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.feature("F-R-66")
def test_a_box_pushed_over_the_floor_against_a_wall_in_worlds_of_both_orders():
    """With and without inertia it stops where the wall is, slides along it, and never enters it."""
    box, places = tg.generate.box((1.0, 1.0, 1.0)), {}
    for order in (1, 2):
        wall = Body(tg.generate.box((0.2, 8.0, 4.0)), at(2.0), fixed=True, name="wall")
        world = World([floor(), wall, Body(box, at(z=0.51), name="box")], order=order, friction=0.0, device="cpu")
        world.push("box", force=[1500.0, 300.0, 0.0])
        for _ in range(300):
            world.step()
            assert meeting_pairs(world) == []
        places[order] = world["box"].position
        assert places[order][0] == pytest.approx(1.4 - world.separation, abs=world.separation)
        assert world["box"].velocity[0] == pytest.approx(0.0, abs=1e-6)
    assert places[1][1] == pytest.approx(0.3 * 3.0, rel=1e-3)  # force / mass is its velocity
    assert places[2][1] == pytest.approx(0.5 * 0.3 * 3.0**2, rel=1e-2)  # and its acceleration


@pytest.mark.feature("F-R-64")
def test_a_sliding_box_stays_between_the_distances_and_meets_nothing():
    """No artificial collisions: what slides is neither hit nor lost, step after step."""
    box = tg.generate.box((0.6, 0.6, 0.3))
    world = World(
        [floor(), Body(box, at(-5.0, 0.0, 0.15 + 1e-3), velocity=[4.0, 1.0, 0.0])], friction=0.05, device="cpu"
    )
    within, steps = 0, 400
    for _ in range(steps):
        world.step()
        gap = world["box"].mesh.vertices[:, 2].min()
        within += 0.4 * world.separation <= gap <= 2.3 * world.separation
        assert gap > 0.0
    assert within > 0.99 * (steps - 5)
    assert world.truncation.all_solved_again == 0
    assert world.truncation.all_lost_time == 0.0

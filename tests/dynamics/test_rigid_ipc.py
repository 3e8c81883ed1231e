"""Scenes of the Rigid-IPC project, which nobody here wrote: what a correct result is, they say themselves."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.runtime import InputError
from tests.oracles.rigid_worlds import EnergyRule, least_distance, meeting_pairs

#: Cheap ones, each of another kind of contact.
TWELVE = (
    "unit-tests/cube-falling-on-edge",
    "unit-tests/edge-edge-parallel",
    "unit-tests/face-vertex",
    "unit-tests/tet-corner",
    "unit-tests/tunneling",
    "unit-tests/vertex-vertex",
    "unit-tests/erleben/cliff-edges",
    "unit-tests/erleben/spike-in-crack",
    "unit-tests/erleben/wedges",
    "unit-tests/tunnel/3-walls",
    "friction/incline-plane/incline-plane-25deg",
    "chain/3-links",
)


@pytest.fixture(scope="session")
def fixtures(data_folder):
    folder = data_folder / "rigid-ipc" / "fixtures"
    if not folder.is_dir():
        pytest.skip("TANGERE_DATA has no rigid-ipc")
    return folder


def all_fixtures() -> list[str]:
    import os
    from pathlib import Path

    folder = Path(os.environ.get("TANGERE_DATA", "")) / "rigid-ipc" / "fixtures"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.json"))


def check_run(world: World, steps: int, look: int = 1) -> None:
    """The rule for all scenes."""
    driven = any(body.driven or body.force.any() or body.torque.any() for body in world.bodies)
    energy = EnergyRule(world)
    for number in range(steps):
        world.step()
        energy.look()
        if number % look == look - 1 or number == steps - 1:
            assert meeting_pairs(world) == []
    assert np.isfinite(world.poses).all()
    assert driven or energy.part < 5e-3
    moving = sum(not body.fixed for body in world.bodies)
    assert world.truncation.all_lost_time <= 0.01 * moving * steps * world.dt


@pytest.mark.parametrize("name", TWELVE)
def test_a_scene_keeps_apart_what_is_apart_and_gains_no_energy(fixtures, name):
    world = World.load(fixtures / f"{name}.json", device="cpu")
    check_run(world, 50, look=5)


@pytest.mark.slow
@pytest.mark.parametrize("name", all_fixtures())
def test_every_scene_runs_as_its_file_says(fixtures, name):
    world = World.load(fixtures / f"{name}.json", device="cpu")
    check_run(world, world.steps_told or 100)


def test_second_order_terms_spare_a_swinging_chain_most_hits(fixtures):
    """Without them its links lose their gaps at second order in every step, and the walk finds each again."""
    hits = {}
    for second_order in (True, False):
        world = World.load(fixtures / "chain/3-links.json", device="cpu", second_order=second_order)
        world.run(steps=100)
        hits[second_order] = world.truncation.all_solved_again
        assert world.truncation.all_lost_time == 0.0
    assert 3 * hits[True] < hits[False]


def test_a_swinging_chain_is_held_back_without_the_terms_of_second_order(fixtures, monkeypatch):
    """Neither kappa in its rows nor what hits show that bends: links are truncated. With both none is, and few are hit.

    Steps are not made in parts here, which would hide it.
    """
    monkeypatch.setattr("tangere.dynamics.stepping.step.SPLITS", 0)
    told = {}
    for terms in (True, False):
        world = World.load(fixtures / "chain/3-links.json", device="cpu", second_order=terms)
        step = world._step
        add = step._add_hits

        def without_bend(hits, add=add, step=step):
            add(hits)
            step.rows.straighten()

        if not terms:
            monkeypatch.setattr(step, "_add_hits", without_bend)
        world.run(steps=100)
        told[terms] = world.truncation
        assert meeting_pairs(world) == []
    assert told[True].all_bodies == 0
    assert told[False].all_bodies > 50
    assert told[False].all_lost_time > 0.1
    assert told[False].all_solved_again > 3 * told[True].all_solved_again


def test_the_walk_knows_the_gaps_of_the_start_whatever_it_hits(fixtures):
    """What is looked up where bodies meet must not take the place of what was found where the step began."""
    world = World.load(fixtures / "chain/3-links.json", device="cpu", second_order=False)
    walk, again = world.phases["walk"], 0

    def watched(step):
        found = step._found
        before = None if found is None else found.results.least.numpy()[: found.pair_count].copy()
        walk(step)
        if found is not None and step._found is found:
            np.testing.assert_array_equal(found.results.least.numpy()[: found.pair_count], before)

    world.phases["walk"] = watched
    for _ in range(40):
        world.step()
        again += world.truncation.solved_again
    assert again > 5


def test_ten_sweeps_make_it_slow_and_never_wrong(fixtures):
    world = World.load(fixtures / "chain/3-links.json", device="cpu", sweeps=10)
    for _ in range(60):
        world.step()
        assert meeting_pairs(world) == []


def test_a_bullet_stops_at_the_wall(fixtures):
    world = World.load(fixtures / "unit-tests/tunneling.json", device="cpu")
    mover = next(k for k, body in enumerate(world.bodies) if body.moves)
    wall = next(k for k, body in enumerate(world.bodies) if not body.moves)
    side = np.sign(world.positions[wall] - world.positions[mover])[0]
    world.run(steps=30)
    assert np.sign(world.positions[wall] - world.positions[mover])[0] == side
    assert world.truncation.all_lost_time == 0.0


def test_a_step_of_a_second_is_made_in_parts_where_one_cannot_be_solved(fixtures):
    """Bodies packed tightly fall, turn and settle within the only step, and no energy is made.

    Which parts the step has, and whether the smallest hold anybody back, changes with the last bits of the start."""
    world = World.load(fixtures / "minimum-separation/packing.json", device="cpu")
    before = world.energy.total
    world.step()
    assert world.steps == 1
    assert world.time == world.dt == 1.0
    assert world.truncation.parts > 1
    assert world.truncation.lost_time <= 1e-3 * world.dt
    assert world.energy.total < before
    assert meeting_pairs(world) == []
    assert least_distance(world) > 0.99 * world.separation  # which the file asks for


@pytest.mark.parametrize("walls", ["2-walls", "2-walls-8K", "3-walls"])
def test_a_tight_tunnel_takes_no_speed(fixtures, walls):
    """0.1 mm of play on each side, less than the security distance."""
    world = World.load(fixtures / f"unit-tests/tunnel/{walls}.json", device="cpu")
    mover = next(k for k, body in enumerate(world.bodies) if body.moves)
    before = world.velocities[mover]
    assert world.separation > 1e-4
    world.run(steps=60)
    np.testing.assert_allclose(world.velocities[mover], before, rtol=0.0, atol=1e-6 * np.abs(before).max())
    assert world.truncation.all_lost_time == 0.0


def scene_of(fixtures, name, **options):
    world = World.load(fixtures / f"{name}.json", device="cpu", **options)
    return world, [k for k, body in enumerate(world.bodies) if body.moves]


@pytest.mark.parametrize("name", ["cliff-edges", "internal-edges"])
def test_bodies_on_edges_rest(fixtures, name):
    world, moving = scene_of(fixtures, f"unit-tests/erleben/{name}")
    world.run(1.0)
    assert np.abs(world.velocities[moving]).max() < 5e-3


def test_a_wedge_slides_over_the_diagonal_of_its_plane(fixtures):
    world, (mover,) = scene_of(fixtures, "unit-tests/erleben/sliding-wedge")
    before = world.positions[mover]
    world.run(1.0)
    assert np.linalg.norm(world.positions[mover] - before) == pytest.approx(10.0, abs=1e-2)


def test_what_turns_keeps_its_energy_and_angular_momentum(fixtures):
    for file in sorted((fixtures / "unit-tests" / "rotation").glob("rotating*.json")):
        world = World.load(file, device="cpu")
        energy, momentum = world.energy.total, world.angular_momentum
        world.run(1.0)
        assert world.energy.total == pytest.approx(energy, rel=1e-3)
        assert np.linalg.norm(world.angular_momentum - momentum) < 1e-3 * np.linalg.norm(momentum)


@pytest.mark.parametrize(("friction", "carried"), [("0.0", False), ("0.5", True)])
def test_a_turntable_carries_what_its_friction_holds(fixtures, friction, carried):
    world, (table, cube) = scene_of(fixtures, f"friction/turntable/turntable-mu={friction}")
    world.run(steps=20)
    before = world.positions[cube]
    world.run(steps=40)
    arm = world.positions[cube] - world.positions[table]
    belt = np.cross(world.velocities[table, 3:], arm)
    moved = np.linalg.norm(world.positions[cube] - before)
    if carried:
        turned = world.dt * np.linalg.norm(world.velocities[table, 3:]) * np.linalg.norm(belt)  # in one step
        assert np.linalg.norm(world.velocities[cube, :3] - belt) < 1.1 * turned
    else:
        assert moved < 1e-6


def test_a_turntable_that_turns_ever_faster_loses_what_its_friction_holds_no_more(fixtures):
    """Sliding outwards, and over the rim; the other one holds at the same speeds."""
    rims = {}
    for friction in ("0.1", "0.5"):
        world, (table, cube) = scene_of(fixtures, f"friction/turntable/turntable-mu={friction}")
        world.run(steps=100)
        arm = (world.positions[cube] - world.positions[table])[[0, 2]]
        need = world.velocities[table, 4] ** 2 * np.linalg.norm(arm) / (float(friction) * 9.8)
        rims[friction] = need, np.linalg.norm(arm)
        assert meeting_pairs(world) == []
    assert rims["0.1"][0] > 1.0 > rims["0.5"][0]
    assert rims["0.1"][1] > 1.5 + 0.3 > rims["0.5"][1] + 0.2


def plane_cut(cells: int) -> tg.Mesh:
    """The square of the plane's file, 10 m wide at y = 0, in 2 `cells`^2 triangles."""
    steps = np.linspace(-5.0, 5.0, cells + 1)
    x, z = np.meshgrid(steps, steps, indexing="ij")
    points = np.stack([x, np.zeros_like(x), z], axis=-1).reshape(-1, 3)
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
    across, beyond = corner + cells + 1, corner + cells + 2
    faces = np.concatenate([np.stack([corner, corner + 1, beyond], 1), np.stack([corner, beyond, across], 1)])
    return tg.Mesh(points, faces)


@pytest.mark.parametrize("name", ["two-triangles", "two-triangles-tet"])
def test_a_plane_of_8192_triangles_carries_as_one_of_two_does(fixtures, name):
    found = {}
    for cells in (1, 64):
        world, (mover,) = scene_of(fixtures, f"unit-tests/tessellated-plane/{name}")
        plane = next(body for body in world.bodies if not body.moves)
        cut = plane_cut(cells)
        np.testing.assert_allclose(cut.bounds, plane.mesh.bounds, atol=1e-12)
        bodies = [body if body.moves else Body(cut, body.pose, fixed=True) for body in world.bodies]
        options = {"dt": world.dt, "gravity": world.gravity, "separation": world.separation, "friction": 0.0}
        world = World(bodies, device="cpu", **options)
        world.run(1.0)
        assert meeting_pairs(world) == []
        assert np.abs(world.velocities[mover]).max() < 1e-6
        found[cells] = world[mover].mesh.vertices
    assert np.abs(found[64] - found[1]).max() < 2.0 * world.separation


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("rolling/cone", 250),
        ("rolling/gomboc", 120),
        pytest.param("spolling-coin", 12_500, marks=pytest.mark.slow),
        pytest.param("rolling/gomboc", 2000, marks=pytest.mark.slow),
    ],
)
def test_what_rolls_stays_on_the_plane_and_only_loses_energy(fixtures, name, steps):
    world, (mover,) = scene_of(fixtures, f"friction/{name}")
    plane = next(mesh for mesh, body in zip(world.meshes(), world.bodies, strict=True) if not body.moves)
    level = plane.bounds[1, 1]
    energy, touched = EnergyRule(world), False
    for number in range(steps):
        world.step()
        energy.look()
        gap = world[mover].mesh.vertices[:, 1].min() - level
        touched = touched or gap < 2.0 * world.separation
        assert gap > 0.0
        assert not touched or gap < 10.0 * world.separation
        if number % 50 == 0:
            assert meeting_pairs(world) == []
    assert touched
    weight = world.bodies[mover].mass * np.linalg.norm(world.gravity)
    assert energy.rise < 0.05 * weight * world.separation  # what rests too near is put back into its distance
    assert world.truncation.all_lost_time == 0.0


INCLINES = [
    *(f"incline-plane-{angle}deg" for angle in (15, 20, 25, 30, 45, 85)),
    *(f"slopeTest_highSchoolPhysics_mu={friction}" for friction in ("0.5", "1")),
]


@pytest.mark.parametrize("name", INCLINES)
def test_blocks_on_slopes_stick_or_slide_as_coulomb_says(fixtures, name):
    """Speed along the slope once the block lies on it: none to speak of, or what the rest of the pull makes of it."""
    world, (mover,) = scene_of(fixtures, f"friction/incline-plane/{name}")
    plane = next(mesh for mesh, body in zip(world.meshes(), world.bodies, strict=True) if not body.moves)
    a, b, c = plane.vertices[plane.faces[0]]
    normal = np.cross(b - a, c - a) / np.linalg.norm(np.cross(b - a, c - a))
    normal = normal if normal @ world.gravity < 0.0 else -normal
    push = -(world.gravity @ normal)
    pull = float(np.linalg.norm(world.gravity + push * normal))
    friction = world.told_options()["friction"]
    flat = 0
    while flat < 5:  # the one at 30 degrees falls on an edge first
        world.step()
        lies = world.forces.any(axis=1).sum() > 1 and np.abs(world.velocities[mover, 3:]).max() < 1e-3
        flat = flat + 1 if lies else 0
        assert world.time < 3.0
    before = world.velocities[mover, :3]
    world.run(steps=8)
    gained = np.linalg.norm(world.velocities[mover, :3] - before) / (8 * world.dt)
    if pull <= friction * push * (1.0 + 1e-6):
        assert np.linalg.norm(world.velocities[mover, :3]) < 1e-3
    else:
        assert gained == pytest.approx(pull - friction * push, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps", "speed"), [
    ("piles/plane", 400, 1e-6), ("piles/cone", 3600, 5e-3), ("piles/cone-bunnies-lowpoly", 1000, 1e-3),
    ("compactor/single-cube", 400, 1e-6),
])  # fmt: skip
def test_piles_come_to_rest(fixtures, name, steps, speed):
    """Nothing rubs in these files: what is left in a cone sways out slowly."""
    world, moving = scene_of(fixtures, name)
    for number in range(steps):
        world.step()
        if number % 20 == 19:
            assert meeting_pairs(world) == []
        if number >= steps - 100:
            assert np.abs(world.velocities[moving, :3]).max() < speed
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.slow
def test_cubes_squeezed_out_of_a_compactor_are_beyond_its_planes(fixtures):
    """Nothing rubs and no wall closes the fourth side: planes come together only when all cubes have left."""
    world, moving = scene_of(fixtures, "compactor/multiple-cubes")
    planes, cubes = moving[:4], moving[4:]
    reach = max(np.abs(world.meshes()[k].bounds[:, 2]).max() for k in planes)
    for _ in range(450):
        world.step()
        assert meeting_pairs(world) == []
        left, right = (world.positions[k, 0] for k in planes[:2])
        if right < left:
            assert min(np.abs(world.meshes()[k].bounds[:, 2]).min() for k in cubes) > reach
            break
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.slow
def test_a_house_of_cards_falls_under_falling_blocks(fixtures):
    world, moving = scene_of(fixtures, "friction/card-house/card-house-3-levels-falling-blocks")
    cards = [k for k in moving if len(world.bodies[k].mesh.faces) == 2]
    before = world.positions[cards]
    for number in range(300):
        world.step()
        if number % 5 == 4:
            assert meeting_pairs(world) == []
    size = world.bodies[cards[0]].mesh.extent
    assert (np.linalg.norm(world.positions[cards] - before, axis=1) > 0.1 * size).sum() > len(cards) // 2


STANDING = ("tent", "house-2-levels", "house-3-levels")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arch/arch-25-stones", *(f"card-house/card-{what}" for what in STANDING)])
def test_arches_and_houses_stand(fixtures, name):
    world, moving = scene_of(fixtures, f"friction/{name}")
    world.run(3.0)
    before = world.positions
    world.run(5.0)
    sizes = np.array([world.bodies[k].mesh.extent for k in moving])
    assert (np.linalg.norm((world.positions - before)[moving], axis=1) < 0.01 * sizes).all()
    assert np.abs(world.velocities[moving]).max() < 1e-3


@pytest.mark.parametrize(
    ("name", "steps"),
    [pytest.param("chain-kinematic", 600, marks=pytest.mark.slow), ("single-kinematic", 400), ("chain", 110)],
)
def test_gears_turn_each_other(fixtures, name, steps):
    """All have the same teeth; a rail that falls beside the first of the last file drives them."""
    world, _ = scene_of(fixtures, f"mechanisms/gears/{name}")
    gears = [k for k, body in enumerate(world.bodies) if body.name.startswith("gear")]
    start, turned = world.positions, np.zeros(len(world))
    for _ in range(steps):
        world.step()
        turned += world.dt * world.velocities[:, 5]
    ways = np.abs(turned[gears])
    if len(gears) < len(world):
        fallen = (start - world.positions)[0, 1]
        assert fallen > 1.0
        ways = np.append(ways, fallen / (0.5 * (start[gears[1]] - start[gears[0]])[0]))
    np.testing.assert_allclose(ways, ways[0], atol=0.35)  # less than one backlash each
    assert (np.sign(turned[gears[1:]]) == -np.sign(turned[gears[:-1]])).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps"), [("3-links", 500), ("5-links", 500), ("anchor", 200)])
def test_links_stay_linked(fixtures, name, steps):
    world, _ = scene_of(fixtures, f"chain/{name}")
    links = [k for k, body in enumerate(world.bodies) if body.name not in ("spool", "anchor")]
    reach = max(world.bodies[k].mesh.extent for k in links)
    for _ in range(steps):
        world.step()
        apart = np.linalg.norm(np.diff(world.positions[links], axis=0), axis=1)
        assert apart.max() < reach  # linked hoops cannot be farther apart


def test_the_distance_asked_for_is_kept(fixtures):
    world, _ = scene_of(fixtures, "minimum-separation/cube-falling-on-edge")
    assert world.separation == 0.05
    for step in range(137):
        world.step()
        if step % 4 == 0:
            meshes, bodies = world.meshes(), world.bodies
            for i, j in itertools.combinations(range(len(bodies)), 2):
                same = bodies[i].group is not None and bodies[i].group == bodies[j].group
                if not (same or (bodies[i].fixed and bodies[j].fixed)):
                    assert tg.distance(meshes[i], meshes[j], device="cpu").lower > 0.05 * (1.0 - 1e-3)


def test_what_a_file_says_is_read(tmp_path):
    box = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    (tmp_path / "meshes").mkdir()
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "meshes" / "tet.obj").write_text(box)
    bodies = [
        {"mesh": "tet.obj", "position": [0, 0, 5], "rotation": [90, 0, 0], "scale": [2, 1, 1], "density": 7},
        {"mesh": "tet.obj", "enabled": False},
        {"mesh": "tet.obj", "type": "static", "position": [9, 0, 0], "dimensions": [1, 2, 3]},
        {"mesh": "tet.obj", "type": "kinematic", "position": [18, 0, 0], "angular_velocity": [0, 0, 180]},
        {
            "mesh": "tet.obj",
            "is_dof_fixed": [True, False, True, True, True, True],
            "group_id": 3,
            "position": [27, 0, 0],
        },
    ]
    problem = {"rigid_bodies": bodies, "gravity": [0, -9.8, 0], "coefficient_restitution": -1}
    barrier = {"minimum_separation_distance": 0.01}
    data = {
        "timestep": 0.02,
        "max_iterations": 7,
        "rigid_body_problem": problem,
        "distance_barrier_constraint": barrier,
    }
    file = tmp_path / "fixtures" / "scene.json"
    file.write_text(json.dumps(data))
    world = World.load(file, device="cpu")
    assert [body.name for body in world.bodies] == ["tet 1", "tet 2", "tet 3", "tet 4"]
    first, static, driven, held = world.bodies
    assert first.mass == pytest.approx(7 * 2 / 6)
    np.testing.assert_allclose(first.pose[:3, :3] @ [0, 1, 0], [0, 0, 1], atol=1e-15)
    assert static.fixed
    assert not static.moves
    np.testing.assert_allclose(np.ptp(static.mesh.bounds, axis=0), [1, 2, 3])
    assert driven.driven
    np.testing.assert_allclose(driven.spin, [0, 0, np.pi])
    assert held.held.tolist() == [True, False, True, True, True, True]
    assert held.group == 3
    assert world.dt == 0.02
    assert world.separation == 0.01
    assert world.steps_told == 7
    world.run()
    assert world.steps == 7
    fallen = world.positions[3] - held.pose[:3, 3] - held.mass_properties.centre
    np.testing.assert_allclose(fallen, [0, -0.5 * 9.8 * 0.14**2, 0], atol=1e-12)


def test_a_mesh_may_stand_in_the_file_and_steps_below_one_say_nothing(tmp_path):
    corners, faces = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
    body = {"vertices": corners, "faces": faces, "scale": 2}
    driven = {**body, "position": [9, 0, 0], "type": "kinematic", "kinematic_max_time": 1.0}
    problem = {"rigid_bodies": [body, driven], "gravity": [0, 0, -10]}
    file = tmp_path / "scene.json"
    file.write_text(json.dumps({"timestep": 0.1, "max_iterations": -1, "max_time": 0.5, "rigid_body_problem": problem}))
    with pytest.warns(UserWarning, match=r"rigid_bodies\[1\]: kinematic_max_time is not followed"):
        world = World.load(file, device="cpu")
    assert [body.name for body in world.bodies] == ["body 0", "body 1"]
    assert world.bodies[0].mass == pytest.approx(1000.0 * 8.0 / 6.0)
    assert world.steps_told == 5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ('{"rigid_body_problem": {"rigid_bodies": [{"vertices": [[0, 0]]}]}}', r"rigid_bodies\[0\]: "),
        ("{}", "no rigid_body_problem"),
        ('{"rigid_body_problem": {"rigid_bodies": [{}]}}', r"rigid_bodies\[0\]: names no mesh"),
        ('{"rigid_body_problem": {"rigid_bodies": [{"mesh": "no.obj"}]}}', "there is no mesh"),
        ('{"timestep": "x", "rigid_body_problem": {"rigid_bodies": []}}', "timestep must be a finite number"),
    ],
)
def test_a_bad_file_is_refused_with_a_reason(tmp_path, text, told):
    file = tmp_path / "scene.json"
    file.write_text(text)
    with pytest.raises(InputError, match=told):
        World.load(file, device="cpu")


TET = {
    "vertices": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "faces": [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]],
}


@pytest.mark.parametrize(
    ("body", "scene", "told"),
    [
        ({"group_id": "a"}, {}, "group_id must be a whole number, not 'a'"),
        ({"group_id": [1]}, {}, "group_id must be a whole number"),
        ({"group_id": float("nan")}, {}, "group_id must be a whole number, not nan"),
        ({"density": 10**400}, {}, "density must be a finite number"),
        ({"is_dof_fixed": [True, [False]]}, {}, "is_dof_fixed is a truth value or six"),
        ({"mesh": 3}, {}, "names no mesh"),
        ({"faces": [[0.5, 2, 1]]}, {}, "faces must be whole numbers"),
        ({"faces": [[True, 2, 3]]}, {}, "faces must be whole numbers"),
        ({"enabled": "no"}, {}, "enabled is true or false, not 'no'"),
        ({}, {"max_time": "x", "max_iterations": 3}, "max_time must be a finite number"),
        ({}, {"distance_barrier_constraint": [1]}, "distance_barrier_constraint must be an object"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_its_key(tmp_path, body, scene, told):
    file = tmp_path / "scene.json"
    file.write_text(json.dumps({**scene, "rigid_body_problem": {"rigid_bodies": [{**TET, **body}]}}))
    with pytest.raises(InputError, match=told):
        World.load(file, device="cpu")


def test_brackets_within_brackets_are_refused(tmp_path):
    file = tmp_path / "scene.json"
    file.write_text(100_000 * "[")
    with pytest.raises(InputError, match="too many brackets"):
        World.load(file, device="cpu")


def test_groups_are_told_apart_whatever_their_numbers():
    """As they are where somebody makes them by hashing names."""
    up, box = np.eye(4), tg.generate.box((1.0, 1.0, 1.0))
    up[2, 3] = 1.02
    for group, stays in ((2**32 + 1, True), (10**30, True), (1, False)):
        bodies = [Body(box, fixed=True, group=1), Body(box, up, name="cube", group=group)]
        world = World(bodies, device="cpu", dt=0.01)
        world.run(steps=40)
        assert (world["cube"].position[2] > 0.9999) == stays

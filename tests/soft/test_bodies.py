"""Bodies, scenes and bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracles.soft_bodies import overlaps
from tangere.query.signed_distance import signed_distance
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.tets import solid_block, solid_torus
from tangere.soft import Body, Simulation, scenes


@pytest.mark.feature("F-L-40")
def test_a_coarse_solid_carries_a_fine_surface_and_feels_its_contacts():
    surface = generate.torus(grid=(64, 32), radius=5.0, tube=2.0)
    fine = Body(solid_torus((16, 2)), surface=surface, youngs_modulus=1e4, density=1.0)
    assert len(surface.vertices) > 10 * len(fine.shape.vertices)
    floor = Body(generate.sheet(2, size=(40.0, 40.0)).replace(vertices=_floor(-2.3)), fixed=True)
    simulation = Simulation([fine, floor], device="cpu", distance=0.2)
    corners, weights = fine.carriers
    touched = 0
    for _ in range(40):
        simulation.step()
        carried = (weights[:, :, None] * simulation[0].positions[corners]).sum(axis=1)
        assert np.allclose(simulation.meshes()[0].vertices, carried, atol=1e-12)
        touched = max(touched, simulation.rows.count)
    assert touched > 50
    lowest = simulation.meshes()[0].vertices[:, 2].min()
    assert -2.3 < lowest < -2.0  # it lies on the floor
    assert not overlaps(simulation)


def _floor(height: float) -> np.ndarray:
    return generate.sheet(2, size=(40.0, 40.0)).vertices + [0.0, 0.0, height]


def test_mass_is_density_times_size():
    block = Body(solid_block((2, 2, 2), size=(1.0, 2.0, 3.0)), density=5.0)
    assert block.vertex_mass.sum() == pytest.approx(30.0)
    sheet = Body(generate.sheet(8, size=(2.0, 3.0)), density=10.0, thickness=0.1)
    assert sheet.vertex_mass.sum() == pytest.approx(6.0)


@pytest.mark.feature("F-L-80")
@pytest.mark.parametrize("triangles", [3_200, 12_800, 51_200])
def test_the_tori_have_exactly_the_triangles_of_the_document(triangles):
    simulation = scenes.tori(triangles, device="cpu")
    assert [len(mesh.faces) for mesh in simulation.meshes()] == [triangles // 2] * 2
    assert simulation.bodies[0].fixed.any()
    assert not simulation.bodies[1].fixed.any()


@pytest.mark.feature("F-L-81")
def test_the_knot_has_exactly_the_triangles_of_the_document_and_starts_well():
    simulation = scenes.knot(device="cpu")
    assert len(simulation.meshes()[0].faces) == 3960
    for _ in range(6):
        simulation.run(steps=10)
        assert not overlaps(simulation)
    assert simulation.rows.count > 0  # strands touch


def test_the_tori_touch_without_passing_through():
    simulation = scenes.tori(3_200, device="cpu")
    start = simulation.energy.total
    for _ in range(12):
        simulation.run(steps=6)
        assert not overlaps(simulation)
        assert simulation.energy.total <= start
    assert simulation.rows.count > 0


@pytest.mark.slow
@pytest.mark.feature("F-L-44", "F-L-80", "F-L-81")
@pytest.mark.parametrize(("scene", "steps"), [(scenes.tori, 300), (scenes.knot, 370)], ids=["tori", "knot"])
def test_the_scenes_of_the_document_run_to_their_end(scene, steps):
    simulation = scene(device="cpu")
    start, most = simulation.energy.total, -np.inf
    for step in range(steps):
        simulation.step()
        most = max(most, simulation.energy.total)
        if step % 3 == 0:
            assert not overlaps(simulation)
    assert most <= start + 0.01 * abs(start)


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [1e2, 1e3, 1e5, 1e6])
def test_tori_of_any_stiffness_never_pass_through(stiffness):
    simulation = scenes.tori(3_200, youngs_modulus=stiffness, device="cpu")
    start = simulation.energy.total
    for _ in range(40):
        simulation.run(steps=4)
        assert not overlaps(simulation)
        assert simulation.energy.total <= start + 0.02 * abs(start)


@pytest.mark.slow
@pytest.mark.feature("F-L-45")
@pytest.mark.parametrize("response", ["penalty", "hard"])
@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6])
def test_contact_springs_of_any_stiffness_keep_the_solver_finite(response, stiffness):
    simulation = scenes.tori(3_200, response=response, contact_stiffness=stiffness, device="cpu")
    start = simulation.energy.total
    for _ in range(90):
        simulation.step()
        assert np.isfinite(simulation.energy.total)
    assert simulation.energy.total <= start + 0.02 * abs(start)


@pytest.mark.feature("F-L-42")
@pytest.mark.parametrize("response", ["penalty", "hard"])
def test_both_responses_run_the_tori_without_deep_penetration(response):
    """The whole scene, 300 steps; tubes have a radius of 2, a vertex may be a hundredth of that inside the other."""
    simulation, contact_points = scenes.tori(3_200, response=response, device="cpu"), 0
    for _ in range(60):
        simulation.run(steps=5)
        contact_points += len(simulation.contacts) > 0
        for mesh, other in itertools.permutations(simulation.meshes()):
            assert signed_distance(mesh.vertices, other, device="cpu").distance.min() > -0.02
    assert contact_points > 15  # of 60 looks; how often penalty bounces, rounding decides


def test_a_simulation_of_many_bodies_keeps_them_apart():
    bodies = [Body(generate.sheet(2, size=(20.0, 20.0)), fixed=True, name="floor")]
    for number in range(9):
        pose = np.eye(4)
        pose[:3, 3] = [1.3 * (number % 3), 1.3 * (number // 3), 0.6 + 0.05 * number]
        bodies.append(Body(solid_block((1, 1, 1)).at(pose), youngs_modulus=1e3, density=1.0))
    simulation = Simulation(bodies, device="cpu", distance=0.05)
    simulation.run(steps=30)
    assert not overlaps(simulation)
    heights = [mesh.vertices[:, 2].min() for mesh in simulation.meshes()[1:]]
    assert 0.0 < min(heights) < max(heights) < 0.06


@pytest.mark.parametrize("density", [100.0, 1000.0])
def test_a_ribbon_a_centimetre_wide_that_is_shaken_gains_no_energy(density):
    ribbon = generate.sheet(40, size=(1.0, 0.01))
    for seed in range(3):
        shaken = 0.5 * np.random.default_rng(seed).standard_normal(ribbon.vertices.shape)
        body = Body(ribbon, density=density, velocity=shaken)
        simulation = Simulation([body], gravity=(0.0, 0.0, 0.0), response="none", device="cpu")
        start = simulation.energy.total
        for _ in range(60):
            simulation.step()
            assert simulation.energy.total < start


@pytest.mark.parametrize("scene", [scenes.tori, scenes.knot, scenes.drop])
def test_sweeps_of_ordinary_meshes_follow_from_their_usual_edge(scene):
    for body in scene(device="cpu").bodies:
        ends = body.shape.vertices[body.shape.edges]
        edge = np.median(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1))
        sound = np.sqrt(body.youngs_modulus / body.density)
        assert body.is_obstacle or body.sweeps_needed(0.02) == np.ceil(5.5 * 0.02 * sound / edge)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"youngs_modulus": -1.0}, "youngs_modulus must be positive"),
        ({"poisson": 0.5}, "poisson must be between 0 and 0.49"),
        ({"density": np.nan}, "density must be positive"),
        ({"damping": -1.0}, "damping must be finite and not negative"),
        ({"fixed": [0, 99]}, "vertex 99 cannot be fixed: there are 8"),
        ({"fixed": np.ones(3, bool)}, r"mask of fixed vertices has shape \(3,\)"),
        ({"velocity": (1.0, 2.0)}, r"velocity has shape \(2,\)"),
        ({"velocity": (1.0, 2.0, np.inf)}, "velocity is not finite"),
        ({"surface": generate.icosphere(radius=9.0)}, "too far outside"),
        ({"surface": "x"}, "Body 'block': surface must be a Mesh, not str"),
    ],
)
def test_bad_bodies_are_named(options, message):
    with pytest.raises(InputError, match=message):
        _ = Body(solid_block((1, 1, 1)), **options).carriers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "dt must be positive"),
        ({"gravity": (0.0, 1.0)}, "gravity must be three finite numbers"),
        ({"response": "soft"}, "response must be"),
        ({"friction": -0.1}, "friction must be finite and not negative"),
        ({"distance": 0.0}, "distance must be positive"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1"),
        ({"contact_stiffness": -5.0}, "contact_stiffness must be positive"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        Simulation([Body(solid_block((1, 1, 1)), density=1.0)], device="cpu", **options)


def test_what_is_not_a_body_is_refused():
    with pytest.raises(InputError, match="at least one body"):
        Simulation([])
    with pytest.raises(InputError, match="body 0 is a Mesh"):
        Simulation([generate.sheet(2)])
    with pytest.raises(InputError, match="nothing can move"):
        Simulation([Body(generate.sheet(2), fixed=True)])
    with pytest.raises(InputError, match="TetMesh or a Mesh"):
        Body("block", density=1.0)
    with pytest.raises(InputError, match="its own surface"):
        Body(generate.sheet(2), surface=generate.sheet(8), density=1.0)
    with pytest.raises(InputError, match="triangle 0 has no area"):
        Body(generate.sheet(2).replace(vertices=np.zeros((4, 3))), density=1.0)
    simulation = Simulation([Body(generate.sheet(2), density=1.0)], device="cpu")
    with pytest.raises(InputError, match=r"positions of body 0 have shape \(3, 3\), not \(4, 3\)"):
        simulation[0].set_state(positions=np.zeros((3, 3)))


def test_progress_hears_how_many_steps_of_all_are_done():
    simulation = Simulation([Body(generate.sheet(2))], device="cpu")
    heard = []
    simulation.run(steps=3, progress=lambda done, all_: heard.append((done, all_, simulation.steps)))
    assert heard == [(1, 3, 1), (2, 3, 2), (3, 3, 3)]
    simulation.run(steps=2, progress=True)
    assert simulation.steps == 5


def test_a_run_takes_seconds_or_steps_and_not_both():
    simulation = Simulation([Body(generate.sheet(2))], device="cpu", dt=0.025)
    simulation.run(0.5)
    assert (simulation.steps, simulation.time) == (20, 0.5)
    simulation.run(steps=4)
    assert simulation.time == pytest.approx(0.6)
    for options in ({}, {"seconds": 1.0, "steps": 3}):
        with pytest.raises(InputError, match="how long"):
            simulation.run(**options)


def test_bodies_are_found_by_number_and_by_name_and_all_of_them_in_order():
    above = solid_block((1, 1, 1)).at([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 3.0], [0, 0, 0, 1]])
    simulation = Simulation([Body(generate.sheet(2), name="sheet"), Body(above, name="block")], device="cpu")
    assert simulation["block"].number == simulation[1].number == 1
    assert [body.name for body in simulation] == ["sheet", "block"]
    assert np.array_equal(simulation.positions, np.concatenate([body.positions for body in simulation]))
    assert np.array_equal(simulation.velocities, np.concatenate([body.velocities for body in simulation]))
    assert np.array_equal(simulation["block"].mesh.vertices, simulation.meshes()[1].vertices)
    with pytest.raises(InputError, match=r"no body called 'ball'.*'sheet', 'block'"):
        simulation["ball"]
    twins = Simulation([Body(above, name="block"), Body(generate.sheet(2), name="block")], device="cpu")
    with pytest.raises(InputError, match="several bodies are called 'block'"):
        twins["block"]


def test_solids_weigh_what_water_does_and_sheets_what_cloth_does_unless_they_say():
    assert Body(solid_block((2, 2, 2), size=(1.0, 2.0, 3.0))).vertex_mass.sum() == pytest.approx(6000.0)
    sheet = generate.sheet(8, size=(2.0, 3.0))
    assert Body(sheet, thickness=0.003).vertex_mass.sum() == pytest.approx(0.2 * 6.0)
    assert Body(sheet, areal_density=1.5, thickness=0.1).vertex_mass.sum() == pytest.approx(9.0)
    assert Body(sheet, density=300.0, thickness=1e-3).areal_density == pytest.approx(0.3)
    with pytest.raises(InputError, match="not both"):
        Body(sheet, density=300.0, areal_density=0.3)
    with pytest.raises(InputError, match="no areal_density"):
        Body(solid_block((1, 1, 1)), areal_density=0.3)

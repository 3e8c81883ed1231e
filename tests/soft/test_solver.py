"""The solver: energies, descent, free fall, the frequency of a rod, energy bounds."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.soft_bodies import membrane_energy, solid_energy
from tangere.shape import generate
from tangere.shape.tets import solid_block, solid_torus
from tangere.soft import Body, Simulation
from tangere.soft.model.elastic import elastic_energy
from tangere.soft.solver.cpu import sweeps as sweeps_together
from tangere.soft.solver.cpu import team
from tangere.soft.solver.cuda import sweeps as launched_sweeps
from tangere.soft.solver.cuda.sweeps import CudaSweeps


def free(*bodies: Body, **options) -> Simulation:
    return Simulation(bodies, **{"response": "none", "device": "cpu", **options})


def test_the_energy_of_a_solid_is_that_of_its_deformation_gradients(rng):
    solid = solid_block((3, 2, 2))
    simulation = free(Body(solid, youngs_modulus=1e3, poisson=0.3, density=1.0))
    x = solid.vertices + 0.1 * rng.standard_normal(solid.vertices.shape)
    simulation[0].set_state(positions=x)
    assert simulation.energy.elastic == pytest.approx(solid_energy(solid, x, 1e3, 0.3), rel=1e-10)


def test_the_energy_of_a_flat_stretched_sheet_is_that_of_its_membrane(rng):
    sheet = generate.sheet(50)
    simulation = free(Body(sheet, youngs_modulus=1e3, poisson=0.3, thickness=0.02, density=1.0))
    x = sheet.vertices @ np.array([[1.2, 0.1, 0.0], [0.05, 0.9, 0.0], [0.0, 0.0, 1.0]]).T
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    simulation[0].set_state(positions=x @ turn.T)
    expected = membrane_energy(sheet, x, 1e3, 0.3, 0.02)
    assert simulation.energy.elastic == pytest.approx(expected, rel=1e-9)  # an affine map of a plane does not bend


def test_a_sheet_rolled_up_stores_the_bending_energy_of_a_plate():
    sheet = generate.sheet(5000, size=(1.0, 0.5))
    young, thickness, radius = 1e5, 0.01, 0.5
    simulation = free(Body(sheet, youngs_modulus=young, poisson=0.0, thickness=thickness, density=1.0))
    angle = sheet.vertices[:, 0] / radius
    x = np.stack([radius * np.sin(angle), sheet.vertices[:, 1], radius * np.cos(angle)], axis=1)
    simulation[0].set_state(positions=x)
    bending = simulation.energy.elastic - membrane_energy(sheet, x, young, 0.0, thickness)
    plate = 0.5 * young * thickness**3 / 12.0 / radius**2 * 0.5
    assert bending == pytest.approx(plate, rel=0.08)  # the rim has no hinges


@pytest.mark.parametrize("stiffness", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("kind", ["solid", "sheet"])
def test_every_sweep_lowers_the_energy_of_the_step_even_from_inverted_states(kind, stiffness, rng):
    shape = solid_torus((12, 2)) if kind == "solid" else generate.sheet(288, size=(3.0, 2.0))
    simulation = free(Body(shape, youngs_modulus=stiffness, poisson=0.4, density=1.0))
    simulation[0].set_state(positions=shape.vertices + rng.standard_normal(shape.vertices.shape))
    simulation._pipeline.reset()
    simulation._pipeline.predict()
    assembly = simulation._pipeline.assembly
    mass, y = assembly.dofs.mass.numpy(), simulation._pipeline.free_motion.numpy()

    def objective() -> float:
        return 0.5 / simulation.dt**2 * mass @ ((assembly.dofs.x.numpy() - y) ** 2).sum(axis=1) + elastic_energy(
            assembly
        )

    values = [objective()]
    for _ in range(12):
        simulation._pipeline.sweeps(1)
        values.append(objective())
    assert (np.diff(values) <= 1e-12 * abs(values[0])).all()


def test_a_solved_step_has_no_force_left():
    """Backward Euler: m (x - y) / dt^2 is minus the gradient of the energy, here by finite differences."""
    solid = solid_block((2, 1, 1))
    simulation = free(Body(solid, youngs_modulus=100.0, fixed=solid.vertices[:, 0] < -0.49, density=1.0), sweeps=300)
    simulation.step()
    x, y = simulation[0].positions, simulation._pipeline.free_motion.numpy()
    mass = simulation._pipeline.assembly.dofs.mass.numpy()
    for vertex in np.flatnonzero(simulation._pipeline.assembly.dofs.free.numpy()):
        for axis in range(3):
            shifted = [x.copy(), x.copy()]
            shifted[0][vertex, axis] -= 1e-5
            shifted[1][vertex, axis] += 1e-5
            low, high = (solid_energy(solid, s, 100.0, 0.4) for s in shifted)
            inertia = mass[vertex] * (x - y)[vertex, axis] / simulation.dt**2
            assert inertia + (high - low) / 2e-5 == pytest.approx(0.0, abs=1e-6)


def test_bodies_fall_as_bodies_do():
    torus = Body(solid_torus((12, 2)), youngs_modulus=1e5, density=1.0)
    simulation = free(torus, Body(generate.sheet(8), velocity=(1.0, 0.0, 2.0), density=1.0))
    simulation.run(steps=25)
    n, dt = 25, simulation.dt
    fallen = -9.81 * dt**2 * n * (n + 1) / 2
    assert np.allclose(simulation[0].positions, torus.shape.vertices + [0.0, 0.0, fallen], atol=1e-9)
    expected = generate.sheet(8).vertices + [n * dt, 0.0, 2.0 * n * dt + fallen]
    assert np.allclose(simulation[1].positions, expected, atol=1e-9)


def test_damping_slows_motion_down_at_its_rate():
    simulation = free(
        Body(generate.sheet(2), damping=2.0, velocity=(1.0, 0.0, 0.0), density=1.0), gravity=(0, 0, 0), dt=1e-3
    )
    simulation.run(steps=500)
    assert simulation[0].velocities[:, 0] == pytest.approx(np.exp(-1.0), rel=2e-3)


@pytest.mark.parametrize("damping", [5.0, 50.0])
def test_damping_bears_no_weight(damping, device):
    """A rod that hangs: once at rest it is longer by g rho L^2 / 2 E, however it is damped."""
    rod = solid_block((1, 1, 8), size=(0.05, 0.05, 0.4))
    held = rod.vertices[:, 2] > 0.2 - 1e-9
    body = Body(rod, youngs_modulus=1e5, poisson=0.0, density=1000.0, fixed=held, damping=damping)
    simulation = free(body, dt=0.01, sweeps=60, device=device)
    simulation.run(steps=200)
    low = rod.vertices[:, 2] < -0.2 + 1e-9
    assert np.abs(simulation[0].velocities).max() < 1e-4
    sunk = -0.2 - simulation[0].positions[low, 2].mean()
    assert sunk == pytest.approx(1000.0 * 9.81 * 0.4**2 / (2.0 * 1e5), rel=0.03)


def test_a_rod_held_at_one_end_rings_at_its_analytic_frequency():
    """Length L, speed of sound c: the first axial mode has period 4 L / c."""
    rod = solid_block((20, 1, 1), size=(10.0, 0.5, 0.5))
    along = rod.vertices[:, 0] + 5.0
    shape = np.sin(np.pi * along / 20.0)
    velocity = np.stack([0.01 * shape, 0 * shape, 0 * shape], axis=1)
    body = Body(rod, youngs_modulus=1e4, poisson=0.0, fixed=along < 1e-9, velocity=velocity, density=1.0)
    simulation = free(body, gravity=(0, 0, 0), dt=2e-3, sweeps=10)
    tip = np.flatnonzero(along > 9.99)
    reached = []
    for _ in range(130):
        simulation.step()
        reached.append(simulation[0].positions[tip, 0].mean() - 5.0)
    back = np.flatnonzero(np.diff(np.sign(reached)) < 0)[0]
    crossing = back + 1 + reached[back] / (reached[back] - reached[back + 1])
    assert 2.0 * crossing * simulation.dt == pytest.approx(4.0 * 10.0 / 100.0, rel=0.02)


def test_fixed_vertices_do_not_move_at_all():
    held = solid_block((4, 2, 2))
    body = Body(held, youngs_modulus=1e3, fixed=held.vertices[:, 0] < -0.4, density=1.0)
    simulation = free(body)
    simulation.run(steps=20)
    assert np.array_equal(simulation[0].positions[body.fixed], held.vertices[body.fixed])
    assert simulation[0].positions[:, 2].min() < held.vertices[:, 2].min() - 1e-3  # the rest sags


@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6])
def test_energy_stays_bounded_at_any_stiffness_in_steps_of_20_ms(stiffness):
    block = solid_block((3, 3, 3), size=(2.0, 2.0, 2.0))
    floor = Body(generate.sheet(2, size=(20.0, 20.0)), fixed=True)
    lifted = Body(
        block.at([[1, 0, 0, 0], [0, 0.8, -0.6, 0], [0, 0.6, 0.8, 2.5], [0, 0, 0, 1]]),
        youngs_modulus=stiffness,
        density=1.0,
    )
    simulation = Simulation([lifted, floor], device="cpu")
    start, most = simulation.energy.total, -np.inf
    for _ in range(80):
        simulation.step()
        most = max(most, simulation.energy.total)
    assert np.isfinite(most)
    assert most <= 1.05 * start
    assert simulation.meshes()[0].vertices[:, 2].min() > 0.0


def test_neighbours_never_have_the_same_colour():
    simulation = free(Body(solid_torus((12, 2)), density=1.0), Body(generate.sheet(72), density=1.0))
    assembly = simulation._pipeline.assembly
    colour = np.full(len(assembly.dofs.x), -1)
    for number, (begin, end) in enumerate(zip(assembly.colours, assembly.colours[1:], strict=False)):
        colour[assembly.order.numpy()[begin:end]] = number
    material = assembly.material
    ranges, neighbours = material.neighbour_ranges.numpy(), material.neighbours.numpy()
    rows = np.repeat(np.arange(len(colour)), ranges[:, 1] - ranges[:, 0])
    assert (colour >= 0).all()
    assert (colour[rows] != colour[neighbours]).all()


def swept(sweeps: int, *, launched: bool = False, threads: int = 1) -> np.ndarray:
    """A torus held at one side and a sheet, from a strained state."""
    torus = solid_torus((16, 2))
    bodies = (
        Body(torus, fixed=torus.vertices[:, 0] < -6.0, density=1.0),
        Body(generate.sheet(72), youngs_modulus=1e5, density=1.0),
    )
    simulation = free(*bodies, gravity=(1.0, 2.0, 3.0), sweeps=sweeps, threads=threads)
    if launched:
        s = simulation._pipeline
        s.sweeps = CudaSweeps(s.assembly, s.islands, s.free_motion, s.inertia, s.rows, s.options.dt)
    for body in range(2):
        simulation[body].set_state(positions=simulation[body].positions * [1.1, 0.9, 1.2])
    simulation.step()
    return np.concatenate([simulation[body].positions for body in range(2)])


@pytest.mark.parametrize("threads", [2, 3, 12])
def test_sweeps_have_the_same_bits_whoever_takes_part_in_them(threads, monkeypatch):
    """As many sweeps as need a second launch; of more threads than cores some wait for others that do not run."""
    monkeypatch.setattr(sweeps_together, "GRAIN", 16)
    assert np.array_equal(swept(70, threads=threads), swept(70))


def test_a_team_does_not_wait_for_those_that_never_come(monkeypatch):
    """Members that are called one after the other find the work done."""
    alone = swept(5)
    monkeypatch.setattr(sweeps_together, "GRAIN", 16)
    monkeypatch.setattr(
        team, "run_shards", lambda run, ranges, _: [run(shard, *one) for shard, one in enumerate(ranges)]
    )
    assert np.array_equal(swept(5, threads=3), alone)


@pytest.mark.parametrize("many", [4096, 1])
@pytest.mark.parametrize(("sweeps", "tolerance"), [(1, 1e-13), (12, 1e-11)])
def test_sweeps_launched_one_by_one_go_where_sweeps_together_go(sweeps, tolerance, many, monkeypatch):
    """On CUDA a colour is a launch, in which a warp shares out what acts on a vertex, or on each of a few."""
    monkeypatch.setattr(launched_sweeps, "MANY", many)
    assert np.allclose(swept(sweeps, launched=True), swept(sweeps), rtol=0.0, atol=tolerance)


def test_acceleration_brings_the_step_nearer_to_its_solution():
    solid = solid_block((8, 2, 2), size=(4.0, 1.0, 1.0))
    body = Body(solid, youngs_modulus=2e4, fixed=solid.vertices[:, 0] < -1.9, density=1.0)
    ends = {}
    for sweeps, plain in ((400, False), (20, False), (20, True)):
        simulation = free(body, sweeps=sweeps)
        if plain:
            simulation._pipeline.sweeps.accelerated = False
        simulation.step()
        ends[sweeps, plain] = simulation[0].positions
    error = {plain: np.linalg.norm(ends[20, plain] - ends[400, False]) for plain in (False, True)}
    assert error[False] < 0.5 * error[True]


def test_positions_can_be_given_as_any_array_of_the_right_shape():
    simulation = free(Body(generate.sheet(2), density=1.0))
    x = np.arange(12.0).reshape(4, 3)
    simulation[0].set_state(positions=x.tolist(), velocities=wp.array(x, dtype=wp.vec3d, device="cpu").numpy())
    assert np.array_equal(simulation[0].positions, x)
    assert np.array_equal(simulation[0].velocities, x)

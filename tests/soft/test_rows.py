"""Rows: contact forces that can be read, friction that remembers, rows that a phase appends."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.runtime import launch
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.contact.row_entries import RowArrays

GRAVITY = 9.81


def block_on_slope(angle: float, device, **options) -> Simulation:
    """A block that rests on a plate; gravity leans by an angle [degrees]."""
    block = solid_block((3, 3, 2), size=(0.3, 0.3, 0.2))
    ground = generate.plate(200, size=(2.0, 2.0, 0.1))
    low = ground.replace(vertices=ground.vertices - [0.0, 0.0, ground.vertices[:, 2].max() + 0.1 + 0.009])
    lean = np.radians(angle)
    gravity = GRAVITY * np.array([np.sin(lean), 0.0, -np.cos(lean)])
    bodies = [Body(block, youngs_modulus=1e5, damping=2.0), Body(low, fixed=True)]
    return Simulation(bodies, distance=0.01, gravity=gravity, device=device, **options)


def test_contact_forces_are_read_after_a_step_and_carry_the_weight(device):
    simulation = block_on_slope(12.0, device, friction=0.5)
    simulation.run(steps=150)
    forces, contacts = simulation.contact_forces, simulation.contacts
    assert forces.shape == (len(contacts), 3)
    assert len(contacts) > 0
    on_block = np.where((contacts.body_a == 0)[:, None], forces, -forces).sum(axis=0)
    weight = simulation.bodies[0].vertex_mass.sum() * GRAVITY
    lean = np.radians(12.0)
    np.testing.assert_allclose(on_block, weight * np.array([-np.sin(lean), 0.0, np.cos(lean)]), atol=0.03 * weight)


def test_what_rests_on_a_slope_stays_there_and_beyond_the_cone_it_slides(device):
    resting = block_on_slope(15.0, device, friction=0.5)  # tan 15 = 0.27
    resting.run(steps=150)
    before = resting.positions.copy()
    resting.run(steps=100)
    # Without memory it would creep by half of a thousandth of the contact distance in every step.
    assert np.abs(resting.positions - before).max() < 2e-5
    sliding = block_on_slope(35.0, device, friction=0.5)  # tan 35 = 0.7
    sliding.run(steps=60)
    lean, seconds = np.radians(35.0), 60 * sliding.dt
    expected = 0.5 * GRAVITY * (np.sin(lean) - 0.5 * np.cos(lean)) * seconds**2 / (1.0 + seconds)
    assert sliding[0].positions[:, 0].mean() == pytest.approx(expected, rel=0.25)


def test_a_step_that_is_undone_leaves_friction_as_it_was():
    simulation = block_on_slope(15.0, "cpu", friction=0.5)
    simulation.run(steps=60)
    kept = simulation.rows.memory.bristles.strain.numpy().copy()
    assert np.abs(kept).max() > 0
    record = simulation.phases["record"]

    def stop(pipeline):
        record(pipeline)
        raise KeyboardInterrupt

    simulation.phases["record"] = stop
    with pytest.raises(KeyboardInterrupt):
        simulation.step()
    assert np.array_equal(simulation.rows.memory.bristles.strain.numpy(), kept)


@wp.kernel
def hold(first: int, row: int, dof: int, aim: wp.vec3d, guide: wp.vec4d, rows: RowArrays):
    rows.bodies[row] = wp.vec2i(0, 0)
    rows.sizes[row] = 1
    names = rows.dofs[row]
    values = rows.weights[row]
    for k in range(16):
        names[k] = 0
        values[k] = wp.float64(0.0)
    names[0] = dof
    values[0] = wp.float64(1.0)
    rows.dofs[row] = names
    rows.weights[row] = values
    rows.bound[row] = wp.float64(1.0)
    rows.place[row] = -1
    rows.normal[row] = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
    rows.aim[row] = aim
    rows.guide[row] = guide


@pytest.mark.parametrize("response", ["none", "hard"])
def test_a_phase_may_append_rows_that_hold_a_point_on_a_line(response, device):
    block = solid_block((2, 2, 2), size=(0.2, 0.2, 0.2))
    held = np.abs(block.vertices[:, 2] + 0.1) < 1e-9
    body = Body(block, youngs_modulus=1e4, fixed=held, damping=20.0)
    simulation = Simulation([body], gravity=(0, 0, 0), response=response, sweeps=40, device=device)
    corner = int(np.argmax(block.vertices @ [1.0, 1.0, 1.0]))
    aim = block.vertices[corner] + [0.01, 0.0, 0.05]
    across, along, most = 200.0, 300.0, 2.0

    def guide(pipeline):
        def write(rows, first):
            arguments = [first, corner, wp.vec3d(*aim), wp.vec4d(across, along, most, 0.0), rows]
            launch(hold, 1, arguments, device=simulation.device)

        pipeline.rows.append(1, write)

    phases = dict(simulation.phases)
    simulation.phases.clear()
    for name, phase in phases.items():
        simulation.phases[name] = phase
        if name == "respond":
            simulation.phases["guide"] = guide
    simulation.run(steps=150)
    there = simulation.positions[corner]
    offset = there - aim
    # Along the line the force is capped, across it a spring; the body pulls back with the opposite.
    simulation.rows.update_forces()
    force = simulation.rows.arrays.force.numpy()[0]
    assert force[2] == pytest.approx(most)
    np.testing.assert_allclose(force[:2], -across * offset[:2], rtol=1e-9)
    assert there[2] > block.vertices[corner][2] + 0.002
    # Rows of one step are gone in the next.
    del simulation.phases["guide"]
    simulation.step()
    assert simulation.rows.count == 0

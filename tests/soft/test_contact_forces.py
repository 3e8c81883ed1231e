"""Forces of contact against what must be: weights that are known, and energy that nobody put in."""

from __future__ import annotations

import pytest

from tangere.shape import generate
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Blade, Body, Simulation
from tangere.soft.contact.activation import LEAST_PART

WEIGHT = 0.2 * 0.1 * 0.1 * 1000.0 * 9.81


def stack(count: int, gap: float, youngs_modulus: float) -> Simulation:
    """Blocks of 2 kg upon each other on a floor, all put so far apart; the floor is the last body."""
    solid = solid_block((4, 2, 2), size=(0.2, 0.1, 0.1))
    places = [solid.vertices + [0.0, 0.0, k * (0.1 + gap)] for k in range(count)]
    blocks = [Body(TetMesh(x, solid.tets), youngs_modulus=youngs_modulus, damping=5.0) for x in places]
    floor = generate.box((0.5, 0.5, 0.02))
    floor = floor.replace(vertices=floor.vertices - [0.0, 0.0, 0.06 + gap])
    return Simulation([*blocks, Body(floor, fixed=True)], device="cpu", threads=1)


@pytest.mark.parametrize("gap", [1e-5, 1e-4, 1e-3, 0.03])
def test_a_floor_feels_the_weight_of_what_rests_on_it_however_near_it_was_put(gap):
    simulation = stack(1, gap, 3e4)
    start = simulation.energy.total
    for _ in range(75):
        simulation.step()
        assert simulation.energy.total < start + WEIGHT * LEAST_PART * simulation.distance
    assert simulation[1].force == pytest.approx([0.0, 0.0, -WEIGHT], abs=1e-4 * WEIGHT)
    assert simulation.truncation.limited_vertices == 0


@pytest.mark.parametrize("gap", [1e-5, 1e-3])
def test_a_floor_feels_the_weight_of_a_stack_that_was_put_close_together(gap):
    simulation = stack(3, gap, 3e4)
    simulation.run(steps=75)
    assert simulation[3].force[2] == pytest.approx(-3.0 * WEIGHT, rel=0.03)


@pytest.mark.parametrize(("gap", "told"), [(0.0005, 0.8), (0.002, 0.8), (0.01, 1.0)])
def test_a_tool_that_starts_near_a_soft_block_keeps_its_shape_and_feels_what_it_does(gap, told):
    """Its lower edges cross the top of the block between vertices, where no vertex of the block sees them."""
    solid, box = solid_block((10, 5, 5), size=(0.2, 0.1, 0.1)), generate.box((0.1, 0.15, 0.02))
    box = box.replace(vertices=box.vertices + [0.0, 0.0, 0.05 + gap - box.vertices[:, 2].min()])
    block = Body(solid, fixed=solid.vertices[:, 2] < -0.0499, youngs_modulus=1e4, damping=5.0)
    bodies = [block, Body(box, fixed=True)]
    simulation = Simulation(bodies, device="cpu", threads=1, gravity=(0.0, 0.0, 0.0), friction=0.0)
    simulation[1].drive([0.0, 0.0, -0.02])
    work, force, sent = 0.0, 0.0, 0.0
    for _ in range(round(gap / 0.0004) + 60):
        simulation.step()
        move = 0.0004 * simulation.truncation.driven_part
        before, force = force, simulation[1].force[2]
        work, sent = work + 0.5 * (before + force) * move, sent + move
    assert simulation[1].positions == pytest.approx(box.vertices - [0.0, 0.0, sent], abs=1e-12)
    assert sent - gap > 0.6 * 0.024
    assert force > 30.0
    assert work > told * simulation.energy.elastic


@pytest.mark.parametrize("dt", [0.02, 0.005])
def test_a_blade_that_wedges_a_block_open_keeps_its_shape_and_does_all_the_work(dt):
    solid = solid_block((10, 5, 5), size=(0.2, 0.1, 0.1))
    block = Body(solid, cuttable=True, fixed=solid.vertices[:, 2] < -0.0499)
    blade = Blade.wedge(length=0.14, height=0.12, thickness=0.004, toughness=20.0, at=(0.003, 0.0, 0.052))
    options = {"gravity": (0.0, 0.0, 0.0), "friction": 0.0, "dt": dt}
    simulation = Simulation([block, blade], device="cpu", threads=1, **options)
    simulation[1].drive([0.0, 0.0, -0.05])
    start = simulation[1].positions
    work, force, sent = 0.0, 0.0, 0.0
    for _ in range(round(1.0 / dt)):
        simulation.step()
        move = 0.05 * dt * simulation.truncation.driven_part
        before, force = force, simulation[1].force[2]
        work, sent = work + 0.5 * (before + force) * move, sent + move
        assert simulation.energy.total < work + 4e-3
    assert simulation[1].positions == pytest.approx(start - [0.0, 0.0, sent], abs=1e-12)
    assert sent > 0.04

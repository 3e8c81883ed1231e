"""Forces of contact against what must be: weights that are known, and energy that nobody put in."""

from __future__ import annotations

import pytest

from tangere.shape import generate
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation
from tangere.soft.contact.initial_contacts import LEAST_PART

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

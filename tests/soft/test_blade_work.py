"""What a hand does that leads a blade through a block, beside what the block and the cut have got."""

from __future__ import annotations

import pytest

from tangere.shape.tets import solid_block
from tangere.soft import Blade, Body, Simulation


@pytest.mark.feature("F-L-53")
@pytest.mark.parametrize(("dt", "most"), [(0.02, 1.15), (0.01, 1.12), (0.005, 1.1)])
def test_the_work_of_the_hand_is_energy_and_toughness_times_what_the_edge_has_swept(dt, most) -> None:
    """Nothing rubs and nothing falls, so what is more than that is lost by implicit steps, and at the ends of the edge.

    What the edge has swept is told by where the blade is: from the top of the block, one metre wide, down. The points
    of the edge, which stand for 1/8 m each, reach 2.5 cm beyond the block on either side.
    """
    solid = solid_block((6, 3, 3), size=(2.0, 1.0, 1.0))
    body = Body(solid, cuttable=True, density=1.0, youngs_modulus=1e5, fixed=solid.vertices[:, 2] < -0.499)
    toughness, top, speed = 60.0, 0.52, 0.5
    blade = Blade.wedge(length=1.4, height=1.4, thickness=0.05, toughness=toughness, at=(0.0, 0.0, top))
    simulation = Simulation([body, blade], gravity=(0, 0, 0), friction=0.0, dt=dt, device="cpu", threads=1)
    simulation[1].drive([0.0, 0.0, -speed])
    start, work, before = simulation.energy.total, 0.0, simulation[1].positions[:, 2].mean()
    for _ in range(round(0.8 / dt)):
        simulation.step()
        place = simulation[1].positions[:, 2].mean()
        work += simulation[1].force[2] * (before - place)
        before = place
    swept = toughness * (0.5 - (top - speed * simulation.time)) * 1.0
    spent = simulation.energy.total - start + swept
    assert spent > 20.0
    assert spent <= work <= most * spent

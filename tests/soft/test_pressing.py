"""Bodies under pressure: a tool that was driven in gets away again, and what is strained goes on."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.soft_bodies import passes_through
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation


def shifted(shape, *by: float):
    pose = np.eye(4)
    pose[:3, 3] = by
    return shape.at(pose)


def tool(*at: float, size: float = 0.2) -> Body:
    return Body(shifted(solid_block((1, 1, 1), size=(size,) * 3), *at), fixed=True, name="tool")


def tool_above_a_block(stiffness: float, at: tuple[float, float, float], **options) -> Simulation:
    shape = solid_block((4, 4, 4))
    block = Body(shape, youngs_modulus=stiffness, fixed=shape.vertices[:, 2] < -0.49, name="block", density=1.0)
    return Simulation([block, tool(*at)], **{"device": "cpu", "gravity": (0, 0, 0), **options})


def stiff_and_dragged(**options) -> Simulation:
    """A tool pressed into a block that is too stiff for the sweeps, and dragged until the block springs back at it."""
    simulation = tool_above_a_block(2e4, (0.02, 0.01, 0.65), distance=0.05, **options)
    for velocity, steps in (((0.0, 0.0, -1.0), 10), ((2.0, 0.0, 0.0), 50)):
        simulation[1].drive(velocity)
        simulation.run(steps=steps)
    return simulation


def soft_and_stirred() -> Simulation:
    """A tool driven about in a soft block, with sweeps enough."""
    simulation = tool_above_a_block(3e3, (-0.02, 0.08, 0.72), distance=0.1, friction=0.0)
    for velocity in ((0.1, -0.2, -3.0), (-0.1, -0.3, -2.8), (-0.1, 0.1, 0.1), (0.1, -1.8, -0.8)):
        simulation[1].drive(velocity)
        simulation.run(steps=6)
    return simulation


def soft_and_dragged() -> Simulation:
    """A tool pressed into a soft block and dragged, until what springs back is out of the reach of contacts."""
    simulation = tool_above_a_block(2e3, (0.02, 0.01, 0.65), distance=0.02)
    for velocity, steps in (((0.0, 0.0, -1.0), 15), ((0.5, 0.0, 0.0), 70)):
        simulation[1].drive(velocity)
        simulation.run(steps=steps)
    return simulation


@pytest.mark.parametrize("pressed", [stiff_and_dragged, soft_and_stirred, soft_and_dragged])
def test_a_tool_that_moves_away_gets_away_however_it_was_pressed_in(pressed):
    simulation = pressed()
    start = simulation[1].positions
    simulation[1].drive((0.0, 0.0, 2.0))
    for _ in range(40):
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
    assert (simulation[1].positions - start)[:, 2].min() > 0.8  # of 1.6 m


@pytest.mark.parametrize("pressed", [stiff_and_dragged, soft_and_stirred, soft_and_dragged])
def test_what_is_strained_goes_on_when_a_tool_stops(pressed):
    simulation = pressed()
    simulation[1].drive((0.0, 0.0, 0.0))
    for _ in range(5):
        start = simulation[0].positions
        for _ in range(4):
            before = simulation.meshes()
            simulation.step()
            assert not passes_through(before, simulation.meshes())
        moved = np.abs(simulation[0].positions - start).max()
        assert moved > 1e-6 or simulation.truncation.iterations == 0  # goes on, or has come to rest


def test_pressure_has_the_same_bits_for_any_number_of_threads():
    one, two = (stiff_and_dragged(threads=threads) for threads in (1, 2))
    for simulation in (one, two):
        simulation[1].drive((0.0, 0.0, 1.0))
        simulation.run(steps=10)
    assert np.array_equal(one[0].positions, two[0].positions)
    assert np.array_equal(one[0].velocities, two[0].velocities)


def test_what_is_held_on_both_sides_is_not_looked_at():
    """A tool goes through another one, and through the fixed bottom of a block, and may be put there."""
    table, block = tool(0.0, 0.0, 0.0, size=0.5), solid_block((4, 4, 4))
    soft = Body(shifted(block, 3.0, 0.0, 0.0), youngs_modulus=2e3, fixed=block.vertices[:, 2] < -0.49, density=1.0)
    simulation = Simulation([table, tool(0.02, 0.01, 0.4), soft, tool(3.02, 0.01, -0.7)], device="cpu", distance=0.05)
    starts = [simulation[body].positions for body in (1, 3)]
    simulation[1].drive((0.0, 0.0, -1.0))
    simulation[3].drive((0.0, 0.0, 1.0))
    simulation.run(steps=10)
    for body, start, up in zip((1, 3), starts, (-0.2, 0.2), strict=True):
        assert simulation[body].positions == pytest.approx(start + [0.0, 0.0, up])
    simulation[1].set_state(positions=starts[0] - [0.0, 0.0, 0.4])  # inside the table
    simulation.step()
    assert simulation[1].positions == pytest.approx(starts[0] - [0.0, 0.0, 0.42])

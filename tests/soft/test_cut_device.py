"""Cuts on a GPU are those of the CPU: changed rows are sent, captured graphs stay, what is undone was never made."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracles.helpers.cut_layout import check_same_as_laid_out_anew
from oracles.helpers.cut_twins import cut_in_vain
from oracles.soft_bodies import copy_strains, overlaps
from tangere.shape.tets import solid_block
from tangere.soft import Blade, Body, Simulation
from tangere.soft.cutting import Cuts


@pytest.fixture
def in_place(monkeypatch) -> list[bool]:
    """Whether each cut was made in place."""
    found, plain = [], Cuts._update_in_place

    def noted(cuts: Cuts, *arguments) -> bool:
        found.append(plain(cuts, *arguments))
        return found[-1]

    monkeypatch.setattr(Cuts, "_update_in_place", noted)
    return found


def block(device: str, **options) -> Simulation:
    solid = solid_block((8, 4, 4), size=(2.0, 1.0, 1.0), name="block")
    held = np.abs(solid.vertices[:, 0]) > 0.999
    body = Body(solid, fixed=held, cuttable=True, density=1.0, youngs_modulus=1e4)
    return Simulation([body], device=device, **options)


def line(y: float) -> np.ndarray:
    z = np.linspace(-0.9, 0.9, 6)
    return np.stack([0.03 + 0.1 * y + 0.1 * z, y + 0 * z, z], axis=1)


def test_steps_after_cuts_on_the_gpu_are_those_of_the_cpu(device, in_place):
    there, here = block(device), block("cpu")
    for one in (there, here):
        one.run(steps=3)
    for start, end in itertools.pairwise(line(y) for y in np.linspace(-0.6, 0.2, 9)):
        here[0].set_state(positions=there[0].positions, velocities=there[0].velocities)
        copy_strains(there, here)
        for one in (there, here):
            one.cut(0, start, end)
        assert np.array_equal(there.positions, here.positions)
        check_same_as_laid_out_anew(there)
        there.step()
        here.step()
        assert there.rows.count == here.rows.count
        assert np.abs(there.positions - here.positions).max() < 1e-10
        assert not overlaps(there)
    assert len(in_place) > 8
    assert all(in_place)
    assert there.rows.count > 0


@pytest.mark.cuda
def test_a_cut_in_place_leaves_captured_graphs_as_they_are(in_place):
    simulation = block("cuda")
    simulation.run(steps=4)
    simulation.cut(0, line(-0.6), line(-0.4))
    simulation.run(steps=2)
    captured = dict(simulation._pipeline._graphs._captured)
    assert {"reset", "predict", "detect", "respond", "solve", "truncate", "record"} <= set(captured)
    events = []
    for start, end in itertools.pairwise(line(y) for y in np.linspace(-0.4, 0.2, 7)):
        events += simulation.cut(0, start, end)
        simulation.step()
    assert len(events) > 3  # not every cut opens something
    assert all(in_place)
    now = simulation._pipeline._graphs._captured
    assert all(now[name] is graph for name, graph in captured.items())


def test_cuts_on_the_gpu_that_are_undone_were_never_made(device, in_place):
    simulation, twin = block(device), block(device)
    way = [line(y) for y in np.linspace(-0.6, 0.3, 10)]
    for one in (simulation, twin):
        one.cut(0, way[0], way[2])
        one.step()
    cut_in_vain(simulation, way[2], way[3], way[5])
    check_same_as_laid_out_anew(simulation)
    for start, end in itertools.pairwise(way[2:]):
        for one in (simulation, twin):
            one.cut(0, start, end)
            one.step()
        check_same_as_laid_out_anew(simulation)
        assert np.abs(simulation.positions - twin.positions).max() < 1e-7  # sums are taken in any order
    assert all(in_place)


def test_a_blade_cuts_on_the_gpu_as_on_the_cpu(device, in_place):
    """Pressed on by its edge: many small cuts, and contacts of its flanks."""
    both = []
    for where in (device, "cpu"):
        solid = solid_block((6, 3, 3), size=(2.0, 1.0, 1.0))
        body = Body(solid, cuttable=True, density=1.0, fixed=solid.vertices[:, 2] < -0.499)
        blade = Blade.wedge(length=1.4, height=1.4, thickness=0.05, toughness=60.0, at=(0.0, 0.0, 0.52))
        simulation = Simulation([body, blade], friction=0.1, device=where)
        simulation[1].drive([0.0, 0.0, -0.5])
        both.append(simulation)
    there, here = both
    opened = 0
    for _ in range(25):
        for one in both:
            one.step()
            assert not overlaps(one)
        kinds = [[(event.kind, event.body, event.part) for event in one.events] for one in both]
        assert kinds[0] == kinds[1]
        opened += len(kinds[0])
        if not opened:
            assert np.abs(there.positions - here.positions).max() < 1e-9
    assert opened
    assert any(in_place)
    assert len(there) == len(here) == 3  # the last cut has gone through
    for one, other in zip(there, here, strict=True):
        assert len(one.positions) == len(other.positions)
        # Rounding decides what a blade holds that meets edges of elements: on one CPU 1e-14 becomes 2e-3.
        assert np.abs(one.positions - other.positions).max() < 5e-3
    assert sum(len(one.positions) for one in there if one.number != 1) > len(solid.vertices)

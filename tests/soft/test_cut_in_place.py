"""A cut that writes only what it touches leaves the simulation that one laid out anew is, and can be put back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracles.helpers.cut_layout import check_same_as_laid_out_anew, contacts_of
from oracles.helpers.cut_strokes import block as lattice_block
from oracles.helpers.cut_strokes import random_stroke
from oracles.helpers.cut_strokes import torus as lattice_torus
from oracles.helpers.cut_twins import CountedUpdates, cut_in_vain, in_turn
from oracles.soft_bodies import overlaps
from tangere.runtime import InputError
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation
from tangere.soft.cutting import Cuts
from tangere.soft.model import assembled_bodies


def block(cells=(8, 4, 4), **options) -> Body:
    solid = solid_block(cells, size=(2.0, 1.0, 1.0), name="block")
    fixed = np.abs(solid.vertices[:, 0]) > 0.999
    return Body(solid, fixed=fixed, cuttable=True, **{"density": 1.0, "youngs_modulus": 1e4, **options})


def line(y: float, x: float = 0.03) -> np.ndarray:
    z = np.linspace(-0.9, 0.9, 6)
    return np.stack([x + 0.1 * y + 0.1 * z, y + 0 * z, z], axis=1)


@pytest.mark.feature("F-L-50", "F-L-73")
@pytest.mark.parametrize("case", range(3))
def test_random_cuts_in_place_leave_what_is_laid_out_anew(case, road, monkeypatch) -> None:
    rng = np.random.default_rng(case)
    counted = CountedUpdates(monkeypatch)
    shape = TetMesh(*(lattice_block, lattice_torus)[case % 2]())
    simulation = Simulation([Body(shape, cuttable=True, density=1.0)], gravity=(0, 0, 0), device="cpu", threads=1)
    engine = simulation._pipeline.cuts
    assert isinstance(engine, Cuts)
    complex_ = engine.bodies[0].complex
    for _ in range(2):
        stroke = random_stroke(rng, complex_.edge)
        for start, end in itertools.pairwise(stroke.lines):
            if simulation.cut(0, start, end):
                check_same_as_laid_out_anew(simulation)
        simulation.end_stroke(0)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        assert not overlaps(simulation)
    assert counted.found[True] > 3


def test_steps_after_cuts_in_place_are_those_after_a_layout_anew(road, monkeypatch) -> None:
    counted = CountedUpdates(monkeypatch)
    simulation, twin = (Simulation([block()], device="cpu", threads=1) for _ in range(2))
    for one in (simulation, twin):
        one.run(steps=3)
    for start, end in itertools.pairwise(line(y) for y in np.linspace(-0.6, 0.2, 9)):
        in_turn(simulation, twin, monkeypatch, start, end)
        assert contacts_of(simulation._pipeline) == contacts_of(twin._pipeline)
        for one in (simulation, twin):
            one.run(steps=2)
        assert np.abs(simulation.positions - twin.positions).max() < 1e-12
        assert np.abs(simulation.velocities - twin.velocities).max() < 1e-10
    assert counted.found[True] > 3
    assert counted.found[False] == counted.found[True]
    assert simulation._pipeline.detection.contact_points.count > 0


def test_cuts_in_place_that_are_undone_were_never_made(road, monkeypatch) -> None:
    simulation, twin = (Simulation([block()], device="cpu", threads=1) for _ in range(2))
    way = [line(y) for y in np.linspace(-0.6, 0.3, 10)]
    counted = CountedUpdates(monkeypatch)
    for one in (simulation, twin):
        one.cut(0, way[0], way[2])
        one.step()
    cut_in_vain(simulation, way[2], way[3], way[5])
    check_same_as_laid_out_anew(simulation)
    for start, end in itertools.pairwise(way[2:]):
        for one in (simulation, twin):
            one.cut(0, start, end)
            one.step()
    assert simulation.positions.tobytes() == twin.positions.tobytes()
    assert counted.found[True] > 6
    assert not counted.found[False]


def test_room_that_is_used_up_is_made_anew(road, monkeypatch) -> None:
    monkeypatch.setattr(assembled_bodies, "_spare_room", lambda body: (8, 12) if body.cuttable else (0, 0))
    counted = CountedUpdates(monkeypatch)
    simulation = Simulation([block()], device="cpu", threads=1)
    for start, end in itertools.pairwise(line(y) for y in np.linspace(-0.6, 0.3, 10)):
        simulation.cut(0, start, end)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        assert not overlaps(simulation)
    assert counted.found[False] > 1


def test_a_cut_may_add_more_rows_than_there_were() -> None:
    """A blade of several segments through a few elements."""
    for cells, seed in (((2, 2, 1), 11), ((1, 1, 1), 0), ((2, 1, 1), 20)):
        solid = solid_block(cells, size=(0.1, 0.1, 0.1))
        body = Body(solid, cuttable=True, kerf=1e-5)
        simulation = Simulation([body], gravity=(0, 0, 0), device="cpu", threads=1)
        rng = np.random.default_rng(seed)
        way = np.linspace(-0.1, 0.1, int(rng.integers(2, 9)))[:, None] * [0.0, 0.0, 1.0]
        way[:, 0] = 0.03 * rng.normal(size=len(way))
        start = way + [0.0, -0.08, 0.0]
        simulation.cut(0, start, start + [0.0, 0.1, 0.0] + 0.01 * rng.normal(size=3))
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        assert not overlaps(simulation)
        volume = sum(body.shape.volumes.sum() for body in simulation.bodies)
        assert volume == pytest.approx(solid.volumes.sum(), rel=1e-12)


def test_a_blade_that_is_nowhere_near_is_told() -> None:
    simulation = Simulation([block()], device="cpu", threads=1)
    for far in (1e200, 1e20):
        with pytest.raises(InputError, match="point of the blade is"):
            simulation.cut(0, line(-0.6) * far, line(0.0))
    assert simulation.cut(0, line(-0.6), line(-0.2))

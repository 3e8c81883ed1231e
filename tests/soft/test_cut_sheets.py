"""A sheet that is cut in place is the sheet that one laid out anew is: rows, rims, parts, and what is taken back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tangere as tg
from oracles.helpers.cut_layout import check_same_as_laid_out_anew, contacts_of
from oracles.helpers.cut_strokes import sheet as wavy_sheet
from oracles.helpers.cut_strokes import sheet_strokes
from oracles.helpers.cut_twins import CountedUpdates, cut_in_vain, in_turn
from oracles.soft_bodies import overlaps
from tangere.runtime import InputError
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation
from tangere.soft.cutting import Cuts
from tangere.soft.cutting.rest_map import to_rest

WIDE = {"gravity": (0, 0, 0), "device": "cpu", "threads": 1}


def cloth(triangles: int = 400, **options) -> Body:
    mesh = tg.generate.sheet(triangles, size=(1.0, 1.0), name="cloth")
    held = np.abs(mesh.vertices[:, 0]) > 0.499
    return Body(mesh, cuttable=True, **{"fixed": held, "thickness": 0.02, **options})


def standing(y: float, x: float = 0.03, tilt: float = 0.1) -> np.ndarray:
    """A blade that stands on the sheet and goes along y."""
    return np.array([[x + 0.1 * y - tilt, y, -0.5], [x + 0.1 * y + tilt, y, 0.5]])


def cut_along(simulation: Simulation, lines: list[np.ndarray], *, refused: int = 0) -> int:
    """Cut body 0, and look at it after each step; says how often it was refused."""
    for start, end in itertools.pairwise(lines):
        try:
            if simulation.cut(0, start, end):
                check_same_as_laid_out_anew(simulation)
        except InputError:
            return refused + 1
    return refused


@pytest.mark.feature("F-L-50", "F-L-73")
@pytest.mark.parametrize("case", range(4))
def test_random_cuts_of_sheets_in_place_leave_what_is_laid_out_anew(case, road, monkeypatch) -> None:
    rng = np.random.default_rng(case)
    counted = CountedUpdates(monkeypatch)
    mesh = Mesh(*wavy_sheet(200 if case % 2 else 392))
    simulation = Simulation([Body(mesh, cuttable=True, thickness=0.01)], **WIDE)
    area = mesh.face_areas.sum()
    for stroke in sheet_strokes(rng):
        for start, end in itertools.pairwise(stroke.lines):
            if simulation.cut(0, start, end):
                check_same_as_laid_out_anew(simulation)
        simulation.end_stroke(0)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        assert not overlaps(simulation)
        assert sum(body.shape.face_areas.sum() for body in simulation.bodies) == pytest.approx(area, rel=1e-12)
    assert counted.found[True] > 3


def test_steps_after_cuts_of_a_sheet_in_place_are_those_after_a_layout_anew(road, monkeypatch) -> None:
    counted = CountedUpdates(monkeypatch)
    floor = tg.generate.sheet(2, size=(4.0, 4.0))
    floor = Body(floor.replace(vertices=floor.vertices - [0.0, 0.0, 0.03]), fixed=True, name="floor")
    options = {"device": "cpu", "threads": 1, "distance": 0.02}
    simulation, twin = (Simulation([cloth(), floor], **options) for _ in range(2))
    for one in (simulation, twin):
        one.run(steps=6)
    for start, end in itertools.pairwise(standing(y) for y in np.linspace(-0.6, 0.3, 9)):
        in_turn(simulation, twin, monkeypatch, start, end)
        assert contacts_of(simulation._pipeline) == contacts_of(twin._pipeline)
        for one in (simulation, twin):
            one.run(steps=1)
        assert np.abs(simulation.positions - twin.positions).max() < 1e-12
        assert np.abs(simulation.velocities - twin.velocities).max() < 1e-10
    assert counted.found[True] > 3
    assert counted.found[False] == counted.found[True]
    assert simulation._pipeline.detection.contact_points.count > 50


def test_cuts_of_a_sheet_that_are_undone_were_never_made(road, monkeypatch) -> None:
    simulation, twin = (Simulation([cloth()], device="cpu", threads=1) for _ in range(2))
    way = [standing(y) for y in np.linspace(-0.6, 0.6, 12)]
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
    for one in (simulation, twin):
        one.end_stroke(0)
    assert len(simulation) == len(twin) == 2


def test_a_part_of_a_sheet_is_labelled_where_its_rows_are(road, monkeypatch) -> None:
    monkeypatch.setattr(Cuts, "_lay_out_anew", lambda *_: pytest.fail("laid out anew"))
    simulation = Simulation([cloth(fixed=False, velocity=(0.3, 0.0, 0.0))], **WIDE)
    momentum = simulation.momentum
    for start, end in itertools.pairwise(standing(y) for y in np.linspace(-0.6, 0.6, 10)):
        simulation.cut(0, start, end)
        simulation.step()
    simulation.end_stroke(0)
    assert len(simulation) == 2
    check_same_as_laid_out_anew(simulation)
    areas = [body.shape.face_areas.sum() for body in simulation.bodies]
    assert sum(areas) == pytest.approx(1.0, rel=1e-12)
    assert np.abs(simulation.momentum - momentum).max() < 1e-12
    simulation.run(steps=5)
    assert np.abs(simulation.momentum - momentum).max() < 1e-12
    assert not overlaps(simulation)
    for start, end in itertools.pairwise(standing(y, x=0.3) for y in np.linspace(-0.6, 0.6, 6)):
        for number in range(2):
            simulation.cut(number, start, end)
        check_same_as_laid_out_anew(simulation)
    for number in range(2):
        simulation.end_stroke(number)
    assert len(simulation) == 3


def test_a_closed_sheet_that_is_opened_is_open(road, monkeypatch) -> None:
    counted = CountedUpdates(monkeypatch)
    ball = tg.generate.icosphere(subdivisions=3)
    simulation = Simulation([Body(ball, cuttable=True, thickness=0.01)], **WIDE)
    lines = [np.array([[x, 0.03, 0.6], [x, 0.05, 1.4]]) for x in np.linspace(-0.5, 0.6, 12)]
    assert cut_along(simulation, lines) == 0
    assert counted.found[False] == 1  # the one that opened it
    assert counted.found[True] > 3
    simulation.step()
    assert not overlaps(simulation)


def test_a_sheet_and_a_solid_are_cut_beside_each_other(road, monkeypatch) -> None:
    counted = CountedUpdates(monkeypatch)
    solid = solid_block((4, 4, 3), size=(0.8, 0.8, 0.3))
    block = Body(TetMesh(solid.vertices - [0.0, 0.0, 0.4], solid.tets), cuttable=True, density=1.0)
    simulation = Simulation([cloth(128), block], **WIDE)
    for start, end in itertools.pairwise(standing(y) for y in np.linspace(-0.6, 0.6, 8)):
        for number in range(2):
            simulation.cut(number, start, end)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
    assert not overlaps(simulation)
    assert counted.found[True] > 8


def test_points_of_a_blade_are_where_the_slow_search_finds_them(road) -> None:
    """Beside the sheet, over it and far from it, folded as it is."""
    rng = np.random.default_rng(5)
    simulation = Simulation([cloth(fixed=False)], **WIDE)
    for start, end in itertools.pairwise(standing(y) for y in np.linspace(-0.6, 0.1, 5)):
        simulation.cut(0, start, end)
    x = simulation[0].positions
    angle = 3.0 * x[:, 0]
    simulation[0].set_state(positions=np.stack([np.sin(angle) / 3.0, x[:, 1], 0.2 - np.cos(angle) / 5.0], axis=1))
    engine = simulation._pipeline.cuts
    assert isinstance(engine, Cuts)
    engine._prepare()
    own, update = engine.bodies[0], engine.in_place
    assert update is not None
    points = rng.uniform(-0.8, 0.8, (300, 3))
    rest, triangles = update.at_rest(own, 0, points, None)
    x = engine._rows(own, "x")
    wanted = to_rest(points, x, own.complex.rest, own.simplices_of(0))
    assert np.abs(rest - wanted).max() < 1e-12 * (1.0 + np.abs(wanted).max())
    assert (triangles >= 0).all()

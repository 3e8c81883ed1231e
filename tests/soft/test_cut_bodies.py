"""Several bodies that can be cut, in one simulation: each is cut as if it were the only one, and contacts name both."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracles.helpers.cut_layout import check_contact_features, check_same_as_laid_out_anew
from oracles.soft_bodies import overlaps
from tangere.query.contacts import Kind
from tangere.runtime import TangereError
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Blade, Body, Recorder, Simulation
from tangere.soft.cutting import Cuts
from tangere.soft.cutting.cut_body import CutBody

AHEAD = np.linspace(-0.062, 0.062, 7)


def block(z: float, cells=(6, 3, 3), name: str = "block", **options) -> Body:
    """0.2 long, 0.1 wide and high; its middle is so high."""
    solid = solid_block(cells, size=(0.2, 0.1, 0.1), name=name)
    shape = TetMesh(solid.vertices + [0.0, 0.0, z], solid.tets, name=name)
    return Body(shape, **{"cuttable": True, "youngs_modulus": 1e5, **options})


def pile(count: int = 2, **options) -> Simulation:
    """Blocks that lie upon each other, the lowest one held; the last one of three cannot be cut."""
    bodies = [block(0.0, fixed=solid_block((6, 3, 3)).vertices[:, 2] < -0.4), block(0.1005, (5, 4, 3), name="upper")]
    if count > 2:
        bodies += [block(0.201, (4, 2, 2), name="top")]
    bodies += [block(0.302, (3, 2, 2), name="lump", cuttable=False)]
    return Simulation(bodies, **{"device": "cpu", "threads": 1, "dt": 0.01, **options})


def upright(y: float, body: int) -> np.ndarray:
    """A blade that stands upright, as high as one of the blocks."""
    z = np.linspace(-0.06, 0.06, 4) + 0.1005 * body
    return np.stack([0.004 + 0.01 * body + 0.1 * y + 0 * z, y + 0 * z, z], axis=1)


def cut(simulation: Simulation, body: int, begin: int, end: int | None = None) -> None:
    for one, other in itertools.pairwise(AHEAD[begin : (begin + 1 if end is None else end) + 1]):
        simulation.cut(body, upright(one, body), upright(other, body))


@pytest.mark.parametrize("count", [2, 3])
def test_bodies_are_cut_in_turns_until_they_fall_apart(count, road) -> None:
    simulation = pile(count)
    simulation.run(steps=3)
    before = [body.shape.volumes.sum() for body in simulation.bodies]
    named, kinds = 0, set()
    for k in range(6):
        for body in range(count):
            cut(simulation, body, k)
            if k % 2 == body % 2:
                check_same_as_laid_out_anew(simulation)
            simulation.step()
            named += check_contact_features(simulation)
            kinds |= set(simulation.contacts.kind.tolist())
            assert not overlaps(simulation)
    for body in range(count):
        simulation.end_stroke(body)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        named += check_contact_features(simulation)
        assert not overlaps(simulation)
    assert len(simulation) == 2 * count + 1
    for body in range(count):
        pieces = simulation.pieces_of(body)
        assert len(pieces) == 2
        volume = sum(simulation.bodies[k].shape.volumes.sum() for k in pieces)
        assert volume == pytest.approx(before[body], rel=1e-12)
        assert {str(simulation.bodies[k].name).split()[0] for k in pieces} == {simulation.bodies[body].name}
    assert named > 100
    assert kinds == {int(Kind.VERTEX_FACE), int(Kind.EDGE_EDGE)}


def test_a_body_that_nothing_has_cut_yet_is_cut_after_another_has_fallen_apart(road) -> None:
    simulation = pile()
    for body in (1, 0):
        cut(simulation, body, 0, 6)
        simulation.end_stroke(body)
        check_same_as_laid_out_anew(simulation)
        simulation.run(steps=2)
        check_contact_features(simulation)
        assert not overlaps(simulation)
    assert [len(simulation.pieces_of(body)) for body in (0, 1)] == [2, 2]


def test_pieces_are_cut_again_beside_other_bodies(road) -> None:
    simulation = pile()
    for body in (0, 1):
        cut(simulation, body, 0, 6)
        simulation.end_stroke(body)
    piece = simulation.pieces_of(0)[1]
    level = [np.array([[-0.13, y, 0.006], [0.13, y, 0.006]]) for y in AHEAD]
    for one, other in itertools.pairwise(level):
        simulation.cut(piece, one, other)
        cut(simulation, 1, 0)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        check_contact_features(simulation)
        assert not overlaps(simulation)
    simulation.end_stroke(piece)
    assert len(simulation.pieces_of(0)) == 3


def test_the_bits_are_the_same_whatever_the_threads(road) -> None:
    ends = []
    for threads in (1, 2):
        simulation = pile(3, threads=threads)
        for k in range(6):
            for body in range(3):
                cut(simulation, body, k)
                simulation.step()
        ends.append((simulation.positions.tobytes(), simulation.velocities.tobytes(), len(simulation)))
    assert ends[0] == ends[1]


def test_a_step_in_which_one_fell_apart_and_another_was_cut_is_undone(road) -> None:
    simulation, twin = pile(), pile()
    for one in (simulation, twin):
        for body in (0, 1):
            cut(one, body, 0, 3)
        one.step()
    positions, solve = simulation.positions, simulation.phases["solve"]
    pieces = len(simulation.bodies[0].surface.faces), len(simulation.bodies[1].surface.faces)

    def cut_and_fail(_pipeline) -> None:
        cut(simulation, 1, 3, 5)
        assert len(simulation.bodies[1].surface.faces) > pieces[1]  # who looks meanwhile sees it
        cut(simulation, 0, 3, 6)
        simulation.end_stroke(0)
        assert len(simulation) == 4
        cut(simulation, 1, 5)
        raise TangereError("on purpose")

    simulation.phases["solve"] = cut_and_fail
    with pytest.raises(TangereError, match="on purpose"):
        simulation.step()
    simulation.phases["solve"] = solve
    assert simulation.positions.tobytes() == positions.tobytes()
    assert (len(simulation.bodies[0].surface.faces), len(simulation.bodies[1].surface.faces)) == pieces
    check_same_as_laid_out_anew(simulation)
    for one in (simulation, twin):
        for body in (1, 0):
            cut(one, body, 3, 6)
            one.end_stroke(body)
            one.step()
    assert len(simulation) == 5
    assert simulation.positions.tobytes() == twin.positions.tobytes()
    check_same_as_laid_out_anew(simulation)


def test_a_body_that_is_looked_at_while_it_is_cut_is_as_before_when_that_is_undone(road) -> None:
    simulation = pile()
    count = len(simulation.bodies[0].surface.faces)

    def cut_and_fail(_pipeline) -> None:
        cut(simulation, 0, 0, 3)
        assert len(simulation.bodies[0].surface.faces) > count
        raise TangereError("on purpose")

    simulation.phases["solve"] = cut_and_fail
    with pytest.raises(TangereError, match="on purpose"):
        simulation.step()
    assert len(simulation.bodies[0].surface.faces) == count
    check_same_as_laid_out_anew(simulation)


@pytest.mark.parametrize("count", [2, 3])
def test_a_blade_goes_through_one_after_the_other(count, monkeypatch) -> None:
    in_place, plain = [], Cuts._update_in_place
    monkeypatch.setattr(Cuts, "_update_in_place", lambda *given: in_place.append(plain(*given)) or in_place[-1])
    bodies = [block(0.0, fixed=solid_block((6, 3, 3)).vertices[:, 2] < -0.4), block(0.1005, (5, 4, 3), name="upper")]
    if count == 3:
        bodies += [block(0.201, (4, 2, 2), name="top")]
    at = (0.004, 0.0, 0.1005 * (count - 1) + 0.053)
    blade = Blade.wedge(length=0.14, height=0.3, thickness=0.004, toughness=20.0, at=at)
    simulation = Simulation([*bodies, blade], device="cpu", threads=1, dt=0.01)
    simulation[count].drive([0.0, 0.0, -0.2])
    recorder, parted = Recorder(simulation), set()
    for _ in range(25 + 52 * (count - 1)):
        simulation.step()
        recorder()
        check_contact_features(simulation)
        parted |= {event.body for event in simulation.events if event.kind == "parted"}
        assert not overlaps(simulation)
    assert parted >= set(range(1, count))
    assert any(in_place)
    assert recorder.recording().scene().things


def test_a_stroke_that_cannot_be_ended_can_be_abandoned(road, monkeypatch) -> None:
    """Its end opens what is undecided, which may be refused again and again."""
    simulation = pile()
    cut(simulation, 0, 0, 3)
    opened = len(simulation.bodies[0].surface.faces)

    def refuse(_own) -> None:
        raise TangereError("walls would touch")

    beside = [upright(y, 0) + [0.05, 0.0, 0.0] for y in AHEAD]
    with monkeypatch.context() as patched:
        patched.setattr(CutBody, "end_stroke", refuse)
        for refused in (lambda: simulation.end_stroke(0), lambda: simulation.cut(0, beside[0], beside[1])):
            with pytest.raises(TangereError, match="walls would touch"):
                refused()
        simulation.abandon_stroke("block")
        assert len(simulation.bodies[0].surface.faces) == opened
        check_same_as_laid_out_anew(simulation)
        simulation.cut(0, beside[0], beside[1])
        simulation.step()
    for one, other in itertools.pairwise(beside[1:]):
        simulation.cut(0, one, other)
        check_same_as_laid_out_anew(simulation)
        simulation.step()
        assert not overlaps(simulation)
    simulation.end_stroke(0)
    assert len(simulation.pieces_of(0)) >= 2
    simulation.step()
    assert not overlaps(simulation)

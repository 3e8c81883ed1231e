"""A part that comes off is a body of its own where its rows are: the same one as where all is laid out anew."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from oracles.helpers.cut_layout import check_contact_features, check_same_as_laid_out_anew, contacts_of
from oracles.soft_bodies import overlaps
from tangere.runtime import InputError, TangereError
from tangere.shape.generate import sheet
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation
from tangere.soft.cutting import ConnectedParts, Cuts
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.model import assembled_bodies
from tangere.soft.solver.cpu.dof_lanes import dof_lanes

WAY = np.linspace(-0.77, 0.79, 8)


def block(cells=(8, 4, 4), held: Callable[[np.ndarray], np.ndarray] = lambda x: x[:, 0] < -0.999, **options) -> Body:
    solid = solid_block(cells, size=(2.0, 1.0, 1.0), name="block")
    return Body(solid, cuttable=True, fixed=held(solid.vertices), **{"density": 1.0, **options})


def floor(z: float) -> Body:
    flat = sheet(2, size=(8.0, 8.0))
    return Body(flat.replace(vertices=flat.vertices + [0.0, 0.0, z]), fixed=True, name="floor")


def simulation_of(*bodies: Body, **options) -> Simulation:
    return Simulation(list(bodies), **{"device": "cpu", "threads": 1, "distance": 0.1, **options})


def upright(x: float, y: float) -> np.ndarray:
    z = np.linspace(-0.8, 0.8, 5)
    return np.stack([x + 0.05 * y + 0.04 * z, y + 0 * z, z], axis=1)


def across(z: float) -> Callable[[float, float], np.ndarray]:
    """A blade that lies level, for what was cut upright."""

    def line(x: float, y: float) -> np.ndarray:
        along = np.linspace(x - 0.9, x + 0.9, 5)
        return np.stack([along, y + 0 * along, z + 0.05 * along], axis=1)

    return line


def cut_through(simulation: Simulation, body: int, x: float = 0.03, line=upright) -> None:
    for one, other in itertools.pairwise(line(x, y) for y in WAY):
        simulation.cut(body, one, other)
    simulation.end_stroke(body)


@pytest.fixture
def layouts(monkeypatch) -> list[int]:
    """How often all was laid out anew."""
    found, plain = [], Cuts._lay_out_anew

    def counted(cuts: Cuts, *arguments) -> None:
        found.append(1)
        plain(cuts, *arguments)

    monkeypatch.setattr(Cuts, "_lay_out_anew", counted)
    return found


def colours_of(simulation: Simulation) -> np.ndarray:
    """By dof, in the order of the bodies' vertices."""
    assembly = simulation._pipeline.assembly
    colour, lanes = np.full(len(assembly.dofs.x), -1), dof_lanes(assembly)
    for name, (begin, stop) in enumerate(lanes.colours.numpy()):
        colour[np.unique(lanes.dofs.numpy()[begin:stop])] = name
    return colour[assembly.dof_rows]


def lay_out_with(colour: np.ndarray, monkeypatch) -> None:
    """From now on nothing is done in place, and dofs get these colours."""

    def same_colours(ranges, _neighbours, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = np.full(len(free), -1)
        own[np.flatnonzero(ranges[:, 1] > ranges[:, 0])] = colour
        order = np.flatnonzero(free)
        order = order[np.argsort(own[order], kind="stable")]
        return order, np.concatenate([[0], np.cumsum(np.bincount(own[order]))]).astype(np.int32)

    monkeypatch.setattr(assembled_bodies, "_by_colour", same_colours)
    monkeypatch.setattr(InPlaceUpdate, "part_off", lambda *_: False)


def momenta(simulation: Simulation) -> list[np.ndarray]:
    return [body.vertex_mass @ simulation[k].velocities for k, body in enumerate(simulation.bodies)]


@pytest.mark.feature("F-L-52")
def test_what_comes_off_in_place_goes_on_as_where_all_is_laid_out_anew(road, layouts, monkeypatch) -> None:
    simulation, twin = (simulation_of(block(), floor(-0.62)) for _ in range(2))
    for one in (simulation, twin):
        one.run(steps=3)
    for a, b in itertools.pairwise(upright(0.03, y) for y in WAY):
        simulation.cut(0, a, b)
        assert not layouts
        with monkeypatch.context() as patched:
            lay_out_with(colours_of(simulation), patched)
            twin.cut(0, a, b)
        if layouts:
            break
        assert simulation.positions.tobytes() == twin.positions.tobytes()
        for one in (simulation, twin):
            one.step()
    assert layouts == [1]
    assert len(simulation) == len(twin) == 3
    assert [str(body.name) for body in simulation.bodies] == ["block", "floor", "block 2"]
    check_same_as_laid_out_anew(simulation)
    for k in range(3):
        assert np.array_equal(simulation.bodies[k].shape.vertices, twin.bodies[k].shape.vertices)
        assert np.array_equal(simulation[k].positions, twin[k].positions)
        assert np.array_equal(simulation[k].velocities, twin[k].velocities)
        assert simulation[k].mesh.vertices == pytest.approx(twin[k].mesh.vertices, abs=1e-10)
    stiff = 1e4 * 2.0  # Young's modulus times volume: of what elastic energies are differences
    assert simulation.energy.total == pytest.approx(twin.energy.total, abs=1e-15 * stiff)
    touching = 0
    for _ in range(10):
        assert contacts_of(simulation._pipeline, digits=6) == contacts_of(twin._pipeline, digits=6)
        for one in (simulation, twin):
            one.step()
        touching += check_contact_features(simulation)
        # Sums are taken in another order: rounding, of which contacts make more from step to step (1e-12 to 6e-11 m).
        assert np.abs(simulation.positions - twin.positions).max() < 1e-9
        assert np.abs(simulation.velocities - twin.velocities).max() < 1e-9 / simulation.dt
        for ours, theirs in zip(momenta(simulation), momenta(twin), strict=True):
            assert ours == pytest.approx(theirs, abs=1e-9 / simulation.dt)
        assert simulation.energy.total == pytest.approx(twin.energy.total, abs=1e-13 * stiff)
        assert not overlaps(simulation)
    assert touching > 50


def test_momentum_of_each_part_is_what_gravity_and_nothing_else_gives(road) -> None:
    simulation = simulation_of(
        block(held=lambda x: np.zeros(len(x), bool), velocity=(0.1, 0.2, 0.3)), gravity=(0.0, 0.0, -1.0)
    )
    cut_through(simulation, 0)
    cut_through(simulation, 0, float(simulation[0].positions[:, 0].mean()), line=across(0.1))
    assert len(simulation) == 3
    whole = sum(momenta(simulation))
    mass = sum(body.vertex_mass.sum() for body in simulation.bodies)
    for step in range(1, 6):
        simulation.step()
        wanted = whole + mass * step * simulation.dt * np.array([0.0, 0.0, -1.0])
        assert sum(momenta(simulation)) == pytest.approx(wanted, abs=1e-12 * mass)


def test_parts_of_parts_are_cut_in_place(road, layouts, monkeypatch) -> None:
    monkeypatch.setattr(assembled_bodies, "_spare_room", lambda body: (400, 600) if body.cuttable else (0, 0))
    simulation = simulation_of(block(), floor(-0.65), dt=0.01)
    cut_through(simulation, 0)
    simulation.run(steps=3)
    check_same_as_laid_out_anew(simulation)
    for body in simulation.pieces_of(0):
        middle = float(simulation[body].positions[:, 0].mean())
        cut_through(simulation, body, middle, line=across(float(simulation[body].positions[:, 2].mean())))
        check_same_as_laid_out_anew(simulation)
        simulation.run(steps=2)
        check_contact_features(simulation)
        assert not overlaps(simulation)
    assert simulation.pieces_of(0) == (0, 2, 3, 4)
    assert not layouts
    volume = sum(simulation.bodies[k].shape.volumes.sum() for k in simulation.pieces_of(0))
    assert volume == pytest.approx(2.0, rel=1e-12)
    assert simulation["block 3"].number == 3


def test_the_bits_of_parts_are_the_same_whatever_the_threads(road) -> None:
    ends = []
    for threads in (1, 2):
        simulation = simulation_of(block(), floor(-0.65), threads=threads)
        cut_through(simulation, 0)
        simulation.run(steps=3)
        cut_through(simulation, 2, 0.5, line=across(0.0))
        simulation.run(steps=4)
        ends.append((simulation.positions.tobytes(), simulation.velocities.tobytes(), len(simulation)))
    assert ends[0] == ends[1]
    assert ends[0][2] == 4


def test_a_part_is_put_driven_and_pulled_by_itself(road) -> None:
    simulation = simulation_of(block(held=lambda x: np.abs(x[:, 0]) > 0.999), gravity=(0.0, 0.0, 0.0))
    simulation[0].pull(0, simulation[0].mesh.vertices[0], stiffness=5.0)
    cut_through(simulation, 0)
    part, rest = simulation["block 2"], simulation["block"]
    rest_before = rest.positions
    part.drive([0.3, 0.0, 0.0])
    fixed = part.body.fixed
    began = part.positions
    simulation.run(steps=2)
    assert part.positions[fixed] == pytest.approx(began[fixed] + [0.012, 0.0, 0.0], abs=1e-12)
    assert np.array_equal(rest.positions[rest.body.fixed], rest_before[rest.body.fixed])
    part.drive([0.0, 0.0, 0.0])
    wanted = part.positions + [0.5, 0.0, 0.0]
    others = rest.positions
    part.set_state(positions=wanted, velocities=np.zeros_like(wanted))
    assert np.array_equal(part.positions, wanted)
    assert np.array_equal(rest.positions, others)
    simulation.step()
    free = int(np.flatnonzero(~fixed)[0])
    vertex = int(np.argmin(np.linalg.norm(part.mesh.vertices - part.positions[free], axis=1)))
    before = part.mesh.vertices[vertex]
    part.pull(vertex, before + [0.0, 0.0, 0.3])
    simulation.run(steps=5)
    assert (part.mesh.vertices[vertex] - before)[2] > 1e-3
    assert np.abs(rest.velocities).max() < 1e-6


def test_what_is_pulled_is_pulled_on_where_a_part_comes_off(road) -> None:
    solid = solid_block((8, 4, 4), size=(2.0, 1.0, 1.0))
    right = int(np.argmax(solid.surface.vertices[:, 0]))
    simulation = simulation_of(block(), gravity=(0.0, 0.0, 0.0))
    simulation[0].pull(right, [3.0, 0.0, 0.0])
    cut_through(simulation, 0)
    far = next(k for k in (0, 1) if simulation.bodies[k].shape.vertices[:, 0].max() > 0.99)
    anchored = simulation._pipeline.islands.anchored.numpy()
    assert (anchored[:2] == 1).all()
    before = simulation[far].positions[:, 0].mean()
    simulation.run(steps=5)
    assert simulation[far].positions[:, 0].mean() > before + 1e-3
    simulation.let_go()
    assert simulation._pipeline.islands.anchored.numpy()[far] == 0


def state_of(simulation: Simulation) -> list:
    pipeline = simulation._pipeline
    assembly, cuts = pipeline.assembly, pipeline.cuts
    assert isinstance(cuts, Cuts)
    kept = [simulation.positions.tobytes(), simulation.velocities.tobytes(), len(simulation), list(assembly.names)]
    arrays = [
        assembly.dofs.body,
        assembly.surface.body,
        pipeline.islands.anchored,
        pipeline.rows.memory.bristles.family,
    ]
    arrays += [getattr(assembly.whole, name) for name in assembled_bodies.WholeBodies.vars]
    arrays += [pipeline.rows.memory.bristles.elsewhere, pipeline.initial_contacts.limits]
    own = cuts.bodies[0]
    kept += [array.numpy().tobytes() for array in arrays]
    kept += [
        own.numbers.copy(),
        own.dofs.body.tobytes(),
        own.vertices.body.tobytes(),
        own.complex.view("part").tobytes(),
    ]
    return [*kept, [event.kind for event in simulation.events], [len(b.surface.faces) for b in simulation.bodies]]


@pytest.mark.parametrize("how", ["a step", "a cut"])
def test_a_part_that_comes_off_where_something_fails_has_never_come_off(road, how, monkeypatch) -> None:
    simulation, twin = (simulation_of(block(), floor(-0.65)) for _ in range(2))
    way = list(itertools.pairwise(upright(0.03, y) for y in WAY))
    for one in (simulation, twin):
        for a, b in way[:4]:
            one.cut(0, a, b)
        one.step()
    note, seen = Cuts._note, []

    def broken(cuts: Cuts, own, changes: list, parted: list) -> None:
        note(cuts, own, changes, parted)
        if parted:
            seen.append((len(simulation), simulation["block 2"].number, len(simulation[2].positions)))
            raise TangereError("on purpose")

    before, last = state_of(simulation), 4
    with monkeypatch.context() as patched:
        patched.setattr(Cuts, "_note", broken)
        if how == "a step":
            patched.setitem(simulation.phases, "solve", lambda _: [simulation.cut(0, a, b) for a, b in way[4:]])
            with pytest.raises(TangereError, match="on purpose"):
                simulation.step()
        else:
            while len(seen) < 1:
                before = state_of(simulation)
                try:
                    simulation.cut(0, *way[last])
                except TangereError:
                    break
                last += 1
    assert seen[0][:2] == (3, 2)
    assert seen[0][2] > 50
    assert state_of(simulation) == before
    with pytest.raises(InputError, match="no body called 'block 2'"):
        simulation["block 2"]
    check_same_as_laid_out_anew(simulation)
    for a, b in way[4:last]:
        twin.cut(0, a, b)
    for one in (simulation, twin):
        for a, b in way[last:]:
            one.cut(0, a, b)
        one.run(steps=3)
    assert len(simulation) == 3
    assert state_of(simulation) == state_of(twin)


def test_a_large_part_takes_a_bounded_slice_of_each_step(road, layouts, monkeypatch) -> None:
    advance, looked = ConnectedParts.advance, []

    def small_slice(parts: ConnectedParts, budget: int = 200, **options) -> list:
        looked.append(1)
        return advance(parts, budget, **options)

    monkeypatch.setattr(ConnectedParts, "advance", small_slice)
    simulation, at_once = simulation_of(block()), simulation_of(block())
    cut_through(simulation, 0)
    assert len(simulation) == 1
    seen = []
    while len(simulation) == 1 and len(looked) < 60:
        simulation.step()
        seen.append(len(simulation))
    assert 3 < len(seen) < 20
    assert [(event.kind, event.part) for event in simulation.events] == [("parted", 1)]
    check_same_as_laid_out_anew(simulation)
    monkeypatch.setattr(ConnectedParts, "advance", advance)
    cut_through(at_once, 0)
    assert len(at_once) == 2
    for k in range(2):
        assert np.array_equal(simulation.bodies[k].shape.tets, at_once.bodies[k].shape.tets)
    assert not layouts


def test_a_part_that_is_listed_when_the_blade_goes_on_is_looked_for_anew(road, monkeypatch) -> None:
    advance = ConnectedParts.advance
    monkeypatch.setattr(ConnectedParts, "advance", lambda parts, budget=60, **more: advance(parts, budget, **more))
    simulation = simulation_of(block())
    cut_through(simulation, 0)
    for x in (-0.5, 0.5):  # while the first one is looked for
        for one, other in itertools.pairwise(upright(x, y) for y in WAY):
            simulation.cut(0, one, other)
            simulation.step()
        simulation.end_stroke(0)
    steps = 0
    while len(simulation) < 4 and steps < 200:
        simulation.step()
        steps += 1
    assert len(simulation) == 4
    check_same_as_laid_out_anew(simulation)


@pytest.mark.parametrize("case", ["no room for bodies", "nothing of it can move"])
def test_all_is_laid_out_anew_where_a_part_cannot_be_labelled(road, case, layouts, monkeypatch) -> None:
    held = lambda x: x[:, 0] < (0.3 if case == "nothing of it can move" else -0.999)  # noqa: E731
    if case == "no room for bodies":
        monkeypatch.setattr(assembled_bodies, "MOST_PARTS", 0)
    simulation = simulation_of(block(held=held))
    simulation.step()
    cut_through(simulation, 0, -0.4)
    assert layouts
    assert len(simulation) == 2
    check_same_as_laid_out_anew(simulation)
    if case == "nothing of it can move":
        assert sum(body.is_obstacle for body in simulation.bodies) == 1
    simulation.run(steps=3)
    assert not overlaps(simulation)


def test_what_is_around_another_body_is_laid_out_anew(layouts) -> None:
    solid, small = solid_block((8, 4, 4), size=(2.0, 1.0, 1.0)), solid_block((1, 1, 1), size=(0.1, 0.1, 0.1))
    inside = Body(TetMesh(small.vertices + [0.6, 0.03, 0.02], small.tets), name="inside")
    around = Body(solid, cuttable=True, density=1.0, fixed=solid.vertices[:, 0] < -0.999)
    simulation = Simulation([around, inside], device="cpu", threads=1, distance=0.05, gravity=(0.0, 0.0, 0.0))
    cut_through(simulation, 0, -0.1)
    assert layouts == [1]
    assert len(simulation) == 3
    closed = assembled_bodies.CLOSED
    pipeline = simulation._pipeline
    pipeline.refresh_initial_contacts()
    traits = pipeline.assembly.surface.traits.numpy()
    touched_from_inside = [bool((traits[pipeline.assembly.vertex_rows(k)] & int(closed) == 0).all()) for k in range(3)]
    right = next(k for k in (0, 2) if simulation.bodies[k].shape.vertices[:, 0].max() > 0.99)
    assert [k for k in range(3) if touched_from_inside[k]] == [right]


def test_the_faces_that_hinged_edges_are_beside_are_those_of_now(road, layouts) -> None:
    """The floor has edges that are hinged, so the truncation has a list of faces of its own."""
    simulation = simulation_of(block(), floor(-0.65))
    cut_through(simulation, 0)
    simulation.step()
    hinged, surface = simulation._pipeline.truncation._hinged, simulation._pipeline.assembly.surface
    assert not layouts
    assert len(hinged.faces) > len(surface.faces)
    assert np.array_equal(hinged.faces.numpy()[: len(surface.faces)], surface.faces.numpy())

"""Bodies are cut while they move: nothing is gained, walls press and slide, parts fall, and what fails is undone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tangere as tg
from oracles.helpers.cut_strokes import block as lattice_block
from oracles.helpers.cut_strokes import random_stroke
from oracles.helpers.cut_strokes import torus as lattice_torus
from oracles.soft_bodies import overlaps, solid_energy
from tangere.runtime import InputError, TangereError
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Blade, Body, Simulation
from tangere.soft import step as soft_step
from tangere.soft.cutting import ConnectedParts, Cuts
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.model.assembled_bodies import AssembledBodies

SIZE = (2.0, 1.0, 1.0)


def block(cells=(8, 4, 4), *, held=("left",), **options) -> Body:
    """A block along x, held at its ends."""
    solid = solid_block(cells, size=SIZE, name="block")
    x = solid.vertices[:, 0]
    fixed = np.zeros(len(x), bool)
    if "left" in held:
        fixed |= x < -0.999
    if "right" in held:
        fixed |= x > 0.999
    return Body(solid, fixed=fixed, **{"density": 1.0, "youngs_modulus": 1e4, "cuttable": True, **options})


def floor(z: float) -> Body:
    sheet = tg.generate.sheet(2, size=(6.0, 6.0))
    return Body(sheet.replace(vertices=sheet.vertices + [0.0, 0.0, z]), fixed=True, name="floor")


def upright(x: float, y: float, slope: float = 0.0) -> np.ndarray:
    """A blade that stands upright."""
    return np.array([[x + slope * y, y, -0.9], [x + slope * y, y, 0.9]])


def lines(x: float, end: float, steps: int, slope: float = 0.0) -> list[np.ndarray]:
    return [upright(x, y, slope) for y in np.linspace(-0.75, end, steps + 1)]


def cut_through(simulation: Simulation, way: list[np.ndarray], body: int = 0) -> list:
    """One stroke, without steps in between; all events."""
    found = []
    for start, end in itertools.pairwise(way):
        found += simulation.cut(body, start, end)
    return found + simulation.end_stroke(body)


def cuts_of(simulation: Simulation) -> Cuts:
    cuts = simulation._pipeline.cuts
    assert cuts is not None
    return cuts


def state_of(simulation: Simulation) -> list[np.ndarray]:
    """All that a step depends on, as arrays."""
    pipeline = simulation._pipeline
    kept = [simulation.positions, simulation.velocities, pipeline.initial_contacts.limits.numpy().copy()]
    kept += [getattr(pipeline.rows.memory.bristles, name).numpy().copy() for name in ("strain", "partner", "limit")]
    for own in cuts_of(simulation).bodies:
        topology, surface, parts, notes = own.state()
        kept += [*topology.rows.values(), *topology.lists.values(), parts[0], notes[1], notes[2].place, notes[3].place]
        kept += [] if surface is None else [surface[1]]
    return kept


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.feature("F-L-5", "F-L-52")
def test_a_half_that_is_cut_off_falls_at_g_onto_the_floor() -> None:
    simulation = Simulation([block(), floor(-1.6)], friction=0.0, distance=0.15, device="cpu", threads=1)
    simulation.run(steps=5)
    events = cut_through(simulation, lines(0.0, 0.75, 12))
    parted = [event for event in events if event.kind == "parted"]
    assert [(event.body, event.part) for event in parted] == [(0, 2)]
    assert len(simulation) == 3
    assert simulation["block 2"].number == 2
    halves = [simulation.bodies[number].shape.volumes.sum() for number in (0, 2)]
    assert sum(halves) == pytest.approx(2.0, rel=1e-12)
    assert halves == pytest.approx([1.0, 1.0], rel=0.01)
    number = next(k for k in (0, 2) if not simulation.bodies[k].fixed.any())
    half, mass = simulation[number], simulation.bodies[number].vertex_mass
    speeds = [mass @ half.velocities[:, 2] / mass.sum()]
    for _ in range(8):
        simulation.step()
        speeds.append(mass @ half.velocities[:, 2] / mass.sum())
        assert not overlaps(simulation)
    assert np.diff(speeds)[2:] / simulation.dt == pytest.approx(-9.81, rel=0.01)  # it was bent, and springs back first
    simulation.run(steps=60)
    assert not overlaps(simulation)
    assert -1.6 < half.mesh.vertices[:, 2].min() < -1.6 + 0.15
    touching = set(zip(simulation.contacts.body_a.tolist(), simulation.contacts.body_b.tolist(), strict=True))
    assert touching & {(number, 1), (1, number)}


@pytest.mark.feature("F-L-52")
def test_parts_are_looked_for_in_slices_of_a_budget(monkeypatch) -> None:
    advance, asked = ConnectedParts.advance, []

    def slice_of_40(parts: ConnectedParts, **options) -> list:
        asked.append(options)
        return advance(parts, 40, **options)

    monkeypatch.setattr(ConnectedParts, "advance", slice_of_40)
    simulation = Simulation([block()], device="cpu", threads=1)
    cut_through(simulation, lines(0.0, 0.75, 2))
    assert len(simulation) == 1
    steps = 0
    while len(simulation) == 1 and steps < 60:
        simulation.step()
        steps += 1
    assert len(simulation) == 2
    assert 2 <= steps < 60
    assert [event.kind for event in simulation.events] == ["parted"]
    made = len(asked)
    simulation.step()
    assert len(asked) == made  # nothing is left to look for


@pytest.mark.parametrize("snap", [0.0, 0.2])
def test_a_cut_keeps_energy_momentum_and_all_that_it_does_not_touch(rng, snap) -> None:
    """Without snapping for any velocities; with it, vertices are moved, and velocities are taken along."""
    simulation = Simulation([block(held=(), snap=snap)], gravity=(0.0, 0.0, 0.0), device="cpu", threads=1)
    x = simulation[0].positions
    velocities = 0.1 * (rng.normal(size=x.shape) if snap == 0.0 else x @ rng.normal(size=(3, 3)) + [0.2, 0.1, 0.3])
    simulation[0].set_state(positions=x * [1.05, 0.97, 1.0], velocities=velocities)
    before, momentum = simulation.energy, simulation.momentum
    simulation.cut(0, upright(0.03, -0.75, 0.05), upright(0.03, 0.0, 0.05))
    after = simulation.energy
    assert len(simulation[0].positions) > len(x)
    assert after.elastic == pytest.approx(before.elastic, rel=1e-9)
    assert after.kinetic <= before.kinetic * (1.0 + 1e-9)
    assert simulation.momentum == pytest.approx(momentum, abs=1e-12 * float(np.abs(momentum).max()))
    body = simulation.bodies[0]
    assert body.vertex_mass.sum() == pytest.approx(2.0, rel=1e-12)
    far = np.abs(x[:, 0]) > 0.45
    assert simulation[0].positions[: len(x)][far].tobytes() == (x * [1.05, 0.97, 1.0])[far].tobytes()
    assert simulation[0].velocities[: len(x)][far].tobytes() == velocities[far].tobytes()
    energy = solid_energy(body.shape, simulation[0].positions, 1e4, 0.4)
    assert after.elastic == pytest.approx(energy, rel=1e-9)


@pytest.mark.feature("F-L-49")
def test_walls_are_in_the_contacts_of_the_step_that_opens_them() -> None:
    simulation = Simulation([block(held=("left", "right"))], device="cpu", threads=1)
    simulation.run(steps=3)
    assert not len(simulation.contacts)
    simulation.cut(0, upright(0.0, -0.75), upright(0.0, 0.1))
    simulation.step()
    walls = np.flatnonzero(simulation.bodies[0].wall_faces)
    contacts = simulation.contacts
    assert len(walls) > 20
    assert set(contacts.feature_b[contacts.kind == 1]) & set(walls)


@pytest.mark.feature("F-L-47")
def test_walls_that_are_pressed_together_push_and_never_pass_through() -> None:
    simulation = Simulation([block(held=("left", "right"))], gravity=(0, 0, 0), device="cpu", threads=1)
    cut_through(simulation, lines(0.0, 0.15, 4))
    right = simulation.bodies[0].fixed & (simulation.bodies[0].shape.vertices[:, 0] > 0.0)
    simulation[0].drive(np.where(right[:, None], [-0.25, 0.0, 0.0], 0.0))
    for _ in range(15):
        simulation.step()
        assert not overlaps(simulation)
    contacts, forces = simulation.contacts, simulation.contact_forces
    walls = simulation.bodies[0].wall_faces
    at_walls = (contacts.kind == 1) & walls[np.minimum(contacts.feature_b, len(walls) - 1)]
    assert np.linalg.norm(forces[at_walls], axis=1).max() > 0.0
    assert np.abs(contacts.normal[at_walls, 0]).min() > 0.8
    gap = 0.1 * simulation.distance
    assert contacts.gap[at_walls].max() < 3.0 * gap


@pytest.mark.feature("F-L-51")
@pytest.mark.parametrize("youngs_modulus", [1e3, 1e4, 1e5])
def test_a_half_cut_block_gains_nothing_in_500_steps(youngs_modulus, effort) -> None:
    body = block((6, 3, 3), held=("left", "right"), youngs_modulus=youngs_modulus)
    simulation = Simulation([body], device="cpu", threads=1)
    simulation.run(steps=30)
    edge, start = 1.0 / 3.0, simulation.energy.total
    way, highest, furthest = lines(0.03, 0.05, 40, slope=0.05), start, 0.0
    for step in range(effort(500)):
        if step < 40:
            simulation.cut(0, way[step], way[step + 1])
        before = simulation.positions
        simulation.step()
        furthest = max(furthest, float(np.abs(simulation.positions - before).max()))
        highest = max(highest, simulation.energy.total)
        if step % 50 == 0:
            assert not overlaps(simulation)
    assert highest - start < 1e-3
    assert furthest < edge


@pytest.mark.slow
@pytest.mark.parametrize("youngs_modulus", [1e3, 1e4])
def test_a_block_that_is_cut_through_gains_less_than_a_hundredth_of_what_it_loses(youngs_modulus) -> None:
    body = block((10, 5, 5), youngs_modulus=youngs_modulus)
    simulation = Simulation([body, floor(-2.5)], distance=0.17, device="cpu", threads=1)
    simulation.run(steps=30)
    start, way, energies = simulation.energy.total, lines(0.03, 0.75, 60, slope=0.05), []
    for step in range(500):
        if step < 60:
            simulation.cut(0, way[step], way[step + 1])
        simulation.step()
        energies.append(simulation.energy.total)
        if step % 10 == 0:
            assert not overlaps(simulation)
    assert len(simulation) == 3
    assert max(energies) - start < 0.01 * (start - min(energies))


@pytest.mark.parametrize("where", ["in place", "laid out anew"])
def test_a_cut_that_fails_leaves_everything_as_it_was(monkeypatch, where) -> None:
    simulation = Simulation([block((6, 3, 3))], device="cpu", threads=1)
    way = lines(0.03, 0.75, 6, slope=0.05)
    for k in range(3):
        simulation.cut(0, way[k], way[k + 1])
        simulation.step()
    before, meshes = state_of(simulation), [mesh.vertices.tobytes() for mesh in simulation.meshes()]

    def fail(*_arguments, **_options) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if where == "in place":
            patched.setattr(InPlaceUpdate, "is_apart", fail)
        else:
            patched.setattr(InPlaceUpdate, "fits", lambda *_: False)
            patched.setattr(AssembledBodies, "of", fail)
        with pytest.raises(KeyboardInterrupt):
            simulation.cut(0, way[3], way[5])
    assert same(state_of(simulation), before)
    assert [mesh.vertices.tobytes() for mesh in simulation.meshes()] == meshes
    simulation.cut(0, way[3], way[5])
    assert not same(state_of(simulation), before)


def test_a_cut_whose_walls_would_touch_whatever_is_tried_is_refused_with_a_way_out(monkeypatch) -> None:
    simulation = Simulation([block((6, 3, 3))], device="cpu", threads=1)
    way = lines(0.03, 0.75, 6, slope=0.05)
    simulation.cut(0, way[0], way[2])
    before = state_of(simulation)

    def touches(*_arguments) -> None:
        raise InputError("body 0 'block' with itself touch")

    with monkeypatch.context() as patched:
        patched.setattr(InPlaceUpdate, "is_apart", lambda *_: False)
        patched.setattr(soft_step, "check_no_overlap", touches)
        with pytest.raises(InputError, match=r"^cut: body 0 .* nothing was cut: abandon_stroke .* kerf="):
            simulation.cut(0, way[2], way[4])
    assert same(state_of(simulation), before)
    assert simulation.cut(0, way[2], way[4])


def test_a_step_that_fails_after_a_cut_within_it_leaves_everything_as_it_was() -> None:
    simulation = Simulation([block((6, 3, 3))], device="cpu", threads=1)
    way = lines(0.03, 0.75, 6, slope=0.05)
    simulation.cut(0, way[0], way[2])
    simulation.step()
    before, solve = state_of(simulation), simulation.phases["solve"]

    def cut_and_fail(_pipeline) -> None:
        simulation.cut(0, way[2], way[4])
        simulation.cut(0, way[4], way[6])
        raise TangereError("on purpose")

    simulation.phases["solve"] = cut_and_fail
    with pytest.raises(TangereError, match="on purpose"):
        simulation.step()
    assert same(state_of(simulation), before)
    assert len(simulation) == 1
    simulation.phases["solve"] = solve
    twin = Simulation([block((6, 3, 3))], device="cpu", threads=1)
    twin.cut(0, way[0], way[2])
    twin.step()
    for one in (simulation, twin):
        cut_through(one, way[2:])
        one.run(steps=3)
    assert simulation.positions.tobytes() == twin.positions.tobytes()


def test_cuts_have_the_same_bits_for_any_number_of_threads() -> None:
    found = []
    for threads in (1, 2):
        simulation = Simulation([block((6, 3, 3)), floor(-0.7)], device="cpu", threads=threads)
        way = lines(0.03, 0.75, 5, slope=0.05)
        for start, end in itertools.pairwise(way):
            simulation.cut(0, start, end)
            simulation.step()
        simulation.run(steps=5)
        found.append(simulation.positions.tobytes())
    assert found[0] == found[1]


def test_a_body_that_has_turned_and_moved_is_cut_where_the_blade_is(device) -> None:
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    simulation = Simulation([block(held=())], gravity=(0, 0, 0), device=device, threads=1)
    simulation[0].set_state(positions=simulation[0].positions @ turn.T + [5.0, 0.0, 0.0])
    way = [line @ turn.T + [5.0, 0.0, 0.0] for line in lines(0.25, 0.75, 4)]
    cut_through(simulation, way)
    assert len(simulation) == 2
    volumes = sorted(body.shape.volumes.sum() for body in simulation.bodies)
    assert volumes == pytest.approx([0.75, 1.25], rel=1e-6)
    assert simulation[1].positions[:, 0].mean() == pytest.approx(5.0, abs=0.05)
    simulation.run(steps=3)
    assert not overlaps(simulation)


def test_a_part_that_has_moved_away_is_not_cut_with_what_it_came_off() -> None:
    simulation = Simulation([block(held=())], gravity=(0, 0, 0), device="cpu", threads=1)
    cut_through(simulation, lines(0.0, 0.75, 4))
    assert len(simulation) == 2
    simulation[1].set_state(positions=simulation[1].positions + [0.0, 0.0, 3.0])
    level = [np.array([[-1.2, y, 0.0], [1.2, y, 0.0]]) for y in np.linspace(-0.75, 0.75, 5)]
    cut_through(simulation, level, body=0)
    assert len(simulation) == 3
    assert simulation.bodies[1].shape.volumes.sum() == pytest.approx(1.0, rel=1e-9)
    assert {round(float(simulation.bodies[k].shape.volumes.sum()), 6) for k in (0, 2)} == {0.5}


@pytest.mark.parametrize("case", [1, 28, 32, 34])
def test_random_strokes_leave_surfaces_apart(case) -> None:
    """In the last two the mean of the normals of walls is on the wrong side of one of them."""
    cut_by_random_strokes(case)


@pytest.mark.slow
def test_of_three_hundred_random_strokes_none_is_refused(effort) -> None:
    for case in range(effort(150)):
        cut_by_random_strokes(case)


def cut_by_random_strokes(case: int) -> None:
    """Two strokes through a block or a torus."""
    rng = np.random.default_rng(case)
    shape = TetMesh(*(lattice_block, lattice_torus)[case % 2]())
    simulation = Simulation([Body(shape, cuttable=True, density=1.0)], gravity=(0, 0, 0), device="cpu", threads=1)
    opened = 0
    for _ in range(2):
        stroke = random_stroke(rng, cuts_of(simulation).bodies[0].complex.edge)
        for start, end in itertools.pairwise(stroke.lines):
            opened += len(simulation.cut(0, start, end))
        simulation.end_stroke(0)
        simulation.step()
        assert not overlaps(simulation)
    assert opened
    assert sum(body.shape.volumes.sum() for body in simulation.bodies) == pytest.approx(shape.volumes.sum(), rel=1e-12)


@pytest.mark.feature("F-L-51")
@pytest.mark.parametrize("case", [0, 13, 18])
def test_a_body_at_rest_stays_at_rest_where_strokes_cross(case) -> None:
    """Walls that a later stroke puts elsewhere, and parts that come off, are pushed by nothing."""
    rng = np.random.default_rng(case)
    shape = TetMesh(*(lattice_block, lattice_torus)[case % 2]())
    simulation = Simulation([Body(shape, cuttable=True, density=1.0)], gravity=(0, 0, 0), device="cpu", threads=1)
    touching = 0
    for _ in range(2):
        stroke = random_stroke(rng, cuts_of(simulation).bodies[0].complex.edge)
        for start, end in itertools.pairwise(stroke.lines[:: max(1, len(stroke.lines) // 12)]):
            simulation.cut(0, start, end)
            simulation.step()
            touching = max(touching, len(simulation.contacts))
        simulation.end_stroke(0)
        simulation.run(steps=2)
    assert len(simulation) == 3
    assert touching > 100
    assert simulation.energy.total < 1e-9  # of 2e4 J that would compress it all
    for body in simulation:
        assert np.abs(body.positions - body.body.shape.vertices).max() < 1e-7


def test_a_sheet_that_is_cut_falls_apart() -> None:
    sheet = tg.generate.sheet(200, size=(1.0, 1.0), name="cloth")
    held = sheet.vertices[:, 0] < -0.499
    simulation = Simulation([Body(sheet, fixed=held, cuttable=True)], device="cpu", threads=1)
    way = [np.array([[0.07, y, -0.3], [0.07, y, 0.3]]) for y in np.linspace(-0.6, 0.6, 7)]
    for start, end in itertools.pairwise(way):
        simulation.cut(0, start, end)
        simulation.step()
        assert not overlaps(simulation)
    simulation.end_stroke(0)
    assert len(simulation) == 2
    areas = [simulation.bodies[k].shape.face_areas.sum() for k in range(2)]
    assert sum(areas) == pytest.approx(1.0, rel=1e-9)
    simulation.run(steps=20)
    assert not overlaps(simulation)
    assert simulation[1].positions[:, 2].mean() < simulation[0].positions[:, 2].mean() - 0.1


def test_walls_that_only_push_as_published_push_below_half_their_distance_at_rest() -> None:
    simulation = Simulation([block((6, 3, 3), held=("left", "right"))], response="penalty", device="cpu", threads=1)
    simulation.run(steps=5)
    start = simulation.energy.total
    for one, other in itertools.pairwise(lines(0.0, 0.15, 4)):
        simulation.cut(0, one, other)
        simulation.step()
    simulation.run(steps=20)
    assert simulation.energy.total < start + 1e-3
    assert len(simulation.contacts)


def test_what_is_pulled_is_pulled_on_after_a_cut() -> None:
    simulation = Simulation([block((6, 3, 3))], gravity=(0, 0, 0), device="cpu", threads=1)
    corner = int(np.argmax(simulation[0].mesh.vertices @ [1.0, 1.0, 1.0]))
    simulation[0].pull(corner, (1.2, 0.6, 0.9))
    simulation.run(steps=5)
    cut_through(simulation, lines(0.03, 0.75, 4))
    assert len(simulation) == 2
    pulled = max(simulation, key=lambda body: body.positions[:, 0].mean())
    before = pulled.positions[:, 2].mean()
    simulation.run(steps=10)
    assert pulled.positions[:, 2].mean() > before + 0.02
    simulation.let_go()


def test_wrong_cuts_are_told() -> None:
    simulation = Simulation([block((4, 2, 2)), floor(-1.0)], device="cpu", threads=1)
    one, other = upright(0.0, -0.7), upright(0.0, 0.7)
    with pytest.raises(InputError, match="body 1 'floor' cannot be cut"):
        simulation.cut(1, one, other)
    with pytest.raises(InputError, match="no length"):
        simulation.cut(0, one[[0, 0]], other)
    with pytest.raises(InputError, match="polylines"):
        simulation.cut(0, one, other[:1])
    with pytest.raises(InputError, match="not finite"):
        simulation.cut(0, one, other * np.nan)
    with pytest.raises(InputError, match="there is no body"):
        simulation.cut(7, one, other)
    plain = Simulation([block((4, 2, 2), cuttable=False)], device="cpu", threads=1)
    with pytest.raises(InputError, match="cannot be cut"):
        plain.cut(0, one, other)
    assert plain.events == []
    with pytest.raises(InputError, match="cannot be cut; leave out the surface"):
        Body(solid_block((4, 2, 2)), surface=tg.generate.box((1.0, 0.5, 0.5)), cuttable=True)
    with pytest.raises(InputError, match="snap"):
        block(snap=0.5)
    with pytest.raises(InputError, match="kerf"):
        block(kerf=0.0)
    with pytest.raises(InputError, match=r"too wide .* say kerf=, less than half"):
        Simulation([block((4, 2, 2), kerf=0.4)], device="cpu")


def test_the_kerf_that_is_chosen_fits_elements_that_are_flat() -> None:
    """As those of most tetrahedra that are made of a surface: a few are a twentieth as high as they are long."""
    solid = solid_block((6, 3, 3), size=SIZE, name="block")
    places = solid.vertices.copy()
    inner = np.flatnonzero((np.abs(places) < np.array(SIZE) / 2 - 0.01).all(axis=1))
    places[inner[::3], 0] += 0.28
    shape = TetMesh(places, solid.tets, name="block")
    plain, flat = (Simulation([Body(own, cuttable=True)], gravity=(0, 0, 0), device="cpu") for own in (solid, shape))
    kerf, usual = (cuts_of(one).bodies[0].kerf for one in (flat, plain))
    assert usual == pytest.approx(0.1 * plain.distance)
    a, b, c, d = np.moveaxis(places[shape.tets], 1, 0)
    corners = np.array([(a, b, c), (a, b, d), (a, c, d), (b, c, d)])
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=-1)
    altitude = (6.0 * shape.volumes / areas).min()
    assert kerf < 0.5 * altitude < 0.9 * usual  # the usual one would be refused
    cut_through(flat, lines(0.03, 0.75, 6))
    assert len(flat) == 2
    assert not overlaps(flat)
    flat.step()


def test_a_body_that_is_inside_out_where_the_blade_goes_is_not_cut() -> None:
    simulation = Simulation([block((4, 2, 2), held=())], gravity=(0, 0, 0), device="cpu", threads=1, response="none")
    simulation[0].set_state(positions=simulation[0].positions * [1.0, -1.0, 1.0])
    before = state_of(simulation)
    with pytest.raises(TangereError, match="inside out"):
        simulation.cut(0, upright(0.1, 0.75), upright(0.1, -0.75))
    assert same(state_of(simulation), before)


def edge_of(simulation: Simulation) -> np.ndarray:
    """What the edge of the only blade feels [N]."""
    return cuts_of(simulation).blades[0].force


def pressed(toughness: float, steps: int, *, each=lambda simulation: None) -> Simulation:
    """A block that lies held on the ground, and a blade that comes down on it."""
    solid = solid_block((6, 3, 3), size=SIZE, name="block")
    body = Body(solid, cuttable=True, density=1.0, fixed=solid.vertices[:, 2] < -0.499)
    blade = Blade.wedge(length=1.4, height=1.4, thickness=0.05, toughness=toughness, at=(0.0, 0.0, 0.52))
    simulation = Simulation([body, blade], friction=0.1, device="cpu", threads=1)
    simulation[1].drive([0.0, 0.0, -0.5])
    for _ in range(steps):
        simulation.step()
        each(simulation)
    return simulation


@pytest.mark.feature("F-L-54")
def test_a_blade_pushes_below_the_toughness_and_cuts_above() -> None:
    loads, areas = [], []

    def look(simulation: Simulation) -> None:
        loads.append(edge_of(simulation)[2])
        areas.append(sum(event.area for event in simulation.events if event.step == simulation.steps - 1))
        assert not overlaps(simulation)

    strong = pressed(1e5, 25, each=look)
    assert sum(areas) == 0.0
    assert len(strong[0].positions) == len(strong.bodies[0].shape.vertices) == 112
    assert strong[0].positions[:, 2].max() < 0.5 + 1e-9
    pushed = max(loads)
    loads.clear()
    cut = pressed(60.0, 25, each=look)
    assert pushed > 3.0 * 60.0
    assert sum(areas) > 0.1
    assert sum(len(body.positions) for body in cut if body.number != 1) > 112
    # 60 N/m on the metre of edge that is in the block, within the length that a point of the edge stands for
    assert 0.8 * 60.0 < max(loads) <= 1.2 * 60.0
    first = next(k for k, area in enumerate(areas) if area > 0.0)
    assert max(loads[: first + 2]) <= 1.2 * 60.0


@pytest.mark.feature("F-L-53")
def test_the_hand_feels_contacts_and_the_edge() -> None:
    simulation = pressed(60.0, 20)
    contacts, forces = simulation.contacts, simulation.contact_forces
    assert ((contacts.body_a == 1) | (contacts.body_b == 1)).sum() > 5
    sign = (contacts.body_a == 1).astype(float) - (contacts.body_b == 1)
    expected = edge_of(simulation) + sign @ forces if len(contacts) else edge_of(simulation)
    assert simulation[1].force == pytest.approx(expected)
    assert simulation[1].force[2] > 30.0


def test_a_blade_that_fails_in_a_step_holds_on_to_what_it_held() -> None:
    simulation = pressed(60.0, 12)
    before, held = state_of(simulation), cuts_of(simulation).blades[0].state()[0]

    def fail(_pipeline) -> None:
        raise TangereError("on purpose")

    solve, simulation.phases["truncate"] = simulation.phases["truncate"], fail
    with pytest.raises(TangereError, match="on purpose"):
        simulation.step()
    assert same(state_of(simulation), before)
    after = cuts_of(simulation).blades[0].state()[0]
    assert after.keys() == held.keys()
    assert all(after[key] is held[key] for key in held)
    simulation.phases["truncate"] = solve
    simulation.step()


def test_a_blade_without_anything_to_cut_is_an_obstacle() -> None:
    blade = Blade.wedge(length=1.0, height=0.5, thickness=0.05, toughness=10.0, at=(0.0, 0.0, 1.0))
    simulation = Simulation([block((4, 2, 2), cuttable=False), blade], device="cpu", threads=1)
    assert "cut" not in simulation.phases
    assert len(simulation.bodies[1].surface.faces) == len(blade.mesh.faces)


def test_wrong_blades_are_told() -> None:
    mesh = tg.generate.box((1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="toughness"):
        Blade(mesh, [0, 1], toughness=0.0)
    with pytest.raises(InputError, match="no length"):
        Blade(mesh, [0, 0], toughness=1.0)
    with pytest.raises(InputError, match="at least 2"):
        Blade(mesh, [0], toughness=1.0)
    with pytest.raises(InputError, match="vertices, not all"):
        Blade(mesh, [0, 99], toughness=1.0)
    with pytest.raises(InputError, match="lead"):
        Blade(mesh, [0, 1], toughness=1.0, lead=-1.0)
    with pytest.raises(InputError, match="thickness"):
        Blade.wedge(length=1.0, height=1.0, thickness=0.0, toughness=1.0)
    for pieces in (0, -3, 1.5, "many"):
        with pytest.raises(InputError, match="pieces must be a whole number of at least 1"):
            Blade.wedge(length=1.0, height=1.0, thickness=0.1, toughness=1.0, pieces=pieces)  # type: ignore[arg-type]

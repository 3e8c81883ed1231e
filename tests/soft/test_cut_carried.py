"""A coarse solid that carries finer material, which is cut: what is kept, what comes apart, and what is told."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tangere as tg
from oracles.helpers.cut_strokes import random_stroke
from oracles.helpers.cut_twins import cut_in_vain
from oracles.soft_bodies import overlaps
from tangere.runtime import InputError
from tangere.shape.tets import TetMesh, solid_block, solid_torus
from tangere.soft import Blade, Body, Simulation
from tangere.soft.cutting import Cuts

HERE = {"device": "cpu", "threads": 1}


def block(fine=(12, 6, 6), coarse=(6, 3, 3), *, held: bool = False, **options) -> Body:
    shape, material = (solid_block(cells, size=(2.0, 1.0, 1.0), name="block") for cells in (coarse, fine))
    fixed = shape.vertices[:, 0] < -0.999 if held else False
    return Body(shape, material=material, cuttable=True, fixed=fixed, **{"density": 10.0, **options})


def ring(**options) -> Body:
    shape, material = (solid_torus(cells, radius=0.7, tube=0.3) for cells in ((12, 2), (30, 4)))
    return Body(shape, material=material, cuttable=True, **{"density": 10.0, **options})


def inside(body: Body) -> TetMesh:
    assert body.material is not None
    return body.material


def lines(steps: int = 8, x: float = 0.03) -> list[np.ndarray]:
    z = np.linspace(-0.9, 0.9, 5)
    return [np.stack([x + 0.1 * y + 0.1 * z, y + 0 * z, z], axis=1) for y in np.linspace(-0.7, 0.7, steps)]


def bent(simulation: Simulation) -> None:
    """Put it where it is bent, and moves along a line as fast as that says."""
    x = simulation[0].positions
    y = x + 0.05 * np.stack([np.sin(2 * x[:, 1]), np.cos(x[:, 0]), np.sin(2 * x[:, 0])], axis=1)
    simulation[0].set_state(positions=y, velocities=x @ [[0.1, 0, 0], [0, 0.2, 0], [0.1, 0, 0]] + [1.0, 0.0, 0.0])


def euler(body: Body) -> int:
    """V - E + F of its surface, which is closed and oriented: each side of a triangle has one turned the other way."""
    faces = body.surface.faces.astype(np.int64)
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    keys, back = sides @ [2**31, 1], sides[:, ::-1] @ [2**31, 1]
    assert len(np.unique(keys)) == len(keys)
    assert np.array_equal(np.sort(keys), np.sort(back))
    return len(np.unique(faces)) - len(faces) // 2


def check(simulation: Simulation, volume: float) -> None:
    """What is carried, and by how much of what."""
    assert sum(inside(body).volumes.sum() for body in simulation.bodies) == pytest.approx(volume, rel=1e-12)
    for body in simulation.bodies:
        assert (body.fractions * body.shape.volumes).sum() == pytest.approx(inside(body).volumes.sum(), rel=1e-12)
        assert body.fractions.min() > 0.0
        assert body.vertex_mass.sum() == pytest.approx(body.density * inside(body).volumes.sum(), rel=1e-12)
        carriers, weights = body.carriers
        assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-12
        places = np.einsum("ij,ijk->ik", weights, body.shape.vertices[carriers])
        assert np.abs(places - body.surface.vertices).max() < 1e-12
        euler(body)


@pytest.mark.parametrize(("snap", "kept"), [(0.0, 1e-11), (0.2, 1e-4)])
def test_mass_momentum_energy_and_places_are_kept_by_cuts(snap, kept) -> None:
    """To rounding where no vertex is moved: one that is takes material from one coarse tetrahedron to another."""
    simulation = Simulation([block(youngs_modulus=1e4, snap=snap)], gravity=(0, 0, 0), **HERE)
    bent(simulation)
    for start, end in itertools.pairwise(lines()):
        before = simulation.momentum, simulation.energy.elastic, simulation.energy.kinetic
        known = simulation.meshes()[0].vertices
        simulation.cut(0, start, end)
        after = simulation.momentum, simulation.energy.elastic, simulation.energy.kinetic
        for one, other in zip(before, after, strict=True):
            assert np.abs(np.subtract(other, one)).max() < kept * np.abs(one).max()
        check(simulation, 2.0)
        # what is far from the cut stays where it is
        far = known[np.abs(known[:, 0] - 0.03) > 0.45]
        now = np.concatenate([mesh.vertices for mesh in simulation.meshes()])
        distance = np.abs(far[:, None] - now[None]).max(axis=2).min(axis=1)
        assert distance.max() < 1e-12
    simulation.end_stroke(0)
    assert len(simulation) == 2


def test_halves_come_apart_where_the_blade_went() -> None:
    simulation = Simulation([block(held=True)], distance=0.05, **HERE)
    for start, end in itertools.pairwise(lines()):
        simulation.cut(0, start, end)
        simulation.step()
        assert not overlaps(simulation)
    simulation.end_stroke(0)
    assert len(simulation) == 2
    assert [euler(body) for body in simulation.bodies] == [2, 2]
    # the plane parts it where it was at rest, up to what is snapped
    for body in simulation.bodies:
        middle = inside(body).vertices[inside(body).tets].mean(axis=1)
        side = middle @ [1.0, -0.1, -0.1] - 0.03
        assert (np.sign(side[np.abs(side) > 0.05]) == np.sign(side[np.abs(side).argmax()])).all()
    start = simulation[1].positions[:, 2].mean()
    simulation.run(steps=25)
    assert not overlaps(simulation)
    assert simulation[1].positions[:, 2].mean() < start - 0.5
    assert simulation[0].positions[:, 2].mean() > -0.4


def test_a_ring_is_not_parted_by_one_cut_but_by_two() -> None:
    simulation = Simulation([ring()], gravity=(0, 0, 0), **HERE)
    volume = inside(simulation.bodies[0]).volumes.sum()
    assert euler(simulation.bodies[0]) == 0
    for number, x in enumerate((0.7, -0.7)):
        z = np.linspace(-0.5, 0.5, 4)
        way = [np.stack([x + 0.5 * np.sign(x) * s + 0 * z, 0.031 + 0 * z, z], axis=1) for s in np.linspace(1, -1, 9)]
        for start, end in itertools.pairwise(way):
            simulation.cut(0, start, end)
            check(simulation, volume)
        simulation.end_stroke(0)
        simulation.step()
        assert not overlaps(simulation)
        assert len(simulation) == 1 + number
        assert [euler(body) for body in simulation.bodies] == [2] * (1 + number)


@pytest.mark.parametrize("case", range(4))
def test_random_cuts_leave_what_hangs_together(case) -> None:
    """Beside the same material that is its own shape: the same parts, and surfaces."""
    rng = np.random.default_rng(case)
    body = ring() if case % 2 else block()
    material = inside(body)
    simulation = Simulation([body], gravity=(0, 0, 0), **HERE)
    twin = Simulation(
        [Body(material, cuttable=True, density=10.0)], gravity=(0, 0, 0), distance=simulation.distance, **HERE
    )
    volume = material.volumes.sum()
    engine = simulation._pipeline.cuts
    assert isinstance(engine, Cuts)
    for _ in range(2):
        stroke = random_stroke(rng, engine.bodies[0].complex.edge)
        for start, end in itertools.pairwise(stroke.lines):
            if simulation.cut(0, start, end):
                check(simulation, volume)
            twin.cut(0, start, end)
        for one in (simulation, twin):
            one.end_stroke(0)
        check(simulation, volume)
        assert len(simulation) == len(twin)
        for one, other in zip(simulation.bodies, twin.bodies, strict=True):
            assert np.abs(inside(one).vertices - other.shape.vertices).max() < 1e-9
            assert np.array_equal(inside(one).tets, other.shape.tets)
            assert euler(one) == euler(other)
    simulation.run(steps=2)
    assert not overlaps(simulation)


def test_cuts_of_carried_material_that_are_undone_were_never_made() -> None:
    simulation, twin = (Simulation([block(held=True)], **HERE) for _ in range(2))
    way = lines()
    for one in (simulation, twin):
        one.cut(0, way[0], way[2])
        one.step()
    cut_in_vain(simulation, way[2], way[4])
    for start, end in itertools.pairwise(way[2:]):
        for one in (simulation, twin):
            one.cut(0, start, end)
            one.step()
    assert simulation.positions.tobytes() == twin.positions.tobytes()


def test_what_cannot_carry_material_is_told() -> None:
    shape, fine = solid_block((2, 1, 1), size=(2.0, 1.0, 1.0)), solid_block((4, 2, 2), size=(2.0, 1.0, 1.0))
    half = TetMesh(0.45 * fine.vertices - [0.5, 0.0, 0.0], fine.tets)
    for wrong, match in (
        ({"material": fine.surface}, "material"),
        ({"material": fine, "surface": fine.surface}, "leave out the other one"),
        ({"material": half}, "has no material in it"),
        ({"surface": fine.surface}, "material=TetMesh.fill"),
    ):
        with pytest.raises(InputError, match=match):
            Body(shape, cuttable=True, **wrong)
    with pytest.raises(InputError, match="not a sheet"):
        Body(tg.generate.sheet(8), material=fine)
    blade = Blade.wedge(length=1.4, height=1.0, thickness=0.04, toughness=20.0, at=(0.03, 0.0, 1.2))
    with pytest.raises(InputError, match="the edge of a Blade holds on to dofs"):
        Simulation([Body(shape, material=fine, cuttable=True), blade], **HERE)

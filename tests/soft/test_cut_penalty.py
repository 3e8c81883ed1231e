"""Bodies that only push as published, or not at all, are cut in place too."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import tangere as tg
from oracles.helpers.cut_layout import check_contact_features, check_same_as_laid_out_anew
from oracles.helpers.cut_twins import CountedUpdates, cut_in_vain, in_turn
from tangere.query.contacts import Kind
from tangere.query.proximity import proximity
from tangere.shape.mesh import Mesh
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation


def block() -> Body:
    solid = solid_block((8, 4, 4), size=(2.0, 1.0, 1.0), name="block")
    fixed = np.abs(solid.vertices[:, 0]) > 0.999
    return Body(solid, fixed=fixed, cuttable=True, density=1.0, youngs_modulus=1e4)


def cloth() -> Body:
    mesh = tg.generate.sheet(200, size=(2.0, 1.0), name="cloth")
    return Body(mesh, fixed=np.abs(mesh.vertices[:, 0]) > 0.999, cuttable=True, thickness=0.02)


def floor() -> Body:
    mesh = tg.generate.sheet(32, size=(4.0, 4.0), name="floor")
    return Body(mesh.replace(vertices=mesh.vertices - [0.0, 0.0, 0.55]), fixed=True)


def line(y: float, x: float = 0.03) -> np.ndarray:
    z = np.linspace(-0.9, 0.9, 6)
    return np.stack([x + 0.1 * y + 0.1 * z, y + 0 * z, z], axis=1)


def near_now(simulation: Simulation) -> Counter:
    """Pairs of features nearer than the contact distance, by where they are: of all surfaces as one mesh."""
    whole = Mesh.join(simulation.meshes())
    found = proximity(whole, distance=simulation.distance, device="cpu", threads=1)
    return places_of(found)


def places_of(found) -> Counter:
    ends = (np.stack([found.point_a, found.point_b], axis=1).round(9) + 0.0).tolist()
    kinds = found.kind.tolist()
    for k, kind in enumerate(kinds):
        if kind == int(Kind.EDGE_EDGE):  # either may come first
            ends[k].sort()
    return Counter((kind, *one, *other) for kind, (one, other) in zip(kinds, ends, strict=True))


@pytest.mark.feature("F-L-50", "F-L-73")
@pytest.mark.parametrize("response", ["penalty", "none"])
@pytest.mark.parametrize("shape", [block, cloth])
def test_steps_after_cuts_in_place_are_those_after_a_layout_anew(shape, response, road, monkeypatch) -> None:
    counted = CountedUpdates(monkeypatch)
    options = {"response": response, "distance": 0.1, "device": "cpu", "threads": 1}
    simulation, twin = (Simulation([shape(), floor()], **options) for _ in range(2))
    for one in (simulation, twin):
        one.run(steps=3)
    way = [line(y) for y in np.linspace(-0.6, 0.6, 9)]
    for start, end in itertools.pairwise(way[:7]):
        in_turn(simulation, twin, monkeypatch, start, end)
        check_same_as_laid_out_anew(simulation)
        near = near_now(simulation) if response == "penalty" else Counter()
        for one in (simulation, twin):
            one.step()
        assert np.abs(simulation.positions - twin.positions).max() < 1e-12
        assert np.abs(simulation.velocities - twin.velocities).max() < 1e-10
        assert len(simulation.contacts) == len(twin.contacts)
        assert places_of(simulation.contacts) == near
        check_contact_features(simulation)
    assert counted.found[True] > 3
    assert response == "none" or near.total() > 50
    for start, end in itertools.pairwise(way[6:]):
        simulation.cut(0, start, end)
        simulation.step()
    simulation.end_stroke(0)
    assert len(simulation) == 3
    check_same_as_laid_out_anew(simulation)
    near = near_now(simulation) if response == "penalty" else Counter()
    simulation.step()
    assert places_of(simulation.contacts) == near


def test_cuts_that_are_undone_were_never_made(road, monkeypatch) -> None:
    options = {"response": "penalty", "distance": 0.1, "device": "cpu", "threads": 1}
    simulation, twin = (Simulation([block(), floor()], **options) for _ in range(2))
    counted = CountedUpdates(monkeypatch)
    way = [line(y) for y in np.linspace(-0.6, 0.3, 10)]
    for one in (simulation, twin):
        one.cut(0, way[0], way[2])
        one.step()
    cut_in_vain(simulation, way[2], way[4])
    for start, end in itertools.pairwise(way[2:]):
        for one in (simulation, twin):
            one.cut(0, start, end)
            one.step()
    assert simulation.positions.tobytes() == twin.positions.tobytes()
    assert not counted.found[False]

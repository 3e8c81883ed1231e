"""Where points of a blade are in the rest shape of a solid: near it, far from it, in the hole of a ring."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.shape.tets import TetMesh, solid_block, solid_torus
from tangere.soft import Body, Simulation
from tangere.soft.cutting import Cuts, cuts


def placed(solid: TetMesh, turn: np.ndarray, stretch: np.ndarray, move: np.ndarray) -> tuple[Simulation, np.ndarray]:
    """A solid that is stretched, turned and moved as a whole, and where its vertices are; nothing else looks for it."""
    simulation = Simulation([Body(solid, cuttable=True)], gravity=(0, 0, 0), device="cpu", threads=1)
    places = solid.vertices @ (turn @ stretch).T + move
    simulation[0].set_state(positions=places)
    return simulation, places


def random_turn(rng: np.random.Generator) -> np.ndarray:
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return turn * np.sign(np.linalg.det(turn))


@pytest.mark.feature("F-L-50")
@pytest.mark.parametrize("shape", ["ring", "block"])
@pytest.mark.parametrize("after_a_step", [False, True])
def test_points_go_with_the_tetrahedron_that_has_them_or_with_the_nearest_vertex(
    shape, after_a_step, rng, monkeypatch
) -> None:
    solid = solid_torus((24, 3), radius=0.5, tube=0.15) if shape == "ring" else solid_block((6, 3, 3))
    monkeypatch.setattr(cuts, "to_rest", lambda *_: pytest.fail("all tetrahedra were gone through"))
    turn, move = random_turn(rng), rng.normal(size=3)
    stretch = np.eye(3) if after_a_step else np.diag([1.1, 0.95, 1.05])  # a step would move what is stretched
    simulation, places = placed(solid, turn, stretch, move)
    if after_a_step:
        simulation.step()
        places = simulation[0].positions
    engine = simulation._pipeline.cuts
    assert isinstance(engine, Cuts)
    engine._prepare()
    size = np.ptp(solid.vertices, axis=0)
    at_rest = np.concatenate([scale * rng.uniform(-0.5, 0.5, (60, 3)) * size for scale in (0.8, 1.5, 8.0)])
    at_rest = np.concatenate(
        [at_rest, np.linspace([0.03, 0.02, -3.0], [0.03, 0.02, 3.0], 21)]
    )  # through the hole of the ring
    points = at_rest @ (turn @ stretch).T + move
    found, near = engine._at_rest(engine.bodies[0], 0, points, None)
    corners = places[solid.tets]
    weights = np.linalg.solve(
        np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)[None], (points[:, None] - corners[:, 0])[..., None]
    )[..., 0]
    inside = np.minimum(weights.min(axis=2), 1.0 - weights.sum(axis=2)).max(axis=1)
    surface = solid.surface_vertices
    nearest = surface[np.linalg.norm(points[:, None] - places[surface], axis=2).argmin(axis=1)]
    beside = solid.vertices[nearest] + (points - places[nearest]) @ turn
    wanted = np.where(inside[:, None] > -1e-9, at_rest, beside)
    assert 30 < (inside > 0.0).sum() < len(points) - 30
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert near is not None
    assert (near >= 0).all()
    again, _ = engine._at_rest(engine.bodies[0], 0, points, near)  # from where they were
    np.testing.assert_allclose(again[inside > 1e-9], at_rest[inside > 1e-9], atol=1e-9)


@pytest.mark.feature("F-L-50")
def test_a_blade_that_passes_through_a_hole_changes_nothing(road, rng, monkeypatch) -> None:
    """Nor does it look at all of it, wherever it is; the body is cut already, turned and elsewhere."""
    monkeypatch.setattr(cuts, "to_rest", lambda *_: pytest.fail("all tetrahedra were gone through"))
    solid = solid_torus((24, 3), radius=0.5, tube=0.15)
    bodies = [Body(solid, cuttable=True)]
    simulation = Simulation(bodies, gravity=(0, 0, 0), device="cpu", threads=1)
    engine = simulation._pipeline.cuts
    assert isinstance(engine, Cuts)
    across = np.linspace([0.2, 0.013, 0.0], [0.8, 0.017, 0.0], 5)
    for height in (0.2, 0.1):
        assert simulation.cut(0, across + [0.0, 0.0, height], across + [0.0, 0.0, height - 0.1]) or height > 0.15
    simulation.end_stroke(0)
    simulation.step()
    turn, move = random_turn(rng), rng.normal(size=3)
    simulation[0].set_state(positions=simulation[0].positions @ turn.T + move)
    blade, before = np.linspace([0.02, -0.25, 0.0], [0.03, 0.25, 0.0], 5), engine.bodies[0].complex.counts
    for step in range(6):  # down through the hole, and on
        start, end = ((blade + [0.0, 0.0, 2.0 - 0.7 * (step + k)]) @ turn.T + move for k in range(2))
        assert simulation.cut(0, start, end) == []
    assert engine.bodies[0].complex.counts == before

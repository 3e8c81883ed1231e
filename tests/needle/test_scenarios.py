"""Scenes that are ready to run: valid solids, vessels inside, traces that replay with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.needle import KinematicSimulation, Simulation
from tangere.needle.scenarios import SCENES, Trace, organ, own, surface_point, vessel_tree
from tangere.needle.scenarios.organs import bent
from tangere.runtime import InputError
from tangere.shape.tets import solid_block


@pytest.mark.parametrize("size", [(0.09, 0.065, 0.045), (0.05, 0.05, 0.05)])
def test_an_organ_is_filled_with_tetrahedra_and_its_vessels_are_inside(size):
    shaped = bent(size)
    solid = organ(shaped, (8, 8, 6))
    # The volume of an ellipsoid, thinner on one side and thicker on the other: mean of (1 - t x)^2 over the ball.
    expected = 4.0 / 3.0 * np.pi * np.prod(size) * (1.0 + 0.3**2 / 5.0)
    assert solid.volumes.sum() == pytest.approx(expected, rel=0.08)
    edges = np.linalg.norm(np.diff(solid.vertices[solid.edges], axis=1)[:, 0], axis=1)
    assert solid.volumes.min() > 1e-3 * edges.mean() ** 3
    tree = vessel_tree(shaped, (-0.3, 0.1, -0.3), (0.6, 0.1, 0.3), radius=2e-3, generations=4, seed=1)
    assert len(tree) > 7
    for vessel in tree:
        _, weights = solid.weights_at(vessel.points)
        assert weights.min() > -0.05
    assert tree[0].radius == 2e-3
    assert tree[1].radius == pytest.approx(2e-3 / 2 ** (1 / 3))


def test_the_highest_point_above_a_place_is_on_the_surface():
    block = solid_block((4, 4, 4), size=(0.1, 0.1, 0.06))
    np.testing.assert_allclose(surface_point(block, 0.011, -0.02), [0.011, -0.02, 0.03], atol=1e-12)
    with pytest.raises(InputError, match="is not below or above solid"):
        surface_point(block, 1.0, 0.0)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("mode", [None, "hard"])
def test_scenes_run(scene, mode):
    insertion = SCENES[scene](mode=mode, device="cpu")
    kinematic = mode is not None or scene == "self"
    assert isinstance(insertion.simulation, KinematicSimulation if kinematic else Simulation)
    short = Trace([0.0, 0.35], insertion.trace.speed[[0, 0]])
    short.run(insertion.simulation, dt=insertion.dt)
    assert insertion.simulation.measures["depth"] > 1e-4
    assert insertion.simulation.measures["travel"] == pytest.approx(0.35 * insertion.trace.speed[0], rel=1e-3)


def test_a_needle_that_goes_round_meets_itself_on_the_way():
    insertion, nearest = SCENES["self"](), []
    simulation = insertion.simulation

    def look(now: float) -> None:
        own = simulation.contacts.gap[simulation.contacts.body_b == 0]
        nearest.append(own.min(initial=np.inf))

    insertion.trace.run(simulation, dt=insertion.dt, after_step=look)
    assert np.isinf(nearest[: len(nearest) // 2]).all()
    assert min(nearest) < 1e-3


def test_a_replayed_trace_gives_the_same_bits(tmp_path):
    solid = solid_block((4, 4, 4), size=(0.1, 0.1, 0.08), mirrored=True)
    rng = np.random.default_rng(5)
    times = np.concatenate([[0.0], np.cumsum(rng.uniform(0.01, 0.07, 12))])
    trace = Trace(times, rng.uniform(-0.01, 0.06, 13), rng.uniform(0.0, 9.0, 13))
    trace.save(tmp_path / "hand.csv")
    again = Trace.load(tmp_path / "hand.csv")
    assert all(np.array_equal(getattr(trace, name), getattr(again, name)) for name in ("times", "speed", "spin"))
    ends = []
    for driven, threads in ((trace, 1), (again, 2)):
        simulation = own(solid, device="cpu", threads=threads).simulation
        driven.run(simulation)
        ends.append((simulation.force, simulation.nodes, simulation.soft.positions, simulation.particles.anchor))
    for one, other in zip(*ends, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,v\n0,1\n", "the first line must be time,speed,spin"),
        ("time,speed\n0,1\n1\n", "line 3 has 1 values, not 2"),
        ("time,speed\n0,fast\n", "line 2: 'fast' is no number"),
        ("time,speed\n0,1\n", "times must be two or more that rise from 0"),
        ("time,speed,spin\n0,1,0\n1,nan,0\n", "speed must be 2 finite numbers"),
        ("", "the first line must be"),
    ],
)
def test_bad_traces_are_refused(text, message, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        Trace.load(tmp_path / "bad.csv")


def test_a_trace_that_is_not_there_or_does_not_fit_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Trace.load(tmp_path / "none.csv")
    insertion = own(solid_block((2, 2, 2), size=(0.1, 0.1, 0.08)), device="cpu")
    with pytest.raises(InputError, match=r"this simulation has steps of 0.01 s, not of 0.5 s"):
        insertion.trace.run(insertion.simulation, dt=0.5)

"""A needle in tissue that is cut, that touches something, and that the needle comes out of again."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from needle.test_simulation import SPEED, TISSUE, push, tissue_block
from tangere.needle import Bevel, Membrane, Needle, Recorder, Recording, Simulation, Tissue, Vessel
from tangere.shape.mesh import Mesh
from tangere.soft import Body
from tangere.soft import Simulation as SoftSimulation

ENTRY = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1]}
RIGID = Needle(length=0.12, rigid=True)
FLEXIBLE = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5))


def cuttable(shape=None, fixed=None, youngs_modulus=1e4, damping=20.0, **options) -> Body:
    given = tissue_block()
    shape, fixed = (given.shape, given.fixed) if shape is None else (shape, fixed)
    material = {"youngs_modulus": youngs_modulus, "poisson": 0.45, "damping": damping}
    return Body(shape, fixed=fixed, cuttable=True, **material, **options)


def inserted(
    needle=RIGID, tissue=TISSUE, *others, body=None, response="none", gravity=0.0, dt=0.005, sweeps=20, **options
):
    soft = SoftSimulation(
        [body or cuttable(), *others],
        gravity=(0.0, 0.0, -gravity),
        response=response,
        friction=0.0,
        dt=dt,
        sweeps=sweeps,
        device="cpu",
        threads=1,
    )
    return Simulation(soft, needle, tissue, **ENTRY, **options)


def cut(simulation: Simulation, blade, way: float, *, between=lambda: None) -> None:
    """A stroke along y, in ten steps."""
    line = np.array(blade, float)
    for k in range(10):
        step = np.array([0.0, 0.1 * way, 0.0])
        simulation.soft.cut(0, line + k * step, line + (k + 1) * step)
        between()
    simulation.soft.end_stroke(0)


def upright(x: float, depth: float) -> list[list[float]]:
    return [[x, -0.06, 0.01], [x, -0.06, -depth]]


def level(z: float) -> list[list[float]]:
    return [[-0.06, -0.06, z], [0.06, -0.06, z]]


def check_particles(simulation: Simulation) -> None:
    """Each is in its tetrahedron, which is one of what there is now."""
    particles, soft = simulation.particles, simulation.soft
    pieces = [soft.bodies[number].shape for number in soft.pieces_of(0)]
    corners = np.concatenate([shape.vertices[shape.tets] for shape in pieces])[particles.tet]
    now = np.concatenate([soft[n].positions[soft.bodies[n].shape.tets] for n in soft.pieces_of(0)])[particles.tet]
    assert particles.weights.min() >= 0.0
    np.testing.assert_allclose(particles.weights.sum(axis=1), 1.0, rtol=1e-12)
    for points, found in ((corners, particles.rest), (now, particles.position)):
        np.testing.assert_allclose((particles.weights[..., None] * points).sum(axis=1), found, atol=1e-15)


@pytest.mark.parametrize("needle", [RIGID, FLEXIBLE], ids=["rigid", "flexible"])
@pytest.mark.parametrize("response", ["none", "hard"])
def test_particles_follow_tetrahedra_that_are_bisected_and_opened(needle, response):
    simulation = inserted(needle, response=response, body=cuttable(snap=0.0))
    push(simulation, 0.03)
    before, depth = simulation.particles, simulation.depth
    tets = len(simulation.soft.bodies[0].shape.tets)
    cut(simulation, upright(0.006, 0.05), 0.12)  # it touches tetrahedra that hold particles
    after = simulation.particles
    assert len(simulation.soft.bodies[0].shape.tets) > tets
    assert (after.tet != before.tet).any()
    np.testing.assert_allclose(after.rest, before.rest, atol=1e-15)
    np.testing.assert_allclose(after.position, before.position, atol=1e-14)  # nothing is snapped: nothing moves
    assert simulation.depth == depth
    check_particles(simulation)
    # The force goes on along its line.
    log = push(simulation, 0.012)
    straight = 0.4 + 10.0 * log[-1, 2]
    assert log[-1, 1] == pytest.approx(straight, rel=0.01 if needle is RIGID else 0.04)
    check_particles(simulation)


def test_cut_tissue_may_be_cut_in_steps_of_the_needle_and_recorded(tmp_path):
    vessel = Vessel([[-0.03, 0.004, -0.02], [0.03, 0.004, -0.02]])
    simulation = inserted(response="hard", vessels=[vessel], distance=0.01)
    recorder = Recorder(simulation)
    recorder()
    push(simulation, 0.02)
    recorder()

    def between() -> None:
        simulation.step(SPEED)
        recorder()

    cut(simulation, upright(0.02, 0.04), 0.12, between=between)
    push(simulation, 0.01)
    recorder()
    # The vessel is carried by what there is now, and is as near as geometry says.
    rest = simulation.soft.bodies[0].shape
    corners, weights = rest.weights_at(vessel.points)
    expected = (weights[..., None] * simulation.soft[0].positions[corners]).sum(axis=1)
    np.testing.assert_allclose(simulation.anatomy_points, expected, atol=1e-15)
    assert len(simulation.contacts)
    recording = recorder.recording()
    recording.save(tmp_path / "run.npz")
    again = Recording.load(tmp_path / "run.npz")
    assert len({len(frame.tissue) for frame in again.frames}) > 1
    for one, other in zip(recording.frames, again.frames, strict=True):
        assert np.array_equal(one.faces, other.faces)
        np.testing.assert_allclose(one.tissue, other.tissue, atol=1e-7)
    shown = [thing.name for thing in again.scene().things if thing.name.startswith("tissue")]
    assert shown[0] == "tissue"
    assert len(shown) > 3


@pytest.mark.parametrize("needle", [RIGID, FLEXIBLE], ids=["rigid", "flexible"])
def test_the_tip_goes_on_beyond_a_cut_and_back(needle):
    simulation = inserted(needle, response="hard")
    push(simulation, 0.02)
    assert simulation.depth < 0.02
    cut(simulation, level(-0.0301), 0.12)
    pieces = simulation.soft.pieces_of(0)
    assert len(pieces) == len(simulation.soft) == 2
    log = push(simulation, 0.018)
    assert 0.034 < simulation.depth < 0.04
    assert simulation.particles.rest[-1, 2] < -0.0301
    near = 0.005 if needle is RIGID else 0.04
    np.testing.assert_allclose(log[40:, 1], 0.4 + 10.0 * log[40:, 2], rtol=near)
    check_particles(simulation)
    back = push(simulation, 0.03, speed=-SPEED)
    late = back[:, 2] < 0.025
    np.testing.assert_allclose(back[late, 1], -10.0 * back[late, 2], atol=0.012)


@pytest.mark.parametrize("friction", [10.0, 100.0])
def test_a_piece_that_is_cut_off_slides_down_the_needle_or_is_held_by_it(friction):
    given = tissue_block((5, 5, 5), size=(0.05, 0.05, 0.05))
    x, _, z = given.shape.vertices.T
    body = cuttable(given.shape, (z > -0.021) & (np.abs(x) > 0.0249), youngs_modulus=2e5, damping=0.0)
    options = {"response": "hard", "gravity": 9.81, "dt": 0.002, "sweeps": 60}
    simulation = inserted(tissue=Tissue(friction=friction), body=body, **options)
    push(simulation, 0.042)
    cut(simulation, level(-0.026), 0.12)
    soft = simulation.soft
    (low,) = (number for number in soft.pieces_of(0) if not soft.bodies[number].fixed.any())
    mass = soft.bodies[low].vertex_mass
    velocity = [float(mass @ soft[low].velocities[:, 2] / mass.sum())]
    start, wrong = soft[low].positions[:, 2].mean(), []
    for _ in range(25):
        inside = simulation.depth - 0.026
        simulation.step(0.0)
        velocity.append(float(mass @ soft[low].velocities[:, 2] / mass.sum()))
        particles = simulation.particles
        mine = np.isin(particles.tet, np.flatnonzero(simulation._solid.body == low))
        pulled = particles.force[mine, 2].sum()
        assert abs(pulled) <= friction * (inside + 3.1e-3)
        # Newton: gravity, and what the needle holds.
        wrong.append((velocity[-1] - velocity[-2]) / 0.002 + 9.81 + pulled / mass.sum())
    if friction > 50.0:  # more than it weighs
        assert np.abs(velocity[-5:]).max() < 2e-3
        assert abs(soft[low].positions[:, 2].mean() - start) < 1e-3  # it would have fallen 12 mm
        return
    assert velocity[-1] < -0.1
    assert pulled < 0.0
    assert np.median(np.abs(wrong)) < 0.02


def test_layers_stay_where_they_are_when_they_are_cut():
    body = cuttable()
    deep = body.shape.vertices[body.shape.tets].mean(axis=1)[:, 2] < -0.032
    tissue = Tissue(puncture=1.0, cutting=np.where(deep, 0.8, 0.4), friction=np.where(deep, 20.0, 10.0))
    simulation = inserted(tissue=tissue, body=body)
    push(simulation, 0.01)
    cut(simulation, upright(0.006, 0.06), 0.12)
    simulation.step(0.0)
    shape, solid = simulation.soft.bodies[0].shape, simulation._solid
    depth = shape.vertices[shape.tets].mean(axis=1)[:, 2]
    sure = np.abs(depth + 0.032) > 2e-3  # a vertex at the boundary may have been moved a little
    assert len(depth) > len(deep)
    assert np.array_equal(solid.cutting[sure], np.where(depth < -0.032, 0.8, 0.4)[sure])
    log = push(simulation, 0.045)
    assert log[-1, 1] == pytest.approx(0.8 + 10.0 * 0.032 + 20.0 * (log[-1, 2] - 0.032), rel=0.02)


def test_a_membrane_holds_the_tip_in_cut_tissue_too():
    corners = np.array([[-0.04, -0.04, -0.025], [0.04, -0.04, -0.025], [0.04, 0.04, -0.025], [-0.04, 0.04, -0.025]])
    simulation = inserted(membranes=[Membrane(Mesh(corners, [[0, 1, 2], [0, 2, 3]]), puncture=0.9)])
    push(simulation, 0.01)
    cut(simulation, upright(0.01, 0.05), 0.12)
    log = push(simulation, 0.03)
    near = np.abs(log[:, 2] - 0.025) < 1e-3
    assert log[near, 1].max() == pytest.approx(0.9 + 10.0 * 0.025, rel=0.02)


@pytest.mark.parametrize("needle", [RIGID, FLEXIBLE], ids=["rigid", "flexible"])
def test_a_needle_comes_out_at_the_other_side_and_goes_back(needle):
    given = tissue_block((6, 6, 3), size=(0.1, 0.1, 0.04))
    x, y, _ = given.shape.vertices.T
    edge = (np.abs(x) > 0.0499) | (np.abs(y) > 0.0499)
    body = Body(given.shape, youngs_modulus=1e4, poisson=0.45, damping=20.0, fixed=edge)
    simulation = Simulation(body, needle, TISSUE, dt=0.005, sweeps=20, device="cpu", **ENTRY)
    push(simulation, 0.055)
    # Nothing is cut any more: friction of what is inside is left.
    assert simulation.depth == pytest.approx(0.04, abs=3e-4)
    assert simulation.force[2] == pytest.approx(0.4, rel=0.02)
    assert simulation.tip_force == 0.0
    assert simulation.nodes[-1, 2] < -0.05
    out = push(simulation, 0.012, speed=-SPEED)
    assert out[-1, 1] == pytest.approx(-0.4, rel=0.02)
    while simulation.inside and simulation.travel > -0.01:
        simulation.step(-SPEED)
    assert not simulation.inside
    assert simulation.travel == pytest.approx(0.0, abs=2e-3)


def test_a_needle_goes_through_a_body_that_lies_on_something():
    given = tissue_block((5, 5, 4), size=(0.08, 0.08, 0.05))
    body = Body(given.shape, youngs_modulus=2e4, poisson=0.45, name="gel")
    table = tg.generate.sheet(2, size=(0.3, 0.3))
    floor = Body(table.replace(vertices=table.vertices - [0.0, 0.0, 0.0515]), fixed=True, name="table")
    simulation = inserted(RIGID, TISSUE, floor, body=body, response="hard", gravity=9.81)
    for _ in range(60):
        simulation.soft.step()
    weight = 9.81 * body.vertex_mass.sum()
    log = push(simulation, 0.03)
    assert simulation.inside
    assert log[-1, 1] == pytest.approx(0.4 + 10.0 * log[-1, 2], rel=0.02)
    for _ in range(60):
        simulation.step(0.0)
    # The table carries the gel and what the needle pushes.
    soft = simulation.soft
    carried = soft.contact_forces[soft.contacts.body_b == 1, 2].sum()
    assert carried == pytest.approx(weight + simulation.force[2], rel=0.01)
    assert simulation.force[2] > 0.3


def test_a_cut_that_fails_leaves_the_needle_as_it_was():
    simulation = inserted(FLEXIBLE)
    push(simulation, 0.03)
    before = simulation.particles
    with pytest.raises(tg.TangereError):
        simulation.soft.cut(0, np.full((2, 3), np.nan), np.zeros((2, 3)))
    done, fail = simulation.soft.phases["solve"], RuntimeError("stopped")

    def cut_and_fail(pipeline) -> None:
        simulation.soft.cut(0, upright(0.006, 0.05), np.add(upright(0.006, 0.05), [0.0, 0.12, 0.0]))
        simulation._follow_cuts()
        raise fail

    simulation.soft.phases["solve"] = cut_and_fail
    with pytest.raises(RuntimeError, match="stopped"):
        simulation.step(SPEED)
    simulation.soft.phases["solve"] = done
    after = simulation.particles
    for name in ("position", "rest", "tet", "weights", "anchor", "length"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    push(simulation, 0.005)

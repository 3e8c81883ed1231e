"""A needle in soft tissue: force against depth, layers, channel, withdrawal, bending; laws written down by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import warp as wp

from tangere.needle import Bevel, Membrane, Needle, Simulation, Tissue
from tangere.runtime import InputError, launch
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, RodArrays, RowArrays, rod_arrays
from tangere.soft import Simulation as SoftSimulation
from tangere.soft.contact.rows import LEAST_ROOM
from tangere.soft.solver.cuda.sweeps import CudaSweeps
from tangere.soft.solver.rod import relax_rod

SPEED, DT = 0.02, 0.005
TISSUE = Tissue(puncture=1.0, cutting=0.4, friction=10.0)


def tissue_block(cells=(6, 6, 5), size=(0.1, 0.1, 0.08), youngs_modulus=1e4) -> Body:
    """A block with its top at z = 0, held at its bottom and its sides."""
    block = solid_block(cells, size=size, mirrored=True)
    block = TetMesh(block.vertices - [0.0, 0.0, size[2] / 2], block.tets)
    x, y, z = block.vertices.T
    held = (z < -size[2] + 1e-9) | ((np.abs(x) > size[0] / 2 - 1e-9) | (np.abs(y) > size[1] / 2 - 1e-9)) & (z < -1e-9)
    return Body(block, youngs_modulus=youngs_modulus, poisson=0.45, damping=20.0, fixed=held)


def inserted(needle=None, tissue=TISSUE, *, dt=DT, sweeps=16, device="cpu", **options) -> Simulation:
    needle = needle or Needle(length=0.12, rigid=True)
    start = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1]}
    return Simulation(
        options.pop("body", None) or tissue_block(),
        needle,
        tissue,
        dt=dt,
        sweeps=sweeps,
        device=device,
        **start,
        **options,
    )


def push(simulation: Simulation, depth: float, speed: float = SPEED) -> np.ndarray:
    """(n, 3) depth of the base, force along the needle and depth of the tip, while it is pushed by so much."""
    log = []
    for k in range(round(abs(depth / speed) / simulation.soft.dt)):
        simulation.step(speed)
        log.append(((k + 1) * speed * simulation.soft.dt, simulation.force[2], simulation.depth))
    return np.array(log)


def test_force_rises_to_puncture_falls_to_cutting_and_grows_with_friction(device):
    simulation = inserted(device=device)
    log = push(simulation, 0.045)
    force, tip = log[:, 1], log[:, 2]
    punctured = int(np.argmax(tip > 0)) - 1
    assert force.max() == pytest.approx(1.0, rel=0.02)
    assert abs(np.argmax(force) - punctured) <= 1
    assert force[punctured + 12] == pytest.approx(0.4 + 10.0 * tip[punctured + 12], rel=0.05)
    # Friction is a line: 10 N for each metre inside, on top of what cutting takes.
    late = len(log) * 2 // 3
    slope, constant = np.polyfit(tip[late:], force[late:], 1)
    assert slope == pytest.approx(10.0, rel=0.02)
    assert constant == pytest.approx(0.4, rel=0.03)
    # Lengths add up to the path, and forces of particles to that of the hand.
    particles = simulation.particles
    assert particles.length.sum() == pytest.approx(simulation.depth)
    whole = particles.force.sum(axis=0) + [0.0, 0.0, simulation.tip_force]
    np.testing.assert_allclose(whole[2], simulation.force[2], rtol=1e-9)
    assert np.diff(particles.rest[:, 2]).max() < 0


@pytest.mark.feature("F-P-71")
def test_particles_are_constraints_with_their_tetrahedron_and_weights():
    simulation = inserted()
    push(simulation, 0.03)
    particles, body = simulation.particles, simulation.soft.bodies[0]
    assert len(particles) >= 6
    np.testing.assert_allclose(particles.weights.sum(axis=1), 1.0)
    assert particles.weights.min() > -1e-9
    corners = body.shape.vertices[body.shape.tets[particles.tet]]
    np.testing.assert_allclose((particles.weights[..., None] * corners).sum(axis=1), particles.rest, atol=1e-12)
    # Every lock length of path, and the rest for the last one; while the first is made, the skin slides back over it.
    assert particles.length[:-1].min() >= 3e-3
    assert particles.length[1:].max() <= 3e-3 + SPEED * DT
    assert particles.length[0] <= 3e-3 + 2.0 * SPEED * DT


def hold(steps: int) -> None:
    simulation = inserted()
    push(simulation, 0.03)
    for _ in range(40):
        simulation.step(0.0)
    force, anchors = simulation.force.copy(), simulation.particles.anchor
    for _ in range(steps):
        simulation.step(0.0)
        assert simulation.particles.sticking.all()
    assert np.array_equal(simulation.particles.anchor, anchors)
    np.testing.assert_allclose(simulation.force, force, atol=0.02 * np.linalg.norm(force))


def test_a_needle_that_is_held_sticks_and_keeps_its_force(effort):
    hold(effort(150))


@pytest.mark.slow
def test_a_needle_that_is_held_for_ten_thousand_steps_sticks():
    hold(10_000)


def test_drawing_it_out_turns_the_force_and_ends_at_none():
    simulation = inserted()
    inward = push(simulation, 0.03)
    friction = 10.0 * simulation.depth
    outward = push(simulation, 0.03, speed=-SPEED)
    # First everything that sticks relaxes, then all of it slips the other way.
    assert outward[:, 1].min() == pytest.approx(-friction, rel=0.1)
    slides = outward[len(outward) // 2 :]
    np.testing.assert_allclose(slides[:, 1], -10.0 * slides[:, 2], rtol=0.02, atol=4e-3)
    assert np.argmax(outward[:, 1] < 0) > 4
    assert (np.diff(outward[:, 2]) <= 1e-12).all()
    assert abs(outward[-1, 1]) < 0.1 * inward[:, 1].max()
    for _ in range(200):
        simulation.step(-SPEED)
        if not simulation.inside:
            break
    assert not simulation.inside
    assert len(simulation.particles) == 0
    simulation.step(-SPEED)
    np.testing.assert_allclose(simulation.force, 0.0, atol=1e-9)


def test_in_its_own_channel_nothing_is_cut():
    simulation = inserted()
    push(simulation, 0.035)
    deep = simulation.depth
    push(simulation, 0.015, speed=-SPEED)
    again = push(simulation, 0.012)
    assert again[-1, 2] < deep
    assert again[-1, 1] == pytest.approx(10.0 * again[-1, 2], rel=0.02)
    beyond = push(simulation, 0.008)
    assert beyond[-1, 2] > deep
    assert beyond[-1, 1] == pytest.approx(0.4 + 10.0 * beyond[-1, 2], rel=0.02)


def test_a_membrane_takes_its_own_force_on_top_of_friction_so_far():
    corners = np.array([[-0.04, -0.04, 0.0], [0.04, -0.04, 0.0], [0.04, 0.04, 0.0], [-0.04, 0.04, 0.0]])
    sheets = [
        Membrane(Mesh(corners - [0.0, 0.0, depth], [[0, 1, 2], [0, 2, 3]]), puncture=force)
        for depth, force in ((0.015, 0.9), (0.030, 1.3))
    ]
    simulation = inserted(membranes=sheets, body=tissue_block((10, 10, 8)), sweeps=20)
    log = push(simulation, 0.05)
    force, tip = log[:, 1], log[:, 2]
    for depth, threshold in ((0.015, 0.9), (0.030, 1.3)):
        near = np.abs(tip - depth) < 1e-3
        assert force[near].max() == pytest.approx(threshold + 10.0 * depth, rel=0.02)
    late = tip > 0.036
    np.testing.assert_allclose(force[late], 0.4 + 10.0 * tip[late], rtol=0.02)


def test_layers_resist_each_in_its_own_way():
    body = tissue_block()
    deep = body.shape.vertices[body.shape.tets].mean(axis=1)[:, 2] < -0.032
    tissue = Tissue(puncture=1.0, cutting=np.where(deep, 0.8, 0.4), friction=np.where(deep, 20.0, 10.0))
    simulation = inserted(tissue=tissue, body=body)
    log = push(simulation, 0.055)
    tip, force = log[:, 2], log[:, 1]
    above, below = (tip > 0.02) & (tip < 0.028), tip > 0.042
    assert np.polyfit(tip[above], force[above], 1)[0] == pytest.approx(10.0, rel=0.02)
    assert np.polyfit(tip[below], force[below], 1)[0] == pytest.approx(20.0, rel=0.02)


@pytest.mark.parametrize("grip", [1.0, 1e3])
def test_springs_of_any_stiffness_puncture_at_their_force_and_not_at_once(grip):
    simulation = inserted(tissue=Tissue(grip=grip), sweeps=20)
    log = push(simulation, 0.025)
    punctured = int(np.argmax(log[:, 2] > 0))
    assert np.isfinite(log).all()
    assert punctured > 10
    assert log[:, 1].max() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("grip", [1e4, 1e6])
def test_springs_that_are_too_stiff_are_told_and_stay_finite(grip):
    with pytest.warns(UserWarning, match="springs with a grip of .* E h may puncture at once; up to 1000 do not"):
        simulation = inserted(tissue=Tissue(grip=grip))
    log = push(simulation, 0.006)
    assert np.isfinite(log).all()
    assert np.isfinite(simulation.soft.positions).all()


def test_the_load_of_a_patch_makes_puncture_depth_depend_less_on_the_mesh():
    depths = {}
    for patch in (0.0, 0.025):
        for cells in ((6, 6, 5), (10, 10, 8)):
            simulation = inserted(tissue=Tissue(patch=patch), body=tissue_block(cells), sweeps=20)
            k = 0
            while not simulation.inside:
                simulation.step(0.04)
                k += 1
            depths[patch, cells[0]] = k
    spread = {patch: depths[patch, 10] / depths[patch, 6] for patch in (0.0, 0.025)}
    assert abs(spread[0.025] - 1.0) < 0.5 * abs(spread[0.0] - 1.0)


def test_the_rise_is_convex_where_the_capsule_is_slack_at_first():
    # Two springs one after the other: the tissue, and the capsule, which hardens with the way.
    rises = {}
    for hardening in (0.0, 5e4):
        simulation = inserted(tissue=Tissue(hardening=hardening))
        log = push(simulation, 0.0075, speed=0.01)
        rises[hardening] = log[: int(np.argmax(log[:, 2] > 0)) or len(log), :2]
        assert log[:, 1].max() == pytest.approx(1.0, rel=0.02)
    way, force = rises[0.0].T
    grip = simulation._grip
    tissue = np.mean(way[-20:-2] / force[-20:-2]) - 1.0 / grip
    np.testing.assert_allclose(np.diff(force[5:-2]) / np.diff(way[5:-2]), 1.0 / (tissue + 1.0 / grip), rtol=0.1)
    way, force = rises[5e4].T
    np.testing.assert_allclose(force[20:-2], (way / (tissue + 1.0 / (5e4 * way)))[20:-2], rtol=0.03)
    assert (np.diff(force[:-2:12], n=2) > 0.0).all()


# -- needles that bend -------------------------------------------------------------------------------------------------


@wp.kernel
def _relax(first: int, rod: RodArrays, rows: RowArrays, x: wp.array[wp.vec4d]):
    relax_rod(rod, rows, x)


@pytest.mark.parametrize(("nodes", "tolerance"), [(41, 0.08), (161, 0.02)])
def test_a_rod_bends_as_a_cantilever(nodes, tolerance):
    length, bending, force = 0.12, 8.8e-4, 0.005
    line = np.linspace(0.0, length, nodes)[:, None] * [0.0, 0.0, -1.0]
    rod = rod_arrays(line, bending=bending)
    rod.base.numpy()[:] = line[:2]
    rod.push.numpy()[0] = [force, 0.0, 0.0]
    body = SoftSimulation([tissue_block((1, 1, 1))], response="none", device="cpu")
    nowhere = wp.zeros(1, dtype=wp.vec4d, device="cpu")
    assert body.rows.capacity == LEAST_ROOM
    for _ in range(40):
        launch(_relax, 1, [rod, body.rows.arrays, nowhere], device=wp.get_device("cpu"))
    deflection = rod.x.numpy()[-1, 0]
    assert deflection == pytest.approx(force * length**3 / (3.0 * bending), rel=tolerance)
    pieces = np.linalg.norm(np.diff(rod.x.numpy(), axis=0), axis=1)
    np.testing.assert_allclose(pieces, length / (nodes - 1), rtol=1e-9)


@pytest.mark.parametrize("nodes", [5, 6, 9, 41, 81])
def test_one_solve_of_the_rod_is_that_of_a_dense_matrix(nodes, rng):
    spacing, bending, guides = 3e-3, 8.8e-4, 4
    way = np.array([0.0, 0.0, -1.0]) + 0.2 * rng.normal(size=(nodes - 1, 3))
    line = np.concatenate([np.zeros((1, 3)), np.cumsum(spacing * way / np.linalg.norm(way, axis=1)[:, None], axis=0)])
    rod = rod_arrays(line, bending=bending, room=guides)
    base, push_on_tip = line[:2] + 1e-4 * rng.normal(size=(2, 3)), 0.01 * rng.normal(size=3)
    rod.base.numpy()[:], rod.push.numpy()[0] = base, push_on_tip
    places, stiffness = rng.uniform(0.0, spacing * (nodes - 1), guides), rng.uniform(10.0, 1000.0, guides)
    points = np.array([line[int(a / spacing)] for a in places]) + 1e-3 * rng.normal(size=(guides, 3))
    body = SoftSimulation([tissue_block((1, 1, 1))], response="none", device="cpu")
    arrays, at = body.rows.arrays, wp.array(np.pad(points, ((0, 0), (0, 1))), dtype=wp.vec4d, device="cpu")
    rod.count.numpy()[1:], rod.place.numpy()[:] = (0, guides), places
    for j in range(guides):
        arrays.sizes.numpy()[j], arrays.dofs.numpy()[j, 0], arrays.weights.numpy()[j, 0] = 1, j, 1.0
        arrays.guide.numpy()[j, 0] = stiffness[j]
    launch(_relax, 1, [rod, arrays, at], device=wp.get_device("cpu"))
    # The same energy, written down as a matrix.
    matrix, right, one = np.zeros((nodes, nodes, 3, 3)), np.zeros((nodes, 3)), np.eye(3)
    c = bending / spacing**3
    for i in range(1, nodes - 1):
        for a, p in zip((i - 1, i, i + 1), (1, -2, 1), strict=True):
            for b, q in zip((i - 1, i, i + 1), (1, -2, 1), strict=True):
                matrix[a, b] += c * p * q * one
    for i in range(nodes):
        t = line[min(i + 1, nodes - 1)] - line[max(i - 1, 0)]
        t /= np.linalg.norm(t)
        hold = 1000.0 * max(c, 1.0) * np.outer(t, t)
        matrix[i, i] += hold
        right[i] += hold @ line[i]
    for place, k, point in zip(places, stiffness, points, strict=True):
        i = int(place / spacing)
        weights = {i: 1.0 - (place / spacing - i), i + 1: place / spacing - i}
        t = (line[i + 1] - line[i]) / spacing
        across = k * (one - np.outer(t, t))
        for a, p in weights.items():
            right[a] += p * across @ point
            for b, q in weights.items():
                matrix[a, b] += p * q * across
    right[-1] += push_on_tip
    dense = matrix.transpose(0, 2, 1, 3).reshape(3 * nodes, 3 * nodes)
    solved = rod.right.numpy().ravel()
    np.testing.assert_array_equal(solved[:6], base.ravel())
    # What is left of the equations, as a part of what is in them: the matrix is nearly singular for many nodes.
    left = (dense @ solved - right.ravel())[6:]
    assert np.abs(left).max() < 1e-12 * (np.abs(dense) @ np.abs(solved))[6:].max()
    if nodes < 10:
        expected = np.linalg.solve(dense[6:, 6:], right.ravel()[6:] - dense[6:, :6] @ base.ravel())
        np.testing.assert_allclose(solved[6:], expected, atol=1e-12)
    # Then lengths are put right.
    there = [base[0]]
    for piece in np.diff(solved.reshape(-1, 3), axis=0):
        there.append(there[-1] + spacing * piece / np.linalg.norm(piece))
    np.testing.assert_allclose(rod.x.numpy(), there, atol=1e-14)


def flexible(bevel: float | None, *, depth=0.03, dt=0.01, sweeps=20, stiffness=8.8e-4, **options):
    radius = (4.0 * stiffness / np.pi / 75e9) ** 0.25
    needle = Needle(length=0.12, radius=radius, youngs_modulus=75e9, tip=None if bevel is None else Bevel(bevel))
    simulation = inserted(needle, dt=dt, sweeps=sweeps, **options)
    push(simulation, depth)
    rest = simulation.particles.rest
    return simulation, float(np.hypot(*(rest[-1] - rest[0])[:2]))


@pytest.mark.feature("F-P-72")
def test_a_bevel_tip_steers_and_more_so_the_softer_the_needle_and_the_larger_the_push():
    aside = {key: flexible(key[0], stiffness=key[1])[1] for key in ((0.25, 8.8e-4), (0.5, 8.8e-4), (0.5, 2e-2))}
    assert 1e-4 < aside[0.5, 2e-2] < aside[0.5, 8.8e-4]
    assert aside[0.25, 8.8e-4] == pytest.approx(0.5 * aside[0.5, 8.8e-4], rel=0.2)
    simulation, straight = flexible(None)
    assert straight < 2e-4
    pieces = np.linalg.norm(np.diff(simulation.nodes, axis=0), axis=1)
    np.testing.assert_allclose(pieces.sum(), 0.12, rtol=1e-9)


@pytest.mark.slow
def test_the_path_of_a_bevel_tip_is_converged_and_a_straight_one_does_not_drift():
    body = tissue_block((10, 10, 8), size=(0.1, 0.1, 0.09))
    aside = {sweeps: flexible(0.5, sweeps=sweeps, body=body)[1] for sweeps in (20, 160)}
    assert aside[20] == pytest.approx(aside[160], rel=0.05)
    assert flexible(None, depth=0.06, body=body)[1] < 2e-4


def test_a_spinning_bevel_is_straight():
    needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5))
    simulation = inserted(needle, dt=0.01, sweeps=20)
    for _ in range(150):
        simulation.step(SPEED, spin=2 * np.pi * 100.0)
    rest = simulation.particles.rest
    assert np.hypot(*(rest[-1] - rest[0])[:2]) < 2e-4


# -- a step as a whole -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("puncture", "tolerance"), [(0.4, 0.05), (1.0, 0.05)])
def test_the_path_does_not_depend_on_the_length_of_steps(puncture, tolerance):
    # Without a rebound (0.4 N is what cutting takes) and with one.
    tissue, aside = Tissue(puncture=puncture), []
    for dt in (0.01, 0.002, 0.001):
        simulation, _ = flexible(0.5, dt=dt, body=tissue_block((10, 10, 8), size=(0.1, 0.1, 0.09)), tissue=tissue)
        aside.append(np.hypot(*(simulation.tip_rest - simulation.particles.rest[0])[:2]))
    assert max(aside) == pytest.approx(min(aside), rel=tolerance)


def test_steps_are_made_in_parts_after_a_puncture_and_then_no_more():
    simulation = inserted(dt=0.01)
    solve, parts = simulation.soft.phases["solve"], [0]

    def counting(pipeline):
        parts[-1] += 1
        solve(pipeline)

    simulation.soft.phases["solve"] = counting
    while not simulation.inside:
        simulation.step(SPEED)
        parts.append(0)
    assert set(parts[:-1]) == {1}
    parts[:] = [0]
    for _ in range(6):
        simulation.step(SPEED)
        parts.append(0)
    assert parts[:-1] == [7, 7, 7, 1, 1, 1]
    assert simulation.soft.time == pytest.approx(0.01 * simulation.soft.steps)


class Stopped(BaseException):
    """Not even an `Exception`, as `KeyboardInterrupt` is none."""


def everything(simulation: Simulation) -> list[np.ndarray]:
    particles, soft = simulation.particles, simulation.soft
    found = [simulation.nodes, particles.anchor, particles.length, particles.force, particles.weights]
    found += [simulation.force, simulation.tip_rest, soft.positions, soft.velocities]
    numbers = [simulation.depth, simulation.tip_force, simulation.inside, soft.steps, soft.time]
    return [*found, np.array(numbers, dtype=float)]


def test_a_step_may_be_stopped_between_any_two_calls_of_functions(rng):
    needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5))
    disturbed, plain = (inserted(needle, dt=0.01, threads=1) for _ in range(2))
    stopped = 0
    for _ in range(70):
        before, left = everything(disturbed), int(rng.integers(1, 400))

        def count(frame, event: str, argument) -> None:
            nonlocal left
            if event == "call" and any(f"tangere/{room}/" in frame.f_code.co_filename for room in ("soft", "needle")):
                left -= 1
                if left == 0:
                    raise Stopped

        sys.setprofile(count)
        try:
            disturbed.step(SPEED)
        except Stopped:
            sys.setprofile(None)
            stopped += 1
            assert all(np.array_equal(a, b) for a, b in zip(everything(disturbed), before, strict=True))
            disturbed.step(SPEED)
        finally:
            sys.setprofile(None)
        plain.step(SPEED)
    assert stopped > 10
    assert plain.inside
    assert all(np.array_equal(a, b) for a, b in zip(everything(disturbed), everything(plain), strict=True))


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(threads):
    forces = []
    for count in (1, threads):
        needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5))
        simulation = inserted(needle, body=tissue_block((10, 10, 8)), threads=count)
        push(simulation, 0.012)
        forces.append((simulation.force, simulation.nodes, simulation.soft.positions))
    for one, other in zip(*forces, strict=True):
        assert np.array_equal(one, other)


def test_a_needle_goes_into_a_body_of_a_simulation_with_others():
    other = Body(solid_block((1, 1, 1), size=(0.02, 0.02, 0.02)), fixed=True, name="aside")
    soft = SoftSimulation(
        [other, Body(tissue_block().shape, youngs_modulus=1e4, fixed=tissue_block().fixed, damping=20.0)],
        dt=DT,
        gravity=(0, 0, 0),
        response="none",
        sweeps=16,
        device="cpu",
    )
    start = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1]}
    simulation = Simulation(soft, Needle(length=0.12, rigid=True), TISSUE, body_number=1, **start)
    log = push(simulation, 0.02)
    assert simulation.inside
    assert log[:, 1].max() == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: inserted(body=Body(Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))),
            "is a sheet: a needle goes",
        ),
        (
            lambda: Simulation(tissue_block(), Needle(), TISSUE, entry=[0, 0, 1], direction=[0, 0, -1]),
            "entry: .* from body",
        ),
        (lambda: inserted(tissue=Tissue(cutting=[0.4, 0.5])), "Tissue: cutting has 2 values for 1080 tetrahedra"),
        (lambda: inserted(body_number=3), "body_number: there is no body 3; there are 1, counted from 0"),
        (lambda: Tissue(puncture=-1.0), "Tissue: puncture must be positive"),
        (lambda: Tissue(friction=np.nan), "Tissue: friction must be a force"),
        (lambda: inserted().step(np.inf), "advance and spin must be finite"),
        (lambda: inserted().step(50.0), "base: 0.25 m in one step is more than the needle is long, 0.12 m"),
        (lambda: inserted().move([0.0, np.nan, 0.0]), "base must be three finite numbers"),
        (
            lambda: Simulation(tissue_block(), Needle(), TISSUE, entry=[0, 0, -0.03], direction=[0, 0, -1]),
            "entry: .* is not where a needle that looks .* meets body",
        ),
        (
            lambda: Simulation(tissue_block(), Needle(), TISSUE, entry=[0.01, 0, 0], direction=[0, 0, 1]),
            "direction: .* does not lead into body 'solid'|is not where a needle",
        ),
    ],
)
def test_bad_input_is_told_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("rigid", [True, False])
def test_a_needle_goes_in_up_to_its_base_and_no_farther(rigid):
    simulation = inserted(Needle(length=0.03, radius=0.35e-3, youngs_modulus=75e9, rigid=rigid), dt=0.01)
    with pytest.raises(InputError, match="m long, is in up to its base already"):
        push(simulation, 0.06)
    assert 0.028 < simulation.depth <= 0.0305
    before = everything(simulation)
    with pytest.raises(InputError, match="up to its base"):
        simulation.step(SPEED)
    assert all(np.array_equal(a, b) for a, b in zip(everything(simulation), before, strict=True))
    push(simulation, 0.005, speed=-SPEED)


def test_a_needle_enters_a_body_where_it_is_now():
    body = tissue_block()
    soft = SoftSimulation([Body(body.shape, youngs_modulus=3e3, fixed=body.fixed)], dt=0.01, device="cpu")
    soft.run(steps=60)
    sagged = soft[0].positions[:, 2].max() - body.shape.vertices[:, 2].max()
    shape = soft.bodies[0].shape
    top = np.flatnonzero(shape.vertices[:, 2] > -1e-9)
    middle = top[np.argmin(np.linalg.norm(shape.vertices[top], axis=1))]
    place = soft[0].positions[middle]
    assert place[2] < -2e-4 < sagged
    simulation = Simulation(soft, Needle(length=0.12, rigid=True), TISSUE, entry=place, direction=[0, 0, -1])
    simulation.step(0.0)
    assert simulation.tip_force == pytest.approx(0.0, abs=0.02)
    simulation.step(SPEED)
    assert simulation.tip_force > 0.01


def test_launches_for_cuda_go_where_the_sweeps_of_the_cpu_go(monkeypatch):
    """The twin for CUDA, with the rod, run on the CPU."""
    ends = []
    for twin in (False, True):
        simulation = inserted(
            Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5)), dt=0.01, sweeps=20
        )
        push(simulation, 0.001)
        pipeline = simulation.soft._pipeline
        if twin:
            given = [pipeline.assembly, pipeline.islands, pipeline.free_motion, pipeline.inertia]

            def prepare(pipeline=pipeline, given=given):
                pipeline.sweeps = CudaSweeps(*given, pipeline.rows, pipeline.dt, pipeline.rod)
                pipeline._sweeps_capacity = pipeline.rows.capacity

            monkeypatch.setattr(pipeline, "_prepare_sweeps", prepare)
            prepare()
        push(simulation, 0.02)
        ends.append((simulation.nodes, simulation.force, simulation.depth))
    assert ends[0][2] > 0.01
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-5 * np.abs(one).max())


@pytest.mark.cuda
def test_on_cuda_a_needle_that_bends_goes_where_it_goes_on_cpu():
    ends = []
    for device in ("cpu", "cuda"):
        simulation, aside = flexible(0.5, device=device)
        ends.append((simulation.nodes, simulation.force, simulation.depth, aside))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-5)


@pytest.mark.cuda
def test_on_cuda_a_rigid_needle_feels_what_it_feels_on_cpu():
    logs = [push(inserted(device=device), 0.02) for device in ("cpu", "cuda")]
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-3, atol=1e-6)

"""On a GPU: the same steps as on the CPU, hardly a word to the host, and lists that grow when they are too short."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.soft_bodies import copy_strains, overlaps, passes_through
from tangere.runtime import choose_device
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation, scenes
from tangere.soft.contact import detection
from tangere.soft.safe_step import truncation
from tangere.soft.solver.cuda import sweeps as launched_sweeps

pytestmark = pytest.mark.cuda

#: Surfaces on which edges may meet though no edge meets a face it has no vertex in common with.
HINGED = {
    "two triangles": generate.sheet(2),
    "pages": Mesh([[0, 0, 0], [0, 0, 1], [1, 0, 0.1], [0.9, 0.3, 0.9], [0, 1, 0.5]], [[0, 1, 2], [0, 1, 3], [0, 1, 4]]),
    "one tet": TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]], [[0, 1, 2, 3]]),
}


@pytest.fixture
def cuda() -> str:
    if not choose_device(None).is_cuda:
        pytest.skip("there is no CUDA device")
    return "cuda"


@pytest.mark.parametrize("scene", [scenes.tori, scenes.knot], ids=["tori", "knot"])
def test_a_step_on_the_gpu_is_the_step_of_the_cpu(cuda, scene):
    """One step of each from the same state, again and again, within 1e-10 of the size of the scene."""
    there, here = scene(device=cuda), scene(device="cpu")
    size = here._pipeline.assembly.rest_mesh.extent
    for _ in range(12):
        there.run(steps=5)
        for body in range(len(here.bodies)):
            here[body].set_state(positions=there[body].positions, velocities=there[body].velocities)
        copy_strains(there, here)
        there.step()
        here.step()
        for body in range(len(here.bodies)):
            assert np.abs(there[body].positions - here[body].positions).max() <= 1e-10 * size
        assert there.rows.count == here.rows.count
        assert not overlaps(there)


def test_vertices_that_share_a_warp_move_as_those_that_have_one(cuda, monkeypatch):
    monkeypatch.setattr(launched_sweeps, "MANY", 1)
    there, here = scenes.knot(device=cuda), scenes.knot(device="cpu")
    for _ in range(6):
        there.run(steps=5)
        for body in range(len(here.bodies)):
            here[body].set_state(positions=there[body].positions, velocities=there[body].velocities)
        copy_strains(there, here)
        there.step()
        here.step()
        for body in range(len(here.bodies)):
            assert np.abs(there[body].positions - here[body].positions).max() <= 1e-10


def test_a_step_reads_back_a_few_counters_once(cuda, monkeypatch):
    simulation = scenes.tori(youngs_modulus=1e3, device=cuda)
    simulation.run(steps=80)
    reads = []
    plain = wp.array.numpy
    monkeypatch.setattr(wp.array, "numpy", lambda array: (reads.append(array.size * 4), plain(array))[1])
    for _ in range(20):
        simulation.step()
    assert max(reads) <= 64  # bytes
    assert len(reads) <= 20 + 5  # a crowded step may ask whether a few more rounds are needed


def test_lists_that_are_too_short_grow_and_the_step_is_done_again(cuda, monkeypatch):
    roomy = scenes.tori(youngs_modulus=1e3, device=cuda)
    monkeypatch.setattr(detection, "LEAST_ROOM", 4)
    monkeypatch.setattr(detection, "ROOM_PER_VERTEX", 0.0)
    monkeypatch.setattr(truncation, "LEAST_ROOM", 4)
    tight = scenes.tori(youngs_modulus=1e3, device=cuda)
    for _ in range(8):
        roomy.run(steps=10)
        for body in range(2):
            tight[body].set_state(positions=roomy[body].positions, velocities=roomy[body].velocities)
        copy_strains(roomy, tight)
        roomy.step()
        tight.step()
        assert tight.rows.count == roomy.rows.count
        assert np.abs(tight[1].positions - roomy[1].positions).max() < 1e-10
    assert tight._pipeline.detection.contact_points.room > 4


@pytest.mark.parametrize("name", HINGED)
def test_noise_on_the_gpu_never_takes_a_surface_through_itself_whatever_its_topology(cuda, name, rng):
    shape = HINGED[name]
    size = np.ptp(shape.vertices, axis=0).max()
    for distance in (None, 10.0 * size):  # fast, and vertex by vertex
        simulation = Simulation(
            [Body(shape, youngs_modulus=1e3, density=1.0)], device=cuda, gravity=(0, 0, 0), distance=distance
        )
        held = 0
        for _ in range(8):
            here = simulation[0].positions
            push = 0.25 * size * rng.standard_normal(here.shape) - 0.2 * (here - here.mean(axis=0))
            simulation.phases["solve"] = lambda s, push=push: s.assembly.dofs.x.assign(s.start.numpy() + push)
            before = simulation.meshes()
            simulation.step()
            held += simulation.truncation.iterations
            assert not passes_through(before, simulation.meshes())
        assert held > 0


@pytest.mark.parametrize(
    ("speed", "stiffness", "settled"), [(30.0, 1e4, True), (100.0, 1e3, True), (30.0, 1e6, False), (300.0, 1e4, False)]
)
def test_a_fast_blow_on_the_gpu_is_that_of_the_cpu(cuda, speed, stiffness, settled):
    """No energy gained, no momentum lost; the same places unless a change of 1e-14 m in the start moves them by cm."""
    pose = np.eye(4)
    ends = []
    for device in (cuda, "cpu"):
        bodies = []
        for number in range(2):
            pose[:3, 3] = 1.6 * number, 0.2 * number, 0.1 * number
            velocity = (speed * (1 - 2 * number), 0.0, 0.0)
            bodies.append(
                Body(solid_block((3, 3, 3)).at(pose), youngs_modulus=stiffness, velocity=velocity, density=1.0)
            )
        simulation = Simulation(bodies, device=device, gravity=(0, 0, 0), distance=0.1)
        start = simulation.energy.total
        for _ in range(6):
            simulation.step()
            assert simulation.energy.total < 1.02 * start
            assert np.abs(simulation.momentum).max() < 1e-11 * speed
        assert simulation.steps == 6
        ends.append(np.concatenate([simulation[0].positions, simulation[1].positions]))
    if settled:
        assert np.abs(ends[0] - ends[1]).max() < 1e-6


def test_a_tool_driven_on_the_gpu_dents_what_it_does_on_the_cpu(cuda):
    shape, pose, ends = solid_block((4, 4, 4)), np.eye(4), []
    pose[:3, 3] = 0.02, 0.01, 0.65
    tool = Body(solid_block((1, 1, 1), size=(0.2, 0.2, 0.2)).at(pose), fixed=True)
    moves = []
    for device in (cuda, "cpu"):
        block = Body(shape, youngs_modulus=2e3, fixed=shape.vertices[:, 2] < -0.49, density=1.0)
        simulation = Simulation([block, tool], device=device, gravity=(0, 0, 0), distance=0.05)
        simulation[1].drive((0.0, 0.0, -2.5))
        moves.append(0.0)
        for _ in range(5):
            simulation.step()
            moves[-1] += 0.05 * simulation.truncation.driven_part
        ends.append(np.concatenate([simulation[0].positions, simulation[1].positions]))
    assert ends[0][-8:, 2].min() == pytest.approx(0.55 - moves[0])
    assert 0.15 < moves[0] <= 0.25
    assert np.abs(ends[0] - ends[1]).max() < 1e-8


def test_a_tool_that_was_pressed_in_gets_away_on_the_gpu(cuda):
    shape, small = solid_block((4, 4, 4)), solid_block((1, 1, 1), size=(0.2, 0.2, 0.2))
    pose = np.eye(4)
    pose[:3, 3] = 0.02, 0.01, 0.65
    block = Body(shape, youngs_modulus=2e4, fixed=shape.vertices[:, 2] < -0.49, density=1.0)
    bodies = [block, Body(small.at(pose), fixed=True)]
    there, here = (Simulation(bodies, device=d, gravity=(0, 0, 0), distance=0.05) for d in (cuda, "cpu"))
    slow = 0
    for velocity, steps in (((0.0, 0.0, -1.0), 10), ((2.0, 0.0, 0.0), 50), ((0.0, 0.0, 2.0), 40)):
        start = there[1].positions
        for simulation in (there, here):
            simulation[1].drive(velocity)
        for _ in range(steps):
            for body in range(2):
                here[body].set_state(positions=there[body].positions, velocities=there[body].velocities)
            copy_strains(there, here)
            before = there.meshes()
            there.step()
            here.step()
            slow += there.truncation.impact_substep < 1.0
            assert not passes_through(before, there.meshes())
            assert np.abs(there[0].positions - here[0].positions).max() < 1e-6
    assert slow > 0
    assert (there[1].positions - start)[:, 2].min() > 0.8  # of 1.6 m

"""A body at rest that is cut stays at rest: what a face that looks away now begins to touch is not pushed."""

from __future__ import annotations

import itertools

import numpy as np

from tangere.shape.tets import TetMesh, solid_block, solid_torus
from tangere.soft import Body, Simulation


def test_what_was_passed_over_does_not_push_as_far_as_what_touched_there() -> None:
    """Walls of a stroke that ends within the ring; in the step after one cut it gained 0.6 J."""
    rng = np.random.default_rng(1)
    ring = Body(solid_torus((24, 4), radius=0.8, tube=0.3), cuttable=True, youngs_modulus=1e4)
    simulation = Simulation([ring], gravity=(0, 0, 0), device="cpu", threads=1)
    for _ in range(4):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        along = np.cross(normal, rng.normal(size=3))
        along /= np.linalg.norm(along)
        edge = np.array([[-2.0], [2.0]]) * np.cross(normal, along)
        origin, step, stop = rng.uniform(-0.4, 0.4, 3), rng.choice([0.1, 0.2, 0.4]), rng.choice([0.0, 2.2])
        lines = [origin + at * along + edge for at in np.arange(-2.2, stop, step)]
        number = int(rng.integers(len(simulation)))
        for start, end in itertools.pairwise(lines):
            simulation.cut(number, start, end)
            simulation.step()
            assert simulation.energy.kinetic + simulation.energy.elastic < 1e-7
        simulation.end_stroke(number)


def test_sides_of_a_notch_do_not_push_each_other_when_the_blade_has_parted_them() -> None:
    """They are no walls, and one is nearly flat beside faces that are not; the body gained 1.5 J."""
    block = solid_block((10, 5, 3), size=(2.0, 1.0, 0.6))
    middle = block.vertices[block.tets].mean(axis=1)
    tets = block.tets[(np.abs(middle[:, 0]) > 0.2) | (middle[:, 1] < -0.3)]
    used, corners = np.unique(tets, return_inverse=True)
    vertices = block.vertices[used] + 0.03 * np.random.default_rng(1).uniform(-1.0, 1.0, (len(used), 3))
    notched = Body(TetMesh(vertices, corners.reshape(tets.shape)), cuttable=True, youngs_modulus=1e4)
    simulation = Simulation([notched], gravity=(0, 0, 0), distance=0.45, device="cpu", threads=1)
    edge = np.array([[0.013, 0.0, -2.0], [0.013, 0.0, 2.0]])
    for start, end in itertools.pairwise(np.linspace(-1.5, 1.5, 9)):
        simulation.cut(0, edge + [0.0, start, 0.0], edge + [0.0, end, 0.0])
        simulation.step()
        assert simulation.energy.kinetic + simulation.energy.elastic < 1e-9
    simulation.end_stroke(0)
    simulation.run(steps=3)
    assert len(simulation) == 2
    assert simulation.energy.kinetic + simulation.energy.elastic < 1e-9

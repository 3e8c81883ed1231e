"""A body at rest that is cut stays at rest: what a face that looks away now begins to touch is not pushed."""

from __future__ import annotations

import itertools

import numpy as np

from tangere.shape.tets import solid_torus
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

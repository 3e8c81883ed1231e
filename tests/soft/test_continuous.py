"""The robust option: continuous tests that miss nothing, and bodies that nothing tunnels through."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.feature_queries import FAMILIES
from oracles.flint_ccd import decide
from oracles.soft_bodies import passes_through
from tangere.query.contacts import Kind
from tangere.query.first_contact import edge_edge, vertex_face
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation


@pytest.mark.feature("F-L-43")
@pytest.mark.parametrize("speed", [30.0, 3e3, 3e5])
def test_a_fast_bullet_does_not_tunnel_through_a_soft_wall(speed):
    """Some thousand times its own size in a step; the wall is a thin soft sheet held at its rim."""
    pose = np.eye(4)
    pose[:3, 3] = 0.05, -0.02, 0.4
    bullet = Body(solid_block((1, 1, 1), size=(0.1, 0.1, 0.1)).at(pose), density=20.0, velocity=(0.0, 0.0, -speed))
    sheet = generate.sheet(128, size=(2.0, 2.0))
    rim = np.abs(sheet.vertices[:, :2]).max(axis=1) > 0.99
    wall = Body(sheet, youngs_modulus=1e5, thickness=0.02, density=100.0, fixed=rim)
    simulation = Simulation([bullet, wall], device="cpu", gravity=(0, 0, 0), distance=0.04)
    for _ in range(8):
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
    assert simulation[0].velocities[:, 2].mean() > -0.5 * speed  # it was stopped, not lucky


@pytest.mark.feature("F-L-43")
@pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE])
def test_no_continuous_query_misses_a_contact(kind, effort):
    """Random and degenerate families: what flint finds in exact arithmetic, the sound test never calls free or late."""
    ask, hits = (vertex_face if kind == Kind.VERTEX_FACE else edge_edge), 0
    for family in FAMILIES.values():
        points = family(kind, effort(60), np.random.default_rng(11)).points
        x0, x1 = np.ascontiguousarray(points[:, :4]), np.ascontiguousarray(points[:, 4:])
        found = ask(x0, x1, details=False, device="cpu").time
        for query, time in zip(points, found, strict=True):
            truth = decide(kind, query)
            if truth.hit:
                assert truth.time is not None
                assert time <= truth.time.enclosing_floats()[1]
                hits += 1
    assert hits > 100

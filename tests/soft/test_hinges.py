"""Surfaces on which every face has a vertex of what it may meet: ribbons, pages on a spine, two triangles, one tet."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from oracles.soft_bodies import passes_through
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation
from tangere.soft.safe_step.hinges import hinged_edges
from tangere.soft.safe_step.patches import Patches


def ribbon(quads: int) -> Mesh:
    along = np.linspace(0.0, 1.0, quads + 1)
    sides = [np.stack([along, np.full_like(along, y), 0.0 * along], axis=1) for y in (0.0, 0.1)]
    k, n = np.arange(quads)[:, None], quads + 1
    return Mesh(np.concatenate(sides), np.concatenate([k + [0, 1, n], k + [1, n + 1, n]]), name="ribbon")


def pages(count: int) -> Mesh:
    turn = 1.2 * np.arange(count)
    rims = np.stack([np.cos(turn), np.sin(turn), np.full(count, 0.3)], axis=1)
    corners = np.concatenate([[[0, 0, 0], [0, 0, 1.0]], rims])
    return Mesh(0.4 * corners, [[0, 1, 2 + page] for page in range(count)], name="pages")


def one_solid() -> TetMesh:
    return TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]], [[0, 1, 2, 3]], name="one solid")


SHAPES = {
    "ribbon": ribbon(10),
    "two triangles": generate.sheet(2),
    "pages": pages(5),
    "one solid": one_solid(),
    "small block": solid_block((1, 1, 1)),
}


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
@pytest.mark.parametrize("alone", [False, True], ids=["eight at a time", "one by one"])
@pytest.mark.parametrize("name", SHAPES)
def test_noise_never_takes_a_surface_through_itself_whatever_its_topology(name, alone, fast, rng, monkeypatch, effort):
    """Noise in the place of the solver; one by one is how CUDA searches; what is slow stops vertex by vertex."""
    plain = Patches.__init__
    monkeypatch.setattr(Patches, "__init__", lambda self, assembly: plain(self, assembly, per_feature=alone))
    shape, held = SHAPES[name], 0
    size = np.ptp(shape.vertices, axis=0).max()
    for _ in range(effort(4, least=2)):
        distance = None if fast else 10.0 * size
        simulation = Simulation(
            [Body(shape, youngs_modulus=1e3, density=100.0)], device="cpu", gravity=(0, 0, 0), distance=distance
        )
        for _ in range(8):
            here = simulation[0].positions
            push = 0.25 * size * rng.standard_normal(here.shape) - 0.2 * (here - here.mean(axis=0))
            simulation.phases["solve"] = lambda s, push=push: s.assembly.dofs.x.assign(s.start.numpy() + push)
            before = simulation.meshes()
            simulation.step()
            held += simulation.truncation.iterations > 0
            assert not passes_through(before, simulation.meshes())
    assert held > 3


def test_a_page_thrown_against_the_next_one_stops_in_front_of_it():
    book = Mesh([[0, 0, 0], [0, 0, 1], [1, 0, 0.1], [0.86, 0.27, 0.9]], [[0, 1, 2], [0, 1, 3]])
    velocity = np.zeros((4, 3))
    velocity[2, 1] = 40.0
    body = Body(book, youngs_modulus=1e3, density=100.0, fixed=[0, 1, 3], velocity=velocity)
    simulation = Simulation([body], device="cpu", gravity=(0, 0, 0))
    held = 0
    for _ in range(5):
        before = simulation.meshes()
        simulation.step()
        held += simulation.truncation.iterations
        assert not passes_through(before, simulation.meshes())
    assert held > 0


@pytest.mark.parametrize("name", [*SHAPES, "sheet", "torus"])
def test_listed_edges_are_those_with_a_vertex_in_every_face_of_the_other(name):
    """All pairs of edges, by their definition; an ordinary surface has none."""
    shape = {"sheet": generate.sheet(18), "torus": generate.torus(120), **SHAPES}[name]
    topology = (shape.surface if isinstance(shape, TetMesh) else shape).topology
    edges = [set(edge) for edge in topology.edges.tolist()]
    faces = [[set(topology.faces[f].tolist()) for f in topology.edge_faces.of(e)] for e in range(len(edges))]
    expected = [
        (a, b)
        for a, b in combinations(range(len(edges)), 2)
        if not edges[a] & edges[b] and all(f & edges[a] for f in faces[b]) and all(f & edges[b] for f in faces[a])
    ]
    assert hinged_edges(topology).tolist() == [list(pair) for pair in expected]
    assert bool(expected) == (name not in ("sheet", "torus", "small block"))

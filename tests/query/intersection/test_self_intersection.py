"""A mesh that passes through itself is told from one that does not, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import ONE_MESH, grid, scene
from oracles.mesh_contacts import edge_pierces_face
from oracles.near_pairs import crossing_plates
from tangere.query.intersection.self_intersection import intersects_itself, self_intersections
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def by_brute_force(mesh: Mesh) -> list[list[int]]:
    """Every edge against every face without a common vertex, in exact arithmetic."""
    return [
        [e, f]
        for e, edge in enumerate(mesh.edges)
        for f, face in enumerate(mesh.faces)
        if not set(edge) & set(face) and edge_pierces_face(mesh.vertices[edge], mesh.vertices[face])
    ]


@pytest.mark.parametrize("family", ONE_MESH)
def test_on_awkward_meshes_it_finds_what_exact_arithmetic_finds(family):
    for seed in range(3):
        mesh = scene(family, seed)[0].shape  # pyright: ignore[reportAttributeAccessIssue]
        assert self_intersections(mesh, device="cpu").tolist() == by_brute_force(mesh)


@pytest.mark.parametrize("degrees", [0.01, 2.0, 20.0])
def test_crossing_plates_are_found(degrees, device):
    plates = crossing_plates(degrees, 5)
    found = self_intersections(plates, device=device)
    assert len(found)
    assert found.tolist() == by_brute_force(plates)


def test_plain_meshes_do_not_pass_through_themselves():
    for mesh in (generate.torus(400), generate.trefoil_knot(720), grid(6, 6), generate.icosphere(subdivisions=2)):
        assert not intersects_itself(mesh, device="cpu")


def test_the_answer_does_not_depend_on_threads():
    plates = crossing_plates(3.0, 20)
    first = self_intersections(plates, device="cpu", threads=1)
    assert len(first) > 50
    for threads in (2, 7):
        assert np.array_equal(self_intersections(plates, device="cpu", threads=threads), first)

"""Edges and adjacency against plain Python sets; closed, oriented and manifold on shapes where the answer is known."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Topology

TETRAHEDRON = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]

soups = st.lists(st.tuples(*[st.integers(0, 7)] * 3), min_size=1, max_size=20)


def sides(face):
    return [tuple(sorted((face[k], face[(k + 1) % 3]))) for k in range(3)]


@given(soups)
def test_edges_are_the_set_of_sides_in_order(faces):
    topology = Topology(faces, 8)
    expected = sorted({side for face in faces for side in sides(face)})
    assert topology.edges.tolist() == [list(edge) for edge in expected]
    assert topology.edges.dtype == np.int32


@given(soups)
def test_every_face_knows_its_edges_and_every_edge_its_faces(faces):
    topology = Topology(faces, 8)
    for face, edges in zip(faces, topology.face_edges, strict=True):
        assert [tuple(topology.edges[edge]) for edge in edges] == sides(face)
    for number, edge in enumerate(map(tuple, topology.edges.tolist())):
        expected = [f for f, face in enumerate(faces) for side in sides(face) if side == edge]
        assert topology.edge_faces.of(number).tolist() == expected
        assert topology.edge_face_count[number] == len(expected)


@given(soups)
def test_vertex_adjacency_matches_a_search(faces):
    topology = Topology(faces, 9)
    edges = [tuple(edge) for edge in topology.edges.tolist()]
    for vertex in range(9):
        assert topology.vertex_faces.of(vertex).tolist() == [
            f for f, face in enumerate(faces) for v in face if v == vertex
        ]
        neighbours = {a + b - vertex for a, b in edges if vertex in (a, b) and a != b}
        assert topology.vertex_neighbours.of(vertex).tolist() == sorted(neighbours)
        at_vertex = {n for n, (a, b) in enumerate(edges) if vertex in (a, b) and a != b}
        assert set(topology.vertex_edges.of(vertex).tolist()) == at_vertex
        assert len(topology.vertex_edges.of(vertex)) == len(at_vertex)


@given(soups)
def test_closed_oriented_and_components_match_their_definitions(faces):
    topology = Topology(faces, 8)
    proper = [face for face in faces if len(set(face)) == 3]
    uses = Counter(side for face in proper for side in sides(face))
    directed = Counter((face[k], face[(k + 1) % 3]) for face in proper for k in range(3))
    assert topology.is_closed == all(count == 2 for count in uses.values())
    assert topology.is_oriented == all(count == 1 for count in directed.values())

    pieces = [set(face) for face in faces]
    merged: list[set[int]] = []
    for piece in pieces:
        touching = [other for other in merged if other & piece]
        merged = [other for other in merged if not other & piece] + [piece.union(*touching)]
    assert topology.component_count == len(merged)


@given(soups)
def test_manifold_means_two_faces_per_edge_and_one_fan_per_vertex(faces):
    proper = [face for face in faces if len(set(face)) == 3]
    uses = Counter(side for face in proper for side in sides(face))
    expected = all(count <= 2 for count in uses.values())
    for vertex in range(8):
        fans = [set(face) - {vertex} for face in proper if vertex in face]
        while len(fans) > 1:
            last = fans.pop()
            touching = next((fan for fan in fans if fan & last), None)
            if touching is None:
                expected = False
                break
            touching |= last
    # Merging fans through shared rim vertices is right only where edges have two faces, which is checked first.
    assert Topology(faces, 8).is_manifold == expected


@pytest.mark.parametrize(
    ("mesh", "characteristic"),
    [
        (generate.icosphere(2), 2),
        (generate.plate(316), 2),
        (generate.comb(5), 2),
        (generate.torus(512), 0),
        (generate.trefoil_knot(), 0),
        (generate.gear(), 0),
        (generate.plate_with_hole(), 0),
        (generate.sheet(200), 1),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_the_euler_characteristic_is_that_of_the_surface(mesh, characteristic):
    assert len(mesh.vertices) - len(mesh.edges) + len(mesh.faces) == characteristic


def test_a_tetrahedron_is_closed_oriented_and_manifold():
    topology = Topology(TETRAHEDRON, 4)
    assert topology.is_closed
    assert topology.is_oriented
    assert topology.is_manifold
    assert topology.component_count == 1


def test_a_missing_triangle_opens_a_surface():
    topology = Topology(TETRAHEDRON[1:], 4)
    assert not topology.is_closed
    assert topology.open_edge_count == 3
    assert topology.is_oriented
    assert topology.is_manifold


def test_a_reversed_triangle_breaks_the_orientation_but_not_the_closure():
    topology = Topology([TETRAHEDRON[0][::-1], *TETRAHEDRON[1:]], 4)
    assert topology.is_closed
    assert not topology.is_oriented
    assert topology.reversed_edge_count == 3


def test_three_triangles_at_one_edge_are_neither_closed_nor_manifold():
    topology = Topology([[0, 1, 2], [1, 0, 3], [0, 1, 4]], 5)
    assert topology.crowded_edge_count == 1
    assert not topology.is_closed
    assert not topology.is_manifold


def test_two_tetrahedra_at_one_vertex_are_closed_but_not_manifold():
    second = [[0 if v == 0 else v + 3 for v in face] for face in TETRAHEDRON]
    topology = Topology(TETRAHEDRON + second, 7)
    assert topology.is_closed
    assert not topology.is_manifold
    assert topology.component_count == 1


def test_a_triangle_that_uses_a_vertex_twice_leaves_a_surface_closed():
    topology = Topology([*TETRAHEDRON, [0, 1, 1], [2, 2, 2]], 4)
    assert topology.is_closed
    assert topology.is_oriented
    assert topology.is_manifold
    assert topology.face_edges.shape == (6, 3)


def test_unused_vertices_are_no_components():
    assert Topology(TETRAHEDRON, 10).component_count == 1


def test_same_as_compares_content_while_equality_is_identity():
    one, other = Topology(TETRAHEDRON, 4), Topology(TETRAHEDRON, 4)
    assert one != other
    assert one.same_as(other)
    assert not one.same_as(Topology(TETRAHEDRON, 5))
    assert not one.same_as(Topology(TETRAHEDRON[:-1], 4))


def test_nothing_can_be_written():
    topology = Topology(np.array(TETRAHEDRON), 4)
    for array in (
        topology.faces,
        topology.edges,
        topology.face_edges,
        *topology.edge_faces,
        *topology.vertex_faces,
        *topology.vertex_neighbours,
        topology.edge_face_count,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        topology.faces = topology.faces


def test_pickling_keeps_faces_and_leaves_the_cache_behind():
    topology = Topology(TETRAHEDRON, 4)
    topology.cache["tree"] = object
    assert len(topology.edges)
    copy = pickle.loads(pickle.dumps(topology))
    assert copy.same_as(topology)
    assert copy.cache == {}


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ([], "Mesh 'door': has no triangles"),
        ([[0, 1]], r"Mesh 'door': faces must have shape \(m, 3\), not \(1, 2\)"),
        ([[0.0, 1.0, 2.0]], "Mesh 'door': faces must hold whole numbers, not float64"),
        ([[0, 1, 2], [1, 2, 4]], "Mesh 'door': triangle 1 uses vertex 4 but there are 4 vertices"),
        ([[0, 1, -1]], "Mesh 'door': triangle 0 uses vertex -1 but there are 4 vertices"),
        ([[0, 1, 2**40]], f"Mesh 'door': triangle 0 uses vertex {2**40} but there are 4 vertices"),
        ([[0, 1, "x"]], "Mesh 'door': faces must hold whole numbers"),
        ([[0, 1, 2], [0, 1]], "Mesh 'door': faces is not an array of numbers"),
    ],
)
def test_bad_faces_are_named(faces, message):
    with pytest.raises(InputError, match=message):
        Topology(faces, 4, "door")


def test_a_million_triangles_take_about_a_second():
    from time import perf_counter

    mesh = generate.torus(grid=(1000, 500))
    start = perf_counter()
    assert len(mesh.edges) == 1_500_000
    assert mesh.topology.is_closed
    assert mesh.topology.is_oriented
    assert perf_counter() - start < 5.0  # about 0.7 s on an idle core; the machine may be busy

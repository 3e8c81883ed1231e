"""Sphere trees: leaves of one radius cover the surface and know what is in them; spheres hold what is below them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.shapes.pot import pot as loose_pot
from tangere.published.redon_cubics.sphere_tree import SphereTree
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

MESHES = {
    "comb": (lambda: generate.comb(5), 0.05),
    "bumpy sphere": (lambda: generate.bumpy_sphere(980), 0.1),
    "pot of loose triangles": (lambda: loose_pot(600), 0.15),
    "one leaf": (lambda: generate.box((1, 1, 1)), 5.0),
    "one triangle": (lambda: Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]), 0.07),
    "degenerate": (lambda: Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 1, 3], [3, 3, 3]]), 0.1),
    "far away": (lambda: generate.box((1, 2, 3)).at(shifted(1e6)), 0.2),
    "tiny": (lambda: generate.box((1e-9, 2e-9, 1e-9)), 3e-10),
}


def shifted(x):
    pose = np.eye(4)
    pose[:3, 3] = x
    return pose


@pytest.fixture(params=MESHES, scope="module")
def case(request):
    make, radius = MESHES[request.param]
    mesh = make()
    return mesh, SphereTree.of(mesh, radius), radius


@pytest.mark.feature("F-R-12")
def test_leaves_of_one_radius_cover_the_surface_and_list_the_faces_there(case, rng):
    mesh, tree, radius = case
    nodes = tree.nodes.numpy()
    leaves = nodes[nodes["leaf"] >= 0]
    assert np.ptp(leaves["radius"]) == 0.0
    assert leaves["radius"][0] == pytest.approx(radius, rel=1e-8)
    faces = rng.integers(len(mesh.faces), size=400)
    weights = rng.dirichlet([0.4, 0.4, 0.4], size=400)
    weights[:30] = np.eye(3)[rng.integers(3, size=30)]
    points = np.einsum("nk,nkx->nx", weights, mesh.vertices[mesh.faces[faces]])
    first, entries = tree.face_first.numpy(), tree.faces.numpy()
    for point, face in zip(points, faces, strict=True):
        holding = leaves[np.linalg.norm(leaves["centre"] - point, axis=1) <= leaves["radius"]]
        assert any(face in entries[first[leaf] : first[leaf + 1]] for leaf in holding["leaf"])


@pytest.mark.feature("F-R-12")
def test_spheres_hold_the_leaves_below_them_and_every_leaf_is_there_once(case):
    _, tree, _ = case
    nodes = tree.nodes.numpy()
    assert sorted(nodes["leaf"][nodes["leaf"] >= 0]) == list(range(tree.leaves))
    assert ((nodes["right"] == 0) == (nodes["leaf"] >= 0)).all()
    inner = np.flatnonzero(nodes["leaf"] < 0)
    children = np.concatenate([inner + 1, nodes["right"][inner]])
    assert sorted(children) == list(range(1, len(nodes)))  # each node but the root has one parent
    parent = np.zeros(len(nodes), int)
    parent[children] = np.concatenate([inner, inner])
    leaf = above = np.flatnonzero(nodes["leaf"] >= 0)
    while above.any():  # climb from all leaves at once
        above = parent[above]
        apart = np.linalg.norm(nodes["centre"][above] - nodes["centre"][leaf], axis=1)
        overhang = apart + nodes["radius"][leaf] - nodes["radius"][above]
        assert (overhang <= 1e-12 * nodes["radius"][above] + 1e-15 * np.abs(nodes["centre"]).max()).all()


def test_edges_and_vertices_are_listed_where_they_pass(case, rng):
    mesh, tree, _ = case
    nodes = tree.nodes.numpy()
    leaves = nodes[nodes["leaf"] >= 0]
    order = np.argsort(leaves["leaf"])
    half = 0.5 * 2.0 * leaves["radius"][0] / np.sqrt(3.0)
    centres = leaves["centre"][order]
    for first, entries, ends in (
        (tree.edge_first.numpy(), tree.edges.numpy(), mesh.edges),
        (tree.vertex_first.numpy(), tree.vertices.numpy(), np.unique(mesh.faces)[:, None].repeat(2, axis=1)),
    ):
        named = dict(enumerate(ends)) if ends is mesh.edges else {v: (v, v) for v in ends[:, 0]}
        assert set(entries) == set(named)
        for number in rng.choice(list(named), size=min(40, len(named)), replace=False):
            a, b = mesh.vertices[list(named[number])]
            point = a + rng.random() * (b - a)
            cube = np.flatnonzero((np.abs(centres - point) <= half * (1 - 1e-6)).all(axis=1))
            assert all(number in entries[first[leaf] : first[leaf + 1]] for leaf in cube)


@pytest.mark.parametrize("name", ["comb", "bumpy sphere"])
def test_nodes_share_a_label_exactly_where_their_leaves_hold_the_same(name):
    make, radius = MESHES[name]
    tree = SphereTree.of(make(), radius)
    nodes = tree.nodes.numpy()
    lists = [(tree.face_first, tree.faces), (tree.edge_first, tree.edges), (tree.vertex_first, tree.vertices)]
    lists = [(first.numpy(), entries.numpy()) for first, entries in lists]
    content = {}

    def held(node):
        """The sets of features of the leaves below a node."""
        leaf = nodes["leaf"][node]
        if leaf >= 0:
            return {tuple(tuple(entries[first[leaf] : first[leaf + 1]]) for first, entries in lists)}
        return held(node + 1) | held(nodes["right"][node])

    for node in range(len(nodes)):
        sets = held(node)
        name_of_content = frozenset(sets) if len(sets) == 1 else node
        assert content.setdefault(nodes["label"][node], name_of_content) == name_of_content
    assert len(set(content.values())) == len(content)


def test_a_radius_that_makes_no_sense_is_refused():
    mesh = generate.box()
    for radius in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="leaf radius"):
            SphereTree.of(mesh, radius)
    with pytest.raises(InputError, match="takes more than"):
        SphereTree.of(mesh, 1e-7)


def test_a_tree_is_built_once_for_each_radius():
    mesh = generate.box()
    assert SphereTree.of(mesh, 0.2) is SphereTree.of(mesh, 0.2)
    assert SphereTree.of(mesh, 0.2) is not SphereTree.of(mesh, 0.1)

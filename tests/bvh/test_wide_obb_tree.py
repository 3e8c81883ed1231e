"""OBB trees of four children a node: every box that is kept is in its place, and every triangle once."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.bvh.obb import LANES, NO_CHILD, NUMBERS, ObbTree, WideObbTree
from tangere.shape import generate
from tangere.shape.mesh import Mesh

ONE = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], name="one")
MESHES = {
    "one triangle": ONE,
    "two": Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], name="two"),
    "block": generate.box((1.0, 2.0, 3.0)),
    "torus": generate.torus(2000, bumps=0.1),
    "same place": Mesh(np.zeros((3, 3)), np.tile([[0, 1, 2]], (20, 1)), name="degenerate"),
}


@pytest.mark.parametrize("name", MESHES)
def test_every_triangle_is_a_leaf_once_and_every_box_is_that_of_its_node(name):
    mesh = MESHES[name]
    binary, wide = ObbTree.of(mesh, "cpu"), WideObbTree.of(mesh)
    nodes, children = binary.records(), wide.children.numpy()
    there = children != int(NO_CHILD)
    assert sorted(-1 - children[children < 0]) == list(range(len(mesh.faces)))
    rows = wide.rows.numpy().reshape(-1, NUMBERS, LANES).transpose(0, 2, 1).reshape(-1, NUMBERS)
    own = nodes[wide.nodes.numpy()[there]]
    expected = np.concatenate([own["centre"], own["half"], own["axes"].reshape(-1, 9), own["radius"][:, None]], axis=1)
    assert np.array_equal(rows[there], expected)
    assert np.array_equal(own["triangle"][children[there] < 0], -1 - children[children < 0])


@pytest.mark.parametrize("name", MESHES)
def test_every_node_is_reached_once_from_the_root_and_none_is_deeper_than_said(name):
    wide = WideObbTree.of(MESHES[name])
    children, seen, front, depth = wide.children.numpy().reshape(-1, LANES), {0}, [0], 0
    assert (children[0, 1:] == int(NO_CHILD)).all()
    while front:
        below = children[front]
        front = below[(below >= 0) & (below != int(NO_CHILD))].tolist()
        assert not seen & set(front)
        seen |= set(front)
        depth += bool(front)
    assert seen == set(range(len(wide)))
    assert depth <= wide.depth <= ObbTree.of(MESHES[name], "cpu").depth + 1


def test_most_nodes_of_a_large_tree_are_full_and_it_is_half_as_deep():
    mesh = MESHES["torus"]
    wide, binary = WideObbTree.of(mesh), ObbTree.of(mesh, "cpu")
    assert (wide.children.numpy() != int(NO_CHILD)).mean() > 0.6
    assert wide.depth < 0.8 * binary.depth

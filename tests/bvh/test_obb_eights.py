"""OBB trees of eight boxes a node: every box is that of its node, every triangle is a leaf once."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.bvh.eights import FIRST_LEAF, LEAVES, SCRATCH, ObbEights, begin_at, eight_tables, next_leaves
from tangere.bvh.obb import ObbTree
from tangere.runtime import SOUND, launch
from tangere.shape import generate
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

MESHES = {
    "one triangle": Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], name="one"),
    "two": Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], name="two"),
    "block": generate.box((1.0, 2.0, 3.0)),
    "torus": generate.torus(2000, bumps=0.1),
    "same place": Mesh(np.zeros((3, 3)), np.tile([[0, 1, 2]], (20, 1)), name="degenerate"),
}


def opened(eights: ObbEights) -> np.ndarray:
    return eights.nodes()[:, 16].view(np.int32)


@pytest.mark.parametrize("name", MESHES)
def test_boxes_are_those_of_the_tree_and_every_triangle_is_a_leaf_once(name):
    tree, nodes = ObbTree.of(MESHES[name], "cpu").records(), ObbEights.of(MESHES[name]).nodes()
    there = nodes[:, 3] >= 0.0
    opens = opened(ObbEights.of(MESHES[name]))
    triangles = -1 - opens[there & (opens < 0)]
    assert sorted(triangles) == list(range(len(MESHES[name].faces)))
    leaves = {int(record["triangle"]): record for record in tree if record["triangle"] >= 0}
    for node, lane in np.argwhere(there & (opens < 0)):
        record, row = leaves[-1 - opens[node, lane]], nodes[node, :, lane]
        assert np.array_equal(row[0:3], record["centre"])
        assert np.array_equal(row[3:6], record["half"])
        assert np.array_equal(row[6:15].reshape(3, 3), record["axes"].T)
        assert row[15] == record["radius"]


@pytest.mark.parametrize("name", MESHES)
def test_every_node_is_opened_once_and_the_first_holds_the_root_alone(name):
    eights = ObbEights.of(MESHES[name])
    nodes, opens = eights.nodes(), opened(eights)
    there = nodes[:, 3] >= 0.0
    assert there[0].tolist() == [True] + 7 * [False]
    assert sorted(opens[there & (opens >= 0)]) == list(range(1, len(nodes)))
    assert there[1:].sum(axis=1).min(initial=2) >= 2


def test_nodes_of_a_large_tree_are_opened_from_the_largest_box_down():
    nodes = ObbEights.of(MESHES["torus"]).nodes()
    assert (nodes[:, 3] >= 0.0).all(axis=1).mean() > 0.1
    assert len(nodes) < 0.5 * len(MESHES["torus"].faces)


def test_tables_of_several_shapes_are_their_eights_one_after_the_other():
    meshes = [MESHES["block"], MESHES["torus"], MESHES["two"]]
    tables = eight_tables(meshes)
    rows, first = tables.rows.numpy().reshape(-1, 17, 8), tables.first.numpy()
    for mesh, begin in zip(meshes, first, strict=True):
        own = ObbEights.of(mesh).nodes()
        assert np.array_equal(rows[begin : begin + len(own), :16], own[:, :16])
        inner = opened(ObbEights.of(mesh))
        there = own[:, 3] >= 0.0
        moved = rows[begin : begin + len(own), 16].view(np.int32)
        assert np.array_equal(moved[there], np.where(inner >= 0, inner + begin, inner)[there])


@wp.kernel
def _all_leaves(
    first: int,
    rows_a: wp.array[wp.float32],
    rows_b: wp.array[wp.float32],
    shift: wp.vec3d,
    slack: wp.float32,
    scratch: wp.array2d[int],
    out: wp.array2d[int],
):
    begin_at(0, 0, 0, scratch)
    turn = wp.identity(n=3, dtype=wp.float64)
    found = next_leaves(rows_a, rows_b, turn, shift, slack, LEAVES, 0, scratch)
    while found > 0:
        for k in range(found):
            a = scratch[0, FIRST_LEAF + 2 * k]
            b = scratch[0, FIRST_LEAF + 2 * k + 1]
            out[a, b] = out[a, b] + 1
        found = next_leaves(rows_a, rows_b, turn, shift, slack, LEAVES, 0, scratch)


@pytest.mark.parametrize(("first", "second"), [("block", "torus"), ("torus", "block"), ("one triangle", "torus")])
@pytest.mark.parametrize("slack", [1e-6, 0.3, 50.0])
def test_the_descent_of_two_trees_lists_all_triangles_that_are_near_once(first, second, slack):
    a, b = MESHES[first], MESHES[second]
    shift = np.array([1.5, 0.2, 0.1])
    out = wp.zeros((len(a.faces), len(b.faces)), dtype=wp.int32, device="cpu")
    scratch = wp.empty((1, SCRATCH), dtype=wp.int32, device="cpu")
    inputs = [ObbEights.of(a).rows, ObbEights.of(b).rows, wp.vec3d(*shift), wp.float32(slack), scratch]
    launch(_all_leaves, 1, inputs, [out], device=wp.get_device("cpu"))
    listed = out.numpy()
    assert listed.max() == 1
    corners = np.linalg.norm(
        a.vertices[a.faces][:, None, :, None] - (b.vertices[b.faces] + shift)[None, :, None, :], axis=-1
    ).min(axis=(2, 3))
    assert (listed[corners < slack] == 1).all()
    assert (listed == 1).all() == (slack == 50.0)

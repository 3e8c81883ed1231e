"""OBB trees: their shape, that every box holds its triangles, the min-max rule, and that threads do not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tangere as tg
from tangere.bvh.obb import DEPTH_LIMIT, ObbTree
from tangere.runtime import InputError, using_threads

SOUPS = {
    "anywhere": lambda rng, n: rng.normal(size=(n, 3, 3)),
    "all at one point": lambda rng, n: np.full((n, 3, 3), 2.5),
    "the same triangle": lambda rng, n: np.tile(rng.normal(size=(1, 3, 3)), (n, 1, 1)),
    "on a line": lambda rng, n: rng.random((n, 3, 1)) * [1.0, 2.0, 3.0],
    "on a plane": lambda rng, n: rng.random((n, 3, 3)) * [1.0, 1.0, 0.0] + [0.0, 0.0, 7.0],
    "points": lambda rng, n: np.repeat(rng.normal(size=(n, 1, 3)), 3, axis=1),
    "in two far heaps": lambda rng, n: rng.normal(size=(n, 3, 3)) * 1e-9 + rng.integers(0, 2, (n, 1, 1)) * 1e9,
    "graded": lambda rng, n: rng.normal(size=(n, 3, 3)) * 2.0 ** -np.arange(n)[:, None, None],
    "huge": lambda rng, n: rng.normal(size=(n, 3, 3)) * 1e36,
    "tiny": lambda rng, n: rng.normal(size=(n, 3, 3)) * 1e-30,
    "far away": lambda rng, n: rng.normal(size=(n, 3, 3)) + 1e7,
}


def soup(triangles: np.ndarray) -> tg.Mesh:
    return tg.Mesh(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3))


def below(tree: ObbTree) -> list[np.ndarray]:
    """The triangles below each node, found from the links alone."""
    records = tree.records()
    sets: list[np.ndarray] = [np.empty(0, int)] * len(records)
    for node in range(len(records) - 1, -1, -1):
        right, triangle = int(records["right"][node]), int(records["triangle"][node])
        assert (right < 0) == (triangle >= 0)
        sets[node] = np.array([triangle]) if right < 0 else np.concatenate([sets[node + 1], sets[right]])
    return sets


def depth_of(tree: ObbTree) -> int:
    right, depth = tree.records()["right"], np.zeros(len(tree), int)
    for node in range(len(tree)):
        if right[node] >= 0:
            depth[[node + 1, right[node]]] = depth[node] + 1
    return int(depth.max())


def check_tree(tree: ObbTree, mesh: tg.Mesh) -> None:
    """Shape, and containment in double precision for both readings of a record."""
    records, count = tree.records(), len(mesh.faces)
    assert records.dtype.itemsize == 72
    assert len(tree) == 2 * count - 1
    assert tree.depth == depth_of(tree) <= DEPTH_LIMIT
    sets = below(tree)
    assert np.array_equal(np.sort(sets[0]), np.arange(count))
    corners = mesh.vertices[mesh.faces]
    assert np.array_equal(tree.corners.numpy().reshape(corners.shape), corners)
    for node, triangles in enumerate(sets):
        right = records["right"][node]
        assert right < 0 or right == node + 2 * len(sets[node + 1])
        centre, half, axes = (records[name][node].astype(float) for name in ("centre", "half", "axes"))
        points = corners[triangles].reshape(-1, 3) - centre
        assert (np.abs(points @ axes) <= half).all()
        assert (np.abs(np.linalg.solve(axes, points.T).T) <= half).all()
        assert np.abs(axes.T @ axes - np.eye(3)).max() < 2.0**-22
        assert np.linalg.norm(axes @ (half * SIGNS).T, axis=0).max() <= float(records["radius"][node])


SIGNS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T


@pytest.mark.feature("F-R-20")
@pytest.mark.parametrize("place", SOUPS)
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_boxes_of_any_triangles_hold_them_in_a_tree_in_preorder(place, count, rng):
    mesh = soup(SOUPS[place](rng, count))
    for rule in ("min-max", "median"):
        check_tree(ObbTree.build(mesh, rule=rule), mesh)


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 9), min_size=1, max_size=40), st.integers(-30, 30))
def test_lattice_triangles_with_all_their_degeneracies_make_a_proper_tree(cells, exponent):
    mesh = soup(np.array(cells, float).reshape(-1, 3, 3) * 10.0**exponent)
    check_tree(ObbTree.build(mesh), mesh)


@pytest.mark.feature("F-R-20")
@pytest.mark.parametrize("bumps", [0.0, 0.1])
def test_the_larger_child_is_no_larger_than_in_a_median_split(bumps, rng):
    """At every node the oracle cuts the set below it at the median, and fits both halves as trees of their own.

    Boxes are compared with the padding of the rule: a twentieth of the parent's longest half.
    """
    smooth = tg.generate.torus(1200, bumps=bumps)
    mesh = smooth.replace(vertices=smooth.vertices + 1e-3 * rng.normal(size=smooth.vertices.shape))  # so nothing ties
    tree = ObbTree.build(mesh)
    check_tree(tree, mesh)
    records, sets = tree.records(), below(tree)
    sizes = records["half"].astype(float)
    centroids = mesh.vertices[mesh.faces].mean(axis=1)
    better = 0
    for node in [n for n in range(len(tree)) if len(sets[n]) >= 5]:
        axis = records["axes"][node][:, np.argmax(records["half"][node])].astype(float)
        ordered = sets[node][np.argsort(centroids[sets[node]] @ axis)]
        parts = np.split(ordered, [len(ordered) // 2])
        halves = [ObbTree.build(tg.Mesh(mesh.vertices, mesh.faces[part])) for part in parts]
        padding = 0.05 * sizes[node].max()
        median = max(float((half.records()["half"][0].astype(float) + padding).prod()) for half in halves)
        larger = max((sizes[child] + padding).prod() for child in (node + 1, records["right"][node]))
        assert larger <= median * (1.0 + 1e-4)  # float32 records, and other sums of other orders
        better += larger < 0.99 * median
    assert better > 10


PARTS = {
    "bumpy torus": lambda: tg.generate.torus(5000, bumps=0.2),
    "ball": lambda: tg.generate.icosphere(triangles=1280),
    "door": lambda: tg.generate.door_panel(4000),
}


@pytest.mark.feature("F-R-20")
@pytest.mark.parametrize("part", PARTS)
def test_the_larger_children_of_all_nodes_take_no_more_room_than_in_a_tree_of_median_splits(part):
    mesh = PARTS[part]()
    larger = []
    for rule in ("min-max", "median"):
        tree = ObbTree.build(mesh, rule=rule)
        check_tree(tree, mesh)
        records = tree.records()
        volumes = records["half"].astype(float).prod(axis=1)
        inner = np.flatnonzero(records["right"] >= 0)
        larger.append(np.maximum(volumes[inner + 1], volumes[records["right"][inner]]).sum())
    assert larger[0] <= larger[1]


def test_the_two_skins_of_a_door_part_while_the_boxes_are_still_wide():
    """Two sheets a hundredth of their length apart: boxes that hold both end at ten times the distance."""
    skin = tg.generate.sheet(9800, size=(1.0, 1.0))
    mesh = tg.Mesh.join([skin, skin.replace(vertices=skin.vertices + [0.0, 0.0, 0.01])])
    tree = ObbTree.build(mesh)
    longest = tree.records()["half"].max(axis=1)
    both = [node for node, found in enumerate(below(tree)) if found.min() < 9800 <= found.max()]
    assert both
    assert longest[both].min() > 0.05


def test_a_mesh_that_tempts_to_deep_trees_stays_within_the_depth_limit(rng):
    """Sizes halve from triangle to triangle: cutting at the mean takes one or two off at a time."""
    count = 110
    mesh = soup(rng.normal(size=(count, 3, 3)) * 2.0 ** -np.arange(count)[:, None, None])
    tree = ObbTree.build(mesh)
    assert math.log2(count) < tree.depth <= DEPTH_LIMIT
    check_tree(tree, mesh)


def test_the_tree_is_the_same_for_any_number_of_threads():
    mesh = tg.generate.torus(8000, bumps=0.1)
    seen = set()
    for threads in (1, 2, 5):
        with using_threads(threads):
            tree = ObbTree.build(mesh)
            seen.add((tree.records().tobytes(), tree.depth))
    assert len(seen) == 1


def test_the_tree_of_a_mesh_is_built_once(device):
    mesh = tg.generate.torus(200)
    tree = ObbTree.of(mesh, device)
    assert ObbTree.of(mesh, device) is tree
    assert tree.nodes.device.alias == device
    assert tree.records().tobytes() == ObbTree.build(mesh).records().tobytes()


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="too large for float32"):
        ObbTree.build(soup(np.full((1, 3, 3), 1e38)))
    with pytest.raises(InputError, match="'min-max' or 'median'"):
        ObbTree.build(tg.generate.torus(200), rule="mean")

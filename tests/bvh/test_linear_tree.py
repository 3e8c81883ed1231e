"""The linear tree: its shape, what its boxes hold, and that neither depends on threads."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

from oracles.helpers.box_codes import at_rest, corners, on_device
from tangere.bvh.lbvh import LANES, LinearTree
from tangere.runtime import using_threads

PLACES = {
    "anywhere": lambda rng, n: rng.normal(size=(n, 3)),
    "at one point": lambda rng, n: np.full((n, 3), 2.5),
    "on a line": lambda rng, n: np.arange(n)[:, None] * [1.0, 0.0, 0.0],
    "on a slanted line": lambda rng, n: rng.random(n)[:, None] * [1.0, 2.0, 3.0],
    "on a plane": lambda rng, n: rng.random((n, 3)) * [1.0, 1.0, 0.0],
    "in two far heaps": lambda rng, n: rng.normal(size=(n, 3)) * 1e-9 + rng.integers(0, 2, (n, 1)) * 1e9,
    "few distinct": lambda rng, n: rng.integers(0, 2, (n, 3)).astype(float),
}


def tree_over(points: np.ndarray, items: np.ndarray | None = None) -> LinearTree:
    items = np.arange(len(points), dtype=np.int32)[:, None] if items is None else items
    bounds = np.stack([points.min(axis=0), points.max(axis=0)])
    return LinearTree.build(wp.array(items, device="cpu"), wp.array(points, dtype=wp.vec3d, device="cpu"), bounds)


def random_boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    """(n, 2, 2, 3) moving boxes of all sizes."""
    begin, end = (at_rest(np.sort(rng.normal(size=(count, 2, 3)), axis=1))[:, 0] for _ in range(2))
    return np.stack([begin, end], axis=1)


def check_structure(tree: LinearTree, items: np.ndarray) -> None:
    """Walk the tree from the root, as a reader of the docstring would, and see that everything fits together."""
    first, last, skip, parent = (x.numpy() for x in (tree.first, tree.last, tree.skip, tree.parent))
    order, count, nodes = tree.order.numpy(), len(items), len(first)
    assert np.array_equal(np.sort(order), np.arange(count))
    assert np.array_equal(tree.items.numpy(), items[order])
    assert (first[0], last[0], skip[0], parent[0]) == (0, count - 1, nodes, -1)
    seen, leaves, covered = [], [], []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        seen.append(node)
        if last[node] - first[node] < LANES:
            leaves.append(node)
            covered += range(first[node], last[node] + 1)
            assert skip[node] == node + 1
            continue
        left = node + 1
        right = skip[left]
        assert (parent[left], parent[right]) == (node, node)
        assert (first[left], last[right]) == (first[node], last[node])
        assert first[left] <= last[left] == first[right] - 1 < last[right]
        assert skip[right] == skip[node]
        waiting += [right, left]
    assert seen == list(range(nodes))  # preorder, every node once
    assert covered == list(range(count))  # every item in exactly one cluster
    assert tree.clusters.numpy().tolist() == leaves
    units = tree.units.numpy()
    assert np.array_equal(units, np.stack([first[leaves], last[leaves], leaves], axis=1))
    sample = {tuple(unit) for unit in tree.sample.numpy().tolist()}
    assert len(sample) == len(tree.sample) >= min(len(units), 1)
    assert sample <= {tuple(unit) for unit in units.tolist()}


def check_boxes(tree: LinearTree, boxes: np.ndarray) -> None:
    """Boxes of items and nodes are unions of vertex boxes, bit for bit, and the lanes repeat them."""
    fitted = tree.fit(on_device(boxes))
    items, nodes, vertices = corners(fitted.items), corners(fitted.nodes), tree.items.numpy()
    assert np.array_equal(items[:, :, 0], boxes[vertices, :, 0].min(axis=1))
    assert np.array_equal(items[:, :, 1], boxes[vertices, :, 1].max(axis=1))
    for node, (first, last) in enumerate(zip(tree.first.numpy(), tree.last.numpy(), strict=True)):
        assert np.array_equal(nodes[node, :, 0], items[first : last + 1, :, 0].min(axis=0))
        assert np.array_equal(nodes[node, :, 1], items[first : last + 1, :, 1].max(axis=0))
    rows, numbers = fitted.lanes.numpy().reshape(-1, 12, LANES), tree.corners.numpy()
    for cluster, node in enumerate(tree.clusters.numpy()):
        first, last = tree.first.numpy()[node], tree.last.numpy()[node]
        assert tree.cluster.numpy()[node] == cluster
        assert np.array_equal(rows[cluster, :, : last - first + 1].T, fitted.items.numpy()[first : last + 1])
        assert np.array_equal(numbers[cluster, :, : last - first + 1].T, vertices[first : last + 1])
        assert (numbers[cluster, :, last - first + 1 :] == -1).all()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 17, 1000])
def test_every_item_is_in_one_small_cluster_of_a_tree_in_preorder(place, count, rng):
    points = PLACES[place](rng, count)
    tree = tree_over(points)
    check_structure(tree, np.arange(count)[:, None])
    check_boxes(tree, random_boxes(rng, count))


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=60), st.integers(-300, 90))
def test_any_points_make_a_proper_tree(cells, exponent):
    points = np.array(cells, dtype=float) * 10.0**exponent
    check_structure(tree_over(points), np.arange(len(points))[:, None])


@pytest.mark.parametrize("width", [2, 3])
def test_a_tree_of_edges_or_faces_keeps_their_vertices_in_order(width, rng):
    points = rng.normal(size=(100, 3))
    items = rng.integers(0, 100, (333, width)).astype(np.int32)
    tree = tree_over(points, items)
    check_structure(tree, items)
    check_boxes(tree, random_boxes(rng, 100))


def test_boxes_as_large_as_float32_allows_are_kept(rng):
    check_boxes(tree_over(rng.normal(size=(50, 3))), 2.0**124 * random_boxes(rng, 50).clip(-4, 4))


def test_neighbours_in_space_are_neighbours_in_the_tree():
    """What a tree is for: the clusters of a line of points hardly overlap."""
    points = np.random.default_rng(3).permutation(512)[:, None] * [1.0, 0.0, 0.0]
    tree = tree_over(points)
    x = points[tree.order.numpy(), 0]
    lengths = [np.ptp(x[first : last + 1]) for first, last, _ in tree.units.numpy()]
    assert max(lengths) < 8.0


def test_two_fits_of_one_tree_do_not_disturb_each_other(rng):
    tree = tree_over(rng.normal(size=(300, 3)))
    first = tree.fit(on_device(random_boxes(rng, 300)))
    before = first.nodes.numpy().copy()
    tree.fit(on_device(random_boxes(rng, 300)))
    assert np.array_equal(first.nodes.numpy(), before)


def test_the_tree_and_its_boxes_are_the_same_for_any_number_of_threads(rng):
    points = rng.normal(size=(20_000, 3))
    boxes = on_device(random_boxes(rng, 20_000))
    seen = []
    for threads in (1, 2, 7):
        with using_threads(threads):
            tree = tree_over(points)
            fitted = tree.fit(boxes)
        columns = (tree.order, tree.first, tree.last, tree.skip, tree.parent, tree.sample, tree.corners)
        columns += (fitted.items, fitted.lanes, fitted.nodes)
        seen.append([column.numpy().tobytes() for column in columns])
    assert seen[0] == seen[1] == seen[2]

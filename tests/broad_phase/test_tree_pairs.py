"""The traversal finds exactly the pairs whose boxes meet, each once, whatever room its output starts with."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.helpers.box_codes import at_rest, on_device
from tangere.broad_phase.deforming import BvhSide, SearchedItems, keep_all, pairs
from tangere.bvh.lbvh import LinearTree
from tangere.runtime import SOUND, using_threads
from tangere.runtime import append_buffer as collecting

wp.set_module_options(SOUND)


@wp.func
def keep_even_sums(search: SearchedItems, i: int, j: int) -> bool:
    return (search.items_a[i, 0] + search.base_a + search.items_b[j, 0] + search.base_b) % 2 == 0


LAYOUTS = {
    "scattered": lambda rng, n: (rng.normal(size=(n, 3)), 0.2),
    "crowded": lambda rng, n: (rng.normal(size=(n, 3)), 1.5),
    "all at one point": lambda rng, n: (np.zeros((n, 3)), 0.1),
    "on a grid, touching": lambda rng, n: (rng.integers(0, 6, (n, 3)).astype(float), 0.5),
    "apart": lambda rng, n: (np.arange(n)[:, None] * [3.0, 0.0, 0.0], 1.0),
}


def boxes_of(layout: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 2, 2, 3) boxes of different shapes around points, that go their own ways."""
    centres, size = LAYOUTS[layout](rng, count)
    half = size * (rng.choice([0.5, 1.0], (count, 3)) if layout == "on a grid, touching" else rng.random((count, 3)))
    boxes = at_rest(np.stack([centres - half, centres + half], axis=1))
    if layout == "on a grid, touching":
        return boxes
    moved = boxes[:, 1] + rng.normal(size=(count, 1, 3)) * size
    return np.stack([boxes[:, 0], at_rest(moved)[:, 0]], axis=1)


def side(boxes: np.ndarray, base: int = 0, tree: LinearTree | None = None) -> BvhSide:
    """A partner whose items are single vertices with these boxes."""
    points = boxes[:, 0].mean(axis=1).astype(np.float64)
    if tree is None:
        items = wp.array(np.arange(len(boxes), dtype=np.int32)[:, None], device="cpu")
        bounds = np.stack([points.min(axis=0), points.max(axis=0)])
        tree = LinearTree.build(items, wp.array(points, dtype=wp.vec3d, device="cpu"), bounds)
    return BvhSide(tree, tree.fit(on_device(boxes)), base)


def found(a: BvhSide, b: BvhSide, keep=keep_all, **options) -> list[tuple[int, int]]:
    """Item numbers of the pairs, as often as the traversal gives them."""
    nothing = wp.zeros(1, dtype=wp.vec3d, device="cpu")
    places = pairs(keep, a, b, nothing, nothing, until=1.0, **options).numpy().reshape(-1, 2)
    order_a, order_b = a.tree.order.numpy(), b.tree.order.numpy()
    return [(int(order_a[i]), int(order_b[j])) for i, j in places]


def meeting(a: np.ndarray, b: np.ndarray) -> set[tuple[int, int]]:
    """Brute force: no axis separates them at both ends the same way round."""
    above, below = a[:, None, :, 0] > b[None, :, :, 1], a[:, None, :, 1] < b[None, :, :, 0]
    apart = (above.all(axis=2) | below.all(axis=2)).any(axis=2)
    return {(int(i), int(j)) for i, j in np.argwhere(~apart)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("count_a", "count_b"), [(1, 1), (1, 9), (8, 8), (9, 40), (150, 220)])
def test_between_two_trees_every_meeting_pair_is_found_once(layout, count_a, count_b, rng):
    a, b = boxes_of(layout, count_a, rng), boxes_of(layout, count_b, rng)
    result = found(side(a), side(b))
    assert len(result) == len(set(result))
    assert set(result) == meeting(a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 2, 8, 9, 17, 200])
def test_within_one_tree_every_meeting_pair_is_found_once_and_none_with_itself(layout, count, rng):
    boxes = boxes_of(layout, count, rng)
    only = side(boxes)
    result = [tuple(sorted(pair)) for pair in found(only, only)]
    assert len(result) == len(set(result))
    assert set(result) == {(i, j) for i, j in meeting(boxes, boxes) if i < j}


def test_two_things_with_one_tree_meet_like_two_things(rng):
    """Copies of one part share their tree; each has boxes of its own."""
    a, b = boxes_of("crowded", 60, rng), boxes_of("crowded", 60, rng)
    first = side(a)
    second = side(b, base=60, tree=first.tree)
    result = found(first, second)
    assert len(result) == len(set(result))
    assert set(result) == meeting(a, b)


def test_the_keep_function_decides_and_sees_the_right_items(rng):
    a, b = boxes_of("crowded", 70, rng), boxes_of("crowded", 90, rng)
    result = found(side(a, base=100), side(b, base=1), keep_even_sums)
    assert set(result) == {(i, j) for i, j in meeting(a, b) if (i + 100 + j + 1) % 2 == 0}


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_output_that_does_not_fit_grows_and_loses_nothing(threads, rng, monkeypatch):
    boxes = boxes_of("crowded", 600, rng)
    only = side(boxes)
    monkeypatch.setattr(collecting, "_START", 1)
    monkeypatch.setattr(collecting, "_segment_capacity", {})
    with using_threads(threads):
        result = found(only, only)
        again = found(only, only)
    assert {tuple(sorted(pair)) for pair in result} == {(i, j) for i, j in meeting(boxes, boxes) if i < j}
    assert len(result) == len(set(result))
    assert again == result
    assert collecting._segment_capacity  # it did grow


def test_pairs_come_in_the_same_order_for_any_number_of_threads(rng):
    boxes = boxes_of("scattered", 3000, rng)
    only = side(boxes)
    results = []
    for threads in (1, 2, 7):
        with using_threads(threads):
            results.append(found(only, only))
    assert results[0] == results[1] == results[2]


def test_the_sample_gives_some_of_the_pairs_and_nothing_else(rng):
    a, b = boxes_of("crowded", 2000, rng), boxes_of("crowded", 50, rng)
    first, second = side(a), side(b)
    sampled, everything = found(first, second, sampled=True), set(found(first, second))
    assert len(sampled) == len(set(sampled))
    assert 0 < len(sampled) < len(everything)
    assert set(sampled) <= everything

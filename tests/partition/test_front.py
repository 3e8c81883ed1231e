"""The front remembers where a search ended: the same pairs, fewer tests of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.bound import TreeBoxes
from tangere.partition.broad_phase import triangle_pairs
from tangere.partition.front import Front
from tangere.partition.pipeline_surfaces import Surfaces
from tangere.shape import Mesh, generate


def rows(pairs) -> np.ndarray:
    table = pairs.numpy().reshape(-1, 2)
    return table[np.lexsort((table[:, 1], table[:, 0]))]


def frames(count: int) -> list[Mesh]:
    """A knot that sinks together."""
    knot = generate.trefoil_knot(720)
    return [knot.replace(vertices=knot.vertices * [1.0, 1.0, 1.0 - 0.03 * k]) for k in range(count)]


@pytest.mark.feature("F-L-74")
def test_a_front_gives_the_pairs_of_brute_force_at_every_step_with_fewer_tests_than_from_the_root():
    front, saved = None, 0
    tree = Surfaces.of(frames(1), "cpu").bodies[0].faces
    for mesh in frames(5):
        surfaces = Surfaces.of([mesh], "cpu")
        boxes = tree.fit(surfaces.vertex_boxes(0.6))
        root = Front.from_root(tree, boxes)
        front = root if front is None else front.moved(boxes)
        expected = rows(triangle_pairs(surfaces, 0.6, broad_phase="brute"))
        assert np.array_equal(rows(front.pairs), expected)
        assert np.array_equal(rows(root.pairs), expected)
        saved += root.tests - front.tests
        if front.tests != root.tests:
            assert front.tests < root.tests
    assert saved > 0


def test_a_front_that_has_grown_too_large_starts_afresh():
    calm = frames(1)[0]
    tree = Surfaces.of([calm], "cpu").bodies[0].faces

    def boxes(mesh: Mesh) -> TreeBoxes:
        return tree.fit(Surfaces.of([mesh], "cpu").vertex_boxes(0.1))

    front = Front.from_root(tree, boxes(calm))
    wild = calm.replace(vertices=calm.vertices * 0.01)
    crowded = front.moved(boxes(wild))
    assert crowded.fresh > 2 * front.fresh  # it did start afresh
    assert crowded.tests > len(crowded.nodes)
    back = crowded.moved(boxes(calm))
    assert np.array_equal(rows(back.pairs), rows(front.pairs))

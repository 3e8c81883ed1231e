"""The front remembers where a search ended: the same pairs, fewer tests of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.near_pairs import SCENES, assert_same_contacts, reach
from tangere.broad_phase.triangles import Surfaces, triangle_pairs
from tangere.broad_phase.triangles.front import BvhFront
from tangere.bvh.lbvh import TreeBoxes
from tangere.query.proximity import proximity
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def rows(pairs) -> np.ndarray:
    table = pairs.numpy().reshape(-1, 2)
    return table[np.lexsort((table[:, 1], table[:, 0]))]


def frames(count: int) -> list[Mesh]:
    """A knot that sinks together."""
    knot = generate.trefoil_knot(720)
    return [knot.replace(vertices=knot.vertices * [1.0, 1.0, 1.0 - 0.03 * k]) for k in range(count)]


def front_of(meshes: list[Mesh], device: str = "cpu") -> BvhFront:
    """Where the last search of these topologies ended."""
    return Surfaces.of(meshes, device).layout.cache["front"]


@pytest.mark.feature("F-L-74")
def test_a_front_gives_the_pairs_of_brute_force_at_every_step_with_fewer_tests_than_from_the_root(device):
    saved = 0
    for number, mesh in enumerate(frames(5)):
        surfaces = Surfaces.of([mesh], device)
        expected = rows(triangle_pairs(surfaces, 0.6, broad_phase="brute"))
        assert np.array_equal(rows(triangle_pairs(surfaces, 0.6, broad_phase="front")), expected)
        front = front_of([mesh], device)
        root = BvhFront.from_root(front.tree, front.tree.fit(surfaces.vertex_boxes(0.6)))
        assert front.tests == root.tests if number == 0 else front.tests < root.tests
        saved += root.tests - front.tests
    assert saved > 0


@pytest.mark.feature("F-L-74")
@pytest.mark.parametrize("name", ["tori", "three bodies", "knot"])
def test_proximity_may_begin_where_the_last_call_ended(name, rng):
    """Step after step through the public call, all with all and each with each."""
    meshes = [Mesh(mesh.vertices, mesh.faces) for mesh in SCENES[name]]  # topologies that nobody has asked about
    distance, tests = reach(meshes), []
    for step in range(4):
        moved = [mesh.replace(vertices=mesh.vertices * (1.0 - 0.02 * step)) for mesh in meshes]
        found = proximity(moved, distance=distance, broad_phase="front", device="cpu")
        assert_same_contacts(found, moved, distance)
        tests.append(front_of(meshes).tests)
        if len(moved) == 2:
            found = proximity(*moved, distance=distance, broad_phase="front", device="cpu")
            assert_same_contacts(found, moved, distance, within=False)
    assert max(tests[1:]) < tests[0]


def test_a_front_that_has_grown_too_large_starts_afresh():
    calm = frames(1)[0]
    tree = Surfaces.of([calm], "cpu").bodies[0].faces

    def boxes(mesh: Mesh) -> TreeBoxes:
        return tree.fit(Surfaces.of([mesh], "cpu").vertex_boxes(0.1))

    front = BvhFront.from_root(tree, boxes(calm))
    wild = calm.replace(vertices=calm.vertices * 0.01)
    crowded = front.moved(boxes(wild))
    assert crowded.fresh > 2 * front.fresh  # it did start afresh
    assert crowded.tests > len(crowded.nodes)

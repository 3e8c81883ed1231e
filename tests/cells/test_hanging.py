"""Hanging nodes: found where geometry says, and tied so that what is linear stays linear."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.cell_operations import GRIDS, random_operation
from tangere.cells.generate import quad_grid
from tangere.cells.maps import constraint_matrix, hanging_nodes, split


def seen_by_geometry(map):
    """Vertices that lie on the boundary of a leaf without being one of its corners: only for boxes along the axes."""
    darts, origin = map.darts, map.numpy("origin")
    position, cell = map.positions, map.numpy("cell")[map.darts]
    found = set()
    for c in map.leaves:
        own = np.unique(origin[darts[cell == c]])
        low, high = position[own].min(axis=0), position[own].max(axis=0)
        box = (position[own] == low) | (position[own] == high)
        found |= set(own[~box[:, : map.dimension].all(axis=1)].tolist())
    return found


@pytest.mark.feature("F-P-75")
@pytest.mark.parametrize("name", ["quads", "hexahedra"])
def test_hanging_nodes_are_where_geometry_says_and_are_the_mean_of_their_parents(name, rng, device):
    map = GRIDS[name][0](device=device)
    for _ in range(5):
        random_operation(map, rng, 3)
    nodes = hanging_nodes(map)
    assert set(nodes.vertex.tolist()) == seen_by_geometry(map)
    assert len(nodes) > 0
    for i, vertex in enumerate(nodes.vertex):
        parents = nodes.parents[nodes.offsets[i] : nodes.offsets[i + 1]]
        assert len(parents) in ((2,) if map.dimension == 2 else (2, 4))
        np.testing.assert_allclose(map.positions[parents].mean(axis=0), map.positions[vertex], atol=1e-14)
    matrix, free = constraint_matrix(map)
    assert matrix.shape == (len(map.positions), len(free))
    alive = np.unique(map.numpy("origin")[map.darts])
    linear = 2.0 + map.positions @ [1.0, -3.0, 0.5]
    np.testing.assert_allclose((matrix @ linear[free])[alive], linear[alive], atol=1e-12)
    assert len(free) + len(nodes) == len(alive)


def test_a_map_of_one_level_has_none_and_a_t_junction_is_one():
    map = quad_grid(2, 1)
    assert len(hanging_nodes(map)) == 0
    split(map, [0])
    nodes = hanging_nodes(map)
    assert map.positions[nodes.vertex].tolist() == [[1.0, 0.5, 0.0]]
    assert nodes.cell.tolist() == [1]
    assert sorted(map.positions[nodes.parents, 1].tolist()) == [0.0, 1.0]

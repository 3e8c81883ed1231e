"""One-rings, rings of sets and rings on coarser levels, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import rings
from oracles.families.cell_operations import GRIDS, random_operation
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import ancestors, ring, split
from tangere.runtime import InputError


@pytest.mark.feature("F-P-12")
@pytest.mark.parametrize("name", GRIDS)
def test_rings_are_symmetric_and_equal_brute_force(name, rng):
    map = GRIDS[name][0](jitter=0.1)
    for _ in range(6):
        random_operation(map, rng, GRIDS[name][3])
    expected = rings(map)
    for c in map.leaves:
        row = map.rings.row(c)
        assert set(row.tolist()) == expected[c]
        assert c not in row
        assert all(c in expected[b] for b in row)


@pytest.mark.feature("F-P-13")
def test_the_ring_of_a_set_may_be_in_several_pieces():
    map = quad_grid(7, 7)
    centre = np.floor(map.numpy("centre")[:, :2]).astype(int)
    away = np.abs(centre - 3).max(axis=1)
    loop = np.flatnonzero(away == 2)  # a closed loop of cells: its ring is outside and inside
    assert sorted(ring(map, loop)) == sorted(np.flatnonzero((away == 1) | (away == 3)))
    block = hex_grid(5, 5, 5)
    away = np.abs(np.floor(block.numpy("centre")).astype(int) - 2).max(axis=1)
    shell = np.flatnonzero(away == 1)
    assert sorted(ring(block, shell)) == sorted(np.flatnonzero(away != 1))


@pytest.mark.feature("F-P-14")
@pytest.mark.parametrize("name", ["quads", "triangles", "hexahedra"])
def test_rings_on_a_coarser_level_are_those_of_the_coarser_map(name, rng):
    make, _, _, deepest = GRIDS[name]
    map, coarse = make(), make()
    kept = []
    for _ in range(2):  # the same cells split in both; then only one goes on
        cells = rng.choice(coarse.leaves, 2, replace=False)
        split(map, cells)
        split(coarse, cells)
        kept = coarse.levels.max()
    for _ in range(3):
        finest = map.leaves[map.levels[map.leaves] >= kept]
        split(map, rng.choice(finest, min(3, len(finest)), replace=False))
    expected = rings(coarse)
    up = ancestors(map, kept)
    for leaf in map.leaves:
        assert set(ring(map, [leaf], level=kept).tolist()) == expected[up[leaf]]
    level0 = rings(make())
    assert set(ring(map, [map.leaves[-1]], level=0).tolist()) == level0[ancestors(map, 0)[map.leaves[-1]]]


def test_levels_and_cells_that_are_none_are_refused():
    map = quad_grid(2, 2)
    split(map, [0])
    with pytest.raises(InputError, match="there is no level -1"):
        ring(map, [1], level=-1)
    with pytest.raises(InputError, match="there is no level -2"):
        ancestors(map, -2)
    with pytest.raises(InputError, match="cells: number 0 is 99"):
        ring(map, [99])
    with pytest.raises(InputError, match="cell 0 is not a leaf"):
        ring(map, [0])

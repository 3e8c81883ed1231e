"""The ten lines that plug cells into something else, as the documentation has them."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import tangere.cells
from oracles.cell_maps import check_map, check_registration, segment_cells


@pytest.mark.feature("F-P-74")
def test_ten_lines_of_the_documentation_create_ask_and_refine():
    lines = dedent((tangere.cells.__doc__ or "").split("::\n")[1]).strip()
    assert len(lines.splitlines()) <= 10
    names: dict = {}
    exec(lines, names)
    world, cell = names["world"], names["cell"]
    check_map(world.map)
    check_registration(world)
    assert len(names["split"]) > 0
    assert len(world.map.children(cell)) == 8  # as requested
    assert world.merge([cell]).tolist() == [cell]
    ring = set(world.map.rings.row(cell).tolist())
    for kind, sides in (("segments", [(1, 2)]), ("triangles", [(3, 4), (4, 5), (5, 3)])):
        crossed = set().union(*(segment_cells(world.map, *world.points[list(side)], 1e-9) for side in sides))
        assert names["beside"][kind] == ([0] if crossed & ring and cell not in crossed else [])
    assert names["beside"] == {"segments": [0], "triangles": [0]}
    assert np.array_equal(world.crossed("points", 0), [cell])

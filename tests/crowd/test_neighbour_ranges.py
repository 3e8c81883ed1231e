"""What agents see from their cell: runs of cells, and boxes that leave nobody out."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.cells.generate import quad_grid
from tangere.cells.maps import CellMap, split
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods, neighbourhoods_of, rounded_up, squared_gap
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@wp.kernel
def _shown(
    first: int, s: Neighbourhoods, cell: wp.array[int], x: wp.array[wp.vec3d], there: wp.array[int],
    y: wp.array[wp.vec3d], reach: wp.float64, count: wp.array[int], shown: wp.array[int],
):  # fmt: skip
    """How many runs of each cell hold the cell `there`, and how many of them are near enough to show y to x."""
    i = first + wp.tid()
    square = wp.length_sq(y[i] - x[i])
    if reach > wp.float64(0.0):
        square = reach * reach
    for k in range(s.cell[cell[i]].run, s.cell[cell[i]].run + s.cell[cell[i]].runs):
        run = s.run[k]
        if there[i] >= run.first and there[i] <= run.last:
            count[i] += 1
            if squared_gap(run, wp.vec3f(x[i])) <= rounded_up(square):
                shown[i] += 1


def _map(origin: float, size: float) -> CellMap:
    """A grid of 6 x 5 cells, some of them split, with its corner at (origin, -origin)."""
    x, y = np.meshgrid(np.arange(7), np.arange(6))
    corners = np.stack([origin + size * x.ravel(), -origin + size * y.ravel()], axis=1)
    squares = np.array([[7 * j + i, 7 * j + i + 1, 7 * j + i + 8, 7 * j + i + 7] for j in range(5) for i in range(6)])
    map = CellMap.from_polygons(corners, squares, device="cpu")
    split(map, np.array([8, 14, 15]), balanced=True)
    return map


def _pairs(map: CellMap, random: np.random.Generator) -> list[np.ndarray]:
    """Cells and points in them, some on their sides; for each one a cell of its ring, or itself, and a point in it."""
    leaves = np.repeat(map.leaves, 40)
    ends = np.array([random.choice([c, *map.rings.row(c)]) for c in leaves])
    found = []
    for cells in (leaves, ends):
        boxes = {
            c: map.positions[map.numpy("origin")[map.darts[map.numpy("cell")[map.darts] == c]]] for c in set(cells)
        }
        low, high = (np.array([pick(boxes[c], axis=0) for c in cells]) for pick in (np.min, np.max))
        part = random.choice([0.0, 1.0, 0.5, 0.999], low.shape)
        part = np.where(random.random(low.shape) < 0.5, random.random(low.shape), part)
        found += [cells.astype(np.int32), np.clip(low + part * (high - low), low, high)]
    return found


def _look(map: CellMap, pairs: list[np.ndarray], reach: float) -> tuple[np.ndarray, np.ndarray]:
    """See `_shown`. reach: 0: as far as the other point is."""
    cell, there = (wp.array(pairs[k], dtype=wp.int32, device="cpu") for k in (0, 2))
    x, y = (wp.array(pairs[k], dtype=wp.vec3d, device="cpu") for k in (1, 3))
    count, shown = (wp.zeros(len(cell), dtype=wp.int32, device="cpu") for _ in range(2))
    inputs = [neighbourhoods_of(map, 1.0), cell, x, there, y, wp.float64(reach)]
    launch(_shown, len(cell), inputs, [count, shown], device=wp.get_device("cpu"))
    return count.numpy(), shown.numpy()


@pytest.mark.parametrize(("origin", "size"), [(0.0, 2.0), (1234.5, 1.5), (3.0e6, 2.0), (0.0, 1e-9), (0.0, 1e-21)])
def test_whoever_is_within_reach_is_in_sight_wherever_the_map_is(origin: float, size: float) -> None:
    map = _map(origin, size)
    count, shown = _look(map, _pairs(map, np.random.default_rng(3)), 0.0)
    assert (count == 1).all()
    assert (shown == 1).all()


def test_from_the_middle_of_a_cell_that_is_wider_than_the_reach_other_columns_are_not_looked_at() -> None:
    map = quad_grid(6, 5, size=2.0, device="cpu")
    middle = map.numpy("centre")[map.leaves]
    inner = [c for c in map.leaves if 2.0 < middle[c, 0] < 10.0]
    here, there = np.array([(c, b) for c in inner for b in [c, *map.rings.row(c)] if middle[c, 1] == middle[b, 1]]).T
    count, shown = _look(map, [here, middle[here], there, middle[there]], 0.9)
    assert (count == 1).all()
    assert len(here) == 3 * len(inner)
    assert (shown == (here == there)).all()

"""How far an agent may go without asking for its cell, and the same ways whether it asks or not."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.cells.generate import quad_grid, triangle_grid
from tangere.cells.maps import CellMap, split
from tangere.crowd import Bubbles, Simulation, box
from tangere.crowd.agents.cell_triangles import (
    dart_holding,
    is_in_rectangle,
    rectangle_clearance,
    rounded_inward,
    square_around,
    triangle_clearance,
)
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods, neighbourhoods_of
from tangere.crowd.scenarios import corridor
from tangere.runtime import InputError, launch


@wp.kernel
def _rooms(
    first: int,
    s: Neighbourhoods,
    darts: wp.array[int],
    x: wp.array[wp.vec3d],
    out: wp.array[wp.vec2d],
    found: wp.array[int],
):
    i = first + wp.tid()
    d = dart_holding(s.triangle, darts[i], x[i])
    t = s.triangle[d]
    found[i] = d
    out[i] = wp.vec2d(rectangle_clearance(s.cell[t.cell].low, s.cell[t.cell].high, x[i]), triangle_clearance(t, x[i]))


@wp.kernel
def _kept(
    first: int,
    s: Neighbourhoods,
    darts: wp.array[int],
    x: wp.array[wp.vec3d],
    kept: wp.array2d[wp.vec4f],
    seen: wp.array2d[int],
):
    i = first + wp.tid()
    t = s.triangle[darts[i]]
    kept[i, 0] = rounded_inward(s.cell[t.cell].low, s.cell[t.cell].high)
    kept[i, 1] = square_around(x[i], triangle_clearance(t, x[i]))
    for k in range(2):
        seen[i, k] = int(is_in_rectangle(kept[i, k], x[i]))


def with_halves():
    """A grid with cells of two sizes, so that sides have a vertex in the middle."""
    map = quad_grid(4, 4, size=2.0, device="cpu")
    split(map, [5, 6])
    return map


MAPS = {
    "squares": lambda: quad_grid(4, 4, size=2.0, device="cpu"),
    "far away": lambda: CellMap.from_polygons(
        np.array([[0.0, 0], [2, 0], [3, 1], [2, 3], [0, 2]]) + 1e7, [[0, 1, 2, 3, 4]], device="cpu"
    ),
    "jittered": lambda: quad_grid(4, 4, size=2.0, jitter=0.3, device="cpu"),
    "triangles": lambda: triangle_grid(4, 4, size=2.0, device="cpu"),
    "halves": with_halves,
}


def corners(map, cell):
    """(k, 2) of a cell, around it."""
    origin, phi1 = map.numpy("origin"), map.numpy("phi1")
    start = d = int(map.numpy("anchor")[cell])
    found = []
    while True:
        found.append(map.positions[origin[d], :2])
        d = int(phi1[d])
        if d == start:
            return np.array(found)


def least_side(polygon, points):
    """The least signed distance of points from the sides of a convex polygon; negative outside."""
    after = np.roll(polygon, -1, axis=0)
    along = after - polygon
    away = points[:, None] - polygon[None]
    cross = along[None, :, 0] * away[..., 1] - along[None, :, 1] * away[..., 0]
    return (cross / np.linalg.norm(along, axis=1)).min(axis=1)


@pytest.mark.parametrize("name", MAPS)
def test_all_within_the_room_of_an_agent_is_in_its_cell(name, rng):
    map, cpu = MAPS[name](), wp.get_device("cpu")
    asked = 0
    for cell in map.leaves:
        polygon = corners(map, cell)
        weights = rng.dirichlet(np.full(len(polygon), 0.7), 60)
        place = weights @ (polygon - polygon[0]) + polygon[0]
        truth = least_side(polygon, place)
        place, truth = place[truth > 1e-6], truth[truth > 1e-6]
        count = len(place)
        x = wp.array(np.pad(place, ((0, 0), (0, 1))), dtype=wp.vec3d, device=cpu)
        darts = np.flatnonzero(map.numpy("cell") == cell)
        start = wp.array(rng.choice(darts, count).astype(np.int32), dtype=wp.int32, device=cpu)
        out, found = wp.empty(count, dtype=wp.vec2d, device=cpu), wp.empty(count, dtype=wp.int32, device=cpu)
        launch(_rooms, count, [neighbourhoods_of(map, 1.0), start, x], [out, found], device=cpu)
        assert np.isin(found.numpy(), darts).all()
        assert (out.numpy()[:, 1] >= 0).all()  # turned to the triangle that holds it
        assert (out.numpy() <= truth[:, None] + 1e-12).all()
        if name in ("squares", "halves"):  # there a rectangle is the whole cell
            np.testing.assert_allclose(out.numpy()[:, 0], truth, atol=1e-7)
        kept, within = (wp.empty((count, 2), dtype=kind, device=cpu) for kind in (wp.vec4f, wp.int32))
        launch(_kept, count, [neighbourhoods_of(map, 1.0), found, x], [kept, within], device=cpu)
        rectangles = kept.numpy()[within.numpy() == 1].astype(float)
        for pick in ([0, 1], [2, 1], [2, 3], [0, 3]):
            assert (least_side(polygon, rectangles[:, pick]) >= 0).all()
        if name != "far away":  # there single numbers are too coarse
            assert within.numpy()[truth > 1e-3, 1].mean() > 0.7
        asked += count
    assert asked > 40


@pytest.mark.parametrize("name", ["squares", "jittered", "triangles"])
def test_who_never_asks_twice_goes_the_same_way_as_who_always_does(name, rng):
    place = rng.uniform(0.5, 5.5, (40, 2))
    ends = []
    for forgetful in (False, True):
        simulation = Simulation(MAPS[name](), behaviour=Bubbles(range=0.5, wall_range=0.3), adaptive=None)
        simulation.add_points(place, goals=place[::-1].copy(), speed=4.0, radius=0.2, repeat=True)
        for _ in range(90):
            if forgetful:
                simulation.prepare()
                simulation.points.arrays.rectangle.zero_()
            simulation.step()
        ends.append((simulation.positions, simulation.cells))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
    for place, cell in zip(*ends[0], strict=True):
        assert least_side(corners(simulation.map, cell), place[None, :2])[0] > -1e-9


def among_bodies(count, in_order, place):
    """Points and boxes in the middle of cells of 48 m / count, after two steps."""
    simulation = Simulation(quad_grid(count, count, size=48.0 / count, device="cpu"), adaptive=None)
    simulation.add_points(place, goals=place[::-1].copy())
    where = np.array([[14.0 + 5.0 * k, 20.0 + 3.0 * (k % 2)] for k in range(5)])
    heading = np.tile([1.0, 0.3], (5, 1))
    simulation.add_bodies(box(4.0, 2.0), where, headings=heading, goals=where + [8.0, 0.0], speed=4.0)
    simulation.bodies.edges._in_order = in_order
    simulation.run(steps=3)
    return simulation.velocities, simulation.bodies.velocities


@pytest.mark.parametrize(("count", "in_order"), [(4, True), (6, True), (6, False)])
def test_no_edge_is_passed_over_however_cells_and_lists_are_made(count, in_order, rng):
    """The same forces as in one cell that holds everybody, where nothing is too far to be looked at."""
    place = rng.uniform(12.0, 36.0, (150, 2))
    whole, parts = among_bodies(1, True, place), among_bodies(count, in_order, place)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_two_hundred_boxes_have_room_in_the_corridor_and_cross_it():
    simulation = corridor(20, 200, device="cpu", adaptive=None)
    outlines = np.array([simulation.bodies.outline(k)[:, :2] for k in range(200)])
    centre = outlines.mean(axis=1)
    for k in range(200):
        for other in np.flatnonzero(np.linalg.norm(centre - centre[k], axis=1) < 4.5):
            if other != k:
                assert least_side(outlines[k], outlines[other]).max() < 0
    highest, lowest = centre[:, 1].copy(), centre[:, 1].copy()
    for _ in range(30):
        simulation.run(steps=20)
        now = simulation.bodies.positions.reshape(200, 4, 3).mean(axis=1)[:, 1]
        highest, lowest = np.maximum(highest, now), np.minimum(lowest, now)
    assert np.median(highest - lowest) > 25.0
    with pytest.raises(InputError, match="boxes do not fit"):
        corridor(20, 400, device="cpu")

"""When the cells of a crowd change: at its start, when much is to be done, or when little was to be for long."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.cells import Density
from tangere.cells.generate import quad_grid
from tangere.crowd import Simulation, box
from tangere.crowd.agents.arrays import BodyEdges, edge_may_be_near
from tangere.crowd.agents.density import DensityMarks
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods, nearest_wall_of_cell, neighbourhoods_of
from tangere.crowd.steering.bubbles import edge_field
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


def counts(simulation: Simulation) -> np.ndarray:
    return np.bincount(simulation.cells, minlength=simulation.map.cell_capacity)


def test_the_first_step_fits_the_cells_to_a_new_crowd_through_all_levels(rng):
    simulation = Simulation(quad_grid(4, 4, size=16.0, device="cpu"), adaptive=Density(8, 4))
    simulation.add_points(rng.uniform(1.0, 15.0, (400, 2)))
    simulation.step()
    assert simulation.operations[1] > 16
    full = counts(simulation) > 8
    assert (simulation.map.levels[full] == simulation.levels).all()
    before = simulation.operations
    simulation.step()
    assert simulation.operations == before


def test_a_budget_leaves_the_fitting_to_later_looks(rng):
    simulation = Simulation(quad_grid(4, 4, size=16.0, device="cpu"), adaptive=Density(8, 4), adapt_every=2, budget=1)
    simulation.add_points(rng.uniform(1.0, 15.0, (400, 2)))
    simulation.step()
    assert simulation.operations == [0, 0]
    simulation.step()
    assert simulation.operations[1] == 1


def test_few_crowded_cells_wait_for_the_eighth_look_and_many_do_not(rng):
    for crowded, looks in ((1, 8), (18, 1)):
        simulation = Simulation(quad_grid(20, 5, size=4.0, device="cpu"), adaptive=None, adapt_every=1)
        low = 4.0 * np.arange(crowded)[:, None, None] * [1.0, 0.0] + [0.5, 0.5]
        simulation.add_points((low + rng.uniform(0.0, 3.0, (crowded, 12, 2))).reshape(-1, 2))
        simulation.step()
        simulation.adaptive = Density(8, 4)
        for _ in range(looks):
            assert simulation.operations == [0, 0]
            simulation.step()
        assert simulation.operations[1] >= crowded


def crowded_and_empty(simulation: Simulation, limit: Density) -> tuple[list[int], list[int]]:
    """Cells to merge and to split, by looking at every cell."""
    map = simulation.map
    held = 2 * counts(simulation) + np.diff(simulation.bodies.edges.arrays.start.numpy())
    leaf, children = np.isin(np.arange(map.cell_capacity), map.leaves), map.children
    split = [c for c in range(map.cell_capacity) if map.levels[c] >= 0 and not leaf[c]]
    plain = [c for c in split if leaf[children(c)].all() and not map.arrays.obstacle.numpy()[children(c)].any()]
    few = [c for c in plain if held[children(c)].sum() <= 2 * limit.merge]
    return few, [c for c in map.leaves if map.levels[c] < simulation.levels and held[c] > 2 * limit.split]


@pytest.mark.parametrize("budget", [None, 3])
def test_looking_where_agents_are_finds_what_looking_at_every_cell_does(rng, monkeypatch, budget):
    limit, found, look = Density(8, 4), [], DensityMarks.cells_to_change
    simulation = Simulation(quad_grid(6, 6, size=12.0, device="cpu"), adaptive=limit, adapt_every=3, budget=budget)
    simulation.map.block("cell", [14])

    def watched(self, edges, budget=None, turn=0):
        few, many = look(self, edges, None)
        expected = crowded_and_empty(simulation, limit)
        assert (few.tolist(), many.tolist()) == expected
        found.append([len(few), len(many)])
        few, many = look(self, edges, budget, turn)
        if budget is not None:
            held = simulation.points.counts() + np.diff(edges.start.numpy())
            most = sorted(expected[1], key=lambda c: -held[c])[:budget]
            after = {int(c) for k in range(turn, turn + 40) for c in look(self, edges, budget, k)[0]}
            assert after == set(expected[0])  # each has its turn
            assert (len(few), sorted(many)) == (min(budget, len(expected[0])), sorted(most))
        return few, many

    monkeypatch.setattr(DensityMarks, "cells_to_change", watched)
    place = rng.uniform(1.0, 11.0, (150, 2))
    simulation.add_points(place, goals=place + [58.0, 55.0], speed=20.0)
    start = np.stack(np.meshgrid([40.0, 44.0, 48.0], [50.0, 53.0, 56.0, 59.0]), axis=-1).reshape(-1, 2)
    ahead = np.tile([0.0, -1.0], (len(start), 1))
    simulation.add_bodies(box(2.0, 1.0), start, headings=ahead, goals=start - [30.0, 40.0], speed=15.0)
    simulation.run(steps=90)
    assert (np.sum(found, axis=0) > 20).all()
    assert simulation.operations[1] > 20
    assert simulation.operations[0] > 20 or budget is not None


def test_nobody_in_a_map_that_was_not_split_is_nothing_to_look_at():
    simulation = Simulation(quad_grid(4, 4, size=4.0, device="cpu"))
    assert simulation.adapt() == 0


def test_bodies_close_together_split_their_cells_where_no_point_is(rng):
    """A body looks at the edges around it: with cells of any size these would be all edges of the crowd."""
    simulation = Simulation(quad_grid(4, 4, size=16.0, device="cpu"), adaptive=Density(8, 4), adapt_every=1)
    simulation.add_points(np.array([[60.0, 60.0]]))
    place = np.stack(np.meshgrid(np.arange(3.0, 14.0, 3.0), np.arange(3.0, 14.0, 3.0)), axis=-1).reshape(-1, 2)
    simulation.add_bodies(box(2.0, 1.0), place, headings=np.tile([1.0, 0.0], (len(place), 1)))
    simulation.run(steps=10)
    map, e = simulation.map, simulation.bodies.edges.arrays
    held = np.diff(e.start.numpy())
    assert held.sum() > 64
    assert (map.levels[held > 2 * 8] == simulation.levels).all()  # two edges count like one point
    # Far from all bodies, and at the point alone, cells stay as they are.
    centre = map.numpy("centre")[map.leaves, :2]
    assert (map.levels[map.leaves][centre.min(axis=1) > 32.0] == 0).all()


@pytest.mark.parametrize("cell", [3.0, 12.0])
def test_a_crowd_does_not_depend_on_who_is_too_far_to_be_looked_at(rng, cell):
    """The same first step in cells of any size: what boxes of runs leave out does not push."""
    place = rng.uniform(1.0, 23.0, (300, 2))
    ends = []
    for size in (24.0, cell):
        count = round(24.0 / size)
        simulation = Simulation(quad_grid(count, count, size=size, device="cpu"), adaptive=None)
        simulation.add_points(place, goals=place[::-1].copy())
        simulation.run(steps=2)
        ends.append(simulation.velocities)
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_agents_stay_sorted_by_cell_however_few_or_many_change_theirs(rng):
    """Starts of cells are moved where few agents change cell and added up where many do: both are what one counts."""
    for speed in (0.5, 40.0):
        simulation = Simulation(quad_grid(30, 30, size=2.0, device="cpu"), adaptive=None)
        place = rng.uniform(1.0, 59.0, (200, 2))
        simulation.add_points(place, goals=place[::-1].copy(), speed=speed)
        changes = 0
        for _ in range(40):
            before = simulation.cells
            simulation.step()
            changes += int((simulation.cells != before).sum())
            np.testing.assert_array_equal(simulation.points.counts(), counts(simulation))
            held = simulation.map.arrays.cell.numpy()[simulation.points.arrays.dart.numpy()]
            assert (np.diff(held) >= 0).all()
            np.testing.assert_array_equal(simulation.points.arrays.cell.numpy(), held)
        assert changes > 20


@wp.kernel
def _near(
    first: int, e: BodyEdges, x: wp.array[wp.vec3d], reach: wp.float64, maybe: wp.array[int], d: wp.array[wp.float64]
):
    i = first + wp.tid()
    up = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
    maybe[i] = int(edge_may_be_near(e, i, x[i], reach))
    d[i] = edge_field(x[i], wp.vec3d(), e.a[i], e.b[i], wp.vec3d(), wp.vec3d(), up).distance


def test_no_edge_within_reach_is_passed_over(rng):
    count, reach = 20_000, 1.5
    cpu = wp.get_device("cpu")
    a, x = rng.uniform(-4, 4, (2, count, 3))
    b = a + rng.normal(size=(count, 3)) * rng.choice([0.0, 1e-9, 0.5, 3.0], count)[:, None]
    e = BodyEdges()
    e.a, e.b = (wp.array(ends, dtype=wp.vec3d, device=cpu) for ends in (a, b))
    maybe, distance = wp.zeros(count, dtype=wp.int32, device=cpu), wp.zeros(count, dtype=wp.float64, device=cpu)
    launch(_near, count, [e, wp.array(x, dtype=wp.vec3d, device=cpu), reach], [maybe, distance], device=cpu)
    seen = maybe.numpy() == 1
    along, from_a = b - a, x - a
    part = (from_a * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-300)
    true = np.linalg.norm(from_a - np.clip(part, 0, 1)[:, None] * along, axis=1)
    assert seen[(true < reach) | (distance.numpy() < reach)].all()
    assert 0.05 < seen.mean() < 0.9  # and it does pass over others


@wp.kernel
def _walls(first: int, s: Neighbourhoods, cells: wp.array[int], x: wp.array[wp.vec3d], d: wp.array[wp.float64]):
    i = first + wp.tid()
    d[i] = nearest_wall_of_cell(s, cells[i], x[i]).distance


@pytest.mark.parametrize("reach", [0.7, 2.0])
@pytest.mark.parametrize("blocked", [[], [12, 13, 31]])
def test_the_nearest_wall_is_that_of_all_walls_around(rng, blocked, reach):
    size, cpu = 2.0, wp.get_device("cpu")
    map = quad_grid(8, 8, size=size, device="cpu")
    map.block("cell", np.array(blocked, np.int64))
    centre = map.numpy("centre")[:64, :2]
    place = rng.uniform(0, 16, (500, 2))
    cell = np.abs(place[:, None] - centre[None]).max(axis=2).argmin(axis=1)
    place, cell = place[~np.isin(cell, blocked)], cell[~np.isin(cell, blocked)]
    x = wp.array(np.pad(place, ((0, 0), (0, 1))), dtype=wp.vec3d, device=cpu)
    found = wp.zeros(len(place), dtype=wp.float64, device=cpu)
    inputs = [neighbourhoods_of(map, reach), wp.array(cell.astype(np.int32), device=cpu), x]
    launch(_walls, len(place), inputs, [found], device=cpu)
    border = np.concatenate([place, 16 - place], axis=1).min(axis=1)
    boxes = [np.linalg.norm(np.maximum(np.abs(place - centre[k]) - size / 2, 0), axis=1) for k in blocked]
    expected = np.min([border, *boxes], axis=0)
    near = expected < reach  # at most as far as the cells around are wide
    np.testing.assert_allclose(found.numpy()[near], expected[near], atol=1e-12)
    assert (found.numpy()[~near] >= reach - 1e-12).all()

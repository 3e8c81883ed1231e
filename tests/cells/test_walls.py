"""Walls and obstacles: blocked, freed, split and merged in any order, and never walked through."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.cell_maps import Snapshot, check_map
from oracles.families.cell_operations import GRIDS, inside, random_operation
from oracles.lattice_walls import Finest
from tangere.cells import Density
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import merge, split
from tangere.cells.registration import Registration, adapt
from tangere.cells.tracking import locate, move
from tangere.published.pitiot_trackers import CrossingPoints
from tangere.runtime import InputError, UnsupportedError

DEEPEST = {"quads": 3, "hexahedra": 2}


def change(finest, rng) -> None:
    """Block, free, split or merge something."""
    map = finest.map
    what = rng.choice(["cell", "cell", "dart", "dart", "refine", "refine"])
    if what == "refine":
        random_operation(map, rng, DEEPEST["quads" if map.dimension == 2 else "hexahedra"])
    elif what == "dart":
        finest.block("dart", int(rng.choice(map.darts)), bool(rng.random() < 0.7))
    else:
        cells = np.flatnonzero(map.numpy("cell_level") >= 0)  # split ones stand for what is below them
        finest.block("cell", int(rng.choice(cells)), bool(rng.random() < 0.5))


@pytest.mark.feature("F-P-6")
@pytest.mark.parametrize("name", DEEPEST)
def test_marks_are_what_was_blocked_and_freed_whatever_is_split_and_merged(name, rng, device, effort):
    finest = Finest(GRIDS[name][0](device=device), DEEPEST[name])
    for _ in range(effort(40 if name == "quads" else 15)):
        change(finest, rng)
        check_map(finest.map)
        finest.check()
    assert finest.walls
    assert finest.obstacles


@pytest.mark.feature("F-P-17")
@pytest.mark.parametrize("name", DEEPEST)
def test_nobody_ever_leaves_a_room_while_walls_and_obstacles_come_and_go(name, rng, device, effort):
    make, size, _, _ = GRIDS[name]
    map = make(device=device)
    finest = Finest(map, DEEPEST[name])
    stopped = 0
    for _ in range(effort(20 if name == "quads" else 8)):
        for _ in range(4):
            change(finest, rng)
        room, covered = finest.rooms(), {c: finest.cell(c) for c in map.leaves.tolist()}
        points = inside(rng, map, size, 200)
        found = locate(map, points)
        points = points[map.numpy("obstacle")[found.cell] == 0]
        for _ in range(3):
            found = locate(map, points)
            targets = points + rng.normal(0, 0.5 * size, points.shape) * [1, 1, map.dimension == 3]
            moved = move(map, points, targets, found.dart)
            before, after = ([room[next(iter(covered[c]))] for c in x.cell.tolist()] for x in (found, moved))
            assert before == after, "somebody went through a wall"
            assert not map.numpy("obstacle")[moved.cell].any()
            stopped += int(moved.blocked.sum())
            # Away from walls by a little, so that who is where does not hang on rounding.
            centre = map.numpy("centre")[moved.cell]
            points = moved.position + 1e-6 * (centre - moved.position)
    assert stopped > 50


def blocked_sizes(map) -> tuple[float, float]:
    """The length or area of all that is blocked itself (both sides), and the size of all obstacles."""
    now = Snapshot(map)
    own = (map.numpy("tag")[now.darts] >> 13) & 1 == 1
    a, b = now.corners[:, -2], now.corners[:, -1]
    facets = np.linalg.norm(b - a, axis=1)
    if map.dimension == 3:
        facets = np.linalg.norm(np.cross(a - now.corners[:, 1], b - now.corners[:, 1]), axis=1) / 2
    return float(facets[own].sum()), float(now.sizes[map.numpy("obstacle")[now.cell[now.darts]] == 1].sum())


@pytest.mark.parametrize("name", GRIDS)
def test_splits_and_merges_neither_make_nor_lose_a_wall_or_an_obstacle(name, rng, device, effort):
    make, _, _, deepest = GRIDS[name]
    map = make(device=device)
    for _ in range(effort(25 if map.dimension == 2 else 10)):
        map.block("dart", rng.choice(map.darts, 1), blocked=bool(rng.random() < 0.7))
        map.block("cell", rng.choice(map.leaves, 1), blocked=bool(rng.random() < 0.5))
        before = blocked_sizes(map)
        for _ in range(2):
            random_operation(map, rng, deepest)
        check_map(map)
        np.testing.assert_allclose(blocked_sizes(map), before, rtol=1e-12)
    assert min(before) > 0


def test_freeing_a_cell_leaves_the_doors_of_its_blocked_neighbours_shut():
    map = quad_grid(3, 1)
    own = next(d for d in map.darts if map.numpy("cell")[d] == 0 and map.numpy("cell")[map.numpy("phi2")[d]] == 1)
    map.block("cell", [1, 2])
    map.block("cell", [1], blocked=False)
    found = move(map, [[0.5, 0.5]], [[2.5, 0.5]], locate(map, [[0.5, 0.5]]).dart)
    assert found.blocked.all()
    assert found.cell.tolist() == [1]
    map.block("dart", [own])
    map.block("cell", [0])
    map.block("cell", [0], blocked=False)  # the wall of its own stays
    assert move(map, [[0.5, 0.5]], [[1.5, 0.5]], locate(map, [[0.5, 0.5]]).dart).blocked.all()


@pytest.mark.parametrize("method", ["sequential", "sets"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_cells_do_not_merge_where_a_wall_or_an_obstacle_would_be_lost(dimension, method):
    def fresh():
        map = quad_grid(2, 1) if dimension == 2 else hex_grid(2, 1, 1)
        split(map, [0, 1])
        return map

    across = "phi2" if dimension == 2 else "phi3"
    map = fresh()
    map.block("cell", map.children(0)[:1])
    assert merge(map, [0, 1], method=method).tolist() == [1]
    map.block("cell", map.children(0))
    assert merge(map, [0], method=method).tolist() == [0]  # all of them are
    assert map.numpy("obstacle")[:2].tolist() == [1, 0]

    map = fresh()
    cell, there = map.numpy("cell"), map.numpy(across)
    parent = map.numpy("parent")[cell]
    inner = next(d for d in map.darts if there[d] >= 0 and parent[d] == 0 == parent[there[d]])
    map.block("dart", [inner])
    assert merge(map, [0, 1], method=method).tolist() == [1]

    map = fresh()
    between = [d for d in map.darts if there[d] >= 0 and parent[d] == 0 and parent[there[d]] == 1]
    map.block("dart", between[:1])
    assert merge(map, [0, 1], method=method).tolist() == []
    map.block("dart", between)  # the whole side
    assert merge(map, [0, 1], method=method).tolist() == [0, 1]
    for a, b in (([0.5, 0.3, 0.3], [1.5, 0.3, 0.3]), ([1.5, 0.7, 0.7], [0.5, 0.7, 0.7])):
        a, b = (np.array([x]) * [1, 1, dimension == 3] for x in (a, b))
        assert move(map, a, b, locate(map, a).dart).blocked.all()
    check_map(map)


def test_adapting_keeps_an_obstacle_among_empty_cells():
    map = quad_grid(2, 1)
    registration = Registration(map, [[1.5, 0.5]])
    registration.split([0])
    map.block("cell", map.children(0)[:1])
    adapt(registration, Density(8, 4))
    assert map.numpy("obstacle")[map.leaves].sum() == 1


def test_a_split_cell_stands_for_all_leaves_below_it():
    map = quad_grid(2, 1)
    map.block("cell", [0])
    split(map, [0])
    split(map, map.children(0)[:1])
    map.block("cell", [0], blocked=False)
    assert not map.numpy("obstacle")[map.leaves].any()
    assert not (map.numpy("tag")[map.darts] >> 12).any()


def test_crossing_points_notice_a_cell_that_is_blocked_later():
    map = quad_grid(3, 1)
    followed = CrossingPoints(map, [[0.5, 0.5]], [[2.5, 0.5]])
    map.block("cell", [1])
    with pytest.raises(UnsupportedError, match="without walls"):
        followed.move([[0.5, 0.5]], [[2.5, 0.5]])
    assert map.has_convex_cells


def test_segments_that_are_stopped_are_told():
    map = quad_grid(5, 1)
    map.block("cell", [2])
    registration = Registration(map, [[0.5, 0.5], [4.5, 0.5], [1.5, 0.5]], [[0, 2], [0, 1]], [[0, 2, 0], [0, 2, 1]])
    assert registration.crossed("segments", 1).tolist() == [0, 1, 3, 4]
    assert registration.stopped("segments").tolist() == [1]
    assert registration.stopped("triangles").tolist() == [1]


@pytest.mark.parametrize(
    ("kind", "numbers", "message"),
    [
        ("cell", [99], "numbers: number 0 is 99, but cells are numbered 0 to 8"),
        ("cell", [0, -1], "numbers: number 1 is -1"),
        ("cell", [1.7], "whole numbers of cells"),
        ("cells", [1], "kind is 'cell' or 'dart', not 'cells'"),
        ("dart", [400], "numbers: number 0 is 400, but darts are numbered 0 to 35"),
    ],
)
def test_what_cannot_be_blocked_is_refused(kind, numbers, message):
    with pytest.raises(InputError, match=message):
        quad_grid(3, 3).block(kind, numbers)


def test_cells_and_darts_that_are_gone_are_not_blocked():
    map = quad_grid(2, 1)
    split(map, [0])
    child, dart = map.children(0)[1], int(map.darts[-1])
    merge(map, [0])
    with pytest.raises(InputError, match=f"there is no cell {child}"):
        map.block("cell", [child])
    with pytest.raises(InputError, match=f"dart {dart} is gone"):
        map.block("dart", [dart])

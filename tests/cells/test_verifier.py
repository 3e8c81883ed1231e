"""The verifier itself: it must notice whatever is spoilt."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.cell_maps import check_map, check_registration
from oracles.families.cell_operations import inside
from tangere.cells import CellGroups
from tangere.cells.generate import hex_grid, map_of_mesh, quad_grid
from tangere.cells.maps import split
from tangere.cells.registration import Registration
from tangere.cells.tracking import on_surface
from tangere.cells.tracking.crossings import Crossings
from tangere.shape import generate


def sound(name, rng):
    if name == "sphere":
        map = map_of_mesh(generate.icosphere(1), device="cpu")
    else:
        map = quad_grid(3, 3, device="cpu") if name == "quads" else hex_grid(2, 2, 2, device="cpu")
    split(map, map.leaves[:2])
    points = on_surface(map, map.darts[::5], np.full((len(map.darts[::5]), 3), 1 / 3))[:20]
    points = points if name == "sphere" else inside(rng, map, 2, 20)
    return Registration(map, points, [[0, 1], [2, 3]], [[4, 5, 6]])


def changed(array, place, value):
    values = array.numpy().copy()
    values[place] = value
    array.assign(values)


def another_cell(registration, i):
    """A dart of a cell that does not hold point i."""
    return registration.map.numpy("anchor")[np.setdiff1d(registration.map.leaves, registration.cells[i])[0]]


def drop_from_groups(registration, kind):
    groups = registration.present(kind)
    start = groups.start.numpy().copy()
    start[np.argmax(np.diff(start) > 0) + 1 :] -= 1
    order = np.delete(groups.order.numpy(), 0)
    registration._groups[kind] = CellGroups(*(wp.array(x, dtype=wp.int32, device="cpu") for x in (start, order)))


def add_to_groups(registration, kind):
    groups = registration.present(kind)
    start, order = groups.start.numpy().copy(), groups.order.numpy()
    cell = int(np.setdiff1d(registration.map.leaves, registration.cells)[0])
    order = np.insert(order, start[cell], 0)
    start[cell + 1 :] += 1
    registration._groups[kind] = CellGroups(*(wp.array(x, dtype=wp.int32, device="cpu") for x in (start, order)))


def forget_crossed(registration):
    rows = registration._rows["segments"]
    cells = rows.cells.numpy().copy()
    cells[rows.first.numpy()[1]] = np.setdiff1d(registration.map.leaves, cells)[0]
    registration._rows["segments"] = Crossings(rows.first, wp.array(cells, dtype=wp.int32, device="cpu"))


SPOIL = {
    "a dart of another cell": lambda r: changed(r._darts, 3, another_cell(r, 3)),
    "a dead dart": lambda r: changed(r.map.arrays.tag, r.darts[3], -1),
    "a point somewhere else": lambda r: changed(r._points, 3, r.points[3] + 0.9 * (r.points[7] - r.points[3]) + 0.01),
    "a point that is missing": lambda r: drop_from_groups(r, "points"),
    "a segment that is missing": lambda r: drop_from_groups(r, "segments"),
    "a triangle that is missing": lambda r: drop_from_groups(r, "triangles"),
    "a point too many": lambda r: add_to_groups(r, "points"),
    "a segment too many": lambda r: add_to_groups(r, "segments"),
    "a triangle too many": lambda r: add_to_groups(r, "triangles"),
    "a row of crossed cells": forget_crossed,
    "a ring": lambda r: changed(r.map.rings.table.size, r.map.leaves[-1], 1),
}


@pytest.mark.parametrize("name", ["quads", "sphere", "hexahedra"])
@pytest.mark.parametrize("what", SPOIL)
def test_a_registration_that_is_spoilt_is_noticed(name, what, rng):
    registration = sound(name, rng)
    check_registration(registration)
    SPOIL[what](registration)
    with pytest.raises(AssertionError):
        check_registration(registration, near=False)


@pytest.mark.parametrize("name", ["quads", "sphere", "hexahedra"])
@pytest.mark.parametrize(
    "array", ["phi1", "phi_1", "phi2", "origin", "cell", "link", "back", "tag", "anchor", "parent"]
)
def test_a_map_that_is_spoilt_is_noticed(name, array, rng):
    map = sound(name, rng).map
    check_map(map)
    place = map.leaves[-1] if array in ("anchor", "parent") else map.darts[-1]
    values = getattr(map.arrays, array)
    other = {"tag": -1, "cell": map.leaves[0], "parent": map.leaves[0]}.get(array, map.darts[0])
    assert values.numpy()[place] != other
    if array == "parent":
        place = np.flatnonzero(map.numpy("parent") >= 0)[0]
    changed(values, place, other)
    with pytest.raises(AssertionError):
        check_map(map)

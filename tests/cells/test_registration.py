"""Registration: the brute-force verifier after every move, split, merge, deformation, addition and removal."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.cell_maps import check_map, check_registration, owners, segment_cells
from oracles.families.cell_operations import GRIDS, inside, mergeable
from tangere.cells import Density, group_by_cell
from tangere.cells.generate import hex_grid, map_of_mesh, quad_grid
from tangere.cells.maps import CellMap, merge, split
from tangere.cells.registration import (
    NearPoint,
    Registration,
    adapt,
    divide_large_triangles,
    in_ring,
    in_ring_at,
    large_triangles,
    nearest,
    pairs_within,
)
from tangere.cells.tracking import locate, move, on_surface
from tangere.runtime import InputError, UnsupportedError, using_threads
from tangere.shape import generate

FORMS = ["sorted", "incremental"]


def crowd(map, size, rng, form="sorted", points=24, segments=6, triangles=3, **options):
    rows = rng.integers(0, points, (segments, 2)), rng.integers(0, points, (triangles, 3))
    return Registration(map, inside(rng, map, size, points), *rows, form=form, **options)


def step(registration, size, rng, far=0.2):
    targets = registration.points + rng.normal(0, far, registration.points.shape)
    targets = np.clip(targets, 0.01, size - 0.01)
    targets[:, 2] *= registration.map.dimension == 3
    return registration.move(targets)


@pytest.mark.feature("F-P-20", "F-P-24", "F-P-31", "F-P-32", "F-P-33", "F-P-34")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "jitter"), [("quads", 0.0), ("quads", 0.2), ("triangles", 0.0), ("hexahedra", 0.0), ("hexahedra", 0.2)]
)
def test_everyone_is_where_they_are_after_every_operation(name, jitter, form, rng, device, effort):
    make, size, _, _ = GRIDS[name]
    map = make(jitter=jitter, device=device)
    registration = crowd(map, size, rng, form)
    check_registration(registration)
    for count in range(effort(8 if map.dimension == 2 else 4)):
        assert not step(registration, size, rng).any()
        check_registration(registration)
        leaves = map.leaves[map.levels[map.leaves] < (3 if map.dimension == 2 else 2)]
        registration.split(rng.choice(leaves, min(3, len(leaves)), replace=False), balanced=bool(count % 2))
        check_map(map)
        check_registration(registration)
        ready = mergeable(map)
        if len(ready) and count % 2:
            registration.merge(rng.choice(ready, min(2, len(ready)), replace=False))
            check_map(map)
            check_registration(registration)


@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize(
    ("name", "jitter"), [("quads", 0.2), ("hexahedra", 0.0), ("hexahedra", 0.2), ("tetrahedra", 0.1)]
)
def test_a_few_changes_leave_the_lists_that_finding_everybody_anew_gives(name, jitter, fill, rng, effort):
    make, size, _, _ = GRIDS[name]
    map = make(jitter=jitter, device="cpu")
    registration = crowd(map, size, rng, "incremental", fill=fill)
    whole = registration._register_all
    for count in range(effort(12)):
        some = rng.choice(24, 3, replace=False)
        targets = inside(rng, map, size, 3)  # never on a side that two cells share
        registration._register_all = None  # nobody is looked for whom it does not concern
        assert not registration.move(targets, points=some).any()
        leaves = map.leaves[map.levels[map.leaves] < 3]
        registration.split(rng.choice(leaves, min(2, len(leaves)), replace=False), balanced=bool(count % 2))
        if len(ready := mergeable(map)) and count % 3:
            registration.merge(rng.choice(ready, min(2, len(ready)), replace=False))
        registration._register_all = whole
        np.testing.assert_array_equal(registration.points[some], targets)
        fresh = Registration(
            map, registration.points, registration.segments, registration.triangles, fill=fill, form="sorted"
        )
        assert np.array_equal(registration.cells, fresh.cells)
        for kind in ("points", "segments", "triangles"):
            for number in range(len(fresh._rows[kind].first) - 1):
                assert np.array_equal(registration.crossed(kind, number), fresh.crossed(kind, number)), (kind, number)
        check_registration(registration)


def test_some_points_of_any_map_are_moved_and_the_others_stay(rng):
    for form in FORMS:
        registration = crowd(quad_grid(3, 3, device="cpu"), 3.0, rng, form)
        before = registration.points.copy()
        stopped = registration.move([[1.5, 1.5], [9.0, 1.5]], points=[4, 7])
        assert stopped.tolist() == [False, True]
        assert registration.points[4].tolist() == [1.5, 1.5, 0.0]
        assert registration.points[7, 0] == pytest.approx(3.0)
        others = np.setdiff1d(np.arange(24), [4, 7])
        assert np.array_equal(registration.points[others], before[others])
        check_registration(registration)
        with pytest.raises(InputError, match="points: a point is there twice"):
            registration.move([[1.0, 1.0], [1.0, 1.0]], points=[4, 4])


@pytest.mark.slow
@pytest.mark.feature("F-P-35")
@pytest.mark.parametrize(("cells", "merges"), [(40, 70_000), (8, 30_000)])
def test_no_dart_dangles_through_a_hundred_thousand_merges(cells, merges, rng, effort):
    map = quad_grid(cells, cells) if cells == 40 else hex_grid(cells, cells, cells)
    registration = Registration(map, inside(rng, map, cells, 2000))
    done = 0
    while done < effort(merges):
        leaves = map.leaves[map.levels[map.leaves] < 2]
        registration.split(rng.choice(leaves, 400, replace=False))
        ready = mergeable(map)
        done += len(registration.merge(rng.choice(ready, min(400, len(ready)), replace=False)))
        alive = np.zeros(len(map.numpy("tag")), bool)
        alive[map.darts] = True
        assert alive[registration.darts].all()
        half = 0.5 ** (1.0 + map.levels[registration.cells])[:, None]
        away = np.abs(registration.points - map.numpy("centre")[registration.cells])
        assert (away[:, : map.dimension] <= half * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["quads", "hexahedra"])
def test_both_forms_agree_and_do_not_depend_on_threads(name, rng):
    make, size, _, _ = GRIDS[name]
    answers = []
    for form, threads in (("sorted", 1), ("sorted", 2), ("incremental", 2)):
        with using_threads(threads):
            again = np.random.default_rng(5)
            registration = crowd(make(jitter=0.1), size, again, form, points=60)
            for _ in range(3):
                step(registration, size, again)
                registration.split(again.choice(registration.map.leaves, 2, replace=False))
            registration.merge(mergeable(registration.map)[:1])
            rows = [registration.present(kind) for kind in ("points", "segments", "triangles")]
            leaves = registration.map.leaves
            answers.append([[row.row(int(c)).tolist() for c in leaves] for row in rows])
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.feature("F-P-19")
def test_only_points_that_change_cell_cost_an_update(rng):
    map = quad_grid(10, 10)
    registration = Registration(map, inside(rng, map, 10, 500), form="incremental")
    for _ in range(5):
        before = registration.cells.copy()
        step(registration, 10, rng, 0.1)
        cells = [next(iter(c)) for c in owners(map, registration.points)]
        assert registration.counters["points changed"] == (before != cells).sum()


@pytest.mark.feature("F-P-25")
def test_a_segment_that_stays_in_its_cell_is_not_marched_and_one_whose_middle_moves_is():
    map = quad_grid(3, 3)
    ends = np.array([[0.2, 0.2], [0.8, 0.3]])
    registration = Registration(map, ends, [[0, 1]])
    registration.move(ends + 0.1)
    assert registration.counters["edges marched"] == 0
    registration.move([[0.9, 0.5], [1.1, 0.5]])
    assert registration.counters["edges marched"] == 1
    assert registration.crossed("segments", 0).tolist() == [0, 3]
    # Both ends stay in their cells, the middle goes from one side of a vertex to the other.
    ends = np.array([[0.5, 1.2], [1.2, 0.5]])
    registration = Registration(map, ends, [[0, 1]])
    assert registration.crossed("segments", 0).tolist() == [0, 1, 3]
    registration.move([[0.5, 1.8], [1.8, 0.5]])
    assert registration.counters["points changed"] == 0
    assert registration.crossed("segments", 0).tolist() == [1, 3, 4]


@pytest.mark.feature("F-P-26", "F-P-28")
@pytest.mark.parametrize("form", FORMS)
def test_a_deforming_surface_stays_registered_and_covers_what_it_crosses(form, rng, device):
    map = hex_grid(3, 3, 3, device=device)
    u, v = np.meshgrid(np.linspace(0.4, 2.6, 5), np.linspace(0.4, 2.6, 5), indexing="ij")
    sheet = np.stack([u.ravel(), v.ravel(), np.full(25, 1.5)], axis=1)
    low = (np.arange(4)[:, None] * 5 + np.arange(4)).ravel()
    triangles = np.concatenate([np.stack([low, low + 5, low + 6], 1), np.stack([low, low + 6, low + 1], 1)])
    registration = Registration(map, sheet, None, triangles, form=form)
    for k in range(3):
        wave = sheet + np.stack([0 * u, 0 * u, 0.8 * np.sin(k + 2 * u)], -1).reshape(-1, 3)
        registration.move(wave)
        if k == 1:
            registration.split(registration.map.leaves[::5])
        check_registration(registration)
        for t, corners in enumerate(registration.triangles):
            found = set(registration.crossed("triangles", t).tolist())
            around = found.union(*[map.rings.row(c).tolist() for c in found])
            weights = rng.dirichlet([1, 1, 1], 8)
            for cells in owners(map, weights @ registration.points[corners], slack=-1e-9):
                assert cells <= around


def test_a_large_triangle_is_filled_when_asked_for(rng, device):
    map = quad_grid(6, 6, jitter=0.1, device=device)
    corners = np.array([[0.3, 0.4], [5.6, 0.9], [2.5, 5.7]])
    hollow, filled = (Registration(map, corners, None, [[0, 1, 2]], fill=fill) for fill in (False, True))
    inner = set().union(*owners(map, np.c_[rng.dirichlet([1, 1, 1], 4000) @ corners, np.zeros(4000)], slack=-1e-9))
    assert not inner <= set(hollow.crossed("triangles", 0).tolist())
    assert set(filled.crossed("triangles", 0).tolist()) == inner | set(hollow.crossed("triangles", 0).tolist())
    block = hex_grid(4, 4, 4, device=device)
    corners = np.array([[0.3, 0.4, 0.5], [3.6, 0.9, 1.2], [1.5, 3.7, 3.1]])
    sheet = Registration(block, corners, None, [[0, 1, 2]], fill=True)
    inner = set().union(*owners(block, rng.dirichlet([1, 1, 1], 6000) @ corners, slack=-1e-9))
    assert inner <= set(sheet.crossed("triangles", 0).tolist())
    assert len(set(sheet.crossed("triangles", 0).tolist()) - inner) <= 3  # clipped too briefly to be sampled


@pytest.mark.feature("F-P-44")
def test_fast_and_exact_modes_differ_only_by_cells_that_have_the_segment_near(rng):
    corners = [[0, 0], [4, 0], [4, 1], [1, 1], [1, 4], [0, 4], [4, 4]]
    map = CellMap.from_polygons(corners, [[0, 1, 2, 3, 4, 5], [3, 2, 6, 4]])  # an L around a square
    assert not map.has_convex_cells
    arms = np.concatenate([rng.uniform([0, 0], [4, 1], (200, 2)), rng.uniform([0, 0], [1, 4], (200, 2))])
    rows = np.stack([np.arange(200), 200 + np.arange(200)], axis=1)
    exact, fast = (Registration(map, arms, rows, mode=mode) for mode in ("exact", "fast"))
    across = 0
    for i in range(200):
        (x, y), (u, v) = arms[i], arms[200 + i]
        # From one arm to the other through the square: above the corner (1, 1).
        leaves = x > 1 and v > 1 and y + (v - y) * (1 - x) / (u - x) > 1
        assert fast.crossed("segments", i).tolist() == [0]
        assert exact.crossed("segments", i).tolist() == ([0, 1] if leaves else [0])
        if leaves:
            assert i in fast.near("segments", 1)
            across += 1
    assert 20 < across < 180
    check_registration(exact)


def test_dividing_large_triangles_leaves_no_gap_in_a_surface(rng):
    map = quad_grid(12, 12)
    corners = np.array([[0.3, 0.4], [11.6, 0.9], [6.2, 11.5], [11.7, 2.1], [11.8, 11.6]])
    triangles = np.array([[0, 1, 2], [1, 3, 2], [2, 3, 4]])
    surface = Registration(map, corners, None, triangles)
    assert large_triangles(surface).tolist() == [0]  # its neighbours are slim, and must be divided along with it
    divided = divide_large_triangles(surface)
    assert len(large_triangles(divided)) == 0
    check_registration(divided, near=False)
    x = divided.points[:, :2]
    # A surface whose edges are shared whole has as many borders as before, all of them on the old outline.
    sides = np.sort(divided.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    edges, uses = np.unique(sides, axis=0, return_counts=True)
    assert uses.max() == 2
    outline = np.array([[0, 1], [1, 3], [3, 4], [4, 2], [2, 0]])
    length = np.linalg.norm(np.diff(x[edges[uses == 1]], axis=1)[:, 0], axis=1).sum()
    np.testing.assert_allclose(length, np.linalg.norm(np.diff(corners[outline], axis=1)[:, 0], axis=1).sum())
    a, b, c = (x[divided.triangles[:, k]] for k in range(3))
    turned = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert (turned > 0).all()


@pytest.mark.feature("F-P-27")
def test_triangles_too_large_for_small_cells_are_found_and_divided(rng):
    map = hex_grid(3, 3, 3)
    corners = np.array([[0.3, 0.3, 1.4], [2.7, 0.4, 1.5], [1.5, 2.7, 1.6]])
    surface = Registration(map, corners, None, [[0, 1, 2]])
    assert len(large_triangles(surface)) == 0
    surface.split(map.leaves)
    surface.split(map.leaves[np.abs(map.numpy("centre")[map.leaves] - 1.5).max(axis=1) < 0.6])
    assert large_triangles(surface).tolist() == [0]
    repaired = divide_large_triangles(surface)
    assert len(large_triangles(repaired)) == 0
    check_registration(repaired, near=False)
    groups = repaired.present("triangles")
    for cells in owners(map, rng.dirichlet([1, 1, 1], 500) @ corners, slack=-1e-9):
        for c in cells:  # everything the surface crosses knows of it
            assert len(groups.row(c)) or len(repaired.near("triangles", c))


def test_a_segment_through_a_wall_is_registered_from_both_ends():
    map = quad_grid(5, 1)
    map.block("cell", [2])
    registration = Registration(map, [[0.5, 0.5], [4.5, 0.5]], [[0, 1]])
    assert registration.crossed("segments", 0).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("name", ["quads", "hexahedra"])
def test_points_go_along_with_a_deforming_map_or_change_cells(name, rng, device):
    make, size, _, _ = GRIDS[name]
    map = make(device=device)
    registration = crowd(map, size, rng)
    registration.split(map.leaves[:2])
    before, cells = map.positions.copy(), registration.cells.copy()
    bent = before + 0.12 * np.sin(2 * before[:, [1, 2, 0]]) * [1, 1, map.dimension == 3]
    registration.deform(bent)
    check_map(map)
    check_registration(registration)
    assert np.array_equal(registration.cells, cells)
    registration.deform(before)
    check_registration(registration)
    registration.deform(bent, carried=False)
    check_registration(registration)
    assert not np.array_equal(registration.cells, cells)


def test_points_that_a_deformation_leaves_behind_are_told_and_nothing_changes():
    map = quad_grid(2, 2)
    registration = Registration(map, [[0.3, 0.3], [1.9, 1.9]])
    before = map.positions.copy()
    with pytest.raises(InputError, match="vertices: point 1 is outside the map"):
        registration.deform(before * 0.5, carried=False)
    assert np.array_equal(map.positions, before)
    assert registration.cells.tolist() == [0, 3]
    check_registration(registration)
    map.move(before * 0.5)  # by somebody else
    with pytest.raises(InputError, match="points: point 1 is outside the map"):
        _ = registration.cells


@pytest.mark.parametrize("form", FORMS)
def test_a_strong_deformation_goes_on_with_everyone_and_comes_back(form, rng):
    map = hex_grid(3, 3, 3, device="cpu")
    ends = [[1.52, 1.47, 0.2], [1.45, 1.51, 2.8]]  # a segment through the cells in the middle
    places = np.concatenate([ends, inside(rng, map, 3.0, 20)])
    segments = np.concatenate([[[0, 1]], rng.integers(0, 22, (5, 2))])
    registration = Registration(map, places, segments, rng.integers(0, 22, (3, 3)), form=form)
    rest, points, cells = map.positions.copy(), registration.points.copy(), registration.cells.copy()
    rows = [registration.crossed("segments", k).tolist() for k in range(6)]
    pushed = rest.copy()
    inner = ((rest > 0) & (rest < 3)).all(axis=1)
    pushed[inner] += [0.0, 0.0, -1.6]  # through the cells below
    registration.deform(pushed)
    assert len(map.inverted_cells) > 0
    assert np.array_equal(registration.cells, cells)  # carried by their simplices
    assert set(rows[0]) & set(map.inverted_cells.tolist())
    assert 0 in registration.stopped("segments")  # known up to there, from both ends
    assert {cells[0], cells[1]} <= set(registration.crossed("segments", 0).tolist())
    registration.deform(rest)
    assert len(map.inverted_cells) == 0
    np.testing.assert_allclose(registration.points, points, atol=1e-9)
    assert [registration.crossed("segments", k).tolist() for k in range(6)] == rows
    check_registration(registration)


def test_points_behind_a_wall_are_found_after_a_deformation():
    map = quad_grid(3, 1)
    map.block("cell", [1])
    registration = Registration(map, [[2.5, 0.5]])
    registration.deform(map.positions + [2, 0, 0], carried=False)
    assert registration.cells.tolist() == [0]
    check_registration(registration)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["quads", "hexahedra", "sphere"])
def test_a_map_that_somebody_else_changes_is_noticed(name, form, rng, device):
    if name == "sphere":
        map = map_of_mesh(generate.icosphere(1), device=device)
        points = on_surface(map, rng.choice(map.darts, 30), rng.dirichlet([1, 1, 1], 30))
    else:
        make, size, _, _ = GRIDS[name]
        map = make(device=device)
        points = inside(rng, map, size, 30)
    registration = Registration(map, points, rng.integers(0, 30, (4, 2)), form=form)
    split(map, map.leaves[:3])
    check_registration(registration)
    parents = mergeable(map)
    merge(map, parents[:1])
    check_registration(registration)
    # A merge whose darts a split takes at once.
    merge(map, parents[1:2])
    split(map, [int(map.leaves[-1])])
    check_registration(registration)
    cells = registration.cells.copy()
    map.block("cell", map.leaves)
    assert np.array_equal(registration.cells, cells)
    ends = cells[registration.segments]
    if name != "sphere":  # there, only the cells of the ends are known anyway
        assert registration.stopped("segments").tolist() == np.flatnonzero(ends[:, 0] != ends[:, 1]).tolist()


def test_a_split_that_is_refused_leaves_everyone_registered():
    angle = 2 * np.pi * np.arange(40) / 40
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], *np.c_[5 + np.cos(angle), np.sin(angle)]]
    map = CellMap.from_polygons(corners, [[0, 1, 2, 3], list(range(4, 44))])
    registration = Registration(map, [[0.3, 0.4], [5.1, 0.1]], [[0, 0]])
    with pytest.raises(UnsupportedError, match="too many corners"):
        registration.split([0, 1])
    assert registration.cells.tolist() == [0, 1]
    check_registration(registration)


def test_points_are_added_and_removed(rng):
    map = quad_grid(4, 4)
    for form in FORMS:
        registration = crowd(map, 4, rng, form, points=10, segments=2, triangles=1)
        numbers = registration.add(inside(rng, map, 4, 5))
        assert numbers.tolist() == [10, 11, 12, 13, 14]
        check_registration(registration)
        free = np.setdiff1d(np.arange(15), np.r_[registration.segments.ravel(), registration.triangles.ravel()])
        left = registration.remove(free[:2])
        assert not np.isin(free[:2], left).any()
        check_registration(registration)
        step(registration, 4, rng)
        check_registration(registration)
    with pytest.raises(InputError, match="belongs to a segment or triangle"):
        registration.remove([registration.segments[0, 0]])


def test_bad_registrations_are_refused():
    map = quad_grid(2, 2)
    with pytest.raises(InputError, match="point 1 is outside"):
        Registration(map, [[0.5, 0.5], [5, 5]])
    with pytest.raises(InputError, match="number 0 uses points"):
        Registration(map, [[0.5, 0.5]], [[0, 1]])
    with pytest.raises(InputError, match="form is"):
        Registration(map, [[0.5, 0.5]], form="magic")
    with pytest.raises(InputError, match="targets: there are 2 for 1"):
        Registration(map, [[0.5, 0.5]]).move([[1, 1], [1, 1]])
    registration = Registration(map, [[0.5, 0.5]], [[0, 0]])
    for ask, message in (
        (lambda r: r.move(wp.array([[np.nan, 0, 0]], dtype=wp.vec3d)), "targets: point 0 is not finite"),
        (lambda r: r.near("points", 99), "cell: number 0 is 99"),
        (lambda r: r.near("point", 0), "kind is one of 'points'"),
        (lambda r: r.present("faces"), "kind is one of 'points'"),
        (lambda r: r.crossed("segments", 5), "number: number 0 is 5, but segments are numbered 0 to 0"),
        (lambda r: r.stopped("points"), "kind is 'segments' or 'triangles'"),
        (lambda r: r.edge_cells(0), "there are no triangles"),
        (lambda r: r.cell_of(-1), "point: number 0 is -1"),
        (lambda r: r.remove([-1]), "numbers: number 0 is -1"),
        (lambda r: r.remove([57]), "numbers: number 0 is 57"),
        (lambda r: r.remove([0.5]), "numbers must be whole numbers"),
        (lambda r: in_ring(r, "points", 99), "point: number 0 is 99"),
        (lambda r: in_ring_at(r, "points", 0, -1), "there is no level -1"),
        (lambda r: r.split([1.5]), "cells must be whole numbers"),
        (lambda r: adapt(r, Density(), budget=-1), "must not be negative"),
        (lambda r: adapt(r, lambda _: ([1.0], [0.0])), "criterion: gives priorities of shapes"),
        (lambda _: NearPoint([0, np.nan], 1.0, 2), "NearPoint needs a point"),
        (lambda _: group_by_cell(wp.array([10**8], dtype=wp.int32, device="cpu"), 4), "cells: number 0 is 100000000"),
    ):
        with pytest.raises(InputError, match=message):
            ask(registration)


def test_grouping_is_a_stable_sort(rng, device):
    cells = rng.integers(0, 37, 200_000).astype(np.int32)
    for threads in (1, 3):
        with using_threads(threads):
            groups = group_by_cell(wp.array(cells, dtype=wp.int32, device=device), 40)
        assert np.array_equal(groups.order.numpy(), np.argsort(cells, kind="stable"))
        assert np.array_equal(groups.start.numpy(), np.searchsorted(np.sort(cells), np.arange(41)))


def test_a_segment_crosses_the_same_cells_whoever_asks(rng):
    map = quad_grid(5, 5, jitter=0.3)
    registration = crowd(map, 5, rng, points=40, segments=40, triangles=0)
    for i, (a, b) in enumerate(registration.segments):
        found = set(registration.crossed("segments", i).tolist())
        assert segment_cells(map, registration.points[a], registration.points[b], 1e-9) <= found


def test_answers_are_the_same_on_any_number_of_threads_and_none_is_refused(rng, effort):
    points = rng.uniform(0.1, 5.9, (effort(3000), 2))
    found = []
    for threads in (1, 2, None):
        map = quad_grid(6, 6, device="cpu")
        split(map, map.leaves[:9], threads=threads)
        world = Registration(map, points, np.arange(len(points) // 2 * 2).reshape(-1, 2), threads=threads)
        pairs, near = pairs_within(world, 0.1, threads=threads), nearest(world, 3)
        here = locate(map, points, threads=threads)
        ends = move(map, points, points[::-1], here.dart, threads=threads)
        found.append([world.cells, world.present("segments").order.numpy(), pairs, *near, here.dart, ends.position])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    for refused in (
        lambda: locate(map, points, threads=0),
        lambda: split(map, map.leaves[:1], threads=-1),
        lambda: Registration(map, points, threads=True),
    ):
        with pytest.raises(InputError, match="threads must be a positive whole number"):
            refused()

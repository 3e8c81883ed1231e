"""Bodies that are cut stay bodies: valid simplices after every step of the blade, of the same volume."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracles.cut_bodies import CutFigures, examine, parts_beside_plane, parts_of, sizes, surface_of
from oracles.helpers.cut_strokes import CURVED, PLANAR, Stroke, blob, block, random_stroke, sheet, sheet_strokes, torus
from oracles.soft_bodies import solid_energy
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft.cutting import ComplexChange, ConnectedParts, CutSurface, SimplicialComplex


def examined(body: SimplicialComplex) -> CutFigures:
    return examine(body.rest, body.corners, body.neighbours)


def line(x: float, y: float, z=(-0.9, 0.9), k: int = 2) -> np.ndarray:
    """A blade that stands upright at (x, y)."""
    return np.stack([np.full(k, x), np.full(k, y), np.linspace(*z, k)], axis=1)


def check_step(body: SimplicialComplex, change: ComplexChange, first: CutFigures) -> CutFigures:
    """All that must hold after a step; `first` is what held before all."""
    found = examined(body)
    assert not found.faults
    assert found.size == pytest.approx(first.size, rel=1e-12)
    assert found.longest <= first.longest * (1.0 + 1e-12)
    assert found.altitude >= 0.05 * first.altitude
    if first.surface_volume:
        assert found.surface_volume == pytest.approx(first.size, rel=1e-12)
    neighbours = body.neighbours
    assert (neighbours[change.opened >> 2, change.opened & 3] == -1).all()
    assert len(np.unique(change.opened)) == change.opened.size
    return found


def cut_along(body: SimplicialComplex, lines: list[np.ndarray], *, end: bool = True) -> CutFigures:
    """One stroke, looked at after every step that changes something."""
    body.begin_stroke()
    first = examined(body)
    for start, stop in itertools.pairwise(lines):
        change = body.cut(start, stop)
        if change:
            check_step(body, change, first)
    if end:
        check_step(body, body.end_stroke(), first)
    return examined(body)


def random_cuts(cases: range) -> tuple[int, int, int]:
    """Cut bodies by random strokes, all checked; steps, curved cuts through, and how many of those part nothing."""
    steps = through = joined = 0
    for case in cases:
        rng = np.random.default_rng(case)
        body = SimplicialComplex(*(block(), torus())[case % 3] if case % 3 < 2 else blob(rng))
        whole = examined(body)
        assert not whole.faults
        for _ in range(int(rng.integers(1, 4))):
            stroke: Stroke = random_stroke(rng, body.edge)
            before, opened = examined(body), 0
            body.begin_stroke()
            for start, stop in zip(stroke.lines[:-1], stroke.lines[1:], strict=True):
                change = body.cut(start, stop)
                opened += len(change.opened)
                steps += 1
                if change:
                    found = check_step(body, change, whole)
                    assert found.largest_box <= 1.0501 * whole.largest_box
            if stroke.kind in (PLANAR, CURVED):
                check_step(body, body.end_stroke(), whole)
            if stroke.kind == CURVED and opened and case % 3 != 1:
                through += 1
                joined += examined(body).parts <= before.parts
    return steps, through, joined


@pytest.mark.feature("F-L-46", "F-L-48")
def test_random_progressive_cuts_leave_valid_bodies(effort) -> None:
    steps, _, joined = random_cuts(range(effort(9, least=3)))
    assert steps > 100
    assert joined == 0


@pytest.mark.slow
def test_ten_thousand_random_steps_leave_valid_bodies(effort) -> None:
    steps, through, joined = random_cuts(range(1000, 1000 + effort(200)))
    assert steps > effort(10_000) * 0.9
    assert joined <= 0.01 * through


def test_a_blade_on_lattice_planes_parts_a_block_exactly_there() -> None:
    body = SimplicialComplex(*block())
    found = cut_along(body, [line(0.2, y, k=3) for y in np.arange(-0.7, 0.71, 0.1)])
    assert found.parts == 2
    _, part = parts_of(body.neighbours)
    assert np.sort(np.bincount(part, sizes(body.rest, body.corners))) == pytest.approx([0.8, 1.2], rel=1e-12)


def test_without_snapping_parts_are_those_beside_the_plane(rng, effort) -> None:
    for _ in range(effort(6, least=2)):
        body = SimplicialComplex(*blob(rng), snap=0.0)
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        along = np.cross(normal, rng.normal(size=3))
        along /= np.linalg.norm(along)
        origin, blade = rng.uniform(-0.2, 0.2, 3), np.cross(normal, along)
        wanted = parts_beside_plane(body.rest, body.corners, body.neighbours, origin, normal)
        body.begin_stroke()
        lines = [origin + at * along + np.array([[-2.5], [2.5]]) * blade for at in np.linspace(-2, 2, 9)]
        for start, stop in itertools.pairwise(lines):
            body.cut(start, stop)
        body.end_stroke()
        found = examined(body)
        assert not found.faults
        assert found.parts == wanted


def test_walls_are_smooth() -> None:
    """Planes through bent elements, in all directions: corners of what is opened are in them, nearly."""
    solid, apart = solid_block((12, 8, 8), size=(1.5, 1.0, 1.0)), []
    inner = (np.abs(solid.vertices) < np.array([0.75, 0.5, 0.5]) - 1e-6).all(axis=1)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        bent = 0.15 / 8 * inner[:, None] * rng.uniform(-1.0, 1.0, solid.vertices.shape)
        body = SimplicialComplex(solid.vertices + bent, solid.tets)
        normal = rng.normal(size=3) + [2.0, 0.0, 0.0]
        normal /= np.linalg.norm(normal)
        along = np.cross(normal, [0.0, 0.0, 1.0])
        along /= np.linalg.norm(along)
        origin, blade = rng.uniform(-0.1, 0.1, 3), 1.5 * np.cross(normal, along)
        body.begin_stroke()
        ways = [origin + at * along + np.array([[-1.0], [1.0]]) * blade for at in np.arange(-1.2, 1.2, 0.7 * body.edge)]
        opened = np.concatenate([body.cut(*way).opened.ravel() for way in itertools.pairwise(ways)])
        keep = np.arange(4)[None] != (opened & 3)[:, None]
        corners = body.rest[body.corners[opened >> 2][keep]]
        assert len(corners) > 1000
        apart.append((corners - origin) @ normal / body.edge)
    whole = np.concatenate(apart)
    assert np.sqrt(np.mean(whole**2)) < 0.03
    assert np.abs(whole).max() < 0.25  # no spikes


def test_steps_of_a_fiftieth_of_an_edge_cut_as_far_as_long_ones() -> None:
    many, one = SimplicialComplex(*block()), SimplicialComplex(*block())
    lines = [line(0.03 + 0.05 * y, y, k=4) for y in np.arange(-0.7, 0.7, 0.004)]
    assert cut_along(many, lines).parts == cut_along(one, [lines[0], lines[-1]]).parts == 2


def test_the_same_way_again_opens_nothing_more() -> None:
    body = SimplicialComplex(*block())
    lines = [line(0.2, y, k=3) for y in np.arange(-0.7, 0.71, 0.1)]
    cut_along(body, lines)
    again = cut_along(body, lines)
    assert again.parts == 2


def test_crossing_strokes_part_a_block_into_four() -> None:
    body = SimplicialComplex(*block())
    cut_along(body, [line(0.03, y, k=3) for y in np.linspace(-0.7, 0.7, 12)])
    found = cut_along(body, [line(x, 0.07, k=3) for x in np.linspace(-1.2, 1.2, 15)])
    assert found.parts == 4
    assert found.euler == 8


def test_a_ring_is_not_parted_by_one_cut_but_by_two() -> None:
    body = SimplicialComplex(*torus())
    assert examined(body).euler == 0
    one = cut_along(body, [line(x, 0.01 * x, k=3) for x in np.linspace(0.2, 1.3, 9)])
    assert (one.parts, one.euler) == (1, 2)
    two = cut_along(body, [line(-x, 0.01 * x, k=3) for x in np.linspace(0.2, 1.3, 9)])
    assert (two.parts, two.euler) == (2, 4)


def test_a_blade_that_turns_round_within_an_element_leaves_a_valid_body() -> None:
    body = SimplicialComplex(*block())
    there = [line(0.07, y, k=3) for y in np.linspace(-0.7, 0.06, 9)]
    round_ = [line(0.07 + 0.03 * np.sin(a), 0.06 - 0.03 * np.cos(a) + 0.03, k=3) for a in np.linspace(0, np.pi, 6)]
    back = [line(0.1, y, k=3) for y in np.linspace(0.06, -0.7, 9)]
    assert cut_along(body, there + round_ + back).parts >= 1


def test_a_blade_that_backs_out_leaves_a_valid_body() -> None:
    body = SimplicialComplex(*block())
    lines = [line(0.07, y, k=3) for y in np.linspace(-0.7, 0.1, 9)]
    assert cut_along(body, lines + lines[::-1]).parts == 1


@pytest.mark.parametrize("depth", [0.0, 1e-12, 0.003, 0.05])
def test_a_blade_that_grazes_the_skin_leaves_a_valid_body(depth) -> None:
    body = SimplicialComplex(*block())
    blade = np.array([[-1.5, 0.0, 0.5 - depth], [1.5, 0.0, 0.5 - depth]])
    assert cut_along(body, [blade + [0.0, y, 0.0] for y in np.linspace(-0.8, 0.8, 9)]).parts >= 1


def test_a_blade_through_vertices_and_along_edges_leaves_a_valid_body() -> None:
    body = SimplicialComplex(*block())
    lines = [np.array([[-1.2, y, y], [0.0, y, y], [1.2, y, y]]) for y in np.arange(-0.7, 0.71, 0.1)]
    assert cut_along(body, lines).parts == 2


def test_a_blade_that_twists_leaves_a_valid_body() -> None:
    body = SimplicialComplex(*block())
    lines = []
    for at in np.linspace(-0.8, 0.8, 9):
        angle = 3.0 * at
        direction = np.array([np.sin(angle), 0.0, np.cos(angle)])
        lines.append(np.array([0.0, at, 0.0]) + np.linspace(-1.5, 1.5, 4)[:, None] * direction)
    cut_along(body, lines)


def test_a_blade_that_stands_still_or_misses_changes_nothing() -> None:
    body = SimplicialComplex(*block())
    body.begin_stroke()
    assert not body.cut(line(0.0, 0.0), line(0.0, 0.0))
    assert not body.cut(line(3.0, -0.7), line(3.0, 0.7))


def state(body: SimplicialComplex) -> list[np.ndarray]:
    """Everything a next step depends on."""
    arrays = body.arrays
    simplices, vertices = len(body.corners), len(body.rest)
    rows = [getattr(arrays, name).numpy()[:simplices].copy() for name in ("corners", "neighbours", "opening", "label")]
    rows += [arrays.next.numpy()[:simplices].copy(), arrays.part.numpy()[:simplices].copy()]
    rows += [getattr(arrays, name).numpy()[:vertices].copy() for name in ("rest", "simplex_at", "on", "side", "height")]
    return rows


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_step_that_is_undone_was_never_made() -> None:
    body, untouched = SimplicialComplex(*block()), SimplicialComplex(*block())
    lines = [line(0.03 + 0.05 * y, y, k=4) for y in np.linspace(-0.7, 0.7, 15)]
    body.begin_stroke()
    untouched.begin_stroke()
    for at, (start, stop) in enumerate(itertools.pairwise(lines)):
        before = state(body)
        body.cut(start, stop)
        body.undo()
        assert same(state(body), before)
        body.cut(start, stop)
        untouched.cut(start, stop)
        assert same(state(body), state(untouched)), at
    body.end_stroke()
    assert not examined(body).faults


def test_more_room_is_made_when_it_is_needed() -> None:
    rng = np.random.default_rng(3)
    small, large = (SimplicialComplex(*block(), room=room) for room in (1.0, 4.0))
    for name in ("simplex_room", "vertex_room"):
        setattr(small.arrays, name, getattr(small.arrays, name) - 250)
    small.arrays.list_room = 40
    small._give_lists(small.arrays)
    small._prepare()
    for _ in range(3):
        stroke = random_stroke(rng, small.edge)
        for body in (small, large):
            body.begin_stroke()
            for start, stop in zip(stroke.lines[:-1], stroke.lines[1:], strict=True):
                body.cut(start, stop)
            body.end_stroke()
    assert small.arrays.list_room > 40
    assert not examined(small).faults
    assert same(state(small), state(large))


@pytest.mark.parametrize("moved", [False, True])
def test_what_bisection_puts_between_vertices_keeps_energy_and_momentum(rng, moved) -> None:
    points, tets = block()
    body = SimplicialComplex(points, tets, snap=0.2 if moved else 0.0)
    bent = points @ (np.eye(3) + 0.2 * rng.normal(size=(3, 3))) + 0.02 * rng.normal(size=points.shape)
    fast = rng.normal(size=points.shape)
    energy = solid_energy(TetMesh(points, tets), bent, 1e4, 0.4)
    momentum = _masses(points, tets) @ fast
    body.begin_stroke()
    lines = [line(0.03 + 0.05 * y, y, k=4) for y in np.linspace(-0.7, 0.7, 15)]
    x, v = bent, fast
    for start, stop in itertools.pairwise(lines):
        change = body.cut(start, stop)
        x, v = (np.concatenate([a, np.zeros((change.new_vertices, 3))]) for a in (x, v))
        for (m, p, q), s in zip(change.blended, change.blends, strict=True):
            for a in (x, v):
                a[m] = (1.0 - s) * a[p] + s * a[q]
    assert len(body.corners) > len(tets)
    rel = 0.02 if moved else 1e-12
    assert solid_energy(TetMesh(body.rest, body.corners), x, 1e4, 0.4) == pytest.approx(energy, rel=rel)
    if not moved:
        assert _masses(body.rest, body.corners) @ v == pytest.approx(momentum, abs=1e-12 * np.abs(fast).sum())


def _masses(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    size = corners.shape[1]
    return np.bincount(corners.ravel(), np.repeat(sizes(points, corners) / size, size), len(points))


@pytest.mark.feature("F-L-46")
def test_random_cuts_of_sheets_leave_valid_sheets(effort) -> None:
    changed = 0
    for case in range(effort(30, least=5)):
        rng = np.random.default_rng(case)
        body = SimplicialComplex(*sheet())
        first = examined(body)
        assert not first.faults
        for stroke in sheet_strokes(rng):
            body.begin_stroke()
            for start, stop in zip(stroke.lines[:-1], stroke.lines[1:], strict=True):
                change = body.cut(start, stop)
                if change:
                    changed += 1
                    check_step(body, change, first)
            check_step(body, body.end_stroke(), first)
    assert changed > 3 * effort(30, least=5)


def test_a_sheet_is_parted_along_a_lattice_line_and_elsewhere() -> None:
    for x in (0.0, 0.0371):
        points, faces = sheet(800)
        body = SimplicialComplex(np.column_stack([points[:, :2], 0.0 * points[:, 2]]), faces)
        found = cut_along(body, [line(x, y, k=2) for y in np.linspace(-0.7, 0.7, 15)])
        assert (found.parts, found.euler) == (2, 2)


def test_a_sheet_is_parted_where_steps_end_on_lattice_lines() -> None:
    """An edge that lies in the end of a step is passed in one of two steps, from whichever end it is looked along."""
    mesh = generate.sheet(400, size=(1.0, 1.0))
    lattice_lines = np.linspace(-0.6, 0.6, 7)
    for case in range(60):
        rng = np.random.default_rng(case)
        body = SimplicialComplex(mesh.vertices, mesh.faces)
        lean, tilt = rng.uniform(-0.1, 0.1, 2)
        way = [np.array([[0.03 + lean * y - tilt, y, -0.5], [0.03 + lean * y + tilt, y, 0.5]]) for y in lattice_lines]
        assert cut_along(body, way).parts == 2


def check_surface(body: SimplicialComplex, surface: CutSurface) -> None:
    """Against the surface found from scratch: the same facets, and the same classes of corners."""
    facets, dofs, numbers, dof_of = surface_of(body.corners, body.neighbours)
    live = surface.triangles[:, 0] >= 0
    triangles, owners = surface.triangles[live], surface.owners[live]
    assert np.array_equal(np.sort(owners), np.sort(facets))
    triangles = triangles[np.argsort(owners)]
    mine, dofs, numbers = surface.dofs[triangles], dofs[np.argsort(facets)], numbers[np.argsort(facets)]
    pairs, rows = [], np.arange(len(dofs))
    for j in range(3):
        at = np.argmax(mine == dofs[:, [j]], axis=1)
        assert np.array_equal(mine[rows, at], dofs[:, j])
        pairs.append(np.stack([triangles[rows, at], numbers[:, j]], axis=1))
    pairs = np.unique(np.concatenate(pairs), axis=0)
    assert len(pairs) == len(np.unique(pairs[:, 0])) == len(dof_of)
    assert np.array_equal(np.flatnonzero(surface.dofs >= 0), np.unique(triangles))
    # Outward, as the solid is: what the triangles enclose is its volume.
    corners = body.rest[surface.dofs[triangles]]
    enclosed = np.einsum("ij,ij->i", np.cross(corners[:, 0], corners[:, 1]), corners[:, 2]).sum() / 6.0
    assert enclosed == pytest.approx(sizes(body.rest, body.corners).sum(), rel=1e-12)


def check_parts(body: SimplicialComplex, separation: ConnectedParts) -> None:
    """Against the connected components."""
    count, found = parts_of(body.neighbours)
    mine = body.arrays.part.numpy()[: len(found)]
    assert len(np.unique(np.stack([mine, found], axis=1), axis=0)) == len(np.unique(mine)) == count
    assert separation.parts == count


def test_surface_walls_and_parts_follow_random_cuts(effort) -> None:
    for case in range(effort(6, least=3)):
        rng = np.random.default_rng(case)
        body = SimplicialComplex(*(block(), torus())[case % 3] if case % 3 < 2 else blob(rng))
        surface, separation, opened = CutSurface(body), ConnectedParts(body), 0
        check_surface(body, surface)
        for _ in range(3):
            stroke = random_stroke(rng, body.edge)
            body.begin_stroke()
            for start, stop in [*itertools.pairwise(stroke.lines), (None, None)]:
                change = body.end_stroke() if start is None else body.cut(start, stop)
                separation.note(change)
                if change:
                    before = surface.triangles, surface.dofs
                    surface.follow()
                    surface.undo()
                    assert np.array_equal(before[0], surface.triangles)
                    assert np.array_equal(before[1], surface.dofs)
                    surface.follow()
                    check_surface(body, surface)
                    opened += change.opened.size
                while not separation.finished:
                    separation.advance(budget=200)
                check_parts(body, separation)
        assert opened > 0
        # Walls are on both sides of what was opened; bisections later only add to them, on one side or on both.
        assert surface.walls.sum() >= opened


def test_wrong_input_is_told() -> None:
    points, tets = block()
    body = SimplicialComplex(points, tets)
    with pytest.raises(InputError, match="polylines"):
        body.cut(np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(InputError, match="polylines"):
        body.cut(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(InputError, match="not finite"):
        body.cut(np.full((2, 3), np.nan), np.zeros((2, 3)))
    with pytest.raises(InputError, match="snap"):
        SimplicialComplex(points, tets, snap=0.6)
    with pytest.raises(InputError, match="room"):
        SimplicialComplex(points, tets, room=0.5)
    with pytest.raises(InputError, match="inside out"):
        SimplicialComplex(points, tets[:, [1, 0, 2, 3]])
    with pytest.raises(InputError, match="share a facet"):
        SimplicialComplex(points, np.concatenate([tets, tets[:1]]))

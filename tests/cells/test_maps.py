"""Maps from meshes: laws, borders, orbits, embeddings, and refusals that name the dart and the law."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from oracles.cell_maps import check_map, check_rings
from oracles.families.cell_operations import GRIDS, random_operation
from tangere.cells.generate import hex_grid, map_of_file, map_of_mesh, map_of_meshio, quad_grid, tet_grid, triangle_grid
from tangere.cells.maps import (
    CellMap,
    adjacent,
    cells_not_star_shaped,
    has_convex_border,
    incident,
    is_border,
    orbits,
    split,
)
from tangere.cells.tracking import locate
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import generate

L_SHAPE = [[0, 0], [4, 0], [4, 1], [1, 1], [1, 4], [0, 4]]


@pytest.mark.feature("F-P-4")
@pytest.mark.parametrize("name", GRIDS)
def test_every_law_of_a_map_holds_on_random_meshes(name, rng, device):
    make, _, size, _ = GRIDS[name]
    for seed in range(3):
        map = make(jitter=0.2, seed=seed, device=device)
        check_map(map, area=size)
        check_rings(map)


def test_mixed_polygons_and_polyhedra_make_valid_maps():
    plane = CellMap.from_polygons(
        [[0, 0], [1, 0], [2, 0], [2, 1], [1, 1.5], [0, 1]], [[0, 1, 4, 5], [1, 2, 3], [1, 3, 4]]
    )
    check_map(plane, area=1.25 + 0.5 + 0.75)
    corners = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [0.5, 0.5, 2]]
    house = CellMap.from_polyhedra(corners, [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 8]])
    check_map(house, area=1 + 1 / 3)
    check_rings(house)


@pytest.mark.parametrize("kind", ["tetra", "pyramid", "wedge", "hexahedron"])
def test_vtk_order_gives_outward_faces(kind):
    points = {
        "tetra": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        "pyramid": [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]],
        "wedge": [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]],
        "hexahedron": [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]],
    }[kind]
    volume = {"tetra": 1 / 6, "pyramid": 1 / 3, "wedge": 1 / 2, "hexahedron": 1}[kind]
    check_map(CellMap.from_polyhedra(points, np.arange(len(points))[None]), area=volume)


def test_a_meshio_mesh_becomes_volumes_or_faces():
    # What meshio.read returns, as far as it is used: points, and blocks with a type and data.
    hexes = hex_grid(1, 1, 1)
    mesh = _meshio(hexes.positions, hexahedron=[[0, 4, 6, 2, 1, 5, 7, 3]], line=[[0, 1]])
    check_map(map_of_meshio(mesh), area=1.0)
    flat = _meshio([[0, 0], [1, 0], [1, 1], [0, 1], [2, 0]], quad=[[0, 1, 2, 3]], triangle=[[1, 4, 2]])
    check_map(map_of_meshio(flat), area=1.5)
    with pytest.raises(UnsupportedError, match="hexahedron20"):
        map_of_meshio(_meshio(np.zeros((20, 3)), hexahedron20=[list(range(20))]))
    with pytest.raises(InputError, match="neither faces nor volumes"):
        map_of_meshio(_meshio(np.zeros((2, 3)), line=[[0, 1]]))


def _meshio(points, **blocks):
    cells = [SimpleNamespace(type=kind, data=np.array(rows)) for kind, rows in blocks.items()]
    return SimpleNamespace(points=np.array(points, float), cells=cells)


def test_a_surface_file_becomes_a_map(tmp_path):
    generate.icosphere(1).save(tmp_path / "ball.ply")
    check_map(map_of_file(tmp_path / "ball.ply"))


def test_a_closed_surface_has_no_border_and_an_euler_number_of_two():
    ball = map_of_mesh(generate.icosphere(2))
    check_map(ball)
    assert not is_border(ball).any()
    assert len(orbits(ball, "vertex")) - len(orbits(ball, "edge")) + len(orbits(ball, "face")) == 2


@pytest.mark.feature("F-P-5")
def test_borders_are_where_the_mesh_ends_and_rings_turn_around_them():
    map = quad_grid(4, 3)
    darts = np.flatnonzero(is_border(map))
    assert len(darts) == 14
    ends = map.positions[map.numpy("origin")[np.stack([darts, map.numpy("phi1")[darts]])]]
    on_rim = (np.isin(ends[..., 0], [0, 4]).all(axis=0)) | (np.isin(ends[..., 1], [0, 3]).all(axis=0))
    assert on_rim.all()
    check_rings(map)
    annulus = CellMap.from_polygons(*_annulus())
    check_rings(annulus)
    assert is_border(annulus).sum() == 24
    block = hex_grid(2, 2, 2)
    assert is_border(block).sum() == 24 * 4
    check_rings(block)


def _annulus(n=12):
    angle = 2 * np.pi * np.arange(n) / n
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    i, j = np.arange(n), (np.arange(n) + 1) % n
    return np.concatenate([ring, 2 * ring]), np.stack([i, n + i, n + j, j], axis=1)


@pytest.mark.feature("F-P-6")
@pytest.mark.parametrize("name", ["quads", "hexahedra"])
def test_embeddings_and_marks_are_one_value_per_orbit(name, rng):
    map = GRIDS[name][0]()
    for _ in range(3):
        random_operation(map, rng, 2)
    origin, cell, darts = map.numpy("origin"), map.numpy("cell"), map.darts
    for orbit, steps in (("edge", ("phi2", "phi3")), ("face", ("phi1", "phi3"))):
        numbers = orbits(map, orbit)
        values = rng.random(len(numbers))
        seen = values[numbers.number[darts]]  # one step from any dart
        for step in steps:
            there = map.numpy(step)[darts]
            inside = there >= 0
            assert (values[numbers.number[there[inside]]] == seen[inside]).all()
    assert len(np.unique(np.stack([orbits(map, "vertex").number[darts], origin[darts]], 1), axis=0)) == map.vertex_count
    top = orbits(map, "volume" if map.dimension == 3 else "face").number[darts]
    pairs = np.unique(np.stack([top, cell[darts]], 1), axis=0)
    assert len(pairs) == len(np.unique(top)) == len(map.leaves)
    # A mark of a cell is seen from each of its darts, a wall from both of its sides.
    chosen = rng.choice(map.leaves, 3, replace=False)
    map.block("cell", chosen)
    across = map.numpy("phi3" if map.dimension == 3 else "phi2")
    for freed in range(4):
        left = chosen[freed:]
        assert np.array_equal(map.numpy("obstacle")[cell[darts]] == 1, np.isin(cell[darts], left))
        walls = (map.numpy("tag") >> 12) & 1
        expected = np.isin(cell[darts], left) | ((across[darts] >= 0) & np.isin(cell[across[darts]], left))
        assert np.array_equal(walls[darts] == 1, expected)
        map.block("cell", chosen[freed : freed + 1], blocked=False)


@pytest.mark.feature("F-P-7")
def test_traversers_count_what_brute_force_counts():
    for n in (1, 2, 3):
        block = hex_grid(n, n, n)
        m = n + 1
        sizes = {"vertex": m**3, "edge": 3 * n * m**2, "face": 3 * n**2 * m, "volume": n**3}
        for orbit, count in sizes.items():
            assert len(orbits(block, orbit)) == count
        assert len(incident(block, "volume", "vertex")) == 8 * n**3
        assert len(incident(block, "volume", "edge")) == 12 * n**3
        assert len(incident(block, "face", "edge")) == 4 * sizes["face"]
        index = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
        apart = np.abs(index[:, None] - index[None]).max(axis=2)
        assert len(adjacent(block, "volume", "vertex")) == (apart == 1).sum()
        steps = np.abs(index[:, None] - index[None]).sum(axis=2)
        assert len(adjacent(block, "volume", "face")) == (steps == 1).sum()
    plane = triangle_grid(3, 2)
    assert len(orbits(plane, "edge")) == 3 * 3 + 4 * 2 + 6
    assert len(incident(plane, "vertex", "face")) == 3 * 12


def test_a_vertex_where_only_corners_meet_is_doubled():
    bow_tie = CellMap.from_polygons([[0, 0], [1, 0], [1, 1], [2, 1], [2, 2]], [[0, 1, 2], [2, 3, 4]])
    check_map(bow_tie, area=1.0)
    assert bow_tie.vertex_count == 6
    assert len(bow_tie.rings.row(0)) == 0


@pytest.mark.parametrize(
    ("polygons", "message"),
    [
        ([[0, 1, 2], [0, 1, 3]], r"darts 0 and 3 \(from vertex 0 to 1\) break a law: .*phi2"),
        ([[0, 1, 2], [0, 2, 9]], "dart 5 uses vertex 9 but there are 4"),
        ([[0, 1, 1]], r"dart 2 \(face 0\) breaks a law: a face has vertex 1 only once"),
        ([[0, 1]], "face 0 has 2 corners"),
        ([], "there are none"),
        ([[0, 2, 1]], "cell 0 .* breaks a law: .*positive size"),
        ([[0.5, 1, 2]], "whole numbers"),
    ],
)
def test_bad_polygons_are_refused_by_dart_and_law(polygons, message):
    corners = [[0, 0], [1, 0], [0, 1], [1, 1]]
    with pytest.raises(InputError, match=message):
        CellMap.from_polygons(corners, polygons)


def test_mirrored_tetrahedra_fit_together_and_are_their_own_mirror_image():
    map = tet_grid(2, 4, 2, jitter=0.0, mirrored=True)
    check_map(map, area=16.0)
    assert len(map.leaves) == 6 * 16
    seen = np.unique(np.round(map.numpy("centre") - [1.0, 2.0, 1.0], 9), axis=0)
    for turned in ([-1, 1, 1], [1, -1, 1], [1, 1, -1]):
        assert np.array_equal(np.unique(np.round(seen * turned, 9) + 0.0, axis=0), seen + 0.0)
    check_map(tet_grid(3, 2, 3, jitter=0.1, mirrored=True))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quad_grid("a", 2), "quad_grid: columns must be a whole number of at least 1, not 'a'"),
        (lambda: quad_grid(1.5, 2), "quad_grid: columns must be a whole number of at least 1, not 1.5"),
        (lambda: triangle_grid(2, 0), "triangle_grid: rows must be a whole number of at least 1, not 0"),
        (lambda: hex_grid(2, 2, None), "hex_grid: nz must be a whole number of at least 1, not None"),
        (lambda: tet_grid(2, 2, 2, size="a"), "tet_grid: size must be a number, not 'a'"),
        (lambda: tet_grid(2, 2, 2, size=np.inf), "tet_grid: size must be positive and finite, not inf"),
        (lambda: quad_grid(2, 2, jitter=1.0), "quad_grid: jitter must be at least 0 and below 1, not 1.0"),
        (lambda: quad_grid(2, 2, seed=-1), "quad_grid: seed must be a whole number of at least 0, not -1"),
        (lambda: map_of_mesh(None), "map_of_mesh: mesh must be a Mesh, not NoneType"),
    ],
)
def test_grids_and_surfaces_that_make_no_sense_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_bad_polyhedra_and_positions_are_refused():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1.0]])
    with pytest.raises(InputError, match="each edge of a volume has two of its faces"):
        CellMap.from_polyhedra(corners, [[[0, 2, 1], [0, 1, 3], [1, 2, 3]]])
    with pytest.raises(InputError, match="a face has at most one volume on each side"):
        CellMap.from_polyhedra(corners, np.array([[0, 1, 2, 3], [0, 1, 2, 3]]))
    with pytest.raises(InputError, match="positive size"):
        CellMap.from_polyhedra(corners, np.array([[0, 2, 1, 3]]))
    with pytest.raises(InputError, match="vertex 4 is not finite"):
        CellMap.from_polyhedra(np.vstack([corners[:4], [[0, np.nan, 1]]]), np.array([[0, 1, 2, 3]]))
    with pytest.raises(InputError, match="cell 0 has no face"):
        CellMap.from_polyhedra(corners, [[], [0, 1, 2, 3]])
    with pytest.raises(InputError, match="has 7 corners"):
        CellMap.from_polyhedra(corners, [[0, 1, 2, 3, 4, 0, 1]])


@pytest.mark.feature("F-P-38")
def test_a_cell_that_its_mean_does_not_see_gets_a_centre_that_does():
    corner = CellMap.from_polygons(L_SHAPE, [[0, 1, 2, 3, 4, 5]])  # the mean of the corners is outside its kernel
    assert len(cells_not_star_shaped(corner)) == 0
    check_map(corner, area=7.0)
    centre = corner.numpy("centre")[0]
    assert 0 < centre[0] < 1
    assert 0 < centre[1] < 1
    # A cube whose top is pressed in to a point below the mean of its corners: only what is below that sees it all.
    low, high = ([[0, 0, z], [1, 0, z], [1, 1, z], [0, 1, z]] for z in (0, 1))
    sides = [[3, 2, 1, 0], *([i, (i + 1) % 4, 4 + (i + 1) % 4, 4 + i] for i in range(4))]
    dented = CellMap.from_polyhedra(
        [*low, *high, [0.5, 0.5, 0.2]], [[*sides, *([4 + i, 4 + (i + 1) % 4, 8] for i in range(4))]]
    )
    assert len(cells_not_star_shaped(dented)) == 0
    check_map(dented, area=1 - 0.8 / 3)
    centre = dented.numpy("centre")[0]
    assert centre[2] < 0.2 - 1.6 * np.abs(centre[:2] - 0.5).max()
    assert dented.positions.mean(axis=0)[2] > 0.2
    zigzag = [[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]]  # a U: no point sees it all
    with pytest.raises(InputError, match="star-shaped"):
        CellMap.from_polygons(zigzag, [list(range(8))])
    floor, roof = ([[*x, z] for x in zigzag] for z in (0, 1))
    walls = [[i, (i + 1) % 8, 8 + (i + 1) % 8, 8 + i] for i in range(8)]
    with pytest.raises(InputError, match="star-shaped"):
        CellMap.from_polyhedra([*floor, *roof], [[list(range(7, -1, -1)), list(range(8, 16)), *walls]])


def test_a_map_made_in_the_plane_is_flat_again_when_it_is_back():
    map = quad_grid(2, 2)
    flat, bent = map.positions.copy(), map.positions + [[0, 0, 1]] * map.positions[:, :1]
    map.move(bent)
    assert not map.flat
    map.move(flat)
    assert map.flat
    assert locate(map, [[1.5, 0.5]]).cell.tolist() == [2]


def test_a_deformation_that_turns_a_cell_inside_out_goes_on_and_marks_it():
    map = hex_grid(2, 2, 2)
    before = map.positions.copy()
    after = before.copy()
    after[np.flatnonzero((before == 1).all(axis=1))] = [5, 5, 5]
    map.move(after)
    assert np.array_equal(map.positions, after)
    # The oracle: of the eight cells at the vertex, those that have a simplex of negative size from their best centre.
    assert np.array_equal(map.inverted_cells, cells_not_star_shaped(map))
    assert len(map.inverted_cells) > 0
    with pytest.raises(UnsupportedError, match="star-shaped"):
        split(map, map.inverted_cells[:1])
    back = map.positions.copy()  # with places of vertices that were taken back
    back[: len(before)] = before
    map.move(back)
    assert len(map.inverted_cells) == 0
    check_map(map, area=8.0)
    with pytest.raises(InputError, match="vertex 3 is not finite"):
        map.move(np.where(np.arange(len(back))[:, None] == 3, np.nan, back))


def test_a_border_that_bends_inward_or_is_in_pieces_is_not_convex():
    """The oracle: whether the middle of any two corners of the border is in the map."""
    squares = {"square": [(0, 0), (1, 0), (0, 1), (1, 1)], "L": [(0, 0), (1, 0), (0, 1)]}
    squares |= {"ring": [(x, y) for x in range(3) for y in range(3) if (x, y) != (1, 1)], "two": [(0, 0), (2, 0)]}
    found = {}
    for name, cells in squares.items():
        corners = sorted({(x + i, y + j) for x, y in cells for i in (0, 1) for j in (0, 1)})
        number = {corner: k for k, corner in enumerate(corners)}
        quads = [[number[x, y], number[x + 1, y], number[x + 1, y + 1], number[x, y + 1]] for x, y in cells]
        map = CellMap.from_polygons(np.array(corners, float), quads, device="cpu")
        middles = [(np.array(a) + b) / 2 for a in corners for b in corners]
        held = [any(((m >= c) & (m <= np.add(c, 1))).all() for c in cells) for m in middles]
        assert has_convex_border(map) == all(held)
        split(map, map.leaves[:1])
        assert has_convex_border(map) == all(held)
        found[name] = all(held)
    assert found == {"square": True, "L": False, "ring": False, "two": False}

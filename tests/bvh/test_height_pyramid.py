"""The pyramid over a heightfield: bounds that hold, flags that are right, edits and tiles that give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.bvh.height_pyramid import (
    CONVEX_VERTEX,
    CONVEX_X,
    GAP,
    PLANAR,
    HeightPyramid,
    PagedPyramid,
    Terrain,
    height_at,
    node_bounds,
    node_flags,
    node_heights,
)
from tangere.bvh.height_pyramid.terrain import CONVEX_DIAGONAL, CONVEX_Y
from tangere.query.intersection import touches
from tangere.runtime import CapacityError, InputError, choose_device, launch
from tangere.shape.analytic import Cylinder
from tangere.shape.generate import terrain as generate
from tangere.shape.heightfield import Heightfield, TiledHeightfield


@wp.kernel(enable_backward=False)
def _read_nodes(
    first: int,
    t: Terrain,
    level: int,
    width: int,
    bounds: wp.array[wp.vec2f],
    flags: wp.array[int],
    heights: wp.array[wp.float64],
):
    k = first + wp.tid()
    bounds[k] = node_bounds(t, level, k // width, k % width)
    flags[k] = node_flags(t, level, k // width, k % width)
    if level == 0:
        heights[k] = node_heights(t, 0, k // width, k % width)[0]


@wp.kernel(enable_backward=False)
def _read_heights(first: int, t: Terrain, places: wp.array[wp.vec2d], out: wp.array[wp.float64]):
    k = first + wp.tid()
    out[k] = height_at(t, places[k][0], places[k][1])


def nodes(terrain, level, device):
    """Bounds (rows, columns, 2), flags and, at level 0, vertex heights of all nodes of a level, as kernels see them."""
    rows, columns = ((v >> level) + 1 for v in (terrain.rows, terrain.columns))
    count = rows * columns
    out = [wp.zeros(count, dtype=kind, device=device) for kind in (wp.vec2f, wp.int32, wp.float64)]
    launch(_read_nodes, count, [terrain, level, columns], out, device=choose_device(device))
    return out[0].numpy().reshape(rows, columns, 2), *(a.numpy().reshape(rows, columns) for a in out[1:])


def plain_flags(field: Heightfield) -> np.ndarray:
    """(rows + 1, columns + 1): flags of all owners, from their definition, one edge at a time."""
    rows, columns = field.shape
    h = field.heights.astype(np.float64)
    ground = np.zeros((rows + 2, columns + 2), bool)  # one more on every side
    ground[1:-1, 1:-1] = True if field.holes is None else ~field.holes
    flags = np.zeros((rows + 1, columns + 1), int)
    touched = np.zeros((rows + 1, columns + 1), bool)

    def solid(i, j):
        return ground[i + 1, j + 1]

    def look(i, j, bit, a, b, side_a, side_b, opposite_a, opposite_b):
        if solid(*side_a) and solid(*side_b):
            convex = h[a] + h[b] - h[opposite_a] - h[opposite_b] > field.flatness
        else:
            convex = solid(*side_a) != solid(*side_b)
        if convex:
            flags[i, j] |= bit
            touched[a] = touched[b] = True

    for i in range(rows + 1):
        for j in range(columns + 1):
            if j < columns:
                look(
                    i,
                    j,
                    CONVEX_X,
                    (i, j),
                    (i, j + 1),
                    (i, j),
                    (i - 1, j),
                    (min(i + 1, rows), j),
                    (max(i - 1, 0), j + 1),
                )
            if i < rows:
                look(
                    i,
                    j,
                    CONVEX_Y,
                    (i, j),
                    (i + 1, j),
                    (i, j),
                    (i, j - 1),
                    (i, min(j + 1, columns)),
                    (i + 1, max(j - 1, 0)),
                )
            if i < rows and j < columns:
                look(i, j, CONVEX_DIAGONAL, (i, j + 1), (i + 1, j), (i, j), (i, j), (i, j), (i + 1, j + 1))
            if not solid(i, j):
                flags[i, j] |= GAP
    flags[touched] |= CONVEX_VERTEX
    return flags


@pytest.mark.parametrize("shape", [(5, 9), (32, 31), (70, 33), (64, 64)])
def test_flags_of_cells_are_those_of_the_definition(shape, rng, device):
    heights = np.round(rng.normal(0.0, 1.0, (shape[0] + 1, shape[1] + 1)))  # many coplanar cells and level edges
    field = Heightfield(heights, (0.5, 0.7), (1.0, 2.0, 3.0), rng.random(shape) < 0.1)
    _, flags, seen = nodes(HeightPyramid.of(field, device).terrain, 0, device)
    assert np.array_equal(seen, heights)
    assert np.array_equal(flags & ~PLANAR, plain_flags(field))
    planar = heights[:-1, :-1] + heights[1:, 1:] == heights[:-1, 1:] + heights[1:, :-1]
    assert np.array_equal((flags[:-1, :-1] & PLANAR) != 0, planar & ~field.holes)


@pytest.mark.parametrize("shape", [(3, 100), (40, 40), (130, 70)])
def test_bounds_of_nodes_hold_all_their_ground_tightly_and_flags_gather(shape, rng, device):
    heights = rng.normal(1000.0, 1.0, (shape[0] + 1, shape[1] + 1))
    field = Heightfield(heights, holes=rng.random(shape) < 0.1)
    pyramid = HeightPyramid.of(field, device)
    corners = np.stack([heights[:-1, :-1], heights[:-1, 1:], heights[1:, :-1], heights[1:, 1:]])
    _, leaf_flags, _ = nodes(pyramid.terrain, 0, device)
    for level in range(pyramid.terrain.root + 1):
        bounds, flags, _ = nodes(pyramid.terrain, level, device)
        for i in range(flags.shape[0]):
            for j in range(flags.shape[1]):
                cells = slice(i << level, (i + 1) << level), slice(j << level, (j + 1) << level)
                solid = corners[:, cells[0], cells[1]][:, ~field.holes[cells]]
                if solid.size:
                    assert bounds[i, j, 0] <= solid.min()
                    assert solid.max() <= bounds[i, j, 1]
                    around = heights[cells[0].start : cells[0].stop + 1, cells[1].start : cells[1].stop + 1]
                    assert bounds[i, j, 0] >= around.min() - 1e-3
                    assert bounds[i, j, 1] <= around.max() + 1e-3
                gathered = np.bitwise_or.reduce(leaf_flags[cells], axis=None)
                assert (flags[i, j] & ~PLANAR) == (gathered & ~PLANAR)


def test_planar_squares_are_found_at_every_size_and_bent_ones_are_not(device):
    for field in (generate.flat((12.8, 12.8)), generate.slope((12.8, 12.8), angle=0.4, heading=0.7)):
        for level in range(7):
            _, flags, _ = nodes(HeightPyramid.of(field, device).terrain, level, device)
            inside = flags[: 128 >> level, : 128 >> level]
            assert ((inside & PLANAR) != 0).all(), (field.name, level)
    bent = generate.flat((12.8, 12.8)).edit((50, 60), [[1e-6]])
    _, flags, _ = nodes(HeightPyramid.of(bent, device).terrain, 3, device)
    assert np.argwhere((flags[:16, :16] & PLANAR) == 0).tolist() == [[6, 7]]


def test_height_under_a_place_is_that_of_the_field(rng, device):
    field = Heightfield(rng.normal(size=(50, 70)), (0.5, 0.7), holes=rng.random((49, 69)) < 0.2)
    places = rng.uniform([-1.0, -1.0], [36.0, 36.0], (2000, 2))
    out = wp.zeros(2000, dtype=wp.float64, device=device)
    terrain = HeightPyramid.of(field, device).terrain
    launch(_read_heights, 2000, [terrain, wp.array(places, dtype=wp.vec2d, device=device)], [out], device=out.device)
    assert out.numpy() == pytest.approx(field.height_at(places), abs=1e-12, nan_ok=True)


def same_pyramid(a, b) -> bool:
    names = ("heights", "bounds", "flags", "top_bounds", "top_flags")
    return all(np.array_equal(getattr(a, n).numpy(), getattr(b, n).numpy(), equal_nan=True) for n in names)


def test_after_edits_the_pyramid_is_that_of_a_rebuild_and_the_old_one_stays(rng, device):
    field = Heightfield(rng.normal(size=(140, 100)), 0.3, holes=rng.random((139, 99)) < 0.05)
    HeightPyramid.of(field, device)
    kept = Heightfield(field.heights, 0.3, holes=field.holes)
    now = field
    for _ in range(12):
        rows, columns = rng.integers(1, 40, 2)
        first = rng.integers(0, 140 - rows), rng.integers(0, 100 - columns)
        heights = rng.normal(size=(rows, columns))
        holes = rng.random((rows - 1, columns - 1)) < 0.3 if rng.random() < 0.5 else None
        now = now.edit((int(first[0]), int(first[1])), heights, holes=holes)
        if rng.random() < 0.6:  # several edits may come before anybody looks
            rebuilt = Heightfield(now.heights, 0.3, holes=now.holes)
            assert same_pyramid(HeightPyramid.of(now, device).terrain, HeightPyramid.of(rebuilt, device).terrain)
            assert now.edited is None
    assert same_pyramid(HeightPyramid.of(field, device).terrain, HeightPyramid.of(kept, device).terrain)
    assert HeightPyramid.of(field, device) is HeightPyramid.of(field, device)


def random_cylinders(rng, field, count):
    poses = np.tile(np.eye(4), (count, 1, 1))
    lower, upper = field.bounds
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    poses[:, :3, :3] = turns * np.sign(np.linalg.det(turns))[:, None, None]
    poses[:, :3, 3] = rng.uniform(lower - [1.0, 1.0, 0.0], upper + [1.0, 1.0, 0.5], (count, 3))
    return Cylinder(0.5, 1.2).at(poses)


def with_few_pages(land, device, count):
    """The pages of a terrain in tiles, `count` at a time."""
    on = choose_device(device)
    land.cache["pyramid", on.alias] = PagedPyramid(land, on, resident=count)
    return PagedPyramid.of(land, device)


@pytest.mark.feature("F-S-29")
@pytest.mark.parametrize("source", ["folder", "mapped"])
def test_tiles_answer_as_one_grid_does_also_across_seams(source, rng, device, tmp_path):
    heights = rng.normal(0.0, 0.3, (200, 170)).astype(np.float32)
    holes = rng.random((199, 169)) < 0.05
    whole = Heightfield(heights, (0.3, 0.25), (5.0, -6.0, 7.0), holes)
    if source == "folder":
        tiles = TiledHeightfield.create(tmp_path / "land", heights, (0.3, 0.25), (5.0, -6.0, 7.0), holes, tile=48)
    else:
        np.save(tmp_path / "land.npy", heights)
        mapped = np.load(tmp_path / "land.npy", mmap_mode="r")
        tiles = TiledHeightfield(mapped, (0.3, 0.25), (5.0, -6.0, 7.0), holes)
    pages = with_few_pages(tiles, device, 12)  # of 42: bodies come in groups
    cylinders = random_cylinders(rng, whole, 3000)
    one, many = touches(cylinders, whole, device=device), touches(cylinders, tiles, device=device)
    for name in ("surface", "buried", "outside"):
        assert np.array_equal(getattr(one, name), getattr(many, name))
    assert 300 < one.surface.sum() < 2900
    assert pages.loads >= 42
    again = touches(cylinders[:20], tiles, device=device)
    assert pages.loads > 42
    assert np.array_equal(again.surface, one.surface[:20])
    touches(cylinders[:1], tiles, device=device)
    before = pages.loads
    touches(cylinders[:1], tiles, device=device)
    assert pages.loads == before


def test_tiles_may_be_written_from_a_function_and_bad_folders_are_refused(tmp_path):
    land = TiledHeightfield.create(
        tmp_path / "a",
        lambda i, j: np.add.outer(np.arange(i.start, i.stop), np.arange(j.start, j.stop)),
        shape=(90, 50),
        tile=40,
    )
    assert land.shape == (90, 50)
    assert land.bounds[:, 2].tolist() == [0.0, 140.0]
    assert np.array_equal(land.heights[:, :], np.add.outer(np.arange(91), np.arange(51)))
    with pytest.raises(InputError, match="shape"):
        TiledHeightfield.create(tmp_path / "b", lambda i, j: np.zeros((1, 1)))
    with pytest.raises(InputError, match="not a folder of terrain tiles"):
        TiledHeightfield.load(tmp_path / "none")
    with pytest.raises(InputError, match="not finite"):
        TiledHeightfield.create(tmp_path / "c", np.full((5, 5), np.nan))
    (tmp_path / "a" / "tile_0_0.npy").unlink()
    with pytest.raises(InputError, match="tile_0_0"):
        PagedPyramid.of(TiledHeightfield.load(tmp_path / "a"), "cpu")


def test_a_body_larger_than_all_resident_tiles_is_refused(rng):
    land = TiledHeightfield(rng.normal(size=(300, 300)))
    with_few_pages(land, "cpu", 4)
    with pytest.raises(CapacityError, match=r"body at \[0.0, 0.0, 0.0\] reaches over 49 tiles"):
        touches(Cylinder(200.0, 1.0), land, device="cpu")

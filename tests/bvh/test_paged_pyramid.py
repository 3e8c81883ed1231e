"""Tiles that come and go: what is kept of them beside their files, budgets of memory, files that change behind us."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from tangere.bvh.height_pyramid import HeightPyramid, PagedPyramid, pyramid
from tangere.bvh.height_pyramid.pages import PAGE_BYTES
from tangere.bvh.height_pyramid.pyramid import mark_tiles, tiles_of, windows_of
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.runtime import InputError, choose_device, launch
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield, Relief, TiledHeightfield
from tangere.shape.heightfield.relief_file import FILE


def cylinders_over(field: Heightfield, count: int, rng: np.random.Generator) -> Cylinder:
    poses = np.tile(np.eye(4), (count, 1, 1))
    lower, upper = field.bounds
    poses[:, :3, 3] = rng.uniform(lower, upper, (count, 3))
    return Cylinder(0.5, 1.2).at(poses)


def same_upper_levels(paged: PagedPyramid, field: Heightfield, device: str) -> bool:
    """Whether all that is known above the tiles has the bits of a pyramid that was built from all heights."""
    whole = HeightPyramid.of(field, device).terrain
    names = ("top_bounds", "top_flags", "top_corners", "top_offset")
    return all(np.array_equal(getattr(paged.terrain, n).numpy(), getattr(whole, n).numpy()) for n in names)


def ground(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    rows, columns = shape
    if kind == "steps":  # coplanar cells, level edges
        return np.round(rng.normal(size=(rows + 1, columns + 1))), rng.random(shape) < 0.02
    if kind == "rough":
        return rng.normal(1000.0, 1.0, (rows + 1, columns + 1)).astype(np.float32), None
    plane = np.add.outer(0.25 * np.arange(rows + 1), 0.5 * np.arange(columns + 1))
    plane[rows // 2, columns // 2] += 1e-9  # more than rounding, less than a ridge
    holes = np.zeros(shape, bool)
    holes[: rows // 3, : columns // 3] = rng.random((rows // 3, columns // 3)) < 0.02
    return plane, holes


@pytest.mark.parametrize("kind", ["steps", "rough", "plane"])
@pytest.mark.parametrize("shape", [(5, 9), (32, 31), (64, 64), (200, 170), (700, 33)])
def test_the_levels_above_tiles_are_known_without_reading_a_tile(kind, shape, rng, device, tmp_path):
    heights, holes = ground(kind, shape, rng)
    field = Heightfield(heights, (0.5, 0.7), (1.0, 2.0, 3.0), holes)
    TiledHeightfield.create(tmp_path, heights, (0.5, 0.7), (1.0, 2.0, 3.0), holes, tile=48)
    land = TiledHeightfield.load(tmp_path)
    for each in tmp_path.glob("*_*_*.npy"):
        each.unlink()
    assert same_upper_levels(PagedPyramid.of(land, device), field, device)
    assert np.array_equal(land.bounds, field.bounds)
    in_memory = TiledHeightfield(heights, (0.5, 0.7), (1.0, 2.0, 3.0), holes)
    assert same_upper_levels(PagedPyramid.of(in_memory, device), field, device)


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which the number of squares is appended whenever some are looked at."""
    looks, look = [], Relief.update

    def counted(self, blocks, *arguments):
        blocks = list(blocks)
        looks.append(sum((b[1] - b[0] + 1) * (b[3] - b[2] + 1) for b in blocks))
        look(self, blocks, *arguments)

    monkeypatch.setattr(Relief, "update", counted)
    return looks


def damaged(path: Path, how: str, heights: np.ndarray) -> None:
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-1000])
    elif how == "flipped":  # somewhere in the heights of corners: the checksum of that part is wrong
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    elif how == "empty":
        path.write_bytes(b"")
    else:
        with tempfile.TemporaryDirectory() as other:
            TiledHeightfield.create(other, heights[:100, :100], tile=64)
            path.write_bytes((Path(other) / FILE).read_bytes())


@pytest.mark.parametrize("how", ["missing", "cut", "flipped", "empty", "of another grid"])
def test_a_relief_that_is_no_good_is_made_anew(how, rng, tmp_path, monkeypatch):
    heights = rng.normal(size=(200, 170))
    field = Heightfield(heights)
    TiledHeightfield.create(tmp_path, heights, tile=64)
    damaged(tmp_path / FILE, how, heights)
    looks = count_looks(monkeypatch)
    assert same_upper_levels(PagedPyramid.of(TiledHeightfield.load(tmp_path), "cpu"), field, "cpu")
    assert looks == [7 * 6]
    assert same_upper_levels(PagedPyramid.of(TiledHeightfield.load(tmp_path), "cpu"), field, "cpu")
    assert looks == [7 * 6]  # it has been written back


def test_a_folder_that_cannot_be_written_to_has_its_relief_in_memory(rng, tmp_path, monkeypatch):
    heights = rng.normal(size=(200, 170))
    TiledHeightfield.create(tmp_path, heights, tile=64)
    (tmp_path / FILE).unlink()

    def refuse(*_, **__):
        raise PermissionError("read only")

    monkeypatch.setattr(os, "replace", refuse)
    land = TiledHeightfield.load(tmp_path)
    assert same_upper_levels(PagedPyramid.of(land, "cpu"), Heightfield(heights), "cpu")
    assert not (tmp_path / FILE).exists()


def test_only_what_borders_on_a_changed_tile_is_looked_at_again(rng, tmp_path, monkeypatch):
    heights = rng.normal(size=(513, 513))
    TiledHeightfield.create(tmp_path, heights, tile=128)
    looks = count_looks(monkeypatch)
    heights[128:257, 256:385] = rng.normal(10.0, 1.0, (129, 129))
    for i in (0, 1, 2):
        for j in (1, 2, 3):  # its neighbours have the new border as well
            part = heights[128 * i : 128 * i + 129, 128 * j : 128 * j + 129]
            path = tmp_path / f"tile_{i}_{j}.npy"
            if not np.array_equal(np.load(path), part):
                np.save(path, part)
                os.utime(path)
    assert same_upper_levels(PagedPyramid.of(TiledHeightfield.load(tmp_path), "cpu"), Heightfield(heights), "cpu")
    assert 0 < looks[0] < 17 * 17 * 2  # each of up to nine tiles has 6 x 6 squares
    assert len(looks) == 1


def test_tiles_that_change_while_they_are_open_are_noticed(rng, device, tmp_path):
    heights = rng.normal(size=(130, 130))
    field = Heightfield(heights)
    land = TiledHeightfield.create(tmp_path, heights, tile=64)
    bodies = cylinders_over(field, 200, rng)
    land.heights[0:1, 0:1]  # mapped, like all tiles somebody has looked at
    np.save(tmp_path / "tile_1_1.npy", np.load(tmp_path / "tile_1_1.npy") + 1.0)
    for _ in range(2):  # and nothing half loaded is used afterwards
        with pytest.raises(InputError, match="changed since it was opened"):
            touches(bodies, land, device=device)
    heights[64:, 64:] += 1.0
    for i, j in ((0, 1), (1, 0), (0, 0)):
        np.save(tmp_path / f"tile_{i}_{j}.npy", heights[64 * i : 64 * i + 65, 64 * j : 64 * j + 65])
    again = touches(bodies, TiledHeightfield.load(tmp_path), device=device)
    assert np.array_equal(again.surface, touches(bodies, Heightfield(heights), device=device).surface)


def test_a_relief_that_lies_is_noticed_where_its_tile_is_read(rng, device, tmp_path):
    heights = rng.normal(size=(130, 130))
    TiledHeightfield.create(tmp_path, heights, tile=64)
    with np.load(tmp_path / FILE) as file:
        parts = dict(file)
    parts["ground"][1, 2] = -5.0, -4.0
    np.savez(tmp_path / FILE, **parts)
    land = TiledHeightfield.load(tmp_path)
    pose = np.eye(4)[None].copy()
    pose[0, :2, 3] = 16.0
    assert touches(Cylinder(0.5, 1.2).at(pose), land, device=device).surface.all()
    pose[0, :2, 3] = 80.0, 48.0
    with pytest.raises(InputError, match=r"cells from \(32, 64\)"):
        touches(Cylinder(0.5, 1.2).at(pose), land, device=device)


def test_within_a_budget_the_tiles_noted_longest_ago_are_given_up(rng, device, monkeypatch):
    monkeypatch.setattr(pyramid, "FIRST_PAGES", 2)  # room is made as it is needed
    heights = rng.normal(size=(161, 161))
    land = TiledHeightfield(heights, budget=5 * PAGE_BYTES + 100)
    pages = PagedPyramid.of(land, device)
    assert pages.resident == 5

    def ask(tile: int) -> int:
        """How many tiles are loaded to look at one."""
        pose, before = np.eye(4)[None].copy(), pages.loads
        pose[0, :2, 3] = 32 * tile + 16.0, 16.0
        found = manifold(Cylinder(0.5, 4.0).at(pose), land, device=device)
        assert np.array_equal(found.gap, manifold(Cylinder(0.5, 4.0).at(pose), Heightfield(heights), device=device).gap)
        return pages.loads - before

    assert [ask(k) for k in (0, 1, 2, 3, 4)] == [1, 1, 1, 1, 1]
    assert [ask(k) for k in (0, 4, 2)] == [0, 0, 0]
    assert ask(5) == 1  # in place of 1
    assert [ask(k) for k in (3, 0, 2, 4, 5)] == [0, 0, 0, 0, 0]
    assert ask(1) == 1
    with pytest.raises(InputError, match="budget"):
        TiledHeightfield(heights, budget=0)


def test_a_group_of_bodies_may_find_all_its_tiles_loaded(rng, device):
    heights = rng.normal(size=(31, 191))
    land = TiledHeightfield(heights, budget=3 * PAGE_BYTES)
    poses = np.tile(np.eye(4), (6, 1, 1))
    poses[:, 0, 3], poses[:, 1, 3] = 32.0 * np.arange(6) + 16.0, 16.0
    bodies = Cylinder(0.5, 4.0).at(poses)
    manifold(bodies[:3], land, device=device)
    found = manifold(bodies, land, device=device)  # the first three, then the others
    assert PagedPyramid.of(land, device).loads == 6
    assert np.array_equal(found.gap, manifold(bodies, Heightfield(heights), device=device).gap)


def test_kernel_and_host_note_the_same_tiles(rng, device):
    land = TiledHeightfield(np.zeros((200, 170)), (0.3, 0.25), (5.0, -6.0, 7.0))
    pages = PagedPyramid(land, choose_device(device), resident=3)
    centres = rng.uniform([-20.0, -40.0, 0.0], [80.0, 80.0, 1.0], (300, 3))
    reach = 10.0 ** rng.uniform(-3.0, 2.0, 300)
    centres[:6, 0] = np.nan, np.inf, -np.inf, 1e300, 5.0, 5.0 + 0.3 * 32
    reach[4:8] = 0.3, 0.3, 1e300, np.inf
    total = pages.counts[0] * pages.counts[1]
    for k in range(300):
        noted = wp.zeros(total, dtype=wp.int64, device=device)
        lacking = wp.zeros(1, dtype=wp.int64, device=device)
        inputs = [wp.array(part[k : k + 1], dtype=wp.float64, device=device) for part in (centres, reach)]
        launch(mark_tiles, 1, [pages.row, pages.counts[0], *inputs, 7], [noted, lacking], device=choose_device(device))
        listed, owners = tiles_of(*windows_of(land, centres[k : k + 1], reach[k : k + 1]), pages.counts)
        assert np.flatnonzero(noted.numpy() == 7).tolist() == listed.tolist()
        assert (owners == 0).all()
        assert (lacking.numpy()[0] == 7) == (len(listed) > 0)


def test_threads_that_ask_at_once_do_not_take_away_each_others_tiles(rng, device):
    heights = rng.normal(size=(200, 170))
    land, field = TiledHeightfield(heights, 0.5, budget=6 * PAGE_BYTES), Heightfield(heights, 0.5)
    batches = [cylinders_over(field, 100, rng) for _ in range(6)]
    wrong = wp.array(
        np.full((70, 4, 4), np.nan), dtype=wp.mat44d, device=device
    )  # arrays of Warp are not looked at first
    with ThreadPoolExecutor(4) as pool:
        refused = pool.submit(manifold, Cylinder(0.5, 1.2).at(wrong), land, device=device)
        found = list(pool.map(lambda bodies: manifold(bodies, land, device=device), batches, timeout=60.0))
    assert isinstance(refused.exception(), InputError)  # which is kept, but stops nobody
    for bodies, contacts in zip(batches, found, strict=True):
        expected = manifold(bodies, field, device=device)
        assert np.array_equal(contacts.query, expected.query)
        assert np.array_equal(contacts.gap, expected.gap)


def test_no_bodies_and_bodies_beside_the_ground_need_no_tiles(rng, device):
    land = TiledHeightfield(rng.normal(size=(100, 100)))
    pages = PagedPyramid.of(land, device)
    pose = np.eye(4)[None].copy()
    pose[0, 0, 3] = -50.0
    for poses in (np.empty((0, 4, 4)), pose):
        assert len(manifold(Cylinder(0.5, 1.2).at(poses), land, device=device)) == 0
    assert pages.loads == 0
    pose[0, 0, 3] = np.nan
    unseen = wp.array(pose, dtype=wp.mat44d, device=device)  # until a kernel looks at it
    with pytest.raises(InputError, match="body 0: its pose is not finite"):
        manifold(Cylinder(0.5, 1.2).at(unseen), land, device=device)

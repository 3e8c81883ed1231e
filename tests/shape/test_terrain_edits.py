"""Digging in tiles: the folder is then as if it had been written so, seams and relief included."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tangere.runtime import InputError
from tangere.shape.heightfield import TiledHeightfield
from tangere.shape.heightfield.relief_file import FILE


def everything(folder) -> dict[str, np.ndarray]:
    """All arrays of a folder but the times of its files."""
    found = {path.name: np.load(path) for path in folder.glob("*_*_*.npy")}
    with np.load(folder / FILE) as file:
        return found | {part: file[part] for part in file.files if part != "states"}


def test_after_edits_a_folder_is_as_if_it_had_been_written_so(rng, tmp_path):
    heights, holes = rng.normal(size=(150, 130)), rng.random((149, 129)) < 0.05
    TiledHeightfield.create(tmp_path / "dug", heights, 0.5, (1.0, 2.0, 3.0), holes, tile=40)
    for k in range(12):
        rows, columns = (int(n) for n in rng.integers(2, 60, 2))
        i, j = int(rng.integers(0, 151 - rows)), int(rng.integers(0, 131 - columns))
        if k < 3:  # also along seams, and in the last corner
            i, j, rows, columns = ((40, 80, 1, 1), (39, 79, 2, 2), (149, 129, 1, 1))[k]
        patch, mask = rng.normal(size=(rows, columns)), None
        heights[i : i + rows, j : j + columns] = patch
        if k % 2 and k > 2:
            mask = rng.random((rows - 1, columns - 1)) < 0.3
            holes[i : i + rows - 1, j : j + columns - 1] = mask
        land = TiledHeightfield.load(tmp_path / "dug").edit((i, j), patch, holes=mask)
        assert land.bounds[:, 2].tolist() == [3.0 + heights.min(), 3.0 + heights.max()]
    TiledHeightfield.create(tmp_path / "so", heights, 0.5, (1.0, 2.0, 3.0), holes, tile=40)
    one, other = everything(tmp_path / "dug"), everything(tmp_path / "so")
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert np.array_equal(values, other[name]), name


def test_the_first_hole_of_a_folder_is_found_afterwards(tmp_path):
    TiledHeightfield.create(tmp_path, np.zeros((50, 50)), tile=32)
    land = TiledHeightfield.load(tmp_path).edit((30, 30), holes=np.ones((5, 5), bool))
    assert land.holes is not None
    mask = land.holes[0:49, 0:49]
    assert mask.sum() == 25
    assert mask[30:35, 30:35].all()
    filled = TiledHeightfield.load(tmp_path).edit((30, 30), holes=np.zeros((5, 5), bool))
    assert filled.holes is not None
    assert filled.holes[0:49, 0:49].sum() == 0


def test_an_edit_is_seen_however_coarse_the_clock_of_the_disk_is(tmp_path):
    TiledHeightfield.create(tmp_path, np.zeros((50, 50)), tile=32)
    late = 2 * os.stat(tmp_path / "tile_0_0.npy").st_mtime_ns  # as if all that follows happened in one tick
    for path in tmp_path.glob("tile_*.npy"):
        os.utime(path, ns=(late, late))
    assert TiledHeightfield.load(tmp_path).bounds[1, 2] == 0.0
    assert TiledHeightfield.load(tmp_path).edit((3, 3), [[1.0]]).bounds[1, 2] == 1.0
    assert TiledHeightfield.load(tmp_path).edit((3, 3), [[2.0]]).bounds[1, 2] == 2.0


@pytest.mark.parametrize(
    ("first", "heights", "holes", "reason"),
    [
        ((0, 0), [[np.nan]], None, "not finite"),
        ((49, 49), np.zeros((2, 2)), None, "leaves"),
        ((-1, 0), np.zeros((2, 2)), None, "leaves"),
        ((0, 0), np.zeros(3), None, "cannot be"),
        ((0, 0), None, np.zeros((2, 2)), "cannot be"),
        ((0, 0), np.zeros((3, 3)), np.zeros((3, 3), bool), "between"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_writes_nothing(first, heights, holes, reason, tmp_path):
    TiledHeightfield.create(tmp_path, np.zeros((50, 50)), tile=32)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=reason):
        TiledHeightfield.load(tmp_path).edit(first, heights, holes=holes)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_slices_of_a_folder_are_those_of_the_array(rng, tmp_path):
    heights, holes = rng.normal(size=(150, 130)), rng.random((149, 129)) < 0.05
    land = TiledHeightfield.create(tmp_path, heights, holes=holes, tile=40)
    assert land.holes is not None
    for _ in range(50):
        i, j = (np.sort(rng.integers(-5, 160, 2)).clip(0) for _ in range(2))
        window = slice(int(i[0]), int(i[1])), slice(int(j[0]), int(j[1]))
        assert np.array_equal(land.heights[window], heights[window])
        assert np.array_equal(land.holes[window], holes[window])
    (tmp_path / "tile_1_1.npy").write_bytes((tmp_path / "tile_3_3.npy").read_bytes())
    with pytest.raises(InputError, match=r"tile_1_1.npy' must be"):
        TiledHeightfield.load(tmp_path)

"""Folders of tiles and what is wrong with them: every fault is named, nothing is read as level ground."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from tangere.query.manifold import manifold
from tangere.runtime import InputError
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import TiledHeightfield
from tangere.shape.heightfield.relief_file import FILE
from tangere.shape.heightfield.tile_folder import TileFolder

HEIGHTS = np.random.default_rng(7).normal(5.0, 0.1, (71, 91))


def standing() -> Cylinder:
    pose = np.eye(4)
    pose[:3, 3] = 32.0, 32.0, 5.55
    return Cylinder(0.5, 1.2).at(pose)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"spacing": -1.0}, "spacing"),
        ({"origin": (0.0, np.nan, 0.0)}, "origin"),
        ({"tile": 0}, "side of a tile"),
        ({"tile": -3}, "side of a tile"),
        ({"tile": 2.5}, "side of a tile"),
        ({"heights": HEIGHTS[:1]}, "at least"),
        ({"heights": HEIGHTS[0]}, "shape"),
        ({"heights": HEIGHTS > 5.0}, "numbers"),
        ({"heights": HEIGHTS + 1j}, "numbers"),
        ({"shape": (30, 30)}, "shape"),
        ({"holes": np.zeros((10, 10), bool)}, "holes"),
        ({"holes": np.zeros((100, 120), bool)}, "holes"),
        ({"holes": np.full((70, 90), 0.5)}, "holes"),
    ],
)
def test_what_cannot_be_written_is_refused_and_never_opens_as_something_else(what, reason, tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, 0.5, (100.0, 0.0, 0.0), tile=32)
    with pytest.raises(InputError, match=reason):
        TiledHeightfield.create(tmp_path, **({"heights": HEIGHTS + 1.0, "tile": 32} | what))
    try:
        land = TiledHeightfield.load(tmp_path)
    except InputError:
        return
    assert np.array_equal(land.heights[:, :], HEIGHTS)  # what was there before
    assert land.origin == (100.0, 0.0, 0.0)


def test_a_folder_is_not_written_from_its_own_tiles(tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, tile=32)
    with pytest.raises(InputError, match="from themselves"):
        TiledHeightfield.create(tmp_path, TileFolder(tmp_path), tile=16)
    assert np.array_equal(TileFolder(tmp_path)[:, :], HEIGHTS)


def test_heights_of_two_precisions_are_refused(tmp_path):
    def mixed(i: slice, j: slice) -> np.ndarray:
        return HEIGHTS[i, j].astype(np.float32 if i.start else np.float64)

    with pytest.raises(InputError, match="float32"):
        TiledHeightfield.create(tmp_path, mixed, shape=(70, 90), tile=32)


@pytest.mark.parametrize(
    "about",
    [[1], 5, {}, {"tile": 0}, {"tile": -1}, {"tile": None}, {"shape": [-1, 2]}, {"dtype": "int8"}, {"dtype": "bogus"}]
    + [{"spacing": None}, {"origin": [1.0]}],
)
def test_a_folder_that_says_nonsense_of_itself_is_refused(about, tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, tile=32)
    path = tmp_path / "terrain.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | about if isinstance(about, dict) and about else about))
    with pytest.raises(InputError, match="not a folder of terrain tiles"):
        TiledHeightfield.load(tmp_path)


@pytest.mark.parametrize("how", ["empty", "strings", "complex", "float32", "archive"])
def test_a_file_that_is_no_tile_is_named(how, tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, tile=32)
    path = tmp_path / "tile_1_1.npy"
    with path.open("wb") as file:
        if how == "archive":
            np.savez(file, heights=HEIGHTS)
        elif how != "empty":
            np.save(file, np.zeros((33, 33), {"strings": "U1"}.get(how, how)))
    with pytest.raises(InputError, match=r"tile_1_1\.npy"):
        TiledHeightfield.load(tmp_path)


def test_files_are_closed_with_the_folder(tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, tile=8)
    gc.collect()
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else pytest.skip("no /proc")
    gc.disable()
    try:
        for k in range(3):
            TiledHeightfield.load(tmp_path).edit((0, 0), HEIGHTS + k)
        assert len(os.listdir("/proc/self/fd")) <= before
    finally:
        gc.enable()


def test_ground_in_tiles_can_be_pickled_and_copied(tmp_path):
    land = TiledHeightfield.create(tmp_path, HEIGHTS, holes=HEIGHTS[1:, 1:] > 5.2, tile=32)
    found = manifold(standing(), land, device="cpu")
    assert len(found) > 0
    for other in (pickle.loads(pickle.dumps(land)), copy.deepcopy(land)):
        assert np.array_equal(manifold(standing(), other, device="cpu").gap, found.gap)


def test_the_relief_may_be_read_by_whoever_may_read_the_tiles(tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, tile=32)
    assert (tmp_path / FILE).stat().st_mode == (tmp_path / "tile_0_0.npy").stat().st_mode


@pytest.mark.parametrize("how", ["an array", "other ranks", "other types"])
def test_a_relief_of_the_wrong_form_is_made_anew(how, tmp_path):
    TiledHeightfield.create(tmp_path, HEIGHTS, tile=32)
    parts = dict(np.load(tmp_path / FILE))
    if how == "other ranks":
        parts["ground"] = parts["ground"][..., :1]
    elif how == "other types":
        parts["marks"] = parts["marks"].astype("U3")
    with (tmp_path / FILE).open("wb") as file:
        np.save(file, HEIGHTS) if how == "an array" else np.savez(file, **parts)
    assert len(manifold(standing(), TiledHeightfield.load(tmp_path), device="cpu")) > 0


def test_extremes_that_are_not_those_of_the_heights_are_refused():
    heights = np.zeros((129, 129))
    heights[44, 44] = 0.9
    with pytest.raises(InputError, match="from 5"):
        TiledHeightfield(heights, lowest=5.0, highest=-5.0)
    with pytest.raises(InputError, match=r"from 0\.0 to 0\.9"):  # or a plane as rough as 1e16 m are round
        manifold(standing(), TiledHeightfield(heights, lowest=0.0, highest=1e16), device="cpu")

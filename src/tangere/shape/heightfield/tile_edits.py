"""Edits of ground that is kept in tiles: a window of heights or holes is written into the files it touches.

A vertex on a seam is written into all tiles that have it. Files are replaced whole, so that nobody reads half a tile,
and are newer than before, so that what is kept of them (`relief_file`) is computed anew there and nowhere else.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, described, to_numpy
from tangere.shape.heightfield.heightfield import LARGEST_HEIGHT
from tangere.shape.heightfield.tile_folder import ABOUT, TileFolder


def edit_tile_files(
    folder: str | PathLike[str], first: tuple[int, int], heights: Any = None, *, holes: Any = None
) -> None:
    """Write other heights, other holes or both into a window of a folder of tiles; see `TiledHeightfield.edit`."""
    tiles, masks = TileFolder(folder), TileFolder(folder, "holes")
    try:
        row, column = (index(each) for each in first)
    except (TypeError, ValueError) as error:
        told = f"first must be a row and a column, not {described(first)}"
        raise InputError(f"terrain {tiles.folder.name!r}: {told}") from error
    if heights is None and holes is None:
        raise InputError(f"terrain {tiles.folder.name!r}: an edit needs heights (r, c), or holes (r - 1, c - 1)")
    first, patches = (row, column), []
    for each, patch, kinds in ((tiles, heights, "fiu"), (masks, holes, "b")):
        if patch is not None:
            patches.append((each, _checked(each, first, patch, kinds)))
    if len(patches) == 2 and patches[0][1].shape != tuple(n + 1 for n in patches[1][1].shape):
        raise InputError(f"terrain {tiles.folder.name!r}: holes are those of the cells between the heights")
    for each, patch in patches:
        _put(each, first, patch)
    if holes is not None and not tiles.about["holes"]:
        _replace(tiles.folder / ABOUT, json.dumps(tiles.about | {"holes": True}, indent=1).encode())


def _checked(tiles: TileFolder, first: tuple[int, int], patch: Any, kinds: str) -> np.ndarray:
    name, what = tiles.folder.name, "holes" if tiles.prefix == "holes" else "heights"
    values = to_numpy(patch, f"terrain {name!r}: {what}", None)
    if values.ndim != 2 or values.size == 0 or values.dtype.kind not in kinds:
        raise InputError(f"terrain {name!r}: {what} of a window cannot be {values.dtype} of shape {values.shape}")
    if min(first) < 0 or first[0] + values.shape[0] > tiles.shape[0] or first[1] + values.shape[1] > tiles.shape[1]:
        raise InputError(f"terrain {name!r}: a window {values.shape} at {tuple(first)} leaves {what} of {tiles.shape}")
    if what == "heights" and not (np.abs(values) <= LARGEST_HEIGHT).all():  # NaN is not
        raise InputError(f"terrain {name!r}: a height of the window at {tuple(first)} is not finite")
    return values


def _put(tiles: TileFolder, first: tuple[int, int], patch: np.ndarray) -> None:
    """Write a patch into every tile that has some of it."""
    touched = [
        range(max(a - tiles.shared, 0) // tiles.side, min((a + n - 1) // tiles.side + 1, count))
        for a, n, count in zip(first, patch.shape, tiles.counts, strict=True)
    ]
    for row in touched[0]:
        for column in touched[1]:
            here, there = [], []
            for axis, at in enumerate((row, column)):
                begin = at * tiles.side
                end = min(begin + tiles.side + tiles.shared, tiles.shape[axis])
                low, high = max(first[axis], begin), min(first[axis] + patch.shape[axis], end)
                here.append(slice(low - begin, high - begin))
                there.append(slice(low - first[axis], high - first[axis]))
            new = tiles.copied(row, column)
            new[here[0], here[1]] = patch[there[0], there[1]]
            _replace(tiles.path(row, column), new)


def _replace(path: Path, content: np.ndarray | bytes) -> None:
    """Put a file in the place of another, and let it be younger, however coarse the clock of the disk is."""
    unfinished = path.with_name(path.name + ".new")
    try:
        with unfinished.open("wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                np.save(file, content)
        if path.exists() and unfinished.stat().st_mtime_ns <= path.stat().st_mtime_ns:
            later = path.stat().st_mtime_ns + 1
            os.utime(unfinished, ns=(later, later))
        os.replace(unfinished, path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error

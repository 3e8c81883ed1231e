"""The relief of a folder of tiles, kept in a file beside them: relief.npz.

The file has the sizes and times of the tiles it was made from. Squares of tiles that are not as they were then, and
those that border on them, are computed anew; so is everything where the file is missing, damaged or of another grid.
What was computed is written back if the folder takes it.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tangere.shape.heightfield.heightfield import FLATNESS
from tangere.shape.heightfield.relief import SQUARE, Block, Relief, square_counts

if TYPE_CHECKING:
    from tangere.shape.heightfield.tile_folder import TileFolder

FILE = "relief.npz"
PARTS = tuple(field.name for field in fields(Relief))


def current_relief(tiles: TileFolder) -> Relief:
    """The relief of the tiles as they are now."""
    states = _tile_states(tiles)  # before the tiles are read: what changes meanwhile is seen the next time
    holes, flatness, name = tiles.holes(), FLATNESS * max(tiles.spacing), tiles.folder.name
    kept = _loaded(tiles, states.shape, flatness)
    if kept is None:
        relief = Relief.of(tiles, holes, flatness, name)
    else:
        relief, before = kept
        changed = np.argwhere((states != before).any(axis=2)).tolist()
        if not changed:
            return relief
        relief.update([_squares_of(tiles, i, j) for i, j in changed], tiles, holes, flatness, name)
    _save(tiles.folder, relief, states, flatness)
    return relief


def _tile_states(tiles: TileFolder) -> np.ndarray:
    """Size and time of change of every tile's files of heights and holes, (rows, columns, 4); 0 where there is none."""
    states = np.zeros((*tiles.counts, 4), np.int64)
    with os.scandir(tiles.folder) as entries:
        found = {entry.name: entry.stat() for entry in entries}
    for i in range(tiles.counts[0]):
        for j in range(tiles.counts[1]):
            for k, prefix in enumerate(("tile", "holes")):
                state = found.get(f"{prefix}_{i}_{j}.npy")
                if state is not None:
                    states[i, j, 2 * k : 2 * k + 2] = state.st_size, state.st_mtime_ns
    return states


def _squares_of(tiles: TileFolder, i: int, j: int) -> Block:
    """The squares that depend on a vertex of a tile."""
    block = []
    for at, cells in zip((i, j), (n - 1 for n in tiles.shape), strict=True):
        first = max(-(-(at * tiles.side - SQUARE) // SQUARE), 0)
        last = min(((at + 1) * tiles.side + 1) // SQUARE, cells // SQUARE)
        block += [first, last]
    return block[0], block[1], block[2], block[3]


def _loaded(tiles: TileFolder, shape: tuple[int, ...], flatness: float) -> tuple[Relief, np.ndarray] | None:
    """What the file says, and the states of the tiles it was made from; None if it cannot be used."""
    try:
        with np.load(tiles.folder / FILE, allow_pickle=False) as file:
            relief, states, flat = Relief(*(file[part] for part in PARTS)), file["states"], float(file["flatness"])
    except Exception:  # whatever zip and npy readers say of a damaged file: it can be made anew
        return None
    expected = Relief.empty(square_counts((tiles.shape[0] - 1, tiles.shape[1] - 1)))
    fits = all(
        (getattr(relief, part).shape, getattr(relief, part).dtype)
        == (getattr(expected, part).shape, getattr(expected, part).dtype)
        for part in PARTS
    )
    return (relief, states) if fits and states.shape == shape and flat == flatness else None


def _save(folder: Path, relief: Relief, states: np.ndarray, flatness: float) -> None:
    """Whole or not at all, readable for whom the tiles are; a folder that cannot be written to goes without."""
    parts = {part: getattr(relief, part) for part in PARTS}
    unfinished = folder / f"{FILE}.{os.getpid()}.{threading.get_ident()}.new"
    with suppress(OSError):
        try:
            with unfinished.open("wb") as file:
                np.savez(file, states=states, flatness=flatness, **parts)
            os.replace(unfinished, folder / FILE)
        finally:
            unfinished.unlink(missing_ok=True)

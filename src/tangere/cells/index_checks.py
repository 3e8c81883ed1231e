"""Numbers of cells, darts, points and levels that callers give: whole, and of things that there are."""

from __future__ import annotations

import numpy as np

from tangere.runtime import Arrays, InputError, to_numpy


def checked_indices(data: Arrays, name: str, count: int, what: str) -> np.ndarray:
    """`data` as (n,) int64, each of them at least 0 and below `count`; a single number is taken as one of them.

    Args:
        name: what to call the array in an error. what: what is numbered, as in "there are 9 cells".
    """
    rows = to_numpy(data, name, None).reshape(-1)
    if rows.size == 0:
        return np.empty(0, np.int64)
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"{name} must be whole numbers of {what}, not {rows.dtype}")
    wrong = (rows < 0) | (rows >= count)
    if wrong.any():
        place = int(np.argmax(wrong))
        known = f"{what} are numbered 0 to {count - 1}" if count else f"there are no {what}"
        raise InputError(f"{name}: number {place} is {rows[place]}, but {known}")
    return rows.astype(np.int64)


def checked_index(value: int, name: str, count: int, what: str) -> int:
    """One such number."""
    found = checked_indices(np.asarray(value), name, count, what)
    if len(found) != 1:
        raise InputError(f"{name} must be one number of {what}, not {len(found)}")
    return int(found[0])

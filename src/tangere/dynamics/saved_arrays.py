"""Copies of arrays that a step overwrites, in room that is kept, for steps that do not come to their end."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import warp as wp


class SavedArrays:
    """The first elements of arrays, by name."""

    def __init__(self) -> None:
        self._room: dict[str, tuple[wp.array, wp.array, np.ndarray | None, np.ndarray | None]] = {}
        self._counts: dict[str, int] = {}

    def save(self, arrays: Iterable[tuple[str, wp.array]], count: int) -> None:
        """Keep so many elements of each."""
        for name, array in arrays:
            self._counts[name] = count
            if not count:
                continue
            found = self._room.get(name)
            if found is None or found[0] is not array:
                room = wp.empty_like(array)
                views = (array.numpy(), room.numpy()) if wp.get_device(array.device).is_cpu else (None, None)
                found = self._room[name] = (array, room, *views)
            _, room, source, target = found
            if source is None or target is None:
                wp.copy(room, array, count=count)
            else:  # views of the same memory: a copy costs less than to ask for it
                target[:count] = source[:count]

    def restore(self, arrays: Iterable[tuple[str, wp.array]]) -> None:
        """Put back what was kept; the arrays may be others by now, that are as long or longer."""
        for name, array in arrays:
            if self._counts.get(name):
                wp.copy(array, self._room[name][1], count=self._counts[name])

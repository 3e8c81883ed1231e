"""A struct of arrays that grow: how much room each needs is told by names of counts.

Question: when do arrays that are used again from step to step have to be replaced by larger ones?
Method:   every array belongs to a count (bodies, contacts, …). A count beyond its room gets twice what it needs;
          `version` tells that addresses have changed, so that launches prepared over them are prepared anew.
Sound:    whoever interrupts it (Ctrl-C) leaves arrays with the room that is known, and no launch over arrays that are
          gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp


class GrowingStruct:
    """Arrays of a `wp.struct` on a device; what they hold is lost when they grow.

    Args:
        struct: an instance of the struct.
        count_of: the name of the count that an array belongs to, by the array's name.
    """

    def __init__(self, struct: Any, device: wp.Device, count_of: Callable[[str], str]) -> None:
        self.struct, self.version = struct, 0
        self._device, self._room = device, dict[str, int]()
        self._fields = [(name, count_of(name), variable.type.dtype) for name, variable in struct._cls.vars.items()]

    def reserve(self, **counts: int) -> None:
        """Make room for so many of each."""
        room = self._room
        grown = [name for name, count in counts.items() if count > room.get(name, -1)]
        if not grown:
            return
        larger = {count: max(2 * counts[count], 16) for count in grown}
        arrays = [
            (name, wp.zeros(larger[count], dtype=dtype, device=self._device))
            for name, count, dtype in self._fields
            if count in larger
        ]
        self.version += 1  # before any array goes
        self.__dict__.pop("_views", None)
        for name, array in arrays:
            setattr(self.struct, name, array)
        room.update(larger)

    def read(self, name: str, count: int) -> np.ndarray:
        """The first elements of an array; on CPU a view that may be written."""
        views = self._views
        if views is None:
            return getattr(self.struct, name).numpy()[:count]
        return views[name][:count]

    def write(self, name: str, values: np.ndarray) -> None:
        """Set the first elements of an array."""
        views = self._views
        if views is not None:
            views[name][: len(values)] = values
            return
        array = getattr(self.struct, name)
        wp.copy(array, wp.array(values, dtype=array.dtype, device=self._device), count=len(values))

    @cached_property
    def _views(self) -> dict[str, np.ndarray] | None:
        """The arrays as NumPy sees them, where they are in main memory."""
        if self._device.is_cuda:
            return None
        return {name: getattr(self.struct, name).numpy() for name, count, _ in self._fields if count in self._room}


def address_of(struct: Any) -> bytes:
    """Where the arrays of a struct are, and how many elements they have: another one when any of them is."""
    return bytes(struct.__ctype__())

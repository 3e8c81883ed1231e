"""What was in arrays before they were written, so that it can be put back.

Question: a cut has written rows of many arrays, by kernels and from the host; how is all of it taken back?
Method:   before rows are written from the host they are kept (`UndoLog.keep`). A kernel of one thread writes whole
          numbers by `put`, which notes the array, the place and what was there; the host takes the notes over.
Sound:    notes are put back last first, so that each place ends with what was there at the beginning. A kernel that has
          no room for a note writes nothing more and says so.
Known as: an undo log, write-ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Places in `WriteLog.numbers`: notes, 1 where something had no room, and notes of floating-point numbers.
NOTES = wp.constant(0)
FULL = wp.constant(1)
VALUE_NOTES = wp.constant(2)


@wp.struct
class WriteLog:
    """Notes of what a kernel has written."""

    notes: wp.array[wp.vec3i]  #: number of the array, place, and what was there
    value_notes: wp.array[wp.vec2i]  #: of floating-point numbers: number of the array, and place
    values: wp.array[wp.float64]  #: and what was there
    numbers: wp.array[int]


@wp.func
def put(log: WriteLog, name: int, array: wp.array[int], place: int, value: int):
    """Write a number, and note what was there."""
    if array[place] != value:
        put_anyway(log, name, array, place, value)


@wp.func
def put_anyway(log: WriteLog, name: int, array: wp.array[int], place: int, value: int):
    """The same where it may be there already: on a device it may be another one by now."""
    n = log.numbers[NOTES]
    if n < log.notes.shape[0]:
        log.notes[n] = wp.vec3i(name, place, array[place])
        log.numbers[NOTES] = n + 1
        array[place] = value
    else:
        log.numbers[FULL] = 1


@wp.func
def put_value(log: WriteLog, name: int, array: wp.array[wp.float64], place: int, value: wp.float64):
    """Write a floating-point number, and note what was there."""
    n = log.numbers[VALUE_NOTES]
    if n < log.values.shape[0]:
        log.value_notes[n] = wp.vec2i(name, place)
        log.values[n] = array[place]
        log.numbers[VALUE_NOTES] = n + 1
        array[place] = value
    else:
        log.numbers[FULL] = 1


@wp.func
def put_vector(log: WriteLog, name: int, array: wp.array[wp.float64], place: int, value: wp.vec3d):
    """Three numbers that follow each other; `place` counts threes."""
    for k in range(3):
        put_value(log, name, array, 3 * place + k, value[k])


def write_log(room: int) -> WriteLog:
    """Room for so many notes of either kind."""
    log = WriteLog()
    log.notes = wp.zeros(room, dtype=wp.vec3i, device="cpu")
    log.value_notes = wp.zeros(room, dtype=wp.vec2i, device="cpu")
    log.values = wp.zeros(room, dtype=wp.float64, device="cpu")
    log.numbers = wp.zeros(3, dtype=wp.int32, device="cpu")
    return log


def flat(array: wp.array) -> wp.array:
    """The same memory as a list of numbers: float64, or int32."""
    scalar: Any = getattr(array.dtype, "_wp_scalar_type_", array.dtype)
    length = array.size * (getattr(array.dtype, "_length_", 1))
    view = wp.array(ptr=array.ptr, dtype=scalar, shape=(length,), device="cpu", copy=False)
    view._keeps = array  # as long as it is looked at
    return view


def host(array: wp.array) -> np.ndarray:
    """An array as NumPy sees it; looked up once, because that takes longer than most reads."""
    view = getattr(array, "_host_view", None)
    if view is None:
        view = array.numpy()
        array._host_view = view
    return view


class UndoLog:
    """What was there before, in the order in which it was written."""

    def __init__(self) -> None:
        self._entries: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, array: wp.array | np.ndarray, rows: Any) -> np.ndarray:
        """The array as NumPy sees it, of which some rows are about to be written."""
        view = array if isinstance(array, np.ndarray) else host(array)
        before = view[rows].copy()

        def back() -> None:
            view[rows] = before

        self._entries.append(back)
        return view

    def call(self, back: Callable[[], None]) -> None:
        """This takes back what is about to be done."""
        self._entries.append(back)

    def take(
        self, log: WriteLog, arrays: list[np.ndarray], value_arrays: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The notes of a kernel, arrays by their numbers; says which places it wrote, of both kinds of numbers."""
        numbers = host(log.numbers)
        noted = host(log.notes)[: numbers[0]].copy()
        value_places, noted_values = (host(array)[: numbers[2]].copy() for array in (log.value_notes, log.values))
        numbers[:] = 0

        def back() -> None:  # of several notes of a place the first is written last
            notes, places, values = noted[::-1], value_places[::-1], noted_values[::-1]
            for name in np.unique(notes[:, 0]):
                own = notes[:, 0] == name
                arrays[name][notes[own, 1]] = notes[own, 2]
            for name in np.unique(places[:, 0]):
                own = places[:, 0] == name
                value_arrays[name][places[own, 1]] = values[own]

        self._entries.append(back)
        return noted[:, :2], value_places

    def undo(self, down_to: int = 0) -> None:
        """Put everything back that was written after so many entries."""
        while len(self._entries) > down_to:
            self._entries.pop()()

    def forget(self) -> None:
        """All of it stays."""
        self._entries.clear()

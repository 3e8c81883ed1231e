"""The arrays of a simulation for kernels on the host: themselves, or copies whose changed rows are sent to the device.

Question: topology changes on the host; how does a device, where everything else stays, get to know of it?
Method:   of what an update writes the host has copies. A kernel on the host notes what it writes (`undo_log`); these
          places, and what is there at the end of a cut, go to the device in one list for whole numbers and one for
          others, and one kernel writes each. Arrays on the device do not move, so that captured graphs stay valid.
          What the device changes by itself is read before a cut; of arrays that are only written, nothing is read.
Sound:    what was there is kept on the device, and put back where a cut is undone.
Known as: a host mirror, dirty rows, scatter.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import Frame, LinearTree, TreeBoxes, vertex_boxes
from tangere.runtime import SOUND, device_of, launch
from tangere.soft.incremental.undo_log import UndoLog, host
from tangere.soft.model.assembled_bodies import struct_of
from tangere.soft.safe_step.cpu.refit import refit

wp.set_module_options(SOUND)

#: Kinds of numbers that are sent.
KINDS = (wp.int32, wp.float64)


class HostMirror:
    """Copies of arrays, and what has been written into them since it was last sent."""

    def __init__(self, device: wp.Device, *, apart: bool) -> None:
        """`apart`: whether the host has copies; else it has the arrays themselves, and nothing is ever sent."""
        self.apart, self._device, self.host = apart, device, wp.get_device("cpu")
        self._copies: dict[int, tuple[wp.array, wp.array]] = {}  # by address: the array and its copy
        self._numbers: dict[int, int] = {}  # by address of the copy, for what is sent
        self._sent: list[tuple[wp.array, wp.array]] = []
        self._only_written: list[int] = []
        self._tables: tuple[wp.array, ...] = ()
        self._written: dict[Any, list[np.ndarray]] = {kind: [] for kind in KINDS}

    def of(self, array: wp.array, *, sent: bool = True, read: bool = True) -> wp.array:
        """What kernels on the host write for an array.

        Args:
            sent: whether the device gets to know of it.
            read: whether it begins with what there is; else what is written is forgotten here when it has been sent.
        """
        if not self.apart or not array.size:
            return array if device_of(array).is_cpu else wp.clone(array, device="cpu")
        if array.ptr not in self._copies:
            pinned = self._device.is_cuda
            make = wp.clone if read else wp.zeros_like
            copy = make(array, device="cpu", pinned=pinned)
            self._copies[array.ptr] = array, copy
            if sent:
                number = self._numbers[copy.ptr] = len(self._sent)
                self._sent.append((array, copy))
                self._tables = ()
                if not read:
                    self._only_written.append(number)
        return self._copies[array.ptr][1]

    def struct(self, kind: Any, given: Any) -> Any:
        """A struct of this kind with the copies of its arrays."""
        return struct_of(kind, self.host, **{name: self.of(getattr(given, name)) for name in kind.vars})

    def tree(self, tree: LinearTree) -> LinearTree:
        """A tree with the copies of its arrays; what only hosts use of it is not sent."""
        if not self.apart:
            return tree
        written = {name: self.of(getattr(tree, name)) for name in ("order", "items", "last")}
        fixed = [field.name for field in dataclasses.fields(tree) if field.name not in written]
        return LinearTree(**written, **{name: self.of(getattr(tree, name), sent=False) for name in fixed})

    def read(self, *arrays: wp.array) -> None:
        """Copy what the device may have changed by itself."""
        if not self.apart:
            return
        for array in arrays:
            wp.copy(self.of(array), array)
        if self._device.is_cuda:
            wp.synchronize_device(self._device)

    # -- what is written, and sent -----------------------------------------------------------------------------------

    def numbers(self, views: list[np.ndarray]) -> np.ndarray:
        """By place in a list of arrays, as NumPy sees them, which one that is sent it is; -1 for none."""
        return np.array([self._numbers.get(view.ctypes.data, -1) for view in views], np.int32)

    def note(self, kind: Any, numbers: np.ndarray, noted: np.ndarray, log: UndoLog) -> None:
        """These places (k, 2), array and place, have been written; arrays by their `numbers`."""
        if not self.apart or not len(noted):
            return
        slots = np.stack([numbers[noted[:, 0]], noted[:, 1]], axis=1)
        written = self._written[kind]
        count = len(written)
        written.append(slots[slots[:, 0] >= 0])
        log.call(lambda: written.__delitem__(slice(count, None)))

    def note_rows(self, copy: wp.array, rows: np.ndarray, log: UndoLog) -> None:
        """Rows of one array of numbers have been written."""
        if self.apart:
            noted = np.stack([0 * rows, rows], axis=1)
            self.note(copy.dtype, np.array([self._numbers[copy.ptr]]), noted, log)

    def send_rows(self, array: wp.array, begin: int, end: int) -> None:
        """Rows that are new: nobody reads them yet."""
        if self.apart and end > begin:
            wp.copy(array, self.of(array), dest_offset=begin, src_offset=begin, count=end - begin)

    def send(self, log: UndoLog) -> None:
        """All that has been written goes to the device."""
        for kind, written in self._written.items():
            slots = np.concatenate(written) if written else np.zeros((0, 2), np.int32)
            written.clear()
            if len(slots):
                self._send(kind, slots, log)

    def _send(self, kind: Any, places: np.ndarray, log: UndoLog) -> None:
        if not self._tables:
            self._tables = self._made_tables()
        lengths, ours, lengths_there, theirs = self._tables
        device, count = self._device, len(places)
        read, write = (_read_ints, _write_ints) if kind is wp.int32 else (_read_floats, _write_floats)
        slots = wp.array(np.ascontiguousarray(places, dtype=np.int32), dtype=wp.vec2i, device="cpu", copy=False)
        values = wp.empty(count, dtype=kind, device="cpu")
        launch(read, count, [ours, lengths, slots], [values], device=self.host, threads=1)
        for number in self._only_written:
            mine = places[:, 0] == number
            host(self._sent[number][1]).reshape(-1)[places[mine, 1]] = 0
        slots, values = (wp.clone(array, device=device) for array in (slots, values))
        before = wp.empty(count, dtype=kind, device=device)
        launch(read, count, [theirs, lengths_there, slots], [before], device=device, threads=1)
        there = [theirs, lengths_there, slots]
        launch(write, count, [*there, values], device=device, threads=1)
        log.call(lambda: launch(write, count, [*there, before], device=device, threads=1))

    def _made_tables(self) -> tuple[wp.array, ...]:
        """How many numbers there are in each array, and where it begins: here, and on the device."""
        found = []
        for side, device in ((1, self.host), (0, self._device)):
            arrays = [pair[side] for pair in self._sent]
            lengths = np.array([array.size * getattr(array.dtype, "_length_", 1) for array in arrays], np.int32)
            addresses = np.array([array.ptr for array in arrays], np.uint64)
            found += [wp.array(lengths, dtype=wp.int32, device=device)]
            found += [wp.array(addresses, dtype=wp.uint64, device=device)]
        return tuple(found)


class HostBoxes:
    """The boxes of a tree whose arrays have copies, where surfaces are."""

    def __init__(self, tree: LinearTree, places: wp.array, frame: Frame) -> None:
        """`places` of the surface vertices, on the host [m]."""
        self._places, self._frame = places, frame
        self.vertices = vertex_boxes(places, places, 1.0, 0.0, frame)
        self.nodes: TreeBoxes = tree.fit(self.vertices)
        self._clusters, self._all = (
            wp.ones(count, dtype=wp.uint8, device="cpu") for count in (len(tree.clusters), len(tree.first))
        )

    def fit(self) -> None:
        """Where the surfaces are now."""
        vertex_boxes(self._places, self._places, 1.0, 0.0, self._frame, into=self.vertices)
        refit(self.nodes, self.vertices, self._clusters, self._all)


@wp.kernel
def _read_ints(
    first: int,
    addresses: wp.array[wp.uint64],
    lengths: wp.array[int],
    slots: wp.array[wp.vec2i],
    values: wp.array[int],
):
    """What is at these places: array and place in it."""
    i = first + wp.tid()
    number = slots[i][0]
    array = wp.array(ptr=addresses[number], shape=(lengths[number],), dtype=int)
    values[i] = array[slots[i][1]]


@wp.kernel
def _write_ints(
    first: int,
    addresses: wp.array[wp.uint64],
    lengths: wp.array[int],
    slots: wp.array[wp.vec2i],
    values: wp.array[int],
):
    """Put numbers at these places; where one is listed again it gets the same."""
    i = first + wp.tid()
    number = slots[i][0]
    array = wp.array(ptr=addresses[number], shape=(lengths[number],), dtype=int)
    array[slots[i][1]] = values[i]


@wp.kernel
def _read_floats(
    first: int,
    addresses: wp.array[wp.uint64],
    lengths: wp.array[int],
    slots: wp.array[wp.vec2i],
    values: wp.array[wp.float64],
):
    i = first + wp.tid()
    number = slots[i][0]
    array = wp.array(ptr=addresses[number], shape=(lengths[number],), dtype=wp.float64)
    values[i] = array[slots[i][1]]


@wp.kernel
def _write_floats(
    first: int,
    addresses: wp.array[wp.uint64],
    lengths: wp.array[int],
    slots: wp.array[wp.vec2i],
    values: wp.array[wp.float64],
):
    i = first + wp.tid()
    number = slots[i][0]
    array = wp.array(ptr=addresses[number], shape=(lengths[number],), dtype=wp.float64)
    array[slots[i][1]] = values[i]

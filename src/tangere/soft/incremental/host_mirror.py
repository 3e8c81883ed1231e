"""The arrays of a simulation for kernels on the host: themselves, or copies whose changed rows are sent to the device.

Question: topology changes on the host; how does a device, where everything else stays, get to know of it?
Method:   of what an update writes the host has copies. A kernel on the host notes what it writes (`undo_log`); these
          places, and what is there at the end of a cut, go to the device in one list, and a kernel puts them in their
          places. Arrays on the device do not move, so that captured graphs stay valid. What the device changes by
          itself is read before a cut; of arrays that are only written, nothing is read. Lists have room that is used
          again, in memory that the device reads by itself: a cut waits for what it reads alone.
Sound:    what was there is kept on the device, and put back where a cut is undone.
Known as: a host mirror, dirty rows, gather and scatter, pinned memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import Frame, LinearTree, TreeBoxes, vertex_boxes
from tangere.runtime import SOUND, PreparedLaunch, device_of
from tangere.soft.incremental.undo_log import UndoLog, host
from tangere.soft.model.assembled_bodies import struct_of

wp.set_module_options(SOUND)

#: Kinds of numbers that are sent.
KINDS = (wp.int32, wp.float64)
#: Numbers that a list has room for, at least.
_LEAST_ROOM = 1 << 14
_NOTHING = np.zeros(0, np.int64)


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
        self._packets: list[_Packet] = []
        self._used = 0  # of them, since nothing of what was sent can be put back any more
        self._written: dict[Any, list[np.ndarray]] = {kind: [] for kind in KINDS}  # slots

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
                self._tables, self._packets = (), []
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

    def read(self, *arrays: wp.array) -> Callable[[], None]:
        """Copy what the device may have changed by itself; who calls the answer waits for it, and for all before."""
        if self.apart:
            for array in arrays:
                wp.copy(self.of(array), array)
        if not (self.apart and self._device.is_cuda):
            return _nothing
        event = self._device.stream.record_event()
        return lambda: wp.synchronize_event(event)

    # -- what is written, and sent -----------------------------------------------------------------------------------

    def numbers(self, views: list[np.ndarray]) -> np.ndarray:
        """By place in a list of arrays, as NumPy sees them, where the slots of one that is sent begin; -1 for none."""
        known = [self._numbers.get(view.ctypes.data) for view in views]
        return np.array([-1 if number is None else number << 32 for number in known], np.int64)

    def note(self, kind: Any, numbers: np.ndarray, noted: np.ndarray, log: UndoLog) -> None:
        """These places (k, 2), array and place, have been written; arrays by their `numbers`."""
        if not self.apart or not len(noted):
            return
        slots = numbers[noted[:, 0]]
        slots |= noted[:, 1]  # nothing that is not sent comes to be 0 or more
        written = self._written[kind]
        count = len(written)
        written.append(slots[slots >= 0])
        log.call(lambda: written.__delitem__(slice(count, None)))

    def note_rows(self, copy: wp.array, rows: np.ndarray, log: UndoLog) -> None:
        """Rows of one array of numbers have been written."""
        noted = np.stack([np.zeros(len(rows), np.int32), rows], axis=1)
        self.note(copy.dtype, self.numbers([host(copy)]), noted, log)

    def send_rows(self, array: wp.array, begin: int, end: int) -> None:
        """Rows that are new: nobody reads them yet."""
        if self.apart and end > begin:
            wp.copy(array, self.of(array), dest_offset=begin, src_offset=begin, count=end - begin)

    def send(self, log: UndoLog) -> None:
        """All that has been written goes to the device."""
        floats, ints = (np.concatenate(self._written[kind] or [_NOTHING]) for kind in (wp.float64, wp.int32))
        count = len(floats) + len(ints)
        for written in self._written.values():
            written.clear()
        if not count:
            return
        if not self._tables:
            self._tables = self._made_tables()
        packet = self._packet(count)
        words = host(packet.here)
        words[0], words[1] = len(floats), count
        slots = words[2 : 2 + 2 * count : 2]
        slots[: len(floats)], slots[len(floats) :] = floats, ints
        packet.pack(count)
        for number in self._only_written:
            copy = self._sent[number][1]
            written = ints if copy.dtype == wp.int32 else floats
            host(copy).reshape(-1)[written[written >> 32 == number] & 0xFFFFFFFF] = 0
        wp.copy(packet.there, packet.here, count=2 + 2 * count)
        packet.keep.run()
        packet.put.run()
        log.call(packet.put_back.run)

    def commit(self) -> None:
        """What was sent is not put back any more."""
        self._used = 0

    def _packet(self, count: int) -> _Packet:
        """Room for so many numbers: that of an earlier cut, if there is one that nobody needs."""
        packets, number = self._packets, self._used
        self._used += 1
        if number == len(packets) or packets[number].room < count:
            packets[number : number + 1] = [_Packet(max(2 * count, _LEAST_ROOM), self._tables, self._device)]
        return packets[number]

    def _made_tables(self) -> tuple[wp.array, ...]:
        """Where each array begins: here, and on the device."""
        sides = ((1, self.host), (0, self._device))
        addresses = [(np.array([pair[side].ptr for pair in self._sent], np.uint64), device) for side, device in sides]
        return tuple(wp.array(table, dtype=wp.uint64, device=device) for table, device in addresses)


def _nothing() -> None:
    """There is nothing to wait for."""


class _Packet:
    """Numbers on their way: on the host and on the device how many floats and how many in all, then place and value of
    each, 64 bits both; and on the device what was there.
    """

    def __init__(self, room: int, tables: tuple[wp.array, ...], device: wp.Device) -> None:
        self.room, cpu = room, wp.get_device("cpu")
        self.here = wp.zeros(2 + 2 * room, dtype=wp.int64, device=cpu, pinned=device.is_cuda)
        self.there = wp.zeros(2 + 2 * room, dtype=wp.int64, device=device)
        before = wp.zeros(room, dtype=wp.int64, device=device)
        ours, theirs = [tables[0], self.here], [tables[1], self.there]
        self.pack = PreparedLaunch(_gather, [*ours, self.here, 3, 2], cpu, dim=room, serial=True)
        self.keep = PreparedLaunch(_gather, [*theirs, before, 0, 1], device, dim=room, serial=True)
        self.put = PreparedLaunch(_scatter, [*theirs, self.there, 3, 2], device, dim=room, serial=True)
        self.put_back = PreparedLaunch(_scatter, [*theirs, before, 0, 1], device, dim=room, serial=True)


class HostBoxes:
    """The boxes of a tree where surfaces are: fitted where the surfaces are, and read with them."""

    def __init__(self, mirror: HostMirror, tree: LinearTree, places: wp.array, frame: Frame) -> None:
        """`places` of the surface vertices [m]; the tree and they are those of the device."""
        self._places, self._frame = places, frame
        self._vertices = vertex_boxes(places, places, 1.0, 0.0, frame)
        self._nodes: TreeBoxes = tree.fit(self._vertices)
        self.vertices, self.nodes = (mirror.of(array, sent=False) for array in self.fitted)

    @property
    def fitted(self) -> tuple[wp.array, wp.array]:
        """Boxes of vertices and of nodes on the device."""
        return self._vertices, self._nodes.nodes

    def fit(self) -> None:
        """Where the surfaces are now, on the device."""
        vertex_boxes(self._places, self._places, 1.0, 0.0, self._frame, into=self._vertices)
        self._nodes.tree.fit(self._vertices, self._nodes)


@wp.func
def place_in(addresses: wp.array[wp.uint64], slot: wp.int64, size: int) -> wp.uint64:
    """The address of a number: array and place in it, in the upper and the lower half of a slot."""
    place = slot & wp.int64(0xFFFFFFFF)
    return addresses[int(slot >> wp.int64(32))] + wp.uint64(place * wp.int64(size))


@wp.kernel
def _gather(
    first: int,
    addresses: wp.array[wp.uint64],
    words: wp.array[wp.int64],
    values: wp.array[wp.int64],
    begin: int,
    stride: int,
):
    """What is at these places, from `begin` on in every so many of `values`."""
    i = first + wp.tid()
    if i < int(words[1]):
        slot = words[2 + 2 * i]
        found = wp.int64(0)
        if i < int(words[0]):
            floats = wp.array(ptr=place_in(addresses, slot, 8), shape=(1,), dtype=wp.int64)
            found = floats[0]
        else:
            ints = wp.array(ptr=place_in(addresses, slot, 4), shape=(1,), dtype=int)
            found = wp.int64(ints[0])
        values[begin + stride * i] = found


@wp.kernel
def _scatter(
    first: int,
    addresses: wp.array[wp.uint64],
    words: wp.array[wp.int64],
    values: wp.array[wp.int64],
    begin: int,
    stride: int,
):
    """Put values at these places; where one is listed again it gets the same."""
    i = first + wp.tid()
    if i < int(words[1]):
        slot = words[2 + 2 * i]
        value = values[begin + stride * i]
        if i < int(words[0]):
            floats = wp.array(ptr=place_in(addresses, slot, 8), shape=(1,), dtype=wp.int64)
            floats[0] = value
        else:
            ints = wp.array(ptr=place_in(addresses, slot, 4), shape=(1,), dtype=int)
            ints[0] = int(value)

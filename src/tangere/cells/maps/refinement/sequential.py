"""Splits and merges one after the other, on one thread: what a CPU does best, and one launch for all of it.

Question: the same map after these operations, in this order.
Method:   one launch, packed once for a map, makes all operations and lists the cells they touched. In 3-maps rings
          follow each operation: those of a split cell's neighbours change by this cell and its parts only, because
          cells that share a vertex a split sets into an edge share the ends of the edge as well. In 2-maps the rings of
          all cells that changed are written again. Whether changed cells are convex is asked in the same launch after a
          few operations, because a launch more would cost as much as the work itself; after many, all threads do.
Known as: subdivision and simplification (Pitiot 2015, sections 6.2 and 6.3).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.convexity import is_reflex
from tangere.cells.maps.refinement.division import WORK_WIDTH
from tangere.cells.maps.refinement.faces import face_split_room, merge_face, split_face
from tangere.cells.maps.refinement.volumes import merge_volume, split_volume, volume_split_room
from tangere.cells.maps.rings import (
    RingTable,
    divide_ring,
    join_rings,
    widen_rings,
    write_ring2,
    write_ring3,
)
from tangere.runtime import SOUND, PreparedLaunch, load

wp.set_module_options(SOUND)

#: So many operations are few, and so many cells are worth a thread.
_FEW, _GRAIN = 64, 256
#: Places in `state`: the next operation, the room it wants, the refused cell + 1, whether a ring did not fit, whether
#: a changed cell is not convex; how many operations and whether they merge; how many cells were touched, their mark.
_NEXT, _ROOM, _REFUSED, _FULL, _BENT = (wp.constant(k) for k in (0, 1, 4, 5, 6))
_COUNT, _MERGING, _TOUCHED, _MARK = (wp.constant(k) for k in range(7, 11))
_STATE_SIZE = 11


def apply_in_order(map: CellMap, cells: np.ndarray, merging: int) -> int:
    """Split (`merging` 0) or merge (1) cells one after the other; returns the cell that was refused + 1, or 0."""
    return operations_of(map).apply(cells, merging)


def operations_of(map: CellMap) -> SequentialOperations:
    """What a map keeps for its splits and merges."""
    if not isinstance(map.operations, SequentialOperations):
        map.operations = SequentialOperations(map)
    return map.operations


class SequentialOperations:
    """The launch of splits and merges of one map, and what it writes; made again when the map's arrays have grown."""

    def __init__(self, map: CellMap) -> None:
        self._map = map
        self._packed: tuple[int, ...] = ()
        self._todo = wp.empty(0, dtype=wp.int32, device=map.device)

    def apply(self, cells: np.ndarray, merging: int) -> int:
        """See `apply_in_order`."""
        map, count = self._map, len(cells)
        if not merging:
            map.reserve(16 * count, 5 * count, 4 * count)
        self._prepare(count)
        self._write(self._todo, cells)
        self._marks += 1
        state = np.zeros(_STATE_SIZE, np.int32)
        state[_COUNT], state[_MERGING], state[_MARK] = count, merging, self._marks
        while True:
            self._write(self._state, state)
            self._launch.run()
            state = self._state.numpy().copy() if self._numbers is None else self._numbers.copy()
            if state[_FULL]:
                map.rings = widen_rings(map.arrays, map.rings, map.device)
                state[_FULL] = 0
            elif state[_REFUSED] or state[_NEXT] == count:
                break
            else:
                map.reserve(*(2 * int(more) for more in state[1:4]))
            self._prepare(count)
        if count > _FEW:
            self._renew(int(state[_TOUCHED]))
            full, bent = self._state.numpy()[[_FULL, _BENT]].tolist()
            if full:
                map.rings = widen_rings(map.arrays, map.rings, map.device)
            state[_BENT] = bent
        self._touched_count = int(state[_TOUCHED])
        map.update_convexity(not state[_BENT])
        return int(state[_REFUSED])

    @property
    def touched(self) -> np.ndarray:
        """The cells that the last operations split, made, merged or took away, and their neighbours; in any order."""
        return self._touched.numpy()[: self._touched_count]

    def _prepare(self, count: int) -> None:
        """Pack the launch anew if arrays are not those it was packed with."""
        map = self._map
        m, table = map.arrays, map.rings.table
        now = (id(m.phi1), id(m.position), id(m.cell_level), id(table.cells), id(map.device))
        if now == self._packed and count <= len(self._todo):
            return
        device, capacity = map.device, map.cell_capacity
        before = self._touched.numpy() if self._packed and device.is_cpu else np.empty(0, np.int32)
        if count > len(self._todo) or self._todo.device != device:
            self._todo = wp.empty(max(_FEW, count, len(self._todo)), dtype=wp.int32, device=device)
        touched, mark = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        touched[: len(before)] = before
        if self._packed and device.is_cpu:
            mark[: len(before)] = self._mark.numpy()
        elif not self._packed:
            self._marks = self._touched_count = 0
        self._touched, self._mark = (wp.array(x, dtype=wp.int32, device=device) for x in (touched, mark))
        self._state = wp.zeros(_STATE_SIZE, dtype=wp.int32, device=device)
        self._numbers = self._state.numpy() if device.is_cpu else None
        self._todo_numbers = self._todo.numpy()
        work = wp.empty((1, WORK_WIDTH), dtype=wp.int32, device=device)
        apply, renew = _kernels(map.dimension)
        load(apply, device)
        outputs = [self._state, self._mark, self._touched]
        self._launch = PreparedLaunch(apply, [m, table, self._todo, work, *outputs], device, dim=1, serial=True)
        self._renew = PreparedLaunch(renew, [m, table, self._touched, self._state], device, grain=_GRAIN)
        self._arrays = m.phi1, m.position, m.cell_level, table.cells  # so that no other array gets their numbers
        self._packed = now

    def _write(self, array: wp.array, values: np.ndarray) -> None:
        if self._numbers is None:
            array[: len(values)].assign(values.astype(np.int32))
        else:
            (self._numbers if array is self._state else self._todo_numbers)[: len(values)] = values


@wp.func
def _touch(c: int, state: wp.array[int], mark: wp.array[int], touched: wp.array[int]):
    if mark[c] != state[_MARK]:
        mark[c] = int(state[_MARK])
        touched[state[_TOUCHED]] = c
        state[_TOUCHED] = state[_TOUCHED] + 1


@wp.func
def _touch_ring(table: RingTable, c: int, state: wp.array[int], mark: wp.array[int], touched: wp.array[int]):
    """Note leaf c and its neighbours: their rings change when it does."""
    _touch(c, state, mark, touched)
    for i in range(wp.min(table.size[c], table.width)):
        _touch(table.cells[c * table.width + i], state, mark, touched)


@wp.func
def _fits(m: MapArrays, room: wp.vec3i, state: wp.array[int]) -> bool:
    if (
        m.counts[0] + room[0] <= m.phi1.shape[0]
        and m.counts[2] + room[1] <= m.position.shape[0]
        and m.counts[4] + room[2] <= m.cell_level.shape[0]
    ):
        return True
    for i in range(3):
        state[_ROOM + i] = room[i]
    return False


@wp.func
def _has_reflex_dart(m: MapArrays, c: int) -> bool:
    bent = bool(False)
    if m.cell_level[c] >= 0 and m.first_child[c] < 0:
        d = int(m.anchor[c])
        while d >= 0 and not bent:
            bent = is_reflex(m, d)
            d = m.link[d]
    return bent


@cache
def _kernels(dimension: int) -> tuple[wp.Kernel, wp.Kernel]:
    """For faces (2) or volumes (3): one that splits or merges, and one that renews what is known of changed cells."""
    split, merge, room_of, write_ring = (
        (split_volume, merge_volume, volume_split_room, write_ring3)
        if dimension == 3
        else (split_face, merge_face, face_split_room, write_ring2)
    )
    volumes = dimension == 3

    @wp.func
    def renewed(m: MapArrays, table: RingTable, c: int, state: wp.array[int]):
        # Whoever writes these writes the same.
        if wp.static(not volumes):
            if write_ring(m, c, table) > table.width:
                state[_FULL] = 1
        if state[_BENT] == 0:
            if _has_reflex_dart(m, c):
                state[_BENT] = 1

    @wp.kernel(module="unique", module_options=SOUND)
    def in_order(
        first: int,
        m: MapArrays,
        table: RingTable,
        todo: wp.array[int],
        work: wp.array2d[int],
        state: wp.array[int],
        mark: wp.array[int],
        touched: wp.array[int],
    ):
        i = int(state[_NEXT])
        while i < state[_COUNT] and state[_FULL] == 0:
            c = todo[i]
            if state[_MERGING] == 0 and not _fits(m, room_of(m, c), state):
                break
            _touch_ring(table, c, state, mark, touched)
            child = int(m.first_child[c])
            while child >= 0:
                _touch_ring(table, child, state, mark, touched)
                child = m.sibling[child]
            if state[_MERGING] == 1:
                if wp.static(volumes):
                    if not join_rings(m, c, table):
                        state[_FULL] = 1
                merge(m, c, work, 0)
            elif split(m, c, work, 0):
                child = int(m.first_child[c])
                while child >= 0:
                    _touch(child, state, mark, touched)
                    child = m.sibling[child]
                if wp.static(volumes):
                    if not divide_ring(m, c, table):
                        state[_FULL] = 1
            else:
                state[_REFUSED] = c + 1
                break
            i += 1
        state[_NEXT] = i
        if state[_COUNT] <= _FEW and (i == state[_COUNT] or state[_REFUSED] > 0):
            for k in range(state[_TOUCHED]):
                renewed(m, table, touched[k], state)

    @wp.kernel(module="unique", module_options=SOUND)
    def renew(first: int, m: MapArrays, table: RingTable, touched: wp.array[int], state: wp.array[int]):
        renewed(m, table, touched[first + wp.tid()], state)

    return in_order, renew

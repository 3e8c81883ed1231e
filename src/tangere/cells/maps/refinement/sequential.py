"""Splits and merges one after the other, on one thread: what a CPU does best, and one launch for all of it.

Question: the same map after these operations, in this order.
Method:   after a few of them the kernel also writes the rings of all cells that changed and looks whether they are
          convex, because a launch more would cost as much as the work itself; after many, all threads do.
Known as: subdivision and simplification (Pitiot 2015, sections 6.2 and 6.3).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.cells.maps.arrays import MapArrays, grown
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.convexity import is_reflex
from tangere.cells.maps.refinement.division import WORK_WIDTH
from tangere.cells.maps.refinement.faces import face_split_room, merge_face, split_face
from tangere.cells.maps.refinement.volumes import merge_volume, split_volume, volume_split_room
from tangere.cells.maps.rings import RingTable, widen_rings, write_ring2, write_ring3
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: So many operations are few, and so many cells are worth a thread.
_FEW, _GRAIN = 64, 256


def apply_in_order(map: CellMap, todo: wp.array, merging: int) -> int:
    """Split (`merging` 0) or merge (1) cells one after the other; returns the cell that was refused + 1, or 0."""
    # Next operation, room it wants, refused cell + 1, whether a ring did not fit, whether a changed cell is not convex.
    state = wp.zeros(7, dtype=wp.int32, device=map.device)
    work = wp.empty((1, WORK_WIDTH), dtype=wp.int32, device=map.device)
    if not merging:
        map.reserve(16 * len(todo), 5 * len(todo), 4 * len(todo))
    dirty = wp.zeros(map.cell_capacity, dtype=wp.int32, device=map.device)
    apply, renew = _kernels(map.dimension)
    while True:
        if len(dirty) < map.cell_capacity:
            dirty = grown(dirty, map.cell_capacity)
        inputs = [map.arrays, map.rings.table, todo, merging, int(len(todo) <= _FEW), work]
        launch(apply, 1, inputs, [state, dirty], device=map.device)
        reached, darts, vertices, cells, refused, _, _ = state.numpy().tolist()
        if refused or reached == len(todo):
            break
        map.reserve(2 * darts, 2 * vertices, 2 * cells)
    if len(todo) > _FEW:
        launch(renew, len(dirty), [map.arrays, map.rings.table, dirty], [state], device=map.device, grain=_GRAIN)
    full, bent = state.numpy().tolist()[5:]
    if full:
        map.rings = widen_rings(map.arrays, map.rings, map.device)
    map.update_convexity(not bent)
    return refused


@wp.func
def _mark_ring(table: RingTable, c: int, dirty: wp.array[int]):
    """Mark the cells whose rings change when leaf c does."""
    dirty[c] = 1
    for i in range(table.size[c]):
        dirty[table.cells[c * table.width + i]] = 1


@wp.func
def mark_operation(m: MapArrays, table: RingTable, c: int, dirty: wp.array[int]):
    """Mark the cells that splitting c or merging its children changes."""
    _mark_ring(table, c, dirty)
    child = int(m.first_child[c])
    while child >= 0:
        _mark_ring(table, child, dirty)
        child = m.sibling[child]


@wp.func
def mark_children(m: MapArrays, c: int, dirty: wp.array[int]):
    """Mark the cells that c was split into."""
    child = int(m.first_child[c])
    while child >= 0:
        dirty[child] = 1
        child = m.sibling[child]


@wp.func
def _fits(m: MapArrays, room: wp.vec3i, state: wp.array[int]) -> bool:
    if (
        m.counts[0] + room[0] <= m.phi1.shape[0]
        and m.counts[2] + room[1] <= m.position.shape[0]
        and m.counts[4] + room[2] <= m.cell_level.shape[0]
    ):
        return True
    for i in range(3):
        state[1 + i] = room[i]
    return False


@wp.func
def _has_reflex_dart(m: MapArrays, c: int) -> bool:
    bent = bool(False)
    if m.cell_level[c] >= 0 and m.first_child[c] < 0:
        d = int(m.anchor[c])
        while d >= 0:
            bent = bent or is_reflex(m, d)
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

    @wp.func
    def renewed(m: MapArrays, table: RingTable, c: int, state: wp.array[int]):
        # Whoever writes these writes the same.
        if write_ring(m, c, table) > table.width:
            state[5] = 1
        if _has_reflex_dart(m, c):
            state[6] = 1

    @wp.kernel(module="unique", module_options=SOUND)
    def in_order(
        first: int,
        m: MapArrays,
        table: RingTable,
        todo: wp.array[int],
        merging: int,
        renewing: int,
        work: wp.array2d[int],
        state: wp.array[int],
        dirty: wp.array[int],
    ):
        i = int(state[0])
        while i < todo.shape[0]:
            c = todo[i]
            if merging == 0 and not _fits(m, room_of(m, c), state):
                break
            mark_operation(m, table, c, dirty)
            if merging == 1:
                merge(m, c, work, 0)
            elif split(m, c, work, 0):
                mark_children(m, c, dirty)
            else:
                state[4] = c + 1
                break
            i += 1
        state[0] = i
        if renewing == 1 and (i == todo.shape[0] or state[4] > 0):
            for c in range(dirty.shape[0]):
                if dirty[c] != 0:
                    renewed(m, table, c, state)

    @wp.kernel(module="unique", module_options=SOUND)
    def renew(first: int, m: MapArrays, table: RingTable, dirty: wp.array[int], state: wp.array[int]):
        c = first + wp.tid()
        if dirty[c] != 0:
            renewed(m, table, c, state)

    return in_order, renew

"""Splitting and merging cells of a map, one after the other on CPU and in independent sets on CUDA.

Question: the same map, finer here and coarser there.
Method:   on CPU one thread applies the operations in the order given (0.3 us a split in 2D). On CUDA, rounds: an
          operation goes ahead if none of higher rank touches a cell it touches (its cells and their rings), and those
          chosen run side by side. Both make the same cells; numbers may differ.
Balance:  with `balanced`, cells that share a vertex differ by at most one level: a split first splits coarser
          neighbours, a merge is left out where a neighbour is too fine.
Spec: specs/pitiot-multiresolution-interactions 2.4, 5.3.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import LEVEL_LIMIT, MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.dividing import WORK_WIDTH
from tangere.cells.maps.faces import faces_room, merge_face, split_face
from tangere.cells.maps.refining_in_order import apply_in_order, soil_children, soil_operation
from tangere.cells.maps.rings import RingTable, renew_rings
from tangere.cells.maps.visibility import see_whole_cells
from tangere.cells.maps.volumes import merge_volume, split_volume, volumes_room
from tangere.runtime import SOUND, Arrays, InputError, UnsupportedError, launch

__all__ = ["follow_heirs", "merge", "split"]

wp.set_module_options(SOUND)

Method = Literal["sequential", "sets"]


def split(map: CellMap, cells: Arrays, *, balanced: bool = False, method: Method | None = None) -> np.ndarray:
    """Split leaf cells; returns the numbers of all cells that were split.

    Args:
        balanced: split coarser neighbours first, so that levels across a shared vertex differ by one at most.
        method: "sequential" (CPU default) or "sets" (CUDA default).
    """
    todo = np.unique(_checked(map, cells, leaf=True))
    done = [np.empty(0, np.int64)]
    while len(todo):
        ready = todo
        if balanced:
            todo, ready = _coarse_first(map, todo)
        _apply(map, ready, 0, method)
        done.append(ready)
        todo = np.setdiff1d(todo, ready)
    return np.concatenate(done)


def merge(map: CellMap, cells: Arrays, *, balanced: bool = False, method: Method | None = None) -> np.ndarray:
    """Merge the children of cells whose children are all leaves; returns the numbers of the cells merged.

    Args:
        balanced: leave out cells with a neighbour so fine that levels would differ by more than one.
    """
    todo = np.unique(_checked(map, cells, leaf=False))
    if balanced and len(todo):
        todo = todo[_finest_around(map, todo) <= map.levels[todo] + 1]
    _apply(map, todo, 1, method)
    return todo


def follow_heirs(map: CellMap, darts: wp.array) -> None:
    """Replace, in place, darts that a merge took away by darts of the same cell."""
    launch(_heirs, len(darts), [map.arrays], [darts], device=map.device)


def _checked(map: CellMap, cells: Arrays, leaf: bool) -> np.ndarray:
    chosen = np.asarray(cells, dtype=np.int64).reshape(-1)
    level, child = map.levels, map.arrays.first_child.numpy()
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(level)):
        raise InputError(f"cells: there is no cell {chosen[(chosen < 0) | (chosen >= len(level))][0]}")
    wrong = (level[chosen] < 0) | ((child[chosen] < 0) != leaf)
    if leaf:
        wrong |= level[chosen] >= LEVEL_LIMIT
    else:
        parents = map.arrays.parent.numpy()[np.flatnonzero((level >= 0) & (child >= 0))]
        wrong |= np.isin(chosen, parents)
    if wrong.any():
        reason = f"a leaf below level {LEVEL_LIMIT}" if leaf else "a cell whose children are all leaves"
        raise InputError(f"cells: cell {chosen[wrong][0]} is not {reason}")
    return chosen


def _coarse_first(map: CellMap, todo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`todo` with all coarser neighbours that must be split before, and those of it that may be split now."""
    level = map.levels
    while True:
        rows = map.rings.rows(todo)
        coarser = level[rows] < level[todo, None]
        missing = np.setdiff1d(rows[coarser], todo)
        if len(missing) == 0:
            return todo, todo[~coarser.any(axis=1)]
        todo = np.union1d(todo, missing)


def _finest_around(map: CellMap, parents: np.ndarray) -> np.ndarray:
    """The highest level in the rings of the children of each cell."""
    chosen = wp.array(parents.astype(np.int32), dtype=wp.int32, device=map.device)
    finest = wp.zeros(len(parents), dtype=wp.int32, device=map.device)
    launch(_finest, len(parents), [map.arrays, map.rings.table, chosen], [finest], device=map.device)
    return finest.numpy()


def _apply(map: CellMap, cells: np.ndarray, merging: int, method: Method | None) -> None:
    if len(cells) == 0:
        return
    map.version += 1
    device = map.device
    _ = map.rings  # must be there before the first change
    todo = wp.array(cells.astype(np.int32), dtype=wp.int32, device=device)
    if (method or ("sets" if device.is_cuda else "sequential")) == "sequential":
        _refuse(apply_in_order(map, todo, merging))
    else:
        _apply_in_sets(map, todo, merging)
    if not map.has_convex_cells:
        blind = see_whole_cells(map)
        if len(blind):
            raise UnsupportedError(f"cell {blind[0]} is no longer star-shaped: its parent is bent too much to be split")


def _apply_in_sets(map: CellMap, todo: wp.array, merging: int) -> None:
    device = map.device
    cells = todo.numpy()
    rank = np.random.default_rng(0).permutation(len(cells)).astype(np.int32) + 1
    refused = 0
    while len(cells) and not refused:
        m, table = map.arrays, map.rings.table
        ops, ranks = (wp.array(x, dtype=wp.int32, device=device) for x in (cells, rank))
        best = wp.zeros(map.cell_capacity, dtype=wp.int32, device=device)
        chosen = wp.zeros(len(cells), dtype=wp.int32, device=device)
        room = wp.zeros(len(cells), dtype=wp.vec3i, device=device)
        launch(_bid, len(cells), [m, table, ops, ranks, best], device=device, threads=1)
        launch(_win, len(cells), [m, table, ops, ranks, best, merging], [chosen, room], device=device)
        now = chosen.numpy() > 0
        if not merging:
            map.reserve(*(int(n) for n in room.numpy()[now].sum(axis=0)))
        m, table = map.arrays, map.rings.table
        ops = wp.array(cells[now], dtype=wp.int32, device=device)
        work = wp.empty((len(ops), WORK_WIDTH), dtype=wp.int32, device=device)
        failed = wp.zeros(len(ops), dtype=wp.int32, device=device)
        dirty = wp.zeros(map.cell_capacity, dtype=wp.int32, device=device)
        # On CPU one thread: places are taken from shared lists.
        kernel = _together(m.dimension)
        launch(kernel, len(ops), [m, table, ops, merging, work], [failed, dirty], device=device, threads=1)
        map.rings = renew_rings(map.arrays, map.rings, dirty, device)
        refused = int(failed.numpy().max())
        cells, rank = cells[~now], rank[~now]
    _refuse(refused)


def _refuse(refused: int) -> None:
    if refused:
        raise UnsupportedError(f"cell {refused - 1} has too many corners to be split (32 a face, 128 darts a volume)")


def _together(dimension: int) -> wp.Kernel:
    return _together3 if dimension == 3 else _together2


@wp.kernel
def _together2(
    first: int,
    m: MapArrays,
    table: RingTable,
    ops: wp.array[int],
    merging: int,
    work: wp.array2d[int],
    failed: wp.array[int],
    dirty: wp.array[int],
):
    i = first + wp.tid()
    c = ops[i]
    soil_operation(m, table, c, dirty)
    if merging == 1:
        merge_face(m, c, work, i)
    elif split_face(m, c, work, i):
        soil_children(m, c, dirty)
    else:
        failed[i] = c + 1


@wp.kernel
def _together3(
    first: int,
    m: MapArrays,
    table: RingTable,
    ops: wp.array[int],
    merging: int,
    work: wp.array2d[int],
    failed: wp.array[int],
    dirty: wp.array[int],
):
    i = first + wp.tid()
    c = ops[i]
    soil_operation(m, table, c, dirty)
    if merging == 1:
        merge_volume(m, c, work, i)
    elif split_volume(m, c, work, i):
        soil_children(m, c, dirty)
    else:
        failed[i] = c + 1


@wp.func
def _bid_for(table: RingTable, c: int, rank: int, best: wp.array[int]):
    wp.atomic_max(best, c, rank)
    for i in range(table.size[c]):
        wp.atomic_max(best, table.cells[c * table.width + i], rank)


@wp.func
def _holds(table: RingTable, c: int, rank: int, best: wp.array[int]) -> bool:
    holds = bool(best[c] == rank)
    for i in range(table.size[c]):
        holds = holds and best[table.cells[c * table.width + i]] == rank
    return holds


@wp.kernel
def _bid(first: int, m: MapArrays, table: RingTable, ops: wp.array[int], ranks: wp.array[int], best: wp.array[int]):
    i = first + wp.tid()
    c = ops[i]
    if m.first_child[c] < 0:
        _bid_for(table, c, ranks[i], best)
    child = int(m.first_child[c])
    while child >= 0:
        _bid_for(table, child, ranks[i], best)
        child = m.sibling[child]


@wp.kernel
def _win(
    first: int,
    m: MapArrays,
    table: RingTable,
    ops: wp.array[int],
    ranks: wp.array[int],
    best: wp.array[int],
    merging: int,
    chosen: wp.array[int],
    room: wp.array[wp.vec3i],
):
    i = first + wp.tid()
    c = ops[i]
    holds = bool(True)
    if m.first_child[c] < 0:
        holds = _holds(table, c, ranks[i], best)
    child = int(m.first_child[c])
    while child >= 0:
        holds = holds and _holds(table, child, ranks[i], best)
        child = m.sibling[child]
    if holds:
        chosen[i] = 1
        if merging == 0:
            if m.dimension == 3:
                room[i] = volumes_room(m, c)
            else:
                room[i] = faces_room(m, c)


@wp.kernel
def _finest(first: int, m: MapArrays, table: RingTable, parents: wp.array[int], finest: wp.array[int]):
    i = first + wp.tid()
    child = int(m.first_child[parents[i]])
    while child >= 0:
        for k in range(table.size[child]):
            finest[i] = wp.max(finest[i], m.cell_level[table.cells[child * table.width + k]])
        child = m.sibling[child]


@wp.kernel
def _heirs(first: int, m: MapArrays, darts: wp.array[int]):
    i = first + wp.tid()
    d = int(darts[i])
    while m.tag[d] < 0:
        d = m.link[d]
    darts[i] = d

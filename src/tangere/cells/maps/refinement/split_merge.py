"""Splitting and merging cells of a map, one after the other on CPU and in independent sets on CUDA.

Question: the same map, finer here and coarser there.
Method:   on CPU one thread applies the operations in the order given (0.3 us a split in 2D). On CUDA, rounds: an
          operation goes ahead if none of higher rank touches a cell it touches (its cells and their rings), and those
          chosen run side by side. Both make the same cells; numbers may differ. In space there are a hundred rounds
          and more, each as long as one thread takes to split a volume: there a map goes to the CPU and back, unless
          it is so large that this would take longer.
Balance:  with `balanced`, cells that share a vertex differ by at most one level: a split first splits coarser
          neighbours, a merge is left out where a neighbour is too fine.
Walls:    a merge is left out where it would lose a wall or an obstacle (the rule is that of `CellMap`).
Failure:  an operation that is refused leaves every cell, dart and vertex as it was.
Known as: adaptive mesh refinement; subdivision and simplification (Pitiot 2015, sections 6.2 and 6.3), by maximal
          independent sets on CUDA.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import numpy as np
import warp as wp

from tangere.cells.index_checks import checked_indices
from tangere.cells.maps.arrays import MapArrays, grown, level, own_wall
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.orbits import level_phi1, next_part
from tangere.cells.maps.refinement.division import WORK_WIDTH
from tangere.cells.maps.refinement.faces import face_split_room, merge_face, split_face
from tangere.cells.maps.refinement.sequential import apply_in_order
from tangere.cells.maps.refinement.volumes import merge_volume, split_volume, volume_split_room
from tangere.cells.maps.rings import RingTable, update_rings
from tangere.cells.maps.visibility import recentre_cells
from tangere.runtime import SOUND, Arrays, InputError, UnsupportedError, launch, using_threads

wp.set_module_options(SOUND)

Method = Literal["sequential", "sets"]
#: Bytes of a map that go to the host and back in a second; how long sets take for each volume, and for many [s].
_MOVED, _IN_SETS, _ALL_SETS = 1.0e9, 7.5e-4, 0.4


def split(
    map: CellMap,
    cells: Arrays,
    *,
    balanced: bool = False,
    method: Method | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Split leaf cells; returns the numbers of all cells that were split.

    Refused, with everything left as it was: cells with too many corners, and cells bent so much that a part would not
    be star-shaped.

    Args:
        balanced: split coarser neighbours first, so that levels across a shared vertex differ by one at most.
        method: "sequential" or "sets"; None: "sequential" on CPU, on CUDA what is quicker.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        todo = _checked_leaves(map, cells)
        done: list[np.ndarray] = []
        with _chosen_method(map, len(todo), method) as way:
            while len(todo):
                ready = todo
                if balanced:
                    todo, ready = _coarse_first(map, todo)
                done.append(ready)
                try:
                    _apply(map, ready, 0, way)
                except UnsupportedError:
                    for cells_before in reversed(done):
                        _apply(map, cells_before[map.host("first_child")[cells_before] >= 0], 1, way)
                    raise
                todo = todo[:0] if ready is todo else np.setdiff1d(todo, ready)
        return np.concatenate(done) if done else todo


def merge(
    map: CellMap,
    cells: Arrays,
    *,
    balanced: bool = False,
    method: Method | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Merge the children of cells whose children are all leaves; returns the numbers of the cells merged.

    Left out are cells whose children differ in walls or obstacles. Refused, with everything left as it was: cells that
    were bent so much since they were split that they are not star-shaped any more.

    Args:
        balanced: leave out cells with a neighbour so fine that levels would differ by more than one.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        todo = _unique(checked_indices(cells, "cells", map.cell_capacity, "cells"))
        todo = todo[may_merge(map, todo, balanced=balanced)]
        # Only a map that was bent may refuse: others get back the cells they had.
        before = map.snapshot() if map.move_version and len(todo) else None
        try:
            with _chosen_method(map, len(todo), method) as way:
                _apply(map, todo, 1, way)
        except UnsupportedError:
            if before is not None:
                map.restore(before)
            raise
        return todo


def replace_merged_darts(map: CellMap, darts: wp.array) -> None:
    """Replace, in place, darts that merges took away by darts of the same cell.

    Of darts kept since before version `map.reuse_version` it is not known any more: a split may have given them to new
    cells.
    """
    launch(_replace_merged, len(darts), [map.arrays], [darts], device=map.device)


def _unique(cells: np.ndarray) -> np.ndarray:
    return cells if len(cells) < 2 else np.unique(cells)


def _checked_leaves(map: CellMap, cells: Arrays) -> np.ndarray:
    """Cells that can be split, sorted, each once."""
    chosen = _unique(checked_indices(cells, "cells", map.cell_capacity, "cells"))
    levels = map.levels[chosen]
    wrong = (levels < 0) | (levels >= map.level_limit) | (map.host("first_child")[chosen] >= 0)
    if wrong.any():
        limit = f"a leaf below level {map.level_limit}, the finest that its coordinates allow"
        raise InputError(f"cells: cell {chosen[wrong][0]} is not {limit}")
    return chosen


def _coarse_first(map: CellMap, todo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`todo` with all coarser neighbours that must be split before, and those of it that may be split now."""
    levels = map.levels
    while True:
        rows = map.rings.rows(todo)
        coarser = levels[rows] < levels[todo, None]
        if not coarser.any():
            return todo, todo
        missing = np.setdiff1d(rows[coarser], todo)
        if len(missing) == 0:
            return todo, todo[~coarser.any(axis=1)]
        todo = np.union1d(todo, missing)


def may_merge(map: CellMap, parents: np.ndarray, *, balanced: bool) -> np.ndarray:
    """Whether cells with leaves for children may merge: no wall or obstacle is lost, no neighbour is too fine."""
    if len(parents) == 0:
        return np.empty(0, bool)
    chosen = wp.array(parents.astype(np.int32), dtype=wp.int32, device=map.device)
    allowed = wp.empty(len(parents), dtype=wp.int32, device=map.device)
    inputs = [map.arrays, map.rings.table, chosen, int(balanced)]
    launch(_mark_mergeable, len(parents), inputs, [allowed], device=map.device)
    answer = allowed.numpy()
    if answer.min() < 0:
        raise InputError(f"cells: cell {parents[np.argmin(answer)]} is not a cell whose children are all leaves")
    return answer == 1


@contextmanager
def _chosen_method(map: CellMap, count: int, method: Method | None) -> Iterator[Method]:
    """Where so many cells are split or merged, and how: as asked for, or as is quicker."""
    if method is not None or count == 0:
        yield method or "sequential"
    elif map.device.is_cpu:
        yield "sequential"
    elif map.dimension == 3 and map.bytes / _MOVED < min(count * _IN_SETS, _ALL_SETS):
        with map.on_host():
            yield "sequential"
    else:
        yield "sets"


def _apply(map: CellMap, cells: np.ndarray, merging: int, method: Method) -> None:
    if len(cells) == 0:
        return
    map.version += 1
    if merging:
        map.merge_version = map.version
    else:
        map.reuse_version = map.merge_version
    _ = map.rings  # must be there before the first change
    if method == "sequential":
        _refuse(apply_in_order(map, cells, merging))
    else:
        _apply_in_sets(map, cells.astype(np.int32), merging)
    if not map.has_convex_cells:
        blind, what = recentre_cells(map), "merged" if merging else "split"
        blind = blind[map.host("inverted")[blind] == 0]  # others were so before
        if len(blind):
            raise UnsupportedError(f"cell {blind[0]} would not be star-shaped: it is bent too much to be {what}")


def _apply_in_sets(map: CellMap, cells: np.ndarray, merging: int) -> None:
    device = map.device
    rank = np.random.default_rng(0).permutation(len(cells)).astype(np.int32) + 1
    dirty = wp.zeros(map.cell_capacity, dtype=wp.int32, device=device)
    refused = 0
    while len(cells) and not refused:
        m, table = map.arrays, map.rings.table
        ops, ranks = (wp.array(x, dtype=wp.int32, device=device) for x in (cells, rank))
        best = wp.zeros(map.cell_capacity, dtype=wp.int32, device=device)
        chosen = wp.zeros(len(cells), dtype=wp.int32, device=device)
        room = wp.zeros(len(cells), dtype=wp.vec3i, device=device)
        launch(_raise_ranks, len(cells), [m, table, ops, ranks, best], device=device, threads=1)
        launch(_choose_independent, len(cells), [m, table, ops, ranks, best, merging], [chosen, room], device=device)
        now = chosen.numpy() > 0
        if not merging:
            map.reserve(*(int(n) for n in room.numpy()[now].sum(axis=0)))
        m, table = map.arrays, map.rings.table
        ops = wp.array(cells[now], dtype=wp.int32, device=device)
        work = wp.empty((len(ops), WORK_WIDTH), dtype=wp.int32, device=device)
        failed = wp.zeros(len(ops), dtype=wp.int32, device=device)
        if len(dirty) < map.cell_capacity:
            dirty = grown(dirty, map.cell_capacity)
        # On CPU one thread: places are taken from shared lists.
        kernel = _independent_kernel(m.dimension)
        launch(kernel, len(ops), [m, table, ops, merging, work], [failed, dirty], device=device, threads=1)
        refused = int(failed.numpy().max())
        cells, rank = cells[~now], rank[~now]
        # Who touched a cell that was split may go on as if it were whole: that keeps more of them apart than need be.
        if merging or refused or len(cells) == 0:
            map.rings = update_rings(map.arrays, map.rings, dirty, device)
    _refuse(refused)


def _refuse(refused: int) -> None:
    if refused:
        raise UnsupportedError(f"cell {refused - 1} has too many corners to be split (32 a face, 128 darts a volume)")


@wp.func
def _mark_ring(table: RingTable, c: int, dirty: wp.array[int]):
    """Mark the cells whose rings change when leaf c does."""
    dirty[c] = 1
    for i in range(table.size[c]):
        dirty[table.cells[c * table.width + i]] = 1


@wp.func
def _mark_operation(m: MapArrays, table: RingTable, c: int, dirty: wp.array[int]):
    """Mark the cells that splitting c or merging its children changes."""
    _mark_ring(table, c, dirty)
    child = int(m.first_child[c])
    while child >= 0:
        _mark_ring(table, child, dirty)
        child = m.sibling[child]


@wp.func
def _mark_children(m: MapArrays, c: int, dirty: wp.array[int]):
    """Mark the cells that c was split into."""
    child = int(m.first_child[c])
    while child >= 0:
        dirty[child] = 1
        child = m.sibling[child]


@cache
def _independent_kernel(dimension: int) -> wp.Kernel:
    """Splits or merges faces (2) or volumes (3) that touch none of the others' cells."""
    split, merge = (split_volume, merge_volume) if dimension == 3 else (split_face, merge_face)

    @wp.kernel(module="unique", module_options=SOUND)
    def independent(
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
        _mark_operation(m, table, c, dirty)
        if merging == 1:
            merge(m, c, work, i)
        elif split(m, c, work, i):
            _mark_children(m, c, dirty)
        else:
            failed[i] = c + 1

    return independent


@wp.func
def _raise_rank(table: RingTable, c: int, rank: int, best: wp.array[int]):
    wp.atomic_max(best, c, rank)
    for i in range(table.size[c]):
        wp.atomic_max(best, table.cells[c * table.width + i], rank)


@wp.func
def _has_highest_rank(table: RingTable, c: int, rank: int, best: wp.array[int]) -> bool:
    holds = bool(best[c] == rank)
    for i in range(table.size[c]):
        holds = holds and best[table.cells[c * table.width + i]] == rank
    return holds


@wp.kernel
def _raise_ranks(
    first: int, m: MapArrays, table: RingTable, ops: wp.array[int], ranks: wp.array[int], best: wp.array[int]
):
    i = first + wp.tid()
    c = ops[i]
    if m.first_child[c] < 0:
        _raise_rank(table, c, ranks[i], best)
    child = int(m.first_child[c])
    while child >= 0:
        _raise_rank(table, child, ranks[i], best)
        child = m.sibling[child]


@wp.kernel
def _choose_independent(
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
        holds = _has_highest_rank(table, c, ranks[i], best)
    child = int(m.first_child[c])
    while child >= 0:
        holds = holds and _has_highest_rank(table, child, ranks[i], best)
        child = m.sibling[child]
    if holds:
        chosen[i] = 1
        if merging == 0:
            if m.dimension == 3:
                room[i] = volume_split_room(m, c)
            else:
                room[i] = face_split_room(m, c)


@wp.func
def _across(m: MapArrays, d: int) -> int:
    if m.dimension == 3:
        return m.phi3[d]
    return m.phi2[d]


@wp.func
def _same_walls(m: MapArrays, c: int, d: int) -> bool:
    """Whether no wall is lost at dart d of a child of c: none is inside c, and the parts of a side of c are alike."""
    k = m.cell_level[c]
    y = _across(m, d)
    if y >= 0:
        if m.parent[m.cell[y]] == c:
            return own_wall(m, d) == 0
    same = bool(True)
    if level(m, d) <= k:
        if m.dimension == 3:
            # One part of a divided face has one dart of level k, its corner.
            same = own_wall(m, level_phi1(m, d, k)) == own_wall(m, d)
        else:
            part = next_part(m, d, d, k)
            while part >= 0:
                same = same and own_wall(m, part) == own_wall(m, d)
                part = next_part(m, part, d, k)
    return same


@wp.kernel
def _mark_mergeable(
    first: int, m: MapArrays, table: RingTable, parents: wp.array[int], balanced: int, allowed: wp.array[int]
):
    """1: yes, 0: not yet, -1: it is not a cell whose children are leaves."""
    i = first + wp.tid()
    c = parents[i]
    child = int(m.first_child[c])
    if m.cell_level[c] < 0 or child < 0:
        allowed[i] = -1
        return
    while child >= 0:
        if m.first_child[child] >= 0:
            allowed[i] = -1
            return
        child = m.sibling[child]
    child = m.first_child[c]
    mark = m.obstacle[child]
    good = bool(True)
    while child >= 0 and good:
        good = m.obstacle[child] == mark
        d = int(m.anchor[child])
        while d >= 0 and good:
            good = _same_walls(m, c, d)
            d = m.link[d]
        if balanced == 1:
            for k in range(table.size[child]):
                good = good and m.cell_level[table.cells[child * table.width + k]] <= m.cell_level[c] + 1
        child = m.sibling[child]
    allowed[i] = 0
    if good:
        allowed[i] = 1


@wp.kernel
def _replace_merged(first: int, m: MapArrays, darts: wp.array[int]):
    i = first + wp.tid()
    d = int(darts[i])
    while m.tag[d] < 0:
        d = m.link[d]
    darts[i] = d

"""Which rows of an island may be solved at the same time, so that sweeps come to the bits they come to one by one.

Question: what must a row wait for, when rows are solved in their order, and what needs not wait for each other?
Method:   a row waits for the last row before it that shares a body that moves. Its level is one more than those of the
          rows it waits for: rows of a level share no body. Level after level forwards, or from the last to the first
          backwards, every body meets its rows in the order in which it meets them when they are solved one by one.
Sound:    no two rows of a level write to the same body, and the order within a level changes no bit.
Known as: level scheduling; wavefronts of a dependency graph (Anderson and Saad 1989).
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.dynamics.solver.growing_struct import GrowingStruct
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import SOUND, launch, sort_pairs

wp.set_module_options(SOUND)

#: Key of what has no body, or no level: it comes last.
_NO_BODY, _NO_LEVEL = 2**31 - 1, 2**63 - 1
#: The island is above so many bits of a key, the level in them.
_LEVEL_BITS = wp.constant(wp.int64(32))
_LEVEL = wp.constant(wp.int64(2**32 - 1))


@wp.struct
class RowLevels:
    """Rows of all islands, of each its joints before its contacts; those of island k begin at `rows_before`."""

    waits: wp.array[wp.int32]  # (2 n,) which row a row waits for by its first body, and by the other; -1: for none
    level: wp.array[wp.int32]
    order: wp.array[wp.int32]  # the rows of an island, by level
    first: wp.array[wp.int32]  # where in `order` each level of an island begins, from the place of its first row on
    count: wp.array[wp.int32]  # of each island: its levels


class LevelsOfRows:
    """Finds the levels of the rows of islands; the arrays are used again."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._growing = GrowingStruct(RowLevels(), device, lambda name: "islands" if name == "count" else name)

    @property
    def arrays(self) -> Any:
        """The levels (`RowLevels`)."""
        return self._growing.struct

    def find(
        self, islands: IslandArrays, rows: WhitenedRows, count: int, contacts: int, joints: int, width: int
    ) -> None:
        """Fill `arrays`.

        Args:
            count: of islands.
            contacts, joints: rows there are, those of no island with them.
            width: threads of an island.
        """
        total, device, levels = contacts + joints, self._device, self.arrays
        self._growing.reserve(islands=count, waits=2 * total, level=total, order=total, first=total)

        def run(kernel: wp.Kernel, dim: int, *arguments: Any) -> None:
            launch(kernel, dim, arguments, device=device, threads=1)

        bodies = wp.full(2 * total, _NO_BODY, dtype=wp.int32, device=device)
        ends = wp.empty(2 * total, dtype=wp.int32, device=device)
        run(_number, 2 * total, ends)
        run(_list_contacts, contacts, islands, rows, count, bodies)
        run(_list_joints, joints, islands, rows, count, bodies)
        bodies, ends = sort_pairs(bodies, ends)
        run(_find_waits, 2 * total, bodies, ends, levels.waits)
        keys = wp.full(total, _NO_LEVEL, dtype=wp.int64, device=device)
        run(_find_levels, count * width, islands, levels, keys)
        places = wp.empty(total, dtype=wp.int32, device=device)
        run(_number, total, places)
        keys, places = sort_pairs(keys, places)
        wp.copy(levels.order, places, count=total)
        run(_find_first, total, islands, keys, levels)


@wp.func
def rows_before(islands: IslandArrays, k: int) -> int:
    """Rows of the islands before this one."""
    return islands.contact_first[k] + islands.joint_first[k]


@wp.func
def largest_of_block(value: wp.float64) -> wp.float64:
    """The largest value of all threads of the block, which wait for each other and see what they wrote before."""
    return wp.tile_max(wp.tile(value))[0]


@wp.kernel
def _number(first: int, places: wp.array[wp.int32]):
    i = first + wp.tid()
    places[i] = i


@wp.func
def list_bodies(row: int, a: int, b: int, bodies: wp.array[wp.int32]):
    if a >= 0:
        bodies[2 * row] = a
    if b >= 0:
        bodies[2 * row + 1] = b


@wp.kernel
def _list_contacts(first: int, islands: IslandArrays, rows: WhitenedRows, count: int, bodies: wp.array[wp.int32]):
    """The bodies of contacts, where the row is among all rows of all islands."""
    i = first + wp.tid()
    if i < islands.contact_first[count]:
        k = islands.number[wp.max(rows.c_a[i], rows.c_b[i])]
        list_bodies(islands.joint_first[k + 1] + i, rows.c_a[i], rows.c_b[i], bodies)


@wp.kernel
def _list_joints(first: int, islands: IslandArrays, rows: WhitenedRows, count: int, bodies: wp.array[wp.int32]):
    i = first + wp.tid()
    if i < islands.joint_first[count]:
        k = islands.number[wp.max(rows.j_a[i], rows.j_b[i])]
        list_bodies(islands.contact_first[k] + i, rows.j_a[i], rows.j_b[i], bodies)


@wp.kernel
def _find_waits(first: int, bodies: wp.array[wp.int32], ends: wp.array[wp.int32], waits: wp.array[wp.int32]):
    """Ends of rows, sorted by body: before each one is the row it waits for."""
    i = first + wp.tid()
    before = int(-1)
    if i > 0 and bodies[i] != wp.static(_NO_BODY):
        if bodies[i - 1] == bodies[i]:
            before = ends[i - 1] / 2
    waits[ends[i]] = before


@wp.kernel
def _find_levels(first: int, islands: IslandArrays, levels: RowLevels, keys: wp.array[wp.int64]):
    """The levels of an island, by a block: guesses from below rise until none does any more."""
    width = wp.block_dim()
    lane = wp.tid() % width
    k = (first + wp.tid()) / width
    begin = rows_before(islands, k)
    end = rows_before(islands, k + 1)
    for r in range(begin + lane, end, width):
        levels.level[r] = 0
    rose = largest_of_block(wp.float64(1.0))
    while rose > wp.float64(0.0):
        mine = wp.float64(0.0)
        for r in range(begin + lane, end, width):
            level = int(0)
            for side in range(2):
                before = levels.waits[2 * r + side]
                if before >= 0:
                    level = wp.max(level, levels.level[before] + 1)
            if level > levels.level[r]:
                levels.level[r] = level
                mine = wp.float64(1.0)
        rose = largest_of_block(mine)
    highest = wp.float64(-1.0)
    for r in range(begin + lane, end, width):
        keys[r] = (wp.int64(k) << _LEVEL_BITS) | wp.int64(levels.level[r])
        highest = wp.max(highest, wp.float64(levels.level[r]))
    highest = largest_of_block(highest)
    if lane == 0:
        levels.count[k] = int(highest) + 1


@wp.kernel
def _find_first(first: int, islands: IslandArrays, keys: wp.array[wp.int64], levels: RowLevels):
    """Where each level begins among the sorted keys."""
    p = first + wp.tid()
    key = keys[p]
    if key != wp.static(wp.int64(_NO_LEVEL)):
        fresh = bool(True)
        if p > 0:
            fresh = keys[p - 1] != key
        if fresh:
            k = int(key >> _LEVEL_BITS)
            levels.first[rows_before(islands, k) + int(key & _LEVEL)] = p

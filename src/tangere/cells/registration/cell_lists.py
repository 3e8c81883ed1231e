"""Lists of entities per cell, kept up to date one change at a time.

Question: who is in each cell, when only a few changed since the last step?
Method:   a doubly linked list per cell and a list of entries per entity, in arrays; an entity that changed is taken out
          everywhere and put in again, in constant time per cell. One thread: the cost is that of the changes.
Known as: linked cell lists; incremental registration (Pitiot 2015, chapter 5).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.counting_sort import CellGroups
from tangere.cells.maps.arrays import grown
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@wp.struct
class CellListEntries:
    head: wp.array[int]  # per cell: its first entry
    entity_head: wp.array[int]  # per entity: its first entry
    entity: wp.array[int]  # per entry
    cell: wp.array[int]
    after: wp.array[int]  # in the cell
    before: wp.array[int]
    next_of_entity: wp.array[int]  # of the entity; of a free entry: the next free one
    state: wp.array[int]  # entries ever used, first free entry, entries in use


class CellLists:
    """Who is in which cells; every entity starts in none."""

    def __init__(self, entities: int, cells: int, device: wp.Device) -> None:
        self.device = device
        self._entries = CellListEntries()
        self._entries.head = wp.full(cells, -1, dtype=wp.int32, device=device)
        self._entries.entity_head = wp.full(entities, -1, dtype=wp.int32, device=device)
        for name in ("entity", "cell", "after", "before", "next_of_entity"):
            setattr(self._entries, name, wp.full(max(16, entities), -1, dtype=wp.int32, device=device))
        self._entries.state = wp.array([0, -1, 0], dtype=wp.int32, device=device)

    def replace(self, entities: wp.array, first: wp.array, cells: wp.array, cell_capacity: int) -> None:
        """Put each of `entities` (k,) into `cells[first[entity]:first[entity + 1]]` and nowhere else."""
        self.make_room(cell_capacity, len(cells))
        if len(entities):
            launch(_replace, 1, [self._entries, entities, first, cells], device=self.device)

    @property
    def entries(self) -> CellListEntries:
        """For kernels."""
        return self._entries

    def make_room(self, cells: int, entries: int) -> None:
        """For cells of so many numbers, and for so many entries more than there are."""
        known = self._entries
        if len(known.head) < cells:
            known.head = _with_room(known.head, cells)
        room = int(known.state.numpy()[0]) + entries
        if len(known.entity) < room:
            for name in ("entity", "cell", "after", "before", "next_of_entity"):
                setattr(known, name, _with_room(getattr(known, name), room))

    def cells_of(self, entity: int) -> np.ndarray:
        """The cells of one entity, sorted."""
        entries, found = self._entries, []
        following, cell = entries.next_of_entity.numpy(), entries.cell.numpy()
        x = int(entries.entity_head[entity : entity + 1].numpy()[0])
        while x >= 0:
            found.append(int(cell[x]))
            x = int(following[x])
        return np.array(sorted(found), np.int32)

    def groups(self) -> CellGroups:
        """The same lists as arrays."""
        entries, cells = self._entries, len(self._entries.head)
        start = wp.empty(cells + 1, dtype=wp.int32, device=self.device)
        order = wp.empty(int(entries.state.numpy()[2]), dtype=wp.int32, device=self.device)
        launch(_flatten, 1, [entries], [start, order], device=self.device)
        return CellGroups(start, order)


def _with_room(array: wp.array, room: int) -> wp.array:
    return array if len(array) >= room else grown(array, room + room // 2, -1)


@wp.func
def take_out(e: CellListEntries, entity: int):
    x = int(e.entity_head[entity])
    while x >= 0:
        if e.before[x] >= 0:
            e.after[e.before[x]] = int(e.after[x])
        else:
            e.head[e.cell[x]] = int(e.after[x])
        if e.after[x] >= 0:
            e.before[e.after[x]] = int(e.before[x])
        next_of_entity = int(e.next_of_entity[x])
        e.next_of_entity[x] = int(e.state[1])
        e.state[1] = x
        e.state[2] = e.state[2] - 1
        x = next_of_entity
    e.entity_head[entity] = -1


@wp.func
def put_in(e: CellListEntries, entity: int, cell: int) -> bool:
    """Put an entity into a cell; False if there is no room left."""
    x = int(e.state[1])
    if x >= 0:
        e.state[1] = int(e.next_of_entity[x])
    else:
        x = int(e.state[0])
        if x >= e.entity.shape[0]:
            return False
        e.state[0] = x + 1
    first = int(e.head[cell])
    e.entity[x] = entity
    e.cell[x] = cell
    e.before[x] = -1
    e.after[x] = first
    if first >= 0:
        e.before[first] = x
    e.head[cell] = x
    e.next_of_entity[x] = int(e.entity_head[entity])
    e.entity_head[entity] = x
    e.state[2] = e.state[2] + 1
    return True


@wp.func
def has_row(e: CellListEntries, entity: int, begin: int, end: int, cells: wp.array[int]) -> bool:
    """Whether an entity is in `cells[begin:end]` (sorted, as it was put in) and nowhere else."""
    k = int(end)
    x = int(e.entity_head[entity])
    while x >= 0:
        k -= 1
        if k < begin:
            return False
        if e.cell[x] != cells[k]:
            return False
        x = e.next_of_entity[x]
    return k == begin


@wp.kernel
def _replace(first: int, e: CellListEntries, entities: wp.array[int], rows: wp.array[int], cells: wp.array[int]):
    for i in range(entities.shape[0]):
        entity = entities[i]
        take_out(e, entity)
        for k in range(rows[entity], rows[entity + 1]):
            put_in(e, entity, cells[k])


@wp.kernel
def _flatten(first: int, e: CellListEntries, start: wp.array[int], order: wp.array[int]):
    total = int(0)
    for c in range(e.head.shape[0]):
        start[c] = total
        x = int(e.head[c])
        while x >= 0:
            # In rising order: lists are short.
            place = int(total)
            while place > start[c] and order[place - 1] > e.entity[x]:
                order[place] = int(order[place - 1])
                place -= 1
            order[place] = int(e.entity[x])
            total += 1
            x = e.after[x]
    start[e.head.shape[0]] = total

"""Which contacts act on each dof: the entries of their rows, dof by dof, and for each dof in the order of the rows.

On CPU they are counted and placed by one thread, as there are few dofs; on CUDA they are sorted.
"""

from __future__ import annotations

import warp as wp
import warp.utils

from tangere.runtime import SOUND, PreparedLaunch, device_of, launch

wp.set_module_options(SOUND)

#: Dofs of a row: four surface vertices carried by four dofs each.
WIDTH = wp.constant(16)
RowDofs = wp.types.vector(length=16, dtype=wp.int32)
RowWeights = wp.types.vector(length=16, dtype=wp.float64)


class RowEntries:
    """The entries of rows; `columns` are first and last entry of each dof, row and pull of each entry."""

    def __init__(self, rows: list[wp.array], dofs: int) -> None:
        """`rows`: how many there are, and of each its number of dofs, its dofs, their weights, and its bound."""
        self._rows, self._device, self._dofs = rows, device_of(rows[0]), dofs
        capacity = len(rows[1]) * int(WIDTH)

        def column(dtype, size: int) -> wp.array:
            return wp.zeros(size, dtype=dtype, device=self._device)

        self.columns = [column(wp.int32, dofs), column(wp.int32, dofs)]
        self.columns += [column(wp.int32, capacity), column(wp.vec2d, capacity)]
        self._place = PreparedLaunch(_place, [*rows, *self.columns], self._device, serial=True)
        if self._device.is_cuda:
            self.make_room_to_sort()

    def make_room_to_sort(self) -> None:
        """On CPU, where it is only tested, there is none."""
        capacity = len(self._rows[1]) * int(WIDTH)
        self._ends = wp.zeros(len(self._rows[1]), dtype=wp.int32, device=self._device)
        self._keys, self._places = (wp.zeros(2 * capacity, dtype=wp.int32, device=self._device) for _ in range(2))

    def __call__(self, rows: int) -> None:
        """Find them anew; `rows` to launch for."""
        if self._device.is_cuda:
            self.sort(rows)
        else:
            self._place(1)

    def sort(self, rows: int) -> None:
        """The same, without a word to the host about how many entries there are."""
        begin, end, *of_entries = self.columns
        begin.zero_()
        end.zero_()
        if not rows:
            return
        live, sizes, dofs, weights, bound = self._rows
        ends, entries = self._ends[:rows], rows * int(WIDTH)
        warp.utils.array_scan(sizes[:rows], ends, inclusive=True)
        self._keys.fill_(self._dofs)  # places without an entry sort to the end
        launch(_keys, rows, [live, ends, sizes, dofs], [self._keys, self._places], device=self._device)
        warp.utils.radix_sort_pairs(self._keys, self._places, entries, 0, max(self._dofs.bit_length(), 1))
        inputs = [self._keys, self._places, entries, weights, bound]
        launch(_by_dof, entries, inputs, [begin, end, *of_entries], device=self._device, grain=8192)


@wp.kernel
def _place(
    first: int,
    live: wp.array[int],
    sizes: wp.array[int],
    dofs: wp.array[RowDofs],
    weights: wp.array[RowWeights],
    bound: wp.array[wp.float64],
    begin: wp.array[int],
    end: wp.array[int],
    entry_row: wp.array[int],
    entry_pull: wp.array[wp.vec2d],
):
    """The entries of each dof one after the other, by counting: there are few dofs (one thread)."""
    for i in range(end.shape[0]):
        end[i] = 0
    for r in range(live[0]):
        for k in range(sizes[r]):
            dof = dofs[r][k]
            end[dof] = end[dof] + 1
    total = int(0)
    for i in range(end.shape[0]):
        begin[i] = total
        total += end[i]
        end[i] = begin[i]
    for r in range(live[0]):
        for k in range(sizes[r]):
            dof = dofs[r][k]
            e = end[dof]
            w = weights[r][k]
            entry_row[e] = r
            entry_pull[e] = wp.vec2d(w, wp.abs(w) * bound[r])
            end[dof] = e + 1


@wp.kernel
def _keys(
    first: int,
    live: wp.array[int],
    ends: wp.array[int],
    sizes: wp.array[int],
    dofs: wp.array[RowDofs],
    keys: wp.array[int],
    places: wp.array[int],
):
    r = first + wp.tid()
    if r >= live[0]:
        return
    begin = ends[r] - sizes[r]
    for k in range(sizes[r]):
        keys[begin + k] = dofs[r][k]
        places[begin + k] = r * WIDTH + k


@wp.kernel
def _by_dof(
    first: int,
    keys: wp.array[int],
    places: wp.array[int],
    count: int,
    weights: wp.array[RowWeights],
    bound: wp.array[wp.float64],
    begin: wp.array[int],
    end: wp.array[int],
    entry_row: wp.array[int],
    entry_pull: wp.array[wp.vec2d],
):
    e = first + wp.tid()
    dof = keys[e]
    if dof >= begin.shape[0]:
        return
    r = places[e] / WIDTH
    w = weights[r][places[e] - r * WIDTH]
    entry_row[e] = r
    entry_pull[e] = wp.vec2d(w, wp.abs(w) * bound[r])
    if e == 0 or keys[wp.max(e - 1, 0)] != dof:
        begin[dof] = e
    if e == count - 1 or keys[wp.min(e + 1, count - 1)] != dof:
        end[dof] = e + 1

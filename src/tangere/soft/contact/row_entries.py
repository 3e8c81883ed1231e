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


@wp.struct
class RowArrays:
    """Contact rows, in arrays with room for more, and their entries, dof by dof."""

    live: wp.array[int]  #: (1,) how many rows there are
    bodies: wp.array[wp.vec2i]  #: of the row
    normal: wp.array[wp.vec3d]
    law: wp.array[wp.vec2d]  #: stiffness [N/m], and the gap below which it acts [m]
    place: wp.array[int]  #: of the feature that touches (`ContactPartners`); -1 for rows of which nothing is kept
    strain: wp.array[wp.vec3d]  #: slip that friction has taken up when the step begins (`friction_memory`) [m]
    aim: wp.array[wp.vec3d]  #: of a guide: where the point of the row is held, on a line along the normal [m]
    guide: wp.array[wp.vec4d]  #: across the line and along it [N/m], at most along it [N], 1: it only pushes (`rows`)
    dofs: wp.array[RowDofs]
    weights: wp.array[RowWeights]
    sizes: wp.array[int]  #: how many dofs it has
    bound: wp.array[wp.float64]  #: sum of the weights of free dofs
    force: wp.array[wp.vec3d]
    stiffness: wp.array[wp.mat33d]
    start: wp.array[wp.vec3d]  #: (n,) where the dofs are when the step begins [m]
    friction: wp.float64
    slip: wp.float64  #: below which friction is proportional to slip [m]
    begin: wp.array[int]  #: (n,) first entry of each dof
    end: wp.array[int]  #: (n,) and the one after its last
    entry_row: wp.array[int]
    entry_pull: wp.array[wp.vec2d]  #: weight, and its bound


class RowEntries:
    """Finds the entries of rows."""

    def __init__(self, rows: RowArrays) -> None:
        self._rows, self._device, self._dofs = rows, device_of(rows.live), len(rows.begin)
        self._place = PreparedLaunch(_place, [rows], self._device, serial=True)
        if self._device.is_cuda:
            self.make_room_to_sort()

    def make_room_to_sort(self) -> None:
        """On CPU, where it is only tested, there is none."""
        rows = len(self._rows.sizes)
        self._ends = wp.zeros(rows, dtype=wp.int32, device=self._device)
        self._keys, self._places = (
            wp.zeros(2 * rows * int(WIDTH), dtype=wp.int32, device=self._device) for _ in range(2)
        )

    def __call__(self, rows: int) -> None:
        """Find them anew; `rows` to launch for."""
        if self._device.is_cuda:
            self.sort(rows)
        else:
            self._place(1)

    def sort(self, rows: int) -> None:
        """The same, without a word to the host about how many entries there are."""
        self._rows.begin.zero_()
        self._rows.end.zero_()
        if not rows:
            return
        ends, entries = self._ends[:rows], rows * int(WIDTH)
        warp.utils.array_scan(self._rows.sizes[:rows], ends, inclusive=True)
        self._keys.fill_(self._dofs)  # places without an entry sort to the end
        launch(_keys, rows, [self._rows, ends], [self._keys, self._places], device=self._device)
        warp.utils.radix_sort_pairs(self._keys, self._places, entries, 0, max(self._dofs.bit_length(), 1))
        inputs = [self._keys, self._places, entries, self._rows]
        launch(_by_dof, entries, inputs, device=self._device, grain=8192)


@wp.func
def write_entry(e: int, r: int, k: int, rows: RowArrays):
    """Entry e of a dof, the one at place k of row r."""
    w = rows.weights[r][k]
    rows.entry_row[e] = r
    rows.entry_pull[e] = wp.vec2d(w, wp.abs(w) * rows.bound[r])


@wp.kernel
def _place(first: int, rows: RowArrays):
    """The entries of each dof one after the other, by counting: there are few dofs (one thread)."""
    for i in range(rows.end.shape[0]):
        rows.end[i] = 0
    for r in range(rows.live[0]):
        for k in range(rows.sizes[r]):
            dof = rows.dofs[r][k]
            rows.end[dof] = rows.end[dof] + 1
    total = int(0)
    for i in range(rows.end.shape[0]):
        rows.begin[i] = total
        total += rows.end[i]
        rows.end[i] = rows.begin[i]
    for r in range(rows.live[0]):
        for k in range(rows.sizes[r]):
            dof = rows.dofs[r][k]
            write_entry(rows.end[dof], r, k, rows)
            rows.end[dof] = rows.end[dof] + 1


@wp.kernel
def _keys(first: int, rows: RowArrays, ends: wp.array[int], keys: wp.array[int], places: wp.array[int]):
    r = first + wp.tid()
    if r >= rows.live[0]:
        return
    begin = ends[r] - rows.sizes[r]
    for k in range(rows.sizes[r]):
        keys[begin + k] = rows.dofs[r][k]
        places[begin + k] = r * WIDTH + k


@wp.kernel
def _by_dof(first: int, keys: wp.array[int], places: wp.array[int], count: int, rows: RowArrays):
    e = first + wp.tid()
    dof = keys[e]
    if dof >= rows.begin.shape[0]:
        return
    r = places[e] / WIDTH
    write_entry(e, r, places[e] - r * WIDTH, rows)
    if e == 0 or keys[wp.max(e - 1, 0)] != dof:
        rows.begin[dof] = e
    if e == count - 1 or keys[wp.min(e + 1, count - 1)] != dof:
        rows.end[dof] = e + 1

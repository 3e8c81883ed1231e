"""The one-ring of every leaf cell: the cells that share a vertex with it, in a table with one row per cell.

Question: which cells are around a cell?
Method:   rows have a fixed width that grows when a cell has more neighbours than fit, so that after a split or a merge
          only the rows of the touched cells and of their neighbours are written again. In 3-maps those of neighbours
          are not searched for: they have the parts in the place of the cell.
Known as: one-rings by 0-adjacency (Pitiot 2015, section 3.3).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.runtime import SOUND, device_of, launch

wp.set_module_options(SOUND)

_GRAIN = 2048


@wp.struct
class RingTable:
    cells: wp.array[int]  # neighbours of cell c from c * width on, in no particular order
    size: wp.array[int]
    width: int


class Rings:
    """Neighbours as kernels want them (`table`) and as NumPy arrays."""

    def __init__(self, capacity: int, width: int, device: wp.Device) -> None:
        self.table = RingTable()
        self.table.cells = wp.full(capacity * width, -1, dtype=wp.int32, device=device)
        self.table.size = wp.zeros(capacity, dtype=wp.int32, device=device)
        self.table.width = width
        self._views: tuple[wp.array, wp.array, np.ndarray, np.ndarray] | None = None

    def row(self, cell: int) -> np.ndarray:
        """The sorted one-ring of a leaf cell."""
        return np.setdiff1d(self.rows(np.array([cell]))[0], [cell])

    def rows(self, cells: np.ndarray) -> np.ndarray:
        """(n, width) the one-rings of leaf cells, unsorted, padded with the cell itself."""
        cells = np.asarray(cells, dtype=np.int64)
        device = device_of(self.table.size)
        if device.is_cpu:
            rows, size = self._on_host()
            return np.where(np.arange(rows.shape[1]) < size[cells][:, None], rows[cells], cells[:, None])
        chosen = wp.array(cells.astype(np.int32), dtype=wp.int32, device=device)
        rows = wp.empty((len(cells), self.table.width), dtype=wp.int32, device=device)
        launch(_rows, len(cells), [self.table, chosen], [rows], device=device)
        return rows.numpy()

    def _on_host(self) -> tuple[np.ndarray, np.ndarray]:
        """Views of the table on CPU: rows and their sizes."""
        table, known = self.table, self._views
        if known is None or known[0] is not table.cells or known[1] is not table.size:
            rows = table.cells.numpy().reshape(-1, table.width)
            known = self._views = table.cells, table.size, rows, table.size.numpy()
        return known[2], known[3]


def compute_rings(m: MapArrays, width: int, device: wp.Device) -> Rings:
    """The rings of all leaf cells."""
    capacity = len(m.cell_level)
    rings = Rings(capacity, width, device)
    return update_rings(m, rings, wp.full(capacity, 1, dtype=wp.int32, device=device), device)


def update_rings(m: MapArrays, rings: Rings, dirty: wp.array, device: wp.Device) -> Rings:
    """Write the rows of cells marked in `dirty` again (cleared on return); a wider table if a ring does not fit."""
    full = wp.zeros(1, dtype=wp.int32, device=device)
    launch(_write_rings, len(dirty), [m, dirty], [rings.table, full], device=device, grain=_GRAIN)
    if full.numpy()[0]:
        return widen_rings(m, rings, device)
    dirty.zero_()
    return rings


def widen_rings(m: MapArrays, rings: Rings, device: wp.Device) -> Rings:
    """A table that is wide enough for rings that did not fit."""
    most = int(rings.table.size.numpy().max())
    return compute_rings(m, most + most // 4, device)


@wp.kernel
def _rows(first: int, table: RingTable, cells: wp.array[int], rows: wp.array2d[int]):
    i = first + wp.tid()
    c = cells[i]
    for k in range(table.width):
        rows[i, k] = c
        if k < table.size[c]:
            rows[i, k] = int(table.cells[c * table.width + k])


@wp.func
def _append_unique(c: int, b: int, count: int, table: RingTable) -> int:
    """Put b into the row of c unless it is there; returns the new size, which may be more than the width."""
    if b == c:
        return count
    for i in range(wp.min(count, table.width)):
        if table.cells[c * table.width + i] == b:
            return count
    if count < table.width:
        table.cells[c * table.width + count] = b
    return count + 1


@wp.func
def write_ring2(m: MapArrays, c: int, table: RingTable) -> int:
    """Write the row of a cell of a 2-map; returns its size, which is more than the width if it does not fit."""
    count = int(0)
    if m.cell_level[c] >= 0 and m.first_child[c] < 0:
        start = m.anchor[c]
        d = int(start)
        turning = bool(True)
        while turning:
            # Around the origin of d, one way, and from a border the other way.
            x = int(m.phi2[m.phi_1[d]])
            while x >= 0 and x != d:
                count = _append_unique(c, m.cell[x], count, table)
                x = m.phi2[m.phi_1[x]]
            if x < 0:
                x = m.phi2[d]
                while x >= 0:
                    x = m.phi1[x]
                    count = _append_unique(c, m.cell[x], count, table)
                    x = m.phi2[x]
            d = m.phi1[d]
            turning = d != start
    table.size[c] = count
    return count


@wp.func
def write_ring3(m: MapArrays, c: int, table: RingTable) -> int:
    """The same in a 3-map."""
    count = int(0)
    if m.cell_level[c] >= 0 and m.first_child[c] < 0:
        d = int(m.anchor[c])
        while d >= 0 and count <= table.width:
            if _is_first_at_corner(m, d):
                count = _around_vertex(m, c, d, count, table)
            d = m.link[d]
    table.size[c] = count
    return count


@wp.func
def _take_out_of_ring(m: MapArrays, b: int, c: int, table: RingTable):
    """Take c and its children out of the row of b."""
    count = int(0)
    for i in range(wp.min(table.size[b], table.width)):
        x = int(table.cells[b * table.width + i])
        if x != c and m.parent[x] != c:
            table.cells[b * table.width + count] = x
            count += 1
    table.size[b] = count


@wp.func
def _put_into_ring(b: int, x: int, table: RingTable) -> bool:
    """Put x, which is not there, into the row of b; False if it does not fit."""
    count = int(table.size[b])
    table.size[b] = count + 1
    if count >= table.width:
        return False
    table.cells[b * table.width + count] = x
    return True


@wp.func
def divide_ring(m: MapArrays, c: int, table: RingTable) -> bool:
    """The rows of the parts of volume c, which has just been split, and of its neighbours; False if one does not fit.

    Who shares a vertex with c shares one with a part of it, and nobody else's neighbours change.
    """
    fits = bool(True)
    for i in range(wp.min(table.size[c], table.width)):
        _take_out_of_ring(m, table.cells[c * table.width + i], c, table)
    table.size[c] = 0
    child = int(m.first_child[c])
    while child >= 0:
        size = write_ring3(m, child, table)
        fits = fits and size <= table.width
        for i in range(wp.min(size, table.width)):
            b = table.cells[child * table.width + i]
            if m.parent[b] != c:
                fits = _put_into_ring(b, child, table) and fits
        child = m.sibling[child]
    return fits


@wp.func
def join_rings(m: MapArrays, c: int, table: RingTable) -> bool:
    """The row of volume c, whose parts are about to be merged, and its neighbours' rows; False if one does not fit."""
    count = int(0)
    child = int(m.first_child[c])
    while child >= 0:
        for i in range(wp.min(table.size[child], table.width)):
            b = table.cells[child * table.width + i]
            if m.parent[b] != c:
                count = _append_unique(c, b, count, table)
        table.size[child] = 0
        child = m.sibling[child]
    table.size[c] = count
    fits = bool(count <= table.width)
    for i in range(wp.min(count, table.width)):
        b = table.cells[c * table.width + i]
        _take_out_of_ring(m, b, c, table)
        fits = _put_into_ring(b, c, table) and fits
    return fits


@wp.kernel
def _write_rings(first: int, m: MapArrays, dirty: wp.array[int], table: RingTable, full: wp.array[int]):
    c = first + wp.tid()
    if dirty[c] != 0:
        size = int(0)
        if m.dimension == 3:
            size = write_ring3(m, c, table)
        else:
            size = write_ring2(m, c, table)
        if size > table.width:
            full[0] = 1  # whoever writes here writes the same


@wp.func
def _is_first_at_corner(m: MapArrays, d: int) -> bool:
    x = int(m.phi2[m.phi_1[d]])
    while x > d:
        x = m.phi2[m.phi_1[x]]
    return x == d


@wp.func
def _around_vertex(m: MapArrays, c: int, d: int, count: int, table: RingTable) -> int:
    """Note all cells around the origin of d; the end of the row is the queue of the search, one dart per cell."""
    width = table.width
    end = int(count)
    if end < width:
        table.cells[c * table.width + end] = d
    end += 1
    head = int(count)
    while head < end and end <= width:
        start = table.cells[c * table.width + head]
        x = int(start)
        turning = bool(True)
        while turning and end <= width:
            y = int(m.phi3[x])
            if y >= 0:
                y = m.phi1[y]
                known = bool(False)
                for i in range(count, end):
                    if m.cell[table.cells[c * table.width + i]] == m.cell[y]:
                        known = True
                if not known:
                    if end < width:
                        table.cells[c * table.width + end] = y
                    end += 1
            x = m.phi2[m.phi_1[x]]
            turning = x != start
        head += 1
    if end > width:
        return end + 16  # does not fit: ask for more
    noted = int(count)
    for i in range(count, end):
        noted = _append_unique(c, m.cell[table.cells[c * table.width + i]], noted, table)
    return noted

"""Hanging nodes: vertices in the middle of an edge or a face of a coarser cell next door, and whose mean they are.

Question: which vertices does a conforming method (finite elements) have to tie to others, and how?
Method:   on the level of each leaf its edges and faces are walked by labels; where one is divided, the vertex in its
          middle hangs: it is the mean of the ends of the edge, or of the corners of the face.
Sound:    parents are of a coarser level than what hangs on them, so that chains of parents end; one that hangs itself
          is replaced by its own parents in the matrix.
Known as: hanging nodes, T-junctions (Pitiot 2015, section 9.1.2); constraints as in adaptive finite elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays, edge_label, level
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.orbits import level_phi1, next_part
from tangere.runtime import SOUND, collect, reserve_slots

wp.set_module_options(SOUND)

#: Corners of a divided face at most, as for a split.
_CORNERS = wp.constant(32)


@dataclass(frozen=True)
class HangingNodes:
    """Vertices that hang; `vertex[i]` is the mean of `parents[offsets[i]:offsets[i + 1]]`."""

    vertex: np.ndarray  #: (n,) sorted
    offsets: np.ndarray  #: (n + 1,)
    parents: np.ndarray  #: (k,) vertices
    cell: np.ndarray  #: (n,) a coarser cell at whose edge or face the vertex hangs

    def __repr__(self) -> str:
        return f"HangingNodes({len(self.vertex)} vertices)"

    def __len__(self) -> int:
        return len(self.vertex)


def hanging_nodes(map: CellMap) -> HangingNodes:
    """The hanging nodes of a map; one with several coarser cells is listed once."""
    found = collect(_hanging, len(map.arrays.phi1), [map.arrays], wp.vec4i, device=map.device, grain=2048)
    rows = np.unique(found.numpy().reshape(-1, 4).astype(np.int64), axis=0)  # vertex, cell, kind, parent
    # Of several ways to see a vertex (an edge before a face, then the smallest cell) one is kept.
    rows = rows[np.lexsort((rows[:, 3], rows[:, 1], rows[:, 2], rows[:, 0]))]
    first = np.flatnonzero(np.r_[True, rows[1:, 0] != rows[:-1, 0]]) if len(rows) else np.empty(0, np.int64)
    chosen = np.repeat(rows[first, 1:3], np.diff(np.r_[first, len(rows)]), axis=0)
    rows = rows[(rows[:, 1:3] == chosen).all(axis=1)]
    vertex, start = np.unique(rows[:, 0], return_index=True)
    return HangingNodes(vertex, np.r_[start, len(rows)], rows[:, 3], rows[start, 1])


def constraint_matrix(map: CellMap) -> tuple[Any, np.ndarray]:
    """T with u = T u_free for values u at all live vertices, (v, f) sparse, and the free vertices (f,).

    Rows of vertices that are gone are empty. K_free = T' K T then has no hanging node.
    """
    from scipy.sparse import coo_matrix, eye

    nodes, count = hanging_nodes(map), len(map.positions)
    alive = np.unique(map.numpy("origin")[map.darts])
    free = np.setdiff1d(alive, nodes.vertex)
    sizes = np.diff(nodes.offsets)
    weights = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    ties = coo_matrix((weights, (np.repeat(nodes.vertex, sizes), nodes.parents)), shape=(count, count)).tocsr()
    # Parents that hang themselves (for another, coarser cell) are replaced by their own parents.
    result = eye(count, format="csr")[:, free]
    term = ties @ result
    while term.nnz:
        result = result + term
        term = ties @ term
    return result.tocsr(), free


@wp.kernel
def _hanging(first: int, shard: int, m: MapArrays, counts: wp.array[wp.int64], capacity: int, out: wp.array[wp.vec4i]):
    d = first + wp.tid()
    if d >= m.counts[0]:
        return
    if m.tag[d] < 0:
        return
    cell = m.cell[d]
    k = wp.max(m.cell_level[cell], level(m, d))
    # Whatever is divided on this level may be so on the next ones as well.
    while next_part(m, d, d, k) >= 0:
        half = level_phi1(m, d, k + 1)
        slot = reserve_slots(counts, shard, 2, capacity)
        if slot >= 0:
            out[slot] = wp.vec4i(m.origin[half], cell, 0, m.origin[d])
            out[slot + 1] = wp.vec4i(m.origin[half], cell, 0, m.origin[level_phi1(m, d, k)])
        # A face is divided too where the half edge is not followed by the other half.
        if m.dimension == 3 and level(m, half) == k + 1 and edge_label(m, half) != edge_label(m, d):
            centre = m.origin[level_phi1(m, half, k + 1)]
            corner = int(d)
            for _n in range(_CORNERS):
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec4i(centre, cell, 1, m.origin[corner])
                corner = level_phi1(m, corner, k)
                if corner == d:
                    break
        k += 1

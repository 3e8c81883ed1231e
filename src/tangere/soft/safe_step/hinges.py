"""Edges that no search of edges against faces can keep apart: each has a vertex in every face of the other.

Two edges meet where one meets a face of the other, and that is looked for where they have no vertex in common. At a
hinge p q with faces p q j and p q k, the edge p j has a vertex in the face p q k, and q k one in p q j. If those have
no other faces, the two edges may pass through each other and no pair of an edge and a face tells: rims of a strip one
quad wide, two triangles, pages on one spine, a single tetrahedron. The list of such pairs follows from the topology;
ordinary surfaces have none. Each second edge is kept as a face without width, so that certificates and shortening are
those of all other pairs (`separating_direction`, `shortening`). Cuts add pairs, and take them away: there is room for
more where bodies are cut (`incremental.cpu.hinge_update`).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, reserve_slots
from tangere.shape.mesh import Topology
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.separating_direction import VertexMoves, may_cross
from tangere.soft.safe_step.truncation_state import ACTIVE, PairBuffer

wp.set_module_options(SOUND)

#: Pairs worth a thread.
GRAIN = 1024
#: Pairs that cuts may add before all is laid out anew.
SPARE = 256


class HingedEdgePairs:
    """Such pairs of one layout's edges; `faces` are its faces, and after them the second edges."""

    def __init__(self, assembly: AssembledBodies, faces: wp.array, edges: wp.array) -> None:
        """`faces` and `edges` of all surfaces, as pairs name them."""
        whole, device, count = assembly.rest_mesh, assembly.device, len(faces)
        found = hinged_edges(whole.topology)
        ends = whole.edges[found[:, 1]]
        room = len(found) + (SPARE if assembly.has_room else 0)
        pairs, rows = np.full((room, 2), -1), np.zeros((room, 3), np.int32)
        pairs[:, 1] = count + np.arange(room)
        pairs[: len(found), 0], rows[: len(found)] = found[:, 0], np.column_stack([ends, ends[:, 1]])
        self._edges, self._live, self.count = edges, faces, len(found)  #: pairs, with places that are free
        both = np.concatenate([faces.numpy(), rows])
        self.faces = wp.array(both, dtype=wp.int32, device=device) if room else faces
        #: (room, 3) the second edges
        self.second = self.faces[count:] if room else wp.zeros((0, 3), dtype=wp.int32, device=device)
        self.pairs = wp.array(pairs, dtype=wp.vec2i, device=device)  #: (room,) edge, -1 for none, and face
        self._captured = device.is_cuda
        self.outdated = False  #: whether a cut has written faces since they were copied

    def begin(self) -> None:
        """Before a step: cuts may have written faces."""
        if len(self.pairs) and (self.outdated or self._captured):
            wp.copy(self.faces, self._live, count=self._live.size)
            self.outdated = False

    def append_uncertified(self, found: PairBuffer, state: wp.array, moves: VertexMoves) -> None:
        """Append the pairs that have no certificate for these moves of the surface vertices."""
        count = len(self.pairs) if self._captured else self.count
        if count:
            inputs = [state, self.pairs, self._edges, self.faces, moves]
            found.run(_find_hinged, count, inputs, GRAIN, append=True)


def hinged_edges(topology: Topology) -> np.ndarray:
    """(m, 2) int32: pairs of edges without a common vertex, each with a vertex in every face of the other; rising."""
    hinge, one, other = _hinges(topology)
    if not len(hinge):
        return np.empty((0, 2), np.int32)
    p, q = topology.edges[hinge].T
    j, k = (topology.faces[f].sum(axis=1) - p - q for f in (one, other))
    apart = j != k
    ends = np.concatenate([np.stack([p, j, q, k], axis=1)[apart], np.stack([q, j, p, k], axis=1)[apart]])
    pairs = np.sort(np.stack([_numbers(topology, ends[:, :2]), _numbers(topology, ends[:, 2:])], axis=1), axis=1)
    pairs = pairs[_covered(topology, *pairs.T)]
    pairs = pairs[_covered(topology, *pairs.T[::-1])]  # few are left, and none of ordinary surfaces
    return np.unique(pairs, axis=0).astype(np.int32)


def _hinges(topology: Topology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges and two faces at each, for all pairs of faces at an edge."""
    around = topology.edge_faces
    count = np.diff(around.offsets).astype(np.int64)
    edge = np.repeat(np.arange(len(count)), count**2)
    place = np.arange(len(edge)) - np.repeat(np.cumsum(count**2) - count**2, count**2)
    a, b = place // count[edge], place % count[edge]
    begin = around.offsets[:-1][edge]
    rising = a < b
    return edge[rising], around.indices[(begin + a)[rising]], around.indices[(begin + b)[rising]]


def _numbers(topology: Topology, ends: np.ndarray) -> np.ndarray:
    """The number of the edge between two vertices."""
    keys = np.sort(topology.edges, axis=1) @ [topology.vertex_count, 1]
    order = np.argsort(keys)
    return order[np.searchsorted(keys[order], np.sort(ends, axis=1) @ [topology.vertex_count, 1])]


def _covered(topology: Topology, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Whether every face at the second edge has a vertex of the first."""
    around = topology.edge_faces
    count = np.diff(around.offsets)[second]
    row = np.repeat(np.arange(len(second)), count)
    face = around.indices[around.offsets[:-1][second][row] + np.arange(len(row)) - (np.cumsum(count) - count)[row]]
    mine = (topology.faces[face][:, :, None] == topology.edges[first[row]][:, None, :]).any(axis=(1, 2))
    return np.bincount(row, ~mine, len(second)) == 0


@wp.kernel
def _find_hinged(
    first: int,
    shard: int,
    state: wp.array[int],
    pairs: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    moves: VertexMoves,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """The pairs (edge, face without width) that have no certificate."""
    pair = pairs[first + wp.tid()]
    i = pair[0]
    j = pair[1]
    if i < 0:
        return
    v0 = edges[i, 0]
    v1 = edges[i, 1]
    i0 = faces[j, 0]
    i1 = faces[j, 1]
    if state[ACTIVE] == 1 and may_cross(v0, v1, i0, i1, i1, moves):
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            out[slot] = pair

"""Which vertices make triangles and edges, and what touches what; nothing about where they are.

Question: the unique edges of a triangle mesh, its adjacencies, and whether it is closed, oriented, manifold.
Method:   every triangle side becomes one integer (smaller vertex, larger vertex); one stable sort of the 3m sides
          yields the edges, the edges of each face and the faces of each edge at once. Everything is computed when
          first asked for and kept.
Limits:   a triangle may use a vertex twice (files contain such). It keeps three sides, one of them an edge from a
          vertex to itself, so that every face has three edges; it bounds nothing, so it does not count where
          closed, oriented and manifold are decided.
Known as: an edge-face adjacency structure in compressed rows (CSR), in the place of half-edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tangere.runtime import Arrays, InputError, read_only, read_only_copy, to_numpy


class Adjacency(NamedTuple):
    """Lists of different lengths in two arrays: the list of item i is `indices[offsets[i] : offsets[i + 1]]`."""

    offsets: np.ndarray  #: (n + 1,) int32
    indices: np.ndarray  #: (total,) int32

    def of(self, item: int) -> np.ndarray:
        """The list of one item, ascending."""
        return self.indices[self.offsets[item] : self.offsets[item + 1]]


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """Triangles over numbered vertices. Immutable; two topologies are equal only if they are the same object.

    Args:
        faces: vertex numbers of each triangle, shape (m, 3), whole numbers.
        vertex_count: how many vertices there are; each number in `faces` is below it.
        name: what to call it in an error.
    """

    faces: np.ndarray  #: (m, 3) int32
    vertex_count: int
    name: str = "mesh"
    cache: dict[Any, Any] = field(default_factory=dict, init=False)  #: what upper rooms build from the topology alone

    def __post_init__(self) -> None:
        object.__setattr__(self, "faces", _checked_faces(self.faces, self.vertex_count, self.name))

    def __repr__(self) -> str:
        return f"Topology({self.vertex_count} vertices, {len(self.faces)} triangles)"

    def __reduce__(self):
        return Topology, (self.faces, self.vertex_count, self.name)

    def same_as(self, other: Topology) -> bool:
        """Whether both have the same triangles in the same order over as many vertices."""
        if self is other:
            return True
        return self.vertex_count == other.vertex_count and np.array_equal(self.faces, other.faces)

    @property
    def edges(self) -> np.ndarray:
        """(e, 2) int32: each edge once, smaller vertex first, in lexicographic order."""
        return self._sides.edges

    @property
    def face_edges(self) -> np.ndarray:
        """(m, 3) int32: the edges (v0, v1), (v1, v2), (v2, v0) of each triangle."""
        return self._sides.face_edges

    @property
    def edge_faces(self) -> Adjacency:
        """The triangles at each edge, one entry per triangle side."""
        return self._sides.edge_faces

    @cached_property
    def edge_face_count(self) -> np.ndarray:
        """(e,) int32: how many triangle sides lie on each edge; 1 on a border, 2 inside."""
        return read_only(np.diff(self.edge_faces.offsets))

    @cached_property
    def vertex_faces(self) -> Adjacency:
        """The triangles at each vertex, one entry per triangle corner."""
        corners = self.faces.ravel()
        return _adjacency(corners, np.arange(len(corners), dtype=np.int32) // 3, self.vertex_count)

    @cached_property
    def vertex_neighbours(self) -> Adjacency:
        """The vertices that share an edge with each vertex."""
        edges = self.edges[self.edges[:, 0] != self.edges[:, 1]]
        # Column 1 first: the edges are sorted, so each vertex meets its smaller neighbours before its larger ones.
        return _adjacency(
            np.concatenate([edges[:, 1], edges[:, 0]]), np.concatenate([edges[:, 0], edges[:, 1]]), self.vertex_count
        )

    @cached_property
    def vertex_edges(self) -> Adjacency:
        """The edges at each vertex."""
        proper = np.flatnonzero(self.edges[:, 0] != self.edges[:, 1]).astype(np.int32)
        ends = self.edges[proper]
        order = np.concatenate([ends[:, 1], ends[:, 0]])
        return _adjacency(order, np.concatenate([proper, proper]), self.vertex_count)

    @property
    def is_closed(self) -> bool:
        """Whether every edge has exactly two triangles, so that the surface has no border."""
        return self.open_edge_count == 0 and self.crowded_edge_count == 0

    @property
    def is_oriented(self) -> bool:
        """Whether neighbouring triangles agree which side is out: each edge is used at most once in each direction."""
        return self.reversed_edge_count == 0

    @cached_property
    def is_manifold(self) -> bool:
        """Whether every edge has at most two triangles and the triangles at every vertex form one fan."""
        return self.crowded_edge_count == 0 and self._fan_count == len(np.unique(self.faces[self._proper]))

    @cached_property
    def open_edge_count(self) -> int:
        """How many edges have one triangle only."""
        return int((self._proper_side_count == 1).sum())

    @cached_property
    def crowded_edge_count(self) -> int:
        """How many edges have more than two triangles."""
        return int((self._proper_side_count > 2).sum())

    @cached_property
    def reversed_edge_count(self) -> int:
        """How many edges two triangles run through in the same direction."""
        up = _side_ends(self.faces[self._proper])
        edge = self.face_edges[self._proper].ravel()
        upward = np.bincount(edge, up[:, 0] < up[:, 1], len(self.edges))
        return int(((upward > 1) | (self._proper_side_count - upward > 1)).sum())

    @cached_property
    def component(self) -> np.ndarray:
        """(vertices,) which connected component each vertex belongs to."""
        from scipy.sparse.csgraph import connected_components

        return read_only(connected_components(_graph(self.edges, self.vertex_count), directed=False)[1])

    @cached_property
    def component_count(self) -> int:
        """How many pieces the triangles form when those that share a vertex hang together."""
        return len(np.unique(self.component[self.faces]))

    @cached_property
    def _sides(self) -> _Sides:
        return _sort_sides(self.faces, self.vertex_count)

    @cached_property
    def _proper(self) -> np.ndarray:
        """(m,) bool: triangles with three different vertices."""
        a, b, c = self.faces.T
        return (a != b) & (b != c) & (c != a)

    @cached_property
    def _proper_side_count(self) -> np.ndarray:
        return np.bincount(self.face_edges[self._proper].ravel(), minlength=len(self.edges))

    @property
    def _fan_count(self) -> int:
        """Number of triangle fans, over all vertices: corners hang together across an edge with two triangles."""
        from scipy.sparse.csgraph import connected_components

        faces, edges = self.faces[self._proper], self.face_edges[self._proper].ravel()
        order = np.argsort(edges, kind="stable")
        shared = np.flatnonzero(edges[order][:-1] == edges[order][1:])
        first, second = order[shared], order[shared + 1]  # sides; side k of a face leaves its corner k
        corners = faces.ravel()
        aligned = corners[first] == corners[second]
        links = np.concatenate(
            [
                np.stack([first, np.where(aligned, second, _next_side(second))], axis=1),
                np.stack([_next_side(first), np.where(aligned, _next_side(second), second)], axis=1),
            ]
        )
        return int(connected_components(_graph(links, len(corners)), directed=False)[0])


class _Sides(NamedTuple):
    edges: np.ndarray
    face_edges: np.ndarray
    edge_faces: Adjacency


def _checked_faces(faces: Arrays, vertex_count: int, name: str) -> np.ndarray:
    array = to_numpy(faces, f"Mesh {name!r}: faces", dtype=None)
    if array.size == 0:
        raise InputError(f"Mesh {name!r}: has no triangles")
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"Mesh {name!r}: faces must have shape (m, 3), not {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"Mesh {name!r}: faces must hold whole numbers, not {array.dtype}")
    if array.min() < 0 or array.max() >= vertex_count:
        row, column = np.argwhere((array < 0) | (array >= vertex_count))[0]
        raise InputError(
            f"Mesh {name!r}: triangle {row} uses vertex {array[row, column]} but there are {vertex_count} vertices"
        )
    return read_only_copy(array, np.int32)


def _side_ends(faces: np.ndarray) -> np.ndarray:
    """(3m, 2): the sides (v0, v1), (v1, v2), (v2, v0) of each triangle, as the triangle runs through them."""
    return np.stack([faces, faces[:, [1, 2, 0]]], axis=2).reshape(-1, 2)


def _next_side(side: np.ndarray) -> np.ndarray:
    """The side of the same triangle that starts where this one ends; sides are numbered 3 face + corner."""
    return side - side % 3 + (side + 1) % 3


def _sort_sides(faces: np.ndarray, vertex_count: int) -> _Sides:
    tail, head = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    key = np.minimum(tail, head).astype(np.int64) * vertex_count + np.maximum(tail, head)
    order = np.argsort(key, kind="stable")
    key = key[order]
    opens = np.concatenate([[True], key[1:] != key[:-1]])
    starts = np.flatnonzero(opens)
    edges = np.stack(np.divmod(key[starts], vertex_count), axis=1).astype(np.int32)
    face_edges = np.empty(len(order), np.int32)
    face_edges[order] = np.cumsum(opens) - 1
    offsets = np.append(starts, len(order)).astype(np.int32)
    return _Sides(
        read_only(edges),
        read_only(face_edges.reshape(-1, 3)),
        Adjacency(read_only(offsets), read_only((order // 3).astype(np.int32))),
    )


def _adjacency(items: np.ndarray, members: np.ndarray, count: int) -> Adjacency:
    """`members` grouped by the item each belongs to, in the order given."""
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(items, minlength=count), out=offsets[1:])
    return Adjacency(read_only(offsets), read_only(members[np.argsort(items, kind="stable")]))


def _graph(links: np.ndarray, count: int):
    """The undirected graph with these links between `count` nodes, for SciPy."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(count, count))

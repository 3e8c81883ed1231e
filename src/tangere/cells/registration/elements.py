"""Segments and triangles by the points they join: checked, taken apart into edges, and where these end.

Question: which edges are to be followed, each once, and whose are they?
Method:   an edge that several segments and triangles have in common is followed once.
Known as: registration of edges and surfaces (Pitiot 2015, sections 5.3 and 5.5).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.tracking.crossings import Segments, allocate_segments
from tangere.runtime import SOUND, Arrays, InputError, as_indices, device_of, launch

wp.set_module_options(SOUND)


def element_points(data: Arrays | None, name: str, width: int, points: int) -> np.ndarray:
    """(n, width) numbers of points, each below `points`; None is nothing."""
    if data is None:
        return np.empty((0, width), np.int64)
    rows = as_indices(data, name, wp.get_device("cpu"), width).numpy().astype(np.int64)
    if rows.size and (rows.min() < 0 or rows.max() >= points):
        row = int(np.argwhere((rows < 0) | (rows >= points))[0, 0])
        raise InputError(f"{name}: number {row} uses points {rows[row].tolist()} but there are {points} points")
    return rows


def unique_edges(segments: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of segments and triangles, each once, and the edge of every segment and triangle side."""
    sides = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    both = np.sort(np.concatenate([segments, sides]), axis=1)
    if len(both) == 0:
        return both, np.empty(0, np.int64)
    edges, number = np.unique(both, axis=0, return_inverse=True)
    return edges, number.reshape(-1)


def edge_segments(edges: wp.array, points: wp.array, darts: wp.array, method: int) -> Segments:
    """The edges between points, whose cells are found by one method."""
    segments = allocate_segments(len(edges), device_of(edges))
    launch(_write_segments, len(edges), [edges, points, darts, method], [segments], device=device_of(edges))
    return segments


@wp.kernel
def _write_segments(
    first: int, edges: wp.array[wp.vec2i], points: wp.array[wp.vec3d], darts: wp.array[int], method: int, s: Segments
):
    i = first + wp.tid()
    edge = edges[i]
    s.a[i] = points[edge[0]]
    s.b[i] = points[edge[1]]
    s.dart_a[i] = int(darts[edge[0]])
    s.dart_b[i] = int(darts[edge[1]])
    s.method[i] = method

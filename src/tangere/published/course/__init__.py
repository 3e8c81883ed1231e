"""The course as printed (`mode="published"`): misprints corrected, everything else as it stands; for reproduction only.

Source: chapter 6.X4, "La détection de collision en 3D", of a course in French on 3D collision detection.
It misses contacts (the benchmark `bench/course_table_8.py` counts them): use `mode="sound"` for anything that matters.
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.edge_edge import solve_edge_edge
from tangere.published.course.reading import Reading
from tangere.published.course.triangles import positions_at, solve_triangles
from tangere.published.course.vertex_edge import solve_vertex_edge
from tangere.published.course.vertex_face import solve_vertex_face
from tangere.query.contacts.record import Kind
from tangere.runtime.errors import UnsupportedError

__all__ = ["Reading", "positions_at", "solve", "solve_triangles", "solve_vertex_edge"]

_SOLVERS = {
    Kind.VERTEX_FACE: solve_vertex_face,
    Kind.EDGE_EDGE: solve_edge_edge,
    Kind.VERTEX_EDGE: solve_vertex_edge,
}


def solve(kind: Kind, x0: wp.array, x1: wp.array, reading: Reading | None = None) -> tuple[wp.array, wp.array]:
    """First contact of each query: time (float64, inf when free) and `Status` (uint8), shape (n,), on x0's device.

    Args:
        kind: VERTEX_FACE (vertex, face), EDGE_EDGE (edge, edge) or VERTEX_EDGE (vertex, edge).
        x0, x1: `wp.vec3d` of shape (n, 4), or (n, 3) for vertex-edge, at t = 0 and t = 1 [m].
        reading: how to read what the course leaves open; None is the most charitable strict reading.
    """
    if kind not in _SOLVERS:
        known = ", ".join(k.name for k in _SOLVERS)
        raise UnsupportedError(f"the course has no test for {Kind(kind).name}; it has {known}")
    return _SOLVERS[kind](x0, x1, reading or Reading())

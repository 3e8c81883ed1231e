"""The fifteen tests of two triangles: which vertices meet which.

They are those of the course on 3D collision detection, chapter 6.X4.

Vertices 0, 1, 2 belong to the first triangle, 3, 4, 5 to the second. Choosing four of the six gives C(6, 4) = 15 tests:
six of a vertex against a face and nine of an edge against an edge. The course prints the vertex-face table with a
wrong header and two rows of five marks (erratum ERR-1); this is the corrected one.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.query.contacts.record import Kind
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: (vertex, face, face, face): the vertices of the second triangle first, then those of the first.
VERTEX_FACE_TESTS = ((3, 0, 1, 2), (4, 0, 1, 2), (5, 0, 1, 2), (0, 3, 4, 5), (1, 3, 4, 5), (2, 3, 4, 5))

#: (first edge, first edge, second edge, second edge).
EDGE_EDGE_TESTS = tuple((*a, *b) for a in ((0, 1), (0, 2), (1, 2)) for b in ((3, 4), (3, 5), (4, 5)))

#: All fifteen, as (kind, the four vertices in the order that kind's query takes them).
TESTS = tuple((Kind.VERTEX_FACE, test) for test in VERTEX_FACE_TESTS) + tuple(
    (Kind.EDGE_EDGE, test) for test in EDGE_EDGE_TESTS
)

#: (vertex, edge, edge): every vertex of one triangle with every edge of the other; needed when four points stay
#: coplanar, and all eighteen of them because the course leaves vertex-vertex contact to a neighbouring edge.
VERTEX_EDGE_PAIRS = tuple(
    (vertex, *edge)
    for vertices, edges in (((3, 4, 5), ((0, 1), (0, 2), (1, 2))), ((0, 1, 2), ((3, 4), (3, 5), (4, 5))))
    for vertex in vertices
    for edge in edges
)


def choose_vertices(x: wp.array, tests: tuple[tuple[int, ...], ...]) -> wp.array:
    """The vertices each test looks at, pair after pair: from `x` of shape (n, 6) to (n * len(tests), width)."""
    count, width = len(tests), len(tests[0])
    table = wp.array(np.array(tests, dtype=np.int32), device=x.device)
    chosen = wp.empty((len(x) * count, width), dtype=wp.vec3d, device=x.device)
    launch(_choose_vertices, len(chosen), inputs=[x, table, count, width], outputs=[chosen], device=x.device)
    return chosen


@wp.kernel
def _choose_vertices(
    first: int,
    x: wp.array2d[wp.vec3d],
    table: wp.array2d[wp.int32],
    count: int,
    width: int,
    chosen: wp.array2d[wp.vec3d],
):
    i = first + wp.tid()
    pair = i // count
    test = i % count
    for k in range(width):
        chosen[i, k] = x[pair, table[test, k]]

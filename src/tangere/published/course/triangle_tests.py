"""The tests of two triangles laid out one after the other, and those of the coplanar case, as the course has them.

Vertices 0, 1, 2 belong to the first triangle, 3, 4, 5 to the second: see `primitives.triangle_features`.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.query.contacts.record import Kind
from tangere.query.first_contact.primitives.triangle_features import EDGE_EDGE_TESTS, VERTEX_FACE_TESTS
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

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

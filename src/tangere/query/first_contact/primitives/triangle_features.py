"""The fifteen tests of two triangles: which vertices meet which.

They are those of the course on 3D collision detection, chapter 6.X4.

Vertices 0, 1, 2 belong to the first triangle, 3, 4, 5 to the second. Choosing four of the six gives C(6, 4) = 15 tests:
six of a vertex against a face and nine of an edge against an edge. The course prints the vertex-face table with a
wrong header and two rows of five marks (erratum ERR-1); this is the corrected one.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: (vertex, face, face, face): the vertices of the second triangle first, then those of the first.
VERTEX_FACE_TESTS = ((3, 0, 1, 2), (4, 0, 1, 2), (5, 0, 1, 2), (0, 3, 4, 5), (1, 3, 4, 5), (2, 3, 4, 5))

#: (first edge, first edge, second edge, second edge).
EDGE_EDGE_TESTS = tuple((*a, *b) for a in ((0, 1), (0, 2), (1, 2)) for b in ((3, 4), (3, 5), (4, 5)))

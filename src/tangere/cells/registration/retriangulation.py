"""Surfaces whose triangles are too large for the cells: found, and divided until they are not.

Question: does every cell that a triangle crosses know of it?
Method:   a triangle is known by the cells of its edges. That is enough as long as every cell its inside crosses is
          among these or in their ring; where cells became small, a triangle may enclose cells that would not know it.
Known as: the validity criterion of registered surfaces (Pitiot 2015, section 5.5); 1-to-4 subdivision with closure.
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps.neighbourhood import ring
from tangere.cells.registration.registration import Registration
from tangere.cells.registration.triangle_fill import fill_triangles


def large_triangles(registration: Registration) -> np.ndarray:
    """Numbers of the triangles that cross a cell which is neither crossed by one of their edges nor next to one."""
    wrong = []
    for t, corners in enumerate(registration.points[registration.triangles]):
        edges = registration.edge_cells(t)
        known = np.union1d(edges, ring(registration.map, edges))
        pairs = np.stack([np.zeros(len(edges), np.int64), edges], axis=1)
        crossed = fill_triangles(registration.map, corners[None], pairs)[:, 1]
        if len(np.setdiff1d(crossed, known)):
            wrong.append(t)
    return np.array(wrong, np.int64)


def divide_large_triangles(registration: Registration) -> Registration:
    """A registration of the same things with large triangles divided into four until none is large.

    Their neighbours are divided along with them, into as many parts as they have divided edges and one more, so that a
    surface without gaps stays one. Old points keep their numbers; midpoints come after them. Triangles are numbered
    anew; segments stay as they are, also along edges that are divided.
    """
    while len(large := large_triangles(registration)):
        triangles = registration.triangles
        sides = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        edges, number = np.unique(sides, axis=0, return_inverse=True)
        number = number.reshape(-1, 3)
        cut = np.zeros(len(edges), bool)
        cut[number[large]] = True
        middle = np.where(cut, len(registration.points) + np.cumsum(cut) - 1, -1)
        points = np.concatenate([registration.points, registration.points[edges[cut]].mean(axis=1)])
        darts = np.concatenate([registration.darts, registration.darts[edges[cut][:, 0]]])
        registration = Registration(
            registration.map,
            points,
            registration.segments,
            _parts(triangles, middle[number]),
            darts=darts,
            form=registration.form,
            mode=registration.mode,
            fill=registration.fill,
            threads=registration.threads,
        )
    return registration


def _parts(triangles: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Triangles divided at the midpoints of their edges (0 1), (1 2) and (2 0); -1: the edge has none."""
    count = (middle >= 0).sum(axis=1)
    # Turned so that the first edge is cut, and of two cut edges the second as well.
    first = np.where(count == 2, (np.argmin(middle, axis=1) + 1) % 3, np.argmax(middle >= 0, axis=1))
    turn = (first[:, None] + np.arange(3)) % 3
    a, b, c = np.take_along_axis(triangles, turn, axis=1).T
    ab, bc, ca = np.take_along_axis(middle, turn, axis=1).T
    parts = {
        0: [(a, b, c)],
        1: [(a, ab, c), (ab, b, c)],
        2: [(a, ab, c), (ab, b, bc), (ab, bc, c)],
        3: [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)],
    }
    rows = [np.stack(part, axis=1)[count == n] for n, some in parts.items() for part in some]
    return np.concatenate(rows)

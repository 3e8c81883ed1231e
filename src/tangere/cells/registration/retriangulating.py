"""Surfaces whose triangles are too large for the cells: found, and divided until they are not.

A triangle is known by the cells of its edges. That is enough as long as every cell its inside crosses is among these or
in their ring; where cells became small, a triangle may enclose cells that would not know of it.
Spec: specs/pitiot-multiresolution-interactions 2.13.
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps.neighbourhood import ring
from tangere.cells.registration.filling import fill_triangles
from tangere.cells.registration.registration import Registration

__all__ = ["divide_large_triangles", "large_triangles"]


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

    Old points keep their numbers; midpoints come after them. Triangles are numbered anew.
    """
    while len(large := large_triangles(registration)):
        corners = registration.triangles[large]
        sides = np.sort(corners[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        edges, number = np.unique(sides, axis=0, return_inverse=True)
        middle = len(registration.points) + number.reshape(-1, 3)
        a, b, c = corners.T
        ab, bc, ca = middle.T
        parts = np.stack([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]).transpose(0, 2, 1).reshape(-1, 3)
        points = np.concatenate([registration.points, registration.points[edges].mean(axis=1)])
        darts = np.concatenate([registration.darts, registration.darts[edges[:, 0]]])
        registration = Registration(
            registration.map,
            points,
            registration.segments,
            np.concatenate([np.delete(registration.triangles, large, axis=0), parts]),
            darts=darts,
            form=registration.form,
            mode=registration.mode,
            fill=registration.fill,
        )
    return registration

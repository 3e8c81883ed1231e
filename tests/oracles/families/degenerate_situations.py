"""The degenerate situations of two moving triangles, as data: one or more cases of each kind.

Coordinates are short dyadic numbers, so the stated contact is exact in the stored positions and any method that claims
to be right can be asked about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.query.contacts import Kind, Status

__all__ = ["CASES", "INVALID", "Case"]


@dataclass(frozen=True)
class Case:
    """One query: `kind` None is a pair of triangles, six points; else four points in the order of that kind."""

    name: str
    kind: Kind | None
    x0: np.ndarray  #: (4, 3) or (6, 3) at t = 0
    x1: np.ndarray  #: the same at t = 1
    status: Status
    time: float = np.inf  #: of first contact, exact to one rounding
    double_root: bool = False  #: the cubic touches zero there without a change of sign


VF, EE, TRIANGLES = Kind.VERTEX_FACE, Kind.EDGE_EDGE, None
FACE = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
WIDE = [(-1, -1, 0), (1, -1, 0), (0, 1, 0)]
SPIKE = [(0, 0, -0.5), (0.125, 0.125, 0.5), (-0.125, 0.25, 0.75)]  # its first edge goes through WIDE
POINT_LEFT = [(0, 0, 0), (-1, 1, 0), (-1, -1, 0)]
POINT_RIGHT = [(1, 0, 0), (2, 1, 0.5), (2, -1, -0.25)]
FAR = 2.0**20


def _case(name, kind, x0, move, status, time=np.inf, offset=(0, 0, 0), double_root=False) -> Case:
    """`move` is one displacement for all vertices of the second primitive, or one for each vertex."""
    x0 = np.array(x0, dtype=float) + np.array(offset, dtype=float)
    displacement = np.array(move, dtype=float)
    if displacement.ndim == 1:
        second = {VF: np.s_[:1], EE: np.s_[2:], TRIANGLES: np.s_[3:]}[kind]
        displacement, one = np.zeros_like(x0), displacement
        displacement[second] = one
    return Case(name, kind, x0, x0 + displacement, status, time, double_root)


def _shifted(points, by):
    return [tuple(np.add(p, by)) for p in points]


CASES = [
    _case("already interpenetrating, at relative rest", TRIANGLES, WIDE + SPIKE, [(1, 2, 3)] * 6, Status.START, 0.0),
    _case("already interpenetrating, separating", TRIANGLES, WIDE + SPIKE, (0, 0, 5), Status.START, 0.0),
    _case("pure translation of a vertex", VF, [(0.25, 0.25, 1), *FACE], (0, 0, -2), Status.CONTACT, 0.5),
    _case(
        "pure translation of an edge",
        EE,
        [(-1, 0, 0), (1, 0, 0), (0, -1, 1), (0, 1, 1)],
        (0, 0, -4),
        Status.CONTACT,
        0.25,
    ),
    _case(
        "pure translation of a triangle",
        TRIANGLES,
        WIDE + [(0, 0, 1), (1, 0.5, 2), (-1, 0.5, 2)],
        (0, 0, -4),
        Status.CONTACT,
        0.25,
    ),
    _case(
        "edges parallel always, passing by", EE, [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1)], (0, 0, -2), Status.FREE
    ),
    _case(
        "edges parallel always, meeting",
        EE,
        [(0, 0, 0), (1, 0, 0), (0.5, 0, 1), (1.5, 0, 1)],
        (0, 0, -2),
        Status.CONTACT,
        0.5,
    ),
    _case(
        "all edges parallel, face onto face",
        TRIANGLES,
        FACE + _shifted(FACE, (0, 0, 1)),
        (0, 0, -2),
        Status.CONTACT,
        0.5,
    ),
    _case(
        "edges parallel at impact",
        EE,
        [(0, 0, 0), (1, 0, 0), (0, -1, 1), (1, 1, 1)],
        [(0, 0, 0), (0, 0, 0), (0, 2, -2), (0, -2, -2)],
        Status.CONTACT,
        0.5,
        double_root=True,
    ),
    _case(
        "face collapses to a segment when it is hit",
        VF,
        [(0.25, 0, 1), (-1, 0, 0), (1, 0, 0), (0, 1, 0)],
        [(0, 0, -2), (0, 0, 0), (0, 0, 0), (0, -2, 0)],
        Status.CONTACT,
        0.5,
        double_root=True,
    ),
    _case(
        "face collapses to a segment, vertex far",
        VF,
        [(5, 0, 1), (-1, 0, 0), (1, 0, 0), (0, 1, 0)],
        [(0, 0, -2), (0, 0, 0), (0, 0, 0), (0, -2, 0)],
        Status.FREE,
    ),
    _case(
        "edge collapses, other edge far",
        EE,
        [(-1, 0, 0), (1, 0, 0), (5, 3, 0), (5, 4, 0)],
        [(2, 0, 0), (-2, 0, 0), (0, 0, 0), (0, 0, 0)],
        Status.FREE,
    ),
    _case(
        "edge of a face collapses, vertex far",
        VF,
        [(5, 3, 0), (-1, 0, 0), (1, 0, 0), (0, -1, 0)],
        [(0, 0, 0), (2, 0, 0), (-2, 0, 0), (0, 0, 0)],
        Status.FREE,
    ),
    _case("coplanar motion of a vertex, xy plane", VF, [(-1, 0.25, 0), *FACE], (2, 0, 0), Status.CONTACT, 0.5),
    _case(
        "coplanar motion of a vertex, zx plane",
        VF,
        [(0.25, 0, -1), (0, 0, 0), (0, 0, 1), (1, 0, 0)],
        (0, 0, 2),
        Status.CONTACT,
        0.5,
    ),
    _case(
        "coplanar motion of an edge, xy plane",
        EE,
        [(0, 0, 0), (0, 1, 0), (-2, 0.5, 0), (-1, 0.75, 0)],
        (2, 0, 0),
        Status.CONTACT,
        0.5,
    ),
    _case(
        "coplanar motion of a triangle, xy plane",
        TRIANGLES,
        FACE + [(-1, 0.25, 0), (-2, 0.5, 0), (-2, 0, 0)],
        (2, 0, 0),
        Status.CONTACT,
        0.5,
    ),
    _case("coplanar vertex inside at the start", VF, [(0.25, 0.25, 0), *FACE], (1, 0, 0), Status.START, 0.0),
    _case(
        "vertex slides along the line of an edge to its end", VF, [(2, 0, 0), *FACE], (-1, 0, 0), Status.CONTACT, 1.0
    ),
    _case("vertex slides along the line of an edge into it", VF, [(2, 0, 0), *FACE], (-2, 0, 0), Status.CONTACT, 0.5),
    _case("vertex slides along an edge", VF, [(0.5, 0, 0), *FACE], (-0.25, 0, 0), Status.START, 0.0),
    _case(
        "edges slide along one line",
        EE,
        [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)],
        (-2, 0, 0),
        Status.CONTACT,
        0.5,
    ),
    _case(
        "triangle slides along the line of an edge",
        TRIANGLES,
        FACE + [(2, 0, 0), (3, 0, 0), (3, -1, 0)],
        (-1, 0, 0),
        Status.CONTACT,
        1.0,
    ),
    _case("vertex meets vertex", TRIANGLES, POINT_LEFT + POINT_RIGHT, (-2, 0, 0), Status.CONTACT, 0.5),
    _case("vertex meets the corner of a face", VF, [(0, 0, 1), *FACE], (0, 0, -2), Status.CONTACT, 0.5),
    _case("ends of edges meet", EE, [(0, 0, 0), (-1, 1, 0), (1, 0, 0), (2, 1, 0.5)], (-2, 0, 0), Status.CONTACT, 0.5),
    # the height of the vertex above the plane of the face is (t - 1/2)^2
    _case(
        "vertex grazes a face",
        VF,
        [(0, -2, 0.25), (-4, -4, 0), (4, -4, 0), (0, 4, 0)],
        [(0, 4, -1.5), (0, 0, 0), (0, 0, 0), (0, 0, -2)],
        Status.CONTACT,
        0.5,
        double_root=True,
    ),
    _case("zero relative velocity, apart", VF, [(0.25, 0.25, 1), *FACE], [(1, 2, 3)] * 4, Status.FREE),
    _case("zero relative velocity, touching", VF, [(0.25, 0.25, 0), *FACE], [(1, 2, 3)] * 4, Status.START, 0.0),
    _case("triangles at rest, apart", TRIANGLES, FACE + _shifted(FACE, (0, 0, 1)), (0, 0, 0), Status.FREE),
    _case(
        "zero-area face is a segment",
        VF,
        [(0.5, 0, 1), (0, 0, 0), (1, 0, 0), (0.25, 0, 0)],
        (0, 0, -2),
        Status.CONTACT,
        0.5,
    ),
    _case("zero-area face is missed", VF, [(0.5, 1, 1), (0, 0, 0), (1, 0, 0), (2, 0, 0)], (0, 0, -2), Status.FREE),
    _case(
        "face of one point is hit", VF, [(0, 0, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)], (0, 0, -2), Status.CONTACT, 0.5
    ),
    _case(
        "edge without length is hit",
        EE,
        [(0.5, 0, 0), (0.5, 0, 0), (0, 0, 1), (1, 0, 1)],
        (0, 0, -2),
        Status.CONTACT,
        0.5,
    ),
    _case(
        "far from the origin, vertex",
        VF,
        [(0.25, 0.25, 1), *FACE],
        (0, 0, -3),
        Status.CONTACT,
        1 / 3,
        offset=(FAR, -FAR, FAR),
    ),
    _case(
        "far from the origin, edge",
        EE,
        [(-1, 0, 0), (1, 0, 0), (0, -1, 1), (0, 1, 1)],
        (0, 0, -3),
        Status.CONTACT,
        1 / 3,
        offset=(-FAR, FAR, FAR),
    ),
    _case("identical triangles", TRIANGLES, FACE + FACE, (0, 0, 1), Status.START, 0.0),
    _case(
        "triangles that share a vertex",
        TRIANGLES,
        FACE + [(0, 0, 0), (-1, 0, 1), (0, -1, 1)],
        (-1, -1, 1),
        Status.START,
        0.0,
    ),
]


def _spoiled(case: Case, value: float) -> Case:
    x1 = case.x1.copy()
    x1[1, 2] = value
    return Case(f"{case.name}, with {value}", case.kind, case.x0, x1, case.status)


#: Queries that must be refused: a coordinate is no number or not finite.
INVALID = [_spoiled(case, value) for case in CASES if case.name.startswith("pure") for value in (np.nan, np.inf)]

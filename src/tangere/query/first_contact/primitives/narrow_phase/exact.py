"""Exact decision of vertex-face and edge-edge contact under linear motion, and exact static tests.

Question: do these two features, whose corners move along straight lines from t = 0 to t = 1, ever touch, and when
          first? Closed features: touching counts. Every finite input is legal.
Method:   coordinates become integers by one common power of two. Contact needs four coplanar points, the root of a
          cubic; at each root the signs of projected orientations decide. Where the cubic is zero (motion in one plane,
          parallel edges, collapsed features), contact can only begin at t = 0 or where a vertex arrives on an edge or
          its line. The cubic is that of the course on 3D collision detection, chapter 6.X4.
Sound:    no rounding anywhere; the reported doubles enclose the exact time as tightly as doubles can.
Known as: exact geometric computation; root isolation by Descartes' rule of signs (Collins and Akritas 1976).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

import numpy as np
import warp as wp

from tangere.geometry.polynomials import (
    Polynomial,
    Root,
    add,
    greatest_common_divisor,
    multiply,
    roots_in_unit_interval,
    subtract,
)
from tangere.query.contacts.record import Kind, Status
from tangere.query.first_contact.primitives.narrow_phase.features import FeaturePairKind
from tangere.query.first_contact.primitives.narrow_phase.solver import PrimitiveAnswers
from tangere.runtime import InputError, device_of

#: Exact decisions take some 0.2 ms each; show a bar from here on.
PROGRESS_FROM = 20_000


@dataclass(frozen=True, slots=True)
class ExactContact:
    """Whether two features touch within the step. Both times are inf when they do not."""

    hit: bool
    time_below: float  #: the largest double not above the exact first time of contact
    time_above: float  #: the smallest double not below it; equal to `time_below` when the time is a double


@dataclass(frozen=True)
class ExactContacts:
    """`ExactContact` of n queries, as arrays of shape (n,)."""

    hit: np.ndarray
    time_below: np.ndarray
    time_above: np.ndarray

    def __len__(self) -> int:
        return len(self.hit)


def resolve_undecided(
    features: FeaturePairKind, start: wp.array, end: wp.array, quads: wp.array | None, answers: PrimitiveAnswers
) -> None:
    """Decide by exact arithmetic what `answers` leaves open: every contact that is not proved."""
    time, upper, status = answers.time.numpy(), answers.time_upper.numpy(), answers.status.numpy()
    open_ = np.flatnonzero((status != Status.FREE) & np.isinf(upper))
    if not len(open_):
        return
    rows = open_[:, None] * 4 + np.arange(4) if quads is None else quads.numpy()[open_]
    points = np.concatenate([start.numpy()[rows], end.numpy()[rows]], axis=1)
    exact = decide_many(features.kind, points, progress=len(open_) > PROGRESS_FROM)
    time[open_], upper[open_] = exact.time_below, exact.time_above
    status[open_] = np.where(exact.hit, np.where(exact.time_above > 0.0, Status.CONTACT, Status.START), Status.FREE)
    for array, values in ((answers.time, time), (answers.time_upper, upper), (answers.status, status)):
        if not device_of(array).is_cpu:
            array.assign(values)


def decide(kind: Kind, points: np.ndarray) -> ExactContact:
    """First contact of one vertex and face, or of two edges, decided exactly.

    Args:
        kind: `Kind.VERTEX_FACE` or `Kind.EDGE_EDGE`.
        points: four points at t = 0, then the same four at t = 1, shape (8, 3), finite: `v f0 f1 f2` or `a0 a1 b0 b1`.
    """
    if kind not in _FIRST_FEATURE:
        raise InputError(f"exact decision: kind must be VERTEX_FACE or EDGE_EDGE, not {kind!r}")
    points = np.asarray(points, dtype=np.float64)
    if points.shape != (8, 3):
        raise InputError(f"exact decision: points must have shape (8, 3), not {points.shape}")
    columns = points.T.tolist()
    if not all(isfinite(x) for column in columns for x in column):
        raise InputError("exact decision: points must be finite")
    if any(_apart(column, _FIRST_FEATURE[kind]) for column in columns):
        return _FREE
    time = _first_time(kind, *_edge_vectors(kind, _as_integers(columns)))
    return ExactContact(True, *time) if time else _FREE


def decide_many(kind: Kind, points: np.ndarray, *, progress: bool = False) -> ExactContacts:
    """`decide` for each of n queries, points of shape (n, 8, 3); `progress` shows a bar on the terminal."""
    points = np.asarray(points, dtype=np.float64)
    if progress:
        from rich.progress import track

        queries = track(points, description="exact decision", total=len(points), transient=True)
    else:
        queries = points
    answers = [decide(kind, query) for query in queries]
    return ExactContacts(
        hit=np.array([answer.hit for answer in answers], dtype=bool),
        time_below=np.array([answer.time_below for answer in answers], dtype=np.float64),
        time_above=np.array([answer.time_above for answer in answers], dtype=np.float64),
    )


_FREE = ExactContact(False, inf, inf)
_FIRST_FEATURE = {Kind.VERTEX_FACE: (0, 4), Kind.EDGE_EDGE: (0, 1, 4, 5)}

#: A vector whose components are polynomials of time.
Vector = tuple[Polynomial, Polynomial, Polynomial]


def _apart(column: list[float], first_feature: tuple[int, ...]) -> bool:
    """Whether the two features keep to different sides of a coordinate over the whole step."""
    first = [column[i] for i in first_feature]
    second = [x for i, x in enumerate(column) if i not in first_feature]
    return max(first) < min(second) or max(second) < min(first)


def _as_integers(columns: list[list[float]]) -> list[list[int]]:
    """The coordinates times one power of two: contact and its time do not depend on scale."""
    ratios = [[x.as_integer_ratio() for x in column] for column in columns]
    common = max(denominator for column in ratios for _, denominator in column)
    return [[numerator * (common // denominator) for numerator, denominator in column] for column in ratios]


def _edge_vectors(kind: Kind, columns: list[list[int]]) -> tuple[Vector, Vector, Vector]:
    """Vectors from f0 to f1, f2, v, or from a0 to a1, b0, b1, as polynomials of time."""
    origin, *others = (1, 2, 3, 0) if kind == Kind.VERTEX_FACE else (0, 1, 2, 3)

    def vector(i: int) -> Vector:
        components = []
        for column in columns:
            start, end = column[i] - column[origin], column[i + 4] - column[origin + 4]
            components.append([start, end - start] if end != start else [start] if start else [])
        return tuple(components)

    e1, e2, e3 = map(vector, others)
    return e1, e2, e3


def _first_time(kind: Kind, e1: Vector, e2: Vector, e3: Vector) -> tuple[float, float] | None:
    """Doubles that enclose the first time of contact, None if there is none."""
    volume = _dot(_cross(e1, e2), e3)
    if volume:
        for root in roots_in_unit_interval(volume):
            if _touching(kind, e1, e2, e3, root):
                return root.enclosing_floats()
        return None
    # Roots of different polynomials: their brackets may overlap, so all that might be first are tested. Rounding is
    # monotone: the enclosure of the earliest is the least of the enclosures.
    first = None
    for root in sorted(_arrivals(kind, e1, e2, e3), key=lambda root: root.enclosing_floats()):
        times = root.enclosing_floats()
        if first and times[0] >= first[1]:
            break
        if _touching(kind, e1, e2, e3, root):
            first = min(first, times) if first else times
    return first


def _touching(kind: Kind, e1: Vector, e2: Vector, e3: Vector, root: Root) -> bool:
    """Whether the features, coplanar at `root`, have a common point there."""
    for axis in range(3):
        q1 = _cross_component(e1, e2, axis)
        q2 = _cross_component(e1, e3, axis)
        if not root.sign_of(q1 if kind == Kind.VERTEX_FACE else subtract(q1, q2)):
            continue  # the projection along this axis is degenerate
        q3 = _cross_component(e2, e3, axis)
        q4 = add(subtract(q1, q2), q3)
        if kind == Kind.VERTEX_FACE:
            # Twice the areas that the vertex spans with the sides of the face: none may have the other sign.
            areas = {root.sign_of(q2), -root.sign_of(q3)}
            return not {-1, 1} <= areas and not {-1, 1} <= areas | {root.sign_of(q4)}
        # The ends of each edge must not lie strictly on one side of the other.
        return root.sign_of(q1) * root.sign_of(q2) <= 0 and root.sign_of(q3) * root.sign_of(q4) <= 0
    # A collapsed face is its edges; parallel or point edges touch at an end: some vertex lies on some edge.
    return any(
        root.sign_of(_dot(x, y)) <= 0 and not any(root.sign_of(component) for component in _cross(x, y))
        for x, y in _vertex_edge_pairs(kind, e1, e2, e3)
    )


def _arrivals(kind: Kind, e1: Vector, e2: Vector, e3: Vector) -> list[Root]:
    """Times at which contact may begin when the four points are coplanar throughout.

    Contact that begins at t > 0 begins where a vertex comes onto the line of an edge, or, if it was on that line all
    the time, at an end of the edge.
    """
    polynomials = set()
    for x, y in _vertex_edge_pairs(kind, e1, e2, e3):
        u, v, w = _cross(x, y)
        on_line = greatest_common_divisor(greatest_common_divisor(u, v), w)
        polynomials.add(tuple(on_line or _dot(x, y)))
    roots = [root for polynomial in polynomials for root in roots_in_unit_interval(list(polynomial))]
    return [Root(0, 0), *roots]


def _vertex_edge_pairs(kind: Kind, e1: Vector, e2: Vector, e3: Vector) -> list[tuple[Vector, Vector]]:
    """For each vertex and edge of different features, the vectors x, y between the vertex and the edge's two ends.

    The vertex is on the edge where x and y are parallel and x . y <= 0; right also for an edge of length zero.
    """
    if kind == Kind.VERTEX_FACE:
        corners = [e3, _difference(e3, e1), _difference(e3, e2)]
        return list(pairwise([*corners, corners[0]]))
    f2, f3 = _difference(e2, e1), _difference(e3, e1)
    return [(e2, e3), (f2, f3), (e2, f2), (e3, f3)]


def _difference(a: Vector, b: Vector) -> Vector:
    return subtract(a[0], b[0]), subtract(a[1], b[1]), subtract(a[2], b[2])


def _cross_component(a: Vector, b: Vector, axis: int) -> Polynomial:
    i, j = axis - 2, axis - 1
    return subtract(multiply(a[i], b[j]), multiply(a[j], b[i]))


def _cross(a: Vector, b: Vector) -> Vector:
    return _cross_component(a, b, 0), _cross_component(a, b, 1), _cross_component(a, b, 2)


def _dot(a: Vector, b: Vector) -> Polynomial:
    return add(add(multiply(a[0], b[0]), multiply(a[1], b[1])), multiply(a[2], b[2]))

"""Are features nearer to each other than a given distance? Decided in rational arithmetic, for what rounding hides.

Method: the nearest points of a vertex and a face, or of two edges, are critical points of the squared distance on the
        faces, edges or corners of both; each candidate is evaluated exactly and compared with the squared distance.
Exact:  for the numbers as they are given, floats or fractions. Slow: for single pairs.
Known as: an exact predicate, by exact geometric computation (Yap 1997).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

Vector = tuple[Fraction, Fraction, Fraction]


def vertex_face_nearer(corners: Sequence[Sequence[float]], distance: float) -> bool:
    """Whether a vertex, the first of four points, is nearer to the triangle of the other three than `distance`."""
    p, *face = map(_exact, corners)
    return _below(_vertex_face(p, face), distance)


def edges_nearer(corners: Sequence[Sequence[float]], distance: float) -> bool:
    """Whether the edge of the first two of four points is nearer to that of the other two than `distance`."""
    p, q, r, s = map(_exact, corners)
    return _below(_edges(p, q, r, s), distance)


def triangles_nearer(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], distance: float) -> bool:
    """Whether two triangles that do not meet are nearer to each other than `distance`."""
    one, other = list(map(_exact, a)), list(map(_exact, b))

    def candidates() -> Iterator[Fraction]:
        for p in one:
            yield from _vertex_face(p, other)
        for p in other:
            yield from _vertex_face(p, one)
        for i, j in product(range(3), repeat=2):
            yield from _edges(one[i], one[i - 1], other[j], other[j - 1])

    return _below(candidates(), distance)


def _below(squares: Iterator[Fraction], distance: float) -> bool:
    limit = Fraction(distance) ** 2
    return any(square < limit for square in squares)


def _exact(point: Sequence[float]) -> Vector:
    x, y, z = point
    return Fraction(x), Fraction(y), Fraction(z)


def _minus(p: Vector, q: Vector) -> Vector:
    return p[0] - q[0], p[1] - q[1], p[2] - q[2]


def _dot(p: Vector, q: Vector) -> Fraction:
    return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]


def _cross(p: Vector, q: Vector) -> Vector:
    return p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]


def _vertex_edge(p: Vector, q: Vector, r: Vector) -> Fraction:
    """Squared distance of p to the edge from q to r."""
    along, to = _minus(r, q), _minus(p, q)
    length = _dot(along, along)
    share = min(max(_dot(to, along) / length, Fraction(0)), Fraction(1)) if length else Fraction(0)
    rest = to[0] - share * along[0], to[1] - share * along[1], to[2] - share * along[2]
    return _dot(rest, rest)


def _vertex_face(p: Vector, face: Sequence[Vector]) -> Iterator[Fraction]:
    """Squared distances of p to points of a triangle, the nearest among them."""
    a, b, c = face
    across = _cross(_minus(b, a), _minus(c, a))
    size = _dot(across, across)
    if size:
        inside = all(
            _dot(across, _cross(_minus(end, start), _minus(p, start))) >= 0 for start, end in ((a, b), (b, c), (c, a))
        )
        if inside:
            yield _dot(across, _minus(p, a)) ** 2 / size
    for start, end in ((a, b), (b, c), (c, a)):
        yield _vertex_edge(p, start, end)


def _edges(p: Vector, q: Vector, r: Vector, s: Vector) -> Iterator[Fraction]:
    """Squared distances of points of two edges, the nearest among them."""
    u, v, w = _minus(q, p), _minus(s, r), _minus(p, r)
    across = _cross(u, v)
    size = _dot(across, across)
    if size:
        share_u = _dot(_cross(v, w), across) / size
        share_v = _dot(_cross(u, w), across) / size
        if 0 <= share_u <= 1 and 0 <= share_v <= 1:
            yield _dot(across, w) ** 2 / size
    yield _vertex_edge(p, r, s)
    yield _vertex_edge(q, r, s)
    yield _vertex_edge(r, p, q)
    yield _vertex_edge(s, p, q)

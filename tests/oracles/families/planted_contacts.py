"""Building blocks of `feature_queries`: features that touch in short dyadic numbers, and motions that pass the contact.

Few bits are spent on each factor (corners 6, weights 3, velocities 6, time 4; at most 28 more for needles or slow
motion), so that products and sums fit in 53 bits and start and end positions are exact doubles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.query.contacts import Kind

__all__ = [
    "Queries",
    "Touch",
    "carried_away",
    "dyadic",
    "edge_touch",
    "face_touch",
    "first_feature",
    "first_moved",
    "integer_embedding",
    "parallel_touch",
    "passing",
    "planted",
    "planted_in_plane",
    "planted_tangential",
    "random_touch",
    "rigid",
    "scaled_by",
    "unit",
    "weights_inside",
    "weights_on_boundary",
    "with_relative_velocity",
]


@dataclass(frozen=True)
class Queries:
    """n queries: `points` (n, 8, 3) and, where a contact was planted, its exact `time` (n,) in [0, 1]."""

    points: np.ndarray
    time: np.ndarray | None


@dataclass(frozen=True)
class Touch:
    """Features in contact: positions (n, 4, 3), the meeting point's weights (n, 4) signed so that the weighted sum of
    the positions is zero, and two directions (n, 2, 3) that span the tangent plane."""

    positions: np.ndarray
    weights: np.ndarray
    tangents: np.ndarray


def dyadic(shape: tuple[int, ...], rng: np.random.Generator, bits: int = 6, reach: int = 1) -> np.ndarray:
    """Random multiples of 2^-bits in [-reach, reach]."""
    return rng.integers(-reach * 2**bits, reach * 2**bits + 1, shape) / 2.0**bits


def weights_inside(kind: Kind, n: int, rng: np.random.Generator) -> np.ndarray:
    """Eighths: (n, 3) barycentric for a face, (n, 2) along each edge."""
    if kind == Kind.VERTEX_FACE:
        return rng.multinomial(8, [1 / 3] * 3, n) / 8.0
    return rng.integers(0, 9, (n, 2)) / 8.0


def weights_on_boundary(kind: Kind, n: int, rng: np.random.Generator) -> np.ndarray:
    """Eighths on an edge or corner of the face; at an end of at least one of the two edges."""
    if kind == Kind.VERTEX_FACE:
        along = np.where(rng.random(n) < 0.3, 8, rng.integers(0, 9, n)) / 8.0
        return np.stack([along, 1 - along, np.zeros(n)], axis=1)
    weights = weights_inside(kind, n, rng)
    end = rng.integers(0, 3, n)[:, None] != [0, 1]
    return np.where(end, np.round(weights), weights)


def random_touch(kind: Kind, n: int, rng: np.random.Generator, weights: np.ndarray | None = None, grid=None) -> Touch:
    """Random features that touch at `weights`, their corners or directions drawn from `grid(shape)`."""
    weights = weights_inside(kind, n, rng) if weights is None else weights
    first, second, third = grid((3, n, 3)) if grid else dyadic((3, n, 3), rng)
    if kind == Kind.VERTEX_FACE:
        return face_touch(np.stack([first, second, third], axis=1), weights)
    return edge_touch(first, second, third, weights)


def face_touch(face: np.ndarray, weights: np.ndarray) -> Touch:
    """A vertex in a face (n, 3, 3) at barycentric weights (n, 3)."""
    vertex = np.einsum("ij,ijk->ik", weights, face)
    return Touch(
        np.concatenate([vertex[:, None], face], axis=1),
        np.concatenate([np.ones((len(face), 1)), -weights], axis=1),
        face[:, 1:] - face[:, :1],
    )


def edge_touch(edge_a: np.ndarray, edge_b: np.ndarray, centre: np.ndarray, weights: np.ndarray) -> Touch:
    """Edges with the given directions that cross at `centre`, at weights (n, 2) along each."""
    s, w = weights[:, :1], weights[:, 1:]
    return Touch(
        np.stack([centre - s * edge_a, centre + (1 - s) * edge_a, centre - w * edge_b, centre + (1 - w) * edge_b], 1),
        np.concatenate([1 - s, s, w - 1, -w], axis=1),
        np.stack([edge_a, edge_b], axis=1),
    )


def parallel_touch(n: int, rng: np.random.Generator) -> Touch:
    """Parallel edges with a common point."""
    edge, centre = dyadic((2, n, 3), rng)
    ratio = rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], (n, 1))
    return edge_touch(edge, ratio * edge, centre, weights_inside(Kind.EDGE_EDGE, n, rng))


def rigid(kind: Kind, velocity: np.ndarray) -> np.ndarray:
    """Each feature takes one velocity."""
    return velocity[:, [0, 1, 1, 1] if kind == Kind.VERTEX_FACE else [0, 0, 2, 2]]


def with_relative_velocity(kind: Kind, touch: Touch, velocity: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The first feature's velocities shifted so that its meeting point moves by `wanted` relative to the second's."""
    velocity = velocity.copy()
    relative = np.einsum("ij,ijk->ik", touch.weights, velocity)
    velocity[:, first_feature(kind)] += (wanted - relative)[:, None]
    return velocity


def planted_tangential(kind: Kind, touch: Touch, velocity: np.ndarray, rng: np.random.Generator) -> Queries:
    """The meeting point of the first feature moves within the tangent plane at contact."""
    share = rng.integers(-4, 5, (len(velocity), 2)) / 4.0
    along = np.einsum("ij,ijk->ik", share, touch.tangents)
    return planted(touch, with_relative_velocity(kind, touch, velocity, along), rng)


def planted_in_plane(touch: Touch, velocity: np.ndarray, rng: np.random.Generator) -> Queries:
    """The same contact and motion without its z components, laid into an oblique plane."""
    embedding = integer_embedding(len(velocity), rng)
    flat = Touch(touch.positions[..., :2] @ embedding, touch.weights, touch.tangents[..., :2] @ embedding)
    return planted(flat, velocity[..., :2] @ embedding, rng)


def integer_embedding(n: int, rng: np.random.Generator) -> np.ndarray:
    """Small integer maps (n, 2, 3) of the plane into space: exact, and most planes are oblique."""
    return rng.integers(-2, 3, (n, 2, 3)).astype(np.float64)


def planted(touch: Touch, velocity: np.ndarray, rng: np.random.Generator) -> Queries:
    """A query that passes the contact at a random time in sixteenths."""
    time = rng.integers(0, 17, len(velocity)) / 16.0
    return Queries(passing(touch, velocity, time), time)


def passing(touch: Touch, velocity: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Start and end positions of the motion that passes the contact at `time`."""
    t = time[:, None, None]
    return np.concatenate([touch.positions - velocity * t, touch.positions + velocity * (1 - t)], axis=1)


def scaled_by(queries: Queries, factor: np.ndarray) -> Queries:
    """The same queries at another size; exact for powers of two."""
    return Queries(queries.points * factor, queries.time)


def carried_away(queries: Queries, distance: int, rng: np.random.Generator) -> Queries:
    """The same queries moved far from the origin by integers up to `distance`."""
    away = rng.integers(-distance, distance + 1, (len(queries.points), 1, 3)).astype(np.float64)
    return Queries(queries.points + away, queries.time)


def first_feature(kind: Kind) -> list[int]:
    """Rows of the vertex, or of the first edge, among the four points."""
    return [0] if kind == Kind.VERTEX_FACE else [0, 1]


def first_moved(queries: Queries, kind: Kind, distance, rng: np.random.Generator) -> Queries:
    """The first feature shifted by up to `distance` times the query's size: contact is lost, or kept by chance."""
    points = queries.points.copy()
    size = np.abs(points - points[:, :1]).max(axis=(1, 2), keepdims=True)
    power_of_two = np.ldexp(1.0, np.frexp(size)[1])
    step = dyadic((len(points), 1, 3), rng, bits=3) * power_of_two * distance
    rows = first_feature(kind)
    points[:, [*rows, *(row + 4 for row in rows)]] += step
    return Queries(points, None)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) at length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

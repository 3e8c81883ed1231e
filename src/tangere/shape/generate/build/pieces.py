"""Parts out of pieces: pieces joined into one part, and long edges halved until the triangle budget is met exactly.

A closed surface gains exactly two triangles when one of its edges is halved, and keeps its shape. So a part modelled
with few triangles reaches every larger even budget, with triangles of even size where it matters.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError
from tangere.runtime import whole
from tangere.shape.generate.build.sweep import sweep

Piece = tuple[np.ndarray, np.ndarray]  #: vertices (n, 3) [m] and triangles (m, 3) of a closed surface


def joined(pieces: list[Piece]) -> Piece:
    """All pieces as one, in order; nothing is merged."""
    first = np.cumsum([0] + [len(vertices) for vertices, _ in pieces[:-1]])
    return (
        np.concatenate([vertices for vertices, _ in pieces]),
        np.concatenate([faces + offset for (_, faces), offset in zip(pieces, first, strict=True)]),
    )


def moved(piece: Piece, *, turn: np.ndarray | None = None, by: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Piece:
    """The piece turned by a rotation matrix about the origin, then shifted [m]. A mirror turns the triangles round."""
    vertices, faces = piece
    if turn is None:
        return vertices + np.array(by), faces
    return vertices @ turn.T + np.array(by), faces if np.linalg.det(turn) > 0.0 else faces[:, ::-1]


def rod(path: np.ndarray, radius: np.ndarray | float, sides: int) -> Piece:
    """A solid round bar along an open path (k, 3) [m]: 2 k sides triangles, flat ends."""
    vertices, faces = sweep(np.asarray(path, float), radius, sides, closed=False)
    here, count = np.arange(sides), len(vertices)
    after, last = (here + 1) % sides, count - sides
    ends = [
        np.stack([after, here, np.full(sides, count)], axis=1),
        np.stack([last + here, last + after, np.full(sides, count + 1)], axis=1),
    ]
    middles = np.stack([vertices[:sides].mean(axis=0), vertices[last:].mean(axis=0)])
    return np.concatenate([vertices, middles]), np.concatenate([faces, *(end[:, ::-1] for end in ends)])


def divided(shape: str, piece: Piece, triangles: int) -> Piece:
    """The closed piece with exactly `triangles` triangles: its longest edges are halved, longest first.

    Args:
        shape: what to call it in errors.
        triangles: how many in the end; even, and no fewer than the piece has.
    """
    vertices, faces = piece
    if whole(triangles, f"{shape}: triangles", least=1) < len(faces) or triangles % 2:
        nearest = f"{max(triangles - 1, len(faces))}" if triangles > len(faces) else f"{len(faces)}"
        raise InputError(f"{shape}: cannot have exactly {triangles} triangles; nearest possible: {nearest}")
    while len(faces) < triangles:
        vertices, faces = _halved(vertices, faces, (triangles - len(faces)) // 2)
    return vertices, faces


def _halved(vertices: np.ndarray, faces: np.ndarray, most: int) -> Piece:
    """One round: halves up to `most` edges, each the longest of both its triangles and among the longer half of all."""
    ends = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
    low, high = ends.min(axis=1).astype(np.int64), ends.max(axis=1)
    keys, side_edge, counts = np.unique(low * len(vertices) + high, return_inverse=True, return_counts=True)
    assert (counts == 2).all(), "only closed surfaces can be divided"
    a, b = keys // len(vertices), keys % len(vertices)
    size = np.linalg.norm(vertices[a] - vertices[b], axis=1)
    rank = np.empty(len(size), int)  # ties in length are broken by number, so that some edge is always first
    rank[np.lexsort((np.arange(len(size)), size))] = np.arange(len(size))

    side_edge = side_edge.reshape(-1, 3)
    longest = rank[side_edge].argmax(axis=1)
    of_face = side_edge[np.arange(len(faces)), longest]
    chosen = (np.bincount(of_face, minlength=len(size)) == 2) & (size >= 0.6 * size.max())
    chosen[np.argsort(np.where(chosen, -rank, 1))[most:]] = False
    middle = np.full(len(size), -1)
    middle[chosen] = len(vertices) + np.arange(chosen.sum())

    cut = chosen[of_face]
    start, end, apex = (faces[cut, (longest[cut] + k) % 3] for k in range(3))
    between = middle[of_face[cut]]
    halves = [np.stack([start, between, apex], axis=1), np.stack([between, end, apex], axis=1)]
    points = 0.5 * (vertices[a[chosen]] + vertices[b[chosen]])
    return np.concatenate([vertices, points]), np.concatenate([faces[~cut], *halves])

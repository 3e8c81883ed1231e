"""Recession vectors as the thesis builds them: cone projections, minimal subset, pushing outwards, annealing.

Question: which few vectors span a cone that holds all given normals?
Method:   Redon 2002, section 4.5.2: no cone if plus and minus every coordinate axis belongs
          to the cone of the normals; else the minimal subset; if that is too large, vectors are drawn from it until
          their cone holds its mean, pushed outwards until they enclose everything, and drawn in again by annealing.
          The schedule is not printed; ours is in `_anneal`. Random, with the caller's generator. For reproduction: the
          hull builder is hundreds of times faster and tighter.
"""

from __future__ import annotations

import itertools

import numpy as np

#: A vector belongs to a cone if its projection is this near to it.
_MEMBER = 1e-9
_DRAWS = 50
_ROUNDS = 60


def published_cones(
    directions: np.ndarray, first: np.ndarray, most: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Minimal subsets, and at most `most` vectors that enclose them, of many sets; as `hull.enclosing_cones`."""
    subsets, vectors = [], []
    for begin, end in itertools.pairwise(first):
        normals, nothing = directions[begin:end], np.zeros((0, 3))
        subset = nothing if begin == end or is_whole_space(normals) else minimal_subset(normals)
        subsets.append(subset)
        vectors.append(subset if len(subset) <= most else _few(subset, normals, most, rng))
    return _joined(subsets), _joined(vectors)


def cone_projection(vectors: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The point of the cone {sum l_m v_m, l >= 0} nearest to x (3,), by the active-set method of Wilhelmsen."""
    from scipy.optimize import nnls

    weights, _ = nnls(np.ascontiguousarray(vectors.T), x, maxiter=30 * (len(vectors) + 3))
    return vectors.T @ weights


def is_whole_space(vectors: np.ndarray) -> bool:
    """Whether the cone of `vectors` is all of space: the six vectors along the axes belong to it (lemma 4)."""
    return all(_holds(vectors, sign * axis) for axis in np.eye(3) for sign in (1.0, -1.0))


def minimal_subset(vectors: np.ndarray) -> np.ndarray:
    """The vectors without those that lie in the cone of the others, dropped one after the other."""
    kept, place = vectors, 0
    while place < len(kept) and len(kept) > 1:
        others = np.delete(kept, place, axis=0)
        if _holds(others, kept[place]):
            kept = others
        else:
            place += 1
    return kept


def _joined(lists: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array([len(vectors) for vectors in lists], np.int64), np.concatenate(lists)]


def _few(extreme: np.ndarray, normals: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """`most` vectors that enclose the extreme normals, and so all of them, or none if they are not found."""
    started = _pushed_out(extreme, most, rng) if most >= 3 else None
    return np.zeros((0, 3)) if started is None else _anneal(started, normals, rng)


def _holds(vectors: np.ndarray, x: np.ndarray) -> bool:
    return bool(np.linalg.norm(cone_projection(vectors, x) - x) <= _MEMBER * np.linalg.norm(x))


def _encloses(vectors: np.ndarray, normals: np.ndarray) -> bool:
    return all(_holds(vectors, n) for n in normals)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _pushed_out(extreme: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray | None:
    """Vectors drawn from the extreme ones, pushed away from their mean until they enclose all; None if that fails."""
    mean = extreme.mean(axis=0)
    for _ in range(_DRAWS):
        drawn = extreme[rng.choice(len(extreme), most, replace=False)]
        if not _holds(drawn, mean):
            continue
        for push in 1.1 ** np.arange(40):
            pushed = _unit(mean + push * (drawn - mean))
            if _encloses(pushed, extreme):
                return pushed
    return None


def _anneal(vectors: np.ndarray, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Small changes that keep the inclusion, with a bar on how far vectors may move out that falls to nothing."""

    def excess(v: np.ndarray) -> float:
        return sum(float(np.linalg.norm(x - cone_projection(normals, x))) for x in v)

    best = current = vectors
    least = size = excess(vectors)
    for temperature in np.linspace(0.2, 0.0, _ROUNDS):
        changed = current.copy()
        changed[rng.integers(len(changed))] += rng.normal(size=3) * (0.02 + 0.5 * temperature)
        changed = _unit(changed)
        new = excess(changed)
        if new <= size * (1.0 + temperature) and _encloses(changed, normals):
            current, size = changed, new
            if size < least:
                best, least = current, size
    return best

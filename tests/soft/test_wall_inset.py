"""Walls go the way that is nearest to all of their normals: the centre of the smallest cap that has them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tangere.soft.contact.wall_inset import WallFacets, _by_vertex, _smallest_caps, inset_carriers


def best_cosine(normals: np.ndarray) -> float:
    """The largest that the least cosine of a direction to these unit vectors can be, by trying all that may be best."""
    tried = [*normals]
    tried += [a + b for a, b in itertools.combinations(normals, 2)]
    tried += [np.cross(b - a, c - a) for a, b, c in itertools.combinations(normals, 3)]
    ways = np.array([way / np.linalg.norm(way) for way in tried if np.linalg.norm(way) > 1e-12])
    return float((np.concatenate([ways, -ways]) @ normals.T).min(axis=1).max())


def some_normals(rng: np.random.Generator, count: int, width: float) -> np.ndarray:
    normals = rng.normal(size=3) / np.sqrt(3.0) + width * rng.normal(size=(count, 3))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


@pytest.mark.parametrize("width", [1e-14, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 2.0])
def test_the_direction_of_walls_is_the_nearest_to_all_normals(rng, width, effort) -> None:
    rows = [some_normals(rng, int(rng.integers(1, 9)), width) for _ in range(effort(200, least=20))]
    rows += [np.repeat(normals, 3, axis=0) for normals in rows[:20]]  # coplanar walls
    rows += [np.eye(3)[[0, 1, 0, 2]], np.eye(3)[[0, 0]], np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])]
    vertex = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    scale = rng.uniform(0.1, 10.0, (len(vertex), 1))  # how large a wall is does not matter
    order = rng.permutation(len(vertex))
    ways, least = _smallest_caps(*_by_vertex(vertex[order], (np.concatenate(rows) * scale)[order], len(rows) + 1))
    found = 0
    for way, cosine, normals in zip(ways, least, rows, strict=False):
        wanted = best_cosine(normals)
        if wanted > 0.05:
            assert cosine == pytest.approx(wanted, abs=1e-9)
            assert (normals @ way).min() >= cosine - 1e-12
            assert np.linalg.norm(way) == pytest.approx(1.0)
            found += 1
        else:
            assert not cosine > 0.05 + 1e-9
    assert found > 1
    assert np.isinf(least[-1])


def test_many_narrow_walls_do_not_outvote_a_wall_that_looks_elsewhere() -> None:
    """Of a corner of a tetrahedron with six walls on the one side and one on the other, the mean is outside of that."""
    across, back = np.array([1.0, 0.0, 0.0]), np.array([-0.28, 0.96, 0.0])
    normals = np.array([across] * 6 + [back])
    assert (normals.sum(axis=0) @ back) < 0.0
    rest = np.array([[0.0, 0.0, 0.0], [-0.5, -1.0, 0.3], [0.2, -1.0, -0.4], [-0.1, -1.0, 0.9]])
    corners = np.stack([np.zeros(7, int), np.full(7, 1), np.full(7, 2)], axis=1)
    facets = WallFacets(corners, normals, np.zeros(7, int))
    tets, every = np.array([[0, 1, 2, 3]]), np.arange(4)
    carriers, weights = inset_carriers(facets, every, every, rest, tets, 1e-3, np.zeros(4, int))
    moved = weights[0] @ rest[carriers[0]]
    assert moved @ across == pytest.approx(-1e-3)
    assert moved @ back == pytest.approx(-1e-3)

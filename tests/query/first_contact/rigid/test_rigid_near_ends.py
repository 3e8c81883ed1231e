"""Triangles whose edges cross within rounding of an end: they are apart by construction, and go apart."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg


def crossing_near_an_end(rng: np.random.Generator, gap: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two triangles on both sides of a slab of this width, and its normal, from a to b.

    An edge of a begins on the slab and lies on it, or leaves it by 1e-12 to 1e-4 of its length; an edge of b crosses it
    where it begins, or 1e-5 to 1e-3 of the gap behind.
    """
    fall = rng.choice([0.0, 10.0 ** rng.uniform(-12, -4)])
    beside = rng.choice([0.0, 10.0 ** rng.uniform(-5, -3) * gap])
    a = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -fall], [rng.uniform(-1.0, 1.0), 1.0, -rng.uniform(0.1, 1.0)]])
    u, v = rng.uniform(0.2, 0.8, 2)
    way = np.array([rng.uniform(-2.0, 2.0), 1.0, 0.0])
    middle = np.array([beside, 0.0, gap])
    b = np.array([middle - u * way, middle + v * way, [*rng.uniform(-1.0, 1.0, 2), gap + 0.5]])
    turn, shift = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.uniform(-1.0, 1.0, 3)
    return a @ turn.T + shift, b @ turn.T + shift, turn[:, 2]


@pytest.mark.parametrize("gap", [1e-6, 1e-7, 1e-8])
def test_what_crosses_near_an_end_of_an_edge_and_goes_apart_never_meets(gap, rng, effort):
    """The nearest point is the end, up to rounding, but the direction from there misses by all of the gap."""
    found = []
    for _ in range(effort(200)):
        corners_a, corners_b, n = crossing_near_an_end(rng, gap)
        order = rng.permutation(3), rng.permutation(3)
        still = tg.Mesh(corners_a[order[0]], [[0, 1, 2]]).moving(tg.Rest(np.eye(4)))
        mesh = tg.Mesh(corners_b[order[1]], [[0, 1, 2]])
        slide = np.cross(n, rng.normal(size=3))
        parting = mesh.moving(tg.Twist(np.eye(4), 1e-4 * n + 1e-3 * slide, np.zeros(3)))
        answer = tg.first_contact(
            still, parting, start="trusted", separation=0.8 * gap, tolerance=0.05 * gap, device="cpu"
        )
        found.append(answer.time)
    assert not np.isfinite(found).any()

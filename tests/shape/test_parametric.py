"""Bézier and torus surfaces: points, pieces that hold them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.published.redon_intervals import BezierSurface, TorusSurface
from tangere.runtime import InputError


def in_hull(net, points) -> bool:
    """Whether points lie in the convex hull of a net, by linear programming."""
    from scipy.optimize import linprog

    for p in points:
        equations = np.vstack([net.T, np.ones(len(net))])
        answer = linprog(np.zeros(len(net)), A_eq=equations, b_eq=[*p, 1.0], bounds=(0, None))
        if answer.status != 0:
            return False
    return True


def test_a_patch_passes_through_its_corners_and_reproduces_a_plane(rng):
    patch = BezierSurface(rng.normal(size=(4, 4, 3)))
    for u, v, i, j in ((0, 0, 0, 0), (1, 0, 3, 0), (0, 1, 0, 3), (1, 1, 3, 3)):
        np.testing.assert_allclose(patch.points(0, u, v), patch.control[0, i, j], atol=1e-15)
    x, y = np.meshgrid(np.linspace(0, 3, 4), np.linspace(0, 3, 4), indexing="ij")
    plane = BezierSurface(np.stack([x, y, 2 * x - y], axis=-1))
    points = plane.points(0, rng.random(50), rng.random(50))
    np.testing.assert_allclose(points[:, 2], 2 * points[:, 0] - points[:, 1], atol=1e-14)


def test_pieces_of_patches_have_nets_that_draw_the_same_surface(rng):
    surface = BezierSurface(rng.normal(size=(2, 4, 4, 3)))
    pieces = surface.pieces(3)
    assert len(pieces.patch) == 18
    for k in range(len(pieces.patch)):
        u, v = rng.random(2)
        u0, u1, v0, v1 = pieces.domain[k]
        whole = surface.points(pieces.patch[k], u0 + u * (u1 - u0), v0 + v * (v1 - v0))
        part = BezierSurface(pieces.net[k].reshape(4, 4, 3)).points(0, u, v)
        np.testing.assert_allclose(part, whole, atol=1e-13)


def test_pieces_of_a_torus_hold_its_points(rng):
    torus = TorusSurface(1.0, 0.4)
    pieces = torus.pieces(5)
    for k in range(0, 25, 6):
        u0, u1, v0, v1 = 2 * np.pi * pieces.domain[k]
        u, v = u0 + rng.random(10) * (u1 - u0), v0 + rng.random(10) * (v1 - v0)
        out = 1.0 + 0.4 * np.cos(v)
        points = np.stack([out * np.cos(u), out * np.sin(u), 0.4 * np.sin(v)], axis=1)
        np.testing.assert_allclose(torus.value(points), 0.0, atol=1e-14)
        np.testing.assert_allclose(torus.distance(points), 0.0, atol=1e-14)
        assert in_hull(pieces.net[k], points)
        assert not in_hull(pieces.net[k], points[:1] * 3)


def test_the_distance_to_a_torus_is_measured_across_the_tube():
    torus = TorusSurface(2.0, 0.5)
    np.testing.assert_allclose(torus.distance([[0, 0, 0], [2, 0, 0], [0, 3, 0], [2, 0, 1]]), [1.5, 0.5, 0.5, 0.5])
    assert torus.value([2, 0, 0]) < 0 < torus.value([0, 0, 0])


def test_bad_surfaces_are_refused():
    with pytest.raises(InputError, match=r"\(n, 4, 4, 3\)"):
        BezierSurface(np.zeros((3, 3, 3)))
    with pytest.raises(InputError, match="patch 1 has a control point that is not finite"):
        BezierSurface(np.stack([np.zeros((4, 4, 3)), np.full((4, 4, 3), np.inf)]))
    for radius, tube in ((1.0, 1.0), (1.0, 0.0), (np.nan, 0.5)):
        with pytest.raises(InputError, match="tube"):
            TorusSurface(radius, tube)
    with pytest.raises(InputError, match="at least 3 cuts"):
        TorusSurface().pieces(2)

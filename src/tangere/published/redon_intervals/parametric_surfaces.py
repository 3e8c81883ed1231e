"""Smooth surfaces given by formulas: tensor-product Bézier patches, and a torus as the zero set of a function.

Each can be cut into pieces of its parameter square, and each piece gives control points whose convex hull holds it:
what a tree of boxes and an interval search ask for (Redon 2002, section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.runtime import read_only_copy
from tangere.runtime.arrays import Arrays, to_numpy
from tangere.runtime.errors import InputError

_BINOMIAL = np.array([1.0, 3.0, 3.0, 1.0])


@dataclass(frozen=True, eq=False)
class SurfacePieces:
    """n pieces of a surface."""

    patch: np.ndarray  #: (n,) which patch each belongs to
    domain: np.ndarray  #: (n, 4) u from, u to, v from, v to
    net: np.ndarray  #: (n, k, 3) points whose convex hull holds the piece [m]


class BezierSurface:
    """Bicubic Bézier patches; nothing is assumed about how they join.

    Args:
        control: control points, shape (n, 4, 4, 3), or (4, 4, 3) for one patch [m].
        name: what to call it in errors.
    """

    control: np.ndarray  #: (n, 4, 4, 3)

    def __init__(self, control: Arrays, *, name: str = "surface") -> None:
        points = to_numpy(control, f"surface {name!r}: control points")
        if points.shape[-3:] != (4, 4, 3) or points.ndim not in (3, 4) or not points.size:
            raise InputError(f"surface {name!r}: control points must have shape (n, 4, 4, 3), not {points.shape}")
        points = points.reshape(-1, 4, 4, 3)
        finite = np.isfinite(points).all(axis=(1, 2, 3))
        if not finite.all():
            raise InputError(f"surface {name!r}: patch {int(np.argmin(finite))} has a control point that is not finite")
        self.control, self.name = read_only_copy(points, np.float64), name
        self.cache: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"BezierSurface({self.name!r}, {len(self.control)} patches)"

    @property
    def extent(self) -> float:
        """Diagonal of the box of all control points [m]."""
        points = self.control.reshape(-1, 3)
        return float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))

    def points(self, patch: Arrays, u: Arrays, v: Arrays) -> np.ndarray:
        """Points of the surface at parameters in [0, 1], shape (…, 3) [m]."""
        u, v = np.asarray(u, np.float64)[..., None], np.asarray(v, np.float64)[..., None]
        k = np.arange(4)
        weights_u = _BINOMIAL * u**k * (1 - u) ** (3 - k)
        weights_v = _BINOMIAL * v**k * (1 - v) ** (3 - k)
        return np.einsum("...i,...j,...ijk->...k", weights_u, weights_v, self.control[np.asarray(patch)])

    def pieces(self, cuts: int) -> SurfacePieces:
        """Each patch cut into cuts x cuts pieces; their nets are their own control points."""
        patch, domain = _grid(len(self.control), cuts)
        matrix_u, matrix_v = _blossoms(domain[:, 0], domain[:, 1]), _blossoms(domain[:, 2], domain[:, 3])
        net = np.einsum("nai,nbj,nijk->nabk", matrix_u, matrix_v, self.control[patch])
        return SurfacePieces(patch, domain, net.reshape(len(net), 16, 3))


class TorusSurface:
    """The torus round the z axis where (sqrt(x² + y²) - radius)² + z² = tube².

    Args:
        radius: from the axis to the middle of the tube [m].
        tube: radius of the tube, below `radius` [m].
    """

    def __init__(self, radius: float = 1.0, tube: float = 0.35, *, name: str = "torus") -> None:
        if not (np.isfinite(radius) and 0.0 < tube < radius):
            raise InputError(f"surface {name!r}: needs 0 < tube < radius, not tube {tube!r} and radius {radius!r}")
        self.radius, self.tube, self.name = float(radius), float(tube), name
        self.cache: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"TorusSurface({self.name!r}, radius {self.radius:g}, tube {self.tube:g})"

    @property
    def extent(self) -> float:
        """Diagonal of its box [m]."""
        return float(2.0 * np.linalg.norm([self.radius + self.tube, self.radius + self.tube, self.tube]))

    def value(self, points: Arrays) -> np.ndarray:
        """The function whose zeros it is, positive outside [m²]."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        return (np.hypot(x, y) - self.radius) ** 2 + z**2 - self.tube**2

    def distance(self, points: Arrays) -> np.ndarray:
        """Distance of points from the surface [m]."""
        x, y, z = np.moveaxis(np.asarray(points, np.float64), -1, 0)
        return np.abs(np.hypot(np.hypot(x, y) - self.radius, z) - self.tube)

    def pieces(self, cuts: int) -> SurfacePieces:
        """cuts x cuts pieces by angle round the axis and round the tube; both parameters run over one turn in [0, 1].

        An arc lies in the triangle of its ends and the meeting point of their tangents; the products of two such
        triangles' corners hold the piece.
        """
        if cuts < 3:
            raise InputError(f"surface {self.name!r}: a torus needs at least 3 cuts, not {cuts}")
        patch, domain = _grid(1, cuts)
        around, across = (_arcs(2 * np.pi * domain[:, k], 2 * np.pi * domain[:, k + 1]) for k in (0, 2))
        out = self.radius + self.tube * across[:, None, :, 0]
        net = np.stack(
            [
                out * around[:, :, None, 0],
                out * around[:, :, None, 1],
                np.broadcast_to(self.tube * across[:, None, :, 1], (len(patch), 3, 3)),
            ],
            axis=-1,
        )
        return SurfacePieces(patch, domain, net.reshape(len(net), 9, 3))


def _grid(patches: int, cuts: int) -> tuple[np.ndarray, np.ndarray]:
    if cuts < 1:
        raise InputError(f"a surface is cut at least once, not {cuts} times")
    patch, i, j = (index.ravel() for index in np.indices((patches, cuts, cuts)))
    return patch, np.stack([i, i + 1, j, j + 1], axis=1) / cuts


def _blossoms(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 4, 4): control points of a cubic to those of its part over [a, b]."""
    rows = []
    for k in range(4):
        # The blossom at (a, …, a, b, …, b) with k times b.
        weights = np.ones((len(a), 1))
        for t in [a] * (3 - k) + [b] * k:
            left, right = np.pad(weights, ((0, 0), (0, 1))), np.pad(weights, ((0, 0), (1, 0)))
            weights = left * (1 - t)[:, None] + right * t[:, None]
        rows.append(weights)
    return np.stack(rows, axis=1)


def _arcs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 3, 2): ends of unit arcs shorter than half a turn, and where their tangents meet in between."""
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    angles, lengths = (
        np.stack([a, middle, b], axis=1),
        np.stack([np.ones_like(a), 1 / np.cos(half), np.ones_like(a)], 1),
    )
    return lengths[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)

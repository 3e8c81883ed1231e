"""Spheres from a divided icosahedron, smooth or with seeded bumps."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import legendre

from tangere.runtime import InputError, fraction, positive, random_source, whole
from tangere.shape.generate.build.budget import check_room, solve
from tangere.shape.mesh.mesh import Mesh


def icosphere(
    subdivisions: int | None = None, *, triangles: int | None = None, radius: float = 1.0, name: str = "icosphere"
) -> Mesh:
    """A sphere at the origin; closed. Without `subdivisions` and `triangles` it has 1,280 triangles.

    Args:
        subdivisions: how often the 20 triangles of an icosahedron are quartered: 20 · 4^subdivisions triangles.
        triangles: exactly how many, instead: 20 f^2 for a whole number f.
        radius: of the vertices [m].
    """
    if subdivisions is not None and triangles is not None:
        raise InputError("icosphere: give subdivisions or triangles, not both")
    if triangles is None:
        times = whole(3 if subdivisions is None else subdivisions, "icosphere: subdivisions", least=0)
        check_room("icosphere", 20 * 4 ** min(times, 64))
        frequency = 2**times
    else:
        frequency = solve("icosphere", triangles, _frequency)
    directions, faces = _divided_icosahedron(frequency)
    return Mesh(positive(radius, "icosphere: radius") * directions, faces, name=name)


def bumpy_sphere(
    triangles: int = 5120,
    *,
    seed: int = 0,
    radius: float = 1.0,
    bumps: float = 0.15,
    lobes: float = 0.6,
    name: str = "bumpy sphere",
) -> Mesh:
    """A sphere with smooth random bumps and two lobes, like a head with ears; closed, the same for the same seed.

    Args:
        triangles: exactly how many; 20 f^2 for a whole number f.
        seed: of the bumps.
        radius: before bumps and lobes [m].
        bumps: largest change of the radius by the bumps, as a fraction below 1.
        lobes: height of the two lobes, as a fraction of the radius, below 1.
    """
    positive(radius, "bumpy sphere: radius")
    fraction(bumps, "bumpy sphere: bumps")
    fraction(lobes, "bumpy sphere: lobes")
    directions, faces = _divided_icosahedron(solve("bumpy sphere", triangles, _frequency))
    noise = _harmonic_noise(directions, random_source(seed, "bumpy sphere: seed"))
    ears = np.array([[0.6, 0.0, 0.8], [-0.6, 0.0, 0.8]])
    lobe = np.exp(12.0 * (directions @ ears.T - 1.0)).sum(axis=1)
    stretch = 1.0 + bumps * noise / np.abs(noise).max() + lobes * lobe
    return Mesh(radius * stretch[:, None] * directions, faces, name=name)


def _frequency(triangles: int) -> int | None:
    frequency = math.isqrt(triangles // 20)
    return frequency if frequency and 20 * frequency * frequency == triangles else None


def _harmonic_noise(directions: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n,) sum of spherical harmonics of degree 2 to 9: Legendre polynomials about random axes, weaker when finer."""
    noise = np.zeros(len(directions))
    for degree in range(2, 10):
        axes = random.normal(size=(2 * degree + 1, 3))
        axes /= np.linalg.norm(axes, axis=1, keepdims=True)
        weights = random.normal(size=len(axes)) / degree
        noise += legendre.legval(directions @ axes.T, np.eye(degree + 1)[degree]) @ weights
    return noise


def _divided_icosahedron(frequency: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vertices and faces of an icosahedron whose triangles are each cut into frequency^2."""
    corners, faces = _icosahedron()
    i, j = (index.ravel() for index in np.meshgrid(np.arange(frequency + 1), np.arange(frequency + 1), indexing="ij"))
    i, j = i[i + j <= frequency], j[i + j <= frequency]
    weights = np.stack([frequency - i - j, i, j], axis=1)  # (p, 3), of the corners of one face
    number_in_face = np.full((frequency + 2, frequency + 2), -1)
    number_in_face[i, j] = np.arange(len(i))

    # A point on an edge or corner belongs to several faces: name it by the corners that have a say, in order.
    names = np.where(weights > 0, faces[:, None] * (frequency + 1) + weights[None], 0)  # (20, p, 3)
    names = np.sort(names, axis=2).reshape(-1, 3) @ (np.array([1, 1 << 20, 1 << 40]))
    _, first, number = np.unique(names, return_index=True, return_inverse=True)
    points = np.einsum("pc,fcx->fpx", weights, corners[faces]).reshape(-1, 3)[first]

    upright = np.stack([number_in_face[i, j], number_in_face[i + 1, j], number_in_face[i, j + 1]], axis=1)
    inverted = np.stack([number_in_face[i + 1, j], number_in_face[i + 1, j + 1], number_in_face[i, j + 1]], axis=1)
    small = np.concatenate([upright, inverted])
    small = small[(small >= 0).all(axis=1)]
    all_faces = small[None] + len(weights) * np.arange(len(faces))[:, None, None]
    return points / np.linalg.norm(points, axis=1, keepdims=True), number[all_faces.reshape(-1, 3)]


def _icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Twelve vertices (not of unit length) and twenty outward faces: every triple that is one edge length apart."""
    golden = 0.5 * (1.0 + math.sqrt(5.0))
    plane = np.array([[0.0, a, b * golden] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    corners = np.concatenate([np.roll(plane, shift, axis=1) for shift in range(3)])
    joined = np.isclose(np.linalg.norm(corners[:, None] - corners[None], axis=2), 2.0)
    i, j, k = np.nonzero(joined[:, :, None] & joined[None] & joined[:, None, :])
    faces = np.stack([i, j, k], axis=1)[(i < j) & (i < k)]
    a, b, c = np.moveaxis(corners[faces], 1, 0)
    return corners, faces[np.einsum("ni,ni->n", np.cross(b - a, c - a), a) > 0.0]

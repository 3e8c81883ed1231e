"""A steering wheel with details a finger can feel (for that of Redon 2002, chapter 6)."""

from __future__ import annotations

import numpy as np

from tangere.runtime import positive
from tangere.shape.generate.build.lattice import revolve, ring_grid
from tangere.shape.generate.build.pieces import Piece, divided, joined, rod
from tangere.shape.mesh.mesh import Mesh

_RADIUS, _GRIP, _HUB = 0.18, 0.016, 0.065  # of the rim's middle, of the rim, of the hub [m]


def steering_wheel(
    triangles: int = 11_000, *, logo: float = 0.002, groove: float = 0.002, name: str = "steering wheel"
) -> Mesh:
    """A steering wheel round the z axis, its face towards +z; five closed pieces that go through each other.

    On the flat face of the hub, at z = 0.01 m, a ring with a bar across it stands out by `logo`; a groove runs along
    the lower side of the rim.

    Args:
        triangles: exactly how many; even and at least 10,832.
        logo: height of the embossed logo [m].
        groove: depth of the groove [m].
    """
    positive(logo, "steering wheel: logo", below=0.01)
    positive(groove, "steering wheel: groove", below=0.5 * _GRIP)
    angles = np.deg2rad([0.0, 180.0, 270.0])
    ends = [(np.cos(angle), np.sin(angle)) for angle in angles]
    spokes = [
        rod(np.array([[0.8 * _HUB * x, 0.8 * _HUB * y, -0.002], [_RADIUS * x, _RADIUS * y, 0.0]]), 0.009, 12)
        for x, y in ends
    ]
    vertices, faces = divided("steering wheel", joined([_rim(groove), _hub(logo), *spokes]), triangles)
    return Mesh(vertices, faces, name=name)


def _rim(groove: float) -> Piece:
    """A torus whose section has a narrow dent at its lowest point."""
    around, across = 96, 24
    u = (2.0 * np.pi * np.arange(around) / around)[:, None]
    v = 2.0 * np.pi * np.arange(across) / across
    section = _GRIP - groove * np.exp(-((np.sin(0.5 * (v + 0.5 * np.pi)) / 0.12) ** 2))
    out = _RADIUS + section * np.cos(v)
    vertices = np.stack(np.broadcast_arrays(out * np.cos(u), out * np.sin(u), section * np.sin(v)), axis=-1)
    return vertices.reshape(-1, 3), ring_grid(around, across)


def _hub(logo: float) -> Piece:
    """A disc with a fine flat face on which the logo is raised."""
    face = np.linspace(0.9, 0.05, 34)
    rings = np.concatenate(
        [[[0.5, -0.03], [0.9, -0.025], [1.0, -0.01], [1.0, 0.005]], np.stack([face, 0 * face + 0.01], 1)]
    )
    vertices, faces = revolve(rings * [_HUB, 1.0], 80, first_pole=-0.03, last_pole=0.01)
    x, y = vertices[:, 0] / _HUB, vertices[:, 1] / _HUB
    distance = np.hypot(x, y)
    ring = _raised(np.abs(distance - 0.6), 0.09)
    bar = _raised(np.abs(y), 0.09) * (distance < 0.6)
    vertices[:, 2] += logo * np.maximum(ring, bar) * (vertices[:, 2] == 0.01)
    return vertices, faces


def _raised(offset: np.ndarray, half: float) -> np.ndarray:
    """1 on a stroke of half-width `half`, falling to 0 over a third of it."""
    return np.clip(3.0 * (half - offset) / half + 1.0, 0.0, 1.0)

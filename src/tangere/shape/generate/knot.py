"""The trefoil knot: a closed tube that comes close to itself (a scene of Léonard 2021, section 4.1)."""

from __future__ import annotations

import numpy as np

from tangere.runtime import positive
from tangere.shape.generate.build.sweep import sweep
from tangere.shape.generate.torus import torus_grid
from tangere.shape.mesh.mesh import Mesh

_LENGTH = 28.8263  # of the curve at scale 1
_SELF_DISTANCE = 3.64 / 3.0  # between the closest strands at scale 1


def trefoil_knot(
    triangles: int | None = None,
    *,
    grid: tuple[int, int] | None = None,
    scale: float = 3.0,
    tube: float = 1.4,
    name: str = "trefoil knot",
) -> Mesh:
    """A tube along scale (sin t + 2 sin 2t, cos t - 2 cos 2t, -sin 3t); closed. By default it has 3,960 triangles.

    Args:
        triangles: exactly how many; 2 n_u n_v, with n_u : n_v chosen near the ratio of length to girth.
        grid: (n_u, n_v) vertices along and across the tube, instead of `triangles`.
        scale: size of the curve [m].
        tube: radius of the tube [m]; strands touch at about 0.6 scale.
    """
    positive(scale, "trefoil knot: scale")
    positive(tube, "trefoil knot: tube", below=0.5 * _SELF_DISTANCE * scale)
    along, across = torus_grid("trefoil knot", triangles, grid, _LENGTH * scale / (2.0 * np.pi * tube), 3960)
    t = 2.0 * np.pi * np.arange(along) / along
    curve = [np.sin(t) + 2.0 * np.sin(2.0 * t), np.cos(t) - 2.0 * np.cos(2.0 * t), -np.sin(3.0 * t)]
    vertices, faces = sweep(scale * np.stack(curve, axis=1), tube, across, closed=True)
    return Mesh(vertices, faces, name=name)

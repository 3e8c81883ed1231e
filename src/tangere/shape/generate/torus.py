"""Tori, smooth or with bumps on the tube."""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError, fraction, positive, whole
from tangere.shape.generate.build.budget import factor_pair, solve
from tangere.shape.generate.build.lattice import ring_grid
from tangere.shape.mesh.mesh import Mesh


def torus(
    triangles: int | None = None,
    *,
    grid: tuple[int, int] | None = None,
    radius: float = 1.0,
    tube: float = 0.35,
    bumps: float = 0.0,
    name: str = "torus",
) -> Mesh:
    """A torus round the z axis; closed. Without `triangles` and `grid` it has 4,096 triangles.

    Args:
        triangles: exactly how many; 2 n_u n_v, with n_u : n_v chosen near the ratio of the two circles.
        grid: (n_u, n_v) vertices round the axis and round the tube, instead of `triangles`.
        radius: from the axis to the middle of the tube [m].
        tube: radius of the tube [m].
        bumps: the tube's radius varies by this fraction: tube (1 + bumps sin(7u + 1) cos(5v + 2)).
    """
    positive(radius, "torus: radius")
    positive(tube, "torus: tube", below=radius / (1.0 + fraction(bumps, "torus: bumps")))
    around, across = torus_grid("torus", triangles, grid, radius / tube, 4096)
    u = (2.0 * np.pi * np.arange(around) / around)[:, None]
    v = 2.0 * np.pi * np.arange(across) / across
    thickness = tube * (1.0 + bumps * np.sin(7.0 * u + 1.0) * np.cos(5.0 * v + 2.0))
    out = radius + thickness * np.cos(v)
    vertices = np.stack([out * np.cos(u), out * np.sin(u), thickness * np.sin(v)], axis=-1)
    return Mesh(vertices.reshape(-1, 3), ring_grid(around, across), name=name)


def bumpy_torus(nu: int = 264, nv: int = 132, *, name: str = "bumpy torus") -> Mesh:
    """The torus of the rigid benchmarks: radius 1 m, tube 0.35 m with bumps of a tenth; 69,696 triangles by default.

    Args:
        nu, nv: vertices round the axis and round the tube; 2 nu nv triangles.
    """
    return torus(grid=(nu, nv), radius=1.0, tube=0.35, bumps=0.1, name=name)


def torus_grid(
    shape: str, triangles: int | None, grid: tuple[int, int] | None, aspect: float, default: int
) -> tuple[int, int]:
    """Vertices along and across a closed tube, from either a budget or a grid."""
    if triangles is not None and grid is not None:
        raise InputError(f"{shape}: give triangles or grid, not both")
    if grid is not None:
        return whole(grid[0], f"{shape}: grid[0]", least=3), whole(grid[1], f"{shape}: grid[1]", least=3)
    return solve(
        shape,
        default if triangles is None else triangles,
        lambda count: None if count % 2 else factor_pair(count // 2, aspect, least=(3, 3)),
    )

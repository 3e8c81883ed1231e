"""A pot, as a stand-in for the teapot: an open surface whose triangles share nothing.

Files from modellers often come as triangle soup, every triangle with its own three vertices, with borders and with
sheets that cross each other. The pot has all of it, as the teapot of Redon 2002 had.
"""

from __future__ import annotations

import math

import numpy as np

from tangere.runtime import fraction, positive
from tangere.shape.generate.build.budget import factor_pair, solve
from tangere.shape.generate.build.lattice import revolve
from tangere.shape.generate.build.sweep import sweep
from tangere.shape.mesh import Mesh

__all__ = ["pot"]

_GIRTH_TO_HEIGHT = 4.0  # of the body, about: how many more vertices go round than up
_SHARE_OF_TUBES = 0.2  # of the triangles, for spout and handle together


def pot(
    triangles: int = 3000,
    *,
    radius: float = 1.0,
    height: float = 1.4,
    thickness: float = 0.0,
    shared: bool = False,
    name: str = "pot",
) -> Mesh:
    """A pot that stands on z = 0 and is open above.

    Args:
        triangles: exactly how many.
        radius: of the belly [m].
        height: [m].
        thickness: of the wall, as a fraction of `radius`. 0 is a sheet without thickness, with a spout and a handle
            whose ends go through the wall; more is a solid body without them.
        shared: whether neighbouring triangles share vertices. If not, no two triangles have an edge in common; if so,
            and with a thickness, the pot is closed.
    """
    positive(radius, "pot: radius")
    positive(height, "pot: height")
    if fraction(thickness, "pot: thickness"):
        vertices, faces = _solid(triangles, radius, height, thickness * radius)
    else:
        vertices, faces = _sheets(triangles, radius, height)
    if not shared:
        vertices, faces = vertices[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)
    return Mesh(vertices, faces, name=name)


def _solid(triangles: int, radius: float, height: float, wall: float) -> tuple[np.ndarray, np.ndarray]:
    """Up the outside, over the rim and down the inside: 2 around rings triangles."""
    positive(wall, "pot: thickness times radius", below=min(_belly(0.0, radius), height))
    around, rings = solve(
        "pot", triangles, lambda n: None if n % 2 else factor_pair(n // 2, 0.5 * _GIRTH_TO_HEIGHT, least=(3, 4))
    )
    up, down = np.linspace(0.0, 1.0, rings - rings // 2), np.linspace(1.0, wall / height, rings // 2)
    outside = np.stack([_belly(up, radius), height * up], axis=1)
    inside = np.stack([_belly(down, radius) - wall, height * down], axis=1)
    return revolve(np.concatenate([outside, inside]), around, first_pole=0.0, last_pole=wall)


def _sheets(triangles: int, radius: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    around, rings, sides, spout_bands, handle_bands = solve("pot", triangles, _sheet_plan)
    up = np.linspace(0.0, 1.0, rings)
    body = revolve(np.stack([_belly(up, radius), height * up], axis=1), around, first_pole=0.0)

    t = np.linspace(0.0, 1.0, spout_bands + 1)[:, None]
    start, bend, end = np.array([[0.9, 0.0, 0.35], [1.5, 0.0, 0.4], [1.6, 0.0, 0.95]]) * [radius, radius, height]
    curve = (1.0 - t) ** 2 * start + 2.0 * t * (1.0 - t) * bend + t**2 * end
    spout = sweep(curve, radius * (0.18 - 0.08 * t[:, 0]), sides, closed=False)

    angle = np.pi * (0.5 + np.linspace(0.0, 1.0, handle_bands + 1))
    arc = np.stack([radius * (0.9 * np.cos(angle) - 0.8), 0.0 * angle, height * (0.53 + 0.27 * np.sin(angle))], axis=1)
    handle = sweep(arc, 0.07 * radius, sides, closed=False)

    parts = [body, spout, handle]
    first = np.cumsum([0] + [len(vertices) for vertices, _ in parts[:-1]])
    return (
        np.concatenate([vertices for vertices, _ in parts]),
        np.concatenate([faces + offset for (_, faces), offset in zip(parts, first, strict=True)]),
    )


def _sheet_plan(triangles: int) -> tuple[int, int, int, int, int] | None:
    """Points round the body, its rings, points round the tubes, bands of the spout and of the handle.

    The body has around (2 rings - 1) triangles, each band of a tube 2 sides. Among the tubes that take a fair share and
    are a few times longer than wide, the first that leaves the body a number with a suitable odd factor is taken.
    """
    fair = [
        (abs(2 * sides * bands / triangles - _SHARE_OF_TUBES), sides, bands)
        for sides in range(3, max(4, math.isqrt(triangles) // 3))
        for bands in range(max(2, 2 * sides), 6 * sides)
        if 0.5 < 2 * sides * bands / triangles / _SHARE_OF_TUBES < 1.5
    ]
    for _, sides, bands in sorted(fair):
        rest = triangles - 2 * sides * bands
        wanted = math.sqrt(2.0 * rest / _GIRTH_TO_HEIGHT)  # around (2 rings) = rest and around = ratio rings
        odd = [n for n in range(3, math.isqrt(rest) + 1, 2) if rest % n == 0 and 0.5 < n / wanted < 2.0]
        if odd:
            rows = min(odd, key=lambda n: abs(n - wanted))
            return rest // rows, (rows + 1) // 2, sides, bands // 2, bands - bands // 2
    return None


def _belly(up: np.ndarray | float, radius: float):
    """Radius of the body at a fraction of its height: widest in the middle."""
    return radius * (0.65 + 0.35 * np.sin(np.pi * (0.15 + 0.7 * np.asarray(up))))

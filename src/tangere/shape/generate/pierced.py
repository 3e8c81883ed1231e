"""Flat parts with a hole through them: plates with a round or polygonal hole, gears with a bore."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tangere.runtime import InputError, positive, positives, whole
from tangere.shape.generate.build.budget import factor_pair, solve
from tangere.shape.generate.build.lattice import ring_grid
from tangere.shape.mesh.mesh import Mesh


def plate_with_hole(
    triangles: int = 512,
    *,
    size: Sequence[float] = (2.0, 2.0, 0.5),
    radius: float = 0.5,
    sides: int | None = None,
    name: str = "plate with hole",
) -> Mesh:
    """A rectangular plate in the xy plane with a hole along z through its middle, for `peg`; closed, centred.

    Args:
        triangles: exactly how many; 4 sides (layers) for `sides` a multiple of 4 and at least 2 layers of triangles.
        size: of the plate along x, y and z [m].
        radius: of the circle through the corners of the hole [m]. A peg with as many sides has its corners at the same
            angles: with radii r and r + c the clearance between their flat sides is c cos(pi / sides).
        sides: of the hole: 4 makes it square; chosen from the budget if not given.
    """
    shape = "plate with hole"
    x, y, z = positives(size, f"{shape}: size", 3)
    positive(radius, f"{shape}: radius", below=0.5 * min(x, y))
    if sides is not None and whole(sides, f"{shape}: sides", least=4) % 4:
        raise InputError(f"{shape}: sides must be a multiple of 4, not {sides}")
    width = 0.5 * min(x, y) - radius
    aspect = 0.5 * np.pi * radius / (width + z)

    def plan(count: int) -> tuple[int, int] | None:
        if sides is not None:
            layers, rest = divmod(count, 4 * sides)
            return (sides // 4, layers) if not rest and layers >= 2 else None
        return None if count % 16 else factor_pair(count // 16, aspect, least=(1, 2))

    quarter, layers = solve(shape, triangles, plan)
    angle = 0.5 * np.pi * (np.arange(4 * quarter) / quarter - 0.5)
    hole = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    corners = 0.5 * np.array([[x, -y], [x, y], [-x, y], [-x, -y]])
    return _pierced(_divided(corners, quarter), hole, z, layers, width, name)


def gear(
    triangles: int | None = None,
    *,
    teeth: int = 12,
    radius: float = 1.0,
    tooth_depth: float = 0.2,
    bore: float = 0.3,
    thickness: float = 0.3,
    name: str = "gear",
) -> Mesh:
    """A spur gear round the z axis with straight-sided teeth, one of them at angle 0, and a bore; closed, centred.

    Teeth take 0.3 of the pitch at their tips and 0.6 at their roots. Without `triangles` it has 32 teeth triangles.

    Args:
        triangles: exactly how many; 16 teeth q l, with each side of a tooth cut into q pieces and l >= 2 layers.
        teeth: how many, at least 3.
        radius: at the tips of the teeth [m].
        tooth_depth: from tip to root [m].
        bore: radius of the hole [m].
        thickness: along z [m].
    """
    whole(teeth, "gear: teeth", least=3)
    root = positive(radius, "gear: radius") - positive(tooth_depth, "gear: tooth_depth", below=radius)
    positive(bore, "gear: bore", below=root * np.cos(np.pi / teeth))
    width = root - bore

    def plan(count: int) -> tuple[int, int] | None:
        product, rest = divmod(count, 16 * teeth)
        return None if rest else factor_pair(product, 0.5 * np.pi * radius / teeth / (width + thickness), least=(1, 2))

    pieces, layers = solve("gear", 32 * teeth if triangles is None else triangles, plan)
    within = np.array([-0.3, -0.15, 0.15, 0.3])  # of the pitch: root, tip, tip, root
    angle = (2.0 * np.pi / teeth * (np.arange(teeth)[:, None] + within)).ravel()
    distance = np.tile([root, radius, radius, root], teeth)
    outline = _divided(distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), pieces)
    hole = outline * (bore / np.linalg.norm(outline, axis=1, keepdims=True))
    return _pierced(outline, hole, positive(thickness, "gear: thickness"), layers, width, name)


def _divided(corners: np.ndarray, pieces: int) -> np.ndarray:
    """A closed polygon with every side cut into equal pieces, corners included."""
    share = (np.arange(pieces) / pieces)[:, None]
    points = corners[:, None] * (1.0 - share) + np.roll(corners, -1, axis=0)[:, None] * share
    return points.reshape(-1, 2)


def _pierced(outline: np.ndarray, hole: np.ndarray, thickness: float, layers: int, width: float, name: str) -> Mesh:
    """The solid between two counter-clockwise loops (k, 2) with corresponding points; 4 k layers triangles.

    `layers` is shared out between the flat faces (about `width` wide) and the walls (`thickness` high).
    """
    walls = min(max(round(layers * thickness / (thickness + width)), 1), layers - 1)
    flats = layers - walls
    up, inwards = np.arange(walls) / walls, np.arange(flats) / flats
    # Once round the cut through the solid: up the outline, in over the top, down the hole, out under the bottom.
    share = np.concatenate([0.0 * up, inwards, 1.0 + 0.0 * up, 1.0 - inwards])
    height = np.concatenate([up - 0.5, 0.5 + 0.0 * inwards, 0.5 - up, -0.5 + 0.0 * inwards]) * thickness
    flat = outline[:, None] * (1.0 - share)[:, None] + hole[:, None] * share[:, None]
    vertices = np.concatenate([flat, np.broadcast_to(height[:, None], (*flat.shape[:2], 1))], axis=2)
    return Mesh(vertices.reshape(-1, 3), ring_grid(len(outline), len(share)), name=name)

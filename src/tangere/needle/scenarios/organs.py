"""Organs to put needles into: a rounded solid of tetrahedra, vessels that branch inside, a membrane.

Question: what is there to try a needle on, without the files of a patient?
Method:   a ball filled with tetrahedra, made longer, bent and thinner on one side by a smooth map; vessels are grown in
          the ball, where it is easy to say what is inside, and mapped along.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tangere.needle.anatomy import Vessel
from tangere.runtime import InputError, positive, three_numbers
from tangere.shape.tets import TetMesh, solid_block

#: Vessels stay within this part of the ball.
_INSIDE = 0.86
_PIECES = 5


def bent(
    size: tuple[float, float, float], *, taper: float = 0.3, bow: float = 0.15
) -> Callable[[np.ndarray], np.ndarray]:
    """A map from the unit ball to something like an organ: half axes [m], thinner towards +x, its ends lower."""

    def shaped(u: np.ndarray) -> np.ndarray:
        x, y, z = u[..., 0], u[..., 1], u[..., 2]
        thin = 1.0 - taper * x
        return np.stack([x, y * thin, z * thin - bow * x * x], axis=-1) * np.array(size)

    return shaped


def organ(
    shaped: Callable[[np.ndarray], np.ndarray], cells: tuple[int, int, int] = (12, 10, 8), *, name: str = "organ"
) -> TetMesh:
    """The image of the unit ball under a smooth map, filled with tetrahedra: six for each of the cells.

    Args:
        shaped: takes points (n, 3) of the unit ball to those of the organ [m].
    """
    block = solid_block(cells, size=(2.0, 2.0, 2.0), mirrored=True)
    x, y, z = block.vertices.T
    # A cube as a ball: planes through the axes stay, and each side becomes a part of the sphere.
    ball = np.stack(
        [
            x * np.sqrt(1.0 - y * y / 2 - z * z / 2 + y * y * z * z / 3),
            y * np.sqrt(1.0 - z * z / 2 - x * x / 2 + z * z * x * x / 3),
            z * np.sqrt(1.0 - x * x / 2 - y * y / 2 + x * x * y * y / 3),
        ],
        axis=-1,
    )
    return TetMesh(shaped(ball), block.tets, name=name)


def vessel_tree(
    shaped: Callable[[np.ndarray], np.ndarray],
    root: tuple[float, float, float],
    direction: tuple[float, float, float],
    *,
    radius: float = 2e-3,
    generations: int = 4,
    seed: int = 0,
) -> list[Vessel]:
    """Vessels that branch in two, each thinner than the one before (Murray's law: cubes of radii add up).

    Args:
        root, direction: where it begins and leads to, in the unit ball.
        radius: of the first one [m].
        seed: of how branches turn.
    """
    rng, vessels = np.random.default_rng(seed), []
    positive(radius, "vessel_tree: radius")

    def grow(start: np.ndarray, way: np.ndarray, length: float, thick: float, left: int) -> None:
        points = [start]
        for _ in range(_PIECES):
            way = way + 0.18 * rng.normal(size=3)
            way /= np.linalg.norm(way)
            there = points[-1] + length / _PIECES * way
            if np.linalg.norm(there) > _INSIDE:
                break
            points.append(there)
        if len(points) < 2:
            return
        vessels.append(Vessel(shaped(np.array(points)), radius=thick, name=f"vessel {len(vessels)}"))
        if left > 1 and len(points) == _PIECES + 1:
            aside = np.cross(way, rng.normal(size=3))
            aside /= np.linalg.norm(aside)
            for side in (0.65, -0.65):
                grow(points[-1], way + side * aside, 0.78 * length, thick / 2 ** (1 / 3), left - 1)

    begin, ahead = np.array(three_numbers(root, "vessel_tree: root")), np.array(direction, float)
    if np.linalg.norm(begin) > _INSIDE:
        raise InputError(f"vessel_tree: root {root} is not well inside the unit ball")
    grow(begin, ahead / np.linalg.norm(ahead), 0.5, radius, generations)
    return vessels


def surface_point(solid: TetMesh, x: float, y: float) -> np.ndarray:
    """(3,) the highest point of a solid's surface above x and y [m]."""
    corners = solid.surface.vertices[solid.surface.faces]
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    place = np.array([x, y])

    def turn(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return (p[:, 0] - x) * (q[:, 1] - y) - (p[:, 1] - y) * (q[:, 0] - x)

    weights = np.stack([turn(b, c), turn(c, a), turn(a, b)], axis=1)
    total = weights.sum(axis=1)
    over = (total > 0.0) & (weights >= -1e-12 * np.abs(total)[:, None]).all(axis=1)  # seen from above
    if not over.any():
        raise InputError(f"surface_point: {place.tolist()} is not below or above solid {solid.name!r}")
    points = np.einsum("nk,nkd->nd", weights[over] / total[over, None], corners[over])
    return points[np.argmax(points[:, 2])]

"""Solids built from boxes that are added and cut away one after the other, and their square holes made round.

The boxes' sides span a lattice; the last box that covers a cell says whether it is solid, and the surface is where
solid cells end. Boxes must not leave two solid cells that share only an edge: that surface would not be manifold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tangere.shape.generate.build.pieces import Piece

Box = tuple[bool, tuple[float, float, float], tuple[float, float, float]]  #: solid or not, lowest and highest corner


def add(low: Sequence[float], high: Sequence[float]) -> Box:
    """A box that becomes solid [m]."""
    return True, tuple(low), tuple(high)


def cut(low: Sequence[float], high: Sequence[float]) -> Box:
    """A box that becomes empty [m]."""
    return False, tuple(low), tuple(high)


def cut_holes(axis: int, centres: np.ndarray, radius: float, low: float, high: float) -> list[Box]:
    """Square holes along an axis from `low` to `high`, in quarters, so that `rounded` makes at least octagons of them.

    Args:
        axis: 0, 1 or 2.
        centres: in the two other coordinates, in the order of the axes, shape (k, 2) [m].
        radius: half the side [m].
    """
    boxes = []
    for centre in np.asarray(centres, float):
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            start, end = centre + radius * (np.array(corner) - 1.0), centre + radius * np.array(corner)
            boxes.append(cut(np.insert(start, axis, low), np.insert(end, axis, high)))
    return boxes


def block_solid(boxes: Sequence[Box]) -> Piece:
    """The surface of what the boxes leave solid, outwards."""
    corners = np.round([[low, high] for _, low, high in boxes], 9)  # what was meant as one side becomes one
    lines = [np.unique(corners[:, :, k]) for k in range(3)]
    shape = [len(line) for line in lines]
    solid = np.zeros([n + 1 for n in shape], bool)  # with an empty layer all round
    for (keep, _, _), (low, high) in zip(boxes, corners, strict=True):
        span = [slice(*(np.searchsorted(line, [a, b]) + 1)) for line, a, b in zip(lines, low, high, strict=True)]
        solid[tuple(span)] = keep

    quads = []
    for axis in range(3):
        filled = np.moveaxis(solid, (axis, (axis + 1) % 3, (axis + 2) % 3), (0, 1, 2))
        step = np.diff(filled.astype(np.int8), axis=0)
        for sign in (-1, 1):  # -1: solid ends here and the surface looks along the axis
            i, j, k = np.nonzero(step == sign)
            around = [(0, 0), (1, 0), (1, 1), (0, 1)][::-sign]
            places = np.stack([np.stack([i, j + u - 1, k + v - 1], axis=1) for u, v in around], axis=1)
            quads.append(np.roll(places, axis, axis=2))
    places = np.concatenate(quads)
    numbers = np.ravel_multi_index(tuple(np.moveaxis(places, 2, 0)), shape)
    used, faces = np.unique(numbers, return_inverse=True)
    index = np.unravel_index(used, shape)
    vertices = np.stack([line[i] for line, i in zip(lines, index, strict=True)], axis=1)
    faces = faces.reshape(-1, 4)
    return vertices, np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])


def rounded(vertices: np.ndarray, axis: int, centres: np.ndarray, radius: float) -> np.ndarray:
    """The vertices with the walls of square holes drawn in to circles; see `cut_holes` for the arguments.

    Only vertices on the wall of a hole move, and towards its middle, so no triangle can turn over.
    """
    plane = [k for k in range(3) if k != axis]
    result = vertices.copy()
    for centre in np.asarray(centres, float):
        offset = vertices[:, plane] - centre
        wall = np.abs(np.abs(offset).max(axis=1) - radius) < 1e-9 * radius
        result[np.ix_(wall, plane)] = centre + offset[wall] * (
            radius / np.linalg.norm(offset[wall], axis=1, keepdims=True)
        )
    return result

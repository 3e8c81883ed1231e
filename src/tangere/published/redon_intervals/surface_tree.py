"""A tree of oriented boxes over the pieces of a smooth surface: the filter before its interval search."""

from __future__ import annotations

import numpy as np

from tangere.bvh.obb.node import ObbNode
from tangere.published.redon_intervals.parametric_surfaces import SurfacePieces

#: More than rounding to float32 takes away, relative and absolute.
_UP = 1.0 + 2.0**-22
_TINY = 1e-37
#: Dot products of axes rounded to float32 are off by less.
_SKEW = 2.0**-22


def surface_tree(pieces: SurfacePieces) -> np.ndarray:
    """Records of `ObbNode` in preorder, leaf k with `triangle` the number of its piece; as deep as log2 of the pieces.

    Pieces are halved along a curve that keeps neighbours together; all boxes of one level are made at once.
    """
    order = np.lexsort((_along_curve(pieces.domain), pieces.patch))
    nodes = np.zeros(2 * len(order) - 1, ObbNode.numpy_dtype())
    level = np.array([[0, 0, len(order)]])  # place of the node, and its range in the order
    while len(level):
        place, begin, end = level.T
        for size in np.unique(end - begin):
            those = end - begin == size
            members = order[begin[those, None] + np.arange(size)]
            nodes[place[those]] = _boxes(pieces.net[members].reshape(those.sum(), -1, 3))
            nodes["triangle"][place[those]] = members[:, 0] if size == 1 else -1
        inner = end - begin > 1
        nodes["right"][place[~inner]] = -1
        place, begin, end = place[inner], begin[inner], end[inner]
        middle = (begin + end + 1) // 2
        right = place + 2 * (middle - begin)
        nodes["right"][place] = right
        level = np.concatenate([np.stack([place + 1, begin, middle], 1), np.stack([right, middle, end], 1)])
    return nodes


def _along_curve(domain: np.ndarray) -> np.ndarray:
    """Morton codes of the pieces' corners."""
    u, v = (domain[:, [0, 2]] * 1024).astype(np.int64).T
    code = np.zeros(len(domain), np.int64)
    for bit in range(10):
        code |= ((u >> bit) & 1) << (2 * bit) | ((v >> bit) & 1) << (2 * bit + 1)
    return code


def _boxes(points: np.ndarray) -> np.ndarray:
    """Records of boxes round sets of points (n, k, 3), along the eigenvectors of their covariance, rounded outward."""
    records = np.zeros(len(points), ObbNode.numpy_dtype())
    offsets = points - points.mean(axis=1, keepdims=True)
    _, vectors = np.linalg.eigh(np.swapaxes(offsets, 1, 2) @ offsets)
    records["axes"] = vectors.astype(np.float32)
    axes = records["axes"].astype(np.float64)
    along = points @ axes
    centre = np.einsum("nij,nj->ni", axes, 0.5 * (along.min(axis=1) + along.max(axis=1)))
    records["centre"] = centre.astype(np.float32)
    # Extents along the rounded axes about the rounded centre: only the projections themselves still round.
    half = np.abs((points - records["centre"].astype(np.float64)[:, None]) @ axes).max(axis=1)
    slack = _SKEW * half.sum(axis=1) + 2.0**-48 * np.abs(points).max(axis=(1, 2))
    half = (half + slack[:, None]) * _UP + _TINY
    records["half"] = np.nextafter(half.astype(np.float32), np.float32(np.inf))
    records["radius"] = np.linalg.norm(records["half"].astype(np.float64), axis=1) * _UP * _UP
    return records

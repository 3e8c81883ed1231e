"""Are two rigid bodies nearer than a separation at the start of their motion?

Exact for the nearest triangles, in their poses as they are given; which triangles these are is known to rounding.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbTree
from tangere.query.distance.traversal import BOUNDS, NUMBERS, TRIANGLE_A, TRIANGLE_B, VECTORS, find_nearest
from tangere.query.first_contact.primitives.exact_distance import triangles_nearer
from tangere.query.intersection.posed import as_posed, paired
from tangere.runtime import launch
from tangere.shape import Moving

#: A distance that differs from the separation by more than this part of the coordinates needs no exact arithmetic.
_CLEAR = 1e-9


def starts_nearer(a: Moving, b: Moving, separation: float, device: wp.Device) -> bool:
    """Whether bodies that do not meet are nearer than the separation at t = 0."""
    trees = ObbTree.of(a.shape, device), ObbTree.of(b.shape, device)
    poses = paired(as_posed(a, 0.0), as_posed(b, 0.0), device)
    numbers = wp.zeros((1, NUMBERS), dtype=wp.int32, device=device)
    vectors = wp.zeros((1, VECTORS), dtype=wp.vec3d, device=device)
    inputs = [trees[0].nodes, trees[1].nodes, trees[0].corners, trees[1].corners, poses]
    launch(find_nearest, 1, inputs, [numbers, vectors], device=device)
    apart = vectors.numpy()[0, BOUNDS, 1]
    corners = [_corners(a, numbers.numpy()[0, TRIANGLE_A]), _corners(b, numbers.numpy()[0, TRIANGLE_B])]
    if abs(apart - separation) > _CLEAR * float(np.abs(corners).max()):
        return bool(apart < separation)
    return triangles_nearer(*corners, separation)


def _corners(body: Moving, triangle: int) -> np.ndarray:
    """(3, 3) fractions: where the corners of a triangle are at t = 0."""
    exact = np.vectorize(Fraction, otypes=[object])
    pose, corners = exact(body.motion.pose(0.0)), exact(body.shape.vertices[body.shape.faces[triangle]])
    return corners @ pose[:3, :3].T + pose[:3, 3]

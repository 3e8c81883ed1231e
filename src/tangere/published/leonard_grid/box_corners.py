"""From codes of boxes to places and back: grids are laid out in space, and boxes are kept as codes."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import Box
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


def codes_of(numbers: np.ndarray) -> np.ndarray:
    """The codes, int32, of numbers in the frame of a scene, to the nearest: see `bvh.lbvh.moving_aabb`."""
    bits = np.asarray(numbers, np.float32).view(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) >> 1


@wp.func
def number_of(code: int) -> wp.float64:
    """The number a code stands for, in the frame of the scene."""
    if code < 0:
        return -wp.float64(wp.cast((-code) << 1, wp.float32))
    return wp.float64(wp.cast(code << 1, wp.float32))


@wp.func
def lower_corner(box: Box) -> wp.vec3d:
    return wp.vec3d(number_of(box[0]), number_of(box[1]), number_of(box[2]))


@wp.func
def upper_corner(box: Box) -> wp.vec3d:
    return -wp.vec3d(number_of(box[3]), number_of(box[4]), number_of(box[5]))

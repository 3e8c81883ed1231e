"""Swept boxes in float32, rounded outward: what encloses a vertex, and a piece of mesh, during part of a step.

Positions are moved to a local origin and scaled by a power of two first, so that neither a far nor a tiny scene loses
resolution. All rounding happens for vertices; boxes of edges and faces are minima and maxima of vertex boxes, which are
exact. Boxes lie side by side in one array: lower corner of box i at 2i, upper corner at 2i + 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

__all__ = ["Frame", "boxes_meet", "boxes_meet_flag", "vertex_boxes"]

#: Two roundings to float32 (conversion, subtraction) of 2^-24 each, and a little more.
ROUND_OUT = wp.constant(wp.float32(1.2e-7))
#: Below the smallest normal float32 the relative margin is none.
ROUND_OUT_TINY = wp.constant(wp.float32(1.0e-37))
LARGEST = wp.constant(wp.float64(1.0e38))
#: Of subnormal coordinates the error above rounds to nothing.
UNDERFLOW = wp.constant(wp.float64(1.0e-320))
#: A lerp, a difference and a scaling, each at most 4 roundings of the largest coordinate.
LERP_ERROR = wp.constant(wp.float64(16.0 * 2.0**-53))


@dataclass(frozen=True)
class Frame:
    """Local origin and scale in which float32 boxes are kept."""

    origin: np.ndarray  #: (3,) [m]
    scale: float  #: a power of two, about 1 / extent

    @staticmethod
    def around(bounds: np.ndarray) -> Frame:
        """The frame for things within bounds (2, 3), roughly."""
        extent = float(np.max(bounds[1] - bounds[0]))
        exponent = math.frexp(extent)[1] if extent > 0.0 else 0
        return Frame(bounds[0] + 0.5 * (bounds[1] - bounds[0]), 2.0 ** -max(min(exponent, 1000), -1000))


def vertex_boxes(start: wp.array, end: wp.array, until: float, margin: float, frame: Frame) -> wp.array:
    """Box of each vertex over times 0 … `until` of its way from start to end, grown by `margin` [m] all around."""
    boxes = wp.empty(2 * len(start), dtype=wp.vec3, device=start.device)
    inputs = [start, end, until, margin, wp.vec3d(*frame.origin), frame.scale]
    launch(_vertex_boxes, len(start), inputs, [boxes], device=start.device)
    return boxes


@wp.func
def boxes_meet(lower_a: wp.vec3, upper_a: wp.vec3, lower_b: wp.vec3, upper_b: wp.vec3) -> bool:
    return (
        lower_a[0] <= upper_b[0]
        and lower_b[0] <= upper_a[0]
        and lower_a[1] <= upper_b[1]
        and lower_b[1] <= upper_a[1]
        and lower_a[2] <= upper_b[2]
        and lower_b[2] <= upper_a[2]
    )


@wp.func
def boxes_meet_flag(lower_a: wp.vec3, upper_a: wp.vec3, lower_b: wp.vec3, upper_b: wp.vec3) -> int:
    """1 where the boxes meet, else 0; without branches, for tests whose outcome nobody can predict."""
    return (
        int(lower_a[0] <= upper_b[0])
        & int(lower_b[0] <= upper_a[0])
        & int(lower_a[1] <= upper_b[1])
        & int(lower_b[1] <= upper_a[1])
        & int(lower_a[2] <= upper_b[2])
        & int(lower_b[2] <= upper_a[2])
    )


@wp.func
def below(x: wp.float64) -> wp.float32:
    """A float32 not above x."""
    y = wp.float32(wp.clamp(x, -LARGEST, LARGEST))
    return y - wp.abs(y) * ROUND_OUT - ROUND_OUT_TINY


@wp.func
def above(x: wp.float64) -> wp.float32:
    """A float32 not below x."""
    y = wp.float32(wp.clamp(x, -LARGEST, LARGEST))
    return y + wp.abs(y) * ROUND_OUT + ROUND_OUT_TINY


@wp.kernel
def _vertex_boxes(
    first: int,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    until: wp.float64,
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    boxes: wp.array[wp.vec3],
):
    i = first + wp.tid()
    a = start[i]
    b = end[i]
    lower = wp.vec3()
    upper = wp.vec3()
    for k in range(3):
        reached = a[k] * (wp.float64(1.0) - until) + b[k] * until
        error = LERP_ERROR * (wp.abs(a[k]) + wp.abs(b[k]) + wp.abs(origin[k]) + margin) + margin + UNDERFLOW
        lower[k] = below((wp.min(a[k], reached) - origin[k] - error) * scale)
        upper[k] = above((wp.max(a[k], reached) - origin[k] + error) * scale)
    boxes[2 * i] = lower
    boxes[2 * i + 1] = upper

"""Moving boxes, rounded outward: what encloses a vertex, and a piece of mesh, during part of a step.

A moving box is a box where the part begins and one where it ends. In between its corners go along straight lines; as
vertices do so too, it holds its piece all the time. Two moving boxes stay apart if one axis separates them, the same
way round, at both ends. So pieces that move together have boxes no larger than if they were at rest, where a box swept
over the whole way would meet everything on it (of the edge pairs of a cloth 27 % are left, of two gliding tori 15 %).

Positions are moved to a local origin and scaled by a power of two first, so that neither a far nor a tiny scene loses
resolution, rounded to float32 and written as integers: half the bits of the number, with its sign. That keeps the
order, and leaves room for a sum, so x > y is `code(x) + code(-y) > 0`; vector units compare and merge integers faster,
as they need not think of NaN. All rounding happens for vertices; boxes of edges and faces are minima of vertex boxes,
exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Lower corner and negated upper corner at the beginning, then both at the end: the union of two is their minimum.
MovingBox = wp.types.vector(length=12, dtype=wp.int32)
#: Boxes lie eight side by side as well, twelve rows of one number each: the vector unit tests all eight at once.
LANES = wp.constant(8)
#: One number of each of eight boxes.
Lanes = wp.types.vector(length=LANES, dtype=wp.int32)
#: Vertices worth a thread: one takes some 15 ns.
GRAIN = 8192

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


def vertex_boxes(
    start: wp.array, end: wp.array, until: float, margin: float, frame: Frame, into: wp.array | None = None
) -> wp.array:
    """Box of each vertex over times 0 … `until` of its way from start to end, grown by `margin` [m] all around.

    `into`: an array for them, else there is a new one.
    """
    boxes = wp.empty(len(start), dtype=MovingBox, device=start.device) if into is None else into
    inputs = [start, end, until, margin, wp.vec3d(*frame.origin), frame.scale]
    launch(_vertex_boxes, len(start), inputs, [boxes], device=start.device, grain=GRAIN)
    return boxes


@wp.func
def boxes_meet(a: MovingBox, b: MovingBox) -> bool:
    """False if one axis separates the boxes all the time."""
    return not (
        (a[0] + b[3] > 0 and a[6] + b[9] > 0)
        or (b[0] + a[3] > 0 and b[6] + a[9] > 0)
        or (a[1] + b[4] > 0 and a[7] + b[10] > 0)
        or (b[1] + a[4] > 0 and b[7] + a[10] > 0)
        or (a[2] + b[5] > 0 and a[8] + b[11] > 0)
        or (b[2] + a[5] > 0 and b[8] + a[11] > 0)
    )


@wp.func
def apart_in_lanes(box: MovingBox, rows: wp.array[Lanes], at: int) -> Lanes:
    """Positive for those of the eight boxes in rows at … at + 11 that one axis separates from `box` all the time."""
    apart = wp.min(Lanes(box[0]) + rows[at + 3], Lanes(box[6]) + rows[at + 9])
    apart = wp.max(apart, wp.min(Lanes(box[1]) + rows[at + 4], Lanes(box[7]) + rows[at + 10]))
    apart = wp.max(apart, wp.min(Lanes(box[2]) + rows[at + 5], Lanes(box[8]) + rows[at + 11]))
    apart = wp.max(apart, wp.min(Lanes(box[3]) + rows[at], Lanes(box[9]) + rows[at + 6]))
    apart = wp.max(apart, wp.min(Lanes(box[4]) + rows[at + 1], Lanes(box[10]) + rows[at + 7]))
    return wp.max(apart, wp.min(Lanes(box[5]) + rows[at + 2], Lanes(box[11]) + rows[at + 8]))


@wp.func
def code_below(x: wp.float64) -> int:
    """The code of a number not above x."""
    y = wp.float32(wp.clamp(x, -LARGEST, LARGEST))
    y = y - wp.abs(y) * ROUND_OUT - ROUND_OUT_TINY
    bits = wp.cast(y, wp.int32)
    if bits < 0:
        bits = -(bits & 0x7FFFFFFF)
    return bits >> 1


@wp.func
def resting_box(p: wp.vec3d, margin: wp.float64, origin: wp.vec3d, scale: wp.float64) -> MovingBox:
    """The box of a vertex that rests, as `vertex_boxes` has it.

    With a negative margin it is turned inside out, and meets what is grown by as much only where that comes nearer.
    """
    box = MovingBox()
    for k in range(3):
        error = LERP_ERROR * (wp.float64(2.0) * wp.abs(p[k]) + wp.abs(origin[k]) + wp.abs(margin)) + margin + UNDERFLOW
        box[k] = code_below((p[k] - origin[k] - error) * scale)
        box[3 + k] = code_below((origin[k] - p[k] - error) * scale)
        box[6 + k] = box[k]
        box[9 + k] = box[3 + k]
    return box


@wp.kernel
def _vertex_boxes(
    first: int,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    until: wp.float64,
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    boxes: wp.array[MovingBox],
):
    i = first + wp.tid()
    a = start[i]
    b = end[i]
    box = MovingBox()
    for k in range(3):
        reached = a[k] * (wp.float64(1.0) - until) + b[k] * until
        error = LERP_ERROR * (wp.abs(a[k]) + wp.abs(b[k]) + wp.abs(origin[k]) + margin) + margin + UNDERFLOW
        box[k] = code_below((a[k] - origin[k] - error) * scale)
        box[3 + k] = code_below((origin[k] - a[k] - error) * scale)
        box[6 + k] = code_below((reached - origin[k] - error) * scale)
        box[9 + k] = code_below((origin[k] - reached - error) * scale)
    boxes[i] = box

"""Roots of many functions in an interval, by halving it: what the interval engine does in time, for any function.

Question: in which short intervals can a function be zero?
Method:   an interval is dropped where the inclusion of the function does not hold zero, else halved, left half first,
          until it is short (Redon 2002, section 3.2).
Sound:    no root is missed, whatever its multiplicity.
Known as: interval bisection (Moore 1966).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.geometry.intervals.arithmetic import excludes_zero
from tangere.runtime import SOUND, InputError, choose_device, collect, reserve_slots

wp.set_module_options(SOUND)

#: Bisection of one function holds at most this many pending halves; the width cannot be halved more often.
DEPTH = 64
Waiting = wp.types.vector(length=DEPTH, dtype=wp.float64)


def isolate_roots(inclusion: wp.Function, parameters, start: float, end: float, width: float, *, device=None):
    """Intervals of at most `width` that together hold every root of each function in [start, end].

    Bisection, left half first; a half is dropped only where the inclusion function proves that it has no root, so no
    root is missed, whatever its multiplicity. Where a function vanishes on a piece, the answers cover the piece.

    Args:
        inclusion: `@wp.func (interval: vec2d, parameters: vec4d) -> vec2d`, an enclosure of the function over interval.
        parameters: one row a function, shape (n, 4).
        width: of the intervals to report; must be above rounding of the ends.

    Returns:
        The number of the function of each interval, shape (m,), and the intervals, shape (m, 2), in time order.
    """
    rows = np.ascontiguousarray(parameters, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 4:
        raise InputError(f"parameters must have shape (n, 4), not {rows.shape}")
    scale = max(abs(start), abs(end))
    if not (end >= start and width > 4e-16 * scale and np.isfinite(scale)):
        raise InputError(f"cannot bisect [{start}, {end}] down to a width of {width}")
    device = choose_device(device)
    inputs = [wp.array(rows, dtype=wp.vec4d, device=device), wp.float64(start), wp.float64(end), wp.float64(width)]
    found = collect(_isolate_kernel(inclusion), len(rows), inputs, wp.vec3d, device=device).numpy()
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    return found[:, 0].astype(np.int64), found[:, 1:]


@cache
def _isolate_kernel(inclusion: wp.Function) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def isolate(
        first: int,
        shard: int,
        parameters: wp.array[wp.vec4d],
        start: wp.float64,
        end: wp.float64,
        width: wp.float64,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.vec3d],
    ):
        i = first + wp.tid()
        # Halves wait with their upper ends only: a half begins where the one before it ended.
        waiting = Waiting()
        waiting[0] = end
        pending = int(1)
        lower = start + wp.float64(0.0)
        while pending > 0:
            upper = waiting[pending - 1]
            if excludes_zero(inclusion(wp.vec2d(lower, upper), parameters[i])):
                pending -= 1
                lower = upper
            elif upper - lower <= width:
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec3d(wp.float64(i), lower, upper)
                pending -= 1
                lower = upper
            else:
                waiting[pending] = wp.float64(0.5) * (lower + upper)
                pending += 1

    return isolate

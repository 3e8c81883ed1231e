"""Small batches on the CPU: one kernel for everything, recorded once, over arrays that are kept.

A launch costs more than a few queries do, and a Warp array about 15 us; so up to `MOST` queries are copied to arrays
that stay with the thread, answered by one recorded launch, and copied out again. The functions are those of the large
batches, so the answers have the same bits.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.geometry.polynomials import real, vec
from tangere.query.contacts.record import Status
from tangere.query.first_contact.options import Options
from tangere.query.first_contact.primitives.details import NOTHING, describe_function
from tangere.query.first_contact.primitives.narrow_phase.features import FeaturePairKind
from tangere.query.first_contact.primitives.narrow_phase.root_isolation import (
    FREE,
    INVALID,
    UNRESOLVED,
    decide_function,
)
from tangere.query.first_contact.primitives.narrow_phase.solver import refuse_invalid
from tangere.query.first_contact.primitives.narrow_phase.time_bisection import march_function
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import SOUND, Arrays, LaunchCache, load

#: Beyond this many, threads pay, and so does the general way.
MOST = 2048


def is_small(x0: Arrays, x1: Arrays, options: Options, device: str | wp.Device | None) -> bool:
    """Whether `small_batch` can answer: NumPy arrays of a few queries, for the CPU, in sound mode."""
    return (
        type(x0) is np.ndarray
        and type(x1) is np.ndarray
        and x0.dtype.kind in "fiu"
        and x1.dtype.kind in "fiu"
        and x0.shape == x1.shape
        and x0.shape[1:] == (4, 3)
        and 0 < len(x0) <= MOST
        and options.mode == "sound"
        and options.separation == 0.0
        and (device == "cpu" or (device is None and not wp.is_cuda_available()))
    )


def small_batch(
    features: FeaturePairKind, x0: np.ndarray, x1: np.ndarray, options: Options, details: bool
) -> FirstContacts:
    """First contact of each query."""
    batch = _batches.of(features)
    count = len(x0)
    batch.start[:count] = x0
    batch.end[:count] = x1
    return batch.answer(count, -1.0 if options.tolerance is None else options.tolerance, details)


class PreparedSmallBatch:
    """Arrays for up to `MOST` queries and a launch recorded over them."""

    def __init__(self, features: FeaturePairKind) -> None:
        cpu = wp.get_device("cpu")
        start, end = (wp.empty((MOST, 4), dtype=vec, device=cpu) for _ in range(2))
        types = [real, real, wp.uint8, wp.uint8, wp.vec4d, vec, vec, vec]
        columns = [wp.empty(MOST, dtype=dtype, device=cpu) for dtype in types]
        kernel = _small_kernel(features)
        load(kernel, cpu)
        self.start, self.end = start.numpy(), end.numpy()
        self.columns = dict(zip([f.name for f in fields(FirstContacts)], [c.numpy() for c in columns], strict=False))
        self.bare = {name: self.columns[name] for name in ("time", "time_upper", "status")}
        self._kept = [start, end, columns]  # the views above do not own their memory
        self._launch: Any = wp.launch(
            kernel, MOST, [start, end, -1.0, 1], columns, device=cpu, record_tape=False, record_cmd=True
        )

    def answer(self, count: int, tolerance: float, details: bool) -> FirstContacts:
        self._launch.set_dim(count)
        self._launch.set_param_at_index(2, tolerance)
        self._launch.set_param_at_index(3, int(details))
        self._launch.launch()
        columns = self.columns if details else self.bare
        answer = FirstContacts(**{name: column[:count].copy() for name, column in columns.items()})
        if answer.status.max() > Status.UNRESOLVED:
            refuse_invalid(answer.status)
        return answer


_batches = LaunchCache(PreparedSmallBatch)


@cache
def _small_kernel(features: FeaturePairKind) -> wp.Kernel:
    decide, march, describe = decide_function(features), march_function(features), describe_function(features)

    @wp.kernel(module="unique", module_options=SOUND)
    def answer_queries(
        start: wp.array2d[vec],
        end: wp.array2d[vec],
        tolerance: real,
        details: int,
        time: wp.array[real],
        time_upper: wp.array[real],
        status: wp.array[wp.uint8],
        kind: wp.array[wp.uint8],
        weights: wp.array[wp.vec4d],
        point_a: wp.array[vec],
        point_b: wp.array[vec],
        normal: wp.array[vec],
    ):
        i = wp.tid()
        x0 = start[i, 0]
        x1 = start[i, 1]
        x2 = start[i, 2]
        x3 = start[i, 3]
        y0 = end[i, 0]
        y1 = end[i, 1]
        y2 = end[i, 2]
        y3 = end[i, 3]
        t, upper, found = decide(x0, x1, x2, x3, y0, y1, y2, y3, tolerance)
        if found == UNRESOLVED:
            t, found = march(x0, x1, x2, x3, y0, y1, y2, y3, tolerance)
        time[i] = t
        time_upper[i] = upper
        status[i] = found
        if details == 0:
            return
        kind[i] = wp.uint8(0)
        weights[i] = wp.vec4d(NOTHING, NOTHING, NOTHING, NOTHING)
        point_a[i] = vec(NOTHING, NOTHING, NOTHING)
        point_b[i] = vec(NOTHING, NOTHING, NOTHING)
        normal[i] = vec(NOTHING, NOTHING, NOTHING)
        if found != FREE and found != INVALID:
            what, w, on_a, on_b, n = describe(x0, x1, x2, x3, y0, y1, y2, y3, t)
            kind[i] = what
            weights[i] = w
            point_a[i] = on_a
            point_b[i] = on_b
            normal[i] = n

    return answer_queries

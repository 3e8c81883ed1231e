"""Small batches on the CPU: one kernel for everything, recorded once, over arrays that are kept.

A launch costs more than a few queries do, and a Warp array about 15 us; so up to `MOST` queries are copied to arrays
that stay with the thread, answered by one recorded launch, and copied out again. The functions are those of the large
batches, so the answers have the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.geometry.polynomials import real, vec
from tangere.query.contacts.record import Status, columns_of, empty_columns
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.primitives.details import (
    DetailColumns,
    describe_function,
    write_details,
    write_no_details,
)
from tangere.query.first_contact.primitives.narrow_phase.features import FeaturePairKind, points_of
from tangere.query.first_contact.primitives.narrow_phase.root_isolation import (
    FREE,
    INVALID,
    UNRESOLVED,
    decide_function,
)
from tangere.query.first_contact.primitives.narrow_phase.solver import (
    PrimitiveAnswers,
    refuse_invalid,
    write_answer,
)
from tangere.query.first_contact.primitives.narrow_phase.time_bisection import march_function
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import SOUND, Arrays, LaunchCache, load

#: Beyond this many, threads pay, and so does the general way.
MOST = 2048


def is_small(x0: Arrays, x1: Arrays, accuracy: Accuracy, device: str | wp.Device | None) -> bool:
    """Whether `small_batch` can answer: NumPy arrays of a few queries, for the CPU, in sound mode."""
    return (
        type(x0) is np.ndarray
        and type(x1) is np.ndarray
        and x0.dtype.kind in "fiu"
        and x1.dtype.kind in "fiu"
        and x0.shape == x1.shape
        and x0.shape[1:] == (4, 3)
        and 0 < len(x0) <= MOST
        and accuracy.mode == "sound"
        and accuracy.separation == 0.0
        and (device == "cpu" or (device is None and not wp.is_cuda_available()))
    )


def small_batch(
    features: FeaturePairKind, x0: np.ndarray, x1: np.ndarray, accuracy: Accuracy, details: bool
) -> FirstContacts:
    """First contact of each query."""
    batch = _batches.of(features)
    count = len(x0)
    batch.start[:count] = x0
    batch.end[:count] = x1
    return batch.answer(count, -1.0 if accuracy.tolerance is None else accuracy.tolerance, details)


class PreparedSmallBatch:
    """Arrays for up to `MOST` queries and a launch recorded over them."""

    def __init__(self, features: FeaturePairKind) -> None:
        cpu = wp.get_device("cpu")
        start, end = (wp.empty(4 * MOST, dtype=vec, device=cpu) for _ in range(2))
        columns = [empty_columns(kind, MOST, cpu) for kind in (PrimitiveAnswers, DetailColumns)]
        kernel = _small_kernel(features)
        load(kernel, cpu)
        self.start, self.end = (array.numpy().reshape(MOST, 4, 3) for array in (start, end))
        answers, details = ({name: c.numpy() for name, c in columns_of(part).items()} for part in columns)
        self.columns, self.bare = answers | details, answers
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
        start: wp.array[vec],
        end: wp.array[vec],
        tolerance: real,
        details: int,
        answers: PrimitiveAnswers,
        columns: DetailColumns,
    ):
        i = wp.tid()
        p = points_of(start, end, wp.vec4i(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3))
        t, upper, found = decide(p, tolerance)
        if found == UNRESOLVED:
            t, found = march(p, tolerance)
        write_answer(answers, i, t, upper, found)
        if details == 0:
            return
        if found != FREE and found != INVALID:
            what, w, on_a, on_b, n = describe(p, t)
            write_details(columns, i, what, w, on_a, on_b, n)
        else:
            write_no_details(columns, i)

    return answer_queries

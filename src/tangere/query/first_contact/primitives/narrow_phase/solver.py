"""The sound solver: pass 1 over every query, pass 2 over what it left undecided.

Queries are read from two arrays of positions, at the start and at the end of the step: query i uses the points
4i … 4i+3, or the four numbers of `quads[i]` where those are given.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.geometry.polynomials import real, vec
from tangere.query.contacts.record import Status, empty_columns
from tangere.query.first_contact.primitives.narrow_phase.features import FeaturePairKind, points_of
from tangere.query.first_contact.primitives.narrow_phase.root_isolation import (
    INVALID,
    UNRESOLVED,
    decide_function,
    finite,
)
from tangere.query.first_contact.primitives.narrow_phase.time_bisection import (
    march_function,
    march_separated_function,
)
from tangere.runtime import SOUND, InputError, device_of, indices_at_least, launch

#: A query of pass 1 takes about 0.1 us, one of pass 2 some 2 us: below this many, threads do not pay.
DECIDE_GRAIN = 2048
MARCH_GRAIN = 128
#: On CUDA, threads that share what is left between them: enough to fill a GPU.
MARCHING = 1 << 18
#: On CUDA; 4 M queries in ms with 64, 96, 128 registers and no limit: 1.8, 0.67, 0.48, 0.6.
REGISTERS = 128


@wp.struct
class PrimitiveAnswers:
    """Time, certain time and status of each query, on the device."""

    time: wp.array[wp.float64]
    time_upper: wp.array[wp.float64]
    status: wp.array[wp.uint8]


def solve(
    features: FeaturePairKind,
    start: wp.array,
    end: wp.array,
    quads: wp.array | None = None,
    *,
    separation: float = 0.0,
    tolerance: float | None = None,
) -> PrimitiveAnswers:
    """First contact of each query.

    Args:
        start, end: positions at t = 0 and t = 1, flat arrays of vec3d.
        quads: four positions each, vec4i; None means consecutive fours. Positions that quads choose from have been
            checked: on CUDA every look takes as long as a small kernel.
        separation: distance that already counts as contact [m].
        tolerance: see the contract of time; None means 1e-6 of each query's size.
    """
    device = start.device
    count = len(start) // 4 if quads is None else len(quads)
    answers = empty_columns(PrimitiveAnswers, count, device)
    if count == 0:
        return answers
    indexed = quads is not None
    points = [quads if indexed else wp.empty(0, dtype=wp.vec4i, device=device), start, end]
    allowed = -1.0 if tolerance is None else tolerance
    if separation > 0.0:
        kernel = _march_separated_kernel(features, indexed)
        launch(kernel, count, [*points, separation, allowed], [answers], device=device, grain=MARCH_GRAIN)
        if not indexed:
            refuse_invalid(answers.status.numpy())
        return answers
    # On CUDA the first kernel lists what it leaves and the second reads how many: the host does not look in between.
    listing = device_of(start).is_cuda
    left = wp.empty(count if listing else 0, dtype=wp.int32, device=device)
    counts = wp.zeros(2, dtype=wp.int32, device=device)
    kernel = _decide_kernel(features, indexed, listing)
    launch(kernel, count, [*points, allowed], [answers, left, counts], device=device, grain=DECIDE_GRAIN)
    threads = min(count, MARCHING)
    if not listing:
        left = indices_at_least(answers.status, Status.UNRESOLVED)
        threads = len(left)
    kernel = _march_kernel(features, indexed, listing)
    inputs = [left, threads, *points, allowed]
    launch(kernel, threads, inputs, [answers, counts], device=device, grain=MARCH_GRAIN)
    if not indexed and threads and counts.numpy()[1]:
        refuse_invalid(answers.status.numpy())
    return answers


def refuse_invalid(status: np.ndarray) -> None:
    """Raise if a query has a coordinate that cannot be used."""
    bad = np.flatnonzero(status == INVALID)
    if len(bad):
        first = int(bad[0])
        raise InputError(f"query {first} has a coordinate that is not finite or above 1e98 ({len(bad)} such queries)")


@wp.func
def consecutive(quads: wp.array[wp.vec4i], i: int) -> wp.vec4i:
    return wp.vec4i(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3)


@wp.func
def chosen(quads: wp.array[wp.vec4i], i: int) -> wp.vec4i:
    return quads[i]


@wp.func
def write_answer(answers: PrimitiveAnswers, i: int, time: real, time_upper: real, status: wp.uint8):
    """The answer to query i."""
    answers.time[i] = time
    answers.time_upper[i] = time_upper
    answers.status[i] = status


@cache
def _decide_kernel(features: FeaturePairKind, indexed: bool, listing: bool) -> wp.Kernel:
    decide = decide_function(features)
    corners = chosen if indexed else consecutive

    @wp.kernel(module="unique", module_options=SOUND, cuda_max_registers=REGISTERS)
    def decide_queries(
        first: int,
        quads: wp.array[wp.vec4i],
        start: wp.array[vec],
        end: wp.array[vec],
        tolerance: real,
        answers: PrimitiveAnswers,
        left: wp.array[int],
        counts: wp.array[int],
    ):
        i = first + wp.tid()
        t, upper, found = decide(points_of(start, end, corners(quads, i)), tolerance)
        write_answer(answers, i, t, upper, found)
        if wp.static(listing):
            if found >= UNRESOLVED:
                left[wp.atomic_add(counts, 0, 1)] = i

    return decide_queries


@cache
def _march_kernel(features: FeaturePairKind, indexed: bool, listing: bool) -> wp.Kernel:
    march = march_function(features)
    corners = chosen if indexed else consecutive

    @wp.kernel(module="unique", module_options=SOUND)
    def march_queries(
        first: int,
        left: wp.array[int],
        threads: int,
        quads: wp.array[wp.vec4i],
        start: wp.array[vec],
        end: wp.array[vec],
        tolerance: real,
        answers: PrimitiveAnswers,
        counts: wp.array[int],
    ):
        total = threads
        if wp.static(listing):
            total = counts[0]
        for place in range(first + wp.tid(), total, threads):
            i = left[place]
            if answers.status[i] == INVALID:
                counts[1] = 1  # every writer writes the same
            else:
                t, found = march(points_of(start, end, corners(quads, i)), tolerance)
                write_answer(answers, i, t, real(wp.inf), found)

    return march_queries


@cache
def _march_separated_kernel(features: FeaturePairKind, indexed: bool) -> wp.Kernel:
    march = march_separated_function(features)
    corners = chosen if indexed else consecutive

    @wp.kernel(module="unique", module_options=SOUND)
    def march_separated_queries(
        first: int,
        quads: wp.array[wp.vec4i],
        start: wp.array[vec],
        end: wp.array[vec],
        separation: real,
        tolerance: real,
        answers: PrimitiveAnswers,
    ):
        i = first + wp.tid()
        p = points_of(start, end, corners(quads, i))
        t = real(wp.inf)
        found = INVALID
        if finite(p):
            t, found = march(p, separation, tolerance)
        write_answer(answers, i, t, real(wp.inf), found)

    return march_separated_queries

"""A batch of primitive queries, from arrays to `FirstContacts`: check, solve in the given mode, describe, wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import columns_of
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.primitives.details import describe
from tangere.query.first_contact.primitives.narrow_phase.exact import resolve_undecided
from tangere.query.first_contact.primitives.narrow_phase.features import FeaturePairKind
from tangere.query.first_contact.primitives.narrow_phase.solver import PrimitiveAnswers, solve
from tangere.query.first_contact.primitives.small_batch import is_small, small_batch
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import Arrays, InputError, as_points, choose_device, like, using_threads

#: The largest coordinate: the magnitudes of a query must add up to less than 1e100.
LARGEST = 1e98


def intake(x0: Arrays, x1: Arrays, width: int, device: str | wp.Device | None) -> tuple[wp.array, wp.array]:
    """Both ends of the motion as (n, width) arrays of points on one device."""
    for name, positions in (("x0", x0), ("x1", x1)):
        kind = str(getattr(positions, "dtype", ""))
        if "complex" in kind:  # NumPy and PyTorch would drop the imaginary part with no more than a warning
            raise InputError(f"{name} must be real numbers, not {kind}")
    device = choose_device(device, x0, x1)
    start, end = as_points(x0, "x0", device, width), as_points(x1, "x1", device, width)
    if len(start) != len(end):
        raise InputError(f"x0 has {len(start)} queries and x1 has {len(end)}: they must be as many")
    return start, end


def first_contacts_of_four(
    features: FeaturePairKind,
    x0: Arrays,
    x1: Arrays,
    accuracy: Accuracy,
    *,
    details: bool,
    device: str | wp.Device | None,
    threads: int | None,
) -> FirstContacts:
    """First contact of each query of four points, (n, 4, 3), as users give them."""
    if is_small(x0, x1, accuracy, device):
        with using_threads(threads):
            return small_batch(features, x0, x1, accuracy, details)
    start, end = intake(x0, x1, 4, device)
    return first_contacts(features, start, end, accuracy, details=details, threads=threads, convert=like(x0))


def first_contacts(
    features: FeaturePairKind,
    start: wp.array,
    end: wp.array,
    accuracy: Accuracy,
    *,
    details: bool,
    threads: int | None,
    convert: Callable[[wp.array], Any],
) -> FirstContacts:
    """First contact of each query of four points, (n, 4); `convert` turns columns into what the user computes with."""
    start, end = start.flatten(), end.flatten()
    with using_threads(threads):
        answers = solve_batch(features, start, end, None, accuracy)
        columns = columns_of(answers)
        if details:
            columns |= columns_of(describe(features, start, end, None, answers.time, answers.status))
    return FirstContacts(**{name: convert(column) for name, column in columns.items()})


def solve_batch(
    features: FeaturePairKind, start: wp.array, end: wp.array, quads: wp.array | None, accuracy: Accuracy
) -> PrimitiveAnswers:
    """Time and status of each query, by the mode that is asked for; arguments as for `solver.solve`."""
    if accuracy.mode == "published":
        if quads is None:
            x0, x1 = start.reshape((-1, 4)), end.reshape((-1, 4))
        else:
            x0, x1 = gather(start, quads), gather(end, quads)
        refuse_unusable(x0.numpy(), x1.numpy())
        time, status = accuracy.reading.solve(features.kind, x0, x1)
        answers: Any = PrimitiveAnswers()
        answers.time, answers.status = time, status
        answers.time_upper = wp.full(len(time), np.inf, dtype=wp.float64, device=time.device)
        return answers
    answers = solve(features, start, end, quads, separation=accuracy.separation, tolerance=accuracy.tolerance)
    if accuracy.mode == "exact":
        resolve_undecided(features, start, end, quads, answers)
    return answers


def refuse_unusable(*positions: np.ndarray) -> None:
    """Raise if a coordinate of a query, (n, width, 3), is not finite or too large for products of three."""
    for points in positions:
        with np.errstate(invalid="ignore"):
            usable = (np.abs(points) <= LARGEST).all(axis=(1, 2))
        if not usable.all():
            first = int(np.argmin(usable))
            raise InputError(f"query {first} has a coordinate that is not finite or above 1e98")


def gather(points: wp.array, quads: wp.array) -> wp.array:
    """The four points of each query, side by side."""
    return wp.array(points.numpy()[quads.numpy()], dtype=wp.vec3d, device=points.device)

"""What a simulation must be given to begin: bodies that can move, sensible numbers, surfaces that are apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tangere.partition.step import Step
from tangere.query.first_contact.overlap import first_overlap
from tangere.runtime import InputError
from tangere.soft.assembly import Assembly
from tangere.soft.body import Body

__all__ = ["checked_bodies", "checked_gravity", "mean_edge", "positive", "refuse_overlap"]


def checked_bodies(bodies: Sequence[Body]) -> list[Body]:
    """The bodies as a list, if there are any and one of them can move."""
    bodies = list(bodies)
    if not bodies:
        raise InputError("a simulation needs at least one body")
    for number, body in enumerate(bodies):
        if not isinstance(body, Body):
            raise InputError(f"body {number} is a {type(body).__name__}, not a Body")
    if all(body.is_obstacle for body in bodies):
        raise InputError("nothing can move: every vertex of every body is fixed")
    return bodies


def checked_gravity(gravity: Sequence[float]) -> np.ndarray:
    """Gravity as an array [m/s^2]."""
    array = np.asarray(gravity, np.float64)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise InputError(f"gravity must be three finite numbers, not {gravity!r}")
    return array


def positive(what: str, value: float) -> float:
    """The value, if it is positive and finite."""
    if not 0.0 < value < np.inf:
        raise InputError(f"{what} must be positive, not {value!r}")
    return float(value)


def mean_edge(bodies: Sequence[Body]) -> float:
    """Of the surfaces that can move [m]."""
    lengths = []
    for body in bodies:
        if not body.is_obstacle:
            ends = body.surface.vertices[body.surface.edges]
            lengths.append(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1))
    return float(np.concatenate(lengths).mean())


def refuse_overlap(assembly: Assembly) -> None:
    """Raise if surfaces overlap where the bodies begin."""
    overlap = first_overlap(Step.of([assembly.whole], "cpu"))
    if overlap is not None:
        place = overlap.point_a[0].round(6).tolist()
        raise InputError(f"surfaces overlap at the start, near {place}: response 'hard' needs them apart")

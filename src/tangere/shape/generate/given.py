"""What generators are given: lengths, fractions, whole numbers and seeds, checked by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from tangere.runtime import InputError

__all__ = ["fraction", "length", "lengths", "random_source", "whole"]


def whole(shape: str, what: str, value: int, least: int) -> int:
    """`value` if it is a whole number and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{shape}: {what} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def length(shape: str, what: str, value: float, *, below: float = math.inf) -> float:
    """`value` if it is positive, finite and below the limit [m]."""
    if not _is_real(value) or not 0.0 < value < below:
        limit = "positive and finite" if below == math.inf else f"between 0 and {below:g}"
        raise InputError(f"{shape}: {what} must be {limit}, not {value!r}")
    return float(value)


def lengths(shape: str, what: str, values: Sequence[float], many: int) -> tuple[float, ...]:
    """`values` if they are so many, positive and finite [m]."""
    try:
        given = tuple(values)
    except TypeError:
        given = ()
    if len(given) != many:
        raise InputError(f"{shape}: {what} must be {many} lengths, not {values!r}")
    return tuple(length(shape, f"{what}[{k}]", value) for k, value in enumerate(given))


def fraction(shape: str, what: str, value: float) -> float:
    """`value` if it is at least 0 and below 1."""
    if not _is_real(value) or not 0.0 <= value < 1.0:
        raise InputError(f"{shape}: {what} must be at least 0 and below 1, not {value!r}")
    return float(value)


def random_source(shape: str, seed: int) -> np.random.Generator:
    """Random numbers, the same for the same seed: a whole number, 0 or above."""
    return np.random.default_rng(whole(shape, "seed", seed, least=0))


def _is_real(value: object) -> bool:
    """Whether it is one number; an array without dimensions is."""
    return isinstance(value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value, Real)

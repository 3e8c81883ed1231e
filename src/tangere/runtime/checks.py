"""What callers give, checked: always the value, then its name; one sentence says what is wrong. How values are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime.arrays import to_numpy
from tangere.runtime.errors import InputError

#: Characters of what is quoted in an error: longer values are named by their type and shape.
LONGEST = 60


def described(value: Any) -> str:
    """A value as an error quotes it: what is short as it is written, arrays and long lists by their kind and shape."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None and len(shape) > 0:
        kind = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype
        return f"an array of {kind} of shape {tuple(int(n) for n in shape)}"
    text = repr(value)
    if len(text) <= LONGEST and "\n" not in text:
        return text
    if isinstance(value, Mapping | Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}" if not isinstance(value, str) else f"{text[:LONGEST]}…'"


def text_below(value: float, digits: int = 6) -> str:
    """A bound from below, or a time that must not be told late, in so many digits: never above the value."""
    number = float(value)
    if not math.isfinite(number):
        return f"{number:g}"
    with localcontext(prec=digits, rounding=ROUND_FLOOR):
        return f"{float(+Decimal(repr(number))):.{digits}g}"


def file_path(value: Any, thing: str) -> Path:
    """A path that names a file or folder.

    Args:
        thing: what it names, as an error says it: "a mesh file".
    """
    if not isinstance(value, str | PathLike):
        raise InputError(f"{thing} is named by a path, not by a {type(value).__name__}")
    return Path(fspath(value))


def number(value: Any, name: str) -> float:
    """One number, of any library; a truth value is none."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"{name} is beyond all bounds: {described(value)}") from None
    array = to_numpy(value, name, None)
    if array.shape != () or array.dtype.kind not in "iuf":
        raise InputError(f"{name} must be a number, not {described(value)}")
    return float(array)


def positive(value: Any, name: str, *, below: float = math.inf) -> float:
    """A finite number above 0, and below the limit."""
    given = number(value, name)
    if not 0.0 < given < below:
        limit = "positive and finite" if below == math.inf else f"between 0 and {below:g}"
        raise InputError(f"{name} must be {limit}, not {described(value)}")
    return given


def positives(values: Sequence[float], name: str, many: int) -> tuple[float, ...]:
    """So many finite numbers above 0."""
    try:
        given = tuple(values)
    except TypeError:
        given = ()
    if len(given) != many:
        raise InputError(f"{name} must be {many} lengths, not {described(values)}")
    return tuple(positive(value, f"{name}[{k}]") for k, value in enumerate(given))


def not_negative(value: Any, name: str) -> float:
    """A finite number, 0 or above."""
    given = number(value, name)
    if not 0.0 <= given < math.inf:
        raise InputError(f"{name} must be finite and not negative, not {described(value)}")
    return given


def fraction(value: Any, name: str) -> float:
    """A number of at least 0 and below 1."""
    given = number(value, name)
    if not 0.0 <= given < 1.0:
        raise InputError(f"{name} must be at least 0 and below 1, not {described(value)}")
    return given


def whole(value: Any, name: str, least: int = 0) -> int:
    """A whole number, `least` or above; 1e6 is one."""
    try:
        given = number(value, name)
    except InputError:
        given = math.nan
    if not (given.is_integer() and given >= least):
        raise InputError(f"{name} must be a whole number of at least {least}, not {described(value)}")
    return int(value)


def three_numbers(value: Any, name: str) -> np.ndarray:
    """The value as an array (3,), if it is three finite numbers."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise InputError(f"{name} must be three finite numbers, not {described(value)}")
    return array


def random_source(seed: Any, name: str) -> np.random.Generator:
    """Random numbers, the same for the same seed: a whole number, 0 or above."""
    return np.random.default_rng(whole(seed, name))

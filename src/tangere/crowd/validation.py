"""What callers give, checked: what is wrong is named, in arrays with the agent, and with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.runtime import Arrays, InputError, positive, to_numpy, whole

#: What a behaviour has, see `tangere.crowd.Behaviour`.
_BEHAVIOUR = "range", "steer", "parameters"


def whole_counts(**values: float) -> list[int]:
    """Whole numbers, 0 or above, in the order given."""
    return [whole(value, name) for name, value in values.items()]


def positive_each(values: float | Arrays, name: str, count: int) -> np.ndarray:
    """(count,) positive numbers, given one for all or one for each."""
    array = to_numpy(values, name)
    if array.shape not in ((), (count,)):
        raise InputError(f"{name} must be one number or {count} of them, not an array of shape {array.shape}")
    array = np.broadcast_to(array, count)
    wrong = ~(np.isfinite(array) & (array > 0))
    if wrong.any():
        raise InputError(f"{name}: that of agent {int(np.argmax(wrong))} is {array[np.argmax(wrong)]}, not positive")
    return array


def group_numbers(groups: Arrays | None, count: int) -> np.ndarray:
    """(count,) whole numbers, -1: alone."""
    if groups is None:
        return np.full(count, -1)
    array = to_numpy(groups, "groups", None)
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer) or (array < -1).any():
        raise InputError(f"groups must be {count} whole numbers, -1 or more, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def heading_vectors(headings: Arrays, count: int) -> np.ndarray:
    """(count, 3) finite vectors, given with 2 or 3 components."""
    array = to_numpy(headings, "headings")
    if array.ndim != 2 or len(array) != count or array.shape[1] not in (2, 3):
        raise InputError(f"headings must have shape ({count}, 2) or ({count}, 3), not {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"headings: heading {np.argwhere(~np.isfinite(array))[0, 0]} is not finite")
    return np.concatenate([array, np.zeros((count, 3 - array.shape[1]))], axis=1)


def check_behaviour(behaviour: Any) -> None:
    """Raise unless it can steer agents and looks some way."""
    missing = next((name for name in _BEHAVIOUR if not hasattr(behaviour, name)), None)
    if missing is not None or isinstance(behaviour, type):
        reason = "it is a class" if missing is None else f"it has no {missing}"
        raise InputError(f"behaviour must be one that steers, like Bubbles(), not {behaviour!r}: {reason}")
    positive(behaviour.range, "behaviour: range")

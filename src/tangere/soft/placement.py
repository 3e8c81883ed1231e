"""What a user puts into a running simulation: states of bodies, and velocities of what is held, checked by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import InputError, to_numpy
from tangere.soft.model.assembly import Assembly

__all__ = ["body_range", "drive", "put", "refuse_speed"]

#: Times the extent of the scene that a vertex may go in one step: beyond, positions have too few digits.
FURTHEST = 1e9


def body_range(assembly: Assembly, body: int) -> tuple[int, int]:
    """The dofs of a body: the first, and the one after the last."""
    if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body < len(assembly.bodies):
        raise InputError(f"there is no body {body!r}; there are {len(assembly.bodies)}, counted from 0")
    begin, end = assembly.dof_base[body : body + 2]
    return int(begin), int(end)


def put(assembly: Assembly, body: int, positions: Any, velocities: Any, dt: float) -> None:
    """Put a body elsewhere, or give what of it is free other velocities; what is held keeps its own."""
    begin, end = body_range(assembly, body)
    places = None if positions is None else _rows(positions, body, "positions", end - begin)
    if velocities is not None:
        array = _rows(velocities, body, "velocities", end - begin)
        refuse_speed(assembly, array, dt, f"body {body}")
        free = assembly.free.numpy()[begin:end, None] == 1
        _write(assembly.v, begin, np.where(free, array, assembly.v.numpy()[begin:end]))
    if places is not None:
        _write(assembly.x, begin, places)


def drive(assembly: Assembly, body: int, velocity: Any, dt: float) -> None:
    """Give what of a body is held a velocity."""
    begin, end = body_range(assembly, body)
    held = assembly.free.numpy()[begin:end, None] == 0
    if not held.any():
        raise InputError(f"drive: nothing of body {body} is fixed")
    array = to_numpy(velocity, f"drive: velocity of body {body}")
    array = _rows(np.tile(array, (end - begin, 1)) if array.shape == (3,) else array, body, "velocity", end - begin)
    refuse_speed(assembly, array, dt, f"body {body}")
    _write(assembly.v, begin, np.where(held, array, assembly.v.numpy()[begin:end]))


def refuse_speed(assembly: Assembly, velocities: np.ndarray, dt: float, whose: str) -> None:
    """Raise if a velocity is too large for a step to keep its digits."""
    most = FURTHEST * assembly.whole.extent / dt
    speed = float(np.abs(velocities).max(initial=0.0))
    if not speed <= most:
        raise InputError(f"{whose}: a speed of {speed:g} m/s is more than steps of {dt:g} s can follow, {most:.3g} m/s")


def _rows(given: Any, body: int, what: str, count: int) -> np.ndarray:
    array = to_numpy(given, f"{what} of body {body}")
    if array.shape != (count, 3):
        raise InputError(f"{what} of body {body} have shape {array.shape}, not ({count}, 3)")
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(wrong):
        raise InputError(f"{what} of body {body}: row {wrong[0]} is not finite: {array[wrong[0]].tolist()}")
    return array


def _write(target: wp.array, begin: int, array: np.ndarray) -> None:
    wp.copy(target, wp.array(array, dtype=wp.vec3d, device=target.device), dest_offset=begin, count=len(array))

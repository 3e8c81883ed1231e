"""What a world is given, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.world_body import body_number
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.runtime import InputError, described

#: The security distance chosen, as part of the median size of the bodies that move.
SECURITY_PART = 2e-4
#: Sweeps of the solver for all bodies together, and the range of those chosen.
SWEEPS, SWEEPS_RANGE = 6000, (150, 2000)


def checked_bodies(bodies: Any) -> list[Body]:
    """Some bodies, of which at least one is there."""
    if isinstance(bodies, Body):
        bodies = [bodies]
    if not isinstance(bodies, Sequence):
        raise InputError(f"World: bodies must be a list of Body, not {described(bodies)}")
    for number, body in enumerate(bodies):
        if not isinstance(body, Body):
            raise InputError(f"World: bodies[{number}] is a {type(body).__name__}, not a Body of tangere.dynamics")
    if not bodies:
        raise InputError("World: there are no bodies")
    return list(bodies)


def chosen_separation(bodies: Sequence[Body]) -> float:
    """The security distance that fits the bodies."""
    sizes = [body.mesh.extent for body in bodies if body.moves] or [body.mesh.extent for body in bodies]
    return SECURITY_PART * float(np.median(sizes))


def chosen_sweeps(bodies: Sequence[Body]) -> int:
    """Sweeps of the solver that so many bodies are worth."""
    return int(np.clip(SWEEPS // max(sum(body.moves for body in bodies), 1), *SWEEPS_RANGE))


def checked_pairs(allowed: Any, bodies: Sequence[Body]) -> np.ndarray:
    """(k, 2) numbers of pairs that are told by number or name."""
    pairs = []
    for at, pair in enumerate(allowed):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(f"allowed[{at}] is a pair of bodies, by number or name, not {described(pair)}")
        pairs.append([body_number(tuple(bodies), one) for one in pair])
    return np.array(pairs, np.int64).reshape(-1, 2)


def overlapping_pairs(bodies: Sequence[Body], poses: np.ndarray, pairs: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Those of the pairs whose bodies meet, by the exact test, each once."""
    found = []
    for a, b in np.unique(np.sort(pairs, axis=1), axis=0).tolist():
        first, second = (bodies[k].mesh.moving(Rest(poses[k])) for k in (a, b))
        if a != b and intersects(first, second, device="cpu"):
            found.append((a, b))
    return tuple(found)


def refuse_overlaps(bodies: Sequence[Body], poses: np.ndarray, pairs: np.ndarray, when: str) -> None:
    """Raise if two bodies of a pair meet, by the exact test."""
    for a, b in pairs.tolist():
        first, second = (bodies[k].mesh.moving(Rest(poses[k])) for k in (a, b))
        if intersects(first, second, device="cpu"):
            raise InputError(
                f"bodies {a} ({bodies[a].name!r}) and {b} ({bodies[b].name!r}) overlap {when}; move them apart, or list"
                f" the pair in allowed= if they are not to be compared"
            )


def refuse_sunken(bodies: Sequence[Body], sunken: np.ndarray, when: str) -> None:
    """Raise if a body touches the ground, or lies in it."""
    for number in sunken.tolist():
        raise InputError(f"body {number} ({bodies[number].name!r}) lies in the ground {when}; move it up")

"""What a world is given, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.joint import LARGEST, ROTATION
from tangere.dynamics.stepping.options import SPLITS
from tangere.dynamics.world_body import body_number
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.runtime import InputError, described, positive

#: The security distance chosen, as part of the median size of the bodies that move.
SECURITY_PART = 2e-4
#: In the place of `allowed` pairs: all that overlap at the start.
OVERLAPPING = "overlapping"
#: Pairs that an error names.
NAMED = 5
#: Arrays of a checkpoint whose shapes the bodies and joints give.
_OF_BODIES = ("position", "rotation", "velocity", "load", "joint/coordinate", "jam/times")
#: Sweeps of the solver for all bodies together, and of many for each that lies along an edge of a cube of them: through
#: a pile an impulse goes from body to body. At most so many in all.
SWEEPS, SWEEPS_ALONG, MOST_SWEEPS = 6000, 65, 2000


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
    sizes = [body.size for body in bodies if body.moves] or [body.size for body in bodies]
    return SECURITY_PART * float(np.median(sizes))


def checked_separation(separation: Any) -> float:
    """A security distance that is told."""
    given = positive(separation, "separation")
    if given > LARGEST:
        raise InputError(f"separation: {given:g} m is more than {LARGEST:g}, the farthest that anything may be apart")
    return given


def chosen_sweeps(bodies: Sequence[Body]) -> int:
    """Sweeps of the solver that so many bodies are worth."""
    count = max(sum(body.moves for body in bodies), 1)
    return min(max(SWEEPS // count, int(SWEEPS_ALONG * np.cbrt(count))), MOST_SWEEPS)


def checked_pairs(allowed: Any, bodies: Sequence[Body]) -> np.ndarray:
    """(k, 2) numbers of pairs that are told by number or name, or all that overlap where bodies start."""
    if isinstance(allowed, str) and allowed == OVERLAPPING:
        poses = np.array([body.pose for body in bodies])
        return np.array(overlapping_pairs(bodies, poses, _near_pairs(bodies)), np.int64).reshape(-1, 2)
    if isinstance(allowed, str) or not isinstance(allowed, Iterable):
        told = f"allowed is a list of pairs of bodies, by number or name, or {OVERLAPPING!r}"
        raise InputError(f"{told}, not {described(allowed)}")
    pairs = []
    for at, pair in enumerate(allowed):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(f"allowed[{at}] is a pair of bodies, by number or name, not {described(pair)}")
        pairs.append([body_number(tuple(bodies), one) for one in pair])
        if pairs[-1][0] == pairs[-1][1]:
            raise InputError(f"allowed[{at}] names the same body twice: {described(pair)}")
    return np.array(pairs, np.int64).reshape(-1, 2)


def _near_pairs(bodies: Sequence[Body]) -> np.ndarray:
    """(k, 2) pairs, of which one is not fixed and none is ground, whose boxes overlap where they start."""
    boxes = np.array([body.mesh.at(body.pose).bounds for body in bodies])
    fixed, ground = np.array([[body.fixed, body.ground is not None] for body in bodies]).T
    a, b = np.triu_indices(len(bodies), 1)
    apart = (boxes[a, 0] > boxes[b, 1]).any(axis=1) | (boxes[b, 0] > boxes[a, 1]).any(axis=1)
    return np.stack([a, b], axis=1)[~(apart | (fixed[a] & fixed[b]) | ground[a] | ground[b])]


def checked_checkpoint(kept: Any, mine: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint that fit a world whose own ones are known; raises on any other."""
    if not isinstance(kept, Mapping):
        raise InputError(f"resume: a checkpoint is a dictionary of arrays, not {described(kept)}")
    missing = next((name for name in mine if name not in kept), None)
    if missing is not None:
        raise InputError(f"resume: the checkpoint has no {missing!r}")
    arrays = {name: np.asarray(kept[name]) for name in kept}
    for name, own in mine.items():
        given = arrays[name]
        same_shape = given.shape == own.shape if name in _OF_BODIES else given.ndim == own.ndim
        if not same_shape:
            raise InputError(f"resume: {name!r} has the shape {given.shape}, not {own.shape}")
        if given.dtype.kind not in ("biuf" + own.dtype.kind) or (name in _OF_BODIES and not np.isfinite(given).all()):
            raise InputError(f"resume: {name!r} holds what is not a finite number")
    counts, lost = arrays["count"], arrays["lost_time"]
    fits = counts.shape == mine["count"].shape and lost.shape == mine["lost_time"].shape and np.isfinite(lost).all()
    if not fits or (counts < 0).any() or counts[1] > SPLITS:
        raise InputError("resume: 'count' or 'lost_time' is not what a world has counted")
    turned = arrays["rotation"]
    off = np.abs(turned @ turned.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    strange = np.flatnonzero(~((off < ROTATION) & (np.linalg.det(turned) > 0.0)))
    if len(strange):
        raise InputError(f"resume: 'rotation' of body {strange[0]} is no rotation")
    return arrays


def overlapping_pairs(bodies: Sequence[Body], poses: np.ndarray, pairs: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Those of the pairs whose bodies meet, by the exact test, each once."""
    found = []
    for a, b in np.unique(np.sort(pairs, axis=1), axis=0).tolist():
        first, second = (_placed(bodies[k], poses[k]) for k in (a, b))
        if a != b and intersects(first, second, device="cpu"):
            found.append((a, b))
    return tuple(found)


def _placed(body: Body, pose: np.ndarray) -> Any:
    """What a body is where it is."""
    return body.by_formula_at(pose) or body.mesh.moving(Rest(pose))


def refuse_overlaps(bodies: Sequence[Body], poses: np.ndarray, pairs: np.ndarray, when: str) -> None:
    """Raise if two bodies of a pair meet, by the exact test; all that do are counted, and some named."""
    found = overlapping_pairs(bodies, poses, pairs)
    if not found:
        return
    (a, b), others = found[0], found[1:]
    told = f"bodies {a} ({bodies[a].name!r}) and {b} ({bodies[b].name!r}) overlap {when}"
    if others:
        named = ", ".join(f"{bodies[i].name!r} and {bodies[j].name!r}" for i, j in others[: NAMED - 1])
        more = len(others) - (NAMED - 1)
        told += f", and so do {named}" + (f", and {more} more pairs" if more > 0 else "")
    raise InputError(
        f"{told}; move them apart, or list {'the pairs' if others else 'the pair'} in allowed= if they are not to be"
        f' compared, or say allowed="overlapping"'
    )


def refuse_sunken(bodies: Sequence[Body], sunken: np.ndarray, when: str) -> None:
    """Raise if a body touches the ground, or lies in it."""
    for number in sunken.tolist():
        raise InputError(f"body {number} ({bodies[number].name!r}) lies in the ground {when}; move it up")

"""How near do analytic bodies, meshes and ground come to each other during a step, at the least, and when?

Question: the least distance over the whole step, from below and from above, of any two things that a first contact is
          known of.
Method:   the distance at some instants, and where it falls between them, bounds it from above. That nothing comes
          nearer than (1 - accuracy) of it is a question for `first_contact`, with that separation: a contact is an
          instant at which they are nearer, and lowers the bound.
Sound:    lower <= least distance <= upper: lower is a separation with which the step is certified free, upper is the
          distance at an instant.
Known as: certified (minimum) clearance, minimum separation distance over a motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.clearance.api import INSTANTS, LeastClearance, caps_of
from tangere.query.contacts.record import Status
from tangere.query.dispatch import answer
from tangere.query.distance.api import distance
from tangere.query.distance.convex.bodies import paired_count
from tangere.query.listed_bodies import ListedBody, ball_radius, listed, ways_of
from tangere.runtime import choose_device
from tangere.shape import Moving
from tangere.shape.analytic import Analytic

#: Parts of the larger one's size, and of all coordinates, that a tolerance is at least.
TOLERANCE, LEAST_PART = 1e-6, 1e-10
#: Part of a gap that a contact may be early by, relative to the accuracy; instants looked at around the nearest one.
EARLY, CLOSER = 0.25, 10
#: Each time that an answer does not come nearer, the accuracy is made so much coarser, up to `COARSEST`.
COARSER, COARSEST = 2.0, 0.9


def bodies_clearance(
    a: Any,
    b: Any,
    *,
    accuracy: float,
    cap: Any,
    tolerance: float | None,
    device: str | wp.Device | None,
) -> LeastClearance:
    """The least clearance of one pair, or of n; arguments as for `least_clearance`."""
    counts = [_count(thing) for thing in (a, b)]
    if max(counts) < 0:
        limit = np.inf if cap is None else float(caps_of(cap, 1)[0])
        return _of_pair(a, b, accuracy, limit, tolerance, device)
    count = paired_count(*(1 if each < 0 else each for each in counts))
    limits = np.broadcast_to(np.inf if cap is None else caps_of(cap, count), count)
    found = [_of_pair(_row(a, k), _row(b, k), accuracy, float(limits[k]), tolerance, device) for k in range(count)]
    columns = {name: np.array([getattr(one, name) for one in found]) for name in vars(LeastClearance(0, 0, 0, 0, 0))}
    return LeastClearance(**columns)


def _of_pair(
    a: Any, b: Any, accuracy: float, cap: float, tolerance: float | None, device: str | wp.Device | None
) -> LeastClearance:
    bodies = [*listed(a, "a"), *listed(b, "b")]
    least = TOLERANCE * max(map(_size, bodies)) if tolerance is None else tolerance
    rounding = LEAST_PART * float(np.abs(ways_of(bodies, 0.0, choose_device(device))).max())
    asked = {"mode": "sound", "start": "checked", "options": None, "device": device, "threads": None}
    best = _nearest(a, b, np.asarray(INSTANTS), device)
    best = _around(a, b, best, 1.0 / (len(INSTANTS) - 1), device)
    while True:
        upper = min(best[0], cap)
        if upper <= max(least, rounding):
            lower = 0.0
            break
        lower = (1.0 - accuracy) * upper
        early = max(EARLY * accuracy * upper, rounding)
        found = answer("first_contact", a, b, separation=lower, tolerance=early, **asked)
        if found.status == Status.FREE:
            break
        seen = _nearest(a, b, np.array([found.time]), device)
        if seen[0] < upper * (1.0 - 0.25 * accuracy):
            best = min(best, _around(a, b, seen, 0.02, device))
        else:
            best = min(best, seen)
            if accuracy >= COARSEST:
                lower = 0.0
                break
            accuracy = min(COARSER * accuracy, COARSEST)
    if best[0] > cap:
        return LeastClearance(lower, np.inf, np.nan, -1, -1)
    return LeastClearance(min(lower, best[0]), *best)


def _nearest(a: Any, b: Any, times: np.ndarray, device: Any) -> tuple[float, float, int, int]:
    """Distance from above, time and triangles at the nearest of some instants."""
    best = (np.inf, 0.0, -1, -1)
    for time in times.tolist():
        seen = distance(a, b, time=time, device=device)
        best = min(best, (float(seen.upper), time, int(seen.triangle_a), int(seen.triangle_b)))
    return best


def _around(a: Any, b: Any, best: tuple[Any, ...], width: float, device: Any) -> tuple[Any, ...]:
    """The nearest that golden sections of an interval around an instant find."""
    low, high = max(best[1] - width, 0.0), min(best[1] + width, 1.0)
    part = 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(CLOSER):
        times = high - part * (high - low), low + part * (high - low)
        sides = [_nearest(a, b, np.array([time]), device) for time in times]
        best = min(best, *sides)
        low, high = (low, times[1]) if sides[0] < sides[1] else (times[0], high)
    return best


def _size(body: ListedBody) -> float:
    """Of a body; ground has none."""
    if body.is_ground:
        return 0.0
    return 2.0 * ball_radius(body.shape) if isinstance(body.shape, Analytic) else body.shape.extent


def _count(thing: Any) -> int:
    """n of n bodies or motions, -1 of one that is no batch."""
    shape, motion = (thing.shape, thing.motion) if isinstance(thing, Moving) else (thing, None)
    if motion is not None and getattr(motion, "shape", ()):
        return motion.shape[0]
    return len(shape) if isinstance(shape, Analytic) and len(shape) != 1 else -1


def _row(thing: Any, row: int) -> Any:
    """One of n bodies, or the only one."""
    shape, motion = (thing.shape, thing.motion) if isinstance(thing, Moving) else (thing, None)
    if isinstance(shape, Analytic) and len(shape) != 1:
        shape = shape[row]
    if motion is None:
        return shape
    return shape.moving(motion[row] if getattr(motion, "shape", ()) else motion)

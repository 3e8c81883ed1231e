"""People with their radii and wanted speeds, put down at random where they fit.

Question: where do so many people of these radii stand without touching each other or a wall?
Method:   one after the other at a random place of the area, again where it is taken; by a hash of cells. Traits that
          are given as a mean and a deviation are normal, drawn again beyond three deviations and where not positive.
Known as: random sequential adsorption; truncated normal distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.crowd.floor.plans.sheets import Sheet
from tangere.runtime import InputError

#: Tries per person, on average and at the end.
_TRIES = 400
#: Places of a source; those where a group enters lie together, so many for each of its people.
_SLOTS, _SLOTS_EACH = 1024, 8
#: A group enters within this distance, times the root of its size, and this one more [m].
_TOGETHER = 0.5


def floats(given: Any, name: str) -> np.ndarray:
    """An array of numbers, or a sentence."""
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, not {given!r}") from error


def trait(given: Any, name: str, count: int, random: np.random.Generator) -> np.ndarray:
    """(count,) of one number, of (mean, deviation), or of one number for each."""
    values = floats(given, name)
    if values.shape == (2,) and isinstance(given, tuple):
        mean, deviation = values
        if not (np.isfinite(values).all() and mean > 0 and deviation >= 0):
            raise InputError(f"{name}: mean {mean} must be positive and deviation {deviation} not negative")
        drawn = random.normal(mean, deviation, count)
        for _ in range(1000):
            wrong = (np.abs(drawn - mean) > 3.0 * deviation) | (drawn <= 0.05 * mean)
            if not wrong.any():
                break
            drawn[wrong] = random.normal(mean, deviation, int(wrong.sum()))
        return drawn
    if values.shape not in ((), (count,)):
        raise InputError(f"{name} must be a number, (mean, deviation) or {count} numbers, not of shape {values.shape}")
    values = np.broadcast_to(values, count).copy()
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        raise InputError(f"{name}: that of person {int(np.argmax(wrong))} is {values[np.argmax(wrong)]}, not positive")
    return values


def usable_area(sheet: Sheet, area: Any, radius: float, name: str) -> Any:
    """The part of an area where somebody of this radius has room between walls."""
    shapely = shapely_library()
    whole = sheet.polygon if area is None else shapely.intersection(sheet.polygon, area)
    if whole.is_empty or whole.area == 0.0:
        raise InputError(f"{name} lies off the plan")
    # Arcs around corners are polygons in them: a little more than the radius leaves them outside.
    shrunk = shapely.buffer(sheet.polygon, -radius * (1.0 + 2.0e-5), quad_segs=128)
    room = shapely.intersection(whole, shrunk)
    if room.is_empty or room.area == 0.0:
        x0, y0, x1, y1 = whole.bounds
        hint = (
            f"; it is {x1 - x0:.2g} x {y1 - y0:.2g} m: are its lengths metres?" if max(x1 - x0, y1 - y0) < 0.5 else ""
        )
        raise InputError(f"{name}: nobody of radius {radius:g} m has room in it{hint}")
    return room


def scattered(
    room: Any, radii: np.ndarray, taken: np.ndarray, taken_radii: np.ndarray, random: np.random.Generator, name: str
) -> np.ndarray:
    """(n, 2) places in a polygon for people of these radii, clear of each other and of who is there already."""
    shapely = shapely_library()
    shapely.prepare(room)
    widest = float(max(radii.max(initial=0.0), taken_radii.max(initial=0.0)))
    side = 2.0 * widest
    hashed: dict[tuple[int, int], list[tuple[float, float, float]]] = {}

    def put(x: float, y: float, r: float) -> None:
        hashed.setdefault((int(x // side), int(y // side)), []).append((x, y, r))

    def is_free(x: float, y: float, r: float) -> bool:
        i, j = int(x // side), int(y // side)
        for a in (i - 1, i, i + 1):
            for b in (j - 1, j, j + 1):
                for px, py, pr in hashed.get((a, b), ()):
                    if (x - px) ** 2 + (y - py) ** 2 < (r + pr) ** 2:
                        return False
        return True

    for (x, y), r in zip(taken.tolist(), taken_radii.tolist(), strict=True):
        put(x, y, r)
    low, high = np.array(room.bounds[:2]), np.array(room.bounds[2:])
    places: list[tuple[float, float]] = []
    tries = 0
    while len(places) < len(radii):
        drawn = random.uniform(low, high, (4096, 2))
        drawn = drawn[shapely.contains_xy(room, drawn[:, 0], drawn[:, 1])]
        for x, y in drawn.tolist():
            if len(places) == len(radii):
                break
            r = float(radii[len(places)])
            tries += 1
            if is_free(x, y, r):
                put(x, y, r)
                places.append((x, y))
                tries = max(0, tries - _TRIES)
        if tries > 50 * _TRIES:
            fit = f"{len(places)} of {len(radii)} people fit into it at random"
            raise InputError(f"{name}: only {fit}: take a larger area or fewer people")
    return np.array(places).reshape(-1, 2)


def slots_in(room: Any, random: np.random.Generator, together: int = 1) -> tuple[np.ndarray, int]:
    """(k, 2) random points of a polygon, and how many of them, one after the other, lie together for a group."""
    if together <= 1:
        points = _points_in(room, random, _SLOTS)
        return points, len(points)
    shapely = shapely_library()
    each = _SLOTS_EACH * together
    reach, found = _TOGETHER * (1.0 + np.sqrt(together)), []
    for middle in _points_in(room, random, max(8, _SLOTS // each)):
        part = shapely.intersection(room, shapely.Point(middle).buffer(reach))
        # Of several parts the one around the middle: no wall is between those who enter together.
        parts = shapely.get_parts(part)
        points = _points_in(parts[np.argmin(shapely.distance(parts, shapely.Point(middle)))], random, each)
        found.append(np.resize(points, (each, 2)))
    return np.concatenate(found), each


def _points_in(room: Any, random: np.random.Generator, count: int) -> np.ndarray:
    """(at most count, 2) random points of a polygon, at least one."""
    shapely = shapely_library()
    shapely.prepare(room)
    low, high = np.array(room.bounds[:2]), np.array(room.bounds[2:])
    found = np.empty((0, 2))
    for _ in range(1000):
        drawn = random.uniform(low, high, (4 * count, 2))
        found = np.concatenate([found, drawn[shapely.contains_xy(room, drawn[:, 0], drawn[:, 1])]])
        if len(found) >= count:
            break
    point = room.representative_point()
    return found[:count] if len(found) else np.array([[point.x, point.y]])

"""How near are the two nearest bodies of a list, or of two lists, and which are they?

Method: the distance of one pair that is likely near leaves, by boxes, the pairs that may be nearer
        (`query.placed_lists`); these are asked about by rising distance of their boxes, until the next boxes are
        farther apart than the nearest pair is.
Sound:  lower <= the least distance <= upper. Of pairs that are as near as each other the smallest one is told.
Known as: minimum distance of a collision manager.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Kind
from tangere.query.distance.api import distance
from tangere.query.distance.result import Distance
from tangere.query.placed_lists import PairAnswers, PlacedLists
from tangere.runtime import Arrays

#: Pairs that are asked about together, at first and at most: what is farther than the nearest of them is dropped.
FIRST_PAIRS, MOST_PAIRS = 64, 4096
#: Columns of a `Distance` that belong to one side.
_OF_SIDES = "point", "triangle", "weights"


@dataclass(frozen=True, eq=False, repr=False)
class NearestBodies(Distance):
    """The distance of the two nearest bodies of a list, or of two; inf, without points, where there are no two."""

    body_a: int  #: number of a in its list; -1 where there are no two bodies
    body_b: int  #: … of b in its list, or in the same one

    def __repr__(self) -> str:
        if self.body_a < 0:
            return "NearestBodies(none)"
        return f"NearestBodies({self.upper:.9g}, {Kind(self.kind)} of {self.body_a} and {self.body_b})"


def lists_distance(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    time: Arrays = 0.0,
    solid: bool = False,
    device: str | wp.Device | None = None,
) -> NearestBodies:
    """The distance of the nearest two of list `a`, or of a body of `a` and one of `b`; arguments as for `distance`."""
    lists = PlacedLists.of("distance", a, b, allowed, time, device)
    ask = partial(distance, solid=solid, device=device)
    likely = _likely_pair(lists)
    if not len(likely):
        nowhere = np.full(3, np.nan)
        ends = {f"{name}_{side}": nowhere for name in ("point", "weights") for side in "ab"}
        return NearestBodies(np.inf, np.inf, **ends, normal=np.zeros(3), kind=Kind.NONE, **_numbers(-1, -1, -1, -1))
    best = _Nearest(likely, [lists.one(ask, likely, 0)])
    pairs = lists.near(best.upper)
    apart = lists.box_distances(pairs)
    order = np.argsort(apart, kind="stable")
    first, many = 0, FIRST_PAIRS
    while first < len(order):
        rows = order[first : first + many]
        first, many = first + many, min(8 * many, MOST_PAIRS)
        rows = rows[apart[rows] <= best.upper]
        if not len(rows):
            break
        if best.upper == 0.0:  # none is nearer, so only smaller ones may be told
            rows = rows[[tuple(pair) < best.pair for pair in pairs[rows].tolist()]]
        chosen = pairs[rows]
        best = _Nearest(chosen, lists.answers(ask, chosen), best)
    return best.answer


class _Nearest:
    """The nearest of some pairs, and of those known before."""

    def __init__(self, pairs: np.ndarray, answers: Any, known: _Nearest | None = None) -> None:
        self.upper, self.pair = (np.inf, (-1, -1)) if known is None else (known.upper, known.pair)
        self._lower, self._found = (np.inf, None) if known is None else (known._lower, known._found)
        for told in answers:
            self._take(pairs, told)

    def _take(self, pairs: np.ndarray, told: PairAnswers) -> None:
        upper = np.atleast_1d(told.found.upper)
        self._lower = min(self._lower, float(np.min(told.found.lower)))
        numbers = pairs[told.rows]
        row = int(np.lexsort((numbers[:, 1], numbers[:, 0], upper))[0])
        pair = int(numbers[row, 0]), int(numbers[row, 1])
        if (float(upper[row]), pair) < (self.upper, self.pair) or self._found is None:
            self.upper, self.pair = float(upper[row]), pair
            self._found = told, row

    @property
    def answer(self) -> NearestBodies:
        assert self._found is not None
        told, row = self._found
        found = told.found
        columns = {field.name: getattr(found, field.name) for field in fields(Distance)}
        if not told.alone:
            columns = {name: np.asarray(column)[row] for name, column in columns.items()}
        if told.swapped:
            for name in _OF_SIDES:
                columns[f"{name}_a"], columns[f"{name}_b"] = columns[f"{name}_b"], columns[f"{name}_a"]
            columns["normal"] = -columns["normal"]
        columns["lower"] = self._lower
        one = NearestBodies(**columns, body_a=self.pair[0], body_b=self.pair[1])
        return replace(one, lower=float(one.lower), upper=float(one.upper), kind=Kind(int(one.kind)))


def _numbers(triangle_a: int, triangle_b: int, body_a: int, body_b: int) -> dict[str, int]:
    return {"triangle_a": triangle_a, "triangle_b": triangle_b, "body_a": body_a, "body_b": body_b}


def _likely_pair(lists: PlacedLists) -> np.ndarray:
    """(1, 2) a pair whose boxes are near each other, (0, 2) where there are no two bodies."""
    if not lists.a or not lists.others:
        return np.zeros((0, 2), np.int64)
    boxes = np.concatenate(lists.boxes)
    count = len(lists.a)
    axis = int(np.argmax(np.ptp(boxes[:, 1], axis=0)))
    order = np.argsort(boxes[:, 1, axis], kind="stable")
    beside = np.sort(np.stack([order[:-1], order[1:]], axis=1), axis=1)
    if lists.b is not None:
        beside = beside[(beside[:, 0] < count) & (beside[:, 1] >= count)] - [0, count]
    pairs = lists.kept(beside)
    if not len(pairs):
        pairs = _any_pair(lists)
    return pairs[np.argsort(lists.box_distances(pairs), kind="stable")[:1]]


def _any_pair(lists: PlacedLists) -> np.ndarray:
    """The first pair there is."""
    for i in range(len(lists.a)):
        j = np.arange(i + 1 if lists.b is None else 0, len(lists.others))
        pairs = lists.kept(np.stack([np.full(len(j), i), j], axis=1))
        if len(pairs):
            return pairs[:1]
    return np.zeros((0, 2), np.int64)

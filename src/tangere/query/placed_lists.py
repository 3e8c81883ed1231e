"""Lists of bodies at one instant: which pairs may be near each other, and what an engine answers about each of them.

Question: what is known of any two bodies of a list, or of one of each of two lists, where they are at an instant?
Method:   boxes around the bodies leave the pairs that may be near (`query.listed_bodies`); analytic bodies of a kind
          are one batch, with those of another kind, with a mesh or with a ground; other pairs are asked about one by
          one, by the engine that the table names.
Sound:    as the engines: the answers are those of the single calls. In one list two grounds are no pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Linear, Rest
from tangere.query.contacts.record import Contacts
from tangere.query.dispatch import refuse_unsupported
from tangere.query.first_contact.rigid.scene import allowed_pairs
from tangere.query.intersection.posed import as_instants
from tangere.query.listed_bodies import (
    ListedBody,
    ball_radius,
    batches,
    joined,
    listed,
    meeting_bodies,
    turned_round,
    ways_of,
)
from tangere.runtime import Arrays, InputError, UnsupportedError, choose_device
from tangere.shape import Moving
from tangere.shape.analytic import Analytic


@dataclass(frozen=True)
class PairAnswers:
    """What one call of an engine tells about some pairs."""

    rows: np.ndarray  #: (k,) of the pairs asked about
    found: Any  #: of a batch with a row for each
    alone: bool  #: one pair, not a batch
    swapped: bool  #: asked with b first: it is ground that stands first in the list


@dataclass(frozen=True, eq=False)
class PlacedLists:
    """The bodies of one list, or of two, where they are at one instant."""

    a: list[ListedBody]
    b: list[ListedBody] | None  #: None: any two of `a`
    dropped: np.ndarray  #: (k, 2) pairs of `a` that are left out
    device: wp.Device  #: where boxes are compared

    @staticmethod
    def of(
        question: str, a: Any, b: Any, allowed: Arrays | None, time: Arrays, device: str | wp.Device | None
    ) -> PlacedLists:
        """Lists, or a list and one thing, as they are at `time`; `allowed` is left out of one list."""
        if b is not None and allowed is not None:
            raise InputError("allowed says which bodies of one list may touch: two lists have no such pairs")
        instant = as_instants(time)
        if instant.ndim:
            raise InputError("a list is asked about at one time: many times are as many calls")
        first = [_placed(body, float(instant)) for body in listed(a, "a" if b is not None else "the list")]
        second = None if b is None else [_placed(body, float(instant)) for body in listed(b, "b")]
        grounds = [next((body.shape for body in side if body.is_ground), None) for side in (first, second or [])]
        if None not in grounds:
            refuse_unsupported(question, *grounds)
        names = [getattr(body.shape, "name", "") or "" for body in first]
        return PlacedLists(first, second, allowed_pairs(allowed, names), choose_device(device))

    @property
    def others(self) -> list[ListedBody]:
        """Those whose numbers the second of a pair has."""
        return self.a if self.b is None else self.b

    def kept(self, pairs: np.ndarray) -> np.ndarray:
        """Those of some pairs that are asked about."""
        if self.b is not None:
            return pairs
        ground = np.array([body.is_ground for body in self.a], bool)
        pairs = pairs[~(ground[pairs[:, 0]] & ground[pairs[:, 1]])]
        return pairs[~np.isin(pairs @ [len(self.a), 1], self.dropped @ [len(self.a), 1])]

    def near(self, margin: float) -> np.ndarray:
        """(k, 2) pairs that may be within `margin` of each other, in rising order."""
        pairs, _ = meeting_bodies(self.a, self.b, margin, "sweep", self.device, resting=True)
        return self.kept(pairs)

    def largest(self) -> float:
        """Of the bodies that are not ground, how far two points of one may be apart [m]."""
        sizes = [_diameter(body) for body in (*self.a, *(self.b or ())) if not body.is_ground]
        return max(sizes, default=0.0)

    @cached_property
    def boxes(self) -> list[np.ndarray]:
        """(n, 2, 3) around the bodies of either list [m]; ground goes down for ever."""
        each = []
        for bodies in (self.a, self.b or []):
            boxes = ways_of(bodies, 0.0, self.device)[:, 0].astype(np.float64)
            boxes[[body.is_ground for body in bodies], 0, 2] = -np.inf
            each.append(boxes)
        return each

    def box_distances(self, pairs: np.ndarray) -> np.ndarray:
        """(k,) no pair is nearer than the boxes around its bodies [m]."""
        a, b = self.boxes[0][pairs[:, 0]], self.boxes[0 if self.b is None else 1][pairs[:, 1]]
        apart = np.maximum(np.maximum(a[:, 0] - b[:, 1], b[:, 0] - a[:, 1]), 0.0)
        return (1.0 - 1e-9) * np.linalg.norm(apart, axis=1)

    def answers(self, ask: Callable[[Any, Any], Any], pairs: np.ndarray) -> Iterator[PairAnswers]:
        """What `ask(a, b)` tells about pairs: batches first, then the others one by one."""
        groups, alone = batches(self.a, self.others, pairs, ground=True)
        for rows in groups:
            sides = [self.a[i] for i in pairs[rows, 0]], [self.others[j] for j in pairs[rows, 1]]
            swapped = sides[0][0].is_ground
            things = [joined(side) for side in (sides[::-1] if swapped else sides)]
            yield PairAnswers(rows, ask(*things), False, swapped)
        for row in alone.tolist():
            yield self.one(ask, pairs, row)

    def one(self, ask: Callable[[Any, Any], Any], pairs: np.ndarray, row: int) -> PairAnswers:
        """What `ask(a, b)` tells about one of some pairs."""
        i, j = pairs[row].tolist()
        a, b = self.a[i], self.others[j]
        swapped = a.is_ground and not b.is_ground
        things = (b.thing, a.thing) if swapped else (a.thing, b.thing)
        try:
            found = ask(*things)
        except UnsupportedError as error:
            raise UnsupportedError(f"bodies {i} and {j}: {error}") from None
        return PairAnswers(np.array([row]), found, True, swapped)


def contacts_of_pairs(pairs: np.ndarray, answers: Iterator[PairAnswers]) -> Contacts:
    """The contacts of all pairs, by rising pair, with the numbers of their bodies."""
    parts = []
    for told in answers:
        found = turned_round(told.found) if told.swapped else told.found
        numbers = pairs[told.rows[found.query]].astype(np.int32)
        query = np.zeros(len(found), np.int32)
        parts.append(replace(found, query=query, body_a=numbers[:, 0].copy(), body_b=numbers[:, 1].copy()))
    if not parts:
        return Contacts()
    contacts = Contacts.joined(parts)
    return contacts[np.lexsort((contacts.body_b, contacts.body_a))]


def _placed(body: ListedBody, time: float) -> ListedBody:
    """A body where it is at an instant; of what is at rest the thing itself."""
    if not isinstance(body.thing, Moving):
        return body
    if isinstance(body.motion, Linear):
        mesh = body.thing.at(time)
        return ListedBody(mesh, mesh, Rest())
    still = Rest(body.motion.pose(time))
    return ListedBody(body.shape.moving(still), body.shape, still)


def _diameter(body: ListedBody) -> float:
    if isinstance(body.shape, Analytic):
        return 2.0 * ball_radius(body.shape)
    return float(np.linalg.norm(np.ptp(body.bounds, axis=0)))

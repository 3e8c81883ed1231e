"""The earliest contact in lists that mix kinds: meshes, analytic bodies and ground, rigid, along paths or deforming.

Question: the earliest time in [0, 1] at which any two bodies of a list touch, or one of each of two lists.
Method:   boxes around slices of the ways leave the pairs that may meet, and when at the earliest
          (`query.listed_bodies`). Analytic bodies are asked about in batches of a kind, others pair by pair by the
          engine that the table names; what cannot meet before the earliest contact is dropped.
Sound:    as the engines are. Of equal times that of a pair which overlaps at the start is returned (START), then that
          of the smallest pair.
Known as: the time of impact of a scene of mixed primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Status
from tangere.query.dispatch import answer
from tangere.query.first_contact.options import Accuracy, SceneOptions, Start, check_start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.scene import allowed_pairs
from tangere.query.listed_bodies import ListedBody, batches, joined, listed, meeting_bodies, turned_round
from tangere.runtime import Arrays, InputError, choose_device, using_threads

FREE = FirstContact(np.inf, np.inf, Status.FREE)
#: Pairs of a batch that are asked about together, at most: what comes later is dropped once there is a contact.
LARGEST_BATCH = 4096


def lists_first_contact(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    start: Start = "checked",
    options: SceneOptions | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest contact of any two bodies of list `a`, or of a body of `a` and one of `b`.

    Args:
        a, b: lists of meshes, analytic bodies and ground, or a single one; each at rest or with one motion.
        allowed: of one list, pairs of bodies that may touch, (k, 2), by number or by name.
        separation, tolerance, start: as for `first_contact`; the tolerance that is not given is that of each pair.
        options: the broad phase.
        device, threads: as for `first_contact`.

    Returns:
        `contacts.body_a` and `body_b` are numbers in `a` and in `b`, or both in `a`.
    """
    accuracy, options = Accuracy(separation=separation, tolerance=tolerance), options or SceneOptions()
    check_start(start)
    first = listed(a, "a" if b is not None else "the list")
    second = None if b is None else listed(b, "b")
    names = [getattr(body.shape, "name", "") or "" for body in first]
    dropped = allowed_pairs(allowed, names)
    on = choose_device(device)
    asked = {"separation": separation, "tolerance": tolerance, "start": start, "device": device}
    with using_threads(threads):
        margin = accuracy.separation + (accuracy.tolerance or 0.0)
        pairs, when = meeting_bodies(first, second, margin, options.broad_phase, on)
        kept = ~np.isin(pairs @ [len(first) + 1, 1], dropped @ [len(first) + 1, 1])
        return _Earliest(first, first if second is None else second, asked).of(pairs[kept], when[kept])


class _Earliest:
    """The earliest contact of pairs, as it becomes known."""

    def __init__(self, a: Sequence[ListedBody], b: Sequence[ListedBody], asked: dict[str, Any]) -> None:
        self._a, self._b, self._asked = a, b, {"mode": "sound", "options": None, "threads": None, **asked}
        self._key: tuple[Any, ...] = (np.inf,)
        self._upper = np.inf
        self._found: FirstContact | None = None

    def of(self, pairs: np.ndarray, when: np.ndarray) -> FirstContact:
        """The answer about pairs of bodies that do not meet before the times `when`."""
        groups, alone = batches(self._a, self._b, pairs)
        for group in sorted(groups, key=lambda rows: when[rows].min()):
            order = group[np.argsort(when[group], kind="stable")]
            for place in range(0, len(order), LARGEST_BATCH):
                rows = order[place : place + LARGEST_BATCH]
                self._ask_together(pairs[rows[when[rows] <= self._key[0]]])
        for row in alone[np.argsort(when[alone], kind="stable")]:
            if when[row] <= self._key[0]:
                self._ask(*pairs[row].tolist())
        if self._found is None and len(self._key) > 1:
            self._ask(*self._key[2:], earliest=True)
        if self._found is None:
            return FREE
        return replace(self._found, time_upper=min(self._upper, self._found.time_upper))

    def _ask_together(self, pairs: np.ndarray) -> None:
        """Pairs that make one batch: which is earliest, and when."""
        if not len(pairs):
            return
        sides = joined([self._a[i] for i in pairs[:, 0]]), joined([self._b[j] for j in pairs[:, 1]])
        found = answer("first_contact", *sides, **self._asked)
        assert isinstance(found, FirstContacts)
        self._upper = min(self._upper, float(found.time_upper.min()))
        parted = found.status != Status.START
        row = int(np.lexsort((pairs[:, 1], pairs[:, 0], parted, found.time))[0])
        key = float(found.time[row]), bool(parted[row]), *pairs[row].tolist()
        if found.status[row] != Status.FREE and key < self._key:
            self._key, self._found = key, None  # its contact is asked for when it is the earliest of all

    def _ask(self, i: int, j: int, *, earliest: bool = False) -> None:
        """One pair, by its engine; `earliest`: it is known to be the one that is returned."""
        a, b = self._a[i], self._b[j]
        swapped = a.is_ground and not b.is_ground
        things = (b.thing, a.thing) if swapped else (a.thing, b.thing)
        found = answer("first_contact", *things, **self._asked)
        if isinstance(found, FirstContacts):
            raise InputError(f"bodies {i} and {j} have {len(found)} motions, but a list has one for each body")
        self._upper = min(self._upper, found.time_upper)
        key = found.time, found.status != Status.START, i, j
        if not earliest and (found.status == Status.FREE or key > self._key):
            return
        contacts = turned_round(found.contacts) if swapped else found.contacts
        count = len(contacts)
        numbered = replace(contacts, body_a=np.full(count, i, np.int32), body_b=np.full(count, j, np.int32))
        self._key, self._found = key, replace(found, contacts=numbered)

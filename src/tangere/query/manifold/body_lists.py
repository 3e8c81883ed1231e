"""Where do the bodies of a list, or of two lists, touch each other?

Method: boxes leave the pairs that may be near enough (`query.placed_lists`), each of which has the contacts that
        `manifold` finds of it: bodies of a kind on one ground, or with those of another kind, are one batch.
Sound:  as `manifold` of each pair; meshes that pass through each other raise, with the numbers of the two bodies.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.manifold.convex.batch import MARGIN
from tangere.query.manifold.engines import manifold
from tangere.query.placed_lists import PlacedLists, contacts_of_pairs
from tangere.runtime import Arrays, using_threads


def lists_manifold(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    time: Arrays = 0.0,
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of any two bodies of list `a`, or of a body of `a` and one of `b`; arguments as for `manifold`."""
    lists = PlacedLists.of("manifold", a, b, allowed, time, device)
    with using_threads(threads):
        # A margin of its own that a pair has is a part of the size of one of the two, or of both.
        margin = 2.0 * MARGIN * lists.largest() if distance is None else distance
        pairs = lists.near(margin)
        return contacts_of_pairs(pairs, lists.answers(partial(manifold, distance=distance, device=device), pairs))

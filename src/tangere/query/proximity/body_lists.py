"""What of the bodies of a list, or of two lists, is nearer than a distance?

Method: boxes leave the pairs that may be near (`query.placed_lists`), each of which has the contacts that `proximity`
        finds of it; analytic bodies of a kind are one batch with those of another kind, with a mesh or with a ground.
Sound:  as `proximity` of each pair.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.dispatch import is_analytic
from tangere.query.placed_lists import PlacedLists, contacts_of_pairs
from tangere.query.proximity.convex.api import bodies_proximity
from tangere.runtime import Arrays, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def lists_proximity(
    a: Any,
    b: Any = None,
    *,
    distance: float,
    time: Arrays = 0.0,
    allowed: Arrays | None = None,
    nearest: bool = False,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of any two bodies of list `a`, or of a body of `a` and one of `b`; arguments as for `proximity`."""
    lists = PlacedLists.of("proximity", a, b, allowed, time, device)
    at_rest: dict[int, Mesh] = {}

    def still(thing: Any) -> Any:
        """A mesh at the vertices that it has where it is, with trees of its own: made once, not for each pair."""
        if not isinstance(thing, Moving):
            return thing
        if id(thing) not in at_rest:
            at_rest[id(thing)] = thing.at(0.0)
        return at_rest[id(thing)]

    def ask(one: Any, other: Any) -> Contacts:
        if not is_analytic(one) and not is_analytic(other):
            one, other = still(one), still(other)
        return bodies_proximity(one, other, distance=distance, nearest=nearest, device=device)

    with using_threads(threads):
        pairs = lists.near(distance)
        return contacts_of_pairs(pairs, lists.answers(ask, pairs))

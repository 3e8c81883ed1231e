"""Of several contacts of one vertex or edge the nearest: at most one of each is left.

The nearest contact of all is kept, and takes its vertex, or both its edges; then the nearest of those whose vertex or
edges are still free, and so on. So no vertex has two contacts with faces and no edge two with edges, a contact is left
out only where its vertex, or one of its edges, keeps another that is not farther, and bodies may change places. Faces
are not counted: many vertices rest on one (Léonard 2021, section 3.8: of several
contacts of one primitive the shortest).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts, Kind
from tangere.runtime import SOUND, choose_device, launch

wp.set_module_options(SOUND)


def nearest_of_each(contacts: Contacts) -> Contacts:
    """The contacts that are left, in the same order; of equally near ones the first in that order counts as nearer."""
    count = len(contacts)
    if not count:
        return contacts
    edges = contacts.kind == Kind.EDGE_EDGE
    a, b = ((body.astype(np.int64) << 32) | feature for body, feature in _sides(contacts))
    one = np.where(edges | (contacts.vertex_on == 0), a, b)
    other = np.where(edges, b, one)  # the face is free for all
    kind = np.tile(edges.astype(np.int64) << 62, 2)
    _, numbers = np.unique(np.concatenate([one, other]) | kind, return_inverse=True)
    claims = numbers.reshape(2, count).T.astype(np.int32)
    order = np.argsort(contacts.gap, kind="stable").astype(np.int32)
    cpu = choose_device("cpu")
    inputs = [wp.array(order, dtype=wp.int32, device=cpu), wp.array(claims, dtype=wp.vec2i, device=cpu)]
    taken = wp.zeros(int(claims.max()) + 1, dtype=wp.uint8, device=cpu)
    kept = wp.zeros(count, dtype=wp.uint8, device=cpu)
    launch(_claim, 1, inputs, [taken, kept], device=cpu)  # one after the other: each depends on those before
    return contacts[kept.numpy() == 1]


def _sides(contacts: Contacts) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(contacts.body_a, contacts.feature_a), (contacts.body_b, contacts.feature_b)]


@wp.kernel
def _claim(
    first: int, order: wp.array[int], claims: wp.array[wp.vec2i], taken: wp.array[wp.uint8], kept: wp.array[wp.uint8]
):
    """Contacts in their order, each kept if what it claims is free."""
    for k in range(order.shape[0]):
        i = order[k]
        if taken[claims[i][0]] == wp.uint8(0) and taken[claims[i][1]] == wp.uint8(0):
            taken[claims[i][0]] = wp.uint8(1)
            taken[claims[i][1]] = wp.uint8(1)
            kept[i] = wp.uint8(1)

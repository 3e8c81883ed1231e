"""Contacts of a mesh with a block of ground, in the numbers of the whole ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.broad_phase.ground import GroundBlock
from tangere.query.contacts.record import Contacts, Kind, contact_key
from tangere.runtime import CapacityError
from tangere.shape.heightfield import Heightfield, TiledHeightfield

#: Numbers of features in keys of contacts are below this.
MOST_FEATURES = 2**29


def refuse_unnumbered(terrain: Heightfield | TiledHeightfield) -> None:
    """Raise where there are more edges than keys of contacts can number."""
    if 3 * (terrain.shape[0] + 1) * (terrain.shape[1] + 1) >= MOST_FEATURES:
        raise CapacityError(f"{terrain!r} has more edges than keys of contacts can number (2^29)")


def in_ground(contacts: Contacts, block: GroundBlock) -> Contacts:
    """The same contacts with body 1 as the ground, and its vertices, edges and faces by their own numbers."""
    own, kind, of_ground = contacts.feature_b, contacts.kind, contacts.vertex_on == 1
    edge = (kind == Kind.EDGE_EDGE) | ((kind == Kind.OVERLAP) & of_ground)
    number = np.empty(len(own), np.int64)
    number[edge] = block.edge_numbers(own[edge])
    number[~edge & of_ground] = block.vertex_numbers(own[~edge & of_ground])
    number[~edge & ~of_ground] = block.face_numbers(own[~edge & ~of_ground])
    first, second = np.where(of_ground, number, contacts.feature_a), np.where(of_ground, contacts.feature_a, number)
    return replace(
        contacts,
        body_b=np.ones(len(own), np.int32),
        feature_b=number.astype(np.int32),
        key=contact_key(kind, contacts.vertex_on, first, second),
    )

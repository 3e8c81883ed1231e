"""Contacts of a rigid mesh with squares of ground, in the numbers of the whole ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.broad_phase.ground import GroundBlock, WallBlock
from tangere.query.contacts.record import Contacts, Kind, Status, contact_key
from tangere.query.first_contact.options import Start
from tangere.query.first_contact.result import FirstContact
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.query.first_contact.rigid.scene import scene_first_contact
from tangere.runtime import CapacityError
from tangere.shape import Moving
from tangere.shape.heightfield import Heightfield, TiledHeightfield

#: Numbers of features in keys of contacts are below this.
MOST_FEATURES = 2**29
#: Squares that are asked one by one.
FEW_SQUARES = 4


def first_on_squares(
    moving: Moving,
    squares: Sequence[GroundBlock | WallBlock],
    separation: float,
    tolerance: float | None,
    start: Start,
    device: Any,
) -> tuple[FirstContact, GroundBlock | WallBlock]:
    """The first contact of a mesh in one rigid motion with squares of ground or walls, at least one, and with which.

    A few are asked one by one, by questions that are kept ready; many as a scene, which drops what is met later.
    """
    settings: Any = {"separation": separation, "tolerance": tolerance, "start": start, "device": device}
    if len(squares) > FEW_SQUARES:
        found = scene_first_contact([moving, *(block.mesh for block in squares)], **settings)
        return found, squares[0 if found.status == Status.FREE else int(found.contacts.body_b[0]) - 1]
    each = [rigid_first_contact(moving, block.mesh, **settings) for block in squares]
    first = min(range(len(each)), key=lambda k: (each[k].time, each[k].status != Status.START))
    upper = min(found.time_upper for found in each)  # contact with any square is contact
    return replace(each[first], time_upper=upper), squares[first]


def refuse_unnumbered(terrain: Heightfield | TiledHeightfield) -> None:
    """Raise where there are more edges than keys of contacts can number."""
    if 3 * (terrain.shape[0] + 1) * (terrain.shape[1] + 1) >= MOST_FEATURES:
        raise CapacityError(f"{terrain!r} has more edges than keys of contacts can number (2^29)")


def in_ground(contacts: Contacts, block: GroundBlock | WallBlock) -> Contacts:
    """The same contacts with body 1 as the ground, and its vertices, edges and faces by their own numbers.

    A wall has the numbers of what it hangs from, and no weights.
    """
    own, kind, of_ground = contacts.feature_b, contacts.kind, contacts.vertex_on == 1
    edge = (kind == Kind.EDGE_EDGE) | ((kind == Kind.OVERLAP) & of_ground)
    number = np.empty(len(own), np.int64)
    number[edge] = block.edge_numbers(own[edge])
    number[~edge & of_ground] = block.vertex_numbers(own[~edge & of_ground])
    number[~edge & ~of_ground] = block.face_numbers(own[~edge & ~of_ground])
    first, second = np.where(of_ground, number, contacts.feature_a), np.where(of_ground, contacts.feature_a, number)
    return replace(
        contacts,
        weights=np.full((len(own), 4), np.nan) if isinstance(block, WallBlock) else contacts.weights,
        body_b=np.ones(len(own), np.int32),
        feature_b=number.astype(np.int32),
        key=contact_key(kind, contacts.vertex_on, first, second),
    )

"""How far must a body be shifted so that it is out of another? A translation that certainly parts them.

Method: the body comes back from afar along a direction until it first touches; what is left of its way parts the two.
        Far enough is where a plane across the direction is between them. All directions of all pairs are one batch.
Sound:  first contact is never late, so the body is free all the way down to the shift that is told, which is an upper
        bound of the least translation that parts them.
Known as: directional penetration depth, an upper bound of (translational) penetration depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import warp as wp

from tangere.motion import Rest, Twist
from tangere.query.contacts.record import Status
from tangere.query.first_contact.rigid.api import rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.shape.mesh import Mesh

#: Faces, edges and corners of a cube, as unit vectors.
DIRECTIONS = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
#: Beside the way until a plane is between them, as a part of the bodies.
_BESIDE = 0.01


def find_escapes(
    shapes: Sequence[Mesh],
    shape: np.ndarray,
    poses: np.ndarray,
    pairs: np.ndarray,
    directions: np.ndarray,
    *,
    device: str | wp.Device | None = None,
) -> np.ndarray:
    """(k, 3) translations of the first body of each pair that part it from the second: the shortest that was found [m].

    Args:
        pairs: (k, 2) numbers of bodies, body i being `shapes[shape[i]]` at `poses[i]`.
        directions: (k, m, 3) unit vectors to try, or (m, 3) for all.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    count = len(pairs)
    ways = np.broadcast_to(directions, (count, *np.shape(directions)[-2:]))
    many = ways.shape[1]
    if not count:
        return np.zeros((0, 3))
    lengths = np.empty((count, many))
    for row, (a, b) in enumerate(pairs):
        one, other = (shapes[shape[k]].vertices @ poses[k, :3, :3].T + poses[k, :3, 3] for k in (a, b))
        lengths[row] = (other @ ways[row].T).max(axis=0) - (one @ ways[row].T).min(axis=0)
        lengths[row] += _BESIDE * (shapes[shape[a]].extent + shapes[shape[b]].extent)
    apart = lengths <= 0.0
    away = (ways * np.maximum(lengths, 0.0)[..., None]).reshape(-1, 3)
    starts = np.repeat(poses[pairs[:, 0]], many, axis=0)
    starts[:, :3, 3] += away
    found = rigid_first_contacts(
        MovingBodies(shapes, Twist(starts, -away, np.zeros_like(away)), np.repeat(shape[pairs[:, 0]], many)),
        MovingBodies(shapes, Rest(np.repeat(poses[pairs[:, 1]], many, axis=0)), np.repeat(shape[pairs[:, 1]], many)),
        details=False,
        device=device,
    )
    time = np.where(found.status == Status.FREE, 1.0, found.time).reshape(count, many)
    left = np.where(apart, 0.0, lengths * (1.0 - time))
    best = left.argmin(axis=1)
    rows = np.arange(count)
    return ways[rows, best] * left[rows, best, None]

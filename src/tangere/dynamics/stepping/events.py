"""Which bodies struck each other in a step, how fast, and with what impulse.

A pair of bodies has an event where contacts of theirs approached faster than at rest, and pushed. Contacts that rest,
roll or slide have none: their forces are `World.forces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tangere.dynamics.contact.row_set import RowSet


@dataclass(frozen=True, eq=False)
class WorldImpacts:
    """Impacts of the last step, one for each pair of bodies, in their order."""

    body_a: np.ndarray  #: (n,) int
    body_b: np.ndarray  #: (n,) int
    point: np.ndarray  #: (n, 3) where, the middle of their contacts by impulse [m]
    impulse: np.ndarray  #: (n, 3) on body a [N s]
    speed: np.ndarray  #: (n,) of the fastest approach, where the step began or without contacts [m/s]

    def __len__(self) -> int:
        return len(self.speed)

    def __repr__(self) -> str:
        fastest = f", the fastest at {self.speed.max():.4g} m/s" if len(self) else ""
        return f"WorldImpacts({len(self)}{fastest})"


NO_IMPACTS = WorldImpacts(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))


def impacts_of(rows: RowSet, before: np.ndarray, free: np.ndarray, slowest: float) -> WorldImpacts:
    """The impacts among the rows of a step.

    Args:
        before, free: (bodies, 6) velocities where the step began, and at its end without contacts.
        slowest: approaches slower than this are no impacts [m/s], as for bounces.
    """
    if not rows.count:
        return NO_IMPACTS
    speed = np.maximum(rows.approach(before), rows.approach(free))
    impulse = rows.impulses()
    size = np.linalg.norm(impulse, axis=1)
    struck = np.flatnonzero((size > 0.0) & (rows.approach(before) > slowest))
    if not len(struck):
        return NO_IMPACTS
    found = rows.contacts()[struck]
    pairs, place = np.unique(np.stack([found.body_a, found.body_b], axis=1), axis=0, return_inverse=True)
    place = place.reshape(-1)
    total, fastest, points = np.zeros((len(pairs), 3)), np.zeros(len(pairs)), np.zeros((len(pairs), 3))
    weight = np.zeros(len(pairs))
    np.add.at(total, place, impulse[struck])
    np.add.at(weight, place, size[struck])
    np.add.at(points, place, size[struck, None] * found.point_a)
    np.maximum.at(fastest, place, speed[struck])
    return WorldImpacts(pairs[:, 0], pairs[:, 1], points / weight[:, None], total, fastest)


def all_impacts(parts: Sequence[WorldImpacts]) -> WorldImpacts:
    """Those of all parts of a step, in order."""
    names = ("body_a", "body_b", "point", "impulse", "speed")
    return WorldImpacts(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

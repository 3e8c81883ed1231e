"""A run of a hand as a recorded world: where the part was, what it touched and what the hand felt."""

from __future__ import annotations

import numpy as np

from tangere.dynamics import Recorder, Recording
from tangere.hand.hand import Hand

#: Separations within which a contact is kept.
TOUCHING = 1.5


class HandRecorder:
    """Keeps frames of a hand: call it at the start and whenever a frame is to be kept.

    Contacts of a frame are the points that touch, without a force; at the grip stands the force that the hand feels.

    Args:
        hand: whose frames are kept.
    """

    def __init__(self, hand: Hand) -> None:
        self._hand, self._recorder = hand, Recorder(hand.world)
        self.kept = 0  #: frames

    def __call__(self) -> None:
        """Keep what is now."""
        hand, found = self._hand, self._hand.contacts
        near = found.gap <= TOUCHING * hand.separation
        points = 0.5 * (found.point_a + found.point_b)[near]
        pairs = np.stack([found.body_a, found.body_b], axis=1)[near]
        forces = np.zeros((len(points), 3))
        if len(points):
            points = np.concatenate([points, hand.handle[None, :3, 3]])
            forces = np.concatenate([forces, hand.force[None]])
            pairs = np.concatenate([pairs, pairs[:1]])
        self._recorder.keep(hand.time, points, forces, pairs)
        self.kept += 1

    def recording(self) -> Recording:
        """Everything kept so far."""
        return self._recorder.recording()

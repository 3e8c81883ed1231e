"""Contacts of recorded runs: small balls that jump to where the contacts of each frame are.

Contacts of one frame are not those of the next, so balls do not go from one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.query.contacts import Kind
from tangere.scene.scene import Thing
from tangere.shape.mesh import Mesh

#: Contacts of a vertex and a face are green, of two edges red, as in Léonard 2021.
CONTACT_COLOURS = {Kind.VERTEX_FACE: (0.05, 0.62, 0.18), Kind.EDGE_EDGE: (0.85, 0.08, 0.12)}


@dataclass(frozen=True, eq=False)
class RecordedContacts:
    """Where things touched, in the frames of a run."""

    times: np.ndarray  #: (k,) when the frames are shown, 0 the first and 1 the last
    points: np.ndarray  #: (c, 3) of all contacts, frame after frame [m]
    kinds: np.ndarray  #: (c,) uint8, `Kind`
    first: np.ndarray  #: (k + 1,) where the contacts of each frame begin

    def at(self, time: float, kind: int | None = None) -> np.ndarray:
        """(n, 3) contacts in the frame nearest to `time` [m], of one kind or of all."""
        frame = int(np.argmin(np.abs(self.times - time)))
        rows = slice(*self.first[frame : frame + 2])
        points, kinds = self.points[rows], self.kinds[rows]
        return points if kind is None else points[kinds == kind]

    def things(self, extent: float, hidden: np.ndarray) -> list[Thing]:
        """Balls in the colours of their kinds.

        Args:
            extent: of what moves [m].
            hidden: (3,) where balls without a contact are, with no size [m].
        """
        radius = ball_size(int(np.diff(self.first).max(initial=1)), extent)
        things = []
        for kind, colour in CONTACT_COLOURS.items():
            begins = np.concatenate([[0], np.cumsum(self.kinds == kind)])
            most = int(np.diff(begins[self.first]).max(initial=0))
            if most:
                spare = balls(np.zeros((most, 3)), radius)
                name = kind.name.lower().replace("_", "-") + " contacts"
                things.append(Thing(name, spare.moving(_ContactBalls(self, int(kind), radius, hidden)), colour))
        return things


@dataclass(frozen=True, eq=False)
class _ContactBalls:
    """A motion that is none: balls jump to where the contacts of each frame are, spare ones shrink to nothing."""

    contacts: RecordedContacts
    kind: int
    radius: float
    hidden: np.ndarray

    @property
    def times(self) -> np.ndarray:
        """When the frames are shown: where exported animations have their keys."""
        return self.contacts.times

    def positions(self, start: Any, time: float) -> np.ndarray:
        points = self.contacts.at(time, self.kind)
        moved = np.array(np.broadcast_to(self.hidden, np.asarray(start).shape))
        if len(points):
            placed = balls(points, self.radius).vertices
            moved[: len(placed)] = placed
        return moved


def ball_size(count: int, extent: float) -> float:
    """Radius of the ball at a contact [m]: smaller where many would hide each other."""
    return 0.012 * extent * min(1.0, (60.0 / max(count, 1)) ** 0.35)


def balls(points: np.ndarray, radius: float) -> Mesh:
    """A small ball at each point (n, 3), as one mesh."""
    from tangere.shape.generate import icosphere  # only who draws needs it

    ball = icosphere(subdivisions=1, radius=radius)
    faces = ball.faces + len(ball.vertices) * np.arange(len(points))[:, None, None]
    return Mesh((points[:, None] + ball.vertices).reshape(-1, 3), faces.reshape(-1, 3), name="contacts")

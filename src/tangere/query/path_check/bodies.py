"""What is asked about a path where the part or an obstacle is an analytic body, or an obstacle is ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.query.clearance.bodies import bodies_clearance
from tangere.query.dispatch import answer
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.listed_bodies import ball_radius
from tangere.query.path_check.clearance_profile import PathQuestion
from tangere.shape.analytic import Analytic


class BodyPathQuestion(PathQuestion):
    """A part, its path and what is in the way, each of any kind that first contacts are known of."""

    def first_contacts(self, obstacle: Any, block: slice) -> FirstContacts:
        """Of each segment of a block with an obstacle."""
        return self._first_contact(self.path.segments[block], obstacle)

    def hit(self, segment: int, obstacle: Any) -> FirstContact:
        """The first contact of a segment."""
        return self._first_contact(self.path.segments[segment], obstacle)

    def nearest(self, obstacle: Any, block: slice, bound: float, accuracy: float) -> tuple[np.ndarray, ...]:
        """As of meshes, segment by segment."""
        asked = {"accuracy": accuracy, "cap": bound, "tolerance": self.tolerance, "device": self.device}
        found = bodies_clearance(self.part.moving(self.path.segments[block]), obstacle, **asked)
        return np.where(np.isfinite(found.upper), found.time, -1.0), found.upper, found.lower

    @property
    def ball(self) -> tuple[np.ndarray, float]:
        """Centre and radius of a ball around the part, in its own frame [m]."""
        if isinstance(self.part, Analytic):
            return np.asarray(self.part.poses)[0, :3, 3], ball_radius(self.part)
        return super().ball

    def _first_contact(self, motion: Any, obstacle: Any) -> Any:
        asked = {"mode": "sound", "start": "checked", "options": None, "threads": None, "device": self.device}
        moving = self.part.moving(motion)
        return answer("first_contact", moving, obstacle, separation=self.separation, tolerance=self.tolerance, **asked)

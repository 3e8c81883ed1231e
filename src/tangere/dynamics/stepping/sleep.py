"""Islands at rest sleep: they cost nearly nothing until something touches them.

Question: which bodies need no rows, no queries and no motion, because nothing about them changes?
Method:   an island of bodies all of which have been slower than a part of the security distance a step, for some steps,
          sleeps as a whole: its bodies stand still, as if fixed, and are not compared with each other nor with what is
          fixed. Whatever comes near to one of them, meets it on its way, or is done to it by a user, wakes all that
          sleep with it, before the step goes on.
Sound:    sleepers stand where they were certified to be apart, and are walked against everything that moves.
Known as: sleeping, island deactivation.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import warp as wp

from tangere.query.contacts import Contacts

NO_CONTACTS = Contacts.of(point_a=np.zeros((0, 3)), normal=np.zeros((0, 3)))
#: Security distances a step below which a body is at rest, part of the speed that gravity gives in a step; and for how
#: many steps before it sleeps.
SLOW, SLOW_FALL, QUIET_STEPS = 0.01, 0.02, 30


class Sleepers:
    """Who sleeps, and with whom.

    Args:
        radius: (n,) of each body about its centre of mass [m].
        tireless: (n,) bool: bodies that never sleep, because they are not in islands.
    """

    def __init__(self, radius: np.ndarray, tireless: np.ndarray, device: wp.Device) -> None:
        self._radius, self._tireless = radius, tireless
        count = len(radius)
        self.array = wp.zeros(count, dtype=wp.uint8, device=device)  #: 1 for who sleeps
        self._group = np.full(count, -1)  #: whom each sleeps with; -1 is awake
        self._quiet = np.zeros(count, int)  #: steps that each has been at rest
        self.contacts, self.forces = NO_CONTACTS, np.zeros((0, 3))  #: that sleepers had when they fell asleep
        self.save()

    @property
    def asleep(self) -> np.ndarray:
        """(n,) bool."""
        return self._group >= 0

    def save(self) -> None:
        """Keep who sleeps now."""
        self._saved = self._group.copy(), self._quiet.copy(), self.contacts, self.forces

    def restore(self) -> None:
        """As it was kept."""
        group, quiet, self.contacts, self.forces = self._saved
        self._group, self._quiet = group.copy(), quiet.copy()
        self._tell()

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Who sleeps, with whom and on what, by name."""
        contacts = {f"contact_{column.name}": getattr(self.contacts, column.name) for column in fields(Contacts)}
        return {"group": self._group.copy(), "quiet": self._quiet.copy(), "force": self.forces, **contacts}

    def resume(self, kept: dict[str, np.ndarray]) -> None:
        """As a checkpoint has it."""
        self._group, self._quiet, self.forces = kept["group"].copy(), kept["quiet"].copy(), kept["force"]
        self.contacts = Contacts(**{column.name: kept[f"contact_{column.name}"] for column in fields(Contacts)})
        self.save()
        self._tell()

    def wake(self, bodies: np.ndarray) -> bool:
        """Wake bodies and all that sleep with them; whether anybody did. What never sleeps may hold up anybody."""
        self._quiet[bodies] = 0
        groups = np.unique(self._group[bodies])
        woken = np.isin(self._group, groups[groups >= 0])
        if self._tireless[bodies].any():
            woken = self.asleep
        if not woken.any():
            return False
        self._group[woken], self._quiet[woken] = -1, 0
        lasting = self.of_sleepers(self.contacts)
        self.contacts, self.forces = self.contacts[lasting], self.forces[lasting]
        self._tell()
        return True

    def remember(self, contacts: Contacts, forces: np.ndarray) -> None:
        """Those of the contacts of a step that are of sleepers: they hold on, with their forces, until these wake."""
        slept = self.of_sleepers(contacts)
        self.contacts = Contacts.joined([self.contacts, contacts[slept]])
        self.forces = np.concatenate([self.forces, forces[slept]])

    def of_sleepers(self, contacts: Contacts) -> np.ndarray:
        """Which contacts have a body that sleeps."""
        asleep = self.asleep
        return asleep[contacts.body_a] | asleep[contacts.body_b]

    def touched(self, body_a: np.ndarray, body_b: np.ndarray) -> bool:
        """Wake whoever sleeps of pairs of bodies that come near each other; whether anybody did."""
        asleep = self.asleep
        if not asleep.any():
            return False
        near = np.concatenate([body_a[asleep[body_a]], body_b[asleep[body_b]]])
        return bool(len(near)) and self.wake(np.unique(near))

    def settle(self, island: np.ndarray, motion: np.ndarray, velocity: np.ndarray, still: float, dt: float) -> bool:
        """After a step: put islands to sleep that have been at rest for long enough; whether any was.

        Args:
            island: (n,) of each body, -1 for none.
            motion: (n, 6) how each went in the step.
            velocity: (n, 6) at its end.
            still: how far a body at rest goes in a step, at most [m].
        """
        way = np.maximum(_way(motion, self._radius), dt * _way(velocity, self._radius))
        self._quiet = np.where((way < still) & (island >= 0), self._quiet + 1, 0)
        awake = (island >= 0) & ~self._tireless & ~self.asleep
        if not awake.any():
            return False
        restless = np.unique(island[awake & (self._quiet < QUIET_STEPS)])
        tired = awake & ~np.isin(island, restless)
        if not tired.any():
            return False
        self._group[tired] = island[tired] + self._group.max() + 1
        self._tell()
        return True

    def _tell(self) -> None:
        self.array.assign(self.asleep.astype(np.uint8))


def _way(motion: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """How far no point of each body goes beyond."""
    return np.linalg.norm(motion[:, :3], axis=1) + radius * np.linalg.norm(motion[:, 3:], axis=1)

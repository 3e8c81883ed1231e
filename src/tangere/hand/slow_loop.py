"""The slow loop: takes the part from one certified pose to the next, and looks what is near it there.

Question: can the part go where the fast loop has it now, and which contacts hold it there?
Method:   a twist leads from the last certified pose to the new one. Bodies that were farther away there than any point
          of the part goes cannot be met; of all others the first contact is asked for. Where there is one the part
          stops before it. Then the features of all bodies within reach of the part become rows.
Sound:    every pose that is handed out was reached by a certified motion, on which the part kept 0.4 of the security
          distance from everything, or of what it had where that was less: nine tenths of what was little.
Known as: multi-rate haptic rendering; constraint-based god-objects (Ortega, Redon and Coquillart 2007).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.dynamics import World
from tangere.hand.coupling import ContactRowSet
from tangere.motion import Twist, quaternions_of
from tangere.query.contacts import Contacts
from tangere.query.first_contact import PreparedFirstContact
from tangere.query.proximity.posed import PosedContacts, PosedProximity
from tangere.runtime import InputError, NonCopyable, UnsupportedError

#: Of the security distance, or of a gap that is less: what a walk keeps; of what it may give up: its tolerance.
KEPT, TOLERANCE = 0.4, 0.2
#: Of the security distance: a gap that is small; of such a one: what a walk keeps, so that walks do not take all of it.
SMALL, KEPT_OF_SMALL = 0.1, 0.9
#: Of the reach: how far the part may go from where contacts were looked for. What is not known is farther away.
GONE = 0.5
#: Times the way of the last walk: what the part looks ahead. Who goes as far as it may gets twice as far in the next.
GROWTH = 4.0


class SlowLoop(NonCopyable):
    """A part among the bodies of a world, which stand where they are.

    Args:
        body: number of the part.
        grip: (3,) the point of it that is held, in its mesh's frame [m].
        security: how far contacts are kept apart [m].
        reach: within which distance features become rows, at least, and at most [m].
    """

    def __init__(
        self,
        world: World,
        body: int,
        grip: np.ndarray,
        *,
        security: float,
        reach: float,
        most_reach: float,
        threads: int | None,
    ) -> None:
        self.world, self.body, self.grip = world, body, grip
        self.security, self._reach, self._most_reach = security, reach, most_reach
        others = _others(world, body)
        meshes = [world.bodies[body].mesh, *(world.bodies[k].mesh for k in others)]
        self._bodies = np.array([body, *others])
        self._pairs = np.array([[0, k + 1] for k in range(len(others))], np.int32).reshape(-1, 2)
        self._near = PosedProximity(meshes, device=world.device, threads=threads)
        self._first_contact = PreparedFirstContact(meshes, device=world.device, threads=threads)
        self._free = ~world.bodies[body].held | world.bodies[body].driven  # axes along which it can go
        self.radius = float(np.linalg.norm(meshes[0].vertices - grip, axis=1).max())
        self._held = world[body]
        self.poses = world.poses[self._bodies]
        self._in_world = self.poses.copy()  # as the world has them, which rounds
        self.stopped, self.asked = 0, 0  #: walks that met something, and walks that had to ask
        self.clearance = np.inf  #: not above the distance to anything, up to the reach
        self._found: PosedContacts | None = None
        self._check_free(self._look(reach), " and cannot be held")

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) of the part, certified."""
        return self.poses[0].copy()

    @property
    def contacts(self) -> Contacts:
        """What is within reach of the part, which is the first body of each; numbers of bodies are the world's."""
        if self._found is None or not len(self._found):
            return Contacts()
        found = self._found.contacts
        return replace(found, body_a=self._bodies[found.body_a], body_b=self._bodies[found.body_b])

    def look(self, proxy: np.ndarray) -> ContactRowSet:
        """Take the part to where the fast loop has it, as far as it can go, and look what is near it."""
        self._read_world()
        goal = np.eye(4)
        goal[:3, :3] = proxy[4:13].reshape(3, 3)
        goal[:3, 3] = proxy[1:4] - goal[:3, :3] @ self.grip
        stopped = self._walk(goal)
        self._held.set_state(pose=self.poses[0], velocity=np.zeros(3), spin=np.zeros(3))
        self._in_world = self.world.poses[self._bodies]
        found = self._look(min(max(GROWTH * self._gone, self._reach), self._most_reach))
        return self._rows(found, stopped)

    def rows(self) -> ContactRowSet:
        """What is near the part where it is."""
        assert self._found is not None
        return self._rows(self._found, False)

    def place(self, pose: np.ndarray) -> None:
        """Put the part elsewhere, at rest; raises, and leaves it, where it passes through a body."""
        self._read_world()
        before = self.poses[0].copy()
        self.poses[0] = pose
        try:
            self._check_free(self._look(self._searched), " there: it stays where it was")
        except InputError:
            self.poses[0] = before
            self._look(self._searched)
            raise
        self._held.set_state(pose=pose, velocity=np.zeros(3), spin=np.zeros(3))
        self._in_world = self.world.poses[self._bodies]

    def _check_free(self, found: PosedContacts, told: str) -> None:
        """Raise where the part passes through another body."""
        if found.overlapping.any():
            held = self.world.bodies[int(self._bodies[0])].name
            other = self.world.bodies[int(self._bodies[1 + int(np.argmax(found.overlapping))])].name
            raise InputError(f"body {int(self._bodies[0])} ({held!r}) passes through {other!r}{told}")

    def _read_world(self) -> None:
        """Other bodies may have been put elsewhere, and so may the part: the world knows."""
        poses = self.world.poses[self._bodies]
        if not np.array_equal(poses, self._in_world):
            self.poses, self._in_world = poses, poses.copy()
            self._look(self._searched)

    def _walk(self, goal: np.ndarray) -> bool:
        """Go there; whether something was in the way."""
        start = self.poses[0]
        way = goal[:3, :3] @ self.grip + goal[:3, 3] - start[:3, :3] @ self.grip - start[:3, 3]
        turn = rotation_vector(goal[:3, :3] @ start[:3, :3].T)
        farthest = float(np.linalg.norm(way) + self.radius * np.linalg.norm(turn))
        self._gone = farthest
        least = self._least
        small = np.minimum(SMALL * self.security, KEPT_OF_SMALL * least)
        kept = np.minimum(KEPT * self.security, np.maximum(KEPT * least, small))
        asked = np.flatnonzero(farthest >= (least - kept) * (1.0 - 1e-9)) if farthest > 0.0 else ()
        until = 1.0
        if len(asked):
            self.asked += 1
            prepared = self._first_contact
            prepared.set(0, start, way, turn, self.grip)
            size = self.radius + farthest + float(np.abs(start[:3, 3]).max())
            for k in asked.tolist():
                prepared.set(k + 1, self.poses[k + 1], np.zeros(3), np.zeros(3))
                allowed = min(TOLERANCE * (least[k] - kept[k]), 0.5 * TOLERANCE * self.security)
                tolerance = max(allowed, 1e-11 * size)
                hit = prepared.first_contact(
                    0, k + 1, separation=float(kept[k]), tolerance=float(tolerance), start="trusted", until=until
                )
                until = min(until, float(hit.time))
        if until < 1.0:
            self.stopped += 1
            self.poses[0] = Twist(start, way, turn, self.grip).pose(until)
            return True
        self.poses[0] = goal
        return False

    def _look(self, reach: float) -> PosedContacts:
        """What is within a distance of the part."""
        found = self._near.at(self.poses, self._pairs, reach)
        self._found, self._searched = found, reach
        self._least = found.least
        self.clearance = float(found.least.min()) if len(self._pairs) else np.inf
        return found

    def _rows(self, found: PosedContacts, stopped: bool) -> ContactRowSet:
        pose, count, columns = self.poses[0], len(found), found.columns
        grip = pose[:3, :3] @ self.grip + pose[:3, 3]
        rows, room = np.empty((count, 6)), np.empty(count)
        if count:
            normal = columns.normal.numpy()[:count]
            rows[:, :3], rows[:, 3:] = normal, np.cross(columns.point_a.numpy()[:count] - grip, normal)
            room[:] = columns.gap.numpy()[:count] - self.security
            rows[:, ~self._free] = 0.0
        return ContactRowSet(grip, pose[:3, :3].copy(), rows, room, GONE * self._searched, stopped)


def rotation_vector(rotation: np.ndarray) -> np.ndarray:
    """(3,) axis times angle of a rotation (3, 3), of at most half a turn."""
    w, *rest = quaternions_of(rotation[None])[0]
    vector = np.array(rest)
    length = float(np.linalg.norm(vector))
    return vector * (2.0 * np.arctan2(length, w) / length) if length > 1e-12 else 2.0 * vector


def _others(world: World, body: int) -> list[int]:
    """The bodies that the part is compared with."""
    held = world.bodies[body]
    if held.fixed:
        raise InputError(f"body {body} ({held.name!r}) is fixed: a hand holds what can move")
    for k, other in enumerate(world.bodies):
        if other.ground is not None:
            raise UnsupportedError(f"body {k} ({other.name!r}) is a height grid: a hand moves parts among meshes only")
    joined = [joint.name for joint in world.joints if body in (joint.body_a, joint.body_b)]
    if joined:
        raise UnsupportedError(f"body {body} ({held.name!r}) has the joint {joined[0]!r}: a hand holds free parts only")
    allowed = {frozenset(pair) for pair in world.told_options()["allowed"]}
    return [
        k
        for k, other in enumerate(world.bodies)
        if k != body and frozenset((k, body)) not in allowed and (held.group is None or other.group != held.group)
    ]

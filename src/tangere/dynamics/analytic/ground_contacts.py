"""What holds bodies above the ground: contact manifolds where a step begins, first contacts on its way.

Question: where do analytic bodies come near to a height grid, and does any of them touch it on its way?
Method:   `manifold` lists what is nearer than bodies can get in the step; each contact is a row like any other. The way
          is asked about with first contact, with a separation that fits each body: what the world keeps, and beyond it
          0.4 of the body's own clearance, or of the security distance where that is less (`walk`). Bodies of
          like separation are asked about together. Meshes are taken for their convex hulls, which hold them.
Sound:    a motion that nobody reports as hit stays farther from the ground than its separation.
Known as: contact manifolds on height fields (Strashnov and Torgashev 2020), with conservative advancement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.analytic.hits import AnalyticHits
from tangere.dynamics.analytic.separation import kept_on_the_way
from tangere.dynamics.body import Body
from tangere.dynamics.contact.rows import Distances
from tangere.motion import Twist
from tangere.query.contacts import Contacts
from tangere.query.first_contact import first_contact
from tangere.query.manifold import manifold
from tangere.runtime import InputError
from tangere.shape.analytic import ROUND, Analytic

#: Security distances that bodies are rocked by, to find what they would touch next.
ROCK = 2.0


class GroundContacts:
    """The bodies of a world that its ground may hold.

    Args:
        bodies: of all worlds; one of each world at most is ground.
        worlds: (n,) the world of each body.
    """

    def __init__(self, bodies: Sequence[Body], worlds: np.ndarray, distances: Distances, device: wp.Device) -> None:
        self._device, self._distances, self._security = device, distances, float(distances.security)
        self.of_body = ground_of(bodies, worlds)
        grounds = {id(body.ground): body.ground for body in bodies if body.ground is not None}
        if len(grounds) > 1:
            raise InputError("World: its bodies stand on more than one ground; one Heightfield may hold all of it")
        self._terrain = next(iter(grounds.values()))
        moving = [k for k, body in enumerate(bodies) if body.ground is None and not body.fixed and self.of_body[k] >= 0]
        #: numbers of bodies, by the batch that they are asked about in
        self._batches = _batches(bodies, np.array(moving, int))
        self._rocks = np.array([body.ground is None and body.form.kind != ROUND for body in bodies])
        self._radius = np.array([max(body.mesh.extent, 1e-300) / 2.0 for body in bodies])
        self._gap = np.full(len(bodies), np.inf)  #: of each body where the step begins

    def gather(self, poses: np.ndarray, awake: np.ndarray, distance: np.ndarray) -> Contacts:
        """The contacts of bodies that are awake, by rising body and key; `body_b` is the ground's body.

        Args:
            poses: (n, 4, 4).
            distance: (n,) how far each looks [m].
        """
        found = self._with_rocked(self._near(poses, awake, distance), poses, distance)
        self._gap[:] = np.inf
        asked = np.concatenate([numbers for _, numbers in self._batches]) if self._batches else np.zeros(0, int)
        self._gap[asked] = distance[asked]
        np.minimum.at(self._gap, found.body_a, found.gap)
        return found

    def _near(self, poses: np.ndarray, chosen: np.ndarray, distance: np.ndarray) -> Contacts:
        parts = []
        for shape, numbers in self._batches:
            mine = numbers[chosen[numbers]]
            if not len(mine):
                continue
            placed = _rows(shape, numbers, mine).at(poses[mine])
            found = manifold(placed, self._terrain, distance=float(distance[mine].max()), device=self._device)
            body = mine[found.body_a].astype(np.int32)
            near = found.gap <= distance[body]
            parts.append(replace(found, body_a=body, body_b=self.of_body[body])[near])
        if not parts:
            return _NONE
        joined = Contacts.joined(parts)
        return joined[np.lexsort((joined.key, joined.body_a))]

    def _with_rocked(self, found: Contacts, poses: np.ndarray, distance: np.ndarray) -> Contacts:
        """Contacts, and those that bodies would have if they were rocked by a hair.

        A body that stands on an edge of the ground has one at a time, where it is nearest, and would rock from one to
        the other.
        """
        parts = [found]
        chosen = np.zeros(len(poses), bool)
        chosen[found.body_a[self._rocks[found.body_a]]] = True
        if not chosen.any():
            return found
        angle = ROCK * self._security / self._radius
        for axis in np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]):
            rocked = poses.copy()
            rocked[:, :3, :3] = _small_turn(np.append(axis, 0.0) * angle[:, None]) @ poses[:, :3, :3]
            other = self._near(rocked, chosen, distance + ROCK * self._security)
            back = rocked[other.body_a]
            local = np.einsum("nji,nj->ni", back[:, :3, :3], other.point_a - back[:, :3, 3])
            here = poses[other.body_a]
            point = np.einsum("nij,nj->ni", here[:, :3, :3], local) + here[:, :3, 3]
            gap = np.einsum("ni,ni->n", point - other.point_b, other.normal)
            near = (gap <= distance[other.body_a]) & (gap > 0.0)
            parts.append(replace(other, point_a=point, gap=gap)[near])
        every = Contacts.joined(parts)
        order = np.lexsort((np.arange(len(every)), every.key, every.body_a))  # of one key the first, which is as it is
        every = every[order]
        same = (every.key[1:] == every.key[:-1]) & (every.body_a[1:] == every.body_a[:-1])
        return every[np.concatenate([[True], ~same])]

    def near(self, numbers: np.ndarray, poses: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, Contacts]:
        """The contacts of a few bodies elsewhere, by rising row of the question, and these rows.

        Args:
            numbers: (k,) of the bodies, each once.
            poses: (k, 4, 4) where they are.
            distance: (k,) how far each looks [m].
        """
        row, chosen = np.full(len(self.of_body), -1), np.zeros(len(self.of_body), bool)
        everywhere, far = np.tile(np.eye(4), (len(chosen), 1, 1)), np.zeros(len(chosen))
        row[numbers], chosen[numbers], everywhere[numbers], far[numbers] = (
            np.arange(len(numbers)),
            True,
            poses,
            distance,
        )
        found = self._near(everywhere, chosen, far)
        return row[found.body_a], found

    def walk(
        self, poses: np.ndarray, centre: np.ndarray, way: np.ndarray, turn: np.ndarray, asked: np.ndarray
    ) -> AnalyticHits:
        """Which of the bodies asked about touch the ground on their ways.

        Args:
            poses: (n, 4, 4) where they begin.
            centre: (n, 3) of mass, in the frames of the meshes: what goes straight [m].
            way, turn: (n, 3) how far it goes, and the rotation vector [m], [rad].
            asked: (n,) bool.
        """
        parts: list[AnalyticHits] = []
        moves = asked & (way.any(axis=1) | turn.any(axis=1))
        size = np.linalg.norm(poses[:, :3, 3], axis=1) + np.linalg.norm(way, axis=1) + self._security / 2e-4
        kept, tolerance = kept_on_the_way(self._gap, size, self._distances)
        for shape, numbers in self._batches:
            mine = numbers[moves[numbers]]
            for separation in np.unique(kept[mine]):
                group = mine[kept[mine] == separation]
                motion = Twist(poses[group], way[group], turn[group], centre[group])
                found = first_contact(
                    _rows(shape, numbers, group).moving(motion),
                    self._terrain,
                    start="trusted",
                    separation=float(separation),
                    tolerance=float(tolerance[group].max()),
                    device=self._device,
                )
                hit = np.atleast_1d(np.asarray(found.time)) <= 1.0
                if hit.any():
                    parts.append(AnalyticHits.of(found, hit, np.stack([group, self.of_body[group]], axis=1)))
        return AnalyticHits.joined(parts)

    def below(self, poses: np.ndarray) -> np.ndarray:
        """Numbers of bodies that touch the ground, or lie in it, where they are."""
        everybody = np.ones(len(poses), bool)
        found = self._near(poses, everybody, np.zeros(len(poses)))
        return np.unique(found.body_a[found.gap <= 0.0])


def ground_of(bodies: Sequence[Body], worlds: np.ndarray) -> np.ndarray:
    """(n,) the number of the body that is the ground of each body's world, -1 for none."""
    own: dict[int, int] = {}
    for number, body in enumerate(bodies):
        if body.ground is not None:
            if int(worlds[number]) in own:
                first = own[int(worlds[number])]
                raise InputError(
                    f"World: bodies {first} ({bodies[first].name!r}) and {number} ({body.name!r}) are both ground; join"
                    " them to one Heightfield"
                )
            own[int(worlds[number])] = number
    return np.array([own.get(int(world), -1) for world in worlds], np.int32)


def _batches(bodies: Sequence[Body], numbers: np.ndarray) -> list[tuple[Analytic, np.ndarray]]:
    """Bodies that one question can be about: of one kind, and hulls of one table."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    shapes = {number: bodies[number].form for number in numbers.tolist()}
    for number, shape in shapes.items():
        groups.setdefault((shape.kind, id(shape.hull)), []).append(number)
    return [(Analytic.joined([shapes[k] for k in group]), np.array(group)) for group in groups.values()]


def _rows(shape: Analytic, numbers: np.ndarray, chosen: np.ndarray) -> Analytic:
    return shape if len(chosen) == len(numbers) else shape[np.searchsorted(numbers, chosen)]


def _small_turn(vectors: np.ndarray) -> np.ndarray:
    """Rotations of small rotation vectors, (n, 3, 3), to second order."""
    k = -np.cross(np.eye(3), vectors[:, None, :])
    k = np.swapaxes(k, 1, 2)
    return np.eye(3) + k + 0.5 * (k @ k)


_NONE = Contacts.of(point_a=np.zeros((0, 3)), normal=np.zeros((0, 3)))

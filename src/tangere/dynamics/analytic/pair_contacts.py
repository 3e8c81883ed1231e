"""What keeps analytic bodies apart, and off meshes: contact manifolds where a step begins, first contacts on its way.

Question: where do two spheres, capsules, boxes, cylinders, cones or hulls, or one and a mesh, come near to each other,
          and do they touch on their ways?
Method:   `manifold` lists what is nearer than bodies can get in the step; each contact is a row like any other. The way
          is asked about with first contact, with a separation that fits each pair (`separation`). Pairs of like kinds
          are asked about together. Of manifolds with many corners some are kept: one left out comes back as a hit.
          Boxes and hulls are here for what is curved: each other and meshes they meet by their triangles.
Sound:    both questions are about the bodies as their formulas say, which are solid; a mesh is a surface. A motion that
          nobody reports as hit keeps all pairs farther apart than their separations. Pairs that move less than what is
          left of their gap are not asked about.
Known as: contact manifolds with conservative advancement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.analytic.hits import AnalyticHits
from tangere.dynamics.analytic.separation import kept_on_the_way
from tangere.dynamics.body import Body
from tangere.dynamics.contact.rows import Distances
from tangere.motion import Rest, Rigid
from tangere.query.contacts import Contacts
from tangere.query.first_contact import first_contact
from tangere.query.manifold import manifold
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh

#: Contacts a pair of bodies keeps.
CONTACTS_PER_PAIR = 12
#: Between levels of what pairs keep: those of one level are asked about together.
LEVEL = 0.2
#: Parts of a gap by which it may be too large: it is rounded, and found to this part of the bodies' size.
ROUNDED, ACCURACY = 1e-9, 1e-8


class PairContacts:
    """The analytic bodies of a world among each other, and with its meshes.

    Args:
        bodies: of all worlds.
        radius: (n,) of the balls about them [m].
    """

    def __init__(self, bodies: Sequence[Body], radius: np.ndarray, distances: Distances, device: wp.Device) -> None:
        self._distances, self._radius, self._device = distances, radius, device
        self._batch, self._place = (np.full(len(bodies), -1) for _ in range(2))
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, body in enumerate(bodies):
            if body.ground is None:
                groups.setdefault(_batch_of(body), []).append(number)
        self._shapes: list[Analytic | Mesh] = []
        for numbers in groups.values():
            self._batch[numbers], self._place[numbers] = len(self._shapes), np.arange(len(numbers))
            forms = [form for k in numbers if (form := bodies[k].analytic) is not None]
            self._shapes.append(Analytic.joined(forms) if forms else bodies[numbers[0]].mesh)
        self._is_mesh = np.array([body.analytic is None for body in bodies])
        self._count = len(bodies)
        self._known, self._gap, self._beyond = np.zeros(0, np.int64), np.zeros(0), 0.0

    def gather(self, pairs: np.ndarray, poses: np.ndarray, distance: np.ndarray, beyond: float) -> Contacts:
        """The contacts of pairs of bodies, by rising pair and key; how near they are is kept for the walk.

        Args:
            pairs: (k, 2) rising.
            poses: (n, 4, 4) of all bodies.
            distance: (k,) how far each looks [m].
            beyond: pairs that are not among these are at least so far apart [m].
        """
        ends = self.meshes_last(pairs)
        row, found = self.near(ends, poses[ends[:, 0]], poses[ends[:, 1]], distance)
        self._known, self._beyond = self._codes(pairs), beyond
        self._gap = distance.copy()
        np.minimum.at(self._gap, row, found.gap)
        return found

    def near(
        self, pairs: np.ndarray, poses_a: np.ndarray, poses_b: np.ndarray, distance: np.ndarray
    ) -> tuple[np.ndarray, Contacts]:
        """The contacts of pairs of bodies, by rising row of the question, and these rows.

        Args:
            pairs: (k, 2) numbers of bodies, meshes last.
            poses_a, poses_b: (k, 4, 4) where the two bodies of each pair are.
            distance: (k,) how far each looks [m].
        """
        rows, parts = [np.zeros(0, int)], [_NONE]
        for chosen, a, b in self._alike(pairs):
            one, other = a.at(poses_a[chosen]), b.moving(Rest(poses_b[chosen]))
            found = manifold(one, other, distance=float(distance[chosen].max()), device=self._device)
            row = chosen[found.query]
            near = found.gap <= distance[row]
            rows.append(row[near])
            parts.append(found[near])
        row, found = np.concatenate(rows), Contacts.joined(parts)
        order = np.lexsort((found.key, row))
        row, found = row[order], found[order]
        kept = _few(row, found)
        row, found = row[kept], found[kept]
        return row, replace(found, body_a=pairs[row, 0].astype(np.int32), body_b=pairs[row, 1].astype(np.int32))

    def walk(self, pairs: np.ndarray, motions: Rigid, way: np.ndarray) -> AnalyticHits:
        """Which of the pairs meet on their ways.

        Args:
            pairs: (k, 2), meshes last.
            motions: of all n bodies.
            way: (n,) how far no point of each goes beyond [m].
        """
        gap, far = self._gaps(pairs), way[pairs].sum(axis=1)
        place = np.linalg.norm(motions.pose(0.0)[:, :3, 3], axis=1)
        size = (place + self._radius + way)[pairs].sum(axis=1)
        kept, tolerance = kept_on_the_way(gap, size, self._distances, LEVEL)
        asked = np.flatnonzero((far >= gap * (1.0 - ROUNDED) - kept - ACCURACY * size) & (far > 0.0))
        parts = []
        for chosen, a, b in self._alike(pairs[asked]):
            rows = asked[chosen]
            for separation in np.unique(kept[rows]):
                mine = kept[rows] == separation
                ends = pairs[rows[mine]]
                found = first_contact(
                    a[mine].moving(motions[ends[:, 0]]),
                    (b if isinstance(b, Mesh) else b[mine]).moving(motions[ends[:, 1]]),
                    start="trusted",
                    separation=float(separation),
                    tolerance=float(tolerance[rows[mine]].max()),
                    device=self._device,
                )
                hit = np.atleast_1d(np.asarray(found.time)) <= 1.0
                if hit.any():
                    parts.append(AnalyticHits.of(found, hit, ends))
        return AnalyticHits.joined(parts)

    def _gaps(self, pairs: np.ndarray) -> np.ndarray:
        """Of pairs where the step began [m]."""
        if not len(self._known):
            return np.full(len(pairs), self._beyond)
        codes = self._codes(pairs)
        place = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        return np.where(self._known[place] == codes, self._gap[place], self._beyond)

    def _codes(self, pairs: np.ndarray) -> np.ndarray:
        return pairs.min(axis=1).astype(np.int64) * self._count + pairs.max(axis=1)

    def meshes_last(self, pairs: np.ndarray) -> np.ndarray:
        """The pairs, (k, 2), with the analytic body first where the other one is a mesh."""
        return np.where(self._is_mesh[pairs[:, :1]], pairs[:, ::-1], pairs)

    def _alike(self, pairs: np.ndarray) -> Iterator[tuple[np.ndarray, Analytic, Analytic | Mesh]]:
        """Rows of the pairs that one question can be about, and the shapes of their bodies."""
        kinds, count = self._batch[pairs], len(self._shapes)
        codes = kinds[:, 0].astype(np.int64) * count + kinds[:, 1]
        for code in np.unique(codes).tolist():
            one, other = divmod(code, count)
            chosen = np.flatnonzero(codes == code)
            a, b = self._place[pairs[chosen]].T
            first, second = self._shapes[one], self._shapes[other]
            assert isinstance(first, Analytic)
            yield chosen, first[a], second if isinstance(second, Mesh) else second[b]


def _batch_of(body: Body) -> tuple[Any, ...]:
    """What bodies have in common that one question can be about."""
    if body.analytic is None:
        return (id(body.mesh),)
    long = bool(body.analytic.records["half"][0, 2] > 0.0)  # a sphere is a point with a margin, not a short segment
    return body.analytic.kind, long, id(body.analytic.hull)


def _few(row: np.ndarray, found: Contacts) -> np.ndarray:
    """(n,) bool: at most so many contacts of each row, of many the nearest and what is far from those taken before."""
    kept = np.ones(len(row), bool)
    numbers, counts = np.unique(row, return_counts=True)
    for number in numbers[counts > CONTACTS_PER_PAIR]:
        mine = np.flatnonzero(row == number)
        points, taken = found.point_a[mine], [int(np.argmin(found.gap[mine]))]
        apart = np.linalg.norm(points - points[taken[0]], axis=1)
        while len(taken) < CONTACTS_PER_PAIR:
            taken.append(int(np.argmax(apart)))
            apart = np.minimum(apart, np.linalg.norm(points - points[taken[-1]], axis=1))
        kept[mine] = False
        kept[mine[taken]] = True
    return kept


_NONE = Contacts.of(point_a=np.zeros((0, 3)), normal=np.zeros((0, 3)))

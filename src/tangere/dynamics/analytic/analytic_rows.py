"""Rows of analytic bodies: contacts with the ground, with meshes and with each other as the columns that kernels make
rows of, where a step begins and where it hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.analytic.ground_contacts import GroundContacts
from tangere.dynamics.analytic.hits import NO_HITS, AnalyticHits
from tangere.dynamics.analytic.pair_contacts import PairContacts
from tangere.dynamics.body import Body
from tangere.dynamics.contact.pairs import BodyPairs, PairFilter
from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.contact.rows import Distances
from tangere.dynamics.state import BodyConstants, RigidState, read_poses
from tangere.motion import Twist
from tangere.query.contacts import Contacts
from tangere.query.proximity.posed import PosedColumns

#: Security distances within which contacts are gathered.
RUPTURE = 2.3
#: Security distances by which the boxes of a walk are grown.
MARGIN = 1.0


class AnalyticRows:
    """What the ground of a world asks of its bodies, and analytic bodies of each other, as rows among the others.

    Args:
        worlds: (n,) the world of each body.
        rows: where they go.
        motion: how bodies go in the step.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        worlds: np.ndarray,
        rows: RowSet,
        state: RigidState,
        table: BodyConstants,
        motion: wp.array,
        asleep: wp.array,
        distances: Distances,
        device: wp.Device,
    ) -> None:
        self._rows, self._state, self._table, self._device = rows, state, table, device
        self._motion, self._asleep, self._distances = motion, asleep, distances
        self._far = RUPTURE * float(distances.security) + float(distances.kept)
        has_ground = any(body.ground is not None for body in bodies)
        self._ground = GroundContacts(bodies, worlds, distances, device) if has_ground else None
        self._radius = table.radius.numpy()
        self._pairs = PairContacts(bodies, self._radius, distances, device)
        self._offset = np.array([body.offset for body in bodies])
        turn = np.swapaxes(self._offset[:, :3, :3], 1, 2)
        #: of mass, in the frames of the formulas
        self._centre = np.einsum("nij,nj->ni", turn, table.centre.numpy() - self._offset[:, :3, 3])

    def _poses(self) -> np.ndarray:
        """(n, 4, 4) from the frames of formulas and meshes to the world."""
        return read_poses(self._state, self._table) @ self._offset

    def compare(self, filter: PairFilter, reach: wp.array) -> None:
        """Which pairs of analytic bodies are compared, and by how much their boxes are grown where a step begins."""
        device, distances = self._device, self._distances
        margin = MARGIN * float(distances.security) + float(distances.kept)
        walked = wp.full(len(reach), margin, dtype=wp.float64, device=device)
        about = self._table, self._state, self._motion
        self._near_pairs = BodyPairs(*about, reach, self._asleep, filter, device)
        self._walk_pairs = BodyPairs(*about, walked, self._asleep, filter, device)

    def gather(self, way: np.ndarray, awake: np.ndarray) -> int:
        """Rows of all contacts that bodies may have in the step; how many pairs of bodies were looked at.

        Args:
            way: (n,) how far each may go [m].
            awake: (n,) bool.
        """
        poses, parts = self._poses(), []
        pairs = _listed(self._near_pairs)
        parts.append(self._pairs.gather(pairs, poses, way[pairs].sum(axis=1) + self._far, 2.0 * self._far))
        if self._ground is not None:
            parts.append(self._ground.gather(poses, awake, way + self._far))
        found = Contacts.joined(parts)
        if len(found):
            found = found[np.lexsort((found.key, found.body_b, found.body_a))]
            ends = np.stack([found.body_a, found.body_b], axis=1)
            self._rows.make_analytic(_columns(found, np.arange(len(found)), self._device), len(found), ends)
        return len(pairs)

    def walk(self, motion: np.ndarray, asked: np.ndarray) -> AnalyticHits:
        """Who touches the ground or each other on their motions, (n, 6), of pairs of which one is asked about."""
        poses = self._poses()
        way, turn = motion[:, :3], motion[:, 3:]
        parts = []
        pairs = _listed(self._walk_pairs)
        pairs = self._pairs.meshes_last(pairs[asked[pairs].any(axis=1)])
        if len(pairs):
            far = np.linalg.norm(way, axis=1) + np.linalg.norm(turn, axis=1) * self._radius
            parts.append(self._pairs.walk(pairs, Twist(poses, way, turn, self._centre), far))
        if self._ground is not None:
            parts.append(self._ground.walk(poses, self._centre, way, turn, asked))
        return AnalyticHits.joined(parts) if parts else NO_HITS

    def add_hits(self, hits: AnalyticHits, motion: np.ndarray, way: np.ndarray) -> None:
        """Rows of what was hit, and of all that is near there.

        Args:
            motion: (n, 6) on which they were.
            way: (n,) how far each may go [m].
        """
        self._rows.add_analytic_hits(hits)
        ends, poses = hits.pairs, self._poses()
        then = []
        for side in (0, 1):
            k = ends[:, side]
            then.append(Twist(poses[k], motion[k, :3], motion[k, 3:], self._centre[k]).pose(hits.times))
        still = (
            np.zeros(len(hits.times), bool) if self._ground is None else self._ground.of_body[ends[:, 0]] == ends[:, 1]
        )
        left = (1.0 - hits.times) * np.where(still, way[ends[:, 0]], way[ends].sum(axis=1)) + self._far
        rows, parts = [], []
        between, below = np.flatnonzero(~still), np.flatnonzero(still)
        if len(between):
            row, found = self._pairs.near(ends[between], then[0][between], then[1][between], left[between])
            rows.append(between[row])
            parts.append(found)
        if self._ground is not None and len(below):
            row, found = self._ground.near(ends[below, 0], then[0][below], left[below])
            rows.append(below[row])
            parts.append(found)
        found = Contacts.joined(parts)
        if len(found):
            chosen = wp.array(np.arange(len(found), dtype=np.int32), dtype=wp.int32, device=self._device)
            columns = _columns(found, np.concatenate(rows), self._device)
            self._rows.add_near_hits(columns, chosen, len(found), ends, hits.times)

    def below(self) -> np.ndarray:
        """Numbers of bodies that touch the ground, or lie in it."""
        return np.zeros(0, int) if self._ground is None else self._ground.below(self._poses())

    def near_pairs(self) -> np.ndarray:
        """(k, 2) pairs of analytic bodies that are near where they are now."""
        return _listed(self._near_pairs)


def _listed(pairs: BodyPairs) -> np.ndarray:
    count = pairs.find()
    return pairs.pairs.numpy()[:count].copy()


def _columns(found: Contacts, pair: np.ndarray, device: wp.Device) -> Any:
    """Contacts as kernels take them.

    Args:
        pair: (n,) the pair of bodies that each belongs to.
    """
    count = max(len(found), 1)
    columns: Any = PosedColumns()
    given = {name: getattr(found, name) for name in ("point_a", "point_b", "normal", "gap", "weights", "key")}
    # No feature of a curved body stays where it touches: no second-order terms.
    given["push"] = found.normal
    given |= {"pair": pair, "kind": np.full(len(found), -1)}
    given |= dict.fromkeys(("feature_a", "feature_b"), np.full(len(found), -1))
    for name, variable in columns._cls.vars.items():
        dtype = variable.type.dtype
        values = np.asarray(given[name]) if len(found) else np.zeros((count, *getattr(dtype, "_shape_", ())))
        scalar = np.float64 if values.dtype.kind == "f" and dtype not in (wp.int32, wp.int64) else None
        if scalar is None:
            scalar = np.int64 if dtype is wp.int64 else np.int32
        setattr(columns, name, wp.array(np.ascontiguousarray(values, scalar), dtype=dtype, device=device))
    return columns

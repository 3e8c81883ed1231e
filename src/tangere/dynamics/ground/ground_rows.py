"""Rows of bodies on ground: contacts as the columns that kernels make rows of, where a step begins and hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.body import Body
from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.contact.rows import Distances
from tangere.dynamics.ground.ground_contacts import GroundContacts
from tangere.dynamics.ground.hits import GroundHits
from tangere.dynamics.state import BodyConstants, RigidState, read_poses
from tangere.query.contacts import Contacts
from tangere.query.proximity.posed import PosedColumns

#: Security distances within which contacts are gathered.
RUPTURE = 2.3


class GroundRows:
    """What the ground of a world asks of its bodies, as rows among those of their contacts.

    Args:
        worlds: (n,) the world of each body.
        rows: where they go.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        worlds: np.ndarray,
        rows: RowSet,
        state: RigidState,
        table: BodyConstants,
        distances: Distances,
        device: wp.Device,
    ) -> None:
        self._rows, self._state, self._table, self._device = rows, state, table, device
        self._far = RUPTURE * float(distances.security) + float(distances.kept)
        self._contacts = GroundContacts(bodies, worlds, distances, device)
        self._centre = table.centre.numpy()

    def gather(self, way: np.ndarray, awake: np.ndarray) -> None:
        """Rows of all contacts that bodies may have in the step.

        Args:
            way: (n,) how far each may go [m].
            awake: (n,) bool.
        """
        found = self._contacts.gather(read_poses(self._state, self._table), awake, way + self._far)
        if len(found):
            pairs = np.stack([found.body_a, found.body_b], axis=1)
            columns = ground_columns(found, np.arange(len(found)), self._device)
            self._rows.make_on_ground(columns, len(found), pairs)

    def walk(self, motion: np.ndarray, asked: np.ndarray) -> GroundHits:
        """Which of the bodies asked about touch the ground on their motions, (n, 6)."""
        poses = read_poses(self._state, self._table)
        return self._contacts.walk(poses, self._centre, motion[:, :3], motion[:, 3:], asked)

    def add_hits(self, hits: GroundHits, way: np.ndarray, rotation: wp.array, origin: wp.array) -> None:
        """Rows of what was hit, and of all that is near there.

        Args:
            rotation, origin: of the bodies that are hit, when they are.
        """
        self._rows.add_ground_hits(hits)
        poses = np.tile(np.eye(4), (len(way), 1, 1))
        poses[:, :3, :3], poses[:, :3, 3] = rotation.numpy(), origin.numpy()
        left = (1.0 - hits.times) * way[hits.pairs[:, 0]]
        found, number = self._contacts.near_hits(hits, poses, self._far + left)
        if len(found):
            chosen = wp.array(np.arange(len(found), dtype=np.int32), dtype=wp.int32, device=self._device)
            columns = ground_columns(found, number, self._device)
            self._rows.add_near_hits(columns, chosen, len(found), hits.pairs, hits.times)

    def below(self, poses: np.ndarray) -> np.ndarray:
        """Numbers of bodies that touch the ground, or lie in it."""
        return self._contacts.below(poses)


def ground_columns(found: Contacts, pair: np.ndarray, device: wp.Device) -> Any:
    """Contacts as kernels take them.

    Args:
        pair: (n,) the pair of bodies that each belongs to.
    """
    count = max(len(found), 1)
    columns: Any = PosedColumns()
    given = {name: getattr(found, name) for name in ("point_a", "point_b", "normal", "gap", "weights", "key")}
    # No feature of a curved body stays where it touches: no second-order terms.
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

"""Which bodies of a list, or of two lists, meet?

Method: boxes leave the pairs that may meet (`query.placed_lists`); rigid meshes are compared in one launch
        (`body_pairs`), other pairs as in the other questions about lists.
Exact:  as `intersects` of each pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from tangere.query.intersection.api import intersects
from tangere.query.intersection.body_pairs import meeting_pairs
from tangere.query.placed_lists import PlacedLists
from tangere.runtime import Arrays
from tangere.shape.mesh import Mesh


@dataclass(frozen=True, eq=False)
class MeetingBodies:
    """Which bodies meet: true if any do, with the numbers of each pair."""

    body_a: np.ndarray  #: (k,) numbers in the list a, by rising pair
    body_b: np.ndarray  #: (k,) numbers in the list b, or in the same list

    def __bool__(self) -> bool:
        return len(self) > 0

    def __len__(self) -> int:
        return len(self.body_a)

    def __repr__(self) -> str:
        pairs = [f"{a} with {b}" for a, b in zip(self.body_a[:4].tolist(), self.body_b[:4].tolist(), strict=True)]
        return f"MeetingBodies({', '.join([*pairs, '…'] if len(self) > 4 else pairs) or 'none'})"


def lists_meet(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    time: Arrays = 0.0,
    solid: bool = False,
    device: str | wp.Device | None = None,
) -> MeetingBodies:
    """Which bodies of list `a` meet, or of `a` and of `b`; arguments as for `intersects`."""
    lists = PlacedLists.of("intersects", a, b, allowed, time, device)
    pairs = lists.near(0.0)
    meet = np.zeros(len(pairs), bool)
    is_mesh = [np.array([isinstance(body.shape, Mesh) for body in side], bool) for side in (lists.a, lists.others)]
    surfaces = np.zeros(len(pairs), bool)
    if not solid and len(pairs):
        surfaces = is_mesh[0][pairs[:, 0]] & is_mesh[1][pairs[:, 1]]
        meet[surfaces] = _surfaces_meet(lists, pairs[surfaces])
    rest = np.flatnonzero(~surfaces)
    for told in lists.answers(partial(intersects, solid=solid, device=device), pairs[rest]):
        meet[rest[told.rows]] = told.found
    return MeetingBodies(*(pairs[meet].T.astype(np.int32)))


def _surfaces_meet(lists: PlacedLists, pairs: np.ndarray) -> np.ndarray:
    """(k,) whether the surfaces of meshes meet: all pairs in one launch."""
    bodies = lists.a if lists.b is None else [*lists.a, *lists.b]
    numbered = pairs + ([0, 0] if lists.b is None else [0, len(lists.a)])
    used, rows = np.unique(numbered, return_inverse=True)
    meshes = [bodies[k].shape for k in used.tolist()]
    shapes = list({id(mesh): mesh for mesh in meshes}.values())
    number = {id(mesh): k for k, mesh in enumerate(shapes)}
    which = np.array([number[id(mesh)] for mesh in meshes], np.int64)
    poses = np.array([bodies[k].motion.pose(0.0) for k in used.tolist()]).reshape(-1, 4, 4)
    return meeting_pairs(shapes, which, poses, rows.reshape(-1, 2), lists.device)[:, 0] >= 0

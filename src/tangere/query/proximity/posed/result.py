"""What was found about pairs of posed bodies: contacts on the device, and as the record that all queries share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts, Kind
from tangere.query.proximity.posed.traversal import OVERLAP
from tangere.query.proximity.posed.workspace import PosedWorkspace
from tangere.runtime import NonCopyable

Made = TypeVar("Made")


class PosedContacts(NonCopyable, instead="take its contacts, which are in main memory"):
    """The contacts of n pairs of bodies, ordered by pair and key; those of pair i are rows first[i] … first[i + 1] - 1.

    Arrays on the device belong to this answer: they are used again when nobody holds it any more. `contacts`, `least`
    and `status` are copies in main memory.
    """

    def __init__(self, workspace: PosedWorkspace, pairs: int, count: int) -> None:
        self._workspace = workspace
        self.pair_count = pairs  #: how many pairs there are
        self.count = count  #: how many contacts there are

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"PosedContacts({self.count} of {self.pair_count} pairs, on {self._workspace.device})"

    @cached_property
    def pairs(self) -> np.ndarray:
        """(n, 2) int32: the bodies of each pair."""
        return self._workspace.pairs(self.pair_count)

    @property
    def columns(self) -> Any:
        """`PosedColumns` on the device, for kernels; only the first `count` rows count."""
        return self._workspace.columns

    @property
    def first(self) -> wp.array:
        """(n + 1,) int32 on the device: the first contact of each pair; the array may be longer."""
        return self._workspace.first

    @property
    def results(self) -> Any:
        """`PairResults` on the device, for kernels: `least` and `status` of each pair; they may be longer."""
        return self._workspace.results

    def kept(self, make: Callable[[PosedWorkspace], Made]) -> Made:
        """What `make` made for the arrays of this answer, now or for an answer before."""
        return self._workspace.kept(make)

    @cached_property
    def least(self) -> np.ndarray:
        """(n,) a lower bound of the distance of each pair's surfaces, up to rounding the distance itself, or the
        distance asked about where that is less; 0 where they pass through each other [m].
        """
        return self._rows("least", self.pair_count)

    @cached_property
    def status(self) -> np.ndarray:
        """(n,) int32: 0 apart or touching, 1 passing through each other."""
        return self._rows("status", self.pair_count)

    @property
    def overlapping(self) -> np.ndarray:
        """(n,) bool: pairs that pass through each other: where, and how deep, is not told."""
        return self.status == OVERLAP

    @cached_property
    def contacts(self) -> Contacts:
        """The contacts in main memory; `query` is the pair."""
        columns = {name: self._rows(name, self.count) for name in _COLUMNS}
        pair, kind = columns.pop("pair"), columns.pop("kind")
        bodies = self.pairs[pair]
        return Contacts.of(
            **columns,
            query=pair,
            kind=np.where(kind == 2, Kind.EDGE_EDGE, Kind.VERTEX_FACE),
            vertex_on=(kind == 1).astype(np.uint8),
            body_a=bodies[:, 0],
            body_b=bodies[:, 1],
        )

    def _rows(self, name: str, count: int) -> np.ndarray:
        """The first rows of a column."""
        if self._workspace.device.is_cpu:
            return self._workspace.kept(_host_columns)[name][:count].copy()
        array = _arrays(self._workspace)[name]
        return array[:count].numpy().copy() if count else np.zeros((0, *array.numpy().shape[1:]), array.numpy().dtype)


_COLUMNS = ("pair", "kind", "feature_a", "feature_b", "point_a", "point_b", "normal", "gap", "weights", "key")


def _arrays(workspace: PosedWorkspace) -> dict[str, wp.array]:
    results = {name: getattr(workspace.results, name) for name in ("least", "status")}
    return results | {name: getattr(workspace.columns, name) for name in _COLUMNS}


def _host_columns(workspace: PosedWorkspace) -> dict[str, np.ndarray]:
    """The arrays as NumPy sees them, on CPU in the same memory; asking for that takes as long as a small search."""
    return {name: array.numpy() for name, array in _arrays(workspace).items()}

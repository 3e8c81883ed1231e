"""Launches about two meshes that are asked again and again: arrays and packed arguments are kept from call to call.

Packing the arguments of a launch and making its arrays takes longer than most questions about one instant; with what
was made for the last call only the two poses are written. On CPU; each thread has its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import warp as wp

from tangere.bound.obb_tree import ObbTree

__all__ = ["Kept", "PosedPair"]

#: Pairs of trees for which something is kept, by each thread.
MOST = 8


class PosedPair:
    """Two trees, and where their poses are written: `poses`, (1, 2) mat44d, is what `rows`, (1, 2, 4, 4), shows."""

    def __init__(self, trees: tuple[ObbTree, ObbTree]) -> None:
        self.trees = trees
        self.poses = wp.zeros((1, 2), dtype=wp.mat44d, device="cpu")
        self.rows: np.ndarray = self.poses.numpy()


Asked = TypeVar("Asked", bound=PosedPair)


class Kept(Generic[Asked]):
    """What `make` made for the last pairs of trees."""

    def __init__(self, make: Callable[[tuple[ObbTree, ObbTree]], Asked]) -> None:
        self._make = make
        self._local = threading.local()

    def of(self, trees: tuple[ObbTree, ObbTree]) -> Asked:
        """What is kept for `trees`."""
        known: OrderedDict[tuple[int, int], Asked] = self._local.__dict__.setdefault("known", OrderedDict())
        key = id(trees[0]), id(trees[1])  # alive as long as what is kept, which holds them
        found = known.pop(key, None) or self._make(trees)
        known[key] = found
        if len(known) > MOST:
            known.popitem(last=False)
        return found

"""Orbits of a map as arrays, and what is incident or adjacent to what.

Question: which darts make up each vertex, edge, face or volume, and which of these meet?
Method:   `orbits(map, "edge")` numbers the edges: one number per dart, so that any values kept in an array with one row
          per edge are an embedding on edges, reached from a dart in one step; `one_dart` leads back.
Known as: orbits and traversers of combinatorial maps (Damiand and Lienhardt 2014; Pitiot 2015, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tangere.cells.maps.cell_map import CellMap

Orbit = Literal["vertex", "edge", "face", "volume"]


@dataclass(frozen=True)
class Orbits:
    """The cells of one dimension."""

    number: np.ndarray  #: per dart: which orbit it belongs to; -1 for dead darts
    one_dart: np.ndarray  #: per orbit: its smallest dart

    def __len__(self) -> int:
        return len(self.one_dart)


def orbits(map: CellMap, orbit: Orbit) -> Orbits:
    """Vertices, edges, faces or (3-maps) volumes, numbered in the order of their smallest darts."""
    phi1, phi_1, phi2, phi3 = (map.numpy(name) for name in ("phi1", "phi_1", "phi2", "phi3"))
    steps = {
        "vertex": [_composed(phi_1, phi2), _composed(phi_1, phi3)],
        "edge": [phi2, phi3],
        "face": [phi1, phi3],
        "volume": [phi1, phi2],
    }[orbit]
    return _components(map.darts, len(phi1), steps)


def incident(map: CellMap, a: Orbit, b: Orbit) -> np.ndarray:
    """(k, 2) numbers of an a-orbit and a b-orbit that share a dart, each pair once, sorted."""
    darts = map.darts
    return np.unique(np.stack([orbits(map, a).number[darts], orbits(map, b).number[darts]], axis=1), axis=0)


def adjacent(map: CellMap, a: Orbit, through: Orbit) -> np.ndarray:
    """(k, 2) numbers of two different a-orbits that meet a common `through`-orbit, each pair once in each order."""
    from scipy.sparse import coo_array

    pairs = incident(map, a, through)
    if len(pairs) == 0:
        return pairs
    table = coo_array((np.ones(len(pairs), np.int64), (pairs[:, 0], pairs[:, 1]))).tocsr()
    first, second = (table @ table.T).nonzero()
    found = np.stack([first, second], axis=1)[first != second]
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def is_border(map: CellMap) -> np.ndarray:
    """Per dart: whether there is nothing on the other side of its edge (2-maps) or face (3-maps)."""
    across = map.numpy("phi3" if map.dimension == 3 else "phi2")
    border = across < 0
    dead = np.ones(len(border), bool)
    dead[map.darts] = False
    return border & ~dead


def _composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(first >= 0, second[first], -1)


def _components(darts: np.ndarray, count: int, steps: list[np.ndarray]) -> Orbits:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = [np.stack([darts, step[darts]]) for step in steps]
    a, b = np.concatenate(links, axis=1)
    a, b = a[b >= 0], b[b >= 0]
    _, label = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(count, count)), directed=False)
    _, first, number = np.unique(label[darts], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    numbers = np.full(count, -1)
    numbers[darts] = rank[number]
    return Orbits(numbers, darts[first[order]])

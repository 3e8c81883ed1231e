"""Ways around obstacles: the cheapest chain of cells from each start to its goal, pulled tight.

Question: over which waypoints does an agent get to its goal, without walls in between?
Method:   shortest paths on the graph of walkable cells (from centre to centre through the middle of the common side,
          times 1 + penalty x density), one search per goal for all who go there (Dijkstra, which finds what A* finds).
          In the plane the chain is pulled tight by the funnel algorithm, one radius clear of walls; on surfaces and in
          space the waypoints are the middles of the sides.
Spec: specs/pitiot-multiresolution-interactions 2.22.
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps.cell_map import CellMap
from tangere.crowd.relocating import place_points
from tangere.crowd.sizes import cell_sizes
from tangere.runtime import Arrays, InputError

__all__ = ["Planner", "pulled_tight"]


class Planner:
    """Finds ways in a map as it is now.

    Args:
        clearance: distance kept from walls [m]; narrower sides are no way.
        counts: agents in each cell, by cell number. penalty: cost of density [m^2 or m^3 per agent].
    """

    def __init__(
        self, map: CellMap, *, clearance: float = 0.0, counts: np.ndarray | None = None, penalty: float = 0.0
    ) -> None:
        from scipy.sparse import csr_array

        self.map, self.clearance = map, clearance
        darts = map.darts
        cell, phi1, origin = map.numpy("cell"), map.numpy("phi1"), map.numpy("origin")
        across = map.numpy("phi3" if map.dimension == 3 else "phi2")
        wall = (across < 0) | (map.numpy("tag") & 4096 != 0)
        self._at_wall = np.zeros(len(map.positions), bool)
        if map.dimension == 2:
            closed = darts[wall[darts]]
            self._at_wall[origin[closed]] = self._at_wall[origin[phi1[closed]]] = True
        open_darts = darts[~wall[darts]]
        open_darts = open_darts[
            (map.numpy("obstacle")[cell[open_darts]] | map.numpy("obstacle")[cell[across[open_darts]]]) == 0
        ]
        right, left = self._ends(open_darts)
        wide = np.linalg.norm(left - right, axis=1) > 0.0
        wide &= ((left - right) * (map.positions[origin[phi1[open_darts]]] - map.positions[origin[open_darts]])).sum(
            1
        ) > 0
        open_darts = open_darts[wide]
        middle = self.middles(open_darts)
        centre, a, b = map.numpy("centre"), cell[open_darts], cell[across[open_darts]]
        crowded = np.ones(map.cell_capacity)
        if counts is not None and penalty > 0:
            size = cell_sizes(map)
            crowded[: len(counts)] += penalty * counts / np.where(size > 0, size, np.inf)[: len(counts)]
        ways = np.linalg.norm(middle - centre[a], axis=1), np.linalg.norm(middle - centre[b], axis=1)
        cost = ways[0] * crowded[a] + ways[1] * crowded[b]
        key = a.astype(np.int64) * map.cell_capacity + b
        order = np.lexsort((open_darts, cost, key))
        first = np.r_[True, np.diff(key[order]) > 0] if len(order) else np.empty(0, bool)
        chosen = order[first]
        self._keys, self._darts = key[chosen], open_darts[chosen]
        shape = (map.cell_capacity, map.cell_capacity)
        self._graph = csr_array((cost[chosen], (a[chosen], b[chosen])), shape=shape)

    def middles(self, darts: np.ndarray) -> np.ndarray:
        """(n, 3) middles of the sides of darts."""
        if self.map.dimension == 3:
            return self.map.numpy("face_centre")[darts]
        right, left = self._ends(darts)
        return 0.5 * (left + right)

    def cells(self, start: int, goal: int) -> np.ndarray:
        """The chain of cells from one cell to another; empty when there is no way."""
        return self._chain(start, goal, self._searched(np.array([goal]))[0])

    def routes(self, starts: Arrays, goals: Arrays, *, partial: bool = False) -> list[np.ndarray]:
        """Waypoints (k, 3) of each way; the last is the goal. With `partial` a goal out of reach has none."""
        a, from_darts = place_points(self.map, starts, "starts")
        b, to_darts = place_points(self.map, goals, "goals")
        cell = self.map.numpy("cell")
        begin, end = cell[from_darts], cell[to_darts]
        distinct, which = np.unique(end, return_inverse=True)
        before = self._searched(distinct)
        ways = []
        for k in range(len(a)):
            chain = self._chain(int(begin[k]), int(end[k]), before[which.reshape(-1)[k]])
            if len(chain) == 0:
                if not partial:
                    raise InputError(f"goals: agent {k} cannot get to its goal")
                ways.append(np.empty((0, 3)))
                continue
            sides = self._sides(chain)
            if len(sides) == 0:
                ways.append(b[k : k + 1])
            elif self.map.dimension == 2 and self.map.flat:
                right, left = self._ends(sides)
                ways.append(pulled_tight(a[k], b[k], left, right))
            else:
                ways.append(np.concatenate([self.middles(sides), b[k : k + 1]]))
        return ways

    def _searched(self, goals: np.ndarray) -> np.ndarray:
        from scipy.sparse.csgraph import dijkstra

        _, before = dijkstra(self._graph.T.tocsr(), indices=goals, return_predecessors=True)
        return np.atleast_2d(before)

    def _chain(self, start: int, goal: int, before: np.ndarray) -> np.ndarray:
        chain = [start]
        while chain[-1] != goal:
            after = int(before[chain[-1]])
            if after < 0:
                return np.empty(0, np.int64)
            chain.append(after)
        return np.array(chain)

    def _sides(self, chain: np.ndarray) -> np.ndarray:
        """The darts through which a chain of cells is left, one after the other."""
        return self._darts[np.searchsorted(self._keys, chain[:-1] * self.map.cell_capacity + chain[1:])]

    def _ends(self, darts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Right and left end of the side of each dart, seen on the way out, clear of walls."""
        origin, position = self.map.numpy("origin"), self.map.positions
        s, e = origin[darts], origin[self.map.numpy("phi1")[darts]]
        along = position[e] - position[s]
        along = along / np.linalg.norm(along, axis=1, keepdims=True) * self.clearance
        right = position[s] + np.where(self._at_wall[s, None], along, 0.0)
        return right, position[e] - np.where(self._at_wall[e, None], along, 0.0)


def pulled_tight(start: np.ndarray, goal: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The shortest way through a sequence of gates (the funnel algorithm), (k, 3) without the start."""
    lefts, rights = np.concatenate([left, goal[None]]), np.concatenate([right, goal[None]])
    apex, low, high = start, start, start  # low: right side of the funnel, high: left side
    at_low = at_high = 0
    way: list[np.ndarray] = []
    k = 0
    while k < len(lefts):
        r, l = rights[k], lefts[k]
        if _turn(apex, low, r) >= 0:
            if (apex == low).all() or _turn(apex, high, r) < 0:
                low, at_low = r, k
            else:
                way.append(high)
                apex = low = high
                k = at_low = at_high
                k += 1
                continue
        if _turn(apex, high, l) <= 0:
            if (apex == high).all() or _turn(apex, low, l) > 0:
                high, at_high = l, k
            else:
                way.append(low)
                apex = high = low
                k = at_high = at_low
                k += 1
                continue
        k += 1
    way.append(goal)
    points = np.array(way)
    fresh = np.linalg.norm(np.diff(points, axis=0, prepend=start[None]), axis=1) > 1e-9
    fresh[-1] = True
    points = points[fresh]
    return points if len(points) < 2 or (points[-1] != points[-2]).any() else points[:-1]


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Positive where a, b, c turn left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

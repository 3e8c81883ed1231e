"""Ways around obstacles: the cheapest chain of cells from each start to its goal, pulled tight.

Question: over which waypoints does an agent get to its goal, without walls in between?
Method:   shortest paths on the graph of walkable cells (from centre to centre through the middle of the common side,
          times 1 + penalty x density), one search per goal for all who go there (Dijkstra, which finds what A* finds).
          In the plane the chain is pulled tight by the funnel algorithm, one radius clear of walls. Without a penalty,
          waypoints are then left out where the straight way past them is as clear: in a grid all staircases are chains
          of the same length, and a hall would be crossed along one of them. On surfaces and in space the waypoints are
          the middles of the sides.
Limit:    on which side an obstacle is passed is decided by the chain, not by the length of the way pulled tight.
Known as: path planning on a cell decomposition: Dijkstra's algorithm and the funnel algorithm; Pitiot 2015, section
          8.3.2.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps import WALL, CellMap
from tangere.cells.tracking import INSIDE, as_darts, as_map_points, march_cells
from tangere.crowd.agents.cell_sizes import cell_sizes
from tangere.crowd.agents.relocation import place_points
from tangere.crowd.navigation.string_pulling import (
    RELATIVE_SLACK,
    pull_string,
    shortcut_candidates,
    shortest_subsequence,
)
from tangere.runtime import Arrays, InputError, check_kind, not_negative, on_own_threads

#: Costs kept at a time, of goals times leaves, and waypoints of ways that are shortened together.
_COSTS_AT_ONCE, _WAYPOINTS_AT_ONCE = 1 << 22, 8192


class Planner:
    """Finds ways in a map as it is now.

    Args:
        clearance: distance kept from walls [m]; narrower sides are no way.
        counts: agents in each cell, by cell number. penalty: cost of density [m^2 or m^3 per agent].
        cells: the leaves that ways may lead through, rising; None: all.
        threads: CPU threads; None means all, or TANGERE_THREADS. The device is that of the map.
    """

    def __init__(
        self,
        map: CellMap,
        *,
        clearance: float = 0.0,
        counts: np.ndarray | None = None,
        penalty: float = 0.0,
        cells: np.ndarray | None = None,
        threads: int | None = None,
    ) -> None:
        from scipy.sparse import csr_array

        check_kind(map, CellMap, "map")
        self.map, self.threads, self.clearance = map, threads, not_negative(clearance, "clearance")
        self._flat = map.dimension == 2 and map.flat
        self._shortens = self._flat and not_negative(penalty, "penalty") == 0
        # Not copied: what is read of them is that of the cells alone.
        m = map.arrays
        self._cell, self._phi1, self._origin, tag = (x.numpy() for x in (m.cell, m.phi1, m.origin, m.tag))
        self._position, centre, obstacle = m.position.numpy(), m.centre.numpy(), m.obstacle.numpy()
        across = (m.phi3 if map.dimension == 3 else m.phi2).numpy()
        self.leaves = map.leaves if cells is None else cells
        self._leaf_index = np.full(map.cell_capacity, -1, np.int32)
        self._leaf_index[self.leaves] = np.arange(len(self.leaves))
        self._sides_of, self._first = _darts_by_cell(map, self.leaves)
        darts = self._sides_of
        self._at_wall = np.zeros(len(self._position), bool)
        if map.dimension == 2:
            # At a corner of a cell there may be a wall of any cell around it.
            near = darts if cells is None else _darts_by_cell(map, np.unique(map.rings.rows(cells)))[0]
            closed = near[(across[near] < 0) | (tag[near] & WALL != 0)]
            self._at_wall[self._origin[closed]] = self._at_wall[self._origin[self._phi1[closed]]] = True
        darts = darts[(across[darts] >= 0) & (tag[darts] & WALL == 0)]
        darts = darts[(obstacle[self._cell[darts]] | obstacle[self._cell[across[darts]]]) == 0]
        right, left = self._gate_ends(darts)
        along = self._position[self._origin[self._phi1[darts]]] - self._position[self._origin[darts]]
        darts = darts[((left - right) * along).sum(axis=1) > 0]
        a, b = self._cell[darts], self._cell[across[darts]]
        leaving = self._leaf_index[b] < 0
        self._frontier = np.unique(self._leaf_index[a[leaving]])  # from here one gets to cells that are not known
        darts, a, b = darts[~leaving], a[~leaving], b[~leaving]
        middle = self.middles(darts)
        crowded = np.ones(len(self.leaves))
        if counts is not None and penalty > 0:
            known = self.leaves[self.leaves < len(counts)]
            crowded[: len(known)] += penalty * counts[known] / cell_sizes(map)[known]
        ways = np.linalg.norm(middle - centre[a], axis=1), np.linalg.norm(middle - centre[b], axis=1)
        a, b = self._leaf_index[a].astype(np.int64), self._leaf_index[b].astype(np.int64)
        cost = ways[0] * crowded[a] + ways[1] * crowded[b]
        key = a * len(self.leaves) + b
        order = np.lexsort((darts, cost, key))
        chosen = order[np.diff(key[order], prepend=-1) > 0]
        self._keys, self._darts = key[chosen], darts[chosen]
        self._open: np.ndarray | None = None  # by leaf: whether one gets from it to cells that are not known
        # From the goal backwards.
        self._graph = csr_array((cost[chosen], (b[chosen], a[chosen])), shape=(len(self.leaves), len(self.leaves)))

    def middles(self, darts: np.ndarray) -> np.ndarray:
        """(n, 3) middles of the sides of darts."""
        if self.map.dimension == 3:
            return self.map.arrays.face_centre.numpy()[darts]
        right, left = self._gate_ends(darts)
        return 0.5 * (left + right)

    def cells(self, start: int, goal: int) -> np.ndarray:
        """The chain of cells from one cell to another; empty when there is no way."""
        begin, end = int(self._leaf_index[start]), int(self._leaf_index[goal])
        return self.leaves[self._chain(begin, end, self._search(np.array([end]))[1][0])]

    @on_own_threads
    def routes(
        self, starts: Arrays, goals: Arrays, *, darts: Arrays | None = None, partial: bool = False
    ) -> list[np.ndarray]:
        """Waypoints (k, 3) of each way; the last is the goal.

        Args:
            starts, goals: (n, 2) or (n, 3) [m].
            darts: (n,) a dart of the cell that holds each start; None: they are looked for.
            partial: a goal out of reach has no waypoints, instead of being refused.
        """
        if darts is None:
            a, from_darts = place_points(self.map, starts, "starts")
        else:
            a = as_map_points(self.map, starts, "starts").numpy()
            from_darts = as_darts(self.map, darts, len(a)).numpy()
        b, to_darts = place_points(self.map, goals, "goals")
        if len(a) != len(b):
            raise InputError(f"goals: there are {len(b)} for {len(a)} starts")
        ways, _ = self.known_routes(a, from_darts, b, to_darts)
        missing = [k for k, way in enumerate(ways) if len(way) == 0]
        if missing and not partial:
            raise InputError(f"goals: agent {missing[0]} cannot get to its goal")
        return ways

    @on_own_threads
    def known_routes(
        self, starts: np.ndarray, from_darts: np.ndarray, goals: np.ndarray, to_darts: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Ways between places (n, 3) in the cells of darts, empty where there is none, and whether that is certain.

        It is not where a way through cells that this planner does not know could be shorter; such ways are empty, too.
        """
        ways, certain = [np.empty((0, 3))] * len(starts), np.zeros(len(starts), bool)
        distinct, which = np.unique(self._cell[to_darts], return_inverse=True)
        each = max(1, _COSTS_AT_ONCE // max(len(self.leaves), 1))
        for first in range(0, len(distinct), each):
            some = np.flatnonzero((which >= first) & (which < first + each))
            found, certain[some] = self._known_routes(starts[some], from_darts[some], goals[some], to_darts[some])
            for k, way in zip(some, found):
                ways[k] = way
        return ways, certain

    def _known_routes(
        self, starts: np.ndarray, from_darts: np.ndarray, goals: np.ndarray, to_darts: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The same for not too many goals."""
        begin, end = self._leaf_index[self._cell[from_darts]], self._leaf_index[self._cell[to_darts]]
        known = (begin >= 0) & (end >= 0)
        distinct, which = np.unique(end[known], return_inverse=True)
        # Few ways are twice as long as straight ones.
        straight = np.linalg.norm(goals - starts, axis=1)[known]
        cost, before = self._search(distinct, 2.0 * straight.max(initial=0.0))
        if np.isinf(cost[which, begin[known]]).any():
            cost, before = self._search(distinct)
        row, certain = np.zeros(len(begin), np.int64), np.zeros(len(begin), bool)
        row[known] = which
        for k in np.flatnonzero(known):
            certain[k] = self._is_certain(cost[row[k]], int(begin[k]))
        ways, gates = [np.empty((0, 3))] * len(begin), [np.empty(0, np.int64)] * len(begin)
        for k in np.flatnonzero(certain):
            chain = self._chain(int(begin[k]), int(end[k]), before[row[k]])
            if len(chain) == 0:
                continue
            sides = self._darts[np.searchsorted(self._keys, chain[:-1] * len(self.leaves) + chain[1:])]
            if len(sides) == 0:
                ways[k] = goals[k : k + 1]
            elif self._flat:
                right, left = self._gate_ends(sides)
                ways[k], at = pull_string(starts[k], goals[k], left, right)
                gates[k] = np.append(sides, to_darts[k])[at]
            else:
                ways[k] = np.concatenate([self.middles(sides), goals[k : k + 1]])
        if self._shortens:
            long = [k for k, way in enumerate(ways) if len(way) > 1]
            batch = np.cumsum([len(ways[k]) for k in long]) // _WAYPOINTS_AT_ONCE
            for b in np.unique(batch):
                self._shorten([k for k, of in zip(long, batch) if of == b], starts, from_darts, ways, gates)
        return ways, certain

    def _is_certain(self, cost: np.ndarray, start: int) -> bool:
        """Whether no way through cells that are not known could be shorter: straight on from where one leaves these."""
        if len(self._frontier) == 0 or (np.isinf(cost[start]) and self._is_shut_in(start)):
            return True
        centre, leaves = self.map.arrays.centre.numpy(), self.leaves
        straight = np.linalg.norm(centre[leaves[self._frontier]] - centre[leaves[start]], axis=1)
        return bool(cost[start] <= (cost[self._frontier] + straight).min())

    def _is_shut_in(self, start: int) -> bool:
        """Whether no cell that is not known can be got to from here."""
        from scipy.sparse.csgraph import connected_components

        if self._open is None:
            part = connected_components(self._graph, directed=False)[1]
            self._open = np.isin(part, part[self._frontier])
        return not self._open[start]

    def next_cells(self, goals: np.ndarray) -> np.ndarray:
        """(goals, cells) the next cell on the way to each goal from each cell; negative: there is none."""
        _, before = self._search(self._leaf_index[goals])
        after = np.full((len(goals), self.map.cell_capacity), -1)
        after[:, self.leaves] = np.where(before >= 0, self.leaves[np.maximum(before, 0)], -1)
        return after

    def _search(self, goals: np.ndarray, limit: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
        """(goals, leaves) the costs of ways to places of goals, inf beyond the limit, and the place that comes next."""
        from scipy.sparse.csgraph import dijkstra

        if len(goals) == 0:
            return np.empty((0, len(self.leaves))), np.empty((0, len(self.leaves)), np.int32)
        cost, before = dijkstra(self._graph, indices=goals, return_predecessors=True, limit=limit)
        return np.atleast_2d(cost), np.atleast_2d(before)

    def _chain(self, start: int, goal: int, before: np.ndarray) -> np.ndarray:
        chain = [start]
        while chain[-1] != goal:
            after = int(before[chain[-1]])
            if after < 0:
                return np.empty(0, np.int64)
            chain.append(after)
        return np.array(chain)

    def _gate_ends(self, darts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Right and left end of the side of each dart, seen on the way out, clear of walls."""
        s, e = self._origin[darts], self._origin[self._phi1[darts]]
        along = self._position[e] - self._position[s]
        along = along / np.linalg.norm(along, axis=1, keepdims=True) * self.clearance
        right = self._position[s] + np.where(self._at_wall[s, None], along, 0.0)
        return right, self._position[e] - np.where(self._at_wall[e, None], along, 0.0)

    def _shorten(
        self,
        todo: list[int],
        starts: np.ndarray,
        from_darts: np.ndarray,
        ways: list[np.ndarray],
        gates: list[np.ndarray],
    ) -> None:
        """Leave out waypoints of some ways, in place, as long as straight legs past them are clear of walls."""
        while todo:
            points = [np.concatenate([starts[k : k + 1], ways[k]]) for k in todo]
            darts = [np.append(from_darts[k], gates[k]) for k in todo]
            legs = [shortcut_candidates(len(x)) for x in points]
            a, b = (np.concatenate([x[leg[:, end]] for x, leg in zip(points, legs)]) for end in (0, 1))
            clear = self._is_clear(a, b, np.concatenate([d[leg[:, 0]] for d, leg in zip(darts, legs)]))
            again, first = [], 0
            for k, x, leg in zip(todo, points, legs):
                chosen_points = shortest_subsequence(x, leg[clear[first : first + len(leg)]])
                first += len(leg)
                if len(chosen_points) < len(ways[k]):
                    ways[k], gates[k] = ways[k][chosen_points - 1], gates[k][chosen_points - 1]
                    again += [k] if len(chosen_points) > 1 else []
            todo = again

    def _is_clear(self, a: np.ndarray, b: np.ndarray, darts: np.ndarray) -> np.ndarray:
        """(n,) whether straight legs stay clear of walls: they cross sides only where ways may lead through them."""
        map, device = self.map, self.map.device
        ends = [wp.array(x, dtype=wp.vec3d, device=device) for x in (a, b)]
        crossed, status = march_cells(map, *ends, wp.array(darts.astype(np.int32), dtype=wp.int32, device=device))
        clear = status.numpy() == int(INSIDE)
        leg, cell = crossed[clear[crossed[:, 0]]].T
        place = self._leaf_index[cell]
        clear[leg[place < 0]] = False
        leg, place = leg[place >= 0], place[place >= 0]
        count = self._first[place + 1] - self._first[place]
        leg = np.repeat(leg, count)
        side = self._sides_of[np.arange(len(leg)) + np.repeat(self._first[place] - np.cumsum(count) + count, count)]
        at_s, at_e = (self._at_wall[v] for v in (self._origin[side], self._origin[self._phi1[side]]))
        beside = at_s | at_e
        leg, side, at_s, at_e = leg[beside], side[beside], at_s[beside], at_e[beside]
        s, e = self._position[self._origin[side]], self._position[self._origin[self._phi1[side]]]
        way, along = b[leg] - a[leg], e - s
        from_s, from_e = _cross(way, s - a[leg]), _cross(way, e - a[leg])
        meets = (from_s * from_e <= 0) & (_cross(along, a[leg] - s) * _cross(along, b[leg] - s) <= 0)
        # Where the leg runs along a side it meets both ends of it.
        apart = np.where(from_s == from_e, 1.0, from_s - from_e)
        part = np.where(from_s == from_e, 0.0, from_s / apart)
        length = np.linalg.norm(along, axis=1)
        least = self.clearance - RELATIVE_SLACK * (length + np.linalg.norm(way, axis=1))
        rest = np.where(from_s == from_e, 0.0, 1.0 - part)
        near = (at_s & (part * length < least)) | (at_e & (rest * length < least))
        clear[leg[meets & near]] = False
        return clear


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def _darts_by_cell(map: CellMap, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The darts of leaves, one leaf after the other, and where each leaf begins."""
    link = map.arrays.link.numpy()
    dart, owner = map.arrays.anchor.numpy()[cells], np.arange(len(cells))
    found = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    while len(dart):
        found[0].append(dart)
        found[1].append(owner)
        dart = link[dart]
        dart, owner = dart[dart >= 0], owner[dart >= 0]
    darts, owners = (np.concatenate(x) for x in found)
    order = np.argsort(owners, kind="stable")
    return darts[order], np.searchsorted(owners[order], np.arange(len(cells) + 1))

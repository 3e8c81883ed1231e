"""Who needs a way around a wall to his waypoint, and over which place it leads; flat maps only.

Question: whose waypoint is hidden by a wall, and where does he go first instead?
Method:   ways are planned among the cells around those who need one, and among twice as many rings of cells again
          until nothing beyond could be shorter: the cost is that of the ways, not of the map. What was found out (these
          cells, where waypoints are, to which there is no way) is kept until the map changes.
Spec: specs/pitiot-multiresolution-interactions 2.22.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import WALL
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.locate import locate_darts
from tangere.cells.tracking.march import move_darts
from tangere.cells.tracking.sides import INSIDE
from tangere.crowd.planning import Planner
from tangere.crowd.population import Population

__all__ = ["Detours"]

#: Rings of cells looked at first.
_RINGS = 8
_UNKNOWN, _NOWHERE = -2, -1


class Detours:
    """Looks at points in a map as it is now, as often as one likes, as long as they keep their routes.

    Args:
        clearance: distance kept from walls [m].
    """

    def __init__(self, map: CellMap, points: Population, clearance: float) -> None:
        self.clearance = clearance
        self._map, self._points = map, points
        tag = map.arrays.tag.numpy()
        self.walls = map.flat and bool(((tag >= 0) & (tag & WALL != 0)).any())
        self._planner = Planner(map, clearance=clearance, cells=np.empty(0, np.int64))
        self._goals = np.full(len(points.routes.points), _UNKNOWN) if len(points) else np.empty(0, np.int64)
        self._no_way = np.full(len(points), -1)  # the waypoint that there is none to

    def look(self, near: float) -> tuple[np.ndarray, np.ndarray]:
        """Who goes around, and over which place, (n, 3); one within `near` [m] is left out for the next."""
        points, none = self._points, (np.empty(0, np.int64), np.empty((0, 3)))
        if not self.walls or len(points) == 0:
            return none
        here, there, darts = points.by_number("position"), points.waypoints(), points.by_number("dart")
        ends = [self._send(x) for x in (here, there)]
        status = move_darts(self._map, *ends, self._send(darts))[2].numpy()
        at = points.routes.at.numpy()
        hidden = np.flatnonzero(status != int(INSIDE))
        hidden = hidden[self._no_way[hidden] != at[hidden]]
        if len(hidden) == 0:
            return none
        goals = self._found(at[hidden], there[hidden], darts[hidden])
        # Those outside the map or in an obstacle are hidden too, and there is no way to them.
        hidden, goals = hidden[goals >= 0], goals[goals >= 0]
        ways = self._ways(here[hidden], darts[hidden], there[hidden], goals)
        missing = np.array([len(way) == 0 for way in ways], bool)
        self._no_way[hidden[missing]] = at[hidden[missing]]
        hidden, ways = hidden[~missing], [way for way in ways if len(way)]
        away = [np.linalg.norm(way - x, axis=1) > near for way, x in zip(ways, here[hidden])]
        return hidden, np.array([way[np.argmax(far)] for way, far in zip(ways, away)]).reshape(-1, 3)

    def _ways(self, here: np.ndarray, darts: np.ndarray, there: np.ndarray, goals: np.ndarray) -> list[np.ndarray]:
        """The shortest ways in the map, empty where there is none."""
        ways, todo, rings = [np.empty((0, 3))] * len(here), np.arange(len(here)), _RINGS
        while True:
            found, certain = self._planner.found(here[todo], darts[todo], there[todo], goals[todo])
            for k in np.flatnonzero(certain):
                ways[todo[k]] = found[k]
            todo = todo[~certain]
            if len(todo) == 0:
                return ways
            self._widen(self._map.arrays.cell.numpy()[np.concatenate([darts[todo], goals[todo]])], rings)
            rings *= 2

    def _found(self, at: np.ndarray, there: np.ndarray, darts: np.ndarray) -> np.ndarray:
        """The darts of waypoints, negative outside the map and in obstacles."""
        fresh = np.flatnonzero(self._goals[at] == _UNKNOWN)
        if len(fresh):
            m = self._map.arrays
            cells = self._around(m.cell.numpy()[darts[fresh]], _RINGS)
            # From the nearest centre hardly ever a wall is in between.
            centres = m.centre.numpy()[cells]
            nearest = cells[[int(((centres - x) ** 2).sum(axis=1).argmin()) for x in there[fresh]]]
            begin = self._send(m.anchor.numpy()[nearest])
            found, status = (x.numpy() for x in locate_darts(self._map, self._send(there[fresh]), begin, anywhere=True))
            inside = (status == int(INSIDE)) & (m.obstacle.numpy()[m.cell.numpy()[found]] == 0)
            self._goals[at[fresh]] = np.where(inside, found, _NOWHERE)
        return self._goals[at]

    def _widen(self, cells: np.ndarray, rings: int) -> None:
        """Plan among so many rings of cells around these too."""
        known = np.union1d(self._planner.leaves, self._around(cells, rings))
        if len(known) > len(self._planner.leaves):
            self._planner = Planner(self._map, clearance=self.clearance, cells=known)

    def _around(self, cells: np.ndarray, rings: int) -> np.ndarray:
        """These leaves and so many rings of others around them, rising."""
        found = last = np.unique(cells)
        for _ in range(rings):
            last = np.setdiff1d(self._map.rings.rows(last), found)
            found = np.union1d(found, last)
            if len(last) == 0:
                break
        return found

    def _send(self, values: np.ndarray) -> wp.array:
        kind = wp.vec3d if values.ndim == 2 else wp.int32
        return wp.array(values if values.ndim == 2 else values.astype(np.int32), dtype=kind, device=self._map.device)

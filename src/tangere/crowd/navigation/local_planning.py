"""The shortest ways in a map, planned among the cells around them only: the cost is that of the ways, not of the map.

Question: over which places does each agent get to its waypoint, and which cells must be looked at to be sure?
Method:   cells in an ellipse around here and there, and in larger ones until no way through other cells could be
          shorter. Where ellipses together have more cells than the map, all of it is taken. That there is no way is
          known at once of whoever is shut in; else only when all that hangs together has been looked at.
Known as: best-first search within an ellipse, widened until the shortest path is proved (as informed search does).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap
from tangere.cells.tracking import INSIDE, locate_darts
from tangere.crowd.navigation.planning import Planner

#: By how much more than the straight way the first ellipse allows, as a part of it.
_FIRST_EXCESS = 0.25


class LocalPlanner:
    """Plans in a map as it is now; cells once looked at are known from then on.

    Args:
        clearance: distance kept from walls [m].
    """

    def __init__(self, map: CellMap, clearance: float) -> None:
        self._map, self._clearance = map, clearance
        self._planner: Planner | None = None

    def routes(self, here: np.ndarray, darts: np.ndarray, there: np.ndarray, goals: np.ndarray) -> list[np.ndarray]:
        """Waypoints (k, 3) of each way between places (n, 3) in the cells of darts (n,); empty where there is none."""
        ways, todo, larger, all_known = [there[:0]] * len(here), np.arange(len(here)), 1.0, False
        planner = self._planner
        while len(todo):
            if planner is not None:
                found, certain = planner.known_routes(here[todo], darts[todo], there[todo], goals[todo])
                for k in np.flatnonzero(certain):
                    ways[todo[k]] = found[k]
                todo = todo[~certain]
            if all_known:  # what is still not certain is in another part of the map
                break
            if len(todo):
                planner, all_known = self._extended_planner(here[todo], darts[todo], there[todo], larger)
                larger *= 2.0
        return ways

    def goal_darts(self, here: np.ndarray, darts: np.ndarray, there: np.ndarray) -> np.ndarray:
        """(n,) one of the cell of each place `there`, found from another place; -1: outside or in an obstacle."""
        map, m = self._map, self._map.arrays
        leaves, centre = self._extended_planner(here, darts, there, 1.0)[0].leaves, m.centre.numpy()
        nearest = leaves[[int(((centre[leaves] - x) ** 2).sum(axis=1).argmin()) for x in there]]
        # From the nearest centre hardly ever a wall is in between.
        start = wp.array(m.anchor.numpy()[nearest].astype(np.int32), dtype=wp.int32, device=map.device)
        points = wp.array(there, dtype=wp.vec3d, device=map.device)
        found, status = (x.numpy() for x in locate_darts(map, points, start, anywhere=True))
        inside = (status == int(INSIDE)) & (m.obstacle.numpy()[m.cell.numpy()[found]] == 0)
        return np.where(inside, found, -1)

    def _extended_planner(
        self, here: np.ndarray, darts: np.ndarray, there: np.ndarray, larger: float
    ) -> tuple[Planner, bool]:
        """Knows the cells between these places, too; and whether those are all that hang together with `here`."""
        known = np.empty(0, np.int64) if self._planner is None else self._planner.leaves
        cells, all_known = cells_between(self._map, here, darts, there, larger)
        cells = np.union1d(cells, known)
        if self._planner is None or len(cells) > len(known):
            self._planner = Planner(self._map, clearance=self._clearance, cells=cells)
        return self._planner, all_known


def cells_between(
    map: CellMap, here: np.ndarray, darts: np.ndarray, there: np.ndarray, larger: float = 1.0
) -> tuple[np.ndarray, bool]:
    """The leaves in an ellipse around each pair of places (n, 3), and their rings; or all, if those were more.

    Also whether these are all that hang together with `here`.

    Args:
        darts: (n,) of the cells of `here`. larger: by how many times the first excess ways may be longer than straight.
    """
    capacity, centre, leaves = map.cell_capacity, map.arrays.centre.numpy(), map.leaves
    begin, straight = map.arrays.cell.numpy()[darts].astype(np.int64), np.linalg.norm(there - here, axis=1)
    wide = np.linalg.norm(centre[map.rings.rows(begin)] - here[:, None], axis=2).max(axis=1)
    limit = straight + larger * (_FIRST_EXCESS * straight + 2.0 * wide)
    before, last = np.empty(0, np.int64), np.arange(len(here)) * capacity + begin
    found, count, all_within = [last], 0, True
    while len(last):
        pair, cell = last // capacity, last % capacity
        away = np.linalg.norm(centre[cell] - here[pair], axis=1) + np.linalg.norm(centre[cell] - there[pair], axis=1)
        within = away <= limit[pair]
        all_within = all_within and bool(within.all())
        around = pair[within, None] * capacity + map.rings.rows(cell[within])
        before, last = last, np.setdiff1d(around, np.concatenate([before, last]))
        found.append(last)
        count += len(last)
        if count > len(leaves):
            return leaves, True
    return np.unique(np.concatenate(found) % capacity), all_within

"""Who needs a way around a wall to his waypoint, and over which place it leads; flat maps only.

Question: whose waypoint is hidden by a wall, or by the border of the map, and where does he go first instead?
Method:   all the way to a waypoint is looked at until it is seen, and then only so far ahead: walls farther away are
          met in time. Who is on his way around a wall keeps to it as long as he sees where it goes on: at a corner,
          until he sees what is behind it. Ways are planned among the cells around them (`local_planning`). So the cost
          is that of what is near, not of the map. In a map without walls whose border is convex nothing can be hidden.
Known as: local replanning; the thesis asks for planning where obstacles hide a goal (Pitiot 2015, section 8.3.2).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps import WALL, CellMap, MapArrays, has_convex_border
from tangere.cells.tracking import INSIDE, move_darts, points_per_index
from tangere.crowd.agents.arrays import CrowdArrays
from tangere.crowd.agents.population import Population
from tangere.crowd.navigation.line_of_sight import line_of_sight
from tangere.crowd.navigation.local_planning import LocalPlanner
from tangere.crowd.navigation.routes import Routes
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Places of a way that are looked for, to leave out those before.
_PLACES_TRIED = 3
#: How much farther from a corner on the left, as a part of the clearance; and where a turn is so slight, less.
_LEFT_CLEARANCE, _LEAST_TURN = 1.5, 0.1
#: Slower than this part of what he wants, over so long at least [s], somebody stands still.
_STALLED, _STALL_TIME = 0.1, 0.5
#: Where a waypoint is; -1: nowhere in the map.
_UNKNOWN = -2
_GRAIN = 4


class Detours:
    """Ways around walls for points of a map, as long as these keep their routes and the map its walls.

    Args:
        clearance: distance kept from walls [m].
    """

    def __init__(self, map: CellMap, points: Population, clearance: float) -> None:
        self.clearance = clearance
        self._map, self._points = map, points
        tag = map.arrays.tag.numpy()
        blocked = bool(((tag >= 0) & (tag & WALL != 0)).any())
        self.has_walls = map.flat and (blocked or not has_convex_border(map))  #: whether anything can hide a waypoint
        # By agent: the waypoint last seen, and the one that there is no way to, with the place that there is none from.
        self._visible, self._unreachable = (
            wp.full(len(points), -1, dtype=wp.int32, device=map.device) for _ in range(2)
        )
        self._unreachable_from = wp.zeros(len(points), dtype=wp.vec3d, device=map.device)
        self._hidden = wp.zeros(len(points), dtype=wp.int32, device=map.device)
        self._routes: dict[tuple[int, int], np.ndarray] = {}  # by agent and waypoint: the way there, (k, 3)
        # The step of the last search, and where agents were then.
        self._last_places: tuple[int, dict[int, np.ndarray]] = (0, {})
        self.update_cells()

    def update_cells(self) -> None:
        """After cells were split or merged: walls are where they were."""
        self._planner = LocalPlanner(self._map, self.clearance)
        waypoints = len(self._points.routes.points) if len(self._points) else 0
        self._goals = wp.full(waypoints, _UNKNOWN, dtype=wp.int32, device=self._map.device)

    def find(self, ahead: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Who goes around, and over which place, (n, 3).

        Args:
            ahead: the way to a waypoint that was seen is looked at so far [m]. So far one must have got, unless it is
                infinite, until it is asked again whether there is a way after all.
        """
        points, known = self._points, self._routes
        self._routes = {}
        if not self.has_walls or len(points) == 0:
            return np.empty(0, np.int64), np.empty((0, 3))
        hidden = self._hidden_agents(ahead)
        if len(hidden) == 0:
            return hidden, np.empty((0, 3))
        at, here = points.routes.current.numpy()[hidden], points.by_number("position")[hidden]
        darts, there = points.by_number("dart")[hidden], points.routes.points.numpy()[at]
        names = list(zip(hidden.tolist(), at.tolist()))
        ways = [known[name] if name in known else there[:0] for name in names]
        seen, around = self._next_places(here, darts, ways)
        lost = np.flatnonzero(seen < 0)
        if len(lost):
            planned = self._plan(hidden[lost], at[lost], here[lost], darts[lost], there[lost])
            seen[lost], around[lost] = self._next_places(here[lost], darts[lost], planned)
            for k, way in zip(lost, planned):
                ways[k] = way
        found = np.array([len(way) > 0 for way in ways])
        self._step_aside(hidden, here, darts, around)
        # Who is pushed back may have to go over the place before once more.
        self._routes = {name: way[max(j - 1, 0) :] for name, way, j in zip(names, ways, seen.tolist()) if len(way)}
        return hidden[found], around[found]

    def _step_aside(self, numbers: np.ndarray, here: np.ndarray, darts: np.ndarray, around: np.ndarray) -> None:
        """Send who has hardly moved since the last search to his right, if he can go there: two may be face to face."""
        crowd = self._points.arrays
        when, places = int(crowd.clock.numpy()[0]), dict(zip(numbers.tolist(), here))
        before, self._last_places = self._last_places, (when, places)
        elapsed = (when - before[0]) * crowd.dt
        usual = _STALLED * elapsed * self._points.traits["speed"][numbers]
        known = [k for k, n in enumerate(numbers.tolist()) if n in before[1]] if elapsed >= _STALL_TIME else []
        stuck = [k for k in known if np.linalg.norm(here[k] - before[1][int(numbers[k])]) < usual[k]]
        if stuck:
            way = around[stuck] - here[stuck]
            right = np.stack([way[:, 1], -way[:, 0], np.zeros(len(way))], axis=1)
            right *= 2.0 * self.clearance / np.maximum(np.linalg.norm(right, axis=1, keepdims=True), 1e-12)
            ends = [self._upload(x) for x in (here[stuck], here[stuck] + right, darts[stuck])]
            free = move_darts(self._map, *ends)[2].numpy() == int(INSIDE)
            around[np.array(stuck)[free]] += right[free] - way[free]

    def _hidden_agents(self, ahead: float) -> np.ndarray:
        """Whose waypoint is hidden, but for those to whose waypoint there is no way."""
        points, device = self._points, self._map.device
        chunk = points_per_index(device)
        again = wp.float64(ahead if np.isfinite(ahead) else 0.0)
        inputs = [points.arrays, self._map.arrays, points.routes, self._unreachable, self._unreachable_from]
        inputs += [again, wp.float64(ahead), chunk]
        indices = -(-len(points) // chunk)
        launch(_find_hidden, indices, inputs, [self._visible, self._hidden, self._goals], device=device, grain=_GRAIN)
        return np.flatnonzero(self._hidden.numpy())

    def _next_places(
        self, here: np.ndarray, darts: np.ndarray, ways: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(n,) the last of the first places of each way that is seen from here, -1 if none is; (n, 3) where to go.

        Who has the corner on his left leaves room there, if there is: else two who meet at it might block each other.
        """
        seen = np.full(len(ways), -1)
        goals = np.array([way[0] if len(way) else x for way, x in zip(ways, here)])
        # The last place of all is the waypoint, which is hidden.
        tried = [(k, j) for k, way in enumerate(ways) for j in range(min(len(way) - 1, _PLACES_TRIED))]
        if tried:
            places = np.array([x for k, j in tried for x in (ways[k][j], self._wide_of_corner(here[k], ways[k], j))])
            who = np.repeat(np.array(tried)[:, 0], 2)
            ends = [self._upload(x) for x in (here[who], places, darts[who])]
            clear = move_darts(self._map, *ends)[2].numpy() == int(INSIDE)
            for (k, j), one, at in zip(tried, clear.reshape(-1, 2), places.reshape(-1, 2, 3)):
                if one[0]:
                    seen[k], goals[k] = j, at[int(one[1])]
        return seen, goals

    def _wide_of_corner(self, here: np.ndarray, way: np.ndarray, k: int) -> np.ndarray:
        """A place of a way, farther from the corner there if that is on the left."""
        come, go = way[k] - (way[k - 1] if k else here), way[k + 1] - way[k]
        if come[0] * go[1] <= come[1] * go[0]:
            return way[k]
        outward = come / np.linalg.norm(come) - go / np.linalg.norm(go)
        return way[k] + _LEFT_CLEARANCE * self.clearance / max(float(np.linalg.norm(outward)), _LEAST_TURN) * outward

    def _plan(
        self, numbers: np.ndarray, at: np.ndarray, here: np.ndarray, darts: np.ndarray, there: np.ndarray
    ) -> list[np.ndarray]:
        """The shortest ways; empty where there is none, which is noted."""
        known = self._goals.numpy()
        fresh = np.flatnonzero(known[at] == _UNKNOWN)
        if len(fresh):
            known = known.copy()
            known[at[fresh]] = self._planner.goal_darts(here[fresh], darts[fresh], there[fresh])
            self._goals.assign(known)
        goals = known[at]
        ways = [there[:0]] * len(here)
        # Those outside the map or in an obstacle are hidden too, and there is no way to them.
        known = np.flatnonzero(goals >= 0)
        ends = here[known], darts[known], there[known], goals[known]
        for k, way in zip(known, self._planner.routes(*ends)):
            ways[k] = way
        missing = np.array([len(way) == 0 for way in ways])
        if missing.any():
            no_way, place = self._unreachable.numpy().copy(), self._unreachable_from.numpy().copy()
            no_way[numbers[missing]], place[numbers[missing]] = at[missing], here[missing]
            self._unreachable.assign(no_way)
            self._unreachable_from.assign(place)
        return ways

    def _upload(self, values: np.ndarray) -> wp.array:
        kind = wp.vec3d if values.ndim == 2 else wp.int32
        return wp.array(values if values.ndim == 2 else values.astype(np.int32), dtype=kind, device=self._map.device)


@wp.kernel
def _find_hidden(
    first: int,
    c: CrowdArrays,
    m: MapArrays,
    r: Routes,
    no_way: wp.array[int],
    place: wp.array[wp.vec3d],
    again: wp.float64,
    ahead: wp.float64,
    chunk: int,
    seen: wp.array[int],
    hidden: wp.array[int],
    goals: wp.array[int],
):
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, c.position.shape[0])):
        n = c.number[i]
        at = r.current[n]
        found = int(0)
        x = c.position[i]
        if at < r.end[n] and (no_way[n] != at or wp.length(x - place[n]) >= again):
            way = r.points[at] - x
            length = wp.length(way)
            whole = seen[n] != at or length <= ahead
            if not whole:
                way = way * (ahead / length)
            end = line_of_sight(m, c.neighbourhoods, x, x + way, c.dart[i])
            if end.status == INSIDE:
                seen[n] = at
                if whole:
                    goals[at] = end.dart
            else:
                seen[n] = -1
                found = 1
        hidden[n] = found

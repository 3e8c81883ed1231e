"""What engineers measure of a crowd: who has crossed a line when, flow, density, and speed against density.

Question: how many pass per second, how dense is it, and how fast do people go at that density?
Method:   crossings are noted in the step, at the moment of the crossing itself. Flow is the number of people after
          the first over the time between the first and the last of them. Density in squares of a grid counts people;
          that by Voronoi cells is one over the area of each person's cell within the plan (Steffen and Seyfried 2010).
Known as: N-t curve, specific flow, fundamental diagram.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.crowd.floor.plans.floor_plan import FloorPlan
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.runtime import InputError, positive

if TYPE_CHECKING:
    from tangere.crowd.floor.people_state import PeopleState


class CountingLine:
    """A line that people are counted at; `add_line` of a simulation makes it."""

    def __init__(self, people: PeopleState, number: int, ends: np.ndarray, name: str, sheet: int = 0) -> None:
        self._people, self._number = people, number
        self.ends, self.name, self.sheet = ends, name, sheet

    def __repr__(self) -> str:
        return f"CountingLine({self.name}, {len(self.times)} crossings)"

    @property
    def crossings(self) -> np.ndarray:
        """(people,) when each first crossed it [s]; negative: from right to left of it; inf: never."""
        return self._people.crossings()[self._number]

    @property
    def times(self) -> np.ndarray:
        """When people first crossed it, rising [s]."""
        found = self.crossings
        return np.sort(np.abs(found[np.isfinite(found)]))

    @property
    def length(self) -> float:
        """[m]."""
        return float(np.linalg.norm(self.ends[1] - self.ends[0]))

    def n_t(self) -> tuple[np.ndarray, np.ndarray]:
        """Times of crossings [s], and how many had crossed after each."""
        return self.times, np.arange(1, len(self.times) + 1)

    @property
    def flow(self) -> float:
        """People per second between the first crossing and the last; nan for less than two."""
        return flow_of(self.times)

    @property
    def specific_flow(self) -> float:
        """The same per metre of the line [1/m/s]."""
        return self.flow / self.length


def flow_of(times: np.ndarray) -> float:
    """People per second at these moments, which rise; nan for less than two."""
    if len(times) < 2 or times[-1] <= times[0]:
        return float("nan")
    return (len(times) - 1) / float(times[-1] - times[0])


def grid_density(plan: FloorPlan, positions: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray]:
    """People per square metre of floor in squares: (columns, rows), nan where there is no floor; and the least corner.

    Args:
        positions: (n, 2) of all people at all times that are averaged over; divide by the number of times.
        side: of a square [m].
    """
    shapely, side = shapely_library(), positive(side, "side")
    low, high = np.array(plan.bounds[:2]), np.array(plan.bounds[2:])
    columns, rows = (int(n) for n in np.maximum(np.ceil((high - low) / side - 1.0e-9), 1))
    if columns * rows > 10_000_000:
        raise InputError(f"side: squares of {side:g} m are {columns * rows} on this plan, which is too many")
    i, j = np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij")
    x, y = low[0] + i * side, low[1] + j * side
    floor = shapely.area(shapely.intersection(plan.polygon, shapely.box(x, y, x + side, y + side)))
    index = np.clip(np.floor((positions - low) / side).astype(int), 0, np.array([columns, rows]) - 1)
    count = np.zeros((columns, rows))
    np.add.at(count, tuple(index.T), 1.0)
    return np.divide(count, floor, out=np.full_like(count, np.nan), where=floor > 1.0e-9 * side**2), low


def voronoi_density(plan: FloorPlan, positions: np.ndarray, cutoff: float | None = None) -> np.ndarray:
    """(n,) one over the area of each person's Voronoi cell in the plan [1/m²].

    Args:
        cutoff: cells end at this distance from the person [m]; None: at walls only.
    """
    shapely = shapely_library()
    if len(positions) == 0:
        return np.empty(0)
    points = shapely.points(positions)
    if len(positions) == 1:
        cells: Any = np.array([plan.polygon])
    else:
        parts = shapely.get_parts(
            shapely.voronoi_polygons(shapely.multipoints(points), extend_to=shapely.box(*plan.bounds))
        )
        tree = shapely.STRtree(parts)
        who, where = tree.query(points, predicate="intersects")
        chosen = np.zeros(len(points), int)
        chosen[who] = where
        cells = shapely.intersection(parts[chosen], plan.polygon)
    if cutoff is not None:
        cells = shapely.intersection(cells, shapely.buffer(points, positive(cutoff, "cutoff")))
    # A cell that walls cut in pieces is the piece the person stands in.
    pieces, owner = shapely.get_parts(cells, return_index=True)
    holds = shapely.distance(pieces, points[owner]) <= 1.0e-9
    area = np.zeros(len(points))
    np.add.at(area, owner[holds], shapely.area(pieces[holds]))
    return np.divide(1.0, area, out=np.full(len(points), np.nan), where=area > 0)

"""What a floor is made of: sheets that lie one over the other, and the joints where people pass from one to the next.

Question: which sides of a sheet are walls, and what does somebody on it see of the sheets that it is joined to?
Method:   a plan is one sheet; a building has one for each storey and each flight of stairs. All have the coordinates of
          the plan, so that distances over a joint are right. Sheets that are joined do not lie over each other. Of its
          neighbours a sheet has the walls that are not its own sides.
Known as: a piecewise flat surface; sheets joined along portals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tangere.crowd.floor.plans.narrow_doors import shapely_library


@dataclass(frozen=True, eq=False)
class Sheet:
    """A storey, or a flight of stairs."""

    polygon: Any  #: of shapely
    sides: np.ndarray  #: (n, 2, 2) of the polygon [m]
    walls: np.ndarray  #: (n, 2, 2) the same less joints [m]
    name: str = ""
    height: tuple[float, float, float] = (0.0, 0.0, 0.0)  #: (a, b, c): a + b x + c y is the height at (x, y) [m]
    up: float = 1.0  #: speed uphill, as a part of that on level ground
    down: float = 1.0  #: and downhill
    beyond: dict[int, np.ndarray] = field(default_factory=dict)  #: by sheet: (n, 2, 2) its walls that are no own sides

    @property
    def slope(self) -> tuple[float, float]:
        """Uphill as a unit vector of the plan; zero on level ground."""
        rise = np.array(self.height[1:])
        size = float(np.linalg.norm(rise))
        return (0.0, 0.0) if size == 0.0 else (float(rise[0] / size), float(rise[1] / size))

    @property
    def all_walls(self) -> np.ndarray:
        """(n, 2, 2) its own and those beyond joints [m]."""
        return np.concatenate([self.walls, *self.beyond.values()])

    def contains(self, points: Any) -> np.ndarray:
        """(n,) which of (n, 2) points are on the floor and on no wall."""
        points = np.asarray(points, float)
        return shapely_library().contains_xy(self.polygon, points[:, 0], points[:, 1])

    def distance_to_walls(self, points: Any) -> np.ndarray:
        """(n,) of (n, 2) points [m]."""
        shapely, places = shapely_library(), np.asarray(points, float).reshape(-1, 2)
        tree = shapely.STRtree(shapely.linestrings(self.walls))
        (who, _), distance = tree.query_nearest(shapely.points(places), return_distance=True, all_matches=False)
        found = np.full(len(places), np.inf)
        found[who] = distance
        return found

    def heights(self, points: np.ndarray) -> np.ndarray:
        """(n,) of (n, 2) points [m]."""
        return self.height[0] + points @ np.array(self.height[1:])


@dataclass(frozen=True)
class SheetJoint:
    """A line where people pass from one sheet to another."""

    sheets: tuple[int, int]
    ends: np.ndarray  #: (2, 2) [m]


def segments_of(polygon: Any) -> np.ndarray:
    """(n, 2, 2) the sides of all rings."""
    shapely = shapely_library()
    sides = []
    for part in shapely.get_parts(polygon):
        for ring in [part.exterior, *part.interiors]:
            corners = shapely.get_coordinates(ring)
            sides.append(np.stack([corners[:-1], corners[1:]], axis=1))
    return without_points(np.concatenate(sides))


def without_points(walls: np.ndarray) -> np.ndarray:
    """The segments that are longer than nothing."""
    return np.ascontiguousarray(walls[(walls[:, 0] != walls[:, 1]).any(axis=1)])


def segments_of_lines(lines: Any) -> np.ndarray:
    """(n, 2, 2) the pieces of lines of shapely."""
    shapely = shapely_library()
    parts = shapely.get_parts(lines)
    pieces = [np.empty((0, 2, 2))]
    for part in parts[shapely.get_type_id(parts) == 1]:
        corners = shapely.get_coordinates(part)
        pieces.append(np.stack([corners[:-1], corners[1:]], axis=1))
    return without_points(np.concatenate(pieces))

"""Where a floor plan is too narrow for a person: gaps from wall to wall, and the doors among them.

Question: which doors does a disc of some radius not get through?
Method:   a disc cannot cross a line from wall to wall that is shorter than its diameter; where it is stopped, there is
          such a line from a corner to a wall. All of these that run over the floor are found by a tree of the walls.
          Those next to each other are one door, as wide as the shortest; it counts if there is room on both sides.
Sound:    lengths are those between the walls themselves: a door is told if, and only if, it is narrower than the
          diameter, but for rounding.
Known as: bottlenecks of the free space; critical doorways.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from tangere.runtime import MissingExtraError

#: A gap is shorter than the diameter by more than rounding.
_SHORTER = 1.0 - 1.0e-9
#: Width of a cut, as a part of the diameter.
_CUT = 1.0e-6


@dataclass(frozen=True)
class Door:
    """A place too narrow to pass: the shortest line from wall to wall."""

    width: float  #: [m]
    start: tuple[float, float]  #: on one wall [m]
    end: tuple[float, float]  #: on the other [m]

    @property
    def place(self) -> tuple[float, float]:
        """The middle of it [m]."""
        return (self.start[0] + self.end[0]) / 2, (self.start[1] + self.end[1]) / 2

    def __str__(self) -> str:
        x, y = self.place
        return f"a door of {self.width:.3f} m at ({x:.2f}, {y:.2f})"


def shapely_library() -> Any:
    """The package, or a sentence on how to get it."""
    try:
        return import_module("shapely")
    except ImportError as error:
        raise MissingExtraError("shapely", "crowd") from error


def narrow_gaps(polygon: Any, walls: np.ndarray, radius: float) -> np.ndarray:
    """(n, 2, 2) lines over the floor from a corner to a wall, shorter than the diameter, shortest first."""
    shapely = shapely_library()
    corners = np.unique(walls.reshape(-1, 2), axis=0)
    tree = shapely.STRtree(shapely.linestrings(walls))
    corner, wall = tree.query(shapely.points(corners), predicate="dwithin", distance=2.0 * radius)
    own = (walls[wall] == corners[corner][:, None]).all(axis=2).any(axis=1)
    corner, wall = corner[~own], wall[~own]
    start, (a, b) = corners[corner], walls[wall].swapaxes(0, 1)
    part = ((start - a) * (b - a)).sum(axis=1) / ((b - a) ** 2).sum(axis=1)
    end = a + np.clip(part, 0.0, 1.0)[:, None] * (b - a)
    length = np.linalg.norm(end - start, axis=1)
    short = (length > 0.0) & (length < 2.0 * radius * _SHORTER)
    gaps, length = np.stack([start, end], axis=1)[short], length[short]
    # Over the floor: all but the ends is inside.
    inner = gaps + _CUT * (gaps[:, ::-1] - gaps)
    shapely.prepare(polygon)
    gaps, length = (x[shapely.contains_properly(polygon, shapely.linestrings(inner))] for x in (gaps, length))
    return gaps[np.lexsort((gaps[:, 0, 1], gaps[:, 0, 0], length))]


def narrow_doors(polygon: Any, walls: np.ndarray, radius: float) -> list[Door]:
    """The doors that are narrower than the diameter, narrowest first."""
    shapely = shapely_library()
    room = shapely.buffer(polygon, -radius, quad_segs=64)
    if room.is_empty:
        return []
    gaps = narrow_gaps(polygon, walls, radius)
    middle = gaps.mean(axis=1)
    touched = _walls_at(shapely, gaps, walls)
    found: list[Door] = []
    left = np.ones(len(gaps), bool)
    while left.any():
        k = int(np.argmax(left))
        # One door: gaps that follow each other within a diameter with no wall between, or between the same two walls.
        same, ahead = np.zeros(len(gaps), bool), [k]
        same[k] = True
        while ahead:
            here = ahead.pop()
            near = np.flatnonzero(left & ~same & (np.linalg.norm(middle - middle[here], axis=1) < 2.0 * radius))
            lines = shapely.linestrings(np.stack([np.broadcast_to(middle[here], (len(near), 2)), middle[near]], axis=1))
            joined = near[shapely.covers(polygon, lines)].tolist() if len(near) else []
            joined += [g for g in np.flatnonzero(left & ~same).tolist() if _along(touched[here], touched[g])]
            same[joined] = True
            ahead += joined
        left &= ~same
        if _has_room_on_both_sides(shapely, polygon, room, gaps[k], 2.0 * radius):
            a, b = gaps[k]
            found.append(Door(float(np.linalg.norm(b - a)), (float(a[0]), float(a[1])), (float(b[0]), float(b[1]))))
    return found


def _walls_at(shapely: Any, gaps: np.ndarray, walls: np.ndarray) -> list[tuple[set[int], set[int]]]:
    """The walls that each gap begins and ends on."""
    tree = shapely.STRtree(shapely.linestrings(walls))
    found: list[tuple[set[int], set[int]]] = [(set(), set()) for _ in gaps]
    end, wall = tree.query(shapely.points(gaps.reshape(-1, 2)), predicate="dwithin", distance=1.0e-9)
    for k, w in zip(end.tolist(), wall.tolist(), strict=True):
        found[k // 2][k % 2].add(w)
    return found


def _along(one: tuple[set[int], set[int]], other: tuple[set[int], set[int]]) -> bool:
    """Whether two gaps are between the same two walls."""
    return bool((one[0] & other[0] and one[1] & other[1]) or (one[0] & other[1] and one[1] & other[0]))


def _has_room_on_both_sides(shapely: Any, polygon: Any, room: Any, gap: np.ndarray, width: float) -> bool:
    """Whether a cut along a gap parts places where a disc has room, or parts nothing: then there is a way around it."""
    whole = shapely.get_parts(polygon)
    cut = shapely.buffer(shapely.linestrings(gap), _CUT * width, cap_style="square")
    parts = shapely.get_parts(shapely.difference(polygon, cut))
    large = shapely.area(parts) > (_CUT * width) ** 2
    if int(large.sum()) <= len(whole):
        return True
    mine = large & (shapely.distance(parts, shapely.linestrings(gap)) < _CUT * width * 4.0)
    return int((shapely.area(shapely.intersection(parts[mine], room)) > 0.0).sum()) >= 2

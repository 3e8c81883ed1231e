"""One cylinder and one element of the ground: planes, the three cases, and the exact test; plain NumPy.

The parts of the article's algorithm that `manifold` puts together, each testable alone (Strashnov and Torgashev 2020,
sections II to IV). An element is a rectangle or a triangle of a cell, counter-clockwise seen from above. Positions are
in the world [m].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tangere.shape.heightfield.heightfield import HOLE, RECTANGLE, Heightfield


@dataclass(frozen=True)
class OneCylinder:
    """A cylinder by its centre, unit axis, radius and height."""

    centre: np.ndarray
    axis: np.ndarray
    radius: float
    height: float

    def box(self, printed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner; `printed` has the article's shortcut for nearly upright axes, which is too small."""
        v = self.axis
        extent = 0.5 * self.height * np.abs(v) + self.radius * np.sqrt(np.maximum(0.0, 1.0 - v * v))
        if printed and abs(v[2] ** 2 - 1.0) <= 1e-4:
            extent = np.array([self.radius, self.radius, 0.5 * self.height])
        return self.centre - extent, self.centre + extent

    def facing(self, normal: np.ndarray) -> np.ndarray:
        """The axis, turned so that the lower base with respect to a plane is at -axis."""
        return self.axis if self.axis @ normal >= 0.0 else -self.axis


@dataclass(frozen=True)
class Element:
    """A rectangle or triangle of the ground."""

    number: int  #: 2 * cell, + 1 for the upper triangle
    corners: np.ndarray  #: (3 or 4, 3)
    vertices: tuple[int, ...]  #: numbers of the corners
    normal: np.ndarray  #: unit, up
    offset: float  #: normal . p = offset on the plane

    def depth(self, point: np.ndarray) -> float:
        """s(P): how far a point is below the plane [m]."""
        return self.offset - float(point @ self.normal)

    def holds(self, point: np.ndarray, slack: float) -> bool:
        """Whether the foot of a point lies in the element."""
        sides = np.roll(self.corners, -1, axis=0) - self.corners
        inward = np.cross(self.normal, sides)
        return bool(
            (np.einsum("ij,ij->i", inward, point - self.corners) >= -slack * np.linalg.norm(sides, axis=1)).all()
        )

    def nearest(self, point: np.ndarray) -> np.ndarray:
        """The point of the element that is nearest to one of its plane (9.2)."""
        if self.holds(point, 0.0):
            return point
        sides = np.roll(self.corners, -1, axis=0) - self.corners
        along = np.einsum("ij,ij->i", point - self.corners, sides) / np.einsum("ij,ij->i", sides, sides)
        feet = self.corners + np.clip(along, 0.0, 1.0)[:, None] * sides
        return feet[np.linalg.norm(feet - point, axis=1).argmin()]


def tolerance(field: Heightfield, cylinder: OneCylinder) -> float:
    """Coincidences: 1e-9 of the largest length (9.3)."""
    return 1e-9 * max(cylinder.radius, cylinder.height, *field.spacing)


def elements(field: Heightfield, lower: np.ndarray, upper: np.ndarray, printed: bool = False) -> Iterator[Element]:
    """The elements under a box, by rising number (4); `printed` divides x by dy, as the article does."""
    (dx, dy), (rows, columns) = field.spacing, field.shape
    across = dy if printed else dx
    low = np.floor((lower[:2] - field.origin[:2]) / [across, dy]).astype(int)
    high = np.ceil((upper[:2] - field.origin[:2]) / [across, dy]).astype(int)
    kinds = field.elements
    for i in range(max(low[1], 0), min(high[1], rows)):
        for j in range(max(low[0], 0), min(high[0], columns)):
            if kinds[i, j] == HOLE:
                continue
            v0, v1, v2, v3 = field.window_vertices(i, j, 2, 2).reshape(4, 3)
            first = i * (columns + 1) + j
            n0, n1, n2, n3 = first, first + 1, first + columns + 1, first + columns + 2
            cell = 2 * (i * columns + j)
            if kinds[i, j] == RECTANGLE:
                yield _element(cell, (v0, v1, v3, v2), (n0, n1, n3, n2))
            else:
                yield _element(cell, (v0, v1, v2), (n0, n1, n2))
                yield _element(cell + 1, (v3, v2, v1), (n3, n2, n1))


def _element(number: int, corners: tuple[np.ndarray, ...], vertices: tuple[int, ...]) -> Element:
    normal = np.cross(corners[1] - corners[0], corners[-1] - corners[0])
    normal /= np.linalg.norm(normal)
    return Element(number, np.array(corners), vertices, normal, float(corners[0] @ normal))


def rim_frame(axis: np.ndarray, element: Element) -> tuple[np.ndarray, np.ndarray]:
    """w towards the deepest point of a base, and u = axis x w (4.1)."""
    w = (axis @ element.normal) * axis - element.normal
    if w @ w <= 1e-12:
        side = element.corners[1] - element.corners[0]
        w = side - (side @ axis) * axis
    w = w / np.linalg.norm(w)
    return w, np.cross(axis, w)


def case_of(cylinder: OneCylinder, element: Element, axis: np.ndarray) -> str | None:
    """ "A": a base lies on the plane, "B": the side does, "C": one point of a rim; None: clear of it (4.2)."""
    w, _ = rim_frame(axis, element)
    low, high = cylinder.centre - 0.5 * cylinder.height * axis, cylinder.centre + 0.5 * cylinder.height * axis
    if element.depth(low + cylinder.radius * w) < 0.0:
        return None
    if element.depth(high + cylinder.radius * w) >= 0.0:
        return "B"
    return "A" if element.depth(low - cylinder.radius * w) >= 0.0 else "C"


@dataclass(frozen=True)
class Overlap:
    """Whether an element meets a cylinder, and the point of it between the base planes that is nearest to the axis."""

    hit: bool
    nearest: np.ndarray | None


def overlap(cylinder: OneCylinder, element: Element) -> Overlap:
    """The exact test (9.1): clip the element to the slab, then measure its distance from the axis."""
    half, v = 0.5 * cylinder.height, cylinder.axis
    polygon = element.corners - cylinder.centre
    for sign in (1.0, -1.0):
        room = half - sign * (polygon @ v)
        kept = []
        for k in range(len(polygon)):
            p, q, a, b = polygon[k], polygon[(k + 1) % len(polygon)], room[k], room[(k + 1) % len(polygon)]
            if a >= 0.0:
                kept.append(p)
            if a * b < 0.0:
                kept.append(p + (q - p) * (a / (a - b)))
        if not kept:
            return Overlap(False, None)
        polygon = np.array(kept)
    flat = polygon - np.outer(polygon @ v, v)
    sides = np.roll(flat, -1, axis=0) - flat
    lengths = np.einsum("ij,ij->i", sides, sides)
    along = np.clip(-np.einsum("ij,ij->i", flat, sides) / np.where(lengths > 0.0, lengths, 1.0), 0.0, 1.0)
    distances = np.linalg.norm(flat + along[:, None] * sides, axis=1)
    best = int(distances.argmin())
    nearest = polygon[best] + along[best] * (np.roll(polygon, -1, axis=0) - polygon)[best]
    turns = np.cross(flat, np.roll(flat, -1, axis=0)) @ v
    if len(flat) > 2 and (np.all(turns > 0.0) or np.all(turns < 0.0)):  # the axis goes through it
        through = (element.offset - cylinder.centre @ element.normal) / (v @ element.normal)
        return Overlap(True, cylinder.centre + through * v)
    return Overlap(bool(distances[best] <= cylinder.radius), cylinder.centre + nearest)


def clip_segment(start: np.ndarray, way: np.ndarray, element: Element, slack: float) -> tuple[float, float] | None:
    """The part t1 <= t <= t2 of start + t way, in the element's plane, that lies in the element (Cyrus-Beck)."""
    first, last = 0.0, 1.0
    for k in range(len(element.corners)):
        corner = element.corners[k]
        inward = np.cross(element.normal, element.corners[(k + 1) % len(element.corners)] - corner)
        inward /= np.linalg.norm(inward)
        room, speed = float(inward @ (corner - start)), float(inward @ way)
        if abs(speed) <= slack:
            if room > slack:
                return None
        elif speed > 0.0:
            first = max(first, room / speed)
        else:
            last = min(last, room / speed)
    return (first, last) if first <= last else None

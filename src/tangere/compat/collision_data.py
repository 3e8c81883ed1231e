"""What a collision manager tells of a contact and of a distance, with trimesh's names."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np


class ContactData:
    """One contact of two objects: a pair of triangles that meet, or one object inside a convex one.

    `normal` pushes the second object away from the first: the second is the one that comes later in the alphabet, the
    one of the other manager, or the one that is not in the manager.
    """

    def __init__(
        self,
        names: tuple[Hashable, Hashable],
        faces: tuple[int, int],
        point: np.ndarray,
        normal: np.ndarray,
        depth: float,
    ) -> None:
        self.names = set(names)  #: of the two objects; "__external" is one that is not in the manager
        self.normal = normal  #: (3,) unit; zero where both triangles have no area
        self.point = point  #: (3,) common to both objects [m]
        self.depth = depth  #: so far along `normal` the second has to go until these triangles only touch [m]
        self._faces = dict(zip(names, faces, strict=True))

    def __repr__(self) -> str:
        return f"ContactData({' and '.join(sorted(map(str, self.names)))}, depth {self.depth:.6g})"

    def index(self, name: Hashable) -> int:
        """The triangle of object `name` that is in contact; -1 for a convex object that has the other one inside."""
        return self._faces[name]


class DistanceData:
    """Where two objects are nearest to each other."""

    def __init__(
        self,
        names: tuple[Hashable, Hashable],
        faces: tuple[int, int],
        points: tuple[np.ndarray | None, np.ndarray | None],
        distance: float,
    ) -> None:
        self.names = set(names)  #: of the two objects; "__external" is one that is not in the manager
        self.distance = distance  #: [m]
        self._faces = dict(zip(names, faces, strict=True))
        self._points = dict(zip(names, points, strict=True))

    def __repr__(self) -> str:
        return f"DistanceData({' and '.join(sorted(map(str, self.names)))}, {self.distance:.9g} m)"

    def index(self, name: Hashable) -> int:
        """The triangle of object `name` that is nearest; -1 for convex objects that overlap."""
        return self._faces[name]

    def point(self, name: Hashable) -> np.ndarray | None:
        """(3,) the nearest point of object `name` [m]."""
        return self._points[name]

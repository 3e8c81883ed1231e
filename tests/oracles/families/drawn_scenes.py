"""Small scenes whose picture can be told without drawing it."""

from __future__ import annotations

import numpy as np

from tangere.motion import Linear
from tangere.query.contacts import Contacts, Kind
from tangere.scene import Camera, Scene, Thing
from tangere.shape.mesh import Mesh

#: Seen from -y: x goes right in the picture and z goes up.
FROM_THE_FRONT = Camera(direction=(0.0, -1.0, 0.0))


def contacts_at(times, points, normals, kinds=Kind.VERTEX_FACE) -> Contacts:
    """Contacts with zero gap; all columns that say who touches are zero."""
    time, count = np.asarray(times, float), len(times)
    return Contacts(
        query=np.zeros(count, np.int32),
        time=time,
        point_a=np.asarray(points, float),
        point_b=np.asarray(points, float),
        normal=np.asarray(normals, float),
        gap=np.zeros(count),
        body_a=np.zeros(count, np.int32),
        body_b=np.ones(count, np.int32),
        feature_a=np.arange(count, dtype=np.int32),
        feature_b=np.arange(count, dtype=np.int32),
        weights=np.zeros((count, 4)),
        kind=np.broadcast_to(np.asarray(kinds, np.uint8), count).copy(),
        vertex_on=np.zeros(count, np.uint8),
        key=np.arange(count),
    )


def square(depth: float, half: float = 1.0, name: str = "square") -> Mesh:
    """A square of side 2 half across the view from the front, `depth` behind the origin."""
    corners = half * np.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]], float) + (0.0, depth, 0.0)
    return Mesh(corners, [[0, 1, 2], [0, 2, 3]], name=name)


def approaching_squares(contacts: Contacts | None = None) -> Scene:
    """A small blue square that moves from left to right in front of a large orange one that rests."""
    small = square(-0.5, 0.3, "small")
    start = small.vertices - (0.6, 0.0, 0.0)
    moving = small.replace(vertices=start).moving(Linear(start + (1.2, 0.0, 0.0)))
    things = (Thing("small", moving, (0.1, 0.2, 0.9)), Thing("large", square(0.5), (0.9, 0.5, 0.1)))
    return Scene(things, contacts or Contacts(), camera=FROM_THE_FRONT)

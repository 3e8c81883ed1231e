"""Which cells agents are in: those of points, those that edges of bodies cross, and those inside of bodies.

Question: is anybody in these cells?
Method:   by the cells of points and of edges (Pitiot 2015, sections 5.1 and 5.3), and in the plane by the outlines of
          bodies (even-odd rule).
"""

from __future__ import annotations

import numpy as np

from tangere.crowd.agents.body_agents import BodyAgents
from tangere.crowd.agents.population import Population


def is_occupied(points: Population, bodies: BodyAgents, cells: np.ndarray) -> np.ndarray:
    """(n,) bool: which of these leaves somebody is in; on surfaces a body is where its corners are."""
    map = bodies.map
    found = np.isin(cells, map.arrays.cell.numpy()[points.arrays.dart.numpy()])
    if len(bodies) == 0:
        return found
    found |= np.isin(cells, bodies.edges.crossed_cells())
    centres = map.numpy("centre")[cells]
    for number, body in enumerate(bodies.bodies if map.flat else ()):
        for section in range(len(body.sections)):
            found |= in_polygon(bodies.outline(number, section)[:, :2], centres)
    return found


def in_polygon(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n,) bool: which points a simple polygon of the plane holds: an odd number of sides to the right."""
    held = np.zeros(len(points), bool)
    for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        beside = (a[1] > points[:, 1]) != (b[1] > points[:, 1])
        if a[1] != b[1]:
            crossing = a[0] + (points[:, 1] - a[1]) * (b[0] - a[0]) / (b[1] - a[1])
            held ^= beside & (points[:, 0] < crossing)
    return held

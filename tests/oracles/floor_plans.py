"""Random floor plans that are hard on purpose, and exact answers about segments."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import shapely
from shapely import affinity


def random_plan(random: np.random.Generator, size: float = 14.0) -> shapely.Polygon:
    """Thin walls at any angle with one door each, spikes and slivers; the largest part."""
    cuts = []
    for _ in range(random.integers(3, 6)):
        thick, door, offset = random.choice([0.01, 0.1, 0.3]), random.uniform(0.7, 1.2), random.uniform(-3, 3)
        wall = shapely.union_all(
            [
                shapely.box(-7, -thick / 2, offset - door / 2, thick / 2),
                shapely.box(offset + door / 2, -thick / 2, random.uniform(offset + 1, 7), thick / 2),
            ]
        )
        turned = affinity.rotate(wall, random.uniform(0, 180), origin=(0, 0))
        cuts.append(affinity.translate(turned, *random.uniform(2, size - 2, 2)))
    for _ in range(5):
        length, width = random.uniform(0.5, 3), 10.0 ** random.uniform(-6, -1)
        spike = affinity.rotate(
            shapely.Polygon([(0, -width / 2), (length, 0), (0, width / 2)]), random.uniform(0, 360), (0, 0)
        )
        cuts.append(affinity.translate(spike, *random.uniform(1, size - 1, 2)))
    plan = shapely.box(0, 0, size, size).difference(shapely.union_all(cuts))
    return max(shapely.get_parts(plan), key=lambda part: part.area)


def _side(a, b, c) -> int:
    """Of which side of ab the point c is, exactly: -1, 0 or 1."""
    ax, ay, bx, by, cx, cy = (Fraction(float(v)) for v in (*a, *b, *c))
    turn = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    return (turn > 0) - (turn < 0)


def segments_meet(p, q, a, b) -> bool:
    """Whether closed segments pq and ab have a point in common, in rational arithmetic."""
    sides = _side(p, q, a), _side(p, q, b), _side(a, b, p), _side(a, b, q)
    if sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0:
        return True

    def on(s, e, x) -> bool:
        return _side(s, e, x) == 0 and all(min(s[k], e[k]) <= x[k] <= max(s[k], e[k]) for k in (0, 1))

    return on(p, q, a) or on(p, q, b) or on(a, b, p) or on(a, b, q)


def crossings(walls: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> int:
    """How many straight ways meet a wall: those near one by a tree, then exactly."""
    tree = shapely.STRtree(shapely.linestrings(walls))
    ways = shapely.linestrings(np.stack([starts, ends], axis=1))
    way, wall = tree.query(ways, predicate="dwithin", distance=1.0e-5)
    return sum(segments_meet(starts[i], ends[i], *walls[k]) for i, k in zip(way.tolist(), wall.tolist(), strict=True))

"""Where solids are that may be inside another: meshes, and one point of each analytic body.

Method: a convex body that does not meet a surface is on one side of it, so any point of it decides. It is the first
        corner of a closed mesh too small to hold anything, which stands for the body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.query.dispatch import is_analytic
from tangere.query.distance.convex.bodies import ConvexKind, as_placed, convex_kind
from tangere.query.intersection.posed import Posed, as_posed
from tangere.runtime import Arrays
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: Stands for a body; coordinates must be at least 1e-40.
SPECK = Mesh(1e-30 * np.eye(4)[:, 1:], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], name="speck")


def posed_solid(thing: Any, time: Arrays) -> Posed:
    """A mesh where it is at `time`, or a speck in each of the analytic bodies."""
    if not is_analytic(thing):
        return as_posed(thing, time)
    placed = as_placed(thing, time)
    bodies = thing.shape if isinstance(thing, Moving) else thing
    poses = placed.poses
    if convex_kind(bodies) == ConvexKind.HULL:  # whose origin may be elsewhere
        poses = poses.copy()
        poses[:, :3, 3] += poses[:, :3, :3] @ bodies.hull.corners.mean(axis=0)
    return Posed(SPECK, poses, placed.single)

"""Which bodies of a scene may be near: boxes or 26-DOPs around each, and the region that two of them share.

Stage 1 of the grid pipeline (Léonard 2021, section 3.2, with boxes). A k-DOP is k / 2 slabs: along the axes (6), the
diagonals of the cube (14) and of its faces (26); it fits a body that lies across the axes better than a box
(Klosowski et al. 1998).
If points of two bodies are nearer than d, their midpoint is within d / 2 of both, so it lies in both grown bounds, in
the region they share, and in the grown bounds of both triangles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tangere.runtime.errors import InputError
from tangere.shape.mesh.mesh import Mesh

#: What rounding may do to a bound, relative to the coordinates.
ROUNDING = 1e-14


@dataclass(frozen=True)
class Objects:
    """Stage 1: the bodies' boxes, and what is to be compared with what."""

    boxes: np.ndarray  #: (bodies, 2, 3) [m], grown by half the distance
    jobs: np.ndarray  #: (k, 2): pairs of bodies whose bounds overlap, (a, a) for a body with itself
    regions: np.ndarray  #: (k, 2, 3) [m]: the box that both share


def near_objects(
    meshes: Sequence[Mesh], distance: float, *, k: int = 6, within: bool = True, between: bool = True
) -> Objects:
    """Pairs of bodies whose bounds, grown by half of `distance` [m], overlap, and the regions of interest.

    Args:
        k: 6 (boxes), 14, 18 or 26 faces around each body.
        within: compare each body with itself; without a test, its region is its own box.
        between: compare different bodies.
    """
    directions = dop_directions(k)
    low, high = slabs(meshes, directions, distance)
    boxes = np.stack([low[:, :3], high[:, :3]], axis=1)
    a, b = _each_pair(len(meshes))
    overlap = ((low[a] <= high[b]) & (low[b] <= high[a])).all(axis=1)
    chosen = np.where(a == b, within, between & overlap)
    a, b = a[chosen], b[chosen]
    regions = np.stack([np.maximum(boxes[a, 0], boxes[b, 0]), np.minimum(boxes[a, 1], boxes[b, 1])], axis=1)
    return Objects(boxes, np.stack([a, b], axis=1).astype(np.int32), regions)


def every_object(bodies: int, *, within: bool = True, between: bool = True) -> Objects:
    """All pairs of bodies, whose bounds are not known."""
    a, b = _each_pair(bodies)
    chosen = np.where(a == b, within, between)
    jobs = np.stack([a[chosen], b[chosen]], axis=1).astype(np.int32)
    everywhere = np.array([[-np.inf] * 3, [np.inf] * 3])
    return Objects(np.tile(everywhere, (bodies, 1, 1)), jobs, np.tile(everywhere, (len(jobs), 1, 1)))


@cache
def dop_directions(k: int) -> np.ndarray:
    """(k / 2, 3): the normals of the slabs, not of length one."""
    axes = np.eye(3)
    corners = np.array([[1, y, z] for y in (1, -1) for z in (1, -1)], float)
    sides = np.array([[1, 1, 0], [1, -1, 0], [1, 0, 1], [1, 0, -1], [0, 1, 1], [0, 1, -1]], float)
    parts = {6: [axes], 14: [axes, corners], 18: [axes, sides], 26: [axes, corners, sides]}
    if k not in parts:
        raise InputError(f"a k-DOP has 6, 14, 18 or 26 faces, not {k!r}")
    directions = np.concatenate(parts[k])
    directions.flags.writeable = False  # it is kept
    return directions


def slabs(meshes: Sequence[Mesh], directions: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest (bodies, k / 2) of every body along each direction, grown by half of `distance`."""
    if len(directions) == 3:
        low, high = np.array([mesh.bounds for mesh in meshes]).swapaxes(0, 1)
    else:
        along = [mesh.vertices @ directions.T for mesh in meshes]
        low, high = np.array([x.min(axis=0) for x in along]), np.array([x.max(axis=0) for x in along])
    length = np.sqrt((directions * directions).sum(axis=1))
    room = 0.5 * distance * length + ROUNDING * (np.abs(low) + np.abs(high) + distance)
    return low - room, high + room


@cache
def _each_pair(bodies: int) -> tuple[np.ndarray, np.ndarray]:
    """Each body with itself and with every later one."""
    a, b = np.triu_indices(bodies)
    return a, b

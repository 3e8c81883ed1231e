"""Which ground the bodies of a manifold need, made ready: all of it in memory, or the tiles they are near to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid import HeightPyramid, PagedPyramid, Terrain, terrain_visits
from tangere.query.manifold.details import on_device
from tangere.shape.analytic import HULL, Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield

__all__ = ["ground_of_few", "ground_visits", "margins_of"]

#: Gaps up to this part of a body's size count as contacts, unless a margin is given.
MARGIN = 0.01


def ground_visits(
    bodies: Analytic,
    poses: wp.array,
    terrains: Sequence[Heightfield | TiledHeightfield],
    worlds: np.ndarray | None,
    margin: float | None,
    device: wp.Device,
) -> Iterator[tuple[Any, wp.array]]:
    """Bodies (an index) and the terrains of all worlds, of which those of these bodies are ready."""
    in_memory = [one for one in terrains if isinstance(one, Heightfield)]
    if len(in_memory) == len(terrains) == 1:
        yield slice(None), HeightPyramid.of(in_memory[0], device).row
        return
    if len(in_memory) == len(terrains):
        structs = [HeightPyramid.of(one, device).terrain for one in in_memory]
        yield slice(None), wp.array(structs, dtype=Terrain, device=device)
        return
    reach = _reach(bodies) + 2.0 * margins_of(bodies, margin)
    if len(terrains) == 1:
        pyramid = PagedPyramid.of(terrains[0], device)
        for rows, _ in pyramid.visits(_origins(poses), on_device(reach, wp.float64, device)):
            yield rows, pyramid.row
        return
    centres, reach = poses.numpy()[:, :3, 3], np.broadcast_to(reach, len(bodies))
    for number, field in enumerate(terrains):
        mine = np.arange(len(bodies)) if worlds is None else np.flatnonzero(worlds == number)
        for rows, ground in terrain_visits(field, centres[mine], reach[mine], device) if len(mine) else ():
            whole = isinstance(rows, slice) and len(mine) == len(bodies)
            yield rows if whole else mine[rows], wp.array([ground] * len(terrains), dtype=Terrain, device=device)


def ground_of_few(
    bodies: Analytic, field: Heightfield | TiledHeightfield, margin: float | None, device: wp.Device
) -> wp.array | None:
    """The terrain as one row, ready for bodies with poses on the host; None if they need several visits."""
    if isinstance(field, Heightfield):
        return HeightPyramid.of(field, device).row
    pyramid = PagedPyramid.of(field, device)
    rows, _ = next(pyramid.visits(bodies.poses[:, :3, 3], _reach(bodies) + 2.0 * margins_of(bodies, margin)))
    return pyramid.row if isinstance(rows, slice) else None


def _origins(poses: wp.array) -> wp.array:
    """Where the origins of bodies are, (n, 3) [m]: a view."""
    if poses.ptr is None:  # no bodies
        return wp.empty((0, 3), dtype=wp.float64, device=poses.device)
    number = wp.types.type_size_in_bytes(wp.float64)
    return wp.array(
        ptr=poses.ptr + 3 * number,  # the last column of a pose
        dtype=wp.float64,
        shape=(len(poses), 3),
        strides=(16 * number, 4 * number),
        device=poses.device,
    )


def _reach(bodies: Analytic) -> np.ndarray:
    """How far any point of a body is from its origin at most, (1,) or (n,) [m]."""
    records = bodies.records
    if bodies.kind == HULL:
        return np.linalg.norm(records["half"][:, None] * bodies.hull.corners, axis=2).max(axis=1)
    return records["radius"] + records["half"][:, 2]


def margins_of(bodies: Analytic, margin: float | None) -> np.ndarray:
    """(1,) or (n,) [m]."""
    if margin is not None:
        return np.array([float(margin)])
    records = bodies.records
    if bodies.kind == HULL:
        return MARGIN * 0.5 * (np.ptp(bodies.hull.corners, axis=0) * records["half"]).min(axis=1)
    return MARGIN * records["radius"]

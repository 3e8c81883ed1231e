"""Batches of feature pairs under tangent screws: the first contact of each, by the root of its cubic."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.published.redon_cubics.cubics import edge_edge_root, face_vertex_root, vertex_face_root
from tangere.published.redon_cubics.path import ScrewPath, path_point, screw_paths, times
from tangere.published.redon_cubics.search import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE
from tangere.published.redon_screws import TanScrew
from tangere.runtime.arrays import Arrays, as_points, choose_device
from tangere.runtime.errors import InputError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Of the size of a query: a distance below this is rounding.
REACH = wp.constant(wp.float64(1e-9))
#: Queries worth a thread.
GRAIN = 1024


def edge_edge_times(points: Arrays, motion: TanScrew, *, device: str | wp.Device | None = None) -> np.ndarray:
    """(n,) first contact of a moving edge (points 0, 1, in the body's frame) with a resting edge (2, 3, world); or inf.

    Args:
        points: shape (n, 4, 3) [m].
        motion: n motions, or one for all.
    """
    return _times(EDGE_EDGE, points, motion, device)


def vertex_face_times(points: Arrays, motion: TanScrew, *, device: str | wp.Device | None = None) -> np.ndarray:
    """(n,) first contact of a moving vertex (point 0) with a resting face (1, 2, 3); else as `edge_edge_times`."""
    return _times(VERTEX_FACE, points, motion, device)


def face_vertex_times(points: Arrays, motion: TanScrew, *, device: str | wp.Device | None = None) -> np.ndarray:
    """(n,) first contact of a resting vertex (point 0) with a moving face (1, 2, 3); else as `edge_edge_times`."""
    return _times(FACE_VERTEX, points, motion, device)


def _times(kind: int, points: Arrays, motion: TanScrew, device: str | wp.Device | None) -> np.ndarray:
    if not isinstance(motion, TanScrew):
        raise InputError(f"motion must be a TanScrew, not {motion!r}")
    device = choose_device(device, points)
    corners = as_points(points, "points", device, width=4)
    records = motion.records()
    count = len(corners)
    if len(records) not in (1, count):
        raise InputError(f"points has {count} queries and motion {len(records)}: they must be as many, or one motion")
    bad = ~np.isfinite(corners.numpy()).all(axis=(1, 2))
    if bad.any():
        raise InputError(f"points[{int(np.argmax(bad))}] is not finite")
    found = wp.zeros(count, dtype=wp.float64, device=device)
    paths = wp.array(screw_paths(records), dtype=ScrewPath, device=device)
    launch(_solve, count, [int(kind), corners, paths], [found], device=device, grain=GRAIN)
    return times(found.numpy(), records["angle"])


@wp.kernel
def _solve(
    first: int,
    kind: int,
    points: wp.array2d[wp.vec3d],
    paths: wp.array[ScrewPath],
    found: wp.array[wp.float64],
):
    i = first + wp.tid()
    path = paths[wp.min(i, paths.shape[0] - 1)]
    a = points[i, 0]
    b = points[i, 1]
    c = points[i, 2]
    d = points[i, 3]
    end = wp.float64(1.0)
    reach = REACH * (wp.length(b - a) + wp.length(c - d) + wp.length(path_point(path, a).place - d))
    s = wp.float64(0.0)
    if kind == EDGE_EDGE:
        s = edge_edge_root(path, path_point(path, a), path_point(path, b), c, d, end, reach)
    elif kind == VERTEX_FACE:
        s = vertex_face_root(path, path_point(path, a), b, c, d, end, reach)
    else:
        s = face_vertex_root(path, a, path_point(path, b), path_point(path, c), path_point(path, d), end, reach)
    found[i] = s

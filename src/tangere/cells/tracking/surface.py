"""Points that move on a surface in space: straight on as seen from the surface, over every edge it bends at.

Question: where is a point of a surface after a displacement, and in which cell?
Method:   the displacement is laid into the plane of the point's dart triangle and followed to its first side; across
          the edge the rest is unfolded: its part along the edge stays, its part across goes on in the next triangle, so
          its length is kept. A heading is carried along in the same way.
Sound:    points stay on their triangles to rounding; a border, wall or obstacle stops them.
Known as: straightest geodesics (Polthier and Schmies 1998); crowds on surfaces: Pitiot 2015, section 8.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.index_checks import checked_indices
from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.locate import as_darts, as_map_points
from tangere.cells.tracking.simplex_sides import BLOCKED, INSIDE, LOST, neighbour_dart
from tangere.runtime import SOUND, Arrays, CapacityError, InputError, indices_at_least, launch, to_numpy, using_threads

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
#: Triangles crossed in one move.
_LIMIT = wp.constant(100000)


@dataclass(frozen=True)
class Glides:
    """Where points of a surface came to."""

    position: np.ndarray  #: (n, 3) [m]
    dart: np.ndarray  #: (n,) int32
    cell: np.ndarray  #: (n,) int32
    heading: np.ndarray  #: (n, 3) what was the heading, in the plane it is in now
    blocked: np.ndarray  #: (n,) bool


def on_surface(map: CellMap, darts: Arrays, weights: Arrays) -> np.ndarray:
    """Points of dart triangles, (n, 3) [m]: weights (n, 3) of the cell centre and of the dart's two ends."""
    darts, weights = checked_indices(darts, "darts", len(map.numpy("tag")), "darts"), to_numpy(weights, "weights")
    if weights.shape != (len(darts), 3):
        raise InputError(f"weights must have shape {(len(darts), 3)}, not {weights.shape}")
    start, end = map.edge_ends(darts)
    centre = map.numpy("centre")[map.numpy("cell")[darts]]
    return weights[:, :1] * centre + weights[:, 1:2] * start + weights[:, 2:] * end


def glide(
    map: CellMap,
    points: Arrays,
    displacements: Arrays,
    darts: Arrays,
    headings: Arrays | None = None,
    *,
    threads: int | None = None,
) -> Glides:
    """Move points of a 2-map along its surface.

    Args:
        points: (n, 3) on the triangles of `darts` [m].
        displacements: (n, 3) [m]; what is not in the plane of the point's triangle is left out.
        headings: (n, 3) directions to carry along; None: the displacements.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        if map.dimension != 2:
            raise InputError("glide needs a 2-map; points of a 3-map move with `move`")
        start = as_map_points(map, points, "points")
        by = as_map_points(map, displacements, "displacements", len(start))
        heading = by if headings is None else as_map_points(map, headings, "headings", len(start))
        position, direction, dart, status = glide_darts(map, start, by, heading, as_darts(map, darts, len(start)))
        found = dart.numpy()
        cells = map.arrays.cell.numpy()[found]
        return Glides(position.numpy(), found, cells, direction.numpy(), status.numpy() == BLOCKED)


def glide_darts(
    map: CellMap, points: wp.array, by: wp.array, headings: wp.array, darts: wp.array
) -> tuple[wp.array, wp.array, wp.array, wp.array]:
    """The same on the device: positions, headings, darts and how each glide ended (uint8: INSIDE or BLOCKED)."""
    count, device = len(points), map.device
    position, direction = (wp.empty(count, dtype=wp.vec3d, device=device) for _ in range(2))
    dart, status = (wp.empty(count, dtype=kind, device=device) for kind in (wp.int32, wp.uint8))
    inputs = [map.arrays, points, by, headings, darts]
    launch(_glide, count, inputs, [position, direction, dart, status], device=device, grain=1024)
    lost = indices_at_least(status, int(LOST))
    if len(lost):
        raise CapacityError(f"point {lost.numpy().min()} crosses more than {_LIMIT} triangles: cut its move")
    return position, direction, dart, status


@wp.func
def _corner(m: MapArrays, d: int, k: int) -> wp.vec3d:
    """Corners of a dart's triangle: the cell centre, its origin, its end."""
    if k == 0:
        return m.centre[m.cell[d]]
    if k == 1:
        return m.position[m.origin[d]]
    return m.position[m.origin[m.phi1[d]]]


@wp.func
def triangle_normal(m: MapArrays, d: int) -> wp.vec3d:
    """Unit normal of the triangle of a dart, on the side that counts as above."""
    c = _corner(m, d, 0)
    return wp.normalize(wp.cross(_corner(m, d, 1) - c, _corner(m, d, 2) - c))


@wp.func
def _unfolded(w: wp.vec3d, edge: wp.vec3d, n0: wp.vec3d, n1: wp.vec3d) -> wp.vec3d:
    """A tangent vector unfolded across an edge of unit direction `edge`, from normal n0 to normal n1."""
    across = wp.dot(w, wp.cross(edge, n0))
    return wp.dot(w, edge) * edge + across * wp.cross(edge, n1)


@wp.struct
class GlideState:
    """Where a glide has come to, and how it ended."""

    position: wp.vec3d
    heading: wp.vec3d
    dart: int
    status: int


@wp.func
def glide_to(m: MapArrays, dart: int, point: wp.vec3d, by: wp.vec3d, heading: wp.vec3d) -> GlideState:
    """Move a point of a dart's triangle along the surface; its heading turns with it."""
    d = int(dart)
    p = point
    n = triangle_normal(m, d)
    w = by - wp.dot(by, n) * n
    h = heading - wp.dot(heading, n) * n
    ended = LOST + 0
    entry = int(-1)
    for _step in range(_LIMIT):
        way = int(-1)
        least = wp.float64(1.0)
        edge = wp.vec3d()
        for k in range(3):
            # In the order of `neighbour_dart`: from the centre to the origin, from the end to the centre, the edge.
            a = _corner(m, d, 2 * k % 3)
            along = _corner(m, d, (2 * k + 1) % 3) - a
            inward = wp.cross(n, along)
            here = wp.dot(inward, p - a)
            speed = wp.dot(inward, w)
            if speed < _ZERO and k != entry:
                time = wp.max(here, _ZERO) / -speed
                if time < least:
                    least = time
                    way = k
                    edge = wp.normalize(along)
        p += least * w
        w = (wp.float64(1.0) - least) * w
        if way < 0:
            ended = INSIDE
            break
        there = neighbour_dart(m, d, way)
        if there < 0:
            ended = BLOCKED
            break
        d = there
        entry = way
        if way < 2:
            entry = 1 - way
        n1 = triangle_normal(m, d)
        w = _unfolded(w, edge, n, n1)
        h = _unfolded(h, edge, n, n1)
        n = n1
        # Back into the plane of the triangle: rounding must not add up over many steps.
        p -= wp.dot(p - _corner(m, d, 1), n) * n
    end = GlideState()
    end.position = p
    end.heading = h
    end.dart = d
    end.status = ended
    return end


@wp.kernel
def _glide(
    first: int,
    m: MapArrays,
    points: wp.array[wp.vec3d],
    by: wp.array[wp.vec3d],
    headings: wp.array[wp.vec3d],
    darts: wp.array[int],
    position: wp.array[wp.vec3d],
    direction: wp.array[wp.vec3d],
    out: wp.array[int],
    status: wp.array[wp.uint8],
):
    i = first + wp.tid()
    end = glide_to(m, darts[i], points[i], by[i], headings[i])
    position[i] = end.position
    direction[i] = end.heading
    out[i] = end.dart
    status[i] = wp.uint8(end.status)

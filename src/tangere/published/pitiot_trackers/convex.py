"""The four-state tracker of convex volumes: it follows a particle from face to edge to vertex, with a thickness.

Question: where does a particle come to that moves straight through convex volumes, and what is it on there?
Method:   the published machine: in a volume, turn planes through the particle itself until the face ahead is found, and
          go to that face; on a face, an edge or a vertex, decide which volume, face or edge is next; a particle nearer
          than epsilon to a face, edge or vertex is on it.
Use:      a reference for maps with flat faces. Where faces are warped it may go round in circles, which is what the
          well-centred tracker (`locate`, `move`) was made for; points it gives up on are reported.
Known as: the four-state machine of T. Jund as in Pitiot 2015, sections 4.2.1 to 4.2.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap, MapArrays
from tangere.cells.tracking import BLOCKED, INSIDE, LOST, as_darts, as_map_points, classify, neighbour_dart
from tangere.runtime import SOUND, Arrays, UnsupportedError, launch

wp.set_module_options(SOUND)

VERTEX, EDGE, FACE, VOLUME = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
_TURNS = wp.constant(256)
_STEPS = wp.constant(4096)
_ZERO = wp.constant(wp.float64(0.0))


@dataclass(frozen=True)
class Tracks:
    """Where each particle came to."""

    position: np.ndarray  #: (n, 3) [m]
    dart: np.ndarray  #: (n,) int32
    cell: np.ndarray  #: (n,) int32
    state: np.ndarray  #: (n,) 0 on a vertex, 1 on an edge, 2 on a face, 3 in a volume
    blocked: np.ndarray  #: (n,) bool: stopped by a border, wall or obstacle
    lost: np.ndarray  #: (n,) bool: it went round in circles


def track_convex(map: CellMap, points: Arrays, targets: Arrays, darts: Arrays, *, epsilon: float = 1e-9) -> Tracks:
    """Move particles straight to their targets through the convex volumes of a 3-map.

    Args:
        points, targets: (n, 3) [m].
        darts: (n,) a dart of the volume of each point.
        epsilon: thickness of faces, edges and vertices [m].
    """
    if map.dimension != 3:
        raise UnsupportedError("track_convex is for 3-maps; in 2-maps every cell is followed by `locate` or `move`")
    start = as_map_points(map, points, "points")
    end = as_map_points(map, targets, "targets", len(start))
    aimed = as_darts(map, darts, len(start))
    state = wp.array(classify(map, start, aimed, epsilon), dtype=wp.int32, device=map.device)
    place = wp.empty_like(start)
    out, status = (wp.empty(len(start), dtype=wp.int32, device=map.device) for _ in range(2))
    inputs = [map.arrays, start, end, aimed, state, wp.float64(epsilon)]
    launch(_track, len(start), inputs, [place, out, status], device=map.device, grain=512)
    found, ended = out.numpy(), status.numpy()
    cells = map.arrays.cell.numpy()[found]
    states = classify(map, place, out, epsilon)
    return Tracks(place.numpy(), found, cells, states, ended == BLOCKED, ended == LOST)


@wp.func
def _volume(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.float64:
    return wp.dot(a, wp.cross(b, c))


@wp.func
def _start(m: MapArrays, d: int) -> wp.vec3d:
    return m.position[m.origin[d]]


@wp.func
def _end(m: MapArrays, d: int) -> wp.vec3d:
    return m.position[m.origin[m.phi1[d]]]


@wp.func
def _above(m: MapArrays, d: int, x: wp.vec3d) -> wp.float64:
    """Height of x over the facet of d [m], positive outside the volume."""
    f = m.face_centre[d]
    return wp.dot(wp.normalize(wp.cross(_start(m, d) - f, _end(m, d) - f)), x - f)


@wp.func
def _on(m: MapArrays, d: int, x: wp.vec3d, epsilon: wp.float64) -> wp.vec2i:
    """What a point of the face of d is on, and the dart of the edge or the dart that leaves the vertex."""
    if wp.length(x - _start(m, d)) <= epsilon:
        return wp.vec2i(d, VERTEX)
    if wp.length(x - _end(m, d)) <= epsilon:
        return wp.vec2i(m.phi1[d], VERTEX)
    along = _end(m, d) - _start(m, d)
    if wp.length(wp.cross(along, x - _start(m, d))) <= epsilon * wp.length(along):
        return wp.vec2i(d, EDGE)
    return wp.vec2i(d, FACE)


@wp.func
def _ahead(m: MapArrays, p: wp.vec3d, q: wp.vec3d, start: int) -> int:
    """The dart of a volume whose pyramid from p holds the direction to q; -1 if the turning does not end."""
    d = int(start)
    for _n in range(_TURNS):
        f = m.face_centre[d] - p
        s = _start(m, d) - p
        e = _end(m, d) - p
        if _volume(f, s, q - p) < _ZERO:
            d = m.phi_1[d]
        elif _volume(f, e, q - p) > _ZERO:
            d = m.phi1[d]
        elif _volume(s, e, q - p) < _ZERO:
            d = m.phi2[d]
        else:
            return d
    return -1


@wp.func
def _around_edge(m: MapArrays, q: wp.vec3d, start: int, epsilon: wp.float64) -> wp.vec2i:
    """Turn around an edge to the volume or face that q is in: the dart and the state; -1 at a border."""
    d = int(start)
    if _above(m, d, q) <= epsilon and _above(m, m.phi2[d], q) > epsilon:
        d = m.phi2[d]
    for _n in range(_TURNS):
        here = _above(m, d, q)
        there = _above(m, m.phi2[d], q)
        if here > epsilon:
            across = neighbour_dart(m, d, 3)
            if across < 0:
                return wp.vec2i(d, -1)
            d = m.phi2[across]
        elif there > epsilon:
            d = m.phi2[d]
        elif wp.abs(here) <= epsilon:
            return wp.vec2i(d, FACE)
        elif wp.abs(there) <= epsilon:
            return wp.vec2i(m.phi2[d], FACE)
        else:
            return wp.vec2i(d, VOLUME)
    return wp.vec2i(d, LOST + 8)


@wp.func
def _around_vertex(m: MapArrays, q: wp.vec3d, start: int, epsilon: wp.float64) -> wp.vec2i:
    """From volume to volume around the origin of a dart, to the one whose cone there holds q."""
    d = int(start)
    x = int(start)
    seen = int(0)
    for _n in range(_TURNS):
        if _above(m, x, q) > epsilon:
            across = neighbour_dart(m, x, 3)
            if across < 0:
                return wp.vec2i(x, -1)
            d = m.phi1[across]
            x = d
            seen = 0
        else:
            x = m.phi2[m.phi_1[x]]
            seen += 1
            if x == d:
                return wp.vec2i(d, VOLUME)
    return wp.vec2i(d, LOST + 8)


@wp.kernel
def _track(
    first: int,
    m: MapArrays,
    points: wp.array[wp.vec3d],
    targets: wp.array[wp.vec3d],
    darts: wp.array[int],
    states: wp.array[int],
    epsilon: wp.float64,
    place: wp.array[wp.vec3d],
    out: wp.array[int],
    status: wp.array[int],
):
    i = first + wp.tid()
    p = points[i]
    q = targets[i]
    d = int(darts[i])
    state = int(states[i])
    ended = LOST + 0
    if state == VERTEX and wp.length(p - _start(m, d)) > epsilon:
        d = m.phi1[d]
    for _n in range(_STEPS):
        if wp.length(q - p) <= epsilon:
            p = q
            ended = INSIDE
            break
        turned = wp.vec2i(d, state)
        if state == VERTEX:
            turned = _around_vertex(m, q, d, epsilon)
        elif state == EDGE:
            turned = _around_edge(m, q, d, epsilon)
        elif state == FACE and _above(m, d, q) > epsilon:
            turned = wp.vec2i(neighbour_dart(m, d, 3), VOLUME)
            if turned[0] < 0:
                turned = wp.vec2i(d, -1)
        if turned[1] == -1:
            d = turned[0]
            ended = BLOCKED
            break
        if turned[1] > VOLUME:
            break
        # In the volume. Seen from a point on its boundary the planes of that boundary fall together: look from a little
        # further in.
        inner = p + wp.float64(0.001) * (m.centre[m.cell[turned[0]]] - p)
        d = _ahead(m, inner, q, turned[0])
        if d < 0:
            d = turned[0]
            break
        high = _above(m, d, q)
        if high <= epsilon:
            p = q
            ended = INSIDE
            break
        low = wp.min(_above(m, d, p), _ZERO)
        p = p + (low / (low - high)) * (q - p)
        now = _on(m, d, p, epsilon)
        d = now[0]
        state = now[1]
        if state == FACE:
            across = neighbour_dart(m, d, 3)
            if across < 0:
                ended = BLOCKED
                break
            d = across
            state = VOLUME
    place[i] = p
    out[i] = d
    status[i] = ended

"""First contact of two features as the course prints it: vertex-face, edge-edge, and vertex-edge in a common plane.

Question: the smallest t in [0, 1] at which a moving vertex is in a moving triangle, two moving segments meet, or a
          moving vertex lies on a moving edge.
Method:   the roots of the coplanarity cubic T2 in ascending order; the first at which the barycentric coordinates T5
          are within the triangle, or the lines meet (T6) within both segments. Four points that stay coplanar go to the
          vertex-edge test: the vertex with the three edges of the face, or each end with the other edge. There the
          normal of the three points (T8) has three components, each a quadratic in t; the times of collinearity are
          the intersection of their solution sets (within `reading.match`), and T10 asks whether the vertex is between
          the ends (chapter 6.X4, "Le critère de l'intersection vertex-surface", "edge-edge" and "vertex-edge").
Unsafe:   misses grazing contact, faces that collapse, edges that are parallel when they meet and some motion in a
          plane; see ERR-5 (components that vanish), ERR-7 (edges that collapse).
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.published.course.companion import real_roots
from tangere.published.course.inside import barycentric, inside_segment, inside_segments, inside_triangle, line_line
from tangere.published.course.polynomials import coplanarity, is_zero, normal_polynomial, position, quadratic_roots
from tangere.published.course.reading import Reading, ReadingValues
from tangere.query.contacts.record import Kind, Status
from tangere.runtime.errors import UnsupportedError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Four points or velocities, one a row.
Points: Any = wp.types.matrix(shape=(4, 3), dtype=wp.float64)

_KINDS = (Kind.VERTEX_FACE, Kind.EDGE_EDGE, Kind.VERTEX_EDGE)
_VERTEX_FACE = wp.constant(int(Kind.VERTEX_FACE))
_EDGE_EDGE = wp.constant(int(Kind.EDGE_EDGE))
_INF = wp.constant(wp.float64(float("inf")))
_FREE = wp.constant(wp.uint8(Status.FREE))
_CONTACT = wp.constant(wp.uint8(Status.CONTACT))
_START = wp.constant(wp.uint8(Status.START))


def solve(kind: Kind, x0: wp.array, x1: wp.array, reading: Reading | None = None) -> tuple[wp.array, wp.array]:
    """First contact of each query: time (float64, inf when free) and `Status` (uint8), shape (n,), on x0's device.

    Args:
        kind: VERTEX_FACE (vertex, face), EDGE_EDGE (edge, edge) or VERTEX_EDGE (vertex, edge).
        x0, x1: `wp.vec3d` of shape (n, 4), or (n, 3) for vertex-edge, at t = 0 and t = 1 [m].
        reading: how to read what the course leaves open; None is the most charitable strict reading.
    """
    if kind not in _KINDS:
        known = ", ".join(k.name for k in _KINDS)
        raise UnsupportedError(f"the course has no test for {Kind(kind).name}; it has {known}")
    time = wp.empty(len(x0), dtype=wp.float64, device=x0.device)
    status = wp.empty(len(x0), dtype=wp.uint8, device=x0.device)
    inputs = [int(kind), x0, x1, (reading or Reading()).values()]
    launch(_first_times, len(x0), inputs=inputs, outputs=[time, status], device=x0.device)
    return time, status


@wp.func
def coplanar_throughout(r: Points, v: Points, zero: wp.float64) -> bool:
    """Whether four moving points stay in one plane, as far as the course can tell."""
    return is_zero(_coplanarity_of(r, v), zero)


@wp.func
def _coplanarity_of(r: Points, v: Points) -> wp.vec4d:
    return coplanarity(r[1] - r[0], r[2] - r[0], r[3] - r[0], v[1] - v[0], v[2] - v[0], v[3] - v[0])


@wp.func
def _vertex_face_time(r: Points, v: Points, reading: ReadingValues) -> wp.float64:
    """Smallest time in [0, 1] at which vertex 3 is in the face 0, 1, 2; inf if never."""
    p = _coplanarity_of(r, v)
    if is_zero(p, reading.zero):
        time = _vertex_edge_time(r[3], r[0], r[1], v[3], v[0], v[1], reading)
        time = wp.min(time, _vertex_edge_time(r[3], r[1], r[2], v[3], v[1], v[2], reading))
        return wp.min(time, _vertex_edge_time(r[3], r[2], r[0], v[3], v[2], v[0], reading))
    roots = real_roots(p, reading.imaginary)
    for k in range(3):
        t = roots[k]
        if t >= wp.float64(0.0) and t <= wp.float64(1.0):
            at = positions_of(r, v, t)
            if inside_triangle(barycentric(at[3], at[0], at[1], at[2]), reading.widen):
                return t
    return _INF


@wp.func
def _edge_edge_time(r: Points, v: Points, reading: ReadingValues) -> wp.float64:
    """Smallest time in [0, 1] at which the edges 0, 1 and 2, 3 meet; inf if never."""
    p = _coplanarity_of(r, v)
    if is_zero(p, reading.zero):
        time = _vertex_edge_time(r[0], r[2], r[3], v[0], v[2], v[3], reading)
        time = wp.min(time, _vertex_edge_time(r[1], r[2], r[3], v[1], v[2], v[3], reading))
        time = wp.min(time, _vertex_edge_time(r[2], r[0], r[1], v[2], v[0], v[1], reading))
        return wp.min(time, _vertex_edge_time(r[3], r[0], r[1], v[3], v[0], v[1], reading))
    roots = real_roots(p, reading.imaginary)
    for k in range(3):
        t = roots[k]
        if t >= wp.float64(0.0) and t <= wp.float64(1.0):
            at = positions_of(r, v, t)
            if inside_segments(line_line(at[0], at[1], at[2], at[3]), reading.widen):
                return t
    return _INF


@wp.func
def positions_of(r: Points, v: Points, t: wp.float64) -> Points:
    """Where moving points are."""
    return wp.matrix_from_rows(
        position(r[0], v[0], t), position(r[1], v[1], t), position(r[2], v[2], t), position(r[3], v[3], t)
    )


@wp.func
def _vertex_edge_time(
    r0: wp.vec3d, r1: wp.vec3d, r2: wp.vec3d, v0: wp.vec3d, v1: wp.vec3d, v2: wp.vec3d, reading: ReadingValues
) -> wp.float64:
    """Smallest time in [0, 1] at which vertex 0 is on the edge 1, 2; inf if never."""
    times = collinear_times(normal_polynomial(r1 - r0, r2 - r0, v1 - v0, v2 - v0), reading)
    for k in range(2):
        t = times[k]
        if t >= wp.float64(0.0) and t <= wp.float64(1.0):
            if inside_segment(position(r0, v0, t), position(r1, v1, t), position(r2, v2, t), reading.widen):
                return t
    return _INF


@wp.func
def collinear_times(normal: wp.mat33d, reading: ReadingValues) -> wp.vec2d:
    """Times at which all three components of a normal polynomial vanish, ascending; inf in place of missing ones.

    None are reported where every component vanishes throughout: the vertex stays on the line of the edge, and the
    course leaves that to a neighbouring edge.
    """
    times = wp.vec2d(_INF, _INF)
    begun = wp.bool(False)
    for axis in range(3):
        a = normal[0, axis]
        b = normal[1, axis]
        c = normal[2, axis]
        if wp.max(wp.abs(a), wp.max(wp.abs(b), wp.abs(c))) == wp.float64(0.0):
            if not reading.every_time:
                return wp.vec2d(_INF, _INF)
        else:
            roots = quadratic_roots(a, b, c)
            if begun:
                for k in range(2):
                    if wp.min(wp.abs(times[k] - roots[0]), wp.abs(times[k] - roots[1])) > reading.match:
                        times[k] = _INF
            else:
                times = roots
                begun = wp.bool(True)
    return wp.vec2d(wp.min(times[0], times[1]), wp.max(times[0], times[1]))


@wp.func
def status_at(time: wp.float64) -> wp.uint8:
    """What a first time means: inf is free, 0 is contact at the start."""
    if time == _INF:
        return _FREE
    return wp.where(time > wp.float64(0.0), _CONTACT, _START)


@wp.kernel
def _first_times(
    first: int,
    kind: int,
    x0: wp.array2d[wp.vec3d],
    x1: wp.array2d[wp.vec3d],
    reading: ReadingValues,
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
):
    i = first + wp.tid()
    # The vertex of a vertex-face query comes last.
    turn = wp.where(kind == _VERTEX_FACE, 1, 0)
    r = Points()
    v = Points()
    for k in range(x0.shape[1]):
        at = (k + turn) % 4
        r[k] = x0[i, at]
        v[k] = x1[i, at] - x0[i, at]
    earliest = wp.float64(_INF)
    if kind == _VERTEX_FACE:
        earliest = _vertex_face_time(r, v, reading)
    elif kind == _EDGE_EDGE:
        earliest = _edge_edge_time(r, v, reading)
    else:
        earliest = _vertex_edge_time(r[0], r[1], r[2], v[0], v[1], v[2], reading)
    time[i] = earliest
    status[i] = status_at(earliest)

"""Vertex-edge first contact as the course prints it, for motion in a common plane.

Question: the smallest t in [0, 1] at which a moving vertex lies on a moving edge.
Method:   T8: the normal of the three points has three components, each a quadratic in t; the times of collinearity are
          the intersection of their solution sets (within `reading.match`); T10 then asks whether the vertex is between
          the ends (chapter 6.X4, "Le critère de l'intersection vertex-edge").
Unsafe:   see ERR-5 (components that vanish), ERR-7 (edges that collapse).
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.inside import inside_segment
from tangere.published.course.polynomials import normal_polynomial, position, quadratic_roots
from tangere.published.course.reading import Reading, ReadingValues
from tangere.query.contacts.record import Status
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

_INF = wp.constant(wp.float64(float("inf")))
_FREE = wp.constant(wp.uint8(Status.FREE))
_CONTACT = wp.constant(wp.uint8(Status.CONTACT))
_START = wp.constant(wp.uint8(Status.START))


def solve_vertex_edge(x0: wp.array, x1: wp.array, reading: Reading) -> tuple[wp.array, wp.array]:
    """Time (inf when free) and status of each query, shape (n,).

    Args:
        x0, x1: `wp.vec3d` of shape (n, 3): vertex, edge, edge at t = 0 and t = 1 [m].
    """
    time = wp.empty(len(x0), dtype=wp.float64, device=x0.device)
    status = wp.empty(len(x0), dtype=wp.uint8, device=x0.device)
    launch(_vertex_edge, len(x0), inputs=[x0, x1, reading.values()], outputs=[time, status], device=x0.device)
    return time, status


@wp.func
def vertex_edge_time(
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
def _vertex_edge(
    first: int,
    x0: wp.array2d[wp.vec3d],
    x1: wp.array2d[wp.vec3d],
    reading: ReadingValues,
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
):
    i = first + wp.tid()
    r0 = x0[i, 0]
    r1 = x0[i, 1]
    r2 = x0[i, 2]
    time[i] = vertex_edge_time(r0, r1, r2, x1[i, 0] - r0, x1[i, 1] - r1, x1[i, 2] - r2, reading)
    status[i] = status_at(time[i])

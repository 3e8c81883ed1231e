"""Edge-edge first contact as the course prints it.

Question: the smallest t in [0, 1] at which two moving segments meet.
Method:   the roots of the coplanarity cubic T2 in ascending order; the first at which the lines meet (T6) within both
          segments. Four points that stay coplanar go to the vertex-edge test, each end with the other edge
          (chapter 6.X4, "Le critère de l'intersection edge-edge").
Unsafe:   misses grazing contact and edges that are parallel when they meet.
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.companion import real_roots
from tangere.published.course.inside import inside_segments, line_line
from tangere.published.course.polynomials import coplanarity, is_zero, position
from tangere.published.course.reading import Reading, ReadingValues
from tangere.published.course.vertex_edge import status_at, vertex_edge_time
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

_INF = wp.constant(wp.float64(float("inf")))


def solve_edge_edge(x0: wp.array, x1: wp.array, reading: Reading) -> tuple[wp.array, wp.array]:
    """Time (inf when free) and status of each query, shape (n,).

    Args:
        x0, x1: `wp.vec3d` of shape (n, 4): first edge and second edge at t = 0 and t = 1 [m].
    """
    time = wp.empty(len(x0), dtype=wp.float64, device=x0.device)
    status = wp.empty(len(x0), dtype=wp.uint8, device=x0.device)
    launch(_edge_edge, len(x0), inputs=[x0, x1, reading.values()], outputs=[time, status], device=x0.device)
    return time, status


@wp.func
def edge_edge_time(
    r0: wp.vec3d,
    r1: wp.vec3d,
    r2: wp.vec3d,
    r3: wp.vec3d,
    v0: wp.vec3d,
    v1: wp.vec3d,
    v2: wp.vec3d,
    v3: wp.vec3d,
    reading: ReadingValues,
) -> wp.float64:
    """Smallest time in [0, 1] at which the edges 0, 1 and 2, 3 meet; inf if never."""
    p = coplanarity(r1 - r0, r2 - r0, r3 - r0, v1 - v0, v2 - v0, v3 - v0)
    if is_zero(p, reading.zero):
        time = vertex_edge_time(r0, r2, r3, v0, v2, v3, reading)
        time = wp.min(time, vertex_edge_time(r1, r2, r3, v1, v2, v3, reading))
        time = wp.min(time, vertex_edge_time(r2, r0, r1, v2, v0, v1, reading))
        return wp.min(time, vertex_edge_time(r3, r0, r1, v3, v0, v1, reading))
    roots = real_roots(p, reading.imaginary)
    for k in range(3):
        t = roots[k]
        if t >= wp.float64(0.0) and t <= wp.float64(1.0):
            u = line_line(position(r0, v0, t), position(r1, v1, t), position(r2, v2, t), position(r3, v3, t))
            if inside_segments(u, reading.widen):
                return t
    return _INF


@wp.kernel
def _edge_edge(
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
    r3 = x0[i, 3]
    time[i] = edge_edge_time(r0, r1, r2, r3, x1[i, 0] - r0, x1[i, 1] - r1, x1[i, 2] - r2, x1[i, 3] - r3, reading)
    status[i] = status_at(time[i])

"""Vertex-face first contact as the course prints it.

Question: the smallest t in [0, 1] at which a moving vertex is in a moving triangle.
Method:   the roots of the coplanarity cubic T2 in ascending order; the first at which the barycentric coordinates T5
          are within the triangle. Four points that stay coplanar go to the vertex-edge test with the three edges of
          the face (chapter 6.X4, "Le critère de l'intersection vertex-surface").
Unsafe:   misses grazing contact, faces that collapse and some motion in a plane.
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.companion import real_roots
from tangere.published.course.inside import barycentric, inside_triangle
from tangere.published.course.polynomials import coplanarity, is_zero, position
from tangere.published.course.reading import Reading, ReadingValues
from tangere.published.course.vertex_edge import status_at, vertex_edge_time
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

_INF = wp.constant(wp.float64(float("inf")))


def solve_vertex_face(x0: wp.array, x1: wp.array, reading: Reading) -> tuple[wp.array, wp.array]:
    """Time (inf when free) and status of each query, shape (n,).

    Args:
        x0, x1: `wp.vec3d` of shape (n, 4): vertex and face at t = 0 and t = 1 [m].
    """
    time = wp.empty(len(x0), dtype=wp.float64, device=x0.device)
    status = wp.empty(len(x0), dtype=wp.uint8, device=x0.device)
    launch(_vertex_face, len(x0), inputs=[x0, x1, reading.values()], outputs=[time, status], device=x0.device)
    return time, status


@wp.func
def vertex_face_time(
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
    """Smallest time in [0, 1] at which vertex 3 is in the face 0, 1, 2; inf if never."""
    p = coplanarity(r1 - r0, r2 - r0, r3 - r0, v1 - v0, v2 - v0, v3 - v0)
    if is_zero(p, reading.zero):
        time = vertex_edge_time(r3, r0, r1, v3, v0, v1, reading)
        time = wp.min(time, vertex_edge_time(r3, r1, r2, v3, v1, v2, reading))
        return wp.min(time, vertex_edge_time(r3, r2, r0, v3, v2, v0, reading))
    roots = real_roots(p, reading.imaginary)
    for k in range(3):
        t = roots[k]
        if t >= wp.float64(0.0) and t <= wp.float64(1.0):
            u = barycentric(position(r3, v3, t), position(r0, v0, t), position(r1, v1, t), position(r2, v2, t))
            if inside_triangle(u, reading.widen):
                return t
    return _INF


@wp.kernel
def _vertex_face(
    first: int,
    x0: wp.array2d[wp.vec3d],
    x1: wp.array2d[wp.vec3d],
    reading: ReadingValues,
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
):
    i = first + wp.tid()
    r3 = x0[i, 0]
    r0 = x0[i, 1]
    r1 = x0[i, 2]
    r2 = x0[i, 3]
    time[i] = vertex_face_time(r0, r1, r2, r3, x1[i, 1] - r0, x1[i, 2] - r1, x1[i, 3] - r2, x1[i, 0] - r3, reading)
    status[i] = status_at(time[i])

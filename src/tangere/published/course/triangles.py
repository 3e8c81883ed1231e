"""Two moving triangles as the course prints it: fifteen tests, the smallest time wins.

Question: the smallest t in [0, 1] at which two triangles with independently moving vertices touch.
Method:   six vertex-face and nine edge-edge tests (chapter 6.X4, cases 1 to 4); if four of the points stay coplanar in
          any of them, also every vertex of one triangle against every edge of the other (ERR-9: the course describes
          the coplanar case for whole triangles, but calls it for four points).
Unsafe:   what any of the tests misses; and triangles that overlap at the start, which no test can see.
"""

from __future__ import annotations

import warp as wp

from tangere.published.course.feature_pairs import Points, coplanar_throughout, solve, status_at
from tangere.published.course.polynomials import position
from tangere.published.course.reading import Reading
from tangere.published.course.triangle_tests import VERTEX_EDGE_PAIRS, choose_vertices
from tangere.query.contacts.record import Kind
from tangere.query.first_contact.primitives.triangle_features import EDGE_EDGE_TESTS, VERTEX_FACE_TESTS
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

_INF = wp.constant(wp.float64(float("inf")))


def solve_triangles(x0: wp.array, x1: wp.array, reading: Reading) -> tuple[wp.array, wp.array]:
    """Time (inf when free) and status of each pair of triangles, shape (n,).

    Args:
        x0, x1: `wp.vec3d` of shape (n, 6): first and second triangle at t = 0 and t = 1 [m].
    """
    count, device = len(x0), x0.device
    times = []
    for kind, tests in _STAGES:
        time, _ = solve(kind, choose_vertices(x0, tests), choose_vertices(x1, tests), reading)
        times += [time, len(tests)]
    quadruples = VERTEX_FACE_TESTS + EDGE_EDGE_TESTS
    r, s = choose_vertices(x0, quadruples), choose_vertices(x1, quadruples)
    time = wp.empty(count, dtype=wp.float64, device=device)
    status = wp.empty(count, dtype=wp.uint8, device=device)
    inputs = [*times, r, s, wp.float64(reading.zero)]
    launch(_earliest, count, inputs=inputs, outputs=[time, status], device=device)
    return time, status


def positions_at(x0: wp.array, x1: wp.array, time: wp.array) -> wp.array:
    """Positions of the vertices at their time, shape (n, k) of `wp.vec3d` [m]; at t = 1 where the time is inf."""
    positions = wp.empty_like(x0)
    launch(_positions, len(x0), inputs=[x0, x1, x0.shape[1], time], outputs=[positions], device=x0.device)
    return positions


_STAGES = (
    (Kind.VERTEX_FACE, VERTEX_FACE_TESTS),
    (Kind.EDGE_EDGE, EDGE_EDGE_TESTS),
    (Kind.VERTEX_EDGE, VERTEX_EDGE_PAIRS),
)


@wp.func
def _smallest(bound: wp.float64, times: wp.array[wp.float64], begin: int, end: int) -> wp.float64:
    smallest = wp.float64(bound)
    for k in range(begin, end):
        smallest = wp.min(wp.float64(times[k]), smallest)
    return smallest


@wp.kernel
def _earliest(
    first: int,
    face_times: wp.array[wp.float64],
    faces: int,
    edge_times: wp.array[wp.float64],
    edges: int,
    pair_times: wp.array[wp.float64],
    pairs: int,
    r: wp.array2d[wp.vec3d],
    s: wp.array2d[wp.vec3d],
    zero: wp.float64,
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
):
    i = first + wp.tid()
    earliest = _smallest(_INF, face_times, i * faces, i * faces + faces)
    earliest = _smallest(earliest, edge_times, i * edges, i * edges + edges)
    tests = faces + edges
    coplanar = wp.bool(False)
    for q in range(i * tests, i * tests + tests):
        points = Points()
        velocities = Points()
        for k in range(4):
            points[k] = r[q, k]
            velocities[k] = s[q, k] - r[q, k]
        coplanar = coplanar or coplanar_throughout(points, velocities, zero)
    if coplanar:
        earliest = _smallest(earliest, pair_times, i * pairs, i * pairs + pairs)
    time[i] = earliest
    status[i] = status_at(earliest)


@wp.kernel
def _positions(
    first: int,
    x0: wp.array2d[wp.vec3d],
    x1: wp.array2d[wp.vec3d],
    width: int,
    time: wp.array[wp.float64],
    positions: wp.array2d[wp.vec3d],
):
    i = first + wp.tid()
    t = time[i]
    if t > wp.float64(1.0):
        t = wp.float64(1.0)
    for k in range(width):
        positions[i, k] = position(x0[i, k], x1[i, k] - x0[i, k], t)

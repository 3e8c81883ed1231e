"""The robust floating-point scheme for linear vertex motion: a filter, fast and careful, but not proved.

Question: the smallest t in [0, 1] at which a vertex meets a face, two edges meet, or two triangles touch.
Method:   cheap rejection; then candidate times, the roots and extrema of the coplanarity cubic found by bisection
          between its extrema; the first candidate at which the *distance* of the primitives is at most delta is the
          answer. A cubic that is zero to rounding (tolerance T3) asks instead when a vertex reaches the line of an edge
          or comes nearest to another vertex.
Promise:  the degenerate cases that the tests list, no proof that none other is missed: `mode="sound"` has that.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.geometry.closest_points.robust import (
    closest_on_segments,
    closest_on_triangle,
    segments_distance,
    triangle_distance,
)
from tangere.published.course.cubic_candidates import candidate, extrema, one_sign, rounding, vanishes
from tangere.published.course.polynomials import coplanarity, normal_polynomial, quadratic_roots
from tangere.published.course.triangle_tests import choose_vertices
from tangere.query.contacts.record import Kind, Status
from tangere.query.first_contact.primitives.triangle_features import EDGE_EDGE_TESTS, VERTEX_FACE_TESTS
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime.arrays import Arrays, as_points, choose_device, like
from tangere.runtime.errors import InputError, UnsupportedError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_INF = wp.constant(wp.float64(float("inf")))
#: Contact distance as a part of the extent of a query (spec, section 6.4): a double root is known to no more digits.
_DELTA = wp.constant(wp.float64(1e-8))
_THIRD = wp.constant(wp.float64(1 / 3))
_VERTEX_FACE = wp.constant(int(Kind.VERTEX_FACE))
_FREE = wp.constant(wp.uint8(Status.FREE))
_CONTACT = wp.constant(wp.uint8(Status.CONTACT))
_START = wp.constant(wp.uint8(Status.START))


def robust_filter(
    kind: Kind, x0: Arrays, x1: Arrays, *, delta: float | None = None, device: str | wp.Device | None = None
) -> FirstContacts:
    """First contact of n vertex-face or edge-edge queries, by the robust scheme; `time_upper` is not known (inf).

    Args:
        kind: VERTEX_FACE (vertex, face) or EDGE_EDGE (edge, edge).
        x0, x1: positions at t = 0 and t = 1, shape (n, 4, 3) [m].
        delta: distance that counts as contact [m]; None means 1e-8 of each query's extent.
    """
    if kind not in (Kind.VERTEX_FACE, Kind.EDGE_EDGE):
        raise UnsupportedError(f"the robust filter takes VERTEX_FACE and EDGE_EDGE, not {Kind(kind).name}")
    device = choose_device(device, x0, x1)
    start, end = _checked(x0, x1, 4, device)
    time, status, weights = _solve(kind, start, end, delta)
    return _result(x0, time, status, weights)


def robust_triangles(
    x0: Arrays, x1: Arrays, *, delta: float | None = None, device: str | wp.Device | None = None
) -> FirstContacts:
    """First contact of n pairs of triangles: overlap at the start, then the earliest of the fifteen tests.

    Args:
        x0, x1: positions at t = 0 and t = 1, shape (n, 6, 3): first triangle, second triangle [m].
        delta: distance that counts as contact [m]; None means 1e-8 of each test's extent.
    """
    device = choose_device(device, x0, x1)
    start, end = _checked(x0, x1, 6, device)
    times = []
    for kind, tests in ((Kind.VERTEX_FACE, VERTEX_FACE_TESTS), (Kind.EDGE_EDGE, EDGE_EDGE_TESTS)):
        tested, _, _ = _solve(kind, choose_vertices(start, tests), choose_vertices(end, tests), delta)
        times += [tested, len(tests)]
    time = wp.empty(len(start), dtype=wp.float64, device=device)
    status = wp.empty(len(start), dtype=wp.uint8, device=device)
    test = wp.empty(len(start), dtype=wp.int32, device=device)
    launch(_earliest, len(start), inputs=[start, *times], outputs=[time, status, test], device=device)
    return _result(x0, time, status, None, test)


def _checked(x0: Arrays, x1: Arrays, width: int, device: wp.Device) -> tuple[wp.array, wp.array]:
    start, end = as_points(x0, "x0", device, width), as_points(x1, "x1", device, width)
    if len(start) != len(end):
        raise InputError(f"x0 has {len(start)} queries, x1 has {len(end)}")
    for name, points in (("x0", start), ("x1", end)):
        bad = np.flatnonzero(~np.isfinite(points.numpy()).all(axis=(1, 2)))
        if len(bad):
            raise InputError(f"{name}: query {bad[0]} has a coordinate that is not finite ({len(bad)} such queries)")
    return start, end


def _solve(kind: Kind, x0: wp.array, x1: wp.array, delta: float | None) -> tuple[wp.array, wp.array, wp.array]:
    if delta is not None and not delta >= 0.0:
        raise InputError(f"delta must be a length >= 0, not {delta!r}")
    time = wp.empty(len(x0), dtype=wp.float64, device=x0.device)
    status = wp.empty(len(x0), dtype=wp.uint8, device=x0.device)
    weights = wp.empty(len(x0), dtype=wp.vec4d, device=x0.device)
    inputs = [int(kind), x0, x1, wp.float64(-1.0 if delta is None else delta)]
    launch(_robust, len(x0), inputs=inputs, outputs=[time, status, weights], device=x0.device)
    return time, status, weights


def _result(
    example: Arrays, time: wp.array, status: wp.array, weights: wp.array | None, test: wp.array | None = None
) -> FirstContacts:
    out = like(example)
    upper = wp.full(len(time), float("inf"), dtype=wp.float64, device=time.device)
    return FirstContacts(
        time=out(time),
        time_upper=out(upper),
        status=out(status),
        weights=None if weights is None else out(weights),
        test=None if test is None else out(test),
    )


# In the functions below vertex 0 is the origin at all times, and the rows of r and s are the edges from it to the
# vertices 1, 2, 3 at t = 0 and at t = 1: far from the origin nothing is lost but the input's own digits.

# --- Rejection (6.2) ------------------------------------------------------------------------------------------------


@wp.func
def separated(kind: int, direction: wp.vec3d, r: wp.mat33d, s: wp.mat33d, delta: wp.float64) -> bool:
    """Whether the two primitives stay more than delta apart along a direction during the whole step."""
    at_start = r * direction
    at_end = s * direction
    low = wp.min(at_start, at_end)
    high = wp.max(at_start, at_end)
    low_a = wp.float64(0.0)
    high_a = wp.float64(0.0)
    low_b = wp.min(low[1], low[2])
    high_b = wp.max(high[1], high[2])
    if kind == _VERTEX_FACE:
        low_b = wp.min(low_b, low[0])
        high_b = wp.max(high_b, high[0])
    else:
        low_a = wp.min(low_a, low[0])
        high_a = wp.max(high_a, high[0])
    margin = delta * wp.length(direction)
    return low_b - high_a > margin or low_a - high_b > margin


@wp.func
def rejected(kind: int, r: wp.mat33d, s: wp.mat33d, delta: wp.float64) -> bool:
    """Whether the axes, the normal at the start or the line of the centres show at once that nothing touches."""
    axes = wp.identity(n=3, dtype=wp.float64)
    normal = wp.cross(r[0], r[2] - r[1])
    centres = wp.float64(0.5) * (r[1] + r[2] - r[0])
    if kind == _VERTEX_FACE:
        normal = wp.cross(r[1] - r[0], r[2] - r[0])
        centres = _THIRD * (r[0] + r[1] + r[2])
    return (
        separated(kind, axes[0], r, s, delta)
        or separated(kind, axes[1], r, s, delta)
        or separated(kind, axes[2], r, s, delta)
        or separated(kind, normal, r, s, delta)
        or separated(kind, centres, r, s, delta)
    )


# --- Acceptance by distance (6.4), points that stay coplanar (6.5) --------------------------------------------------


@wp.func
def touching(kind: int, r: wp.mat33d, s: wp.mat33d, t: wp.float64, delta: wp.float64) -> bool:
    """T11: whether the distance of the two primitives at time t, in [0, 1], is at most delta."""
    if not (t >= _ZERO and t <= _ONE):
        return False
    e = r + (s - r) * t
    if kind == _VERTEX_FACE:
        return triangle_distance(wp.vec3d(), e[0], e[1], e[2]) <= delta
    return segments_distance(wp.vec3d(), e[0], e[1], e[2]) <= delta


@wp.func
def vertex_edge_times(r1: wp.vec3d, r2: wp.vec3d, s1: wp.vec3d, s2: wp.vec3d) -> wp.vec4d:
    """When the origin may reach the moving edge 1, 2: two times on its line, and nearest to each of its ends.

    The line by the largest component of the normal alone (ERR-5). The ends because a vertex that stays on the line of
    the edge enters the edge there.
    """
    v1 = s1 - r1
    v2 = s2 - r2
    normal = normal_polynomial(r1, r2, v1, v2)
    axis = wp.int32(0)
    largest = wp.float64(-1.0)
    for k in range(3):
        size = wp.abs(normal[0, k]) + wp.abs(normal[1, k]) + wp.abs(normal[2, k])
        if size > largest:
            largest = size
            axis = k
    line = quadratic_roots(normal[0, axis], normal[1, axis], normal[2, axis])
    return wp.vec4d(line[0], line[1], nearest_time(r1, v1), nearest_time(r2, v2))


@wp.func
def nearest_time(r: wp.vec3d, v: wp.vec3d) -> wp.float64:
    """When r + v t is nearest to the origin; 0 for a point at rest."""
    squared = wp.length_sq(v)
    time = wp.float64(0.0)
    if squared > _ZERO:
        time = -wp.dot(r, v) / squared
    return time


@wp.func
def coplanar_time(kind: int, r: wp.mat33d, s: wp.mat33d, delta: wp.float64) -> wp.float64:
    """First contact of four points that stay coplanar: at 0, at a vertex-edge or vertex-vertex time, or at 1."""
    if touching(kind, r, s, _ZERO, delta):
        return _ZERO
    earliest = _INF
    if touching(kind, r, s, _ONE, delta):
        earliest = _ONE
    zero = wp.vec3d()
    for pair in range(4):
        times = vertex_edge_times(r[1], r[2], s[1], s[2])  # vertex 0 against the edge 2, 3, in both kinds
        if pair > 0 and kind == _VERTEX_FACE:
            times = vertex_edge_times(r[0], r[pair % 2 + 1], s[0], s[pair % 2 + 1])
        if pair == 1 and kind != _VERTEX_FACE:
            times = vertex_edge_times(r[1] - r[0], r[2] - r[0], s[1] - s[0], s[2] - s[0])
        if pair > 1 and kind != _VERTEX_FACE:
            end = pair - 1
            times = vertex_edge_times(zero - r[end], r[0] - r[end], zero - s[end], s[0] - s[end])
        for k in range(4):
            if times[k] < earliest and touching(kind, r, s, times[k], delta):
                earliest = times[k]
    return earliest


@wp.func
def first_time(kind: int, r: wp.mat33d, s: wp.mat33d, delta: wp.float64) -> wp.float64:
    """Time of first contact in [0, 1]; inf if none is found."""
    if rejected(kind, r, s, delta):
        return _INF
    p = coplanarity(r[0], r[1], r[2], s[0] - r[0], s[1] - r[1], s[2] - r[2])
    tau = rounding(r, s)
    if one_sign(p, tau):
        return _INF
    breaks = extrema(p)
    if vanishes(p, breaks, tau):
        return coplanar_time(kind, r, s, delta)
    k = wp.int32(0)
    while k < 7:
        t = candidate(p, breaks, k, tau)
        if touching(kind, r, s, t, delta):
            return t
        k += 1
    return _INF


@wp.func
def closest_weights(kind: int, e: wp.mat33d) -> wp.vec4d:
    """Weights of the four vertices of the closest points, at the edges e of one instant."""
    if kind == _VERTEX_FACE:
        face = closest_on_triangle(wp.vec3d(), e[0], e[1], e[2])
        return wp.vec4d(_ONE, face[0], face[1], face[2])
    u = closest_on_segments(wp.vec3d(), e[0], e[1], e[2])
    return wp.vec4d(_ONE - u[0], u[0], _ONE - u[1], u[1])


@wp.func
def pierces(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> bool:
    """Whether the segment pq passes through the inside of the triangle abc, its ends clearly on either side."""
    normal = wp.cross(b - a, c - a)
    side_p = wp.dot(p - a, normal)
    side_q = wp.dot(q - a, normal)
    tau = rounding(wp.matrix_from_rows(b - a, c - a, p - a), wp.matrix_from_rows(b - a, c - a, q - a))
    if not (wp.min(side_p, side_q) < -tau and wp.max(side_p, side_q) > tau):
        return False
    along = q - p
    on_a = wp.dot(along, wp.cross(b - p, c - p))
    on_b = wp.dot(along, wp.cross(c - p, a - p))
    on_c = wp.dot(along, wp.cross(a - p, b - p))
    low = wp.min(on_a, wp.min(on_b, on_c))
    high = wp.max(on_a, wp.max(on_b, on_c))
    return low > _ZERO or high < _ZERO


@wp.kernel
def _robust(
    first: int,
    kind: int,
    x0: wp.array2d[wp.vec3d],
    x1: wp.array2d[wp.vec3d],
    delta: wp.float64,
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
    weights: wp.array[wp.vec4d],
):
    i = first + wp.tid()
    r = wp.matrix_from_rows(x0[i, 1] - x0[i, 0], x0[i, 2] - x0[i, 0], x0[i, 3] - x0[i, 0])
    s = wp.matrix_from_rows(x1[i, 1] - x1[i, 0], x1[i, 2] - x1[i, 0], x1[i, 3] - x1[i, 0])
    reach = delta
    if delta < _ZERO:
        low = wp.min(x0[i, 0], x1[i, 0])
        high = wp.max(x0[i, 0], x1[i, 0])
        for k in range(1, 4):
            low = wp.min(low, wp.min(x0[i, k], x1[i, k]))
            high = wp.max(high, wp.max(x0[i, k], x1[i, k]))
        reach = _DELTA * wp.max(high - low)
    t = first_time(kind, r, s, reach)
    time[i] = t
    status[i] = _FREE
    weights[i] = wp.vec4d()
    if t < _INF:
        status[i] = wp.where(t > _ZERO, _CONTACT, _START)
        weights[i] = closest_weights(kind, r + (s - r) * t)


@wp.kernel
def _earliest(
    first: int,
    x0: wp.array2d[wp.vec3d],
    face_times: wp.array[wp.float64],
    faces: int,
    edge_times: wp.array[wp.float64],
    edges: int,
    time: wp.array[wp.float64],
    status: wp.array[wp.uint8],
    test: wp.array[wp.int32],
):
    i = first + wp.tid()
    earliest = wp.float64(2.0)
    which = wp.int32(-1)
    for k in range(faces):
        if face_times[i * faces + k] < earliest:
            earliest = face_times[i * faces + k]
            which = k
    for k in range(edges):
        if edge_times[i * edges + k] < earliest:
            earliest = edge_times[i * edges + k]
            which = faces + k
    for k in range(2):
        b = 3 * k
        a = 3 - b
        for j in range(3):
            if earliest > _ZERO:
                if pierces(x0[i, a + j], x0[i, a + (j + 1) % 3], x0[i, b], x0[i, b + 1], x0[i, b + 2]):
                    earliest = _ZERO
                    which = -1
    time[i] = _INF
    test[i] = which
    status[i] = _FREE
    if earliest <= _ONE:
        time[i] = earliest
        status[i] = wp.where(earliest > _ZERO, _CONTACT, _START)

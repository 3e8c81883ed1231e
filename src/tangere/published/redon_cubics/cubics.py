"""The cubics of edge-edge, vertex-face and face-vertex contact under a tangent screw, and their first valid root.

A root is a time at which the features' planes agree; it counts when the features are then in contact, that is nearer
than rounding. Formulas: Redon 2002, section 2.4, (2.27) and (2.29), written for s and multiplied by
1 + k^2 s^2 as in `path`; each is linear for k = 0. Coefficients are in falling order, as `cubic_candidates` has them.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points.robust import segments_distance, triangle_distance
from tangere.published.course.cubic_candidates import candidate, extrema, one_sign
from tangere.published.redon_cubics.path import PathPoint, ScrewPath, point_at
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
_INF = wp.constant(wp.float64(float("inf")))
#: Rounding of a coefficient, as a part of the sizes that went into it: some fifty operations, and a margin.
_ROUNDING = wp.constant(wp.float64(128.0 * 2.0**-53))


@wp.func
def vertex_face_cubic(path: ScrewPath, a: PathPoint, b: wp.vec3d, n: wp.vec3d) -> wp.vec4d:
    """(b - a(s)) . n (1 + k^2 s^2) for a moving vertex a and a resting face through b with normal n [m^3]."""
    k = path.tangent
    height = wp.dot(b - a.place, n)
    along = path.slide * wp.dot(path.axis, n)
    return wp.vec4d(
        -k * k * along,
        k * k * height - k * wp.dot(wp.cross(path.axis, a.velocity), n),
        -along - wp.dot(a.velocity, n),
        height,
    )


@wp.func
def face_vertex_cubic(path: ScrewPath, a: wp.vec3d, b: PathPoint, n: wp.vec3d) -> wp.vec4d:
    """(a - b(s)) . n(s) (1 + k^2 s^2) for a resting vertex a and a moving face through b with normal n at s = 0."""
    k = path.tangent
    q = a - b.place
    turn = _TWO * k * wp.cross(path.axis, n)
    height = wp.dot(q, n)
    along = path.slide * wp.dot(path.axis, n)
    return wp.vec4d(
        -k * k * along,
        k * k * height + k * (wp.dot(q, wp.cross(path.axis, turn)) + wp.dot(n, wp.cross(path.axis, b.velocity))),
        -along + wp.dot(q, turn) - wp.dot(n, b.velocity),
        height,
    )


@wp.func
def edge_edge_cubic(path: ScrewPath, a: PathPoint, e: wp.vec3d, c: wp.vec3d, f: wp.vec3d) -> wp.vec4d:
    """(c - a(s)) . (e(s) x f) (1 + k^2 s^2) for a moving edge from a, along e at s = 0, and a resting one from c."""
    k = path.tangent
    u = path.axis
    v = a.velocity
    q = c - a.place
    turn = _TWO * k * wp.cross(u, e)
    mirrored = k * k * (_TWO * wp.dot(u, e) * u - e)
    return wp.vec4d(
        -path.slide * wp.dot(wp.cross(u, mirrored), f),
        wp.dot(wp.cross(q, mirrored) - path.slide * wp.cross(u, turn), f)
        - k * (wp.dot(u, e) * wp.dot(v, f) + wp.dot(e, v) * wp.dot(u, f)),
        wp.dot(wp.cross(q, turn) - path.slide * wp.cross(u, e) + wp.cross(e, v), f),
        wp.dot(wp.cross(q, e), f),
    )


@wp.func
def vertex_face_root(
    path: ScrewPath, a: PathPoint, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d, end: wp.float64, reach: wp.float64
) -> wp.float64:
    """The first s in [0, end] at which the moving vertex a is on the resting face bcd; inf if there is none.

    Args:
        reach: distance that counts as contact [m], for rounding.
    """
    n = wp.cross(c - b, d - b)
    cubic = vertex_face_cubic(path, a, b, n)
    tau = _ROUNDING * wp.length(n) * _way(path, a, b)
    breaks = extrema(cubic)
    candidates = int(7)  # a variable: the loop is not unrolled
    if end <= _ZERO or not one_sign(_until(cubic, end), tau):
        for i in range(candidates):
            s = candidate(cubic, breaks, i, tau)
            if s <= end:
                if triangle_distance(point_at(path, a, s), b, c, d) <= reach:
                    return s
    return _INF


@wp.func
def face_vertex_root(
    path: ScrewPath, a: wp.vec3d, b: PathPoint, c: PathPoint, d: PathPoint, end: wp.float64, reach: wp.float64
) -> wp.float64:
    """The first s in [0, end] at which the resting vertex a is on the moving face bcd; inf if there is none."""
    n = wp.cross(c.place - b.place, d.place - b.place)
    cubic = face_vertex_cubic(path, a, b, n)
    tau = _ROUNDING * wp.length(n) * _way(path, b, a)
    breaks = extrema(cubic)
    candidates = int(7)  # a variable: the loop is not unrolled
    if end <= _ZERO or not one_sign(_until(cubic, end), tau):
        for i in range(candidates):
            s = candidate(cubic, breaks, i, tau)
            if s <= end:
                if triangle_distance(a, point_at(path, b, s), point_at(path, c, s), point_at(path, d, s)) <= reach:
                    return s
    return _INF


@wp.func
def edge_edge_root(
    path: ScrewPath, a: PathPoint, b: PathPoint, c: wp.vec3d, d: wp.vec3d, end: wp.float64, reach: wp.float64
) -> wp.float64:
    """The first s in [0, end] at which the moving edge ab meets the resting edge cd; inf if there is none."""
    e = b.place - a.place
    f = d - c
    cubic = edge_edge_cubic(path, a, e, c, f)
    tau = _ROUNDING * wp.length(e) * wp.length(f) * _way(path, a, c)
    breaks = extrema(cubic)
    candidates = int(7)  # a variable: the loop is not unrolled
    if end <= _ZERO or not one_sign(_until(cubic, end), tau):
        for i in range(candidates):
            s = candidate(cubic, breaks, i, tau)
            if s <= end:
                if segments_distance(point_at(path, a, s), point_at(path, b, s), c, d) <= reach:
                    return s
    return _INF


@wp.func
def _way(path: ScrewPath, a: PathPoint, b: wp.vec3d) -> wp.float64:
    """The lengths that go into a cubic: the gap at the start, the way, and the coordinates they are differences of."""
    k = path.tangent
    gap = wp.length(b - a.place) + wp.length(a.velocity) + wp.abs(path.slide)
    return (_ONE + k) * (_ONE + k) * gap + wp.length(b) + wp.length(a.place)


@wp.func
def _until(cubic: wp.vec4d, end: wp.float64) -> wp.vec4d:
    """The cubic of s / end."""
    return wp.vec4d(cubic[0] * end * end * end, cubic[1] * end * end, cubic[2] * end, cubic[3])

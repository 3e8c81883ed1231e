"""First contact of two triangles that move: edge-edge, vertex-face and face-vertex by interval bisection in time.

Method: a feature pair can touch during an interval only if its swept boxes meet and its coplanarity function has zero
        in its enclosure: for edges ab, cd `(c - a) . ((b - a) x (d - c))`, for a vertex and a face `(v - b) . n`, where
        edges and normals turn rigidly and are bounded as vectors. Intervals are halved, left half first, until no point
        moves more than the space tolerance in them; all fifteen pairs share the bounds of the six vertices.
        The tests are those of Redon 2002, section 3.3.2.
Sound:  a last interval is dropped only if the distance at its start is more than its points can move in it; so the time
        is never late, and the gap there is at most the tolerance. What decides of last intervals can be exchanged: the
        thesis asks another question, and can miss (`published.redon_intervals`).
Known as: interval-based continuous collision detection (Snyder 1992; Redon, Kheddar and Coquillart 2002).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.geometry.closest_points import segments_distance, triangle_distance
from tangere.geometry.intervals import excludes_zero, minus, plus, times
from tangere.motion import RigidMotion
from tangere.motion.bounds import IntervalBox, boxes_apart, linear_bounds, union_of_boxes
from tangere.query.first_contact.mixed.motion_chain import (
    MotionRow,
    last_span,
    point_bounds_over,
    pose_now,
    vector_bounds_over,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Features as bits: 3i + j edge i of a with edge j of b; 9 + i vertex i of a with face b; 12 + j face a with vertex j.
ALL_FEATURES = wp.constant((1 << 15) - 1)
FEATURES = 15
MOST_DEPTH = 60
Waiting = wp.types.vector(length=MOST_DEPTH + 2, dtype=wp.float64)
Masks = wp.types.vector(length=MOST_DEPTH + 2, dtype=wp.int32)
#: Halves this short are taken as instants: positions no longer change in them.
SHORTEST = wp.constant(wp.float64(2.0**-48))
ROUNDING = wp.constant(wp.float64(2.0**-46))
INFINITE = wp.constant(wp.float64(float("inf")))
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))


@wp.struct
class Precision:
    """Where bisection ends: in space [m] and in time; how many intervals at most."""

    space: wp.float64
    time: wp.float64
    most: int


@wp.struct
class MovingCorners:
    """Three corners as rows: in the frame of a rigid body, or, if `straight` is 1, going straight from start to end."""

    start: wp.mat33d
    end: wp.mat33d
    straight: int
    motions: wp.array[RigidMotion]  # of the rigid body: …
    row: MotionRow  # … these of them


@wp.struct
class IntervalTouch:
    """The earliest time (infinite: none), its feature, and how many intervals that took."""

    time: wp.float64
    feature: int
    intervals: int


@wp.struct
class MovingTriangle:
    """A triangle during an interval: bounds of its corners, edges and normal, and how far a corner can go."""

    corner_lower: wp.mat33d
    corner_upper: wp.mat33d
    edge_lower: wp.mat33d
    edge_upper: wp.mat33d
    normal: IntervalBox
    hull: IntervalBox
    way: wp.float64


@cache
def first_touch_by(edges_meet: wp.Function, face_meets: wp.Function) -> wp.Function:
    """The search, with what decides of last intervals: (p0, p1, q0, q1, reach) of edges, (v, a, b, c, reach) else."""

    @wp.func
    def member(corners_a: MovingCorners, corners_b: MovingCorners, mask: int, t: wp.float64, way: wp.float64) -> int:
        """The first feature of the mask whose parts meet, -1 if none."""
        a = _now(corners_a, t)
        b = _now(corners_b, t)
        size = ZERO + ZERO
        for i in range(3):
            size = wp.max(size, wp.length(a[i]) + wp.length(b[i]))
        reach = way + ROUNDING * size
        feature = int(0)
        while feature < FEATURES:
            if (mask & (1 << feature)) != 0:
                inside = bool(False)
                if feature < 9:
                    i = feature / 3
                    j = feature % 3
                    p0 = a[i]
                    p1 = a[(i + 1) % 3]
                    q0 = b[j]
                    q1 = b[(j + 1) % 3]
                    inside = edges_meet(p0, p1, q0, q1, reach)
                else:
                    v = a[0]
                    c0 = b[0]
                    c1 = b[1]
                    c2 = b[2]
                    if feature < 12:
                        v = a[feature - 9]
                    else:
                        v = b[feature - 12]
                        c0 = a[0]
                        c1 = a[1]
                        c2 = a[2]
                    inside = face_meets(v, c0, c1, c2, reach)
                if inside:
                    return feature
            feature += 1
        return -1

    @wp.func
    def first_touch(
        corners_a: MovingCorners,
        corners_b: MovingCorners,
        features: int,
        t0: wp.float64,
        t1: wp.float64,
        precision: Precision,
    ) -> IntervalTouch:
        """The earliest contact in [t0, t1] among the given feature pairs.

        When the number of intervals reaches its limit, what is left counts as touching.
        """
        touch = IntervalTouch()
        touch.time = INFINITE
        touch.feature = -1
        touch.intervals = 0
        waiting = Waiting()
        masks = Masks()
        waiting[0] = t1
        masks[0] = features
        pending = int(1)
        lower = t0 + ZERO
        while pending > 0:
            upper = waiting[pending - 1]
            mask = masks[pending - 1]
            touch.intervals += 1
            a = _during(corners_a, lower, upper)
            b = _during(corners_b, lower, upper)
            if boxes_apart(a.hull, b.hull, ZERO):
                mask = 0
            else:
                mask = _possible(a, b, mask)
            done = upper - lower <= SHORTEST or (a.way + b.way <= precision.space and upper - lower <= precision.time)
            if mask == 0:
                pending -= 1
                lower = upper
            elif done or touch.intervals >= precision.most:
                found = member(corners_a, corners_b, mask, lower, a.way + b.way)
                if found >= 0:
                    touch.time = lower
                    touch.feature = found
                    return touch
                pending -= 1
                lower = upper
            else:
                masks[pending - 1] = mask
                waiting[pending] = HALF * (lower + upper)
                masks[pending] = mask
                pending += 1
        return touch

    return first_touch


@wp.func
def _edges_within(p0: wp.vec3d, p1: wp.vec3d, q0: wp.vec3d, q1: wp.vec3d, reach: wp.float64) -> bool:
    return not (segments_distance(p0, p1, q0, q1) > reach)


@wp.func
def _face_within(v: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, reach: wp.float64) -> bool:
    return not (triangle_distance(v, a, b, c) > reach)


first_touch = first_touch_by(_edges_within, _face_within)


@wp.func
def _during(corners: MovingCorners, t0: wp.float64, t1: wp.float64) -> MovingTriangle:
    """Bounds of a triangle over [t0, t1]."""
    moving = MovingTriangle()
    if corners.straight == 1:
        moving = _straight_during(corners, t0, t1)
    else:
        moving = _turning_during(corners.start, corners.motions, corners.row, t0, t1)
    # The diagonal of its box is at least as long as any way within it.
    moving.way = ZERO
    for i in range(3):
        bounds = _corner(moving, i)
        moving.way = wp.max(moving.way, wp.length(bounds.upper - bounds.lower))
    moving.hull = union_of_boxes(_corner(moving, 0), union_of_boxes(_corner(moving, 1), _corner(moving, 2)))
    return moving


@wp.func
def _turning_during(
    corners: wp.mat33d, motions: wp.array[RigidMotion], row: MotionRow, t0: wp.float64, t1: wp.float64
) -> MovingTriangle:
    span = last_span(motions, row, t0, t1)
    moving = MovingTriangle()
    for i in range(3):
        p = corners[i]
        bounds = point_bounds_over(motions, row, span, t0, t1, p)
        moving.corner_lower[i] = bounds.lower
        moving.corner_upper[i] = bounds.upper
        edge = vector_bounds_over(motions, row, span, t0, t1, corners[(i + 1) % 3] - p)
        moving.edge_lower[i] = edge.lower
        moving.edge_upper[i] = edge.upper
    normal = wp.cross(corners[1] - corners[0], corners[2] - corners[0])
    turned = vector_bounds_over(motions, row, span, t0, t1, normal)
    # Rounding of the normal itself, before it is turned.
    error = ROUNDING * wp.length(corners[1] - corners[0]) * wp.length(corners[2] - corners[0])
    turned.lower -= wp.vec3d(error, error, error)
    turned.upper += wp.vec3d(error, error, error)
    moving.normal = turned
    return moving


@wp.func
def _straight_during(corners: MovingCorners, t0: wp.float64, t1: wp.float64) -> MovingTriangle:
    moving = MovingTriangle()
    for i in range(3):
        j = (i + 1) % 3
        bounds = linear_bounds(corners.start[i], corners.end[i], t0, t1)
        moving.corner_lower[i] = bounds.lower
        moving.corner_upper[i] = bounds.upper
        edge = linear_bounds(corners.start[j] - corners.start[i], corners.end[j] - corners.end[i], t0, t1)
        moving.edge_lower[i] = edge.lower
        moving.edge_upper[i] = edge.upper
    moving.normal = _cross(_edge(moving, 0), _edge(moving, 1))
    return moving


@wp.func
def _now(corners: MovingCorners, t: wp.float64) -> wp.mat33d:
    """The corners at time t, world."""
    placed = corners.start * (ONE - t) + corners.end * t
    if corners.straight == 0:
        pose = pose_now(corners.motions, corners.row, t)
        for i in range(3):
            placed[i] = pose.translation + pose.rotation * corners.start[i]
    return placed


@wp.func
def _corner(triangle: MovingTriangle, i: int) -> IntervalBox:
    bounds = IntervalBox()
    bounds.lower = triangle.corner_lower[i]
    bounds.upper = triangle.corner_upper[i]
    return bounds


@wp.func
def _edge(triangle: MovingTriangle, i: int) -> IntervalBox:
    bounds = IntervalBox()
    bounds.lower = triangle.edge_lower[i]
    bounds.upper = triangle.edge_upper[i]
    return bounds


@wp.func
def _possible(a: MovingTriangle, b: MovingTriangle, mask: int) -> int:
    """The features of the mask that may touch in the interval."""
    left = int(0)
    feature = int(0)
    while feature < FEATURES:
        if (mask & (1 << feature)) != 0:
            keep = bool(False)
            if feature < 9:
                i = feature / 3
                j = feature % 3
                p = _corner(a, i)
                q = _corner(b, j)
                edge_p = union_of_boxes(p, _corner(a, (i + 1) % 3))
                if not boxes_apart(edge_p, union_of_boxes(q, _corner(b, (j + 1) % 3)), ZERO):
                    keep = not excludes_zero(interval_dot(_difference(q, p), _cross(_edge(a, i), _edge(b, j))))
            elif feature < 12:
                p = _corner(a, feature - 9)
                if not boxes_apart(p, b.hull, ZERO):
                    keep = not excludes_zero(interval_dot(_difference(p, _corner(b, 0)), b.normal))
            else:
                p = _corner(b, feature - 12)
                if not boxes_apart(p, a.hull, ZERO):
                    keep = not excludes_zero(interval_dot(_difference(p, _corner(a, 0)), a.normal))
            if keep:
                left = left | (1 << feature)
        feature += 1
    return left


@wp.func
def _difference(a: IntervalBox, b: IntervalBox) -> IntervalBox:
    bounds = IntervalBox()
    for i in range(3):
        d = minus(wp.vec2d(a.lower[i], a.upper[i]), wp.vec2d(b.lower[i], b.upper[i]))
        bounds.lower[i] = d[0]
        bounds.upper[i] = d[1]
    return bounds


@wp.func
def interval_dot(a: IntervalBox, b: IntervalBox) -> wp.vec2d:
    x = times(wp.vec2d(a.lower[0], a.upper[0]), wp.vec2d(b.lower[0], b.upper[0]))
    y = times(wp.vec2d(a.lower[1], a.upper[1]), wp.vec2d(b.lower[1], b.upper[1]))
    z = times(wp.vec2d(a.lower[2], a.upper[2]), wp.vec2d(b.lower[2], b.upper[2]))
    return plus(plus(x, y), z)


@wp.func
def _cross(b: IntervalBox, c: IntervalBox) -> IntervalBox:
    across = IntervalBox()
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        one = times(wp.vec2d(b.lower[j], b.upper[j]), wp.vec2d(c.lower[k], c.upper[k]))
        two = times(wp.vec2d(b.lower[k], b.upper[k]), wp.vec2d(c.lower[j], c.upper[j]))
        d = minus(one, two)
        across.lower[i] = d[0]
        across.upper[i] = d[1]
    return across

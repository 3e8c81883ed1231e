"""Where and how: contact points, weights, the features that meet, and the normal, at the time that was found.

The normal: across the face, or across both edges, against the approach. Where that says nothing (a
collapsed face, parallel edges, edges that meet at an end, motion within the plane of the face) it is the direction
against the relative velocity, without the part along the edge in contact. Of meshes more is known: `corner_normals`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.geometry.closest_points import closest_on_segments, closest_on_triangle
from tangere.geometry.polynomials import UNIT_ROUNDOFF, at, largest, real, vec
from tangere.query.contacts.record import Kind, empty_columns
from tangere.query.first_contact.primitives.narrow_phase.features import FeaturePairKind, MovingPoints, points_of
from tangere.query.first_contact.primitives.narrow_phase.root_isolation import FREE
from tangere.query.first_contact.primitives.narrow_phase.solver import DECIDE_GRAIN, chosen, consecutive
from tangere.query.first_contact.primitives.narrow_phase.time_bisection import unit
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

VERTEX_FACE_KIND = wp.constant(wp.uint8(Kind.VERTEX_FACE))
EDGE_EDGE_KIND = wp.constant(wp.uint8(Kind.EDGE_EDGE))
VERTEX_EDGE_KIND = wp.constant(wp.uint8(Kind.VERTEX_EDGE))
VERTEX_VERTEX_KIND = wp.constant(wp.uint8(Kind.VERTEX_VERTEX))

#: Where there is no contact there are no details.
NOTHING = wp.constant(wp.float64(float("nan")))
#: With a separation the points are this far apart, and the normal is the way from one to the other.
CLEARLY_APART = wp.constant(wp.float64(1e-5))
#: A weight below this is on the boundary of its feature.
ON_BOUNDARY = wp.constant(wp.float64(1e-12))
#: The sine of an angle below this does not tell a plane.
FLAT = wp.constant(wp.float64(1e-12))
#: A relative speed or distance below this part of the whole is none.
NEGLIGIBLE = wp.constant(wp.float64(1e-9))
#: How far along a feature the contact may be from where it is told, in gaps between the two points.
GAPS_OFF = wp.constant(wp.float64(16.0))


#: Four positions and a time, and what `describe_rows` tells of them: rows of numbers pass to NumPy fastest.
Row = wp.types.vector(length=5, dtype=real)
Touch = wp.types.vector(length=14, dtype=real)


@wp.struct
class DetailColumns:
    """Columns of `FirstContacts`, on the device; NaN where the query is free."""

    kind: wp.array[wp.uint8]
    weights: wp.array[wp.vec4d]
    point_a: wp.array[wp.vec3d]
    point_b: wp.array[wp.vec3d]
    normal: wp.array[wp.vec3d]


def describe(
    features: FeaturePairKind, start: wp.array, end: wp.array, quads: wp.array | None, time: wp.array, status: wp.array
) -> DetailColumns:
    """Contact details of each query that is not free; arguments as for `solver.solve`."""
    device, count, indexed = start.device, len(time), quads is not None
    details = empty_columns(DetailColumns, count, device)
    inputs = [quads if indexed else wp.empty(0, dtype=wp.vec4i, device=device), start, end, time, status]
    launch(_describe_kernel(features, indexed), count, inputs, [details], device=device, grain=DECIDE_GRAIN)
    return details


def describe_rows(features: FeaturePairKind, start: wp.array, end: wp.array, rows: np.ndarray) -> np.ndarray:
    """Weights, points, normal and bearers (n, 14) of contacts; each row (n, 5) names four positions and a time.

    As `describe`, in one copy there and one back. Bearers: see `bearers_function`.
    """
    inputs = [wp.array(rows, dtype=Row, device=start.device), start, end]
    touches = wp.empty(len(rows), dtype=Touch, device=start.device)
    launch(_describe_rows_kernel(features), len(rows), inputs, [touches], device=start.device, grain=DECIDE_GRAIN)
    return touches.numpy()


@wp.func
def without_part_along(v: vec, edge: vec) -> vec:
    direction = unit(edge)
    return v - direction * wp.dot(v, direction)


@wp.func
def any_across(edge: vec) -> vec:
    """Some unit vector across the edge."""
    across = wp.cross(edge, vec(real(1.0), real(0.0), real(0.0)))
    if wp.abs(edge[0]) > wp.abs(edge[1]):
        across = wp.cross(edge, vec(real(0.0), real(1.0), real(0.0)))
    if largest(across) > real(0.0):
        return unit(across)
    return vec(real(0.0), real(0.0), real(1.0))


@wp.func
def contact_normal(side_a: vec, side_b: vec, edge: vec, at_end: bool, velocity: vec, before: vec, now: vec) -> vec:
    """Unit vector that pushes a away from b.

    side_a, side_b: two directions in the contact plane; edge: the edge in contact, zero if none; at_end: the sides are
    edges that meet at an end, so that they tell no plane unless nothing else does; velocity: of a against b at the
    contact; before, now: from b's to a's contact point at the start of the step and at the contact. All relative to the
    query's size.
    """
    if largest(now) > CLEARLY_APART:
        return unit(now)
    back = -without_part_along(velocity, edge)
    stopped = largest(back) > NEGLIGIBLE * largest(velocity)
    if at_end and stopped:
        return unit(back)
    plane = wp.cross(side_a, side_b)
    if wp.length(plane) > FLAT * wp.length(side_a) * wp.length(side_b):
        n = unit(plane)
        approach = wp.dot(n, velocity)
        if wp.abs(approach) > NEGLIGIBLE * wp.length(velocity):
            return n * -wp.sign(approach)
        offset = wp.dot(n, before)
        if wp.abs(offset) > NEGLIGIBLE:
            return n * wp.sign(offset)
    if stopped:
        return unit(back)
    offset_across = without_part_along(before, edge)
    if largest(offset_across) > NEGLIGIBLE:
        return unit(offset_across)
    return any_across(edge)


@wp.func
def count_on_boundary(w: vec) -> int:
    """How many of the weights of a face vanish."""
    n = int(0)
    for k in range(3):
        if w[k] <= ON_BOUNDARY:
            n += 1
    return n


@wp.func
def vertex_face_details(e1: vec, e2: vec, e3: vec, v1: vec, v2: vec, v3: vec, a1: vec, a2: vec, a3: vec):
    """(kind, weights, normal) from the frame at the contact, its velocity and the frame at the start."""
    w = closest_on_triangle(e3, vec(), e1, e2)
    vanishing = count_on_boundary(w)
    kind = VERTEX_FACE_KIND
    edge = vec()
    if vanishing == 1:
        kind = VERTEX_EDGE_KIND
        edge = e2 - e1
        if w[1] <= ON_BOUNDARY:
            edge = e2
        if w[2] <= ON_BOUNDARY:
            edge = e1
    if vanishing == 2:
        kind = VERTEX_VERTEX_KIND
    velocity = v3 - v1 * w[1] - v2 * w[2]
    before = a3 - a1 * w[1] - a2 * w[2]
    now = e3 - e1 * w[1] - e2 * w[2]
    return kind, wp.vec4d(real(1.0), w[0], w[1], w[2]), contact_normal(e1, e2, edge, False, velocity, before, now)


@wp.func
def edge_edge_details(e1: vec, e2: vec, e3: vec, v1: vec, v2: vec, v3: vec, a1: vec, a2: vec, a3: vec):
    """(kind, weights, normal) from the frame at the contact, its velocity and the frame at the start."""
    one = real(1.0)
    p = closest_on_segments(vec(), e1, e2, e3)
    end_a = p[0] <= ON_BOUNDARY or p[0] >= one - ON_BOUNDARY
    end_b = p[1] <= ON_BOUNDARY or p[1] >= one - ON_BOUNDARY
    kind = EDGE_EDGE_KIND
    along_b = e3 - e2
    edge = e1
    if largest(e1) < largest(along_b) * FLAT or (end_a and not end_b):
        edge = along_b
    if end_a or end_b:
        kind = VERTEX_EDGE_KIND
    if end_a and end_b:
        kind = VERTEX_VERTEX_KIND
        edge = vec()
    velocity = v1 * p[0] - (v2 * (one - p[1]) + v3 * p[1])
    before = a1 * p[0] - (a2 * (one - p[1]) + a3 * p[1])
    now = e1 * p[0] - (e2 * (one - p[1]) + e3 * p[1])
    weights = wp.vec4d(one - p[0], p[0], one - p[1], p[1])
    return kind, weights, contact_normal(e1, along_b, edge, end_a or end_b, velocity, before, now)


@wp.func
def vertex_face_points(w: wp.vec4d, p0: vec, p1: vec, p2: vec, p3: vec):
    return p0, p1 * w[1] + p2 * w[2] + p3 * w[3]


@wp.func
def edge_edge_points(w: wp.vec4d, p0: vec, p1: vec, p2: vec, p3: vec):
    return p0 * w[0] + p1 * w[1], p2 * w[2] + p3 * w[3]


@wp.func
def frame_size(a1: vec, a2: vec, a3: vec, b1: vec, b2: vec, b3: vec) -> real:
    """The size of a query, from its frames at both ends of the step."""
    size = wp.max(wp.max(largest(a1), largest(b1)), wp.max(largest(a2), largest(b2)))
    return wp.max(size, wp.max(largest(a3), largest(b3)))


@wp.func
def bears(w: real, heaviest: real, length: real, reach: real) -> bool:
    """Whether a vertex of a feature bears the contact: it is the heaviest, or the contact is not opposite to it."""
    return w >= heaviest or w * length > reach


@wp.func
def face_bearers(w: wp.vec4d, p0: vec, p1: vec, p2: vec, p3: vec, reach: real) -> int:
    """Bearers of a vertex and a face; 0 within the face."""
    heaviest = wp.max(wp.max(w[1], w[2]), w[3])
    found = int(1)
    if bears(w[1], heaviest, wp.max(wp.length(p2 - p1), wp.length(p3 - p1)), reach):
        found += 2
    if bears(w[2], heaviest, wp.max(wp.length(p1 - p2), wp.length(p3 - p2)), reach):
        found += 4
    if bears(w[3], heaviest, wp.max(wp.length(p1 - p3), wp.length(p2 - p3)), reach):
        found += 8
    return wp.where(found == 15, 0, found)


@wp.func
def edge_bearers(w: wp.vec4d, p0: vec, p1: vec, p2: vec, p3: vec, reach: real) -> int:
    """Bearers of two edges; 0 where they cross."""
    heaviest_a = wp.max(w[0], w[1])
    heaviest_b = wp.max(w[2], w[3])
    length_a = wp.length(p1 - p0)
    length_b = wp.length(p3 - p2)
    found = int(0)
    if bears(w[0], heaviest_a, length_a, reach):
        found += 1
    if bears(w[1], heaviest_a, length_a, reach):
        found += 2
    if bears(w[2], heaviest_b, length_b, reach):
        found += 4
    if bears(w[3], heaviest_b, length_b, reach):
        found += 8
    crossing = wp.length(wp.cross(p1 - p0, p3 - p2)) > reach * wp.max(length_a, length_b)
    return wp.where(found == 15 and crossing, 0, found)


@cache
def bearers_function(features: FeaturePairKind) -> wp.Function:
    """(moving points, time, weights, apart) -> those that bear the contact, as bits.

    0 where the features alone tell the normal: within a face, where edges cross, or where the points are apart.
    """
    frame = features.frame
    bearers_of = face_bearers if features.kind == Kind.VERTEX_FACE else edge_bearers

    @wp.func
    def bearers(p: MovingPoints, t: real, w: wp.vec4d, apart: vec) -> int:
        a1, a2, a3 = frame(p.x0, p.x1, p.x2, p.x3)
        b1, b2, b3 = frame(p.y0, p.y1, p.y2, p.y3)
        size = frame_size(a1, a2, a3, b1, b2, b3)
        if largest(apart) > CLEARLY_APART * size:
            return 0
        rounding = real(8.0) * UNIT_ROUNDOFF * (largest(p.x0) + largest(p.y0) + size)
        reach = ON_BOUNDARY * size + GAPS_OFF * (wp.length(apart) + rounding)
        return bearers_of(w, at(p.x0, p.y0, t), at(p.x1, p.y1, t), at(p.x2, p.y2, t), at(p.x3, p.y3, t), reach)

    return bearers


@cache
def describe_function(features: FeaturePairKind) -> wp.Function:
    """(moving points, time) -> (kind, weights, point on a, point on b, normal)."""
    frame = features.frame
    is_face = features.kind == Kind.VERTEX_FACE
    details_of = vertex_face_details if is_face else edge_edge_details
    contact_points = vertex_face_points if is_face else edge_edge_points

    @wp.func
    def describe_at(p: MovingPoints, t: real):
        a1, a2, a3 = frame(p.x0, p.x1, p.x2, p.x3)
        b1, b2, b3 = frame(p.y0, p.y1, p.y2, p.y3)
        scale = real(1.0) / wp.max(frame_size(a1, a2, a3, b1, b2, b3), real(1e-300))
        a1 = a1 * scale
        a2 = a2 * scale
        a3 = a3 * scale
        b1 = b1 * scale
        b2 = b2 * scale
        b3 = b3 * scale
        kind, weights, normal = details_of(
            at(a1, b1, t), at(a2, b2, t), at(a3, b3, t), b1 - a1, b2 - a2, b3 - a3, a1, a2, a3
        )
        point_a, point_b = contact_points(
            weights, at(p.x0, p.y0, t), at(p.x1, p.y1, t), at(p.x2, p.y2, t), at(p.x3, p.y3, t)
        )
        return kind, weights, point_a, point_b, normal

    return describe_at


@wp.func
def write_details(
    details: DetailColumns, i: int, kind: wp.uint8, weights: wp.vec4d, point_a: vec, point_b: vec, normal: vec
):
    """The details of query i."""
    details.kind[i] = kind
    details.weights[i] = weights
    details.point_a[i] = point_a
    details.point_b[i] = point_b
    details.normal[i] = normal


@wp.func
def write_no_details(details: DetailColumns, i: int):
    """Query i is free."""
    none = vec(NOTHING, NOTHING, NOTHING)
    write_details(details, i, wp.uint8(0), wp.vec4d(NOTHING, NOTHING, NOTHING, NOTHING), none, none, none)


@cache
def _describe_kernel(features: FeaturePairKind, indexed: bool) -> wp.Kernel:
    corners = chosen if indexed else consecutive
    describe_at = describe_function(features)

    @wp.kernel(module="unique", module_options=SOUND)
    def describe_contacts(
        first: int,
        quads: wp.array[wp.vec4i],
        start: wp.array[vec],
        end: wp.array[vec],
        time: wp.array[real],
        status: wp.array[wp.uint8],
        details: DetailColumns,
    ):
        i = first + wp.tid()
        if status[i] == FREE:
            write_no_details(details, i)
            return
        what, w, on_a, on_b, n = describe_at(points_of(start, end, corners(quads, i)), time[i])
        write_details(details, i, what, w, on_a, on_b, n)

    return describe_contacts


@cache
def _describe_rows_kernel(features: FeaturePairKind) -> wp.Kernel:
    describe_at = describe_function(features)
    bearers = bearers_function(features)

    @wp.kernel(module="unique", module_options=SOUND)
    def describe_rows_of_numbers(
        first: int, rows: wp.array[Row], start: wp.array[vec], end: wp.array[vec], touches: wp.array[Touch]
    ):
        i = first + wp.tid()
        k = wp.vec4i(int(rows[i][0]), int(rows[i][1]), int(rows[i][2]), int(rows[i][3]))
        t = rows[i][4]
        p = points_of(start, end, k)
        what, w, on_a, on_b, n = describe_at(p, t)
        touch = Touch()
        for c in range(4):
            touch[c] = w[c]
        for c in range(3):
            touch[4 + c] = on_a[c]
            touch[7 + c] = on_b[c]
            touch[10 + c] = n[c]
        touch[13] = real(bearers(p, t, w, on_a - on_b))
        touches[i] = touch

    return describe_rows_of_numbers

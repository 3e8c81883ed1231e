"""Contact details: points, normals and features of triangle pairs at a time, by when contact is certain, the record.

Method:   nearest features at the time by the careful closest-point functions; the normal goes from b's point to a's;
          where they coincide it comes from the faces. Contact is certain once the two triangles pierce each other by
          more than rounding, or are nearer than `separation`, or a vertex that was above the other face is below it
          and cannot have gone round it: times after the first contact are tried in growing steps.
Known as: contact determination (contact features, contact generation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import box_axes, box_centre, box_half
from tangere.geometry.obb import LONGEST, separation_of
from tangere.geometry.triangles import (
    ClosestFeatures,
    Triangle,
    closest_features,
    corner,
    feature_pair,
    pierce,
    triangle_edge,
)
from tangere.motion.bounds import BodyState, reparametrised_time, state_of
from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.first_contact.rigid.conservative_advancement import QueryArrays, Relative, relative_at
from tangere.query.first_contact.rigid.narrow_phase import corners_of, placed
from tangere.query.first_contact.rigid.traversal import MEETS, EarliestHit, no_hit
from tangere.query.intersection.traversal import Waiting
from tangere.runtime import SOUND, collect, device_of, launch, reserve_slots
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_THREE = wp.constant(wp.float64(3.0))
_NEVER = wp.constant(wp.float64(wp.inf))
#: The first of the times after a contact at which it is tried whether it has become certain, and how they grow.
_FIRST_TRIAL = wp.constant(wp.float64(1.0e-10))
_GROWTH = wp.constant(wp.float64(4.0))
#: Points nearer than this part of the query's size give no direction.
_NO_DIRECTION = wp.constant(wp.float64(1.0e-13))
#: `Kind` by `ContactDetail.kind`: two edges, a vertex of a, a vertex of b, an edge through a face.
KINDS = np.array([Kind.EDGE_EDGE, Kind.VERTEX_FACE, Kind.VERTEX_FACE, Kind.OVERLAP], np.uint8)
VERTEX_OF_B, THROUGH = 2, 3


def contacts_of(details: np.ndarray, shape_a: Mesh, shape_b: Mesh, body_a: int = 0, body_b: int = 1) -> Contacts:
    """The contact record of the `ContactDetail`s of one query about two shapes, each pair of features once.

    The first record stays first; the others follow by kind and feature.
    """
    way = details["kind"]
    feature_a = _numbers(shape_a, details["triangle_a"], details["feature_a"], way, vertex=1)
    feature_b = _numbers(shape_b, details["triangle_b"], details["feature_b"], way, vertex=VERTEX_OF_B)
    record = _record(details, feature_a, feature_b, 0, body_a, body_b)
    if len(record) == 1:
        return record
    _, unique = np.unique(record.key, return_index=True)
    return record[np.concatenate([np.zeros(1, int), unique[record.key[unique] != record.key[0]]])]


def contacts_of_batch(
    details: np.ndarray, shapes: Sequence[Mesh], shape: np.ndarray, pairs: np.ndarray, query: np.ndarray
) -> Contacts:
    """The contact record of the `ContactDetail`s of n queries, one each.

    Args:
        shape: which of the shapes each body is, (bodies,).
        pairs: numbers of the two bodies of each, (n, 2).
        query: numbers of the queries, (n,).
    """
    features = []
    for side, vertex in enumerate((1, VERTEX_OF_B)):
        number, which = np.zeros(len(details), np.int32), shape[pairs[:, side]]
        for k in np.unique(which):
            rows, columns = which == k, [f"{name}_{'ab'[side]}" for name in ("triangle", "feature")]
            triangle, feature, way = (details[name][rows] for name in (*columns, "kind"))
            number[rows] = _numbers(shapes[k], triangle, feature, way, vertex)
        features.append(number)
    return _record(details, *features, query, pairs[:, 0], pairs[:, 1])


def _record(
    details: np.ndarray, feature_a: np.ndarray, feature_b: np.ndarray, query: Any, body_a: Any, body_b: Any
) -> Contacts:
    way = details["kind"]
    through = way == THROUGH
    return Contacts.of(
        query=query,
        time=details["time"],
        point_a=details["point_a"],
        point_b=details["point_b"],
        normal=details["normal"],
        gap=details["gap"],
        body_a=body_a,
        body_b=body_b,
        feature_a=feature_a,
        feature_b=feature_b,
        weights=np.where(through[:, None], np.nan, details["weights"]),
        kind=KINDS[way],
        vertex_on=((way == VERTEX_OF_B) | (through & (details["feature_a"] < 0))).astype(np.uint8),
    )


def contacts_at(arrays: QueryArrays, times: np.ndarray) -> wp.array:
    """Every contact (`ContactDetail`) of the queries at `times` of the clock (beyond 1: none), in no set order.

    Of each pair of triangles that is near, the feature pairs (of 15) within the limit are kept.
    """
    leaves, instants, device = _near_triangles(arrays, times)
    return collect(_contacts, len(leaves), [leaves, arrays, instants], ContactDetail, device=device, grain=16)


def certain_times(arrays: QueryArrays, times: np.ndarray) -> np.ndarray:
    """Times of the step by which each query certainly touches, by any of the triangles that are near at `times`: (n,).

    The two triangles that touch first may lie flat on each other, and never go through each other; others do.
    """
    device, asked = device_of(arrays.queries), np.flatnonzero(times <= 1.0)
    rows = wp.array(asked, dtype=wp.int32, device=device)
    instants = wp.array(times[asked], dtype=wp.float64, device=device)
    upper = wp.empty(len(asked), dtype=wp.float64, device=device)
    launch(_certain, len(asked), [rows, instants, arrays], [upper], device=device, grain=4)
    certain = np.full(len(times), np.inf)
    certain[asked] = upper.numpy()
    return certain


def _near_triangles(arrays: QueryArrays, times: np.ndarray) -> tuple[wp.array, wp.array, wp.Device]:
    """(query, triangle of a, triangle of b) of all pairs of triangles whose boxes are within the limit at the times.

    The two trees are descended level by level, all pairs of a level at once; box pairs further apart than the limit are
    dropped.
    """
    device = device_of(arrays.queries)
    instants = wp.array(times, dtype=wp.float64, device=device)
    roots = np.flatnonzero(times <= 1.0)[:, None] * np.array([1, 0, 0])
    front = wp.array(roots.astype(np.int32), dtype=wp.vec3i, device=device)
    pairs = []
    while len(front):
        pairs.append(collect(_leaves, len(front), [front, arrays], wp.vec3i, device=device))
        front = collect(_descend, len(front), [front, arrays, instants], wp.vec3i, device=device)
    leaves = wp.empty(sum(len(part) for part in pairs), dtype=wp.vec3i, device=device)
    place = 0
    for part in pairs:
        if len(part):
            wp.copy(leaves, part, place, 0, len(part))
            place += len(part)
    return leaves, instants, device


def columns_of(details: np.ndarray, status: np.ndarray) -> dict[str, Any]:
    """The columns of `FirstContacts` that say what touches where; NaN and NONE where nothing does."""
    hit = status != Status.FREE
    columns = {
        name: np.where(hit[:, None], details[name], np.nan) for name in ("weights", "point_a", "point_b", "normal")
    }
    return columns | {"kind": np.where(hit, KINDS[details["kind"]], Kind.NONE).astype(np.uint8)}


def _numbers(mesh: Mesh, triangle: np.ndarray, feature: np.ndarray, way: np.ndarray, vertex: int) -> np.ndarray:
    """Vertex, edge or face numbers of one side; `vertex` is the way that has the vertex here."""
    if len(way) == 1:  # arrays would take a tenth of a small search
        face, kind, place = int(triangle[0]), int(way[0]), int(feature[0])
        if kind == vertex:
            face = mesh.faces[face, place]
        elif kind == 0 or (kind == THROUGH and place >= 0):
            face = mesh.topology.face_edges[face, place]
        return np.array([face], np.int32)
    number = triangle.astype(np.int32)  # of the face
    corner = way == vertex
    number[corner] = mesh.faces[triangle[corner], feature[corner]]
    side = (way == 0) | ((way == THROUGH) & (feature >= 0))
    if side.any():
        number[side] = mesh.topology.face_edges[triangle[side], feature[side]]
    return number


@wp.struct
class ContactDetail:
    """One contact; `time` is of the step, everything else in the world at that time."""

    time: wp.float64  #: inf when there is none
    time_upper: wp.float64
    gap: wp.float64
    tolerance: wp.float64  #: that was kept
    weights: wp.vec4d
    point_a: wp.vec3d
    point_b: wp.vec3d
    normal: wp.vec3d
    query: wp.int32
    triangle_a: wp.int32
    triangle_b: wp.int32
    kind: wp.int32  #: as `ClosestFeatures`; 3 for an edge through a face
    feature_a: wp.int32
    feature_b: wp.int32
    decided: wp.bool


@wp.kernel
def describe(
    first: int,
    arrays: QueryArrays,
    hits: wp.array[EarliestHit],
    details: wp.array[ContactDetail],
):
    i = first + wp.tid()
    query = arrays.queries[i]
    pairs = arrays.pairs
    hit = hits[i]
    detail = ContactDetail()
    detail.time = _NEVER
    detail.time_upper = _NEVER
    if hit.time <= _ONE:
        a = corners_of(arrays.corners_a, query.triangle_a + hit.a, pairs[i].bounds_a.pivot)
        b = corners_of(arrays.corners_b, query.triangle_b + hit.b, pairs[i].bounds_b.pivot)
        now = relative_at(arrays, i, hit.time)
        at = placed(now, b)
        features = closest_features(a, at)
        if hit.pierced >= 0 and hit.pierced < MEETS:
            features = through(a, at, hit.pierced)
        frame = state_of(arrays.motions, query.motion_a, query.links_a, query.smooth, hit.time)
        detail = detail_of(frame, pairs[i].size, a, at, features)
        detail.time = reparametrised_time(query.smooth, hit.time)
        detail.time_upper = certain_time(arrays, i, a, b, hit)
        detail.triangle_a = hit.a
        detail.triangle_b = hit.b
        detail.decided = hit.decided
    detail.query = i
    detail.tolerance = pairs[i].tolerance
    details[i] = detail


@wp.func
def certain_time(arrays: QueryArrays, row: int, a: Triangle, b: Triangle, hit: EarliestHit) -> wp.float64:
    """A time of the step by which the triangles certainly touch, inf where none was found."""
    pairs = arrays.pairs
    certain = _NEVER
    tau = wp.float64(hit.time)
    before = placed(relative_at(arrays, row, hit.time), b)
    bounds_a = pairs[row].bounds_a
    bounds_b = pairs[row].bounds_b
    # Points near both triangles: no farther from a pivot than its body is large, but for the tolerance and the way.
    fastest = wp.length(bounds_b.drift - bounds_a.drift) + bounds_a.swing + bounds_b.swing
    fastest += _THREE * pairs[row].speed + (bounds_a.spin + bounds_b.spin) * pairs[row].tolerance
    step = _FIRST_TRIAL + _ZERO
    going = bool(True)
    if hit.pierced >= 0:
        certain = _ZERO
        going = False
    while going:
        at = placed(relative_at(arrays, row, tau), b)
        inside = pierce(a, at, pairs[row].slack) >= 0
        if pairs[row].separation > _ZERO and not inside:
            nearest = closest_features(a, at)
            inside = wp.sqrt(nearest.squared) + pairs[row].slack <= pairs[row].separation
        if pairs[row].separation == _ZERO and not inside:
            inside = goes_through(a, before, at, fastest * (tau - hit.time), pairs[row].slack)
        if inside:
            certain = reparametrised_time(arrays.queries[row].smooth, tau)
        going = not inside and tau < _ONE
        tau = wp.min(hit.time + step, _ONE)
        step *= _GROWTH
    return certain


@wp.func
def goes_through(a: Triangle, before: Triangle, after: Triangle, way: wp.float64, slack: wp.float64) -> bool:
    """Whether a vertex of one triangle certainly went through the other face: b goes from `before` to `after`.

    Its foot in the face is farther from the sides than it can have moved, and its height has changed sign.
    """
    result = bool(False)
    k = int(0)
    while k < 6:
        p = corner(a, k % 3)
        q = corner(a, k % 3)
        first = before
        last = after
        if k >= 3:
            p = corner(before, k % 3)
            q = corner(after, k % 3)
            first = a
            last = a
        above = height_above(p, first)
        below = height_above(q, last)
        if above[1] > way + slack and wp.min(above[0], below[0]) < -slack and wp.max(above[0], below[0]) > slack:
            result = True
        k += 1
    return result


@wp.func
def height_above(p: wp.vec3d, face: Triangle) -> wp.vec2d:
    """(Height of p above a face, how far inside of its sides the foot is; negative outside)."""
    n = wp.normalize(wp.cross(triangle_edge(face, 0), triangle_edge(face, 1)))
    inside = wp.float64(1.0e300)
    for k in range(3):
        side = wp.cross(n, wp.normalize(triangle_edge(face, k)))
        inside = wp.min(inside, wp.dot(side, p - corner(face, k)))
    if wp.length_sq(n) == _ZERO:
        inside = -_ONE
    return wp.vec2d(wp.dot(n, p - corner(face, 0)), inside)


@wp.func
def through(a: Triangle, b: Triangle, side: int) -> ClosestFeatures:
    """The edge that goes through the other face, and the point where."""
    p = corner(a, side % 3)
    q = corner(a, (side + 1) % 3)
    face = b
    result = ClosestFeatures()
    result.kind = 3
    result.feature_a = side
    result.feature_b = -1  # the face
    if side >= 3:
        p = corner(b, side % 3)
        q = corner(b, (side + 1) % 3)
        face = a
        result.feature_a = -1
        result.feature_b = side - 3
    n = wp.cross(triangle_edge(face, 0), triangle_edge(face, 1))
    first = wp.dot(n, corner(face, 0) - p)
    last = wp.dot(n, corner(face, 0) - q)
    point = p + (q - p) * (first / (first - last))
    result.point_a = point
    result.point_b = point
    return result


@wp.func
def detail_of(frame: BodyState, size: wp.float64, a: Triangle, b: Triangle, features: ClosestFeatures) -> ContactDetail:
    """The record of two features; triangles and points are in a's frame, seen from its pivot, `frame` places them."""
    apart = features.point_a - features.point_b
    normal = outward(a, b, features)
    if wp.length(apart) > _NO_DIRECTION * size:
        normal = wp.normalize(apart)
    detail = ContactDetail()
    detail.point_a = frame.point + frame.rotation * features.point_a
    detail.point_b = frame.point + frame.rotation * features.point_b
    detail.normal = frame.rotation * normal
    detail.gap = wp.dot(apart, normal)
    detail.weights = features.weights
    detail.kind = features.kind
    detail.feature_a = features.feature_a
    detail.feature_b = features.feature_b
    return detail


@wp.func
def outward(a: Triangle, b: Triangle, features: ClosestFeatures) -> wp.vec3d:
    """A unit direction that pushes a away from b where the points coincide; z where the faces have none."""
    normal_a = wp.normalize(wp.cross(triangle_edge(a, 0), triangle_edge(a, 1)))
    normal_b = wp.normalize(wp.cross(triangle_edge(b, 0), triangle_edge(b, 1)))
    normal = normal_b
    if features.kind == 2 or (features.kind == 3 and features.feature_a < 0):
        normal = -normal_a
    if features.kind == 0:
        normal = wp.normalize(wp.cross(triangle_edge(a, features.feature_a), triangle_edge(b, features.feature_b)))
        if wp.dot(normal, normal_b - normal_a) < _ZERO:
            normal = -normal
    if not wp.length_sq(normal) > _ZERO:
        normal = wp.vec3d(_ZERO, _ZERO, _ONE)
    return normal


@wp.kernel
def _leaves(
    first: int,
    shard: int,
    front: wp.array[wp.vec3i],
    arrays: QueryArrays,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """The pairs of triangles in the front, as (query, triangle of a, triangle of b)."""
    item = front[first + wp.tid()]
    query = arrays.queries[item[0]]
    a = arrays.nodes_a[query.node_a + item[1]]
    b = arrays.nodes_b[query.node_b + item[2]]
    if a.right < 0 and b.right < 0:
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            out[slot] = wp.vec3i(item[0], a.triangle, b.triangle)


@wp.kernel
def _descend(
    first: int,
    shard: int,
    front: wp.array[wp.vec3i],
    arrays: QueryArrays,
    instants: wp.array[wp.float64],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """The children of the front's pairs that are near enough."""
    item = front[first + wp.tid()]
    query = arrays.queries[item[0]]
    a = arrays.nodes_a[query.node_a + item[1]]
    b = arrays.nodes_b[query.node_b + item[2]]
    if a.right >= 0 or b.right >= 0:
        pairs = arrays.pairs
        row = item[0]
        now = relative_at(arrays, row, instants[row])
        limit = LONGEST * (pairs[row].separation + pairs[row].tolerance) + pairs[row].slack
        child_a = item[1]
        child_b = item[2]
        for k in range(2):
            if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
                child_a = item[1] + 1
                if k == 1:
                    child_a = a.right
            else:
                child_b = item[2] + 1
                if k == 1:
                    child_b = b.right
            if not box_gap(arrays, row, now, child_a, child_b) > limit:
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec3i(item[0], child_a, child_b)


@wp.func
def box_gap(arrays: QueryArrays, row: int, now: Relative, node_a: int, node_b: int) -> wp.float64:
    """How far two boxes, counted from the roots of a query's trees, are apart `now`."""
    a = arrays.nodes_a[arrays.queries[row].node_a + node_a]
    b = arrays.nodes_b[arrays.queries[row].node_b + node_b]
    back = wp.transpose(box_axes(a))
    arm_a = box_centre(a) - arrays.pairs[row].bounds_a.pivot
    arm_b = now.rotation * (box_centre(b) - arrays.pairs[row].bounds_b.pivot)
    apart = separation_of(
        back * (now.point + arm_b - arm_a), back * (now.rotation * box_axes(b)), box_half(a), box_half(b)
    )
    return apart.gap


@wp.kernel
def _certain(
    first: int,
    rows: wp.array[int],
    instants: wp.array[wp.float64],
    arrays: QueryArrays,
    upper: wp.array[wp.float64],
):
    """By when a query certainly touches: the earliest of the pairs of triangles that are near at its instant."""
    i = first + wp.tid()
    row = rows[i]
    pairs = arrays.pairs
    node_a = arrays.queries[row].node_a
    node_b = arrays.queries[row].node_b
    now = relative_at(arrays, row, instants[i])
    limit = LONGEST * (pairs[row].separation + pairs[row].tolerance) + pairs[row].slack
    hit = no_hit()
    hit.time = instants[i]
    least = _NEVER + _ZERO
    waiting_a = Waiting()
    waiting_b = Waiting()
    count = int(1)
    while count > 0:
        count -= 1
        at_a = waiting_a[count]
        at_b = waiting_b[count]
        if not box_gap(arrays, row, now, at_a, at_b) > limit:
            below_a = arrays.nodes_a[node_a + at_a].right
            below_b = arrays.nodes_b[node_b + at_b].right
            radius_a = arrays.nodes_a[node_a + at_a].radius
            radius_b = arrays.nodes_b[node_b + at_b].radius
            if below_a < 0 and below_b < 0:
                triangle_a = arrays.queries[row].triangle_a + arrays.nodes_a[node_a + at_a].triangle
                triangle_b = arrays.queries[row].triangle_b + arrays.nodes_b[node_b + at_b].triangle
                a = corners_of(arrays.corners_a, triangle_a, pairs[row].bounds_a.pivot)
                b = corners_of(arrays.corners_b, triangle_b, pairs[row].bounds_b.pivot)
                least = wp.min(least, certain_time(arrays, row, a, b, hit))
            elif below_b < 0 or (below_a >= 0 and radius_a >= radius_b):
                waiting_a[count] = at_a + 1
                waiting_b[count] = at_b
                waiting_a[count + 1] = below_a
                waiting_b[count + 1] = at_b
                count += 2
            else:
                waiting_a[count] = at_a
                waiting_b[count] = at_b + 1
                waiting_a[count + 1] = at_a
                waiting_b[count + 1] = below_b
                count += 2
    upper[i] = least


@wp.kernel
def _contacts(
    first: int,
    shard: int,
    leaves: wp.array[wp.vec3i],
    arrays: QueryArrays,
    instants: wp.array[wp.float64],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[ContactDetail],
):
    """The feature pairs of a pair of triangles that are near enough."""
    item = leaves[first + wp.tid()]
    query = arrays.queries[item[0]]
    pairs = arrays.pairs
    row = item[0]
    tau = instants[row]
    now = relative_at(arrays, row, tau)
    a = corners_of(arrays.corners_a, query.triangle_a + item[1], pairs[row].bounds_a.pivot)
    b = placed(now, corners_of(arrays.corners_b, query.triangle_b + item[2], pairs[row].bounds_b.pivot))
    limit = pairs[row].separation + pairs[row].tolerance
    k = int(0)
    while k < 15:
        features = feature_pair(a, b, k)
        if features.squared <= limit * limit:
            slot = reserve_slots(counts, shard, 1, capacity)
            if slot >= 0:
                frame = state_of(arrays.motions, query.motion_a, query.links_a, query.smooth, tau)
                detail = detail_of(frame, pairs[row].size, a, b, features)
                detail.query = item[0]
                detail.triangle_a = item[1]
                detail.triangle_b = item[2]
                out[slot] = detail
        k += 1

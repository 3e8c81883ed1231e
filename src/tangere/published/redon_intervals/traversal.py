"""Two trees of oriented boxes on moving bodies: the earliest contact of their triangles, one thread a query.

Method: depth first; the larger box of a pair is opened. In plain order a pair is tested when it comes up: at its
        final, then at its initial place, then over the whole time; in order of time both children of a pair are tested
        at once, each from the time on before which its parents do not meet, and the one that can meet first is visited
        first.
        Leaves run the fifteen elementary tests. Redon 2002, sections 2.6.3 and 3.5.3.
Sound:  a pair is dropped only if its boxes are apart until the first contact so far; that time only discards.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb.node import ObbNode, box_centre
from tangere.bvh.obb.overlap import place_boxes
from tangere.bvh.recession.culling import VelocityField, box_recedes, field_at, field_drift
from tangere.geometry.obb import SKEW, boxes_apart
from tangere.motion.kinematics import RigidMotion, RigidPose
from tangere.published.redon_intervals.membership import touch_by_membership
from tangere.published.redon_intervals.movers import mover_of
from tangere.published.redon_intervals.moving_boxes import Subdivision, first_unresolved
from tangere.published.redon_intervals.result import (
    BOXES,
    CONTINUOUS,
    EDGE_EDGE,
    FACE_VERTEX,
    FINAL,
    INITIAL,
    INTERVALS,
    LEAF_INTERVALS,
    RECESSION,
    VERTEX_FACE,
)
from tangere.query.first_contact.mixed.motion_chain import MotionRow, pose_now
from tangere.query.first_contact.mixed.narrow_phase import ALL_FEATURES, MovingCorners, Precision
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND | {"max_unroll": 1})

OFF = wp.constant(0)
ELEMENTARY = wp.constant(1)
HIERARCHICAL = wp.constant(2)
UNKNOWN = wp.constant(wp.uint8(0))
STAYS = wp.constant(wp.uint8(1))
RECEDES = wp.constant(wp.uint8(2))
INFINITE = wp.constant(wp.float64(float("inf")))
ZERO = wp.constant(wp.float64(0.0))
ONE = wp.constant(wp.float64(1.0))


@wp.struct
class IntervalBody:
    """A tree and the motions of all queries; query i moves by row i, or by row 0 if there is only one."""

    nodes: wp.array[ObbNode]
    corners: wp.array[wp.vec3d]
    motions: wp.array[RigidMotion]
    rows: wp.array[wp.vec2i]
    cone_first: wp.array[int]  # where the recession vectors of each node begin
    cone_vectors: wp.array[wp.vec3d]
    stamps: wp.array2d[wp.uint8]  # for each query and node: recedes, does not, or not asked yet


@wp.struct
class IntervalSearch:
    """The settings of a search; see `IntervalOptions`."""

    by_time: int
    final_test: int
    initial_test: int
    discrete_edge_axes: int
    pass_time: int
    recession: int  # OFF, ELEMENTARY or HIERARCHICAL
    use_stamps: int
    subdivision: Subdivision
    precision: Precision
    printed_membership: int


@wp.func
def _row(body: IntervalBody, query: int) -> MotionRow:
    range_ = body.rows[wp.min(query, body.rows.shape[0] - 1)]
    row = MotionRow()
    row.first = range_[0]
    row.last = range_[1]
    return row


@wp.func
def _relative(a: IntervalBody, row_a: MotionRow, b: IntervalBody, row_b: MotionRow, t: wp.float64) -> RigidPose:
    """Where b is in the frame of a."""
    pose_a = pose_now(a.motions, row_a, t)
    pose_b = pose_now(b.motions, row_b, t)
    back = wp.transpose(pose_a.rotation)
    pose = RigidPose()
    pose.rotation = back * pose_b.rotation
    pose.translation = back * (pose_b.translation - pose_a.translation)
    return pose


@wp.func
def _triangle(body: IntervalBody, i: int, row: MotionRow) -> MovingCorners:
    corners = MovingCorners()
    corners.motions = body.motions
    corners.row = row
    corners.start = wp.matrix_from_rows(body.corners[3 * i], body.corners[3 * i + 1], body.corners[3 * i + 2])
    return corners


@wp.kernel
def search_trees(
    first: int,
    a: IntervalBody,
    b: IntervalBody,
    search: IntervalSearch,
    outside: wp.array[wp.bool],
    starts: wp.array[wp.vec2i],
    front_capacity: int,
    stack: wp.array2d[wp.vec2i],
    stack_from: wp.array2d[wp.float64],
    time: wp.array[wp.float64],
    hit: wp.array[wp.vec3i],
    counters: wp.array2d[wp.int64],
    front_size: wp.array[int],
    front: wp.array[wp.vec2i],
):
    """The first contact of query q; `outside` tells where recession may be used."""
    q = first + wp.tid()
    row_a = _row(a, q)
    row_b = _row(b, q)
    at_start = _relative(a, row_a, b, row_b, ZERO)
    at_end = _relative(a, row_a, b, row_b, ONE)
    a_by = mover_of(a.motions, row_a)
    b_by = mover_of(b.motions, row_b)
    field_a = VelocityField()
    field_b = VelocityField()
    change_a = INFINITE + ZERO
    change_b = INFINITE + ZERO
    if outside[q] and row_a.last - row_a.first == 1 and row_b.last - row_b.first == 1:
        motion_a = a.motions[row_a.first]
        motion_b = b.motions[row_b.first]
        field_a = field_at(motion_a, motion_b, ZERO)
        field_b = field_at(motion_b, motion_a, ZERO)
        reach = (
            _reach(a.nodes[0], motion_a) + _reach(b.nodes[0], motion_b) + wp.length(motion_b.origin - motion_a.origin)
        )
        change_a = field_drift(motion_a, motion_b, reach)
        change_b = field_drift(motion_b, motion_a, reach)
    contact = INFINITE + ZERO
    until = ONE + ZERO
    for start in range(starts.shape[0]):
        # A pair on the stack is either tested, with the time from which on it may meet, or untested, marked by -1.
        stack[q, 0] = starts[start]
        stack_from[q, 0] = -ONE
        top = int(1)
        while top > 0:
            top -= 1
            pair = stack[q, top]
            begin = stack_from[q, top]
            tested = begin >= ZERO
            ends_here = bool(False)
            if tested and begin > until:
                ends_here = True
            na = a.nodes[pair[0]]
            nb = b.nodes[pair[1]]
            leaves = na.right < 0 and nb.right < 0
            opened = _opened(pair, na, nb)
            # What to test now: the pair itself, or the two it opens into, or nothing.
            left = pair
            right = wp.vec2i(opened[2], opened[3])
            amount = int(1)
            if tested:
                left = wp.vec2i(opened[0], opened[1])
                amount = 2
                if leaves or ends_here:
                    amount = 0
            from_left = INFINITE + ZERO
            from_right = INFINITE + ZERO
            which = int(0)
            while which < amount:
                one = left
                if which == 1:
                    one = right
                box_a = a.nodes[one[0]]
                box_b = b.nodes[one[1]]
                since = wp.max(begin, ZERO)
                gone = _known_to_recede(a, q, one[0], search) or _known_to_recede(b, q, one[1], search)
                meets = gone
                if not gone:
                    counters[q, BOXES] += wp.int64(1)
                if search.by_time == 0 and search.final_test == 1 and not meets:
                    counters[q, FINAL] += wp.int64(1)
                    placed = place_boxes(box_a, box_b, at_end.rotation, at_end.translation, ZERO)
                    meets = not boxes_apart(placed, search.discrete_edge_axes, SKEW)
                if search.by_time == 0 and search.initial_test == 1 and not meets:
                    counters[q, INITIAL] += wp.int64(1)
                    placed = place_boxes(box_a, box_b, at_start.rotation, at_start.translation, ZERO)
                    meets = not boxes_apart(placed, search.discrete_edge_axes, SKEW)
                if not meets:
                    counters[q, CONTINUOUS] += wp.int64(1)
                    answer = first_unresolved(
                        box_a, a.motions, a_by, box_b, b.motions, b_by, since, until, search.subdivision
                    )
                    since = answer[0]
                    counters[q, INTERVALS] += wp.int64(answer[1])
                if search.recession != OFF and not gone and since < INFINITE:
                    gone = _recedes(a, q, one[0], field_a, change_a, search, counters)
                    if not gone:
                        gone = _recedes(b, q, one[1], field_b, change_b, search, counters)
                if gone:
                    since = INFINITE
                if which == 0:
                    from_left = since
                else:
                    from_right = since
                which += 1
            if amount == 1 and from_left < INFINITE:
                begin = from_left
                if not leaves:
                    if search.by_time == 1:
                        stack[q, top] = pair
                        stack_from[q, top] = begin
                        top += 1
                    else:
                        stack[q, top] = right
                        stack_from[q, top] = -ONE
                        stack[q, top + 1] = wp.vec2i(opened[0], opened[1])
                        stack_from[q, top + 1] = -ONE
                        top += 2
            if amount == 2:
                later = right
                later_from = from_right
                sooner = left
                sooner_from = from_left
                if from_right < from_left:
                    later = left
                    later_from = from_left
                    sooner = right
                    sooner_from = from_right
                if later_from < INFINITE:
                    stack[q, top] = later
                    stack_from[q, top] = later_from
                    top += 1
                if sooner_from < INFINITE:
                    stack[q, top] = sooner
                    stack_from[q, top] = sooner_from
                    top += 1
                if front_capacity > 0:
                    if later_from == INFINITE:
                        _keep(later, front_capacity, front_size, front)
                    if sooner_from == INFINITE:
                        _keep(sooner, front_capacity, front_size, front)
            elif front_capacity > 0:
                if leaves or ends_here or (not tested and from_left == INFINITE):
                    _keep(pair, front_capacity, front_size, front)
            if leaves and not ends_here and begin >= ZERO:
                since = ZERO + ZERO
                if search.by_time == 1:
                    since = begin
                counters[q, EDGE_EDGE] += wp.int64(9)
                counters[q, VERTEX_FACE] += wp.int64(3)
                counters[q, FACE_VERTEX] += wp.int64(3)
                corners_a = _triangle(a, na.triangle, row_a)
                corners_b = _triangle(b, nb.triangle, row_b)
                touch = touch_by_membership(
                    corners_a, corners_b, ALL_FEATURES, since, until, search.precision, search.printed_membership
                )
                counters[q, LEAF_INTERVALS] += wp.int64(touch.intervals)
                if touch.time < contact or (touch.time == contact and _before(na.triangle, nb.triangle, hit[q])):
                    if touch.time < INFINITE:
                        contact = touch.time
                        hit[q] = wp.vec3i(na.triangle, nb.triangle, touch.feature)
                        if search.pass_time == 1:
                            until = contact
                            if search.by_time == 0 and search.final_test == 1:
                                at_end = _relative(a, row_a, b, row_b, until)
    time[q] = contact


@wp.func
def _reach(root: ObbNode, motion: RigidMotion) -> wp.float64:
    """How far a point of the body can be from where its pivot starts."""
    way = wp.length(motion.velocity) + wp.length(motion.arc)
    return wp.length(box_centre(root) - motion.pivot) + wp.float64(root.radius) + way


@wp.func
def _known_to_recede(body: IntervalBody, query: int, node: int, search: IntervalSearch) -> bool:
    known = bool(False)
    if search.recession != OFF and search.use_stamps == 1:
        known = body.stamps[query, node] == RECEDES
    return known


@wp.func
def _recedes(
    body: IntervalBody,
    query: int,
    node: int,
    field: VelocityField,
    change: wp.float64,
    search: IntervalSearch,
    counters: wp.array2d[wp.int64],
) -> bool:
    """Whether a node moves away from the other body during the whole step; asked once where stamps are used."""
    box = body.nodes[node]
    if search.recession == ELEMENTARY and box.right >= 0:
        return False
    if search.use_stamps == 1 and body.stamps[query, node] != UNKNOWN:
        return body.stamps[query, node] == RECEDES
    counters[query, RECESSION] += wp.int64(1)
    away = box_recedes(box, body.cone_first[node], body.cone_first[node + 1], body.cone_vectors, field, change)
    if search.use_stamps == 1:
        body.stamps[query, node] = STAYS
        if away:
            body.stamps[query, node] = RECEDES
    return away


@wp.func
def _opened(pair: wp.vec2i, a: ObbNode, b: ObbNode) -> wp.vec4i:
    """The two pairs that the children of the larger box make with the other box."""
    if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
        return wp.vec4i(pair[0] + 1, pair[1], a.right, pair[1])
    return wp.vec4i(pair[0], pair[1] + 1, pair[0], b.right)


@wp.func
def _before(triangle_a: int, triangle_b: int, than: wp.vec3i) -> bool:
    return triangle_a < than[0] or (triangle_a == than[0] and triangle_b < than[1])


@wp.func
def _keep(pair: wp.vec2i, capacity: int, size: wp.array[int], front: wp.array[wp.vec2i]):
    """Remember where this search ended, for the next one to start from."""
    if size[0] < capacity:
        front[size[0]] = pair
    size[0] = size[0] + 1

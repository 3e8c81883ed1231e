"""The search of `clearance.traversal` on CPUs: a thread for each group of queries, depth first."""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import box_axes
from tangere.query.clearance.narrow_phase import ApproachStep, NearestApproach, approach_step, boxes_kept_apart
from tangere.query.clearance.traversal import centre_distance, likely_query, query_in_turn
from tangere.query.first_contact.rigid.conservative_advancement import (
    QueryArrays,
    relative_at,
    safe_time_of_nearest,
)
from tangere.query.first_contact.rigid.narrow_phase import corner_radii, corners_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


@wp.struct
class NodePair:
    """Two boxes that are farther apart than the bound until `time`."""

    time: wp.float64  #: of the clock
    a: wp.int32  #: node of a, counted from its root
    b: wp.int32


@wp.func
def approach_of_triangles(
    arrays: QueryArrays,
    row: int,
    triangle_a: int,
    triangle_b: int,
    tau: wp.float64,
    accuracy: wp.float64,
    before: NearestApproach,
) -> NearestApproach:
    """`before`, lowered by two triangles between tau and the end."""
    query = arrays.queries[row]
    pairs = arrays.pairs
    a = corners_of(arrays.corners_a, query.triangle_a + triangle_a, pairs[row].bounds_a.pivot)
    b = corners_of(arrays.corners_b, query.triangle_b + triangle_b, pairs[row].bounds_b.pivot)
    rho_a = corner_radii(pairs[row].bounds_a, a)
    rho_b = corner_radii(pairs[row].bounds_b, b)
    step = ApproachStep()
    step.nearest = before
    step.time = tau
    step.going = True
    steps = int(0)
    while step.going:
        now = relative_at(arrays, row, step.time)
        steps += 1
        step = approach_step(
            now, arrays, row, a, b, rho_a, rho_b, triangle_a, triangle_b, step.time, steps, accuracy, step.nearest
        )
    return step.nearest


@wp.func
def approach_of_query(
    arrays: QueryArrays,
    row: int,
    accuracy: wp.float64,
    stop: bool,
    base: int,
    stack: wp.array[NodePair],
    before: NearestApproach,
) -> NearestApproach:
    """`before`, lowered by the two bodies of a query; what waits lies on the stack from `base` on."""
    query = arrays.queries[row]
    pairs = arrays.pairs
    nearest = before
    count = int(1)
    stack[base] = NodePair()
    instant = wp.float64(0.0)
    now = relative_at(arrays, row, instant)
    while count > 0 and nearest.certified:
        count -= 1
        item = stack[base + count]
        a = arrays.nodes_a[query.node_a + item.a]
        b = arrays.nodes_b[query.node_b + item.b]
        keep = boxes_kept_apart(accuracy, nearest.upper, pairs[row].slack)
        if a.right < 0 and b.right < 0:
            nearest = approach_of_triangles(arrays, row, a.triangle, b.triangle, item.time, accuracy, nearest)
            if stop and nearest.time >= _ZERO:
                nearest.certified = False
        else:
            if item.time != instant:
                instant = item.time
                now = relative_at(arrays, row, instant)
            back_a = wp.transpose(box_axes(a))
            safe = safe_time_of_nearest(now, pairs, row, keep, back_a, a, b, instant, _ONE)
            if safe[1] > instant and not safe[1] > _ONE:
                instant = safe[1]
                now = relative_at(arrays, row, instant)
                safe = safe_time_of_nearest(now, pairs, row, keep, back_a, a, b, instant, _ONE)
            if not safe[1] > _ONE:
                near = NodePair()
                near.time = safe[1]
                near.a = item.a
                near.b = item.b
                far = near
                if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
                    near.a = item.a + 1
                    far.a = a.right
                else:
                    near.b = item.b + 1
                    far.b = b.right
                near_apart = centre_distance(
                    pairs, row, now, arrays.nodes_a[query.node_a + near.a], arrays.nodes_b[query.node_b + near.b]
                )
                far_apart = centre_distance(
                    pairs, row, now, arrays.nodes_a[query.node_a + far.a], arrays.nodes_b[query.node_b + far.b]
                )
                if far_apart < near_apart:
                    swapped = near
                    near = far
                    far = swapped
                stack[base + count] = far
                stack[base + count + 1] = near
                count += 2
    return nearest


@wp.kernel
def find_nearest_approach(
    first: int,
    arrays: QueryArrays,
    begin: wp.array[wp.int32],
    accuracy: wp.float64,
    stop: bool,
    room: int,
    stack: wp.array[NodePair],
    found: wp.array[NearestApproach],
):
    """The nearest of a group of queries, begin[job] … begin[job + 1] - 1; its stack has `room` places.

    stop: with anything that is nearer than what is known, which is then not certified.
    """
    job = first + wp.tid()
    nearest = found[job]
    if nearest.certified:
        return
    nearest.certified = True
    count = begin[job + 1] - begin[job]
    likely = likely_query(nearest, begin[job])
    k = int(0)
    while k < count and nearest.certified:
        row = begin[job] + query_in_turn(k, likely)
        nearest = approach_of_query(arrays, row, accuracy, stop, job * room, stack, nearest)
        k += 1
    found[job] = nearest

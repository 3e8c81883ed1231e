"""The least distance of two moving trees over a whole step: one depth-first search with a shrinking bound.

Question: how near do two rigid bodies come between t = 0 and t = 1, to a relative accuracy?
Method:   U is the least distance seen so far. A pair of boxes, or of triangles, is moved on in time as long as its gap
          certainly stays above (1 - accuracy) U. Boxes that cannot be moved on to the end are opened; triangles are
          evaluated on the way, which lowers U. Nearer children come first, so that U falls early.
          Several queries may share U, if only the nearest of them is asked for.
Sound:    U only falls, so what was certified with an older one stays valid: at the end no distance during the step is
          below (1 - accuracy) U, and U is the distance at an instant that was evaluated, rounded up.
Known as: branch and bound over node pairs with conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import ObbNode, box_axes, box_centre
from tangere.geometry.obb import LONGEST
from tangere.geometry.triangles import Triangle, best_direction, closest_features, corner, gap_along, gap_vector
from tangere.motion.bounds import reparametrised_time
from tangere.query.first_contact.rigid.conservative_advancement import (
    Pair,
    QueryArrays,
    Relative,
    largest_safe_step,
    radius_about,
    rate_bound,
    relative_at,
    safe_time,
)
from tangere.query.first_contact.rigid.narrow_phase import MOST_STEPS, corners_of, longest_step, placed
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_TINY = wp.constant(wp.float64(1.0e-150))


@wp.struct
class NodePair:
    """Two boxes that are farther apart than the bound until `time`."""

    time: wp.float64  #: of the clock
    a: wp.int32  #: node of a, counted from its root
    b: wp.int32


@wp.struct
class NearestApproach:
    """The least distance of a query so far."""

    upper: wp.float64  #: before: what is known from elsewhere, or as far as is asked; then the least that was seen [m]
    time: wp.float64  #: of the step, when that was; before, and if nothing is seen below what was given: -1
    query: wp.int32  #: of which query
    a: wp.int32  #: triangle of a
    b: wp.int32
    certified: wp.bool  #: nothing comes nearer than (1 - accuracy) upper; before: there is nothing to search for


@wp.func
def centre_distance(pairs: wp.array[Pair], row: int, now: Relative, a: ObbNode, b: ObbNode) -> wp.float64:
    """About how far two boxes are apart: the distance of the balls about them."""
    apart = (
        now.point
        + now.rotation * (box_centre(b) - pairs[row].bounds_b.pivot)
        - (box_centre(a) - pairs[row].bounds_a.pivot)
    )
    return wp.length(apart) - wp.float64(a.radius) - wp.float64(b.radius)


@wp.func
def approach_of_triangles(
    arrays: QueryArrays,
    row: int,
    a: Triangle,
    b: Triangle,
    triangle_a: int,
    triangle_b: int,
    tau: wp.float64,
    accuracy: wp.float64,
    before: NearestApproach,
) -> NearestApproach:
    """`before`, lowered by two triangles, seen from the pivots of their bodies, between tau and the end."""
    pairs = arrays.pairs
    rho_a = wp.vec3d(_ZERO, _ZERO, _ZERO)
    rho_b = wp.vec3d(_ZERO, _ZERO, _ZERO)
    for k in range(3):
        rho_a[k] = radius_about(pairs[row].bounds_a, corner(a, k) + pairs[row].bounds_a.pivot, _ZERO)
        rho_b[k] = radius_about(pairs[row].bounds_b, corner(b, k) + pairs[row].bounds_b.pivot, _ZERO)
    nearest = before
    time = tau
    steps = int(0)
    going = bool(True)
    while going:
        steps += 1
        now = relative_at(arrays, row, time)
        at = placed(now, b)
        n = gap_vector(a, at)
        length = wp.length(n)
        n = n / wp.max(length, _TINY)
        gap = gap_along(a, at, n)
        keep = LONGEST * (_ONE - accuracy) * nearest.upper + pairs[row].slack
        if length < nearest.upper or not gap > keep:
            features = closest_features(a, at)
            apart = wp.sqrt(features.squared) + pairs[row].slack
            if apart < nearest.upper:
                nearest.upper = apart
                nearest.time = reparametrised_time(arrays.queries[row].smooth, time)
                nearest.query = row
                nearest.a = triangle_a
                nearest.b = triangle_b
                keep = LONGEST * (_ONE - accuracy) * nearest.upper + pairs[row].slack
            n = best_direction(a, at, features)
            gap = gap_along(a, at, n)
        if not gap > keep or nearest.upper <= pairs[row].tolerance or steps >= MOST_STEPS:
            nearest.certified = False
            going = False
        else:
            h = longest_step(now, pairs, row, a, at, n, rho_a, rho_b, keep)
            if time + h <= _ONE:
                rate = rate_bound(now, pairs, row, n, wp.max(rho_a), wp.max(rho_b))
                h = wp.max(h, largest_safe_step(gap - keep, rate, _ZERO))
            if not time + h > time:
                nearest.certified = False
                going = False
            time += h
            if time > _ONE:
                going = False
    return nearest


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
        keep = LONGEST * (_ONE - accuracy) * nearest.upper + pairs[row].slack
        if a.right < 0 and b.right < 0:
            triangle_a = corners_of(arrays.corners_a, query.triangle_a + a.triangle, pairs[row].bounds_a.pivot)
            triangle_b = corners_of(arrays.corners_b, query.triangle_b + b.triangle, pairs[row].bounds_b.pivot)
            nearest = approach_of_triangles(
                arrays,
                row,
                triangle_a,
                triangle_b,
                a.triangle,
                b.triangle,
                item.time,
                accuracy,
                nearest,
            )
            if stop and nearest.time >= _ZERO:
                nearest.certified = False
        else:
            if item.time != instant:
                instant = item.time
                now = relative_at(arrays, row, instant)
            back_a = wp.transpose(box_axes(a))
            safe = safe_time(now, pairs, row, keep, back_a, a, b, instant, _ONE)
            if safe[1] > instant and not safe[1] > _ONE:
                instant = safe[1]
                now = relative_at(arrays, row, instant)
                safe = safe_time(now, pairs, row, keep, back_a, a, b, instant, _ONE)
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
    row = begin[job]
    while row < begin[job + 1] and nearest.certified:
        nearest = approach_of_query(arrays, row, accuracy, stop, job * room, stack, nearest)
        row += 1
    found[job] = nearest


@wp.kernel
def lower_by_triangles(
    first: int,
    arrays: QueryArrays,
    rows: wp.array[wp.int32],
    triangles: wp.array[wp.vec2i],
    found: wp.array[NearestApproach],
):
    """Lower what is known of a group by two triangles of the query rows[job], at both ends of its step; -1: by none."""
    job = first + wp.tid()
    row = rows[job]
    if row < 0:
        return
    query = arrays.queries[row]
    pairs = arrays.pairs
    nearest = found[job]
    a = corners_of(arrays.corners_a, query.triangle_a + triangles[job][0], pairs[row].bounds_a.pivot)
    b = corners_of(arrays.corners_b, query.triangle_b + triangles[job][1], pairs[row].bounds_b.pivot)
    for k in range(2):
        at = placed(relative_at(arrays, row, wp.float64(k)), b)
        apart = wp.sqrt(closest_features(a, at).squared) + pairs[row].slack
        if apart < nearest.upper:
            nearest.upper = apart
            nearest.time = wp.float64(k)
            nearest.query = row
            nearest.a = triangles[job][0]
            nearest.b = triangles[job][1]
    found[job] = nearest

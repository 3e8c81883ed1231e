"""How far two boxes of moving bodies can safely be moved on: the certified step all of the search is made of.

Question: until when do two boxes certainly stay more than separation + tolerance / 2 apart?
Method:   the gap along a fixed direction n is at least g - a h - b h^2 after a time h: a from the velocities at the
          instant, b from bounds of the accelerations; or g - a1 h from bounds of the velocities. Step to the root of
          whichever reaches further (`tangere.motion.bounds`). What spins fast is also taken as the ball it stays in,
          whose spin does not matter.
Sound:    each step starts from an evaluated gap less what must be left of it, and less the rounding error of positions.
Known as: conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006), with a bound of second order in time; the
          directions are those of the separating axis theorem (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import ObbNode, box_axes, box_centre, box_half
from tangere.geometry.obb import LONGEST, Separation, nearest_separation_of, separation_of, support
from tangere.motion import RigidMotion
from tangere.motion.bounds import (
    BodyState,
    MotionBounds,
    SteadyMotion,
    is_steady,
    motion_bounds_of,
    state_of,
    steady_of,
    steady_state,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: A tolerance below this part of the query's size drowns in rounding.
LEAST_TOLERANCE = wp.constant(wp.float64(1.0e-12))
#: Positions are exact to this part of the query's size: 64 roundings.
_ROUNDING = wp.constant(wp.float64(64.0 * 2.0**-53))
#: A box pair is evaluated again while its gap is this part of the smaller radius, so many times.
_WORTH_REPEATING = wp.constant(wp.float64(0.5))
EVALUATIONS = wp.constant(4)
#: Balls are worth their cost from this angular speed on, per unit of the clock, or where points go round so many times
#: as far as the body itself goes.
_FAST = wp.constant(wp.float64(12.0))
_IN_PLACE = wp.constant(wp.float64(30.0))

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
_FOUR = wp.constant(wp.float64(4.0))
_NEVER = wp.constant(wp.float64(1.0e30))
_TINY = wp.constant(wp.float64(1.0e-300))


@wp.struct
class RigidQuery:
    """One question: which parts of the arrays are the two bodies, how do they move, how near is contact."""

    node_a: wp.int32  #: root of a's tree
    node_b: wp.int32
    wide_a: wp.int32  #: first node of a's tree of four children a node, on CPUs
    wide_b: wp.int32
    triangle_a: wp.int32  #: first triangle of a
    triangle_b: wp.int32
    motion_a: wp.int32  #: first of the motions whose product moves a
    motion_b: wp.int32
    links_a: wp.int32  #: how many they are
    links_b: wp.int32
    recession: wp.bool  #: drop what moves away, see `culling`
    smooth: wp.bool  #: which clock, see `tangere.motion.bounds`
    separation: wp.float64  #: [m]
    tolerance: wp.float64  #: [m]


@wp.struct
class Pair:
    """What is the same for the whole query."""

    bounds_a: MotionBounds
    bounds_b: MotionBounds
    steady_a: SteadyMotion
    steady_b: SteadyMotion
    steady: wp.bool  #: both motions are at constant rates: their states are those of the two above
    a_moves: wp.bool
    spins: wp.bool  #: so much that balls are worth their cost
    separation: wp.float64
    tolerance: wp.float64  #: wanted, or the least that can be kept
    slack: wp.float64  #: rounding error of a gap
    keep: wp.float64  #: boxes are moved on as far as this is left along a direction
    size: wp.float64  #: of the whole scene, with the ways in it
    speed: wp.float64  #: no point turns faster


@wp.struct
class QueryArrays:
    """A batch of queries, and what they refer to: motions, and the trees and triangles of both sides."""

    queries: wp.array[RigidQuery]
    pairs: wp.array[Pair]  #: of the queries, written by `prepare_pairs`
    motions: wp.array[RigidMotion]
    nodes_a: wp.array[ObbNode]
    corners_a: wp.array[wp.vec3d]
    nodes_b: wp.array[ObbNode]
    corners_b: wp.array[wp.vec3d]


@wp.struct
class Relative:
    """Both bodies at one instant, in a frame fixed to the world that lies now as a's does; its origin is a's pivot."""

    rotation: wp.mat33d  #: of b
    point: wp.vec3d  #: where b's pivot is
    linear: wp.vec3d  #: velocity of b's pivot less that of a's
    angular_a: wp.vec3d
    angular_b: wp.vec3d
    axis_a: wp.vec3d
    axis_b: wp.vec3d
    drift: wp.vec3d  #: of b less that of a


@wp.struct
class PlacedBoxes:
    """Two boxes in the frame of `Relative`, from a's pivot."""

    half_a: wp.vec3d
    half_b: wp.vec3d
    arm_a: wp.vec3d  #: from the pivot of its body to the centre
    arm_b: wp.vec3d
    axes_b: wp.mat33d
    offset: wp.vec3d  #: from the centre of a to that of b, along the axes of a
    cosines: wp.mat33d  #: [i, j]: axis i of a times axis j of b


@wp.func
def pair_of(query: RigidQuery, arrays: QueryArrays) -> Pair:
    """Bounds of both motions, and the rounding error they bring."""
    pair = Pair()
    pair.bounds_a = motion_bounds_of(arrays.motions, query.motion_a, query.links_a, query.smooth)
    pair.bounds_b = motion_bounds_of(arrays.motions, query.motion_b, query.links_b, query.smooth)
    a = pair.bounds_a
    b = pair.bounds_b
    pair.a_moves = a.spin > _ZERO or a.acceleration > _ZERO or a.swing > _ZERO or wp.length_sq(a.drift) > _ZERO
    # Links turn by at most half a turn in a chain, but a twist may spin: angles lose digits with every turn.
    root_a = arrays.nodes_a[query.node_a]
    root_b = arrays.nodes_b[query.node_b]
    radius_a = wp.length(box_centre(root_a) - a.pivot) + wp.float64(root_a.radius)
    radius_b = wp.length(box_centre(root_b) - b.pivot) + wp.float64(root_b.radius)
    along = wp.length(b.drift - a.drift) + a.swing + b.swing
    pair.speed = a.spin * radius_a + b.spin * radius_b
    pair.spins = a.spin + b.spin > _FAST or pair.speed > _IN_PLACE * along
    size_a = a.path + wp.length(a.drift) + a.swing + (_ONE + a.spin) * (radius_a + wp.length(a.pivot))
    size_b = b.path + wp.length(b.drift) + b.swing + (_ONE + b.spin) * (radius_b + wp.length(b.pivot))
    pair.size = size_a + size_b + query.separation
    pair.slack = _ROUNDING * pair.size
    pair.separation = query.separation
    pair.tolerance = wp.max(query.tolerance, LEAST_TOLERANCE * pair.size)
    pair.keep = LONGEST * (pair.separation + _HALF * pair.tolerance) + pair.slack
    first_a = arrays.motions[query.motion_a]
    first_b = arrays.motions[query.motion_b]
    pair.steady = not query.smooth and query.links_a == 1 and query.links_b == 1
    pair.steady = pair.steady and is_steady(first_a) and is_steady(first_b)
    if pair.steady:
        pair.steady_a = steady_of(first_a)
        pair.steady_b = steady_of(first_b)
    return pair


@wp.func
def relative_at(arrays: QueryArrays, row: int, tau: wp.float64) -> Relative:
    """Both bodies at tau."""
    a = BodyState()
    b = BodyState()
    if arrays.pairs[row].steady:
        a = steady_state(arrays.pairs[row].steady_a, tau)
        b = steady_state(arrays.pairs[row].steady_b, tau)
    else:
        query = arrays.queries[row]
        b = state_of(arrays.motions, query.motion_b, query.links_b, query.smooth, tau)
        # A body at rest is the same at any time, and at 0 no angle is turned: no sines.
        still = wp.where(arrays.pairs[row].a_moves, tau, _ZERO)
        a = state_of(arrays.motions, query.motion_a, query.links_a, query.smooth, still)
    back = wp.transpose(a.rotation)
    result = Relative()
    result.rotation = back * b.rotation
    result.point = back * (b.point - a.point)
    result.linear = back * (b.linear - a.linear)
    result.angular_a = back * a.angular
    result.angular_b = back * b.angular
    # A fixed axis is the same in the body's frame at every instant.
    result.axis_a = arrays.pairs[row].bounds_a.axis
    result.axis_b = result.rotation * arrays.pairs[row].bounds_b.axis
    result.drift = back * (arrays.pairs[row].bounds_b.drift - arrays.pairs[row].bounds_a.drift)
    return result


@wp.func
def largest_safe_step(gap: wp.float64, a: wp.float64, b: wp.float64) -> wp.float64:
    """The first h > 0 with gap - a h - b h^2 = 0, for gap > 0 and b >= 0.

    Two forms: the first one alone cancels where a < 0 and may come out too long.
    """
    h = _NEVER
    root = wp.sqrt(a * a + _FOUR * b * gap)
    if a > _ZERO:
        h = _TWO * gap / (a + root)
    elif b > _TINY:
        h = (root - a) / (_TWO * b)
    return h


@wp.func
def radius_about(bounds: MotionBounds, centre: wp.vec3d, radius: wp.float64) -> wp.float64:
    """The largest distance of the points of a ball, in the body's frame, to the axis of its turns."""
    arm = centre - bounds.pivot
    distance = wp.length(arm)
    if bounds.fixed_axis:
        distance = wp.length(wp.cross(arm, bounds.axis))
    return distance + radius


@wp.func
def rate_bound(
    now: Relative, pairs: wp.array[Pair], row: int, n: wp.vec3d, rho_a: wp.float64, rho_b: wp.float64
) -> wp.float64:
    """How fast a gap along n can close at any time of the step, for points at most rho from the axes."""
    rate = LONGEST * (pairs[row].bounds_a.swing + pairs[row].bounds_b.swing) - wp.dot(n, now.drift)
    across_b = LONGEST
    if pairs[row].bounds_b.fixed_axis:
        across_b = wp.length(wp.cross(n, now.axis_b))
    rate += across_b * pairs[row].bounds_b.spin * rho_b
    if pairs[row].a_moves:
        across_a = LONGEST
        if pairs[row].bounds_a.fixed_axis:
            across_a = wp.length(wp.cross(n, now.axis_a))
        rate += across_a * pairs[row].bounds_a.spin * rho_a
    return rate


@wp.func
def closing_bound(pairs: wp.array[Pair], row: int, rho_a: wp.float64, rho_b: wp.float64) -> wp.float64:
    """b of the second-order bound: half of the largest accelerations."""
    bend = pairs[row].bounds_b.acceleration + pairs[row].bounds_b.turn * rho_b
    bend += pairs[row].bounds_a.acceleration + pairs[row].bounds_a.turn * rho_a
    return _HALF * LONGEST * bend


@wp.func
def distance_to_box(along: wp.vec3d, half: wp.vec3d) -> wp.float64:
    """No more than the distance from the origin to a box whose centre has coordinates `along` on the box's axes."""
    beyond = wp.max(wp.abs(along) - half, wp.vec3d(_ZERO, _ZERO, _ZERO))
    return wp.length(beyond) / LONGEST


@wp.func
def ball_of_box(along: wp.vec3d, half: wp.vec3d) -> wp.float64:
    """No less than the distance from the origin to the farthest corner of a box; see `distance_to_box`."""
    return wp.length(wp.abs(along) + half) * LONGEST


@wp.func
def step_of_balls(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
    keep: wp.float64,
    from_a: wp.float64,
    from_b: wp.float64,
    ball_a: wp.float64,
    ball_b: wp.float64,
    rho_a: wp.float64,
    rho_b: wp.float64,
) -> wp.float64:
    """How long boxes stay apart if one of them, or both, may be turned about their pivots at will.

    from_a: distance of a's pivot to b's box; ball_a: radius of the ball about a's pivot that holds a's box; rho_a:
    distance of a's box to the axis of a's turns.
    """
    rate = LONGEST * (wp.length(now.drift) + pairs[row].bounds_a.swing + pairs[row].bounds_b.swing)
    h = _ZERO
    gap = from_a - ball_a - keep
    if gap > _ZERO:
        h = largest_safe_step(gap, rate + LONGEST * pairs[row].bounds_b.spin * rho_b, _ZERO)
    gap = from_b - ball_b - keep
    if gap > _ZERO:
        h = wp.max(h, largest_safe_step(gap, rate + LONGEST * pairs[row].bounds_a.spin * rho_a, _ZERO))
    gap = wp.length(now.point) - ball_a - ball_b - keep
    if gap > _ZERO:
        h = wp.max(h, largest_safe_step(gap, rate, _ZERO))
    return h


@wp.func
def safe_time(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
    keep: wp.float64,
    back_a: wp.mat33d,
    a: ObbNode,
    b: ObbNode,
    tau: wp.float64,
    until: wp.float64,
) -> wp.vec2d:
    """(gap, time until which the boxes stay apart) of two boxes at tau; gap <= 0: they are not apart.

    Args:
        keep: what must be left of a gap.
    """
    placed = placed_boxes(now, pairs, row, back_a, a, b)
    apart = separation_of(placed.offset, placed.cosines, placed.half_a, placed.half_b)
    return safe_time_along(now, pairs, row, keep, back_a, a, b, placed, apart, tau, until)


@wp.func
def safe_time_of_nearest(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
    keep: wp.float64,
    back_a: wp.mat33d,
    a: ObbNode,
    b: ObbNode,
    tau: wp.float64,
    until: wp.float64,
) -> wp.vec2d:
    """`safe_time` along the way between the nearest points, which is longer: for what is to stay far apart."""
    placed = placed_boxes(now, pairs, row, back_a, a, b)
    apart = nearest_separation_of(placed.offset, placed.cosines, placed.half_a, placed.half_b)
    return safe_time_along(now, pairs, row, keep, back_a, a, b, placed, apart, tau, until)


@wp.func
def placed_boxes(
    now: Relative, pairs: wp.array[Pair], row: int, back_a: wp.mat33d, a: ObbNode, b: ObbNode
) -> PlacedBoxes:
    """Two boxes where the bodies are now."""
    placed = PlacedBoxes()
    placed.half_a = box_half(a)
    placed.half_b = box_half(b)
    placed.arm_a = box_centre(a) - pairs[row].bounds_a.pivot
    placed.arm_b = now.rotation * (box_centre(b) - pairs[row].bounds_b.pivot)
    placed.axes_b = now.rotation * box_axes(b)
    placed.offset = back_a * (now.point + placed.arm_b - placed.arm_a)
    placed.cosines = back_a * placed.axes_b
    return placed


@wp.func
def safe_time_along(
    now: Relative,
    pairs: wp.array[Pair],
    row: int,
    keep: wp.float64,
    back_a: wp.mat33d,
    a: ObbNode,
    b: ObbNode,
    placed: PlacedBoxes,
    apart: Separation,
    tau: wp.float64,
    until: wp.float64,
) -> wp.vec2d:
    """`safe_time` by the gap along a direction."""
    gap = apart.gap - keep
    time = tau
    if gap > _ZERO:
        n = apart.direction * back_a
        rho_b = radius_about(pairs[row].bounds_b, box_centre(b), wp.float64(b.radius))
        rho_a = _ZERO
        across = wp.cross(n, now.angular_b)
        rate = support(placed.half_b, placed.axes_b, across) - wp.dot(n, now.linear) - wp.dot(placed.arm_b, across)
        if pairs[row].a_moves:
            rho_a = radius_about(pairs[row].bounds_a, box_centre(a), wp.float64(a.radius))
            across = wp.cross(n, now.angular_a)
            rate += support(placed.half_a, wp.transpose(back_a), across) + wp.dot(placed.arm_a, across)
        h = largest_safe_step(gap, rate, closing_bound(pairs, row, rho_a, rho_b))
        if tau + h <= until:  # else it is dropped anyway
            h = wp.max(h, largest_safe_step(gap, rate_bound(now, pairs, row, n, rho_a, rho_b), _ZERO))
            if pairs[row].spins:
                from_a = distance_to_box((now.point + placed.arm_b) * placed.axes_b, placed.half_b)
                from_b = distance_to_box(back_a * (placed.arm_a - now.point), placed.half_a)
                ball_a = ball_of_box(back_a * placed.arm_a, placed.half_a)
                ball_b = ball_of_box(placed.arm_b * placed.axes_b, placed.half_b)
                h = wp.max(h, step_of_balls(now, pairs, row, keep, from_a, from_b, ball_a, ball_b, rho_a, rho_b))
        if h > _ZERO:  # and not NaN
            time = tau + h
    return wp.vec2d(gap, time)


@wp.func
def worth_repeating(result: wp.vec2d, a: ObbNode, b: ObbNode, until: wp.float64) -> bool:
    """Whether boxes that have moved on, as `safe_time` tells it, are evaluated again."""
    return result[0] >= _WORTH_REPEATING * wp.float64(wp.min(a.radius, b.radius)) and result[1] <= until


@wp.func
def conservative_advance(
    arrays: QueryArrays,
    row: int,
    a: ObbNode,
    b: ObbNode,
    now: Relative,
    tau: wp.float64,
    until: wp.float64,
    counters: wp.array2d[wp.int64],
    job: int,
) -> wp.float64:
    """A time until which two boxes certainly stay apart, >= tau; the bodies are `now` at tau."""
    back_a = wp.transpose(box_axes(a))
    # The first evaluation stands outside the loop, which is seldom entered: a quarter of the time of all searches.
    keep = arrays.pairs[row].keep
    result = safe_time(now, arrays.pairs, row, keep, back_a, a, b, tau, until)
    count = int(1)
    while worth_repeating(result, a, b, until) and count < EVALUATIONS:
        now = relative_at(arrays, row, result[1])
        result = safe_time(now, arrays.pairs, row, keep, back_a, a, b, result[1], until)
        count += 1
    if counters.shape[0] > 0:
        counters[job, 0] = counters[job, 0] + wp.int64(count)
    return result[1]


@wp.kernel
def prepare_pairs(first: int, arrays: QueryArrays):
    """What stays the same for each whole query."""
    i = first + wp.tid()
    arrays.pairs[i] = pair_of(arrays.queries[i], arrays)

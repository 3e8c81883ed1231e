"""What touches where: the contact record of triangle pairs at a time, and by when contact is certain.

Method:   nearest features at the time by the careful closest-point functions; the normal goes from b's point to a's;
          where they coincide it comes from the faces. Contact is certain once the two triangles pierce each other by
          more than rounding, or are nearer than `separation`: times after the first contact are tried in growing steps.
"""

from __future__ import annotations

import warp as wp

from tangere.bound.obb_node import ObbNode
from tangere.motion.course import BodyState, clock_time, state_of
from tangere.motion.rigid import RigidMotion
from tangere.query.first_contact.rigid.advance import Pair, RigidQuery, pair_of, relative_at
from tangere.query.first_contact.rigid.leaf import corners_of, placed
from tangere.query.first_contact.rigid.search import MEETS, Best
from tangere.query.first_contact.rigid.triangle_gap import (
    Features,
    Triangle,
    closest_features,
    corner,
    pierce,
    triangle_edge,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["Touch", "describe", "touch_of"]

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_NEVER = wp.constant(wp.float64(wp.inf))
#: The first of the times after a contact at which it is tried whether it has become certain, and how they grow.
_FIRST_TRIAL = wp.constant(wp.float64(1.0e-10))
_GROWTH = wp.constant(wp.float64(4.0))
#: Points nearer than this part of the query's size give no direction.
_NO_DIRECTION = wp.constant(wp.float64(1.0e-13))


@wp.struct
class Touch:
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
    kind: wp.int32  #: as `Features`; 3 for an edge through a face
    feature_a: wp.int32
    feature_b: wp.int32
    decided: wp.bool


@wp.kernel
def describe(
    first: int,
    queries: wp.array[RigidQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    bests: wp.array[Best],
    touches: wp.array[Touch],
):
    i = first + wp.tid()
    query = queries[i]
    best = bests[i]
    pair = pair_of(query, motions, nodes_a, nodes_b)
    touch = Touch()
    touch.time = _NEVER
    touch.time_upper = _NEVER
    if best.time <= _ONE:
        a = corners_of(corners_a, query.triangle_a + best.a, pair.course_a.pivot)
        b = corners_of(corners_b, query.triangle_b + best.b, pair.course_b.pivot)
        now = relative_at(query, pair, motions, best.time)
        at = placed(now, b)
        features = closest_features(a, at)
        if best.pierced >= 0 and best.pierced < MEETS:
            features = through(a, at, best.pierced)
        frame = state_of(motions, query.motion_a, query.links_a, query.smooth, best.time)
        touch = touch_of(frame, pair, a, at, features)
        touch.time = clock_time(query.smooth, best.time)
        touch.time_upper = certain_time(query, pair, motions, a, b, best)
        touch.triangle_a = best.a
        touch.triangle_b = best.b
        touch.decided = best.decided
    touch.query = i
    touch.tolerance = pair.tolerance
    touches[i] = touch


@wp.func
def certain_time(
    query: RigidQuery, pair: Pair, motions: wp.array[RigidMotion], a: Triangle, b: Triangle, best: Best
) -> wp.float64:
    """A time of the step by which the triangles certainly touch, inf where none was found."""
    certain = _NEVER
    tau = wp.float64(best.time)
    step = _FIRST_TRIAL + _ZERO
    going = bool(True)
    if best.pierced >= 0:
        certain = _ZERO
        going = False
    while going:
        at = placed(relative_at(query, pair, motions, tau), b)
        inside = pierce(a, at, pair.slack) >= 0
        if pair.separation > _ZERO and not inside:
            nearest = closest_features(a, at)
            inside = wp.sqrt(nearest.squared) + pair.slack <= pair.separation
        if inside:
            certain = clock_time(query.smooth, tau)
        going = not inside and tau < _ONE
        tau = wp.min(best.time + step, _ONE)
        step *= _GROWTH
    return certain


@wp.func
def through(a: Triangle, b: Triangle, side: int) -> Features:
    """The edge that goes through the other face, and the point where."""
    p = corner(a, side % 3)
    q = corner(a, (side + 1) % 3)
    face = b
    result = Features()
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
def touch_of(frame: BodyState, pair: Pair, a: Triangle, b: Triangle, features: Features) -> Touch:
    """The record of two features; triangles and points are in a's frame, seen from its pivot, `frame` places them."""
    apart = features.point_a - features.point_b
    normal = outward(a, b, features)
    if wp.length(apart) > _NO_DIRECTION * pair.size:
        normal = wp.normalize(apart)
    touch = Touch()
    touch.point_a = frame.point + frame.rotation * features.point_a
    touch.point_b = frame.point + frame.rotation * features.point_b
    touch.normal = frame.rotation * normal
    touch.gap = wp.dot(apart, normal)
    touch.weights = features.weights
    touch.kind = features.kind
    touch.feature_a = features.feature_a
    touch.feature_b = features.feature_b
    return touch


@wp.func
def outward(a: Triangle, b: Triangle, features: Features) -> wp.vec3d:
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

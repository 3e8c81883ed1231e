"""A body on the last of a row of motions: each motion carries the frame the next one moves in.

A free body has a row of one; a link of an articulated chain has one for each joint up to the ground, and its bounds are
products of intervals down the row (Redon 2002, section 3.2).
"""

from __future__ import annotations

import warp as wp

from tangere.motion import RigidMotion, RigidPose, pose_at
from tangere.motion.bounds import (
    IntervalBox,
    MotionSpan,
    point_bounds,
    point_box_bounds,
    span_of,
    vector_bounds,
    vector_box_bounds,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class MotionRow:
    """The motions first, …, last - 1 of an array; the body is fixed to the last of them."""

    first: int
    last: int


@wp.func
def last_span(motions: wp.array[RigidMotion], row: MotionRow, t0: wp.float64, t1: wp.float64) -> MotionSpan:
    return span_of(motions[row.last - 1], t0, t1)


@wp.func
def point_bounds_over(
    motions: wp.array[RigidMotion], row: MotionRow, span: MotionSpan, t0: wp.float64, t1: wp.float64, p: wp.vec3d
) -> IntervalBox:
    """Bounds of the body's point p over [t0, t1], world; `span` is that of the last motion."""
    bounds = point_bounds(span, p)
    k = row.last - 2
    while k >= row.first:
        bounds = point_box_bounds(span_of(motions[k], t0, t1), bounds)
        k -= 1
    return bounds


@wp.func
def vector_bounds_over(
    motions: wp.array[RigidMotion], row: MotionRow, span: MotionSpan, t0: wp.float64, t1: wp.float64, v: wp.vec3d
) -> IntervalBox:
    """Bounds of the body's vector v over [t0, t1], world; `span` is that of the last motion."""
    bounds = vector_bounds(span, v)
    k = row.last - 2
    while k >= row.first:
        bounds = vector_box_bounds(span_of(motions[k], t0, t1), bounds)
        k -= 1
    return bounds


@wp.func
def pose_now(motions: wp.array[RigidMotion], row: MotionRow, t: wp.float64) -> RigidPose:
    """Where the body is at time t."""
    pose = pose_at(motions[row.last - 1], t)
    k = row.last - 2
    while k >= row.first:
        outer = pose_at(motions[k], t)
        pose.translation = outer.translation + outer.rotation * pose.translation
        pose.rotation = outer.rotation * pose.rotation
        k -= 1
    return pose

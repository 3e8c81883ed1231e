"""Does a part of a body recede from another body: at an instant, and during a whole step?

Method: seen from body i, points p of it move relative to body j with linear + angular x p (4.2), an affine field, so
        its largest component along a recession vector over a box or a ball has a closed form; it equals the largest
        over the characteristic points of (4.9) (Redon 2002, sections 4.2 and 4.3).
Step:   the field in the frame of i changes by at most `field_drift` per unit of time, which is added for the rest of
        the step. A screw against a body at rest does not change it at all: there the test at one instant is the test
        for all times, exactly.
Sound:  strict, with a margin far above rounding and above what cones may miss (1e-9 of the speed). Triangles, boxes
        and balls that pass cannot be part of the first contact of closed, outward facing, initially disjoint bodies.
Known as: hierarchical back-face culling for collision detection (Redon, Kheddar and Coquillart 2002).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb.node import ObbNode, box_axes, box_centre, box_half
from tangere.motion import STEADY, RigidMotion, pose_at, velocity_at
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: What recedes by less than this part of its speed does not count as receding.
MARGIN = wp.constant(wp.float64(1.0e-9))

_ZERO = wp.constant(wp.float64(0.0))
_ENDLESS = wp.constant(wp.float64(1.0e300))


@wp.struct
class VelocityField:
    """A point p of body i moves relative to body j with linear + angular x p, in the frame of i."""

    linear: wp.vec3d
    angular: wp.vec3d


@wp.func
def field_at(motion: RigidMotion, other: RigidMotion, t: wp.float64) -> VelocityField:
    """How points of the body move relative to the other one at time t, in the frame of the body."""
    pose = pose_at(motion, t)
    mine = velocity_at(motion, t)
    theirs = velocity_at(other, t)
    turning = mine.angular - theirs.angular
    linear = (mine.linear - wp.cross(mine.angular, mine.point)) - (
        theirs.linear - wp.cross(theirs.angular, theirs.point)
    )
    field = VelocityField()
    field.linear = wp.transpose(pose.rotation) * (linear + wp.cross(turning, pose.translation))
    field.angular = wp.transpose(pose.rotation) * turning
    return field


@wp.func
def field_drift(motion: RigidMotion, other: RigidMotion, reach: wp.float64) -> wp.float64:
    """How fast the velocity of any point in the field can change, per unit of time; 0 for a screw against rest.

    With x the point, V its velocities in both bodies and c their pivots, the change seen from body i is
    (c_i'' - w_i x c_i') - (c_j'' - w_j x c_j') + w_i x V_j - w_j x V_i; for steady motions a bracket is
    minus w x velocity.

    Args:
        reach: bound of the distance of the body's points from the pivots of both bodies [m].
    """
    if motion.kind != STEADY or other.kind != STEADY:
        return _ENDLESS
    turn = motion.angle * motion.span
    other_turn = other.angle * other.span
    drift = turn * motion.span * wp.length(wp.cross(motion.axis, motion.velocity))
    drift += other_turn * other.span * wp.length(wp.cross(other.axis, other.velocity))
    speed = motion.span * (wp.length(motion.velocity) + wp.length(motion.arc)) + turn * reach
    other_speed = other.span * (wp.length(other.velocity) + wp.length(other.arc)) + other_turn * reach
    if other_turn > _ZERO:
        drift += other_turn * speed
    if turn > _ZERO and other_speed > _ZERO:
        drift += turn * other_speed
    return drift


@wp.func
def box_recedes(
    node: ObbNode, first: int, last: int, vectors: wp.array[wp.vec3d], field: VelocityField, change: wp.float64
) -> bool:
    """Whether a box moves against all recession vectors first … last - 1, its own; never if there are none.

    Args:
        change: what velocities may have changed by at the end of the time that is meant; 0 for an instant.
    """
    if last <= first:
        return False
    centre = box_centre(node)
    half = box_half(node)
    axes = wp.transpose(box_axes(node))
    velocity = field.linear + wp.cross(field.angular, centre)
    far = wp.length(centre) + wp.float64(node.radius)
    allowed = -change - MARGIN * (wp.length(field.linear) + wp.length(field.angular) * far)
    for i in range(first, last):
        n = vectors[i]
        spread = axes * wp.cross(n, field.angular)
        if not (wp.dot(velocity, n) + wp.dot(wp.abs(spread), half) < allowed):
            return False
    return True

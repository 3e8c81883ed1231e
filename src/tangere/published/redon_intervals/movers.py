"""Rows of motions as the interval tests of boxes look at them: once for a query, and at single instants."""

from __future__ import annotations

import warp as wp

from tangere.motion.kinematics import RigidMotion, RigidPose, pose_at, velocity_at
from tangere.query.first_contact.mixed.motion_chain import MotionRow, pose_now
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)


@wp.struct
class Mover:
    """A row of motions, and the pose if it is at rest."""

    row: MotionRow
    rests: int
    pose: RigidPose


@wp.struct
class PointState:
    """A point's place and velocity, and its body's rotation and angular speed, at one instant; world, per unit of t."""

    place: wp.vec3d
    velocity: wp.vec3d
    rotation: wp.mat33d
    spin: wp.float64


@wp.func
def mover_of(motions: wp.array[RigidMotion], row: MotionRow) -> Mover:
    """A row of motions, looked at once for all tests of a query."""
    zero = wp.float64(0.0)
    m = motions[row.first]
    mover = Mover()
    mover.row = row
    still = m.angle == zero and wp.length_sq(m.velocity) == zero and wp.length_sq(m.arc) == zero
    mover.rests = int(row.last - row.first == 1 and still)
    mover.pose = pose_now(motions, row, zero)
    return mover


@wp.func
def state_now(motions: wp.array[RigidMotion], row: MotionRow, t: wp.float64, p: wp.vec3d) -> PointState:
    """Place and velocity of the body's point p at time t."""
    state = PointState()
    state.place = p
    state.velocity = wp.vec3d(wp.float64(0.0))
    state.spin = wp.float64(0.0)
    state.rotation = wp.identity(3, dtype=wp.float64)
    k = row.last - 1
    while k >= row.first:
        pose = pose_at(motions[k], t)
        v = velocity_at(motions[k], t)
        place = pose.translation + pose.rotation * state.place
        state.velocity = pose.rotation * state.velocity + v.linear + wp.cross(v.angular, place - v.point)
        state.place = place
        state.rotation = pose.rotation * state.rotation
        state.spin += wp.length(v.angular)
        k -= 1
    return state

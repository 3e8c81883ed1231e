"""The formulas of joint rows: jacobians, errors and second-order terms, one row an index."""

from __future__ import annotations

import warp as wp

from tangere.dynamics.rotations import rotation_vector
from tangere.dynamics.solver import JointRowArrays, contact_frame, vec6d
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, at_point, joined
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Types of rows: points together along a world axis; a point on a line; axes aligned; no turn; a distance; a limit; a
#: motor; an axis of the world held; a pull.
POINT, WAY, ALIGN, ANGLE, DISTANCE, LIMIT, MOTOR, HELD, PULL = range(9)
_POINT, _WAY, _ALIGN, _ANGLE, _DISTANCE = (wp.constant(k) for k in (POINT, WAY, ALIGN, ANGLE, DISTANCE))
_LIMIT, _MOTOR, _HELD, _PULL = (wp.constant(k) for k in (LIMIT, MOTOR, HELD, PULL))

#: Of an error: how much is moved back in one step.
CORRECTION = wp.constant(wp.float64(0.5))
LOWEST, HIGHEST = wp.constant(wp.float64(float("-inf"))), wp.constant(wp.float64(float("inf")))


@wp.struct
class JointTable:
    """Rows: their type, of which joint, body or pull, and along which axis. Then joints, then pulls."""

    type: wp.array[int]
    item: wp.array[int]
    axis: wp.array[int]
    body_a: wp.array[int]
    body_b: wp.array[int]  # -1: the world
    anchor_a: wp.array[wp.vec3d]  # from the centre of mass, in the mesh's axes
    anchor_b: wp.array[wp.vec3d]  # so too, or in the world
    axis_a: wp.array[wp.vec3d]
    axis_b: wp.array[wp.vec3d]
    relative: wp.array[wp.mat33d]
    length: wp.array[wp.float64]
    slides: wp.array[int]
    lower: wp.array[wp.float64]
    upper: wp.array[wp.float64]
    speed: wp.array[wp.float64]
    least_force: wp.array[wp.float64]
    most_force: wp.array[wp.float64]
    pull_body: wp.array[int]
    pull_point: wp.array[wp.vec3d]
    pull_to: wp.array[wp.vec3d]
    pull_stiffness: wp.array[wp.float64]


@wp.struct
class Side:
    """A body at a joint."""

    position: wp.vec3d  # of the centre of mass
    rotation: wp.mat33d
    arm: wp.vec3d  # to the joint's point on it
    axis: wp.vec3d
    velocity: vec6d


@wp.func
def side_of(body: int, anchor: wp.vec3d, axis: wp.vec3d, state: RigidState, free: wp.array[vec6d]) -> Side:
    side = Side()
    side.rotation = wp.identity(n=3, dtype=wp.float64)
    side.position = wp.vec3d()
    side.velocity = vec6d()
    if body >= 0:
        side.rotation = state.rotation[body]
        side.position = state.position[body]
        side.velocity = free[body]
    side.arm = side.rotation * anchor
    side.axis = side.rotation * axis
    return side


@wp.func
def unit(k: int) -> wp.vec3d:
    axis = wp.vec3d()
    axis[k] = wp.float64(1.0)
    return axis


@wp.func
def coordinate(data: JointTable, j: int, state: RigidState, free: wp.array[vec6d], last: wp.float64) -> wp.float64:
    """The angle of a hinge, unwound from the last one, or the way of a slider."""
    a = side_of(data.body_a[j], data.anchor_a[j], data.axis_a[j], state, free)
    b = side_of(data.body_b[j], data.anchor_b[j], data.axis_b[j], state, free)
    if data.slides[j] == 1:
        return wp.dot(a.position + a.arm - b.position - b.arm, b.axis)
    # twist of the relative rotation about the axis
    rotation = a.rotation * wp.transpose(data.relative[j]) * wp.transpose(b.rotation)
    frame = contact_frame(b.axis)
    t = wp.vec3d(frame[1, 0], frame[1, 1], frame[1, 2])
    moved = rotation * t
    angle = wp.atan2(wp.dot(wp.cross(t, moved), b.axis), wp.dot(t, moved))
    turn = wp.float64(6.283185307179586)
    return angle + turn * wp.round((last - angle) / turn)


@wp.kernel
def make_joint_rows(
    first: int,
    data: JointTable,
    table: BodyConstants,
    state: RigidState,
    free: wp.array[vec6d],
    angles: wp.array[wp.float64],
    step: wp.array[wp.float64],
    rows: JointRowArrays,
    error: wp.array[wp.float64],
):
    i = first + wp.tid()
    dt = step[0]
    type = data.type[i]
    j = data.item[i]
    zero = wp.float64(0.0)
    body_a = int(-1)
    body_b = int(-1)
    jacobian_a = vec6d()
    jacobian_b = vec6d()
    bias = wp.float64(0.0)
    lower = wp.float64(LOWEST)
    upper = wp.float64(HIGHEST)
    compliance = wp.float64(0.0)
    wrong = wp.float64(0.0)
    if type == _HELD:
        body_a = j
        jacobian_a = joined(unit(data.axis[i]), wp.vec3d())
    elif type == _PULL:
        body_a = data.pull_body[j]
        a = side_of(body_a, data.pull_point[j], wp.vec3d(), state, free)
        e = unit(data.axis[i])
        jacobian_a = joined(e, wp.cross(a.arm, e))
        away = wp.dot(a.position + a.arm - data.pull_to[j], e)
        stiffness = data.pull_stiffness[j]
        damping = wp.float64(2.0) * wp.sqrt(stiffness * table.mass[body_a])
        compliance = wp.float64(1.0) / (dt * (damping + dt * stiffness))
        bias = away * stiffness / (damping + dt * stiffness)
    else:
        body_a = data.body_a[j]
        body_b = data.body_b[j]
        a = side_of(body_a, data.anchor_a[j], data.axis_a[j], state, free)
        b = side_of(body_b, data.anchor_b[j], data.axis_b[j], state, free)
        apart = a.position + a.arm - b.position - b.arm
        spin_a = angular_of(a.velocity)
        spin_b = angular_of(b.velocity)
        bent = wp.cross(spin_a, wp.cross(spin_a, a.arm)) - wp.cross(spin_b, wp.cross(spin_b, b.arm))
        frame = contact_frame(b.axis)
        t = wp.vec3d(frame[data.axis[i], 0], frame[data.axis[i], 1], frame[data.axis[i], 2])
        if type == _POINT:
            e = unit(data.axis[i])
            jacobian_a = joined(e, wp.cross(a.arm, e))
            jacobian_b = joined(-e, -wp.cross(b.arm, e))
            bias = wp.float64(0.5) * dt * wp.dot(bent, e)
            wrong = wp.dot(apart, e)
        elif type == _WAY:  # the line turns with b
            jacobian_a = joined(t, wp.cross(a.arm, t))
            jacobian_b = joined(-t, -wp.cross(a.position + a.arm - b.position, t))
            wrong = wp.dot(apart, t)
        elif type == _ALIGN:
            jacobian_a = joined(wp.vec3d(), t)
            jacobian_b = joined(wp.vec3d(), -t)
            wrong = wp.dot(t, wp.cross(b.axis, a.axis))
        elif type == _ANGLE:
            e = unit(data.axis[i])
            jacobian_a = joined(wp.vec3d(), e)
            jacobian_b = joined(wp.vec3d(), -e)
            turned = rotation_vector(a.rotation * wp.transpose(data.relative[j]) * wp.transpose(b.rotation))
            wrong = wp.dot(turned, e)
        elif type == _DISTANCE:
            length = wp.length(apart)
            n = apart / wp.max(length, wp.float64(1.0e-300))
            jacobian_a = joined(n, wp.cross(a.arm, n))
            jacobian_b = joined(-n, -wp.cross(b.arm, n))
            wrong = length - data.length[j]
            speed = at_point(a.velocity, a.arm) - at_point(b.velocity, b.arm)
            across = speed - n * wp.dot(n, speed)
            bias = wp.float64(0.5) * dt * (wp.dot(bent, n) + wp.dot(across, across) / wp.max(length, data.length[j]))
        else:  # along or about the axis: a limit or a motor
            if data.slides[j] == 1:
                jacobian_a = joined(b.axis, wp.cross(a.arm, b.axis))
                jacobian_b = joined(-b.axis, -wp.cross(a.position + a.arm - b.position, b.axis))
            else:
                jacobian_a = joined(wp.vec3d(), b.axis)
                jacobian_b = joined(wp.vec3d(), -b.axis)
            if type == _MOTOR:
                bias = -data.speed[j]
                lower = dt * data.least_force[j]
                upper = dt * data.most_force[j]
            else:
                q = coordinate(data, j, state, free, angles[j])
                above = q - data.lower[j]
                below = data.upper[j] - q
                if above <= below:
                    bias = wp.max(above, zero) / dt
                    wrong = above
                    lower = zero
                else:
                    bias = -wp.max(below, zero) / dt
                    wrong = -below
                    upper = zero
    rows.body_a[i] = body_a
    rows.body_b[i] = body_b
    rows.jacobian_a[i] = jacobian_a
    rows.jacobian_b[i] = jacobian_b
    rows.bias[i] = bias
    rows.lower[i] = lower
    rows.upper[i] = upper
    rows.compliance[i] = compliance
    error[i] = wrong


@wp.kernel
def place_joint_rows(
    first: int,
    data: JointTable,
    rows: JointRowArrays,
    motion: wp.array[vec6d],
    error: wp.array[wp.float64],
    step: wp.array[wp.float64],
    placing: JointRowArrays,
):
    """Rows that move back what is wrong after the motion; motors and pulls have no place to go back to."""
    i = first + wp.tid()
    dt = step[0]
    type = data.type[i]
    way = wp.float64(0.0)
    if rows.body_a[i] >= 0:
        way += wp.dot(rows.jacobian_a[i], motion[rows.body_a[i]])
    if rows.body_b[i] >= 0:
        way += wp.dot(rows.jacobian_b[i], motion[rows.body_b[i]])
    wrong = error[i] + way
    lower = wp.float64(LOWEST)
    upper = wp.float64(HIGHEST)
    if type == _HELD:
        wrong = wp.float64(0.0)
    elif type >= _MOTOR:
        wrong = wp.float64(0.0)
        if type == _PULL or rows.upper[i] < HIGHEST:  # a motor without limit keeps what it has gone
            lower = wp.float64(0.0)
            upper = wp.float64(0.0)
    elif type <= _POINT or type == _DISTANCE:  # the first type is that of points
        wrong += dt * rows.bias[i]  # what the arms bend
    elif type == _LIMIT:
        lower = rows.lower[i]
        upper = rows.upper[i]
        if lower == wp.float64(0.0):
            wrong = wp.min(wrong, wp.float64(0.0))
        else:
            wrong = wp.max(wrong, wp.float64(0.0))
    placing.bias[i] = CORRECTION * wrong / dt
    placing.lower[i] = lower
    placing.upper[i] = upper
    placing.compliance[i] = wp.float64(0.0)
    placing.impulse[i] = wp.float64(0.0)


@wp.kernel
def measure_joints(first: int, data: JointTable, table: BodyConstants, state: RigidState, angles: wp.array[wp.float64]):
    """The coordinates of the joints where the bodies are now."""
    j = first + wp.tid()
    angles[j] = coordinate(data, j, state, state.velocity, angles[j])

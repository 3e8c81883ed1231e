"""The formulas of joint rows: jacobians, errors and second-order terms, one row an index."""

from __future__ import annotations

import warp as wp

from tangere.dynamics.inertia import stiffened
from tangere.dynamics.rotations import rotation_vector, turn
from tangere.dynamics.solver import JointRowArrays, contact_frame, vec6d
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, at_point, joined, linear_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Types of rows: points together along a world axis; a point on a line; axes aligned; no turn; a distance; a limit; a
#: motor; an axis of the world held; a pull.
POINT, WAY, ALIGN, ANGLE, DISTANCE, LIMIT, MOTOR, HELD, PULL = range(9)
_POINT, _WAY, _ALIGN, _ANGLE, _DISTANCE = (wp.constant(k) for k in (POINT, WAY, ALIGN, ANGLE, DISTANCE))
_LIMIT, _MOTOR, _HELD, _PULL = (wp.constant(k) for k in (LIMIT, MOTOR, HELD, PULL))

LOWEST, HIGHEST = wp.constant(wp.float64(float("-inf"))), wp.constant(wp.float64(float("inf")))
#: A motor that pushes with less than this part of its force is strong enough.
STRONG = wp.constant(wp.float64(0.999))


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
    give: wp.array[wp.float64]  # compliance of motors that give way; 0: of those that do not
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
def side_of(
    body: int,
    anchor: wp.vec3d,
    axis: wp.vec3d,
    state: RigidState,
    velocity: wp.array[vec6d],
    motion: wp.array[vec6d],
    part: wp.float64,
) -> Side:
    """A body after a part of its motion."""
    side = Side()
    side.rotation = wp.identity(n=3, dtype=wp.float64)
    side.position = wp.vec3d()
    side.velocity = vec6d()
    if body >= 0:
        side.rotation = state.rotation[body]
        side.position = state.position[body]
        side.velocity = velocity[body]
        if part > wp.float64(0.0):
            side.rotation = turn(part * angular_of(motion[body])) * side.rotation
            side.position += part * linear_of(motion[body])
    side.arm = side.rotation * anchor
    side.axis = side.rotation * axis
    return side


@wp.func
def unit(k: int) -> wp.vec3d:
    axis = wp.vec3d()
    axis[k] = wp.float64(1.0)
    return axis


@wp.func
def coordinate(data: JointTable, j: int, a: Side, b: Side, near: wp.float64) -> wp.float64:
    """The angle of a hinge, of all that differ by turns the one nearest to another; or the way of a slider."""
    if data.slides[j] == 1:
        return wp.dot(a.position + a.arm - b.position - b.arm, b.axis)
    # twist of the relative rotation about the axis
    rotation = a.rotation * wp.transpose(data.relative[j]) * wp.transpose(b.rotation)
    frame = contact_frame(b.axis)
    t = wp.vec3d(frame[1, 0], frame[1, 1], frame[1, 2])
    moved = rotation * t
    angle = wp.atan2(wp.dot(wp.cross(t, moved), b.axis), wp.dot(t, moved))
    turn = wp.float64(6.283185307179586)
    return angle + turn * wp.round((near - angle) / turn)


@wp.func
def turned_by(motion: wp.array[vec6d], body: int, axis: wp.vec3d, part: wp.float64) -> wp.float64:
    """How far a body turns about an axis in a part of its motion."""
    if body < 0:
        return wp.float64(0.0)
    return part * wp.dot(angular_of(motion[body]), axis)


@wp.func
def lever_of(data: JointTable, table: BodyConstants, type: int, j: int) -> wp.float64:
    """At what distance an error of a row counts [m]: half the size of the larger body of what turns, else 1."""
    turns = type == _ALIGN
    turns = turns or type == _ANGLE
    if type == _LIMIT:
        turns = data.slides[j] == 0
    if type == _MOTOR:
        turns = data.slides[j] == 0
    if not turns:
        return wp.float64(1.0)
    lever = table.radius[data.body_a[j]]
    if data.body_b[j] >= 0:
        lever = wp.max(lever, table.radius[data.body_b[j]])
    return lever


@wp.struct
class JointRow:
    """A row of a joint where its bodies are."""

    jacobian_a: vec6d
    jacobian_b: vec6d
    wrong: wp.float64  # how far it is from its place [m or rad]; of a limit, how far it is inside
    bent: wp.float64  # what it changes by to second order [m/s^2]


@wp.func
def joint_row(data: JointTable, type: int, j: int, axis: int, a: Side, b: Side, near: wp.float64) -> JointRow:
    """A row of a joint, limits and motors included.

    Args:
        near: about where the coordinate is.
    """
    row = JointRow()
    apart = a.position + a.arm - b.position - b.arm
    spin_a = angular_of(a.velocity)
    spin_b = angular_of(b.velocity)
    bent = wp.cross(spin_a, wp.cross(spin_a, a.arm)) - wp.cross(spin_b, wp.cross(spin_b, b.arm))
    frame = contact_frame(b.axis)
    t = wp.vec3d(frame[axis, 0], frame[axis, 1], frame[axis, 2])
    if type == _POINT:
        e = unit(axis)
        row.jacobian_a = joined(e, wp.cross(a.arm, e))
        row.jacobian_b = joined(-e, -wp.cross(b.arm, e))
        row.bent = wp.dot(bent, e)
        row.wrong = wp.dot(apart, e)
    elif type == _WAY:  # the line turns with b
        row.jacobian_a = joined(t, wp.cross(a.arm, t))
        row.jacobian_b = joined(-t, -wp.cross(a.position + a.arm - b.position, t))
        row.wrong = wp.dot(apart, t)
    elif type == _ALIGN:
        row.jacobian_a = joined(wp.vec3d(), t)
        row.jacobian_b = joined(wp.vec3d(), -t)
        row.wrong = wp.dot(t, wp.cross(b.axis, a.axis))
    elif type == _ANGLE:
        e = unit(axis)
        row.jacobian_a = joined(wp.vec3d(), e)
        row.jacobian_b = joined(wp.vec3d(), -e)
        turned = rotation_vector(a.rotation * wp.transpose(data.relative[j]) * wp.transpose(b.rotation))
        row.wrong = wp.dot(turned, e)
    elif type == _DISTANCE:
        length = wp.length(apart)
        n = apart / wp.max(length, wp.float64(1.0e-300))
        row.jacobian_a = joined(n, wp.cross(a.arm, n))
        row.jacobian_b = joined(-n, -wp.cross(b.arm, n))
        row.wrong = length - data.length[j]
        speed = at_point(a.velocity, a.arm) - at_point(b.velocity, b.arm)
        across = speed - n * wp.dot(n, speed)
        row.bent = wp.dot(bent, n) + wp.dot(across, across) / wp.max(length, data.length[j])
    else:  # along or about the axis: a limit or a motor
        if data.slides[j] == 1:
            row.jacobian_a = joined(b.axis, wp.cross(a.arm, b.axis))
            row.jacobian_b = joined(-b.axis, -wp.cross(a.position + a.arm - b.position, b.axis))
        else:
            row.jacobian_a = joined(wp.vec3d(), b.axis)
            row.jacobian_b = joined(wp.vec3d(), -b.axis)
        if type == _LIMIT:
            q = coordinate(data, j, a, b, near)
            row.wrong = q - data.lower[j]
            if axis == 1:  # the upper one
                row.wrong = q - data.upper[j]
    return row


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
    if type == _HELD:
        body_a = j
        jacobian_a = joined(unit(data.axis[i]), wp.vec3d())
    elif type == _PULL:
        body_a = data.pull_body[j]
        a = side_of(body_a, data.pull_point[j], wp.vec3d(), state, free, free, zero)
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
        a = side_of(body_a, data.anchor_a[j], data.axis_a[j], state, free, free, zero)
        b = side_of(body_b, data.anchor_b[j], data.axis_b[j], state, free, free, zero)
        row = joint_row(data, type, j, data.axis[i], a, b, angles[j])
        jacobian_a = row.jacobian_a
        jacobian_b = row.jacobian_b
        bias = wp.float64(0.5) * dt * row.bent
        if type == _MOTOR:
            bias = -data.speed[j]
            lower = dt * data.least_force[j]
            upper = dt * data.most_force[j]
            compliance = data.give[j]
        elif type == _LIMIT:
            if data.axis[i] == 0:
                bias = wp.max(row.wrong, zero) / dt
                lower = zero
            else:
                bias = wp.min(row.wrong, zero) / dt
                upper = zero
    rows.body_a[i] = body_a
    rows.body_b[i] = body_b
    rows.jacobian_a[i] = jacobian_a
    rows.jacobian_b[i] = jacobian_b
    rows.bias[i] = bias
    rows.lower[i] = lower
    rows.upper[i] = upper
    rows.compliance[i] = compliance
    rows.lever[i] = lever_of(data, table, type, j)


@wp.kernel
def place_joint_rows(
    first: int,
    data: JointTable,
    table: BodyConstants,
    state: RigidState,
    angles: wp.array[wp.float64],
    rows: JointRowArrays,
    motion: wp.array[vec6d],
    part: wp.float64,
    step: wp.array[wp.float64],
    placing: JointRowArrays,
    error: wp.array[wp.float64],
):
    """Rows that move back what is wrong after the motion, linearised there; motors and pulls have no place to go to.

    Args:
        error: how far each row is from where it is allowed to be [m], angles at a distance of half the bodies' sizes.
    """
    i = first + wp.tid()
    dt = step[0]
    type = data.type[i]
    j = data.item[i]
    zero = wp.float64(0.0)
    lower = wp.float64(LOWEST)
    upper = HIGHEST + zero
    jacobian_a = rows.jacobian_a[i]
    jacobian_b = rows.jacobian_b[i]
    wrong = wp.float64(0.0)
    missed = wp.float64(0.0)
    keeps = bool(True)  # a motor that is strong enough keeps what it has gone, unless it gives way
    if type == _MOTOR:
        strong = rows.impulse[i] > STRONG * rows.lower[i] and rows.impulse[i] < STRONG * rows.upper[i]
        keeps = strong and data.give[j] == zero
    if type == _PULL or not keeps:
        lower = zero
        upper = zero
    elif type != _HELD:
        body_a = data.body_a[j]
        body_b = data.body_b[j]
        a = side_of(body_a, data.anchor_a[j], data.axis_a[j], state, motion, motion, part)
        b = side_of(body_b, data.anchor_b[j], data.axis_b[j], state, motion, motion, part)
        near = angles[j] + turned_by(motion, body_a, b.axis, part) - turned_by(motion, body_b, b.axis, part)
        row = joint_row(data, type, j, data.axis[i], a, b, near)
        jacobian_a = row.jacobian_a
        jacobian_b = row.jacobian_b
        wrong = row.wrong
        missed = wp.abs(wrong)
        if type == _LIMIT:
            if data.axis[i] == 0:
                lower = zero
                missed = wp.max(-wrong, zero)
            else:
                upper = zero
                missed = wp.max(wrong, zero)
        missed = missed * rows.lever[i]
    placing.body_a[i] = rows.body_a[i]
    placing.body_b[i] = rows.body_b[i]
    placing.jacobian_a[i] = jacobian_a
    placing.jacobian_b[i] = jacobian_b
    placing.bias[i] = wrong / dt
    placing.lower[i] = lower
    placing.upper[i] = upper
    placing.compliance[i] = wp.float64(0.0)
    placing.lever[i] = rows.lever[i]
    placing.impulse[i] = wp.float64(0.0)
    error[i] = missed


@wp.struct
class JointsOfBodies:
    """Which rows pull at which arms of each body: sides of joints, those of one body together."""

    first: wp.array[int]  # of each body, and behind the last
    anchor: wp.array[wp.vec3d]  # from the centre of mass, in the mesh's axes
    row: wp.array[int]  # the first row of the joint
    rows: wp.array[int]  # and how many of them pull
    length: wp.array[wp.float64]  # of a distance joint; 0: none


#: Of the square of an oscillation's phase in a step, by which tension swings a light body to and fro: where it is
#: larger, a step cannot follow it.
FOLLOWED = wp.constant(wp.float64(0.5))


@wp.kernel
def slow_light_bodies(
    first: int,
    sides: JointsOfBodies,
    state: RigidState,
    rows: JointRowArrays,
    step: wp.array[wp.float64],
    inverse_mass: wp.array[wp.float64],
    inverse_inertia: wp.array[wp.mat33d],
):
    """Give bodies under tension as much inertia as the step needs to follow how the tension turns them.

    A force F at an arm r that turns with its body is a spring against turning, of stiffness |F| |r| across the arm: the
    geometric stiffness of the joint. Where a step h takes h^2 K / I beyond what it can follow, what is in the way of
    impulses is I + h^2 K; free motions have the true one."""
    i = first + wp.tid()
    begin = sides.first[i]
    end = sides.first[i + 1]
    inverse = inverse_inertia[i]
    mass = inverse_mass[i]
    if begin == end or (wp.trace(inverse) <= wp.float64(0.0) and mass <= wp.float64(0.0)):
        return
    h = step[0]
    one = wp.identity(n=3, dtype=wp.float64)
    stiffness = wp.mat33d()
    stretched = wp.float64(0.0)
    for c in range(begin, end):
        impulse = wp.vec3d()
        for k in range(sides.row[c], sides.row[c] + sides.rows[c]):
            if rows.body_a[k] == i:
                impulse += rows.impulse[k] * linear_of(rows.jacobian_a[k])
            else:
                impulse += rows.impulse[k] * linear_of(rows.jacobian_b[k])
        arm = state.rotation[i] * sides.anchor[c]
        length = wp.length(arm)
        if length > wp.float64(0.0):
            n = arm / length
            pulled = wp.float64(0.5) * (wp.length(impulse) * length + wp.dot(impulse, arm))
            stiffness += pulled * (one - wp.outer(n, n))
        if sides.length[c] > wp.float64(0.0):
            stretched += wp.length(impulse) / sides.length[c]
    stiffness = h * stiffness  # impulses have one h already
    phase = wp.trace(stiffness * inverse)
    if phase > FOLLOWED:
        inverse_inertia[i] = stiffened(inverse, (wp.float64(1.0) - FOLLOWED / phase) * stiffness)
    phase = h * stretched * mass
    if phase > FOLLOWED:
        inverse_mass[i] = mass / (wp.float64(1.0) + phase - FOLLOWED)


@wp.kernel
def measure_joints(
    first: int,
    data: JointTable,
    state: RigidState,
    motion: wp.array[vec6d],
    part: wp.array[wp.float64],
    angles: wp.array[wp.float64],
):
    """The coordinates of the joints where the bodies are now, after parts of their motions."""
    j = first + wp.tid()
    zero = wp.float64(0.0)
    body_a = data.body_a[j]
    body_b = data.body_b[j]
    a = side_of(body_a, data.anchor_a[j], data.axis_a[j], state, motion, motion, zero)
    b = side_of(body_b, data.anchor_b[j], data.axis_b[j], state, motion, motion, zero)
    near = angles[j]
    if body_a >= 0:
        near += turned_by(motion, body_a, b.axis, part[body_a])
    if body_b >= 0:
        near -= turned_by(motion, body_b, b.axis, part[body_b])
    angles[j] = coordinate(data, j, a, b, near)

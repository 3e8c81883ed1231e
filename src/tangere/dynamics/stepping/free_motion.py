"""Where bodies go when nothing touches them: free velocities, and the motion of one step.

Question: the velocity at the end of a step without contacts, and the way there.
Method:   bodies that meet something get an implicit gyroscopic term, for the solver to project. Bodies that nothing
          pushes go exactly along their parabola, and turn by a midpoint rule for their angular momentum in their own
          frame, which keeps its length and their energy. What turns far in a step does so in parts, and goes to where
          they lead by one turn.
          Both are found by Newton's method, since the moments of a thin rod differ by thousands, and what an error
          carries from one axis to another grows by that. Where it finds nothing, a body keeps its spin or turns about
          its angular momentum: neither changes its energy.
Known as: implicit gyroscopic torque (Catto 2015); implicit midpoint rule for Euler's equations (Simo and Wong 1991).
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.rotations import nearest_branch, orthogonal, rotation_vector, turn
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, joined, linear_of, vec6d
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Steps of Newton's method at most; parts of what is sought by which it may be off where it has ended, and where it
#: counts as found.
ITERATIONS, ENDED, FOUND = wp.constant(10), wp.constant(wp.float64(1.0e-15)), wp.constant(wp.float64(1.0e-9))
#: How far a body turns in one part at most [rad], and the most parts: where it goes is off by the square of it.
PART, MOST_PARTS = wp.constant(wp.float64(0.05)), wp.constant(400)
#: Parts of the speed by which a solved velocity may differ from the free one of a body that nothing pushes.
SAME = wp.constant(wp.float64(1.0e-12))


@wp.func
def world_inertia(rotation: wp.mat33d, inertia: wp.mat33d) -> wp.mat33d:
    """The inertia along the world's axes."""
    return rotation * inertia * wp.transpose(rotation)


@wp.func
def held_inverse(inertia: wp.mat33d, held: int) -> wp.mat33d:
    """The inverse of an inertia, where rotations about some axes of the world are held (bits 3 to 5)."""
    free = wp.mat33d(inertia)
    for k in range(3):
        if (held >> (3 + k)) & 1 == 1:
            for j in range(3):
                free[k, j] = wp.float64(0.0)
                free[j, k] = wp.float64(0.0)
            free[k, k] = wp.float64(1.0)
    inverse = wp.inverse(free)
    for k in range(3):
        if (held >> (3 + k)) & 1 == 1:
            inverse[k, k] = wp.float64(0.0)
    return inverse


@wp.func
def gyroscopic_change(inertia: wp.mat33d, spin: wp.vec3d, torque: wp.vec3d, dt: wp.float64) -> wp.vec3d:
    """The change of angular velocity over a step: I (w' - w) + dt w' x I w' = dt torque, one step of Newton's method.

    Where that gains energy beyond the torque's work, which a solution never does, by as many as it takes."""
    momentum = inertia * spin
    before = wp.dot(spin, momentum)
    size = wp.length(momentum) + dt * wp.length(torque)
    after = wp.vec3d(spin)
    for _ in range(ITERATIONS):
        momentum = inertia * after
        slope = inertia + dt * (wp.skew(after) * inertia - wp.skew(momentum))
        after = after - wp.inverse(slope) * (inertia * (after - spin) + dt * (wp.cross(after, momentum) - torque))
        momentum = inertia * after
        gain = wp.dot(after, momentum) - before - wp.float64(2.0) * dt * wp.dot(after, torque)
        off = wp.length(momentum - inertia * spin + dt * (wp.cross(after, momentum) - torque))
        if gain <= FOUND * before or off <= FOUND * size:
            return after - spin
    return wp.inverse(inertia) * (dt * torque)


@wp.func
def turning_rate(angle: wp.vec3d) -> wp.mat33d:
    """How a rotation turns on when its rotation vector changes, but for terms of fifth order (the left Jacobian)."""
    k = wp.skew(angle)
    k2 = k * k
    one = wp.identity(n=3, dtype=wp.float64)
    third = wp.float64(1.0 / 6.0) * one + wp.float64(1.0 / 24.0) * k + wp.float64(1.0 / 120.0) * k2
    return one + wp.float64(0.5) * k + k2 * third


@wp.func
def midpoint_spin(local: wp.mat33d, momentum: wp.vec3d, h: wp.float64) -> wp.vec3d:
    """The angular velocity w with which a body turns for a time h, in its own frame; `local` is its inverse inertia.

    w = J (m + m') / 2, where m' is the angular momentum after the turn. Since m' - m is across w, m . J m stays."""
    after = wp.vec3d(momentum)
    spin = local * momentum
    off = wp.float64(0.0)
    size = wp.length(momentum)
    one = wp.identity(n=3, dtype=wp.float64)
    for _ in range(ITERATIONS):
        spin = wp.float64(0.5) * (local * (momentum + after))
        led = turn(-h * spin) * momentum
        off = wp.length(led - after)
        if off <= ENDED * size:
            break
        slope = one - wp.float64(0.5) * h * (wp.skew(led) * turning_rate(-h * spin) * local)
        after = after + wp.inverse(slope) * (led - after)
    if off <= FOUND * size:
        return spin
    return (wp.dot(momentum, local * momentum) / wp.length_sq(momentum)) * momentum


@wp.func
def free_turn(rotation: wp.mat33d, local: wp.mat33d, momentum: wp.vec3d, torque: wp.vec3d, dt: wp.float64) -> wp.vec3d:
    """The rotation vector of a step of a body that only a torque acts on; `local` is its inverse inertia."""
    own = wp.transpose(rotation) * momentum
    parts = 1 + int(wp.min(wp.length(local * own) * dt / PART, wp.float64(MOST_PARTS - 1)))
    h = dt / wp.float64(parts)
    push = wp.float64(0.5) * h * torque
    there = wp.mat33d(rotation)
    angle = wp.vec3d()
    for _ in range(parts):
        own += wp.transpose(there) * push
        spin = midpoint_spin(local, own, h)
        own = turn(-h * spin) * own
        angle += there * (h * spin)
        there = there * turn(h * spin)
        own += wp.transpose(there) * push
    if parts > 1:
        angle = nearest_branch(rotation_vector(there * wp.transpose(rotation)), angle)
    return angle


@wp.kernel
def predict(
    first: int,
    table: BodyConstants,
    state: RigidState,
    load: wp.array[vec6d],
    asleep: wp.array[wp.uint8],
    gravity: wp.vec3d,
    step: wp.array[wp.float64],
    order: int,
    inverse_mass: wp.array[wp.float64],
    inverse_inertia: wp.array[wp.mat33d],
    origin: wp.array[wp.vec3d],
    free: wp.array[vec6d],
):
    """Free velocities at the end of the step; masses and inertia as the solver takes them; origins of the meshes."""
    i = first + wp.tid()
    dt = step[0]
    rotation = state.rotation[i]
    origin[i] = state.position[i] - rotation * table.centre[i]
    held = table.held[i]
    velocity = state.velocity[i]
    mass = wp.float64(0.0)
    inverse = wp.mat33d()
    if asleep[i] != wp.uint8(0):
        velocity = vec6d()
    elif held & 63 != 63:
        inertia = world_inertia(rotation, table.inertia[i])
        inverse = held_inverse(inertia, held)
        if held & 7 != 7:  # single held translations are joint rows against the world
            mass = wp.float64(1.0) / table.mass[i]
        force = linear_of(load[i])
        torque = angular_of(load[i])
        linear = linear_of(velocity)
        spin = angular_of(velocity)
        push = gravity + force / table.mass[i]
        for k in range(3):
            if (held >> k) & 1 == 1:
                push[k] = wp.float64(0.0)
        if order == 1:  # no inertia: the forces of one second are the velocity
            linear = push
            spin = inverse * torque
        else:
            linear = linear + dt * push
            if held >> 3 & 7 == 0:
                spin = spin + gyroscopic_change(inertia, spin, torque, dt)
            else:
                spin = spin + dt * (inverse * torque)
        velocity = joined(linear, spin)
    inverse_mass[i] = mass
    inverse_inertia[i] = inverse
    free[i] = velocity


@wp.func
def nobody_pushes(free: vec6d, solved: vec6d) -> bool:
    """Whether a solved velocity is the free one."""
    return wp.length(solved - free) <= SAME * (wp.length(free) + wp.float64(1.0e-30))


@wp.kernel
def find_motion(
    first: int,
    table: BodyConstants,
    state: RigidState,
    load: wp.array[vec6d],
    asleep: wp.array[wp.uint8],
    free: wp.array[vec6d],
    solved: wp.array[vec6d],
    step: wp.array[wp.float64],
    order: int,
    motion: wp.array[vec6d],
    end: wp.array[vec6d],
):
    """How each body goes in the step (displacement and rotation vector), and its velocity at the end."""
    i = first + wp.tid()
    if asleep[i] != wp.uint8(0):
        motion[i] = vec6d()
        end[i] = vec6d()
        return
    dt = step[0]
    held = table.held[i]
    after = solved[i]
    if held & 64 == 0:
        for k in range(6):
            if (held >> k) & 1 == 1:
                after[k] = wp.float64(0.0)
    way = dt * after
    if held & 63 != 63 and order == 2 and nobody_pushes(free[i], after):
        before = state.velocity[i]
        drift = wp.float64(0.5) * dt * (linear_of(before) + linear_of(after))
        angle = dt * angular_of(after)
        spin = angular_of(after)
        if held >> 3 & 7 == 0:
            rotation = state.rotation[i]
            torque = angular_of(load[i])
            momentum = world_inertia(rotation, table.inertia[i]) * angular_of(before)
            local = wp.inverse(table.inertia[i])
            angle = free_turn(rotation, local, momentum, torque, dt)
            spin = world_inertia(turn(angle) * rotation, local) * (momentum + dt * torque)
        way = joined(drift, angle)
        after = joined(linear_of(after), spin)
    motion[i] = way
    end[i] = after


@wp.kernel
def find_end(first: int, held: wp.array[int], free: wp.array[vec6d], solved: wp.array[vec6d], end: wp.array[vec6d]):
    """Velocities at the end of the step that were solved for by themselves; who is free has its own already."""
    i = first + wp.tid()
    after = solved[i]
    if held[i] & 63 != 63 and not nobody_pushes(free[i], after):
        for k in range(6):
            if (held[i] >> k) & 1 == 1:
                after[k] = wp.float64(0.0)
        end[i] = after


@wp.kernel
def move(
    first: int,
    table: BodyConstants,
    motion: wp.array[vec6d],
    end: wp.array[vec6d],
    free: wp.array[vec6d],
    part: wp.array[wp.float64],
    order: int,
    state: RigidState,
):
    """Go a part of the motion. Who goes only a part has lived only a part of the step: the rest of the free
    acceleration is taken back, or standing still would gain energy."""
    i = first + wp.tid()
    alpha = part[i]
    velocity = end[i]
    if alpha < wp.float64(1.0) and table.held[i] & 63 != 63 and order == 2:
        velocity = velocity - (wp.float64(1.0) - alpha) * (free[i] - state.velocity[i])
    state.position[i] = state.position[i] + alpha * linear_of(motion[i])
    angle = alpha * angular_of(motion[i])
    if wp.length_sq(angle) > wp.float64(0.0):
        state.rotation[i] = orthogonal(turn(angle) * state.rotation[i])
    state.velocity[i] = velocity

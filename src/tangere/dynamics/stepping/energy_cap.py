"""No island of bodies gains energy from the length of a step.

Question: did bodies that only gravity and constant forces act on gain energy in a step, and how is that undone?
Method:   the energy of each island, with what its loads did, is compared with that where the step began. Where it rose,
          the velocities of the whole island are made smaller by one factor: rows without bias have cones that do not
          change by that, so what was feasible stays so. What driven bodies did by their impulses may be gained; islands
          with motors or pulls are left alone.
Known as: energy projection.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver import ContactRowArrays, JointRowArrays, vec6d
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, at_point, linear_of
from tangere.dynamics.stepping.free_motion import world_inertia
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Of the kinetic energy: a gain that is rounding.
ROUNDING = wp.constant(wp.float64(1.0e-13))


@wp.func
def kinetic_energy(mass: wp.float64, inertia: wp.mat33d, rotation: wp.mat33d, velocity: vec6d) -> wp.float64:
    """Of a body [J]."""
    v = linear_of(velocity)
    w = angular_of(velocity)
    return wp.float64(0.5) * (mass * wp.dot(v, v) + wp.dot(w, world_inertia(rotation, inertia) * w))


@wp.func
def driver_work(
    body: int, arm: wp.vec3d, impulse: wp.vec3d, held: wp.array[int], velocity: wp.array[vec6d]
) -> wp.float64:
    """What a driven body does by an impulse on another [J]; 0 for bodies that are not driven."""
    if body >= 0:
        if held[body] & 64 != 0:
            return wp.dot(impulse, at_point(velocity[body], arm))
    return wp.float64(0.0)


@wp.func
def driver_joint_work(
    body: int, jacobian: vec6d, impulse: wp.float64, held: wp.array[int], velocity: wp.array[vec6d]
) -> wp.float64:
    """The same by a joint row."""
    if body >= 0:
        if held[body] & 64 != 0:
            return -impulse * wp.dot(jacobian, velocity[body])
    return wp.float64(0.0)


@wp.kernel
def cap_energy(
    first: int,
    islands: IslandArrays,
    constants: BodyConstants,
    before: RigidState,
    load: wp.array[vec6d],
    gravity: wp.vec3d,
    motion: wp.array[vec6d],
    part: wp.array[wp.float64],
    rows: ContactRowArrays,
    joints: JointRowArrays,
    driving: wp.array[int],
    state: RigidState,
):
    """One island an index; the first that is not there does nothing.

    Args:
        driving: of each joint row, whether it may do work.
    """
    k = first + wp.tid()
    if k >= islands.count[0]:
        return
    work = wp.float64(0.0)
    for c in range(islands.contact_first[k], islands.contact_first[k + 1]):
        i = islands.contact_order[c]
        impulse = wp.transpose(rows.frame[i]) * rows.impulse[i]
        work += driver_work(rows.body_b[i], rows.arm_b[i], impulse, constants.held, state.velocity)
        work += driver_work(rows.body_a[i], rows.arm_a[i], -impulse, constants.held, state.velocity)
    for c in range(islands.joint_first[k], islands.joint_first[k + 1]):
        i = islands.joint_order[c]
        if driving[i] == 1:
            return
        r = joints.impulse[i]
        work += driver_joint_work(joints.body_a[i], joints.jacobian_a[i], r, constants.held, state.velocity)
        work += driver_joint_work(joints.body_b[i], joints.jacobian_b[i], r, constants.held, state.velocity)
    gain = -wp.max(work, wp.float64(0.0))
    kinetic = wp.float64(0.0)
    for c in range(islands.body_first[k], islands.body_first[k + 1]):
        i = islands.body_order[c]
        mass = constants.mass[i]
        inertia = constants.inertia[i]
        now = kinetic_energy(mass, inertia, state.rotation[i], state.velocity[i])
        kinetic += now
        gain += now - kinetic_energy(mass, inertia, before.rotation[i], before.velocity[i])
        way = state.position[i] - before.position[i]
        gain -= wp.dot(mass * gravity + linear_of(load[i]), way)
        gain -= part[i] * wp.dot(angular_of(load[i]), angular_of(motion[i]))
    if gain <= ROUNDING * kinetic or kinetic <= wp.float64(0.0):
        return
    scale = wp.sqrt(wp.max(kinetic - gain, wp.float64(0.0)) / kinetic)
    for c in range(islands.body_first[k], islands.body_first[k + 1]):
        i = islands.body_order[c]
        state.velocity[i] = scale * state.velocity[i]

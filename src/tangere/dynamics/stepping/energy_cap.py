"""No island of bodies gains energy from the length of a step, nor from being put right.

Question: did bodies that only gravity and constant forces act on gain energy in a step, and how is that undone?
Method:   the energy of each island, with what its loads did, is compared with that where the step began. Where it rose,
          the velocities of the whole island are made smaller by one factor: rows without bias have cones that do not
          change by that, so what was feasible stays so. What moves contacts apart against the loads is made smaller
          beforehand, where even all of the kinetic energy would not pay for it: a heavy stack that sank by what its
          solver left over stays there. What driven bodies did by their impulses may be gained; islands with motors or
          pulls are left alone.
Known as: energy projection.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.contact.rows import Distances, RowFacts
from tangere.dynamics.joints.rows import JointRows
from tangere.dynamics.solver import ContactRowArrays, JointRowArrays, Solver, vec6d
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, at_point, linear_of
from tangere.dynamics.stepping.free_motion import world_inertia
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: Of the kinetic energy: a gain that is rounding.
ROUNDING = wp.constant(wp.float64(1.0e-13))
#: Of the security distance: contacts that are nearer than this are moved apart whatever it costs.
TIGHT = wp.constant(wp.float64(1.0e-4))


class EnergyCap:
    """Both limits for all islands of a world; launches are kept.

    Args:
        gravity: (3,) [m/s^2].
        before: where a part of a step began.
        placed: what moves contacts apart in the step, as velocities.
    """

    def __init__(
        self,
        table: BodyConstants,
        gravity: Any,
        load: wp.array,
        before: RigidState,
        state: RigidState,
        motion: wp.array,
        part: wp.array,
        placed: wp.array,
        distances: Distances,
        device: wp.Device,
    ) -> None:
        self._about = [load, wp.vec3d(*gravity), motion]
        self._table, self._before, self._state, self._part = table, before, state, part
        self._placed, self._distances, self._device = placed, distances, device
        self._key: tuple[int, ...] = ()

    def _prepare(self, solver: Solver, rows: RowSet, joints: JointRows) -> None:
        key = rows.version, joints.version, solver.islands.version
        if key == self._key:
            return
        islands, device = solver.islands.arrays, self._device
        told = [rows.arrays, joints.rows, joints.driving]
        arguments = [islands, self._table, self._before, *self._about, self._part, *told, self._state]
        self._cap = PreparedLaunch(cap_energy, arguments, device, grain=16)
        arguments = [islands, self._table, self._state, *self._about, *told, rows.facts, self._distances, self._placed]
        self._limit = PreparedLaunch(limit_placement, arguments, device, grain=16)
        self._key = key

    def limit_placement(self, islands: int, solver: Solver, rows: RowSet, joints: JointRows) -> None:
        """What moves contacts apart costs no more than islands have."""
        if islands:
            self._prepare(solver, rows, joints)
            self._limit(islands)

    def cap(self, islands: int, solver: Solver, rows: RowSet, joints: JointRows) -> None:
        """Take back what islands gained from the length of the step."""
        if islands:
            self._prepare(solver, rows, joints)
            self._cap(islands)


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


@wp.func
def has_motor(islands: IslandArrays, k: int, driving: wp.array[int]) -> bool:
    """Whether a joint row of an island may do work."""
    found = bool(False)
    for c in range(islands.joint_first[k], islands.joint_first[k + 1]):
        found = found or driving[islands.joint_order[c]] == 1
    return found


@wp.func
def work_of_drivers(
    islands: IslandArrays,
    k: int,
    held: wp.array[int],
    velocity: wp.array[vec6d],
    rows: ContactRowArrays,
    joints: JointRowArrays,
) -> wp.float64:
    """What driven bodies do to an island, and may be gained [J]."""
    work = wp.float64(0.0)
    for c in range(islands.contact_first[k], islands.contact_first[k + 1]):
        i = islands.contact_order[c]
        impulse = wp.transpose(rows.frame[i]) * rows.impulse[i]
        work += driver_work(rows.body_b[i], rows.arm_b[i], impulse, held, velocity)
        work += driver_work(rows.body_a[i], rows.arm_a[i], -impulse, held, velocity)
    for c in range(islands.joint_first[k], islands.joint_first[k + 1]):
        i = islands.joint_order[c]
        r = joints.impulse[i]
        work += driver_joint_work(joints.body_a[i], joints.jacobian_a[i], r, held, velocity)
        work += driver_joint_work(joints.body_b[i], joints.jacobian_b[i], r, held, velocity)
    return wp.max(work, wp.float64(0.0))


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
    if k >= islands.count[0] or has_motor(islands, k, driving):
        return
    gain = -work_of_drivers(islands, k, constants.held, state.velocity, rows, joints)
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


@wp.func
def island_is_tight(islands: IslandArrays, k: int, facts: RowFacts, distances: Distances) -> bool:
    """Whether contacts of an island are so near that they are moved apart whatever it costs."""
    least = TIGHT * distances.security + distances.kept
    found = bool(False)
    for c in range(islands.contact_first[k], islands.contact_first[k + 1]):
        found = found or facts.gap[islands.contact_order[c]] < least
    return found


@wp.kernel
def limit_placement(
    first: int,
    islands: IslandArrays,
    constants: BodyConstants,
    state: RigidState,
    load: wp.array[vec6d],
    gravity: wp.vec3d,
    motion: wp.array[vec6d],
    rows: ContactRowArrays,
    joints: JointRowArrays,
    driving: wp.array[int],
    facts: RowFacts,
    distances: Distances,
    placed: wp.array[vec6d],
):
    """Make what moves the contacts of an island apart so small that its kinetic energy can pay for it.

    Args:
        motion: how bodies go without it.
        placed: what moves them in the step, as a velocity.
    """
    k = first + wp.tid()
    if k >= islands.count[0] or has_motor(islands, k, driving) or island_is_tight(islands, k, facts, distances):
        return
    spare = work_of_drivers(islands, k, constants.held, state.velocity, rows, joints)
    cost = wp.float64(0.0)
    for c in range(islands.body_first[k], islands.body_first[k + 1]):
        i = islands.body_order[c]
        push = constants.mass[i] * gravity + linear_of(load[i])
        twist = angular_of(load[i])
        spare += kinetic_energy(constants.mass[i], constants.inertia[i], state.rotation[i], state.velocity[i])
        spare += wp.dot(push, linear_of(motion[i])) + wp.dot(twist, angular_of(motion[i]))
        cost -= distances.dt[0] * (wp.dot(push, linear_of(placed[i])) + wp.dot(twist, angular_of(placed[i])))
    if cost <= wp.max(spare, wp.float64(0.0)):
        return
    scale = wp.max(spare, wp.float64(0.0)) / cost
    for c in range(islands.body_first[k], islands.body_first[k + 1]):
        i = islands.body_order[c]
        placed[i] = scale * placed[i]

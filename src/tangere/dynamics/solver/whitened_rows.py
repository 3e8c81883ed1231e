"""Rows grouped by island, in the metric of kinetic energy, ready for a solver.

Question: what does a solver need of a row, so that an iteration touches as little as it can?
Method:   with M^-1 = L L^T, body by body, velocities are v = v_free + L w and rows G = J L: kinetic energy is
          |w|^2 / 2, an impulse changes w by G^T r, and the Delassus operator is G G^T. Zero inverse masses are
          zeros of L, nothing else. Rows lie in the order of islands; what a body that cannot move does is a constant.
Known as: mass-weighted coordinates; J_Q of Redon 2002, equation 5.27.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver.islands import IslandArrays, moves
from tangere.dynamics.solver.problem import (
    ContactRowArrays,
    JointRowArrays,
    RigidBodyArrays,
    mat36d,
    vec6d,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class WhitenedRows:
    """What solvers read and write: contacts (c_…) and joints (j_…) by place in their island, bodies by number."""

    w: wp.array[vec6d]  # change of velocity of each body, in the metric of kinetic energy
    linear_factor: wp.array[wp.float64]  # L of each body: square root of the inverse mass
    angular_factor: wp.array[wp.mat33d]  # and a triangular factor of the inverse inertia
    stirred: wp.array[wp.int32]  # of each body: the sweep that last changed it by more than little
    c_a: wp.array[wp.int32]  # bodies that move, else -1
    c_b: wp.array[wp.int32]
    c_ga: wp.array[mat36d]  # rows of G
    c_gb: wp.array[mat36d]
    c_free: wp.array[wp.vec3d]  # relative velocity without impulses, with bias
    c_friction: wp.array[wp.float64]
    c_delassus: wp.array[wp.mat33d]
    c_inverse: wp.array[wp.mat33d]
    c_impulse: wp.array[wp.vec3d]
    c_seen: wp.array[wp.int32]  # the sweep that last looked at it
    j_a: wp.array[wp.int32]
    j_b: wp.array[wp.int32]
    j_ga: wp.array[vec6d]
    j_gb: wp.array[vec6d]
    j_free: wp.array[wp.float64]
    j_lower: wp.array[wp.float64]
    j_upper: wp.array[wp.float64]
    j_compliance: wp.array[wp.float64]
    j_diagonal: wp.array[wp.float64]  # of the Delassus operator, with compliance
    j_impulse: wp.array[wp.float64]


@wp.func
def semidefinite_factor(m: wp.mat33d) -> wp.mat33d:
    """Lower triangular F with F F^T = m for a positive semi-definite matrix; NaN if it is not."""
    f = wp.mat33d()
    scale = wp.abs(m[0, 0]) + wp.abs(m[1, 1]) + wp.abs(m[2, 2])
    for j in range(3):
        s = m[j, j]
        for k in range(j):
            s -= f[j, k] * f[j, k]
        if s > wp.float64(1.0e-13) * scale:
            s = wp.sqrt(s)
            f[j, j] = s
            for i in range(j + 1, 3):
                t = m[i, j]
                for k in range(j):
                    t -= f[i, k] * f[j, k]
                f[i, j] = t / s
        elif not (s >= wp.float64(-1.0e-12) * scale):
            f[j, j] = wp.sqrt(wp.float64(-1.0))
    return f


@wp.func
def linear_part(x: vec6d) -> wp.vec3d:
    return wp.vec3d(x[0], x[1], x[2])


@wp.func
def angular_part(x: vec6d) -> wp.vec3d:
    return wp.vec3d(x[3], x[4], x[5])


@wp.func
def point_velocity(x: vec6d, arm: wp.vec3d) -> wp.vec3d:
    """Velocity of a point of a body, `arm` away from its centre of mass."""
    return linear_part(x) + wp.cross(angular_part(x), arm)


@wp.func
def whitened_contact(frame: wp.mat33d, arm: wp.vec3d, linear: wp.float64, angular: wp.mat33d) -> mat36d:
    """Three rows of G for one body."""
    turn = -(frame * wp.skew(arm) * angular)
    g = mat36d()
    for i in range(3):
        for j in range(3):
            g[i, j] = linear * frame[i, j]
            g[i, j + 3] = turn[i, j]
    return g


@wp.func
def whitened_joint(j: vec6d, linear: wp.float64, angular: wp.mat33d) -> vec6d:
    t = wp.transpose(angular) * angular_part(j)
    return vec6d(linear * j[0], linear * j[1], linear * j[2], t[0], t[1], t[2])


@wp.kernel
def whiten_bodies(first: int, bodies: RigidBodyArrays, rows: WhitenedRows):
    """L of each body; no impulse has acted."""
    b = first + wp.tid()
    mass = bodies.inverse_mass[b]
    rows.linear_factor[b] = wp.sqrt(mass)
    rows.angular_factor[b] = semidefinite_factor(bodies.inverse_inertia[b])
    rows.w[b] = vec6d()
    rows.stirred[b] = 0


@wp.kernel
def whiten_contacts(
    first: int, bodies: RigidBodyArrays, contacts: ContactRowArrays, islands: IslandArrays, rows: WhitenedRows
):
    """G, the constant part and the Delassus block of each contact, in the order of islands."""
    i = first + wp.tid()
    row = islands.contact_order[i]
    a = contacts.body_a[row]
    b = contacts.body_b[row]
    frame = contacts.frame[row]
    relative = wp.vec3d()
    ga = mat36d()
    gb = mat36d()
    if a >= 0:
        relative = point_velocity(bodies.velocity[a], contacts.arm_a[row])
        ga = whitened_contact(frame, contacts.arm_a[row], rows.linear_factor[a], rows.angular_factor[a])
        if not moves(bodies, a):
            a = -1
    if b >= 0:
        relative = relative - point_velocity(bodies.velocity[b], contacts.arm_b[row])
        gb = -whitened_contact(frame, contacts.arm_b[row], rows.linear_factor[b], rows.angular_factor[b])
        if not moves(bodies, b):
            b = -1
    if a >= 0 and a == b:
        ga = ga + gb
        gb = mat36d()
        b = -1
    d = ga * wp.transpose(ga) + gb * wp.transpose(gb)
    rows.c_a[i] = a
    rows.c_b[i] = b
    rows.c_ga[i] = ga
    rows.c_gb[i] = gb
    # Any number that is not finite shows in the constant part: zero times it is not zero.
    mu = contacts.friction[row]
    checked = wp.float64(0.0) * (mu + wp.dot(contacts.impulse[row], contacts.impulse[row]) + wp.trace(d))
    rows.c_free[i] = frame * relative + contacts.bias[row] + checked * frame[0]
    rows.c_friction[i] = mu
    rows.c_delassus[i] = d
    # Directions in which nobody can give way get a little compliance, so that sticking has one impulse.
    ridge = wp.float64(1.0e-12) * (d[0, 0] + d[1, 1] + d[2, 2])
    rows.c_inverse[i] = wp.inverse(d + ridge * wp.identity(n=3, dtype=wp.float64))
    rows.c_impulse[i] = contacts.impulse[row]


@wp.kernel
def whiten_joints(
    first: int, bodies: RigidBodyArrays, joints: JointRowArrays, islands: IslandArrays, rows: WhitenedRows
):
    """The same of each joint row, in m/s: velocities of what turns at a lever."""
    i = first + wp.tid()
    row = islands.joint_order[i]
    lever = joints.lever[row]
    a = joints.body_a[row]
    b = joints.body_b[row]
    free = joints.bias[row]
    ga = vec6d()
    gb = vec6d()
    if a >= 0:
        free += wp.dot(joints.jacobian_a[row], bodies.velocity[a])
        ga = whitened_joint(joints.jacobian_a[row], rows.linear_factor[a], rows.angular_factor[a])
        if not moves(bodies, a):
            a = -1
    if b >= 0:
        free += wp.dot(joints.jacobian_b[row], bodies.velocity[b])
        gb = whitened_joint(joints.jacobian_b[row], rows.linear_factor[b], rows.angular_factor[b])
        if not moves(bodies, b):
            b = -1
    if a >= 0 and a == b:
        ga = ga + gb
        gb = vec6d()
        b = -1
    rows.j_a[i] = a
    rows.j_b[i] = b
    ga = lever * ga
    gb = lever * gb
    compliance = lever * lever * joints.compliance[row]
    rows.j_ga[i] = ga
    rows.j_gb[i] = gb
    checked = joints.impulse[row] + joints.compliance[row]
    if joints.lower[row] > joints.upper[row]:
        checked = wp.sqrt(wp.float64(-1.0))
    rows.j_free[i] = lever * free + wp.float64(0.0) * checked
    rows.j_lower[i] = joints.lower[row] / lever
    rows.j_upper[i] = joints.upper[row] / lever
    rows.j_compliance[i] = compliance
    rows.j_diagonal[i] = wp.dot(ga, ga) + wp.dot(gb, gb) + compliance
    rows.j_impulse[i] = wp.clamp(joints.impulse[row], joints.lower[row], joints.upper[row]) / lever


@wp.kernel
def write_velocities(first: int, rows: WhitenedRows, islands: IslandArrays, bodies: RigidBodyArrays):
    """The solved velocity of bodies that belong to an island."""
    b = first + wp.tid()
    if islands.number[b] >= 0:
        w = rows.w[b]
        s = rows.linear_factor[b]
        t = rows.angular_factor[b] * angular_part(w)
        bodies.velocity[b] = bodies.velocity[b] + vec6d(s * w[0], s * w[1], s * w[2], t[0], t[1], t[2])


@wp.kernel
def write_contact_impulses(first: int, rows: WhitenedRows, islands: IslandArrays, contacts: ContactRowArrays):
    """Impulses back in the order of the caller; zero where neither body can move."""
    i = first + wp.tid()
    r = wp.vec3d()
    if i < islands.contact_first[islands.count[0]]:
        r = rows.c_impulse[i]
    contacts.impulse[islands.contact_order[i]] = r


@wp.kernel
def write_joint_impulses(first: int, rows: WhitenedRows, islands: IslandArrays, joints: JointRowArrays):
    i = first + wp.tid()
    row = islands.joint_order[i]
    r = wp.float64(0.0)
    if i < islands.joint_first[islands.count[0]]:
        r = wp.clamp(joints.lever[row] * rows.j_impulse[i], joints.lower[row], joints.upper[row])
    joints.impulse[row] = r

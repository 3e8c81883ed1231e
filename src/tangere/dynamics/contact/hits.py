"""Rows of hits: what the walk of a step ran into, as constraints at its start.

Question: which inequality, had it been among the rows, would have kept two bodies from meeting at t_c?
Method:   the points of the contact are carried back to the start along the motion. A line through gap and approach
          there misses what bends the way; measured at t_c it grows with the square of time, and is put in the bias.
Known as: constraint generation, with continuous collision detection as its oracle.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.contact.rows import Distances, RowFacts, SurfaceTable
from tangere.dynamics.solver import ContactRowArrays, contact_frame, vec6d
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, at_point, linear_of
from tangere.dynamics.stepping.free_motion import turn
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Times below this are taken for this where a loss is scaled to the whole step.
LEAST_TIME = wp.constant(wp.float64(0.25))


@wp.func
def carried_back(point: wp.vec3d, position: wp.vec3d, motion: vec6d, time: wp.float64) -> wp.vec3d:
    """Where a point of a body at a time of its motion was at the start."""
    arm = point - position - time * linear_of(motion)
    return position + turn(-time * angular_of(motion)) * arm


@wp.kernel
def make_hit_rows(
    first: int,
    hit: wp.array[int],
    pairs: wp.array[wp.vec2i],
    times: wp.array[wp.float64],
    points_a: wp.array[wp.vec3d],
    points_b: wp.array[wp.vec3d],
    normals: wp.array[wp.vec3d],
    table: BodyConstants,
    state: RigidState,
    motion: wp.array[vec6d],
    surfaces: SurfaceTable,
    distances: Distances,
    begin: wp.array[int],
    rows: ContactRowArrays,
    facts: RowFacts,
):
    """Rows behind the first `begin[0]` ones.

    Args:
        hit: the pairs that were hit, of those that were asked about.
    """
    k = first + wp.tid()
    i = begin[0] + k
    j = hit[k]
    a = pairs[j][0]
    b = pairs[j][1]
    time = times[j]
    normal = normals[j]
    point_a = carried_back(points_a[j], state.position[a], motion[a], time)
    point_b = carried_back(points_b[j], state.position[b], motion[b], time)
    gap = wp.dot(point_a - point_b, normal)
    arm_a = point_a - state.position[a]
    arm_b = point_b - state.position[b]
    way = wp.dot(at_point(motion[a], arm_a) - at_point(motion[b], arm_b), normal)
    later = wp.dot(points_a[j] - points_b[j], normal)
    scale = wp.max(time, LEAST_TIME)
    bend = -wp.max(gap + time * way - later, wp.float64(0.0)) / (scale * scale)
    whole = distances.separation + distances.security
    target = wp.min(whole, wp.max(gap, wp.float64(0.0)))
    surface = table.surface[a] * surfaces.kinds + table.surface[b]
    rows.body_a[i] = a
    rows.body_b[i] = b
    rows.arm_a[i] = arm_a
    rows.arm_b[i] = arm_b
    rows.frame[i] = contact_frame(normal)
    rows.friction[i] = surfaces.friction[surface]
    rows.bias[i] = wp.vec3d((gap - target + bend) / distances.dt, wp.float64(0.0), wp.float64(0.0))
    rows.impulse[i] = wp.vec3d()
    facts.key[i] = wp.int64(-1)
    facts.kind[i] = -1
    facts.feature_a[i] = -1
    facts.feature_b[i] = -1
    facts.point_a[i] = point_a
    facts.point_b[i] = point_b
    facts.gap[i] = gap
    facts.target[i] = target
    facts.bend[i] = bend
    facts.restitution[i] = surfaces.restitution[surface]


@wp.kernel
def straighten_rows(first: int, facts: RowFacts, dt: wp.float64, bias: wp.array[wp.vec3d]):
    """Take what bends the way out of the bias again."""
    i = first + wp.tid()
    room = wp.max(facts.gap[i] - facts.target[i], wp.float64(0.0))
    bias[i] = wp.vec3d(room / dt, wp.float64(0.0), wp.float64(0.0))

"""Rows of hits: what the walk of a step ran into, as constraints at its start.

Question: which inequality, had it been among the rows, would have kept two bodies from meeting at t_c?
Method:   the points of the contact are carried back to the start along the motion. A line through gap and approach
          there misses what bends the way; measured at t_c it grows with the square of time, and is put in the bias.
          All other contacts that the two bodies have where they meet become rows with it: those of a body that turns
          into another are none of the start, and would be hit one after the other.
Known as: constraint generation, with continuous collision detection as its oracle.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.dynamics.contact.rows import Distances, RowFacts, SurfaceTable
from tangere.dynamics.rotations import turn
from tangere.dynamics.solver import ContactRowArrays, contact_frame, vec6d
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, at_point, linear_of
from tangere.query.proximity.posed import PosedColumns
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Times below the first are taken for it where a loss is scaled to the whole step: what is seen so early is not always
#: the square of time, and a row that asks for too much makes others hit. The second: where rows with it did not do.
LEAST_TIME, NEXT_LEAST_TIME = 0.25, 0.01


@wp.func
def carried_back(point: wp.vec3d, position: wp.vec3d, motion: vec6d, time: wp.float64) -> wp.vec3d:
    """Where a point of a body at a time of its motion was at the start."""
    arm = point - position - time * linear_of(motion)
    return position + turn(-time * angular_of(motion)) * arm


@wp.struct
class CarriedBodies:
    """What carries contacts back to the start of a step, and what their rows ask for."""

    table: BodyConstants
    state: RigidState
    motion: wp.array[vec6d]
    surfaces: SurfaceTable
    distances: Distances
    least_time: wp.float64


@wp.func
def write_hit_row(
    i: int,
    pair: wp.vec2i,
    time: wp.float64,
    later_a: wp.vec3d,
    later_b: wp.vec3d,
    normal: wp.vec3d,
    carried: CarriedBodies,
    rows: ContactRowArrays,
    facts: RowFacts,
):
    """The row of two points that face each other along a normal at a time of the motion."""
    a = pair[0]
    b = pair[1]
    motion_a = carried.motion[a]
    motion_b = carried.motion[b]
    distances = carried.distances
    point_a = carried_back(later_a, carried.state.position[a], motion_a, time)
    point_b = carried_back(later_b, carried.state.position[b], motion_b, time)
    gap = wp.dot(point_a - point_b, normal)
    arm_a = point_a - carried.state.position[a]
    arm_b = point_b - carried.state.position[b]
    way = wp.dot(at_point(motion_a, arm_a) - at_point(motion_b, arm_b), normal)
    later = wp.dot(later_a - later_b, normal)
    bend = wp.float64(0.0)
    if gap < wp.float64(0.0):  # the normal of t_c does not tell them apart at the start: the line is drawn from t_c
        gap = wp.max(later - time * way, wp.float64(0.0))
    else:
        scale = wp.max(time, carried.least_time)
        bend = -wp.max(gap + time * way - later, wp.float64(0.0)) / (scale * scale)
    target = wp.min(distances.kept + distances.security, gap)
    surface = carried.table.surface[a] * carried.surfaces.kinds + carried.table.surface[b]
    rows.body_a[i] = a
    rows.body_b[i] = b
    rows.arm_a[i] = arm_a
    rows.arm_b[i] = arm_b
    rows.frame[i] = contact_frame(normal)
    rows.friction[i] = carried.surfaces.friction[surface]
    rows.bias[i] = wp.vec3d((gap - target + bend) / distances.dt[0], wp.float64(0.0), wp.float64(0.0))
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
    facts.restitution[i] = carried.surfaces.restitution[surface]
    facts.struck[i] = wp.vec3d()


@wp.kernel
def make_hit_rows(
    first: int,
    hit: wp.array[int],
    pairs: wp.array[wp.vec2i],
    times: wp.array[wp.float64],
    points_a: wp.array[wp.vec3d],
    points_b: wp.array[wp.vec3d],
    normals: wp.array[wp.vec3d],
    carried: CarriedBodies,
    begin: wp.array[int],
    rows: ContactRowArrays,
    facts: RowFacts,
):
    """Rows behind the first `begin[0]` ones: where pairs of bodies first met.

    Args:
        hit: the pairs that were hit, of those that were asked about.
    """
    k = first + wp.tid()
    j = hit[k]
    i = begin[0] + k
    write_hit_row(i, pairs[j], times[j], points_a[j], points_b[j], normals[j], carried, rows, facts)


@wp.kernel
def make_rows_near_hits(
    first: int,
    chosen: wp.array[int],
    found: PosedColumns,
    pairs: wp.array[wp.vec2i],
    times: wp.array[wp.float64],
    carried: CarriedBodies,
    begin: wp.array[int],
    rows: ContactRowArrays,
    facts: RowFacts,
):
    """Rows behind the first `begin[0]` ones: what else of those pairs was near when they met."""
    k = first + wp.tid()
    c = chosen[k]
    j = found.pair[c]
    i = begin[0] + k
    write_hit_row(i, pairs[j], times[j], found.point_a[c], found.point_b[c], found.push[c], carried, rows, facts)


@wp.kernel
def pose_bodies(
    first: int,
    time: wp.array[wp.float64],
    table: BodyConstants,
    state: RigidState,
    motion: wp.array[vec6d],
    rotation: wp.array[wp.mat33d],
    origin: wp.array[wp.vec3d],
):
    """Where each body's mesh is at a time of its motion."""
    i = first + wp.tid()
    turned = turn(time[i] * angular_of(motion[i])) * state.rotation[i]
    rotation[i] = turned
    origin[i] = state.position[i] + time[i] * linear_of(motion[i]) - turned * table.centre[i]


def hits_apart(pairs: np.ndarray, times: np.ndarray, still: np.ndarray) -> list[np.ndarray]:
    """Numbers of hits in groups, in each of which every body that moves has one time only: the earliest hits first."""
    groups: list[tuple[list[int], dict[int, float]]] = []  # hits, and the times of their bodies
    for number in np.lexsort((np.arange(len(times)), times)).tolist():
        time = float(times[number])
        moving = [body for body in pairs[number].tolist() if not still[body]]
        fitting = (group for group in groups if all(group[1].get(body, time) == time for body in moving))
        group = next(fitting, None)
        if group is None:
            group = ([], {})
            groups.append(group)
        group[0].append(number)
        group[1].update(dict.fromkeys(moving, time))
    return [np.array(sorted(numbers)) for numbers, _ in groups]


@wp.kernel
def straighten_rows(first: int, facts: RowFacts, dt: wp.array[wp.float64], bias: wp.array[wp.vec3d]):
    """Take what bends the way out of the bias again."""
    i = first + wp.tid()
    room = wp.max(facts.gap[i] - facts.target[i], wp.float64(0.0))
    bias[i] = wp.vec3d(room / dt[0], wp.float64(0.0), wp.float64(0.0))

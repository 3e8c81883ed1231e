"""Questions about every pair of bodies in every step, written by kernels from joint values; the earliest of each step.

All of it stays on the device: values in, motions, queries and searches there, one answer for each step back.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import box_axes, box_centre
from tangere.geometry.obb import LONGEST
from tangere.motion import RigidMotion
from tangere.motion.bounds import motion_bounds_of, reparametrised_time, state_of
from tangere.motion.joints import JointArrays, joint_motion
from tangere.query.first_contact.rigid.conservative_advancement import (
    QueryArrays,
    RigidQuery,
    pair_of,
    relative_at,
    safe_time,
)
from tangere.query.first_contact.rigid.traversal import EarliestHit, no_hit
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ONE = wp.constant(wp.float64(1.0))
_ZERO = wp.constant(wp.float64(0.0))
#: Boxes about whole bodies are moved on so many times before the bodies are searched.
_TRIES = wp.constant(6)
#: Factors that cover rounding: what they leave over is nothing to the sizes of bodies.
_LARGER = wp.constant(wp.float64(1.0 + 1.0e-9))
_SMALL = wp.constant(wp.float64(1.0e-9))
#: Beyond every time.
_NEVER = wp.constant(wp.float64(2.0))


@wp.struct
class FrameTable:
    """The records of one step: where each comes from."""

    source: wp.array[wp.int32]  #: (width,) a joint, or -1 - k for the k-th given motion
    joints: JointArrays
    given: wp.array2d[RigidMotion]  #: (steps, given) motions of frames without a joint; one row serves all steps


@wp.struct
class StepValues:
    """Between which configurations each step goes."""

    configurations: wp.array2d[wp.float64]  #: (n, dof)
    begin: wp.array[wp.int32]  #: (steps,) row at its start
    end: wp.array[wp.int32]


@wp.struct
class PairTable:
    """What is asked about each pair in every step: trees, chains and lengths, (pairs,) each."""

    body: wp.array[wp.vec2i]
    node: wp.array[wp.vec2i]
    wide: wp.array[wp.vec2i]
    triangle: wp.array[wp.vec2i]
    motion: wp.array[wp.vec2i]  #: first record of each chain within a step
    links: wp.array[wp.vec2i]
    smooth: wp.array[wp.bool]  #: which clock, see `tangere.motion.bounds`
    tolerance: wp.array[wp.float64]  #: [m]
    separation: wp.array[wp.float64]  #: [m]


@wp.struct
class BodyPaths:
    """All bodies: the roots of their trees, and their whole paths from the world, (bodies,) each."""

    node: wp.array[wp.int32]
    motion: wp.array[wp.int32]
    links: wp.array[wp.int32]
    smooth: wp.bool  #: whether any motion asks for the other clock


@wp.struct
class StepHit:
    """The earliest contact of all pairs in one step; `time` > 1: none."""

    time: wp.float64  #: of the step
    pair: wp.int32  #: -1: none
    row: wp.int32  #: of the query about it
    through: wp.bool  #: they overlap at the start
    unclear: wp.bool  #: pairs are in contact at 0 of which rounding hides whether they meet


@wp.kernel
def write_step_motions(first: int, frames: FrameTable, values: StepValues, motions: wp.array[RigidMotion]):
    """One record of one step."""
    i = first + wp.tid()
    width = frames.source.shape[0]
    step = i // width
    source = frames.source[i % width]
    if source >= 0:
        column = frames.joints.value[source]
        start = values.configurations[values.begin[step], column]
        end = values.configurations[values.end[step], column]
        motions[i] = joint_motion(frames.joints, source, start, end)
    else:
        motions[i] = frames.given[wp.min(step, frames.given.shape[0] - 1), -1 - source]


@wp.func
def query_of(table: PairTable, pair: int, base: int) -> RigidQuery:
    """The question about a pair in a step whose records begin at `base`."""
    node = table.node[pair]
    wide = table.wide[pair]
    triangle = table.triangle[pair]
    motion = table.motion[pair]
    links = table.links[pair]
    query = RigidQuery()
    query.node_a = node[0]
    query.node_b = node[1]
    query.wide_a = wide[0]
    query.wide_b = wide[1]
    query.triangle_a = triangle[0]
    query.triangle_b = triangle[1]
    query.motion_a = base + motion[0]
    query.motion_b = base + motion[1]
    query.links_a = links[0]
    query.links_b = links[1]
    query.smooth = table.smooth[pair]
    query.separation = table.separation[pair]
    query.tolerance = table.tolerance[pair]
    return query


@wp.kernel
def place_bodies(first: int, bodies: BodyPaths, width: int, arrays: QueryArrays, balls: wp.array[wp.vec4d]):
    """A ball in the world, centre and radius, that a body does not leave during a step."""
    i = first + wp.tid()
    count = bodies.node.shape[0]
    body = i % count
    at = (i // count) * width + bodies.motion[body]
    bounds = motion_bounds_of(arrays.motions, at, bodies.links[body], bodies.smooth)
    state = state_of(arrays.motions, at, bodies.links[body], bodies.smooth, _ZERO)
    root = arrays.nodes_a[bodies.node[body]]
    arm = box_centre(root) - bounds.pivot
    radius = wp.float64(root.radius)
    reach = wp.length(bounds.drift) + bounds.swing + bounds.spin * (wp.length(arm) + radius)
    centre = state.point + state.rotation * arm
    # Rounded up by far more than all of this is off.
    balls[i] = wp.vec4d(centre[0], centre[1], centre[2], _LARGER * (radius + reach) + _SMALL * bounds.path)


@wp.func
def balls_apart(a: wp.vec4d, b: wp.vec4d, keep: wp.float64) -> bool:
    """Whether two balls are certainly farther apart than `keep`."""
    away = wp.vec3d(a[0] - b[0], a[1] - b[1], a[2] - b[2])
    return wp.length(away) > _LARGER * (a[3] + b[3] + keep)


@wp.kernel
def cull_step_pairs(
    first: int,
    table: PairTable,
    balls: wp.array[wp.vec4d],
    bodies: int,
    width: int,
    parts: int,
    beyond: wp.float64,
    arrays: QueryArrays,
    kept: wp.array[wp.int32],
    worst: wp.array[wp.float64],
):
    """Which pairs of a step may meet, or come nearer than `beyond`, by balls and boxes about whole bodies.

    An index is one of `parts` of the pairs of a step, and has a row of `arrays` to itself. Tolerances that cannot be
    kept are told by the least that can, in `worst`.
    """
    i = first + wp.tid()
    step = i // parts
    count = table.node.shape[0]
    pair = i % parts
    least = wp.float64(0.0)
    while pair < count:
        both = table.body[pair]
        wanted = wp.max(table.separation[pair] + table.tolerance[pair], beyond)
        if balls_apart(balls[step * bodies + both[0]], balls[step * bodies + both[1]], wanted):
            kept[step * count + pair] = 0
            pair += parts
            continue
        query = query_of(table, pair, step * width)
        arrays.queries[i] = query
        arrays.pairs[i] = pair_of(query, arrays)
        if arrays.pairs[i].tolerance > query.tolerance:
            least = wp.max(least, arrays.pairs[i].tolerance)
        keep = wp.max(arrays.pairs[i].keep, LONGEST * beyond + arrays.pairs[i].slack)
        a = arrays.nodes_a[query.node_a]
        b = arrays.nodes_b[query.node_b]
        back_a = wp.transpose(box_axes(a))
        time = wp.float64(0.0)
        tries = int(0)
        going = bool(True)
        while going:
            now = relative_at(arrays, i, time)
            safe = safe_time(now, arrays.pairs, i, keep, back_a, a, b, time, _ONE)
            tries += 1
            going = safe[1] > time and not safe[1] > _ONE and tries < _TRIES
            time = safe[1]
        kept[step * count + pair] = wp.where(time > _ONE, 0, 1)
        pair += parts
    worst[i] = least


@wp.kernel
def gather_rows(first: int, kept: wp.array[wp.int32], starts: wp.array[wp.int32], rows: wp.array[wp.int32]):
    """Numbers of what is kept, one after the other."""
    i = first + wp.tid()
    if kept[i] == 1:
        rows[starts[i]] = i


@wp.kernel
def write_step_queries(
    first: int,
    rows: wp.array[wp.int32],
    table: PairTable,
    width: int,
    arrays: QueryArrays,
    hits: wp.array[EarliestHit],
):
    """One pair in one step, step * pairs + pair = rows[i], from the motions where they are."""
    i = first + wp.tid()
    count = table.node.shape[0]
    query = query_of(table, rows[i] % count, (rows[i] // count) * width)
    arrays.queries[i] = query
    arrays.pairs[i] = pair_of(query, arrays)
    hits[i] = no_hit()


@wp.kernel
def find_step_hits(
    first: int,
    count: int,
    total: int,
    rows: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    stride: int,
    smooth: wp.array[wp.bool],
    hits: wp.array[EarliestHit],
    found: wp.array[StepHit],
):
    """The earliest of the kept pairs of a step: of equal times one that overlaps at the start, then the first.

    count: pairs of a step, kept or not; total: of those kept in all steps; starts: the first of
    them in each step, every `stride` entries; smooth: which clock each pair has.
    """
    step = first + wp.tid()
    best = StepHit()
    best.time = _NEVER
    best.pair = -1
    i = starts[step * stride]
    while i < total and rows[i] < (step + 1) * count:
        hit = hits[i]
        if hit.time <= _ONE:
            pierced = hit.pierced >= 0
            if hit.time == _ZERO and not pierced:
                best.unclear = True
            pair = rows[i] % count
            time = reparametrised_time(smooth[pair], hit.time)  # pairs may have different clocks
            if time < best.time or (time == best.time and pierced and not best.through):
                best.time = time
                best.pair = pair
                best.row = i
                best.through = pierced
        i += 1
    found[step] = best

"""All features of two bodies that are in contact at one instant.

Method: the two trees are descended level by level, all pairs of a level at once; box pairs further apart than the limit
        are dropped. Of each pair of triangles that is left, the feature pairs (of 15) within the limit are kept.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import ObbNode, box_axes, box_centre, box_half
from tangere.geometry.obb import LONGEST, separation_of
from tangere.geometry.triangles import feature_pair
from tangere.motion import RigidMotion
from tangere.motion.bounds import state_of
from tangere.query.first_contact.rigid.conservative_advancement import RigidQuery, pair_of, relative_at
from tangere.query.first_contact.rigid.details import ContactDetail, detail_of
from tangere.query.first_contact.rigid.narrow_phase import corners_of, placed
from tangere.runtime import SOUND, collect, device_of, reserve_slots

wp.set_module_options(SOUND)


def contacts_at(inputs: list[wp.array], instants: wp.array) -> wp.array:
    """Every contact (`ContactDetail`) of the queries at the `instants` (clock times; beyond 1: none), in no set order.

    Args:
        inputs: queries, motions, nodes_a, corners_a, nodes_b, corners_b, as the search takes them.
    """
    queries, device = inputs[0], device_of(inputs[0])
    front = collect(_roots, len(queries), [instants], wp.vec3i, device=device)
    pairs = []
    while len(front):
        pairs.append(collect(_leaves, len(front), [front, inputs[2], inputs[4], queries], wp.vec3i, device=device))
        front = collect(_descend, len(front), [front, *inputs, instants], wp.vec3i, device=device)
    total = sum(len(part) for part in pairs)
    leaves = wp.empty(total, dtype=wp.vec3i, device=device)
    place = 0
    for part in pairs:
        if len(part):
            wp.copy(leaves, part, place, 0, len(part))
            place += len(part)
    return collect(_contacts, total, [leaves, *inputs, instants], ContactDetail, device=device, grain=16)


@wp.kernel
def _roots(
    first: int,
    shard: int,
    instants: wp.array[wp.float64],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    i = first + wp.tid()
    if instants[i] <= wp.float64(1.0):
        place = reserve_slots(counts, shard, 1, capacity)
        if place >= 0:
            out[place] = wp.vec3i(i, 0, 0)


@wp.kernel
def _leaves(
    first: int,
    shard: int,
    front: wp.array[wp.vec3i],
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    queries: wp.array[RigidQuery],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """The pairs of triangles in the front, as (query, triangle of a, triangle of b)."""
    item = front[first + wp.tid()]
    query = queries[item[0]]
    a = nodes_a[query.node_a + item[1]]
    b = nodes_b[query.node_b + item[2]]
    if a.right < 0 and b.right < 0:
        place = reserve_slots(counts, shard, 1, capacity)
        if place >= 0:
            out[place] = wp.vec3i(item[0], a.triangle, b.triangle)


@wp.kernel
def _descend(
    first: int,
    shard: int,
    front: wp.array[wp.vec3i],
    queries: wp.array[RigidQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    instants: wp.array[wp.float64],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """The children of the front's pairs that are near enough."""
    item = front[first + wp.tid()]
    query = queries[item[0]]
    a = nodes_a[query.node_a + item[1]]
    b = nodes_b[query.node_b + item[2]]
    if a.right >= 0 or b.right >= 0:
        pair = pair_of(query, motions, nodes_a, nodes_b)
        now = relative_at(query, pair, motions, instants[item[0]])
        limit = LONGEST * (pair.separation + pair.tolerance) + pair.slack
        child_a = item[1]
        child_b = item[2]
        for k in range(2):
            if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
                child_a = item[1] + 1
                if k == 1:
                    child_a = a.right
            else:
                child_b = item[2] + 1
                if k == 1:
                    child_b = b.right
            box_a = nodes_a[query.node_a + child_a]
            box_b = nodes_b[query.node_b + child_b]
            back = wp.transpose(box_axes(box_a))
            arm_a = box_centre(box_a) - pair.course_a.pivot
            arm_b = now.rotation * (box_centre(box_b) - pair.course_b.pivot)
            apart = separation_of(
                back * (now.point + arm_b - arm_a),
                back * (now.rotation * box_axes(box_b)),
                box_half(box_a),
                box_half(box_b),
            )
            if not apart.gap > limit:
                place = reserve_slots(counts, shard, 1, capacity)
                if place >= 0:
                    out[place] = wp.vec3i(item[0], child_a, child_b)


@wp.kernel
def _contacts(
    first: int,
    shard: int,
    leaves: wp.array[wp.vec3i],
    queries: wp.array[RigidQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    instants: wp.array[wp.float64],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[ContactDetail],
):
    """The feature pairs of a pair of triangles that are near enough."""
    item = leaves[first + wp.tid()]
    query = queries[item[0]]
    pair = pair_of(query, motions, nodes_a, nodes_b)
    tau = instants[item[0]]
    now = relative_at(query, pair, motions, tau)
    a = corners_of(corners_a, query.triangle_a + item[1], pair.course_a.pivot)
    b = placed(now, corners_of(corners_b, query.triangle_b + item[2], pair.course_b.pivot))
    limit = pair.separation + pair.tolerance
    k = int(0)
    while k < 15:
        features = feature_pair(a, b, k)
        if features.squared <= limit * limit:
            place = reserve_slots(counts, shard, 1, capacity)
            if place >= 0:
                frame = state_of(motions, query.motion_a, query.links_a, query.smooth, tau)
                detail = detail_of(frame, pair, a, b, features)
                detail.query = item[0]
                detail.triangle_a = item[1]
                detail.triangle_b = item[2]
                out[place] = detail
        k += 1

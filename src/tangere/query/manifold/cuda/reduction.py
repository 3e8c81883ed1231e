"""Reduction of the CUDA pipeline: which of a body's contact points are retained, and where do the contacts go?

`sort_contact_points` puts a body's points into the order in which the traversal meets them, in slots side by side after
those of the body before: neighbouring threads then read neighbouring memory. `group_contact_points` does with them what
`traversal` does as it meets them: walls, groups, the leaders of each group. A group is a chain of slots, so that there
is no limit to their number; its leaders are found one group after the other. `reduce_groups` retains at most four of
each.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.query.manifold.cuda.buffers import (
    BLOCKS,
    SLOTS,
    Batch,
    Link,
    ManifoldBuffers,
    advance,
    overflowed,
    reserve,
    segment_of,
    store,
    unpack_body,
)
from tangere.query.manifold.details import (
    Columns,
    contact_point_at,
    four_at,
    half_of,
    row_of,
    store_four,
    write_row,
)
from tangere.query.manifold.narrow_phase.contact import NO_CONTACT
from tangere.query.manifold.reduction import (
    ALIKE,
    KEPT,
    TIE,
    Leaders,
    SteepWalls,
    add_wall,
    clear_walls,
    compete,
    keep_leaders,
    kept_at,
    no_leaders,
    reduced,
    wall_at,
    wall_before,
)
from tangere.query.manifold.traversal import lift_of, lifted_contact
from tangere.runtime import BLOCK, SOUND
from tangere.shape.analytic import CYLINDER, perpendicular_to, support_of

wp.set_module_options(SOUND)

#: Contact points of a body that are sorted in registers.
IN_REGISTERS = wp.constant(16)
Orders = wp.types.vector(length=16, dtype=wp.int64)
Numbers = wp.types.vector(length=16, dtype=wp.int32)

_LAST = wp.constant(wp.int64(2**63 - 1))

#: What is known of a body.
DONE = wp.constant(0)
UNDECIDED = wp.constant(1)
WITH_LIFT = wp.constant(2)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_FAR = wp.constant(wp.float64(1.0e300))


@wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS + 2))
def sort_contact_points(first: int, buffers: ManifoldBuffers):
    """Give the contact points of a body slots side by side, in the order in which the traversal meets them."""
    k = first + wp.tid()
    if not sort_few(buffers, k):
        sort_many(buffers, k)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const longlong2 both = *reinterpret_cast<const longlong2*>(&links.data[at]);
    return wp::vec_t<2, wp::int64>((int)both.x, both.y);
#else
    return wp::vec_t<2, wp::int64>(links.data[at].after, links.data[at].order);
#endif
""")
def link_at(links: wp.array[Link], at: int) -> wp.vec2l:
    """A link, read at once: after and order."""
    ...


@wp.func
def packed_index(at: int, order: wp.int64) -> int:
    """A contact point as it is kept in a slot."""
    return 2 * at + int(order & wp.int64(1))


@wp.func
def sort_few(buffers: ManifoldBuffers, k: int) -> bool:
    """Sort the contact points of a body, unless there are more than IN_REGISTERS."""
    orders = Orders()
    numbers = Numbers()
    for s in range(IN_REGISTERS):
        orders[s] = _LAST
    count = int(0)
    at = buffers.heads[k]
    while at >= 0 and count < IN_REGISTERS:
        link = link_at(buffers.links, at)
        order = link[1]
        number = packed_index(at, order)
        for s in range(IN_REGISTERS):
            other = orders[s]
            other_number = numbers[s]
            if order < other:
                orders[s] = order
                numbers[s] = number
                order = other
                number = other_number
        at = int(link[0])
        count += 1
    if at >= 0:
        return False
    segment = segment_of(k)
    begin = segment * buffers.slot_capacity + int(advance(buffers, SLOTS, segment, count + 1))
    buffers.begin[k] = begin
    buffers.end[k] = begin + count
    for s in range(IN_REGISTERS):
        if s < count:
            buffers.sorted_points[begin + s] = numbers[s]
    return True


@wp.func
def sort_many(buffers: ManifoldBuffers, k: int):
    """Sort the contact points of a body, however many there are: a heap sort."""
    count = int(0)
    at = buffers.heads[k]
    while at >= 0:
        count += 1
        at = buffers.links[at].after
    segment = segment_of(k)
    begin = segment * buffers.slot_capacity + int(advance(buffers, SLOTS, segment, count + 1))
    buffers.begin[k] = begin
    buffers.end[k] = begin + count
    # A heap, whose first is the last in order, in the slots themselves.
    size = int(0)
    at = buffers.heads[k]
    while at >= 0:
        link = link_at(buffers.links, at)
        hole = size + 0
        is_less = bool(True)
        while hole > 0 and is_less:
            parent = (hole - 1) // 2
            is_less = order_in(buffers, begin + parent) < link[1]
            if is_less:
                buffers.sorted_points[begin + hole] = buffers.sorted_points[begin + parent]
                hole = parent + 0
        buffers.sorted_points[begin + hole] = packed_index(at, link[1])
        size += 1
        at = int(link[0])
    while size > 1:
        size -= 1
        moved = buffers.sorted_points[begin + size]
        order = order_in(buffers, begin + size)
        buffers.sorted_points[begin + size] = buffers.sorted_points[begin]
        hole = int(0)
        child = int(1)
        while child < size:
            if child + 1 < size:
                if order_in(buffers, begin + child + 1) > order_in(buffers, begin + child):
                    child += 1
            if order_in(buffers, begin + child) > order:
                buffers.sorted_points[begin + hole] = buffers.sorted_points[begin + child]
                hole = child + 0
                child = 2 * child + 1
            else:
                child = size + 0
        buffers.sorted_points[begin + hole] = moved


@wp.func
def order_in(buffers: ManifoldBuffers, slot: int) -> wp.int64:
    return buffers.links[buffers.sorted_points[slot] >> 1].order


class ReductionKernels(NamedTuple):
    """The kernels for one kind of body."""

    group_contact_points: wp.Kernel
    lift_undecided: wp.Kernel


@wp.struct
class GroupChain:
    """The groups of a body so far, a chain; each is known by its first slot."""

    first: wp.int32  #: -1 while there is none
    normal: wp.vec3d  #: of the first, which most contact points join …
    tail: wp.int32  #: … the last one from this slot
    last: wp.int32


@wp.func
def add_to_group(buffers: ManifoldBuffers, chain: GroupChain, slot: int, normal: wp.vec3d) -> GroupChain:
    """Put a contact point into the group whose normal is nearest, or into a new one."""
    buffers.next_in_group[slot] = -1
    buffers.next_group[slot] = -1
    best = int(-1)
    most = ALIKE + _ZERO
    group = chain.first + 0  # a copy
    its_normal = chain.normal
    while group >= 0:
        along = wp.dot(its_normal, normal)
        if along >= most:
            most = along
            best = group
        if group == chain.last:
            group = int(-1)
        else:
            group = buffers.next_group[group]
            its_normal = normal_of(half_of(buffers.contact_points, buffers.sorted_points[group] >> 1, 1))
    if chain.first < 0:
        chain.first = slot
        chain.normal = normal
        chain.tail = slot
        chain.last = slot
    elif best == chain.first:
        buffers.next_in_group[chain.tail] = slot
        chain.tail = slot
    elif best >= 0:
        buffers.next_in_group[buffers.last_in_group[best]] = slot
        buffers.last_in_group[best] = slot
    else:
        buffers.next_group[chain.last] = slot
        buffers.last_in_group[slot] = slot
        chain.last = slot
    return chain


@wp.func
def normal_of(half: wp.vec4d) -> wp.vec3d:
    return wp.vec3d(half[0], half[1], half[2])


@wp.func
def leaders_of(buffers: ManifoldBuffers, group: int) -> Leaders:
    normal = normal_of(half_of(buffers.contact_points, buffers.sorted_points[group] >> 1, 1))
    side = perpendicular_to(normal)
    leaders = no_leaders()
    slot = group + 0  # a copy
    while slot >= 0:
        at = buffers.sorted_points[slot] >> 1
        slot = buffers.next_in_group[slot]
        # The compiler should know that the contact is in the list, so that it makes no copies.
        leaders = compete(
            buffers.contact_points,
            leaders,
            normal,
            side,
            contact_point_at(buffers.contact_points, at),
            wp.max(at, 0),
            0,
        )
    return leaders


@cache
def reduction_kernels(kind: int) -> ReductionKernels:
    """The kernels for one kind of body."""
    support, lift = support_of(kind), lift_of(kind)
    can_lift = wp.constant(int(kind == CYLINDER))

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
    def group_contact_points(
        first: int,
        buffers: ManifoldBuffers,
        walls: SteepWalls,
        only: int,
        state: wp.array[wp.uint8],
    ):
        k = first + wp.tid()
        if state[k] != wp.uint8(only):
            return
        slack = buffers.bodies[k].slack
        begin = buffers.begin[k]
        end = buffers.end[k]
        clear_walls(walls, k)
        filtered = int(0)
        with_lifted = int(0)
        deepest = -_FAR
        again = bool(True)
        while again:
            # Put every contact into its group; once more, without those behind walls, if there are such.
            chain = GroupChain()
            chain.first = -1
            chain.last = -1
            last_wall = wp.where(filtered != 0, walls.count[k], 0)
            q = int(0)
            while q < end - begin + last_wall + with_lifted:
                # Those of the traversal, then walls that stand for some, then the lifted one.
                slot = begin + q
                is_free = bool(True)
                if slot >= end:
                    w = slot - end
                    slot = end + 0
                    if w < last_wall:
                        slot = walls.number[wall_at(walls, k, w)]
                        is_free = walls.used[wall_at(walls, k, w)] != 0
                at = buffers.sorted_points[slot] >> 1
                half = half_of(buffers.contact_points, at, 1)
                if begin + q < end:
                    is_wall = (buffers.sorted_points[slot] & 1) != 0
                    is_free = int(wp.cast(half[3], wp.int64)) != NO_CONTACT
                    if is_free and is_wall and filtered == 0:
                        add_wall(walls, k, contact_point_at(buffers.contact_points, at), slot, slack)
                    is_free = is_free and not is_wall
                    if is_free and filtered != 0:
                        before = wall_before(walls, k, contact_point_at(buffers.contact_points, at), slack)
                        if before >= 0:
                            walls.used[before] = 1
                            is_free = bool(False)
                if is_free:
                    chain = add_to_group(buffers, chain, slot, normal_of(half))
                q += 1
            buffers.groups[k] = chain.first
            # Of every group, the leaders.
            is_behind = bool(False)
            deepest = -_FAR
            group = chain.first + 0
            while group >= 0:
                leaders = leaders_of(buffers, group)
                deepest = wp.max(deepest, leaders.score[0])
                keep_leaders(buffers.leaders, group, leaders)
                if walls.count[k] > 0 and filtered == 0:
                    c = int(0)
                    while c < KEPT and not is_behind:
                        at = kept_at(buffers.leaders, group, c)
                        is_behind = wall_before(walls, k, contact_point_at(buffers.contact_points, at), slack) >= 0
                        c += 1
                group = buffers.next_group[group]
            again = bool(False)
            if is_behind:
                filtered = int(1)
                again = bool(True)
            elif with_lifted == 0 and only == WITH_LIFT:
                with_lifted = int(1)
                again = bool(True)
        state[k] = wp.uint8(DONE)
        if can_lift != 0 and deepest < _ZERO and only == DONE:
            state[k] = wp.uint8(UNDECIDED)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
    def lift_undecided(first: int, batch: Batch, buffers: ManifoldBuffers, state: wp.array[wp.uint8]):
        k = first + wp.tid()
        if state[k] != wp.uint8(UNDECIDED) or overflowed(buffers, segment_of(k)):
            return
        here = unpack_body(batch, buffers, k)
        state[k] = wp.uint8(DONE)
        up = lift(batch.terrains[here.world], here.body, here.place)
        if up >= _ZERO:
            point = support(here.body, batch.hulls, wp.vec3d(_ZERO, _ZERO, -_ONE))
            at = reserve(buffers, segment_of(k), 1)
            if at >= 0:
                store(buffers, at, lifted_contact(point, up), wp.int64(0))
                buffers.sorted_points[buffers.end[k]] = 2 * at
                state[k] = wp.uint8(WITH_LIFT)

    return ReductionKernels(group_contact_points, lift_undecided)


@wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
def reduce_groups(first: int, buffers: ManifoldBuffers, count: int, number: wp.array[int]):
    """Of the `count` = KEPT leaders of every group, those that are retained, and how many of them a body has."""
    k = first + wp.tid()
    tie = TIE * buffers.bodies[k].margin
    total = int(0)
    group = buffers.groups[k]
    while group >= 0:
        at = buffers.sorted_points[group] >> 1
        retained = wp.vec4i(at, -1, -1, -1)
        if buffers.next_in_group[group] >= 0:
            normal = normal_of(half_of(buffers.contact_points, at, 1))
            which = reduced(buffers.contact_points, buffers.leaders, group, count, normal, tie)
            for c in range(4):
                retained[c] = -1
                if which[c] >= 0:
                    retained[c] = kept_at(buffers.leaders, group, which[c])
        store_four(buffers.retained, group, retained)
        for c in range(4):
            if retained[c] >= 0:
                total += 1
        group = buffers.next_group[group]
    number[k] = total


@wp.kernel
def list_contacts(
    first: int,
    buffers: ManifoldBuffers,
    number: wp.array[int],
    ends: wp.array[int],
    listed: wp.array[wp.vec3i],
):
    """List the contact points that are retained, with body and group, by rising body, as far as there is room."""
    k = first + wp.tid()
    if number[k] == 0 or ends[k] > listed.shape[0]:
        return
    at = ends[k] - number[k]
    group = buffers.groups[k]
    g = int(0)
    while group >= 0:
        retained = four_at(buffers.retained, group)
        for c in range(4):
            if retained[c] >= 0:
                listed[at] = wp.vec3i(retained[c], k, g)
                at += 1
        group = buffers.next_group[group]
        g += 1


@wp.kernel
def write_contacts(
    first: int,
    batch: Batch,
    buffers: ManifoldBuffers,
    listed: wp.array[wp.vec3i],
    ends: wp.array[int],
    columns: Columns,
):
    """Write the contacts of the listed points, all columns of them."""
    j = first + wp.tid()
    total = ends[ends.shape[0] - 1]
    if total > listed.shape[0] or j >= total:
        return
    chosen = listed[j]
    i = batch.chosen[batch.first + chosen[1]]
    pose = batch.poses[i]
    origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
    row = row_of(contact_point_at(buffers.contact_points, chosen[0]), i, chosen[2], origin)
    write_row(columns, j, row, batch.worlds[wp.min(i, batch.worlds.shape[0] - 1)])

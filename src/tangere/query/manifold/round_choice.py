"""The last kernels of `rounds`: of all that touches a body, which points stay, and where do they go?

What `sweep` does with touches as it meets them is done here with the chain of them, put into the same order. A group
is a chain as well, so that there is no limit to their number; its leaders are found one group after the other.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.query.manifold.found import Row, row_of
from tangere.query.manifold.groups import ALIKE, KEPT, TIE, Leaders, compete, no_leaders, reduced
from tangere.query.manifold.round_story import BLOCKS, Batch, Story, is_short, put, reserve, segment_of, standing
from tangere.query.manifold.sweep import lift_of, lifted_touch
from tangere.query.manifold.touching import NO_TOUCH
from tangere.query.manifold.walls import Walls, add_wall, clear_walls, wall_at, wall_before
from tangere.runtime import SOUND
from tangere.runtime.kernels import BLOCK
from tangere.shape.analytic import CYLINDER
from tangere.shape.analytic_body import across, support_of

wp.set_module_options(SOUND)

__all__ = ["ASKED", "DONE", "Choosing", "choosing_of", "pick", "put_in_order", "reduce", "tell"]

#: What is known of a body.
DONE = wp.constant(0)
UNSURE = wp.constant(1)
ASKED = wp.constant(2)

#: Touches of a chain that are put into order in registers.
AT_ONCE = wp.constant(16)
Orders = wp.types.vector(length=16, dtype=wp.int64)
Places = wp.types.vector(length=16, dtype=wp.int32)

_LAST = wp.constant(wp.int64(2**63 - 1))
_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_FAR = wp.constant(wp.float64(1.0e300))


class Choosing(NamedTuple):
    """The kernels for one kind of body."""

    choose: wp.Kernel
    lift_unsure: wp.Kernel


@wp.func
def run_from(story: Story, first: int) -> wp.vec2i:
    """How many touches of a chain are in the order of the sweep, from one on, and which comes after them."""
    length = int(0)
    at = first + 0  # a copy
    is_run = bool(first >= 0)
    order = wp.int64(-1)
    while is_run:
        link = story.links[at]
        is_run = link.order > order
        if is_run:
            length += 1
            order = link.order
            at = link.after
            is_run = at >= 0
    return wp.vec2i(length, at)


@wp.func
def in_order(story: Story, head: int) -> int:
    """The first touch of a chain that is put into the order of the sweep: some at a time, in registers."""
    first = int(-1)
    tail = int(-1)
    rounds = int(0)
    at = head + 0  # a copy
    while at >= 0:
        orders = Orders()
        places = Places()
        for s in range(AT_ONCE):
            orders[s] = _LAST
        number = int(0)
        while at >= 0 and number < AT_ONCE:
            link = story.links[at]
            order = link.order
            place = at + 0
            for s in range(AT_ONCE):
                other = orders[s]
                other_place = places[s]
                if order < other:
                    orders[s] = order
                    places[s] = place
                    order = other
                    place = other_place
            at = link.after
            number += 1
        for s in range(AT_ONCE):
            if s < number:
                if tail < 0:
                    first = places[s]
                else:
                    story.links[tail].after = places[s]
                tail = places[s]
        rounds += 1
    if tail >= 0:
        story.links[tail].after = -1
    if rounds > 1:
        first = merged(story, first)
    return first


@wp.func
def merged(story: Story, head: int) -> int:
    """The first touch of a chain whose runs are merged, two by two, until there is one."""
    first = head + 0  # a copy
    merges = int(2)
    while merges > 1:
        merges = int(0)
        p = first + 0
        tail = int(-1)
        while p >= 0:
            run = run_from(story, p)
            in_p = run[0]
            q = run[1]
            merges += 1
            in_q = run_from(story, q)[0]
            while in_p + in_q > 0:
                is_q = bool(in_p == 0)
                if in_p > 0 and in_q > 0:
                    is_q = story.links[q].order < story.links[p].order
                at = p + 0
                if is_q:
                    at = q + 0
                    q = story.links[q].after
                    in_q -= 1
                else:
                    p = story.links[p].after
                    in_p -= 1
                if tail < 0:
                    first = at
                else:
                    story.links[tail].after = at
                tail = at
            p = q
        if tail >= 0:
            story.links[tail].after = -1
    return first


@wp.struct
class Joined:
    """The groups of a body so far, each named by its first touch."""

    first: wp.int32  #: -1 while there is none
    normal: wp.vec3d  #: of the first, which most touches join …
    touch: wp.int32  #: … the last one by this
    last: wp.int32


@wp.func
def join(story: Story, joined: Joined, at: int, normal: wp.vec3d) -> Joined:
    """Put a touch into the group whose normal is nearest, or into a new one."""
    best = int(-1)
    most = ALIKE + _ZERO
    group = joined.first + 0  # a copy
    its_normal = joined.normal
    while group >= 0:
        along = wp.dot(its_normal, normal)
        if along >= most:
            most = along
            best = group
        if group == joined.last:
            group = int(-1)
        else:
            group = story.links[group].next_group
            its_normal = story.touches[group].normal
    if joined.first < 0:
        joined.first = at
        joined.normal = normal
        joined.touch = at
        joined.last = at
    elif best == joined.first:
        story.links[joined.touch].fellow = at
        joined.touch = at
    elif best >= 0:
        story.links[story.links[best].last].fellow = at
        story.links[best].last = at
    else:
        story.links[joined.last].next_group = at
        story.links[at].last = at
        joined.last = at
    return joined


@wp.func
def part(story: Story, at: int):
    """Take a touch out of its group."""
    story.links[at].fellow = -1
    story.links[at].next_group = -1


@wp.func
def leaders_of(story: Story, group: int) -> Leaders:
    normal = story.touches[group].normal
    side = across(normal)
    leaders = no_leaders()
    at = group + 0  # a copy
    while at >= 0:
        leaders = compete(story.touches, leaders, normal, side, story.touches[at], at, 0)
        at = story.links[at].fellow
    return leaders


@cache
def choosing_of(kind: int) -> Choosing:
    """The kernels for one kind of body."""
    support, lift = support_of(kind), lift_of(kind)
    can_lift = wp.constant(int(kind == CYLINDER))

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
    def choose(
        first: int,
        story: Story,
        walls: Walls,
        only: int,
        state: wp.array[wp.uint8],
        lifted: wp.array[int],
    ):
        k = first + wp.tid()
        if state[k] != wp.uint8(only):
            return
        slack = story.noted[k].place.slack
        head = story.heads[k]
        clear_walls(walls, k)
        filtered = int(0)
        with_lifted = int(0)
        deepest = -_FAR
        is_again = bool(only == ASKED)
        again = bool(True)
        while again:
            # Put every touch into its group; once more, without those behind walls, if there are such.
            joined = Joined()
            joined.first = -1
            joined.last = -1
            at = head + 0
            while at >= 0:
                link = story.links[at]
                normal = story.touches[at].normal
                if is_again:
                    part(story, at)
                is_wall = (link.order & wp.int64(1)) != wp.int64(0)
                if story.touches[at].code != NO_TOUCH:
                    if is_wall and filtered == 0:
                        add_wall(walls, k, story.touches[at], at, slack)
                    if not is_wall:
                        before = int(-1)
                        if filtered != 0:
                            before = wall_before(walls, k, story.touches[at], slack)
                        if before >= 0:
                            walls.used[before] = 1
                        else:
                            joined = join(story, joined, at, normal)
                at = link.after
            more = int(0)  # after those: walls that stand for some, and the lifted one
            last_wall = wp.where(filtered != 0, walls.count[k], 0)
            while more < last_wall + with_lifted:
                if more == last_wall:
                    joined = join(story, joined, lifted[k], wp.vec3d(_ZERO, _ZERO, _ONE))
                elif walls.used[wall_at(walls, k, more)] != 0:
                    at = walls.number[wall_at(walls, k, more)]
                    joined = join(story, joined, at, story.touches[at].normal)
                more += 1
            story.groups[k] = joined.first
            # Of every group, the leaders.
            is_behind = bool(False)
            deepest = -_FAR
            group = joined.first + 0
            while group >= 0:
                leaders = leaders_of(story, group)
                deepest = wp.max(deepest, leaders.score[0])
                for c in range(KEPT):
                    story.kept[KEPT * group + c] = leaders.number[c]
                if walls.count[k] > 0 and filtered == 0:
                    c = int(0)
                    while c < KEPT and not is_behind:
                        is_behind = wall_before(walls, k, story.touches[story.kept[KEPT * group + c]], slack) >= 0
                        c += 1
                group = story.links[group].next_group
            is_again = bool(True)
            again = bool(False)
            if is_behind:
                filtered = int(1)
                again = bool(True)
            elif with_lifted == 0 and lifted[k] >= 0:
                with_lifted = int(1)
                again = bool(True)
        state[k] = wp.uint8(DONE)
        if can_lift != 0 and deepest < _ZERO and only == DONE:
            state[k] = wp.uint8(UNSURE)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
    def lift_unsure(first: int, batch: Batch, story: Story, state: wp.array[wp.uint8], lifted: wp.array[int]):
        k = first + wp.tid()
        if state[k] != wp.uint8(UNSURE) or is_short(story, segment_of(k)):
            return
        here = standing(batch, story, k)
        state[k] = wp.uint8(DONE)
        up = lift(batch.terrains[here.world], here.body, here.place)
        if up >= _ZERO:
            point = support(here.body, batch.hulls, wp.vec3d(_ZERO, _ZERO, -_ONE))
            at = reserve(story, segment_of(k), 1)
            if at >= 0:
                put(story, at, lifted_touch(point, up), wp.int64(0))
            lifted[k] = at
            state[k] = wp.uint8(ASKED)

    return Choosing(choose, lift_unsure)


@wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
def put_in_order(first: int, story: Story):
    k = first + wp.tid()
    story.heads[k] = in_order(story, story.heads[k])


@wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
def reduce(first: int, story: Story, count: int, number: wp.array[int]):
    """Of the `count` = KEPT leaders of every group, those that stay, and how many these are for a body."""
    k = first + wp.tid()
    tie = TIE * story.noted[k].place.margin
    total = int(0)
    group = story.groups[k]
    while group >= 0:
        link = story.links[group]
        stay = wp.vec4i(group, -1, -1, -1)
        if link.fellow >= 0:
            which = reduced(story.touches, story.kept, KEPT * group, count, story.touches[group].normal, tie)
            for c in range(4):
                stay[c] = -1
                if which[c] >= 0:
                    stay[c] = story.kept[KEPT * group + which[c]]
        story.stay[group] = stay
        for c in range(4):
            if stay[c] >= 0:
                total += 1
        group = link.next_group
    number[k] = total


@wp.kernel
def pick(
    first: int,
    story: Story,
    number: wp.array[int],
    ends: wp.array[int],
    picks: wp.array[wp.vec3i],
):
    """List the touches that stay, with body and group, by rising body."""
    k = first + wp.tid()
    if number[k] == 0:
        return
    at = ends[k] - number[k]
    group = story.groups[k]
    g = int(0)
    while group >= 0:
        stay = story.stay[group]
        for c in range(4):
            if stay[c] >= 0:
                picks[at] = wp.vec3i(stay[c], k, g)
                at += 1
        group = story.links[group].next_group
        g += 1


@wp.kernel
def tell(first: int, batch: Batch, story: Story, picks: wp.array[wp.vec3i], rows: wp.array[Row]):
    """The rows of the touches that stay."""
    j = first + wp.tid()
    chosen = picks[j]
    i = batch.chosen[batch.first + chosen[1]]
    pose = batch.poses[i]
    origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
    rows[j] = row_of(story.touches[chosen[0]], i, chosen[2], origin)

"""The last kernels of `rounds`: of all that touches a body, which points stay, and where do they go?

What `sweep` does with touches as it meets them is done here with all of them, put into the same order (`round_order`).
A group is a chain of their places, so that there is no limit to their number; its leaders are found one group after the
other.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.query.manifold.contact_point import four_at, half_of, put_four, touch_at
from tangere.query.manifold.cuda.buffers import (
    BLOCKS,
    Batch,
    ManifoldBuffers,
    is_short,
    put,
    reserve,
    segment_of,
    standing,
)
from tangere.query.manifold.details import Columns, row_of, tell_row
from tangere.query.manifold.features.contact import NO_TOUCH
from tangere.query.manifold.features.wall import SteepWalls, add_wall, clear_walls, wall_at, wall_before
from tangere.query.manifold.reduction import (
    ALIKE,
    KEPT,
    TIE,
    Leaders,
    compete,
    keep_leaders,
    kept_at,
    no_leaders,
    reduced,
)
from tangere.query.manifold.sweep import lift_of, lifted_touch
from tangere.runtime import BLOCK, SOUND
from tangere.shape.analytic import CYLINDER, across, support_of

wp.set_module_options(SOUND)

__all__ = ["ASKED", "DONE", "Choosing", "choosing_of", "pick", "reduce", "tell"]

#: What is known of a body.
DONE = wp.constant(0)
UNSURE = wp.constant(1)
ASKED = wp.constant(2)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_FAR = wp.constant(wp.float64(1.0e300))


class Choosing(NamedTuple):
    """The kernels for one kind of body."""

    choose: wp.Kernel
    lift_unsure: wp.Kernel


@wp.struct
class Joined:
    """The groups of a body so far, each named by its first place."""

    first: wp.int32  #: -1 while there is none
    normal: wp.vec3d  #: of the first, which most touches join …
    place: wp.int32  #: … the last one from this
    last: wp.int32


@wp.func
def join(story: ManifoldBuffers, joined: Joined, place: int, normal: wp.vec3d) -> Joined:
    """Put a touch into the group whose normal is nearest, or into a new one."""
    story.fellow[place] = -1
    story.next_group[place] = -1
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
            group = story.next_group[group]
            its_normal = normal_of(half_of(story.touches, story.touch[group] >> 1, 1))
    if joined.first < 0:
        joined.first = place
        joined.normal = normal
        joined.place = place
        joined.last = place
    elif best == joined.first:
        story.fellow[joined.place] = place
        joined.place = place
    elif best >= 0:
        story.fellow[story.last[best]] = place
        story.last[best] = place
    else:
        story.next_group[joined.last] = place
        story.last[place] = place
        joined.last = place
    return joined


@wp.func
def normal_of(half: wp.vec4d) -> wp.vec3d:
    return wp.vec3d(half[0], half[1], half[2])


@wp.func
def leaders_of(story: ManifoldBuffers, group: int) -> Leaders:
    normal = normal_of(half_of(story.touches, story.touch[group] >> 1, 1))
    side = across(normal)
    leaders = no_leaders()
    place = group + 0  # a copy
    while place >= 0:
        at = story.touch[place] >> 1
        place = story.fellow[place]
        # The compiler should know that the touch is in the list, so that it makes no copies.
        leaders = compete(story.touches, leaders, normal, side, touch_at(story.touches, at), wp.max(at, 0), 0)
    return leaders


@cache
def choosing_of(kind: int) -> Choosing:
    """The kernels for one kind of body."""
    support, lift = support_of(kind), lift_of(kind)
    can_lift = wp.constant(int(kind == CYLINDER))

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
    def choose(
        first: int,
        story: ManifoldBuffers,
        walls: SteepWalls,
        only: int,
        state: wp.array[wp.uint8],
    ):
        k = first + wp.tid()
        if state[k] != wp.uint8(only):
            return
        slack = story.noted[k].slack
        begin = story.begin[k]
        end = story.end[k]
        clear_walls(walls, k)
        filtered = int(0)
        with_lifted = int(0)
        deepest = -_FAR
        again = bool(True)
        while again:
            # Put every touch into its group; once more, without those behind walls, if there are such.
            joined = Joined()
            joined.first = -1
            joined.last = -1
            last_wall = wp.where(filtered != 0, walls.count[k], 0)
            q = int(0)
            while q < end - begin + last_wall + with_lifted:
                # Those of the sweep, then walls that stand for some, then the lifted one.
                place = begin + q
                is_free = bool(True)
                if place >= end:
                    w = place - end
                    place = end + 0
                    if w < last_wall:
                        place = walls.number[wall_at(walls, k, w)]
                        is_free = walls.used[wall_at(walls, k, w)] != 0
                at = story.touch[place] >> 1
                half = half_of(story.touches, at, 1)
                if begin + q < end:
                    is_wall = (story.touch[place] & 1) != 0
                    is_free = int(wp.cast(half[3], wp.int64)) != NO_TOUCH
                    if is_free and is_wall and filtered == 0:
                        add_wall(walls, k, touch_at(story.touches, at), place, slack)
                    is_free = is_free and not is_wall
                    if is_free and filtered != 0:
                        before = wall_before(walls, k, touch_at(story.touches, at), slack)
                        if before >= 0:
                            walls.used[before] = 1
                            is_free = bool(False)
                if is_free:
                    joined = join(story, joined, place, normal_of(half))
                q += 1
            story.groups[k] = joined.first
            # Of every group, the leaders.
            is_behind = bool(False)
            deepest = -_FAR
            group = joined.first + 0
            while group >= 0:
                leaders = leaders_of(story, group)
                deepest = wp.max(deepest, leaders.score[0])
                keep_leaders(story.kept, group, leaders)
                if walls.count[k] > 0 and filtered == 0:
                    c = int(0)
                    while c < KEPT and not is_behind:
                        at = kept_at(story.kept, group, c)
                        is_behind = wall_before(walls, k, touch_at(story.touches, at), slack) >= 0
                        c += 1
                group = story.next_group[group]
            again = bool(False)
            if is_behind:
                filtered = int(1)
                again = bool(True)
            elif with_lifted == 0 and only == ASKED:
                with_lifted = int(1)
                again = bool(True)
        state[k] = wp.uint8(DONE)
        if can_lift != 0 and deepest < _ZERO and only == DONE:
            state[k] = wp.uint8(UNSURE)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
    def lift_unsure(first: int, batch: Batch, story: ManifoldBuffers, state: wp.array[wp.uint8]):
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
                story.touch[story.end[k]] = 2 * at
                state[k] = wp.uint8(ASKED)

    return Choosing(choose, lift_unsure)


@wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS))
def reduce(first: int, story: ManifoldBuffers, count: int, number: wp.array[int]):
    """Of the `count` = KEPT leaders of every group, those that stay, and how many these are for a body."""
    k = first + wp.tid()
    tie = TIE * story.noted[k].margin
    total = int(0)
    group = story.groups[k]
    while group >= 0:
        at = story.touch[group] >> 1
        stay = wp.vec4i(at, -1, -1, -1)
        if story.fellow[group] >= 0:
            normal = normal_of(half_of(story.touches, at, 1))
            which = reduced(story.touches, story.kept, group, count, normal, tie)
            for c in range(4):
                stay[c] = -1
                if which[c] >= 0:
                    stay[c] = kept_at(story.kept, group, which[c])
        put_four(story.stay, group, stay)
        for c in range(4):
            if stay[c] >= 0:
                total += 1
        group = story.next_group[group]
    number[k] = total


@wp.kernel
def pick(
    first: int,
    story: ManifoldBuffers,
    number: wp.array[int],
    ends: wp.array[int],
    picks: wp.array[wp.vec3i],
):
    """List the touches that stay, with body and group, by rising body, as far as there is room."""
    k = first + wp.tid()
    if number[k] == 0 or ends[k] > picks.shape[0]:
        return
    at = ends[k] - number[k]
    group = story.groups[k]
    g = int(0)
    while group >= 0:
        stay = four_at(story.stay, group)
        for c in range(4):
            if stay[c] >= 0:
                picks[at] = wp.vec3i(stay[c], k, g)
                at += 1
        group = story.next_group[group]
        g += 1


@wp.kernel
def tell(
    first: int, batch: Batch, story: ManifoldBuffers, picks: wp.array[wp.vec3i], ends: wp.array[int], columns: Columns
):
    """The contacts of the touches that stay, as many as are picked."""
    j = first + wp.tid()
    total = ends[ends.shape[0] - 1]
    if total > picks.shape[0] or j >= total:
        return
    chosen = picks[j]
    i = batch.chosen[batch.first + chosen[1]]
    pose = batch.poses[i]
    origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
    row = row_of(touch_at(story.touches, chosen[0]), i, chosen[2], origin)
    tell_row(columns, j, row, batch.worlds[wp.min(i, batch.worlds.shape[0] - 1)])

"""The last kernels of `rounds`: of all that touches a body, which points stay, and where do they go?

What `sweep` does with touches as it meets them is done here with the list of them, in the same order.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.query.manifold.found import Row, row_of
from tangere.query.manifold.groups import (
    TIE,
    Groups,
    add_touch,
    clear_groups,
    group_at,
    kept_touch,
    reduce_group,
)
from tangere.query.manifold.round_items import (
    BLOCKS,
    LACKING,
    Batch,
    Story,
    append,
    segment_of,
    standing,
)
from tangere.query.manifold.sweep import (
    add_used_walls,
    deepest_kept,
    is_turn_due,
    lift_of,
    lifted_touch,
    offer,
)
from tangere.query.manifold.touching import (
    Place,
)
from tangere.query.manifold.walls import Walls, add_wall, clear_walls
from tangere.runtime import SOUND
from tangere.runtime.kernels import BLOCK
from tangere.shape.analytic_body import support_of

wp.set_module_options(SOUND)

__all__ = ["ASKED", "DONE", "NOT_LIFTED", "NOT_TRIED", "NO_ROOM", "Choosing", "choosing_of", "tell"]

#: What is known of a body.
DONE = wp.constant(0)
UNSURE = wp.constant(1)
ASKED = wp.constant(2)
NO_ROOM = wp.constant(3)
#: Numbers of the touch of a lifted body: there is none, or nobody has tried.
NOT_LIFTED = wp.constant(-1)
NOT_TRIED = wp.constant(-2)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


class Choosing(NamedTuple):
    """The kernels for one kind of body."""

    choose: wp.Kernel
    lift_unsure: wp.Kernel


@wp.func
def replay_chain(story: Story, first: int, place: Place, groups: Groups, walls: Walls):
    at = first + 0  # a copy
    while at >= 0:
        touch = story.touches[at]
        if story.is_wall[at] == wp.uint8(0):
            offer(place, groups, walls, touch, at)
        elif place.filtered == 0:
            add_wall(walls, place.slot, touch, at, place.slack)
        at = story.after[at]


@wp.func
def replay(story: Story, begin: int, end: int, place: Place, groups: Groups, walls: Walls):
    """Offer the touches of a body, in the order of the sweep."""
    for half in range(2 * begin, 2 * end):
        at = int(-1)
        if (half & 1) == 0:
            at = story.on_faces[half >> 1]
        else:
            at = story.on_ridges[half >> 1]
        if at >= 0:
            replay_chain(story, at, place, groups, walls)


@cache
def choosing_of(kind: int) -> Choosing:
    """The kernels for one kind of body."""
    support, lift = support_of(kind), lift_of(kind)
    crowd = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def choose(
        first: int,
        batch: Batch,
        first_body: int,
        story: Story,
        which: wp.array[int],
        state: wp.array[wp.uint8],
        number: wp.array[int],
        lifted: wp.array[int],
        only: int,
        groups: Groups,
        walls: Walls,
    ):
        slot = first + wp.tid()
        k = which[slot]
        if state[k] != wp.uint8(only):
            return
        here = standing(batch, first_body + k, slot)
        place = here.place
        clear_walls(walls, slot)
        turn = int(0)
        while is_turn_due(groups, walls, place, turn):
            place.filtered = turn
            clear_groups(groups, slot)
            replay(story, story.starts[k], story.ends[k], place, groups, walls)
            turn += 1
        add_used_walls(groups, walls, place)
        number[k] = 0
        if groups.count[slot] <= groups.room and deepest_kept(groups, slot) < _ZERO:
            if lifted[k] == NOT_TRIED:
                state[k] = wp.uint8(UNSURE)
                return
            if lifted[k] >= 0:
                add_touch(groups, slot, story.touches[lifted[k]], lifted[k])
        if groups.count[slot] > groups.room:
            state[k] = wp.uint8(NO_ROOM)
            wp.atomic_add(story.counts, LACKING, wp.int64(1))
            return
        state[k] = wp.uint8(DONE)
        total = int(0)
        for g in range(groups.count[slot]):
            stay = reduce_group(groups, slot, g, TIE * place.margin)
            groups.group[group_at(groups, slot, g)].stay = stay
            for c in range(4):
                if stay[c] >= 0:
                    total += 1
        number[k] = total

    @wp.kernel(module="unique", module_options=SOUND)
    def lift_unsure(
        first: int,
        batch: Batch,
        first_body: int,
        story: Story,
        which: wp.array[int],
        state: wp.array[wp.uint8],
        number: wp.array[int],
        lifted: wp.array[int],
    ):
        slot = first + wp.tid()
        k = which[slot]
        if state[k] != wp.uint8(UNSURE):
            return
        here = standing(batch, first_body + k, slot)
        state[k] = wp.uint8(ASKED)
        lifted[k] = NOT_LIFTED
        up = lift(batch.terrains[here.world], here.body, here.place)
        if up >= _ZERO:
            point = support(here.body, batch.hulls, wp.vec3d(_ZERO, _ZERO, -_ONE))
            lifted[k] = append(story, segment_of(slot), lifted_touch(point, up), 0, -1)

    return Choosing(choose, lift_unsure)


@wp.kernel
def tell(
    first: int,
    batch: Batch,
    first_body: int,
    which: wp.array[int],
    starts: wp.array[int],
    groups: Groups,
    rows: wp.array[Row],
):
    """The rows of all bodies for whose groups there was room."""
    slot = first + wp.tid()
    if groups.count[slot] > groups.room:
        return
    k = which[slot]
    i = batch.chosen[first_body + k]
    pose = batch.poses[i]
    origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
    at = starts[k]
    for g in range(groups.count[slot]):
        stay = groups.group[group_at(groups, slot, g)].stay
        for c in range(4):
            if stay[c] >= 0:
                rows[at] = row_of(kept_touch(groups, slot, g, stay[c]), i, g, origin)
                at += 1

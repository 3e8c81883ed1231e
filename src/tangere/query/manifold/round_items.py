"""The first kernels of `rounds`: which cells is a body near to, and which of their faces, edges and vertices?

They are made from the functions that `sweep` is made of, so that both find the same.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.bound.terrain import CONVEX_VERTEX, CONVEX_X, GAP, PLANAR, node_flags, node_heights
from tangere.bound.terrain_walk import is_in_window, next_node
from tangere.query.manifold.apart import apart_of
from tangere.query.manifold.owners import owner
from tangere.query.manifold.round_story import (
    BLOCKS,
    CELLS,
    EDGE,
    EDGES,
    FACES,
    FOURS,
    HAS_FACE,
    IS_BLOCK,
    IS_OWNER,
    ITEM_COUNT,
    LANES,
    VERTEX,
    VERTICES,
    WRONG,
    Batch,
    Item,
    Story,
    add_cell,
    add_features,
    filled,
    node_of,
    note,
    segment_of,
    stand_up,
    standing,
)
from tangere.query.manifold.sweep import CONVEX, Rim, rim_of, rim_owner, surroundings_of
from tangere.query.manifold.touching import edge_of, first_part, is_finite, touching_of
from tangere.runtime import SOUND, take
from tangere.runtime.kernels import BLOCK

wp.set_module_options(SOUND)

__all__ = ["Finding", "finding_of"]

#: Items of a body that lie side by side; the last places may stay empty.
CHUNK = wp.constant(4)


class Finding(NamedTuple):
    """The kernels for one kind of body."""

    find_items: wp.Kernel
    look_closely: wp.Kernel
    sift: wp.Kernel


@wp.func
def asked(flags: int, level: int) -> int:
    """What there is to ask of a node without children, or of one with four cells."""
    if level > 0 and (flags & PLANAR) == 0:
        return flags | IS_BLOCK
    what = wp.where((flags & GAP) == 0, flags | HAS_FACE, flags)
    return wp.where(level == 0 and (flags & CONVEX) != 0, what | IS_OWNER, what)


@wp.func
def room_for_items(story: Story, segment: int) -> int:
    """Where the next CHUNK items of a body go, -1 if they do not fit."""
    number = CHUNK + 0  # a copy
    return take(story.counts, ITEM_COUNT + segment, number, story.item_room)


@wp.func
def item_of(body: int, what: int, node: wp.vec3i) -> Item:
    item = Item()
    item.body = body
    item.what = what
    item.node = node
    return item


@wp.func
def add_item(story: Story, at: int, item: Item):
    """Put an item down, and list it as what it is."""
    story.items[at] = item
    segment = segment_of(item.body)
    if (item.what & IS_BLOCK) != 0:
        four = wp.atomic_add(story.counts, 8 * (FOURS + segment), wp.int64(1))
        story.fours[segment * story.item_room + int(four)] = at
    else:
        add_cell(story, segment, 4 * at, item.what)


@cache
def finding_of(kind: int) -> Finding:
    """The kernels for one kind of body."""
    surroundings, flags_if_near = surroundings_of(kind)
    face_apart, edge_apart = apart_of(kind)
    is_over = touching_of(kind).is_over
    crowd = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS + 1))
    def find_items(first: int, batch: Batch, story: Story):
        k = first + wp.tid()
        story.heads[k] = -1
        here = stand_up(batch, k)
        note(story, k, here)
        if not is_finite(here.body, here.place):
            wp.atomic_max(story.counts, WRONG, wp.int64(batch.chosen.shape[0] - batch.first - k))
            return
        t = batch.terrains[here.world]
        around = surroundings(t, here.body, batch.hulls, here.place)
        story.around[k] = around
        node = around.walk.start
        if around.is_empty:
            node = wp.vec3i(-1, 0, 0)
        place = int(-1)
        left = int(0)
        while node[0] >= 0:
            flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
            into = flags >= 0 and (flags & PLANAR) == 0 and node[0] > 1
            if flags >= 0 and not into:
                # The node itself, then the owners on its rim if it is planar and more than a cell.
                rim = Rim()
                if (flags & PLANAR) != 0 and node[0] > 0 and (flags & CONVEX) != 0:
                    rim = rim_of(around.walk.window, node)
                what = asked(flags, node[0])
                at = node
                o = int(0)
                while o <= rim.count:
                    if (what & (HAS_FACE | IS_OWNER | IS_BLOCK)) != 0:
                        if left == 0:
                            place = room_for_items(story, segment_of(k))
                            left = CHUNK + 0
                        if place >= 0:
                            add_item(story, place + CHUNK - left, item_of(k, what, at))
                        left -= 1
                    if o < rim.count:
                        cell = rim_owner(rim, o)
                        at = wp.vec3i(0, cell[0], cell[1])
                        what = node_flags(t, 0, cell[0], cell[1])
                        what = wp.where((what & CONVEX) != 0, what | IS_OWNER, 0)
                    o += 1
            node = next_node(around.walk, node, into)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def look_closely(first: int, batch: Batch, story: Story):
        """List the cells that the bodies are near to, of those that are four together."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        count = 4 * filled(story, FOURS, segment, story.item_room)
        while slot < count:
            index = story.fours[segment * story.item_room + slot // 4]
            quarter = slot % 4
            item = story.items[index]
            around = story.around[item.body]
            node = node_of(item, quarter)
            if is_in_window(around.walk.window, 0, node[1], node[2]):
                here = standing(batch, story, item.body)
                t = batch.terrains[here.world]
                flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
                if flags >= 0:
                    what = asked(flags, 0)
                    if what != 0:
                        add_cell(story, segment, 4 * index + quarter, what)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def sift(first: int, batch: Batch, story: Story):
        """List the faces, edges and vertices that the bodies may touch."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        count = filled(story, CELLS, segment, 4 * story.item_room)
        while slot < count:
            cell = story.cells[4 * segment * story.item_room + slot]
            what = cell[1]
            item = story.items[cell[0] // 4]
            here = standing(batch, story, item.body)
            t = batch.terrains[here.world]
            node = node_of(item, cell[0] % 4)
            if (what & HAS_FACE) != 0:
                heights = node_heights(t, node[0], node[1], node[2])
                kept = int(0)
                part = first_part(what)
                last_part = wp.max(part, 1)
                while part <= last_part:
                    if not face_apart(t, here.body, batch.hulls, here.place, node, heights, part):
                        kept = kept | (1 << part)
                    part += 1
                add_features(story, FACES, segment, cell[0], kept)
            if (what & IS_OWNER) != 0:
                mine = owner(t, here.place.centre, node[1], node[2])
                if (what & CONVEX_VERTEX) != 0:
                    if is_over(here.body, batch.hulls, here.place, mine):
                        add_features(story, VERTICES, segment, cell[0], 1 << VERTEX)
                kept = int(0)
                family = int(0)
                while family < 3:
                    if (what & (CONVEX_X << family)) != 0:
                        if not edge_apart(t, here.body, batch.hulls, here.place, edge_of(t, mine, family)):
                            kept = kept | (1 << (EDGE + family))
                    family += 1
                add_features(story, EDGES, segment, cell[0], kept)
            slot += LANES

    return Finding(find_items, look_closely, sift)

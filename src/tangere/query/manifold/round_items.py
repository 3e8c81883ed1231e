"""The first kernels of `rounds`: what is a body near to, and does it touch that?

They are made from the functions that `sweep` is made of, so that both find the same.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.bound.terrain import CONVEX_VERTEX, CONVEX_X, GAP, PLANAR, Terrain, node_flags, node_heights
from tangere.bound.terrain_walk import next_node
from tangere.query.manifold.groups import (
    Touch,
)
from tangere.query.manifold.owners import owner
from tangere.query.manifold.sweep import (
    CONVEX,
    Rim,
    rim_of,
    rim_owner,
    surroundings_of,
)
from tangere.query.manifold.touching import (
    NEITHER,
    NO_TOUCH,
    Place,
    edge_of,
    first_part,
    is_finite,
    stand,
    touching_of,
    wall_touch,
)
from tangere.runtime import SOUND, take
from tangere.runtime.kernels import BLOCK
from tangere.shape.analytic import AnalyticShape
from tangere.shape.analytic_body import Body, Hulls, place

wp.set_module_options(SOUND)

__all__ = [
    "BLOCKS",
    "COUNTERS",
    "LACKING",
    "SEGMENTS",
    "WRONG",
    "Asking",
    "Batch",
    "Item",
    "Story",
    "append",
    "asking_of",
    "segment_of",
    "standing",
]

#: Segments of the list of touches, each with a counter: a single one would be waited for.
SEGMENTS = wp.constant(256)
#: Counters: of the segments of items and of touches, 64 bytes apart; bodies without room; a body that is not finite.
COUNTERS = 16 * SEGMENTS + 2
LACKING = wp.constant(16 * 256)
WRONG = wp.constant(16 * 256 + 1)

#: Blocks that share a CUDA multiprocessor: fewer registers for each thread, but more threads to wait together.
BLOCKS = 4

#: Items of a body that are kept aside while it is not known how many there are.
ASIDE = wp.constant(32)
Aside = wp.types.vector(length=32, dtype=wp.int64)

#: What an item is asked for, besides the flags of its node: its faces; the vertex and the edges it owns.
HAS_FACE = wp.constant(64)
IS_OWNER = wp.constant(128)


@wp.struct
class Batch:
    """The bodies and the ground they are on."""

    chosen: wp.array[int]  # numbers of the bodies
    terrains: wp.array[Terrain]
    shapes: wp.array[AnalyticShape]  # (n) or (1)
    poses: wp.array[wp.mat44d]
    margins: wp.array[wp.float64]  # (n) or (1) [m]
    worlds: wp.array[int]  # (n) or (1)
    hulls: Hulls


@wp.struct
class Item:
    """A cell or a planar block that a body is near to."""

    body: wp.int32  #: its place among the chosen
    what: wp.int32  #: flags of the node, HAS_FACE, IS_OWNER
    node: wp.vec3i  #: level, row, column


@wp.struct
class Story:
    """All touches of a batch, in chains."""

    items: wp.array[Item]  # those of a body side by side, others between them
    starts: wp.array[int]  # (bodies) the first of a body
    ends: wp.array[int]  # (bodies) and the one after its last
    on_faces: wp.array[int]  # (items) number of the first touch of its faces, or -1
    on_ridges: wp.array[int]  # (items) and of its vertex and edges
    touches: wp.array[Touch]
    after: wp.array[int]  # number of the next touch of the chain, or -1
    is_wall: wp.array[wp.uint8]  # whether the touch is a wall
    counts: wp.array[wp.int64]  # (COUNTERS) items in each segment, touches in each segment, LACKING, WRONG
    item_room: wp.int32  # of a segment
    room: wp.int32  # of a segment


@wp.struct
class Standing:
    """A body where it is."""

    number: wp.int32
    world: wp.int32
    pose: wp.mat44d
    body: Body
    place: Place


@wp.func
def standing(batch: Batch, k: int, slot: int) -> Standing:
    here = Standing()
    i = batch.chosen[k]
    here.number = i
    here.world = batch.worlds[wp.min(i, batch.worlds.shape[0] - 1)]
    here.pose = batch.poses[i]
    here.body = place(batch.shapes[wp.min(i, batch.shapes.shape[0] - 1)], here.pose)
    margin = batch.margins[wp.min(i, batch.margins.shape[0] - 1)]
    here.place = stand(batch.terrains[here.world], here.body, here.pose, margin, slot)
    return here


@wp.func
def segment_of(thread: int) -> int:
    return (thread >> 5) % SEGMENTS


@wp.func
def packed(what: int, node: wp.vec3i) -> wp.int64:
    """What is asked of a node, in one number; rows and columns are below 2^24."""
    key = (wp.int64(what) << wp.int64(53)) | (wp.int64(node[0]) << wp.int64(48))
    return key | (wp.int64(node[1]) << wp.int64(24)) | wp.int64(node[2])


@wp.func
def item_of(body: int, key: wp.int64) -> Item:
    item = Item()
    item.body = body
    item.what = int(key >> wp.int64(53))
    low = wp.int64((1 << 24) - 1)
    level = int((key >> wp.int64(48)) & wp.int64(31))
    item.node = wp.vec3i(level, int((key >> wp.int64(24)) & low), int(key & low))
    return item


@wp.func
def reserve(story: Story, k: int, segment: int, count: int) -> int:
    """Room for the items of a body, side by side; where the first goes, or -1 if they do not fit."""
    slot = int(wp.min(wp.atomic_add(story.counts, 8 * segment, wp.int64(count)), wp.int64(story.item_room)))
    begin = segment * story.item_room + slot
    story.starts[k] = begin
    story.ends[k] = begin + count
    if slot + count <= story.item_room:
        return begin
    story.ends[k] = begin
    for at in range(begin, (segment + 1) * story.item_room):
        story.items[at] = Item()
    return -1


@wp.func
def append(story: Story, segment: int, touch: Touch, is_wall: int, before: int) -> int:
    """Put a touch into the list, after the touch `before` if that is not -1; its number, -1 if it does not fit."""
    at = take(story.counts, SEGMENTS + segment, 1, story.room)
    if at >= 0:
        at -= SEGMENTS * story.room
        story.touches[at] = touch
        story.after[at] = -1
        story.is_wall[at] = wp.uint8(is_wall)
        if before >= 0:
            story.after[before] = at
    return at


@wp.func
def is_filled(story: Story, at: int) -> bool:
    """Whether there is an item."""
    return wp.int64(at % story.item_room) < story.counts[8 * (at // story.item_room)]


class Asking(NamedTuple):
    """The kernels for one kind of body."""

    find_items: wp.Kernel
    ask_faces: wp.Kernel
    ask_owners: wp.Kernel


@cache
def asking_of(kind: int) -> Asking:
    """The kernels for one kind of body."""
    face, on_face, points, on_vertex, on_edge, crossings = touching_of(kind)
    surroundings, flags_if_near = surroundings_of(kind)
    crowd = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def find_items(first: int, batch: Batch, first_body: int, story: Story, again: int):
        """Count the items of a body and write them if they are few; again, write them if they are many."""
        k = first + wp.tid()
        begin = int(-1)
        if again != 0:
            begin = story.starts[k]
            if story.ends[k] - begin <= ASIDE:
                return
        here = standing(batch, first_body + k, 0)
        if not is_finite(here.body, here.place):
            wp.atomic_max(story.counts, WRONG, wp.int64(batch.chosen.shape[0] - first_body - k))
            story.starts[k] = 0
            story.ends[k] = 0
            return
        t = batch.terrains[here.world]
        around = surroundings(t, here.body, batch.hulls, here.place)
        node = around.walk.start
        if around.is_empty:
            node = wp.vec3i(-1, 0, 0)
        aside = Aside()
        found = int(0)
        while node[0] >= 0:
            flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
            into = flags >= 0 and (flags & PLANAR) == 0 and node[0] > 0
            if flags >= 0 and not into:
                # The node itself, then the owners on its rim if it is more than a cell.
                rim = Rim()
                if node[0] > 0 and (flags & CONVEX) != 0:
                    rim = rim_of(around.walk.window, node)
                what = wp.where((flags & GAP) == 0, flags | HAS_FACE, flags)
                if node[0] == 0 and (flags & CONVEX) != 0:
                    what = what | IS_OWNER
                at = node
                o = int(0)
                while o <= rim.count:
                    if (what & (HAS_FACE | IS_OWNER)) != 0:
                        if begin >= 0:
                            story.items[begin + found] = item_of(first_body + k, packed(what, at))
                        elif found < ASIDE:
                            aside[found] = packed(what, at)
                        found += 1
                    if o < rim.count:
                        cell = rim_owner(rim, o)
                        at = wp.vec3i(0, cell[0], cell[1])
                        what = node_flags(t, 0, cell[0], cell[1])
                        what = wp.where((what & CONVEX) != 0, what | IS_OWNER, 0)
                    o += 1
            node = next_node(around.walk, node, into)
        if again != 0:
            return
        begin = reserve(story, k, segment_of(k), found)
        if begin >= 0 and found <= ASIDE:
            for o in range(found):
                story.items[begin + o] = item_of(first_body + k, aside[o])

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def ask_faces(first: int, batch: Batch, story: Story):
        index = first + wp.tid()
        if not is_filled(story, index):
            return
        item = story.items[index]
        head = int(-1)
        if (item.what & HAS_FACE) != 0:
            here = standing(batch, item.body, 0)
            t = batch.terrains[here.world]
            heights = node_heights(t, item.node[0], item.node[1], item.node[2])
            last = int(-1)
            part = first_part(item.what)
            last_part = wp.max(part, 1)
            while part <= last_part:
                over = face(t, here.body, batch.hulls, here.place, item.node, heights, part)
                if over.most >= -here.place.margin:
                    count = points(here.body, batch.hulls, over.normal)
                    k = int(0)
                    while k <= count:  # the last is the wall
                        touch = Touch()
                        if k < count:
                            touch = on_face(here.body, batch.hulls, here.place, over, k)
                        else:
                            touch = wall_touch(here.place, over)
                        if touch.code != NO_TOUCH:
                            last = append(story, segment_of(index), touch, wp.where(k < count, 0, 1), last)
                            head = wp.where(head < 0, last, head)
                        k += 1
                part += 1
        story.on_faces[index] = head

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def ask_owners(first: int, batch: Batch, story: Story):
        index = first + wp.tid()
        if not is_filled(story, index):
            return
        item = story.items[index]
        head = int(-1)
        if (item.what & IS_OWNER) != 0:
            here = standing(batch, item.body, 0)
            t = batch.terrains[here.world]
            mine = owner(t, here.place.centre, item.node[1], item.node[2])
            last = int(-1)
            if (item.what & CONVEX_VERTEX) != 0:
                touch = on_vertex(t, here.body, batch.hulls, here.place, mine)
                if touch.code != NO_TOUCH:
                    last = append(story, segment_of(index), touch, 0, -1)
                    head = last
            family = int(0)
            while family < 3:
                if (item.what & (CONVEX_X << family)) != 0:
                    edge = edge_of(t, mine, family)
                    k = int(0)
                    while k < crossings(batch.hulls):
                        touch = on_edge(t, here.body, batch.hulls, here.place, edge, k)
                        if touch.code >= 0:
                            last = append(story, segment_of(index), touch, 0, last)
                            head = wp.where(head < 0, last, head)
                        k += wp.where(touch.code == NEITHER, 2, 1)
                family += 1
        story.on_ridges[index] = head

    return Asking(find_items, ask_faces, ask_owners)

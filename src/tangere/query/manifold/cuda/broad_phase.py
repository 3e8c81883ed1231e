"""The first kernels of `rounds`: which cells is a body near to, and which of their faces, edges and vertices?

They are made from the functions that `sweep` is made of, so that both find the same.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.bvh.height_pyramid import (
    CONVEX_VERTEX,
    CONVEX_X,
    GAP,
    PLANAR,
    is_in_window,
    next_node,
    node_flags,
    node_heights,
)
from tangere.query.manifold.cuda.buffers import (
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
    WHOLES,
    WRONG,
    Batch,
    Item,
    ManifoldBuffers,
    add_cell,
    add_features,
    filled,
    load_body,
    node_of,
    pack_body,
    places,
    segment_of,
    standing,
    surrounded,
)
from tangere.query.manifold.features.contact import edge_of, first_part, is_finite, touching_of
from tangere.query.manifold.features.separating_planes import apart_of
from tangere.query.manifold.features.vertex import owner
from tangere.query.manifold.sweep import CONVEX, GroundAround, rim_of, rim_owner, surroundings_of
from tangere.runtime import BLOCK, SOUND

wp.set_module_options(SOUND)

__all__ = ["Finding", "finding_of"]


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
def has_rim(what: int, level: int) -> bool:
    """Whether a node is planar ground of more than a cell, with owners on its rim that have creases."""
    return (what & PLANAR) != 0 and level > 0 and (what & CONVEX) != 0


@wp.func
def item_of(body: int, what: int, node: wp.vec3i) -> Item:
    item = Item()
    item.body = body
    item.what = what
    item.node = node
    return item


@cache
def finding_of(kind: int) -> Finding:
    """The kernels for one kind of body."""
    surroundings, flags_if_near = surroundings_of(kind)
    face_apart, edge_apart = apart_of(kind)
    is_over = touching_of(kind).is_over
    crowd = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS + 1))
    def find_items(first: int, batch: Batch, story: ManifoldBuffers):
        k = first + wp.tid()
        story.heads[k] = -1
        here = load_body(batch, k)
        if not is_finite(here.body, here.place):
            wp.atomic_max(story.counts, WRONG, wp.int64(batch.chosen.shape[0] - batch.first - k))
            pack_body(story, k, here, GroundAround())
            return
        t = batch.terrains[here.world]
        around = surroundings(t, here.body, batch.hulls, here.place)
        pack_body(story, k, here, around)
        segment = segment_of(k)
        node = around.walk.start
        if around.is_empty:
            node = wp.vec3i(-1, 0, 0)
        while node[0] >= 0:
            flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
            into = flags >= 0 and (flags & PLANAR) == 0 and node[0] > 1
            if flags >= 0 and not into:
                what = asked(flags, node[0])
                # After the node come the owners on its rim.
                rims = int(0)
                if has_rim(what, node[0]):
                    rims = rim_of(around.walk.window, node).count
                if (what & (HAS_FACE | IS_OWNER | IS_BLOCK)) != 0:
                    place = places(story, ITEM_COUNT, segment, 1 + rims)
                    if place + wp.int64(1 + rims) <= wp.int64(story.item_room):
                        number = segment * story.item_room + int(place)
                        story.items[number] = item_of(k, what, node)
                        is_four = (what & IS_BLOCK) != 0
                        slot = int(places(story, wp.where(is_four, FOURS, WHOLES), segment, 1))
                        slot = wp.where(is_four, slot, story.item_room - 1 - slot)
                        story.near[segment * story.item_room + slot] = number
            node = next_node(around.walk, node, into)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def look_closely(first: int, batch: Batch, story: ManifoldBuffers):
        """List what the bodies are near to: planar faces, and cells to sift; of four cells those that are near."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        quarters = 4 * filled(story, FOURS, segment, story.item_room)
        count = quarters + filled(story, WHOLES, segment, story.item_room)
        while slot < count:
            is_quarter = slot < quarters
            place = wp.where(is_quarter, slot // 4, story.item_room - 1 - (slot - quarters))
            quarter = wp.where(is_quarter, slot % 4, 0)
            index = story.near[segment * story.item_room + place]
            item = story.items[index]
            here = standing(batch, story, item.body)
            t = batch.terrains[here.world]
            node = node_of(item, quarter)
            what = item.what
            if is_quarter:
                what = int(0)
                around = surrounded(story, here)
                if is_in_window(around.walk.window, 0, node[1], node[2]):
                    flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
                    if flags >= 0:
                        what = asked(flags, 0)
            if (what & PLANAR) != 0 and (what & HAS_FACE) != 0:
                heights = node_heights(t, node[0], node[1], node[2])
                part = first_part(PLANAR)
                if not face_apart(t, here.body, batch.hulls, here.place, node, heights, part):
                    add_features(story, FACES, segment, 4 * index + quarter, 1 << part)
                what -= HAS_FACE
            if (what & (HAS_FACE | IS_OWNER)) != 0:
                add_cell(story, segment, 4 * index + quarter, what)
            if has_rim(what, node[0]):
                rim = rim_of(story.noted[item.body].window, node)
                o = int(0)
                while o < rim.count:
                    cell = rim_owner(rim, o)
                    flags = node_flags(t, 0, cell[0], cell[1])
                    o += 1
                    if (flags & CONVEX) != 0:
                        story.items[index + o] = item_of(item.body, flags | IS_OWNER, wp.vec3i(0, cell[0], cell[1]))
                        add_cell(story, segment, 4 * (index + o), flags | IS_OWNER)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def sift(first: int, batch: Batch, story: ManifoldBuffers):
        """List the triangles, edges and vertices that the bodies may touch."""
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
            faces = int(0)
            vertex = int(0)
            edges = int(0)
            if (what & HAS_FACE) != 0:
                heights = node_heights(t, node[0], node[1], node[2])
                part = int(0)
                while part < 2:
                    if not face_apart(t, here.body, batch.hulls, here.place, node, heights, part):
                        faces = faces | (1 << part)
                    part += 1
            if (what & IS_OWNER) != 0:
                mine = owner(t, here.place.centre, node[1], node[2])
                if (what & CONVEX_VERTEX) != 0:
                    if is_over(here.body, batch.hulls, here.place, mine):
                        vertex = 1 << VERTEX
                family = int(0)
                while family < 3:
                    if (what & (CONVEX_X << family)) != 0:
                        if not edge_apart(t, here.body, batch.hulls, here.place, edge_of(t, mine, family)):
                            edges = edges | (1 << (EDGE + family))
                    family += 1
            add_features(story, FACES, segment, cell[0], faces)
            add_features(story, VERTICES, segment, cell[0], vertex)
            add_features(story, EDGES, segment, cell[0], edges)
            slot += LANES

    return Finding(find_items, look_closely, sift)

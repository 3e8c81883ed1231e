"""The middle kernels of `rounds`: where does a body rest on a face, a vertex or an edge? One thread for each.

A face is asked twice: which points of the body are over it, and, one thread for each of these, whether it rests there.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.bvh.height_pyramid import node_heights
from tangere.query.manifold.contact_point import put_touch
from tangere.query.manifold.cuda.buffers import (
    BLOCKS,
    EDGE,
    EDGES,
    FACES,
    LANES,
    TOUCH_COUNT,
    VERTICES,
    Batch,
    LoadedBody,
    ManifoldBuffers,
    chain,
    feature_at,
    filled,
    is_short,
    link_up,
    node_of,
    put,
    reserve,
    standing,
)
from tangere.query.manifold.features.contact import (
    NEITHER,
    NO_TOUCH,
    edge_of,
    may_be_wall,
    rests,
    touching_of,
    wall_touch,
)
from tangere.query.manifold.features.vertex import owner
from tangere.runtime import BLOCK, SOUND
from tangere.shape.analytic import support_of

wp.set_module_options(SOUND)

__all__ = ["Asking", "asking_of"]

#: Points of a body that are asked before those over a face are listed.
AT_ONCE = wp.constant(16)


class Asking(NamedTuple):
    """The kernels for one kind of body."""

    ask_faces: wp.Kernel
    ask_points: wp.Kernel
    ask_vertices: wp.Kernel
    ask_edges: wp.Kernel


@wp.struct
class Question:
    """What is asked of a feature: whose it is, and whether this body touches it."""

    here: LoadedBody
    node: wp.vec3i


@wp.func
def question(batch: Batch, story: ManifoldBuffers, feature: int) -> Question:
    item = story.items[feature // 32]
    asked = Question()
    asked.here = standing(batch, story, item.body)
    asked.node = node_of(item, (feature // 8) % 4)
    return asked


@wp.func
def order_of(feature: int, k: int, is_wall: int) -> wp.int64:
    """Where the k-th touch of a feature comes in the sweep."""
    return (wp.int64(feature) << wp.int64(32)) | wp.int64(2 * k + is_wall)


@wp.func
def expect(story: ManifoldBuffers, segment: int, body: int, feature: int, hits: int, first_k: int, wall_k: int):
    """Room for touches with a face, given as bits: points of the body from `first_k` on, of which one may be a wall."""
    number = int(0)
    for k in range(AT_ONCE):
        number += (hits >> k) & 1
    first = reserve(story, segment, number)
    if first < 0:
        return
    at = first + 0  # a copy
    k = first_k + 0
    while hits != 0:
        if (hits & 1) != 0:
            link_up(story, at, at + 1, order_of(feature, k, wp.where(k == wall_k, 1, 0)))
            at += 1
        hits = hits >> 1
        k += 1
    chain(story, body, first, at - 1)


@cache
def asking_of(kind: int) -> Asking:
    """The kernels for one kind of body."""
    face, on_face, points, _, on_vertex, on_edge, crossings = touching_of(kind)
    support = support_of(kind)
    crowd = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def ask_faces(first: int, batch: Batch, story: ManifoldBuffers):
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        begin = feature_at(story, FACES, segment)
        count = filled(story, FACES, segment, 8 * story.item_room)
        while slot < count:
            feature = story.features[begin + slot]
            asked = question(batch, story, feature)
            here = asked.here
            t = batch.terrains[here.world]
            heights = node_heights(t, asked.node[0], asked.node[1], asked.node[2])
            over = face(t, here.body, batch.hulls, here.place, asked.node, heights, feature % 8)
            if over.most >= -here.place.margin:
                number = points(here.body, batch.hulls, over.normal)
                wall_k = wp.where(may_be_wall(over), number, -1)  # after the points
                end_k = wp.max(number, wall_k + 1)
                k = int(0)
                while k < end_k:
                    first_k = k + 0  # a copy
                    hits = int(0)
                    while k < wp.min(first_k + AT_ONCE, end_k):
                        is_hit = bool(k == wall_k)
                        if not is_hit:
                            is_hit = on_face(here.body, batch.hulls, here.place, over, k).code != NO_TOUCH
                        if is_hit:
                            hits = hits | (1 << (k - first_k))
                        k += 1
                    if hits != 0:
                        expect(story, segment, here.place.slot, feature, hits, first_k, wall_k)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def ask_points(first: int, batch: Batch, story: ManifoldBuffers):
        """The touches that are expected; where there is none after all, its code says so."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        count = filled(story, TOUCH_COUNT, segment, story.room)
        if is_short(story, segment):
            count = int(0)
        while slot < count:
            at = segment * story.room + slot
            order = story.links[at].order
            feature = int(order >> wp.int64(32))
            k = int(order & wp.int64(0x7FFFFFFF)) >> 1
            asked = question(batch, story, feature)
            here = asked.here
            t = batch.terrains[here.world]
            heights = node_heights(t, asked.node[0], asked.node[1], asked.node[2])
            over = face(t, here.body, batch.hulls, here.place, asked.node, heights, feature % 8)
            deepest = support(here.body, batch.hulls, -over.normal)
            if (order & wp.int64(1)) != wp.int64(0):
                put_touch(story.touches, at, wall_touch(here.place, over, deepest))
            else:
                touch = on_face(here.body, batch.hulls, here.place, over, k)
                if not rests(here.place, over, deepest, touch):
                    touch.code = NO_TOUCH
                put_touch(story.touches, at, touch)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def ask_vertices(first: int, batch: Batch, story: ManifoldBuffers):
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        begin = feature_at(story, VERTICES, segment)
        count = filled(story, VERTICES, segment, 4 * story.item_room)
        while slot < count:
            feature = story.features[begin + slot]
            asked = question(batch, story, feature)
            here = asked.here
            t = batch.terrains[here.world]
            mine = owner(t, here.place.centre, asked.node[1], asked.node[2])
            touch = on_vertex(t, here.body, batch.hulls, here.place, mine)
            if touch.code != NO_TOUCH:
                at = reserve(story, segment, 1)
                if at >= 0:
                    put(story, at, touch, order_of(feature, 0, 0))
                    chain(story, here.place.slot, at, at)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=crowd)
    def ask_edges(first: int, batch: Batch, story: ManifoldBuffers):
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        begin = feature_at(story, EDGES, segment)
        count = filled(story, EDGES, segment, 12 * story.item_room)
        while slot < count:
            feature = story.features[begin + slot]
            asked = question(batch, story, feature)
            here = asked.here
            t = batch.terrains[here.world]
            mine = owner(t, here.place.centre, asked.node[1], asked.node[2])
            edge = edge_of(t, mine, feature % 8 - EDGE)
            k = int(0)
            while k < crossings(batch.hulls):
                touch = on_edge(t, here.body, batch.hulls, here.place, edge, k)
                if touch.code >= 0:
                    at = reserve(story, segment, 1)
                    if at >= 0:
                        put(story, at, touch, order_of(feature, k, 0))
                        chain(story, here.place.slot, at, at)
                k += wp.where(touch.code == NEITHER, 2, 1)
            slot += LANES

    return Asking(ask_faces, ask_points, ask_vertices, ask_edges)

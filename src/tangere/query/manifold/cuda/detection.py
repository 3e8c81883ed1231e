"""Broad and narrow phase of the CUDA pipeline: which cells is a body near to, and where does it rest on them?

`find_candidates`, `refine_candidates` and `cull_features` narrow the ground down to features that a body may touch;
`test_faces`, `test_points`, `test_vertices` and `test_edges` find the contact points, one thread for each feature. A
face is tested twice: which points of the body are over it, then, one thread for each of these, whether it rests there.
The kernels are made from the functions that `traversal` is made of, so that both find the same.
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
    CANDIDATES,
    CELL_BLOCKS,
    CELLS,
    CONTACT_POINTS,
    EDGE,
    EDGES,
    FACES,
    HAS_FACE,
    IS_BLOCK,
    IS_OWNER,
    LANES,
    NOT_FINITE,
    SINGLE_NODES,
    VERTEX,
    VERTICES,
    Batch,
    CandidateNode,
    LoadedBody,
    ManifoldBuffers,
    add_cell,
    add_features,
    advance,
    feature_at,
    filled,
    load_body,
    node_of,
    overflowed,
    pack_body,
    prepend,
    reserve,
    segment_of,
    set_link,
    store,
    unpack_body,
    unpack_surroundings,
)
from tangere.query.manifold.culling import apart_of
from tangere.query.manifold.details import store_contact_point
from tangere.query.manifold.narrow_phase.contact import (
    NEITHER,
    NO_CONTACT,
    edge_of,
    feature_contacts_of,
    first_part,
    is_finite,
    may_be_wall,
    owner,
    rests,
    wall_contact,
)
from tangere.query.manifold.traversal import CONVEX, GroundAround, rim_of, rim_owner, surroundings_of
from tangere.runtime import BLOCK, SOUND
from tangere.shape.analytic import support_of

wp.set_module_options(SOUND)

#: Points of a body that are tested before those over a face are listed.
POINTS_AT_ONCE = wp.constant(16)


class BroadPhaseKernels(NamedTuple):
    """The kernels for one kind of body."""

    find_candidates: wp.Kernel
    refine_candidates: wp.Kernel
    cull_features: wp.Kernel


@wp.func
def node_tasks(flags: int, level: int) -> int:
    """The flags of a node without children, or of one with four cells, and which of its features are to be tested."""
    if level > 0 and (flags & PLANAR) == 0:
        return flags | IS_BLOCK
    tasks = wp.where((flags & GAP) == 0, flags | HAS_FACE, flags)
    return wp.where(level == 0 and (flags & CONVEX) != 0, tasks | IS_OWNER, tasks)


@wp.func
def has_rim(tasks: int, level: int) -> bool:
    """Whether a node is planar ground of more than a cell, with owners on its rim that have creases."""
    return (tasks & PLANAR) != 0 and level > 0 and (tasks & CONVEX) != 0


@wp.func
def candidate_of(body: int, tasks: int, node: wp.vec3i) -> CandidateNode:
    candidate = CandidateNode()
    candidate.body = body
    candidate.tasks = tasks
    candidate.node = node
    return candidate


@cache
def broad_phase_kernels(kind: int) -> BroadPhaseKernels:
    """The kernels for one kind of body."""
    surroundings, flags_if_near = surroundings_of(kind)
    face_apart, edge_apart = apart_of(kind)
    is_over = feature_contacts_of(kind).is_over
    occupancy = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS + 1))
    def find_candidates(first: int, batch: Batch, buffers: ManifoldBuffers):
        k = first + wp.tid()
        buffers.heads[k] = -1
        here = load_body(batch, k)
        if not is_finite(here.body, here.place):
            wp.atomic_max(buffers.counts, NOT_FINITE, wp.int64(batch.chosen.shape[0] - batch.first - k))
            pack_body(buffers, k, here, GroundAround())
            return
        t = batch.terrains[here.world]
        around = surroundings(t, here.body, batch.hulls, here.place)
        pack_body(buffers, k, here, around)
        segment = segment_of(k)
        node = around.walk.start
        if around.is_empty:
            node = wp.vec3i(-1, 0, 0)
        while node[0] >= 0:
            flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
            into = flags >= 0 and (flags & PLANAR) == 0 and node[0] > 1
            if flags >= 0 and not into:
                tasks = node_tasks(flags, node[0])
                # After the node come the owners on its rim.
                rims = int(0)
                if has_rim(tasks, node[0]):
                    rims = rim_of(around.walk.window, node).count
                if (tasks & (HAS_FACE | IS_OWNER | IS_BLOCK)) != 0:
                    place = advance(buffers, CANDIDATES, segment, 1 + rims)
                    if place + wp.int64(1 + rims) <= wp.int64(buffers.candidate_capacity):
                        number = segment * buffers.candidate_capacity + int(place)
                        buffers.candidates[number] = candidate_of(k, tasks, node)
                        is_block = (tasks & IS_BLOCK) != 0
                        slot = int(advance(buffers, wp.where(is_block, CELL_BLOCKS, SINGLE_NODES), segment, 1))
                        slot = wp.where(is_block, slot, buffers.candidate_capacity - 1 - slot)
                        buffers.by_kind[segment * buffers.candidate_capacity + slot] = number
            node = next_node(around.walk, node, into)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=occupancy)
    def refine_candidates(first: int, batch: Batch, buffers: ManifoldBuffers):
        """List planar faces that bodies are near to, and cells to cull; of four cells those that they are near to."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        quarters = 4 * filled(buffers, CELL_BLOCKS, segment, buffers.candidate_capacity)
        count = quarters + filled(buffers, SINGLE_NODES, segment, buffers.candidate_capacity)
        while slot < count:
            is_quarter = slot < quarters
            place = wp.where(is_quarter, slot // 4, buffers.candidate_capacity - 1 - (slot - quarters))
            quarter = wp.where(is_quarter, slot % 4, 0)
            index = buffers.by_kind[segment * buffers.candidate_capacity + place]
            candidate = buffers.candidates[index]
            here = unpack_body(batch, buffers, candidate.body)
            t = batch.terrains[here.world]
            node = node_of(candidate, quarter)
            tasks = candidate.tasks
            if is_quarter:
                tasks = int(0)
                around = unpack_surroundings(buffers, here)
                if is_in_window(around.walk.window, 0, node[1], node[2]):
                    flags = flags_if_near(t, here.body, batch.hulls, here.place, around, node)
                    if flags >= 0:
                        tasks = node_tasks(flags, 0)
            if (tasks & PLANAR) != 0 and (tasks & HAS_FACE) != 0:
                heights = node_heights(t, node[0], node[1], node[2])
                part = first_part(PLANAR)
                if not face_apart(t, here.body, batch.hulls, here.place, node, heights, part):
                    add_features(buffers, FACES, segment, 4 * index + quarter, 1 << part)
                tasks -= HAS_FACE
            if (tasks & (HAS_FACE | IS_OWNER)) != 0:
                add_cell(buffers, segment, 4 * index + quarter, tasks)
            if has_rim(tasks, node[0]):
                rim = rim_of(buffers.bodies[candidate.body].window, node)
                o = int(0)
                while o < rim.count:
                    cell = rim_owner(rim, o)
                    flags = node_flags(t, 0, cell[0], cell[1])
                    o += 1
                    if (flags & CONVEX) != 0:
                        buffers.candidates[index + o] = candidate_of(
                            candidate.body, flags | IS_OWNER, wp.vec3i(0, cell[0], cell[1])
                        )
                        add_cell(buffers, segment, 4 * (index + o), flags | IS_OWNER)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=occupancy)
    def cull_features(first: int, batch: Batch, buffers: ManifoldBuffers):
        """List the triangles, edges and vertices that the bodies may contact."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        count = filled(buffers, CELLS, segment, 4 * buffers.candidate_capacity)
        while slot < count:
            cell = buffers.cells[4 * segment * buffers.candidate_capacity + slot]
            tasks = cell[1]
            candidate = buffers.candidates[cell[0] // 4]
            here = unpack_body(batch, buffers, candidate.body)
            t = batch.terrains[here.world]
            node = node_of(candidate, cell[0] % 4)
            faces = int(0)
            vertex = int(0)
            edges = int(0)
            if (tasks & HAS_FACE) != 0:
                heights = node_heights(t, node[0], node[1], node[2])
                part = int(0)
                while part < 2:
                    if not face_apart(t, here.body, batch.hulls, here.place, node, heights, part):
                        faces = faces | (1 << part)
                    part += 1
            if (tasks & IS_OWNER) != 0:
                mine = owner(t, here.place.centre, node[1], node[2])
                if (tasks & CONVEX_VERTEX) != 0:
                    if is_over(here.body, batch.hulls, here.place, mine):
                        vertex = 1 << VERTEX
                family = int(0)
                while family < 3:
                    if (tasks & (CONVEX_X << family)) != 0:
                        if not edge_apart(t, here.body, batch.hulls, here.place, edge_of(t, mine, family)):
                            edges = edges | (1 << (EDGE + family))
                    family += 1
            add_features(buffers, FACES, segment, cell[0], faces)
            add_features(buffers, VERTICES, segment, cell[0], vertex)
            add_features(buffers, EDGES, segment, cell[0], edges)
            slot += LANES

    return BroadPhaseKernels(find_candidates, refine_candidates, cull_features)


class NarrowPhaseKernels(NamedTuple):
    """The kernels for one kind of body."""

    test_faces: wp.Kernel
    test_points: wp.Kernel
    test_vertices: wp.Kernel
    test_edges: wp.Kernel


@wp.struct
class FeatureQuery:
    """A body, and the node that has the feature to be tested."""

    here: LoadedBody
    node: wp.vec3i


@wp.func
def feature_query(batch: Batch, buffers: ManifoldBuffers, feature: int) -> FeatureQuery:
    candidate = buffers.candidates[feature // 32]
    query = FeatureQuery()
    query.here = unpack_body(batch, buffers, candidate.body)
    query.node = node_of(candidate, (feature // 8) % 4)
    return query


@wp.func
def order_of(feature: int, k: int, is_wall: int) -> wp.int64:
    """Where the k-th contact of a feature comes in the traversal."""
    return (wp.int64(feature) << wp.int64(32)) | wp.int64(2 * k + is_wall)


@wp.func
def reserve_face_contacts(
    buffers: ManifoldBuffers, segment: int, body: int, feature: int, hits: int, first_k: int, wall_k: int
):
    """Reserve contact points with a face, given as bits: points of the body from `first_k` on; one may be a wall."""
    number = int(0)
    for k in range(POINTS_AT_ONCE):
        number += (hits >> k) & 1
    first = reserve(buffers, segment, number)
    if first < 0:
        return
    at = first + 0  # a copy
    k = first_k + 0
    while hits != 0:
        if (hits & 1) != 0:
            set_link(buffers, at, at + 1, order_of(feature, k, wp.where(k == wall_k, 1, 0)))
            at += 1
        hits = hits >> 1
        k += 1
    prepend(buffers, body, first, at - 1)


@cache
def narrow_phase_kernels(kind: int) -> NarrowPhaseKernels:
    """The kernels for one kind of body."""
    face, on_face, points, _, on_vertex, on_edge, crossings = feature_contacts_of(kind)
    support = support_of(kind)
    occupancy = (BLOCK, BLOCKS)

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=occupancy)
    def test_faces(first: int, batch: Batch, buffers: ManifoldBuffers):
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        begin = feature_at(buffers, FACES, segment)
        count = filled(buffers, FACES, segment, 8 * buffers.candidate_capacity)
        while slot < count:
            feature = buffers.features[begin + slot]
            query = feature_query(batch, buffers, feature)
            here = query.here
            t = batch.terrains[here.world]
            heights = node_heights(t, query.node[0], query.node[1], query.node[2])
            over = face(t, here.body, batch.hulls, here.place, query.node, heights, feature % 8)
            if over.most >= -here.place.margin:
                number = points(here.body, batch.hulls, over.normal)
                wall_k = wp.where(may_be_wall(over), number, -1)  # after the points
                end_k = wp.max(number, wall_k + 1)
                k = int(0)
                while k < end_k:
                    first_k = k + 0  # a copy
                    hits = int(0)
                    while k < wp.min(first_k + POINTS_AT_ONCE, end_k):
                        is_hit = bool(k == wall_k)
                        if not is_hit:
                            is_hit = on_face(here.body, batch.hulls, here.place, over, k).code != NO_CONTACT
                        if is_hit:
                            hits = hits | (1 << (k - first_k))
                        k += 1
                    if hits != 0:
                        reserve_face_contacts(buffers, segment, here.place.slot, feature, hits, first_k, wall_k)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=occupancy)
    def test_points(first: int, batch: Batch, buffers: ManifoldBuffers):
        """The contact points that slots were reserved for; where there is none after all, its code says so."""
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        count = filled(buffers, CONTACT_POINTS, segment, buffers.contact_capacity)
        if overflowed(buffers, segment):
            count = int(0)
        while slot < count:
            at = segment * buffers.contact_capacity + slot
            order = buffers.links[at].order
            feature = int(order >> wp.int64(32))
            k = int(order & wp.int64(0x7FFFFFFF)) >> 1
            query = feature_query(batch, buffers, feature)
            here = query.here
            t = batch.terrains[here.world]
            heights = node_heights(t, query.node[0], query.node[1], query.node[2])
            over = face(t, here.body, batch.hulls, here.place, query.node, heights, feature % 8)
            deepest = support(here.body, batch.hulls, -over.normal)
            if (order & wp.int64(1)) != wp.int64(0):
                store_contact_point(buffers.contact_points, at, wall_contact(here.place, over, deepest))
            else:
                contact = on_face(here.body, batch.hulls, here.place, over, k)
                if not rests(here.place, over, deepest, contact):
                    contact.code = NO_CONTACT
                store_contact_point(buffers.contact_points, at, contact)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=occupancy)
    def test_vertices(first: int, batch: Batch, buffers: ManifoldBuffers):
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        begin = feature_at(buffers, VERTICES, segment)
        count = filled(buffers, VERTICES, segment, 4 * buffers.candidate_capacity)
        while slot < count:
            feature = buffers.features[begin + slot]
            query = feature_query(batch, buffers, feature)
            here = query.here
            t = batch.terrains[here.world]
            mine = owner(t, here.place.centre, query.node[1], query.node[2])
            contact = on_vertex(t, here.body, batch.hulls, here.place, mine)
            if contact.code != NO_CONTACT:
                at = reserve(buffers, segment, 1)
                if at >= 0:
                    store(buffers, at, contact, order_of(feature, 0, 0))
                    prepend(buffers, here.place.slot, at, at)
            slot += LANES

    @wp.kernel(module="unique", module_options=SOUND, launch_bounds=occupancy)
    def test_edges(first: int, batch: Batch, buffers: ManifoldBuffers):
        lane = first + wp.tid()
        segment = lane // LANES
        slot = lane % LANES
        begin = feature_at(buffers, EDGES, segment)
        count = filled(buffers, EDGES, segment, 12 * buffers.candidate_capacity)
        while slot < count:
            feature = buffers.features[begin + slot]
            query = feature_query(batch, buffers, feature)
            here = query.here
            t = batch.terrains[here.world]
            mine = owner(t, here.place.centre, query.node[1], query.node[2])
            edge = edge_of(t, mine, feature % 8 - EDGE)
            k = int(0)
            while k < crossings(batch.hulls):
                contact = on_edge(t, here.body, batch.hulls, here.place, edge, k)
                if contact.code >= 0:
                    at = reserve(buffers, segment, 1)
                    if at >= 0:
                        store(buffers, at, contact, order_of(feature, k, 0))
                        prepend(buffers, here.place.slot, at, at)
                k += wp.where(contact.code == NEITHER, 2, 1)
            slot += LANES

    return NarrowPhaseKernels(test_faces, test_points, test_vertices, test_edges)

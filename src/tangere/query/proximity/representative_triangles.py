"""Near features of pairs of triangles: for broad phases that give pairs of triangles instead of features.

Of two triangles only the vertices and edges they own are tested, 3.25 pairs on average instead of 15, each pair of
features once whatever pair of triangles brings it up (Léonard 2021, section 3.7). Whether features are
neighbours is decided here, by their vertices: a pair with a vertex in common always touches and is no contact (section
3.6.3).
Known as: representative triangles (Curtis, Tamstorf and Manocha 2008).
"""

from __future__ import annotations

import warp as wp

from tangere.broad_phase.triangles import Surfaces
from tangere.bvh.lbvh import MovingBox, boxes_meet
from tangere.geometry.closest_points import edges_near, face_near
from tangere.query.proximity.pair_keys import EDGE_EDGE, VERTEX_FACE, number_bits, pair_key
from tangere.runtime import SOUND, collect, reserve_slots

wp.set_module_options(SOUND)

#: Pairs of triangles worth a thread, some 100 ns each.
GRAIN = 2048


def near_features(surfaces: Surfaces, pairs: wp.array, distance: float, *, boxes: bool = True) -> wp.array:
    """Keys of the pairs of owned features, without a common vertex, that are nearer than `distance`, in any order.

    Args:
        pairs: (n,) vec2i of triangles.
        boxes: compare the boxes of the features before their distance; the answer is the same.
    """
    inputs = [pairs, triangle_features(surfaces, distance, boxes)]
    return collect(_near_features, len(pairs), inputs, wp.int64, device=surfaces.device, grain=GRAIN)


def triangle_features(surfaces: Surfaces, distance: float, boxes: bool) -> TriangleFeatures:
    """What a kernel that calls `append_near` takes."""
    owned, layout = TriangleFeatures(), surfaces.layout
    owned.faces, owned.face_edges, owned.owns, owned.body = layout.faces, layout.face_edges, layout.owns, layout.body
    owned.positions, owned.distance, owned.bits = surfaces.positions, distance, number_bits(layout)
    owned.boxes = surfaces.vertex_boxes(distance) if boxes else wp.empty(0, dtype=MovingBox, device=surfaces.device)
    return owned


@wp.struct
class TriangleFeatures:
    """The features of the triangles of a scene, and which of them each triangle owns."""

    faces: wp.array2d[int]
    face_edges: wp.array2d[int]
    owns: wp.array[int]
    body: wp.array[int]
    positions: wp.array[wp.vec3d]
    boxes: wp.array[MovingBox]  # of vertices; or none
    distance: wp.float64
    bits: wp.int64  # of the number of a feature


@wp.func
def following(corner: int) -> int:
    return (corner + 1) % 3


@wp.func
def edge_box(p: int, q: int, boxes: wp.array[MovingBox]) -> MovingBox:
    return wp.min(boxes[p], boxes[q])


@wp.func
def face_box(t: int, faces: wp.array2d[int], boxes: wp.array[MovingBox]) -> MovingBox:
    return wp.min(wp.min(boxes[faces[t, 0]], boxes[faces[t, 1]]), boxes[faces[t, 2]])


@wp.func
def append_near(
    pair: wp.vec2i,
    owned: TriangleFeatures,
    shard: int,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.int64],
):
    """Append the keys of the features that two triangles own and that are near; boxes, if any, are compared first."""
    boxed = owned.boxes.shape[0] > 0
    for turn in range(2):
        s = pair[turn]
        t = pair[1 - turn]
        f0 = owned.faces[t, 0]
        f1 = owned.faces[t, 1]
        f2 = owned.faces[t, 2]
        for c in range(3):
            v = owned.faces[s, c]
            if ((owned.owns[s] >> c) & 1) == 1 and v != f0 and v != f1 and v != f2:
                if not boxed or boxes_meet(owned.boxes[v], face_box(t, owned.faces, owned.boxes)):
                    p = owned.positions[v]
                    a = owned.positions[f0]
                    b = owned.positions[f1]
                    q = owned.positions[f2]
                    if face_near(p, a, b, q, owned.distance):
                        slot = reserve_slots(counts, shard, 1, capacity)
                        if slot >= 0:
                            side = int(0)
                            if owned.body[s] > owned.body[t]:
                                side = 1
                            out[slot] = pair_key(VERTEX_FACE, side, v, t, owned.bits)
    s = pair[0]
    t = pair[1]
    for c in range(3):
        if ((owned.owns[s] >> (3 + c)) & 1) == 1:
            # The smaller vertex of an edge first, as the mesh lists it: the answer must not depend on who asks.
            a0 = wp.min(owned.faces[s, c], owned.faces[s, following(c)])
            a1 = wp.max(owned.faces[s, c], owned.faces[s, following(c)])
            for d in range(3):
                b0 = wp.min(owned.faces[t, d], owned.faces[t, following(d)])
                b1 = wp.max(owned.faces[t, d], owned.faces[t, following(d)])
                if ((owned.owns[t] >> (3 + d)) & 1) == 1 and a0 != b0 and a0 != b1 and a1 != b0 and a1 != b1:
                    if not boxed or boxes_meet(edge_box(a0, a1, owned.boxes), edge_box(b0, b1, owned.boxes)):
                        p = owned.positions[a0]
                        a = owned.positions[a1]
                        b = owned.positions[b0]
                        q = owned.positions[b1]
                        if edges_near(p, a, b, q, b0 < a0 or (b0 == a0 and b1 < a1), owned.distance):
                            slot = reserve_slots(counts, shard, 1, capacity)
                            if slot >= 0:
                                one = owned.face_edges[s, c]
                                other = owned.face_edges[t, d]
                                out[slot] = pair_key(EDGE_EDGE, 0, wp.min(one, other), wp.max(one, other), owned.bits)


@wp.kernel
def _near_features(
    first: int,
    shard: int,
    pairs: wp.array[wp.vec2i],
    owned: TriangleFeatures,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.int64],
):
    append_near(pairs[first + wp.tid()], owned, shard, counts, capacity, out)

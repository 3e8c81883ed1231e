"""Whether what a cut has put elsewhere touches anything: the exact test, of that alone.

Question: do the faces at some vertices meet others where they are now?
Method:   boxes of the clusters they are in are fitted, and their faces go down the one tree. A pair of an edge and a
          face for which a direction between them is found is apart; all others are asked exactly.
Sound:    every pair that has a vertex that was put elsewhere is looked at, unless nothing of it can move.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import NOWHERE, Lanes, MovingBox, TreeArrays, resting_box
from tangere.runtime import SOUND
from tangere.soft.contact.cpu.simd_candidates import (
    lay_in_lanes,
    simd_box_of_three,
    simd_boxes_meet,
    simd_lanes_that_meet,
    simd_strangers_that_meet,
)
from tangere.soft.incremental.cpu.face_update import CLUSTERS, FaceRoom
from tangere.soft.incremental.cpu.wall_update import AROUND, CLUSTERS_AROUND, RING, STAMP, WallRoom
from tangere.soft.model.assembled_bodies import STILL
from tangere.soft.safe_step.separating_direction import shortest_offset

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Places in `own_boxes`: eight faces, eight first edges of them, second and third ones; the box around all, and that of
#: another face.
AROUND_ALL, OTHER = wp.constant(32), wp.constant(33)
OWN_BOXES, OWN_GROUPS = 34, 4
#: Directions that are tried before the shortest one is found.
_TRIES = wp.constant(6)
#: Heights along a direction of length 1 are right to this part of the largest coordinate, and far better.
_ROUNDING = wp.constant(wp.float64(1.0e-14))


@wp.func
def separates(way: wp.vec3d, d0: wp.vec3d, d1: wp.vec3d, s1: wp.vec3d, s2: wp.vec3d, size: wp.float64) -> bool:
    """Whether an edge lies beyond a face along a direction, by more than rounding; all from a corner of the face.

    `size`: how large the coordinates are that all of it was made of.
    """
    gap = wp.min(wp.dot(way, d0), wp.dot(way, d1)) - wp.max(wp.float64(0.0), wp.max(wp.dot(way, s1), wp.dot(way, s2)))
    return gap > _ROUNDING * size * (wp.abs(way[0]) + wp.abs(way[1]) + wp.abs(way[2]))


@wp.func
def largest(p: wp.vec3d) -> wp.float64:
    return wp.max(wp.max(wp.abs(p[0]), wp.abs(p[1])), wp.abs(p[2]))


@wp.func
def may_touch(u: int, v: int, a: int, b: int, c: int, here: wp.array[wp.vec3d], traits: wp.array[int]) -> bool:
    """Whether no direction between an edge and a face is soon found; `may_cross` for what does not move."""
    if (traits[u] & traits[v] & traits[a] & traits[b] & traits[c] & STILL) != 0:
        return False
    corner = here[a]
    d0 = here[u] - corner
    d1 = here[v] - corner
    s1 = here[b] - corner
    s2 = here[c] - corner
    size = wp.max(largest(here[u]), largest(here[v]))
    size = wp.max(size, wp.max(largest(corner), wp.max(largest(here[b]), largest(here[c]))))
    way = wp.cross(s1, s2)  # walls of a cut face each other
    if wp.dot(way, d0) < wp.float64(0.0):
        way = -way
    if separates(way, d0, d1, s1, s2, size):
        return False
    way = wp.float64(0.5) * (d0 + d1) - (s1 + s2) / wp.float64(3.0)
    for _ in range(_TRIES):
        if separates(way, d0, d1, s1, s2, size):
            return False
        back = d0
        if wp.dot(way, d1 - d0) < wp.float64(0.0):
            back = d1
        b1 = wp.dot(way, s1)
        b2 = wp.dot(way, s2)
        if wp.max(b1, b2) > wp.float64(0.0):
            if b1 > b2:
                back = back - s1
            else:
                back = back - s2
        back = way - back
        length = wp.dot(back, back)
        if length > wp.float64(0.0):
            way -= wp.clamp(wp.dot(way, back) / length, wp.float64(0.0), wp.float64(1.0)) * back
    return True


@wp.func
def note_pair(u: int, v: int, a: int, b: int, c: int, counts: wp.array[int], pairs: wp.array2d[int]):
    """Lists an edge and a face; counts those there is no room for."""
    n = counts[0]
    if n < pairs.shape[0]:
        pairs[n, 0] = u
        pairs[n, 1] = v
        pairs[n, 2] = a
        pairs[n, 3] = b
        pairs[n, 4] = c
        counts[0] = n + 1
    else:
        counts[1] = counts[1] + 1


@wp.func
def fit_above(tree: TreeArrays, parent: wp.array[int], nodes: wp.array[MovingBox], node: int):
    """The boxes above a cluster, as far as they change."""
    at = parent[node]
    while at >= 0:
        box = wp.min(nodes[at + 1], nodes[tree.skip[at + 1]])
        if box == nodes[at]:
            return
        nodes[at] = box
        at = parent[at]


@wp.func
def fit_around(
    r: FaceRoom,
    w: WallRoom,
    tree: TreeArrays,
    parent: wp.array[int],
    origin: wp.vec3d,
    scale: wp.float64,
    here: wp.array[wp.vec3d],
    nodes: wp.array[MovingBox],
    boxes: wp.array[MovingBox],
    own_boxes: wp.array[MovingBox],
):
    """Boxes of what was put elsewhere, where it is, and the clusters that have some of it."""
    for n in range(w.numbers[RING]):
        v = w.ring[n]
        boxes[v] = resting_box(here[v], wp.float64(0.0), origin, scale)
    count = int(0)
    for n in range(r.found[CLUSTERS] + w.numbers[AROUND]):
        k = int(0)
        if n < r.found[CLUSTERS]:
            k = r.touched_clusters[n]
        else:
            k = r.cluster_of[r.place_of[w.around[n - r.found[CLUSTERS]]]]
        if w.cluster_stamp[k] != w.numbers[STAMP]:
            w.cluster_stamp[k] = w.numbers[STAMP]
            w.clusters_around[count] = k
            count += 1
    w.numbers[CLUSTERS_AROUND] = count
    for n in range(count):
        node = r.node_of[w.clusters_around[n]]
        box = MovingBox(NOWHERE)
        for j in range(tree.first[node], tree.last[node] + 1):
            f = tree.order[j]
            simd_box_of_three(boxes, r.faces[3 * f], r.faces[3 * f + 1], r.faces[3 * f + 2], own_boxes, OTHER)
            box = wp.min(box, own_boxes[OTHER])
        nodes[node] = box
    for n in range(count):
        fit_above(tree, parent, nodes, r.node_of[w.clusters_around[n]])


@wp.kernel
def find_pairs(
    first: int,
    r: FaceRoom,
    w: WallRoom,
    elsewhere: wp.array[int],
    tree: TreeArrays,
    parent: wp.array[int],
    origin: wp.vec3d,
    scale: wp.float64,
    nodes: wp.array[MovingBox],
    boxes: wp.array[MovingBox],
    own_corners: wp.array[int],
    own_boxes: wp.array[MovingBox],
    own_lanes: wp.array[Lanes],
    here: wp.array[wp.vec3d],
    counts: wp.array[int],
    pairs: wp.array2d[int],
):
    """Edges and faces, of which one is at what was put elsewhere, whose boxes meet (one thread).

    Args:
        elsewhere: (f,) when each face was last put elsewhere.
        own_corners, own_boxes, own_lanes: room for the faces of a cluster, and for their edges, of each the first side
            by side, then the second, then the third; an edge that is not asked has no corners.
        counts: pairs that are listed, and those there was no room for.
    """
    counts[0] = 0
    counts[1] = 0
    stamp = w.numbers[STAMP]
    fit_around(r, w, tree, parent, origin, scale, here, nodes, boxes, own_boxes)
    for n in range(w.numbers[AROUND]):
        f = w.around[n]
        for k in range(3):
            if w.moved[r.faces[3 * f + k]] == stamp:
                elsewhere[f] = stamp
    for n in range(w.numbers[CLUSTERS_AROUND]):
        own = r.node_of[w.clusters_around[n]]
        count = int(0)
        around = MovingBox(NOWHERE)
        for i in range(tree.first[own], tree.last[own] + 1):
            f = tree.order[i]
            if elsewhere[f] == stamp:
                for k in range(3):
                    own_corners[8 * k + count] = r.faces[3 * f + k]
                simd_box_of_three(boxes, r.faces[3 * f], r.faces[3 * f + 1], r.faces[3 * f + 2], own_boxes, count)
                for k in range(3):  # an edge between two of them is asked once
                    owner = r.edge_face[r.face_edges[3 * f + k]]
                    u = int(-1)
                    v = r.faces[3 * f + (k + 1) % 3]
                    if owner == f or elsewhere[owner] != stamp:
                        u = r.faces[3 * f + k]
                        simd_box_of_three(boxes, u, v, v, own_boxes, 8 * (k + 1) + count)
                    at = 24 * (k + 1) + count
                    own_corners[at] = u
                    own_corners[at + 8] = v
                    own_corners[at + 16] = v
                count += 1
        node = int(0)
        if count == 0:
            node = tree.skip.shape[0]
        else:
            for i in range(count):
                around = wp.min(around, own_boxes[i])
            own_boxes[AROUND_ALL] = around
            for group in range(4):
                lay_in_lanes(own_boxes, 8 * group, count, own_lanes, group)
        while node < tree.skip.shape[0]:
            if not simd_boxes_meet(own_boxes, AROUND_ALL, nodes, node):
                node = tree.skip[node]
            elif tree.cluster[node] < 0:
                node = node + 1
            else:
                for j in range(tree.first[node], tree.last[node] + 1):
                    g = tree.order[j]
                    a = r.faces[3 * g]
                    b = r.faces[3 * g + 1]
                    c = r.faces[3 * g + 2]
                    if simd_lanes_that_meet(boxes, a, b, c, own_boxes, AROUND_ALL, own_lanes, count) != 0:
                        for k in range(1, 4):  # the edges of each, once, and the other
                            meeting = simd_strangers_that_meet(boxes, a, b, c, own_lanes, own_corners, k, count)
                            i = 24 * k
                            while meeting != 0:
                                if (meeting & 1) == 1:
                                    note_pair(own_corners[i], own_corners[i + 8], a, b, c, counts, pairs)
                                meeting = meeting >> 1
                                i += 1
                        if elsewhere[g] != stamp:
                            note_edges_of(g, r, boxes, own_lanes, own_corners, count, counts, pairs)
                node = tree.skip[node]


@wp.func
def note_edges_of(
    g: int,
    r: FaceRoom,
    boxes: wp.array[MovingBox],
    own_lanes: wp.array[Lanes],
    own_corners: wp.array[int],
    count: int,
    counts: wp.array[int],
    pairs: wp.array2d[int],
):
    """Lists the edges that a face is asked for, with those of the faces side by side that they meet."""
    for k in range(3):
        if r.edge_face[r.face_edges[3 * g + k]] == g:
            u = r.faces[3 * g + k]
            v = r.faces[3 * g + (k + 1) % 3]
            meeting = simd_strangers_that_meet(boxes, u, v, v, own_lanes, own_corners, 0, count)
            i = int(0)
            while meeting != 0:
                if (meeting & 1) == 1:
                    note_pair(u, v, own_corners[i], own_corners[i + 8], own_corners[i + 16], counts, pairs)
                meeting = meeting >> 1
                i += 1


@wp.kernel
def keep_near(
    first: int, here: wp.array[wp.vec3d], traits: wp.array[int], counts: wp.array[int], pairs: wp.array2d[int]
):
    """Leaves only pairs between which no direction is soon found (one thread)."""
    kept = int(0)
    for n in range(counts[0]):
        if may_touch(pairs[n, 0], pairs[n, 1], pairs[n, 2], pairs[n, 3], pairs[n, 4], here, traits):
            for k in range(5):
                pairs[kept, k] = pairs[n, k]
            kept += 1
    counts[0] = kept


@wp.kernel
def keep_uncertain(first: int, here: wp.array[wp.vec3d], counts: wp.array[int], pairs: wp.array2d[int]):
    """Leaves only pairs whose shortest offset is no direction between them either (one thread)."""
    kept = int(0)
    for n in range(counts[0]):
        corner = here[pairs[n, 2]]
        d0 = here[pairs[n, 0]] - corner
        d1 = here[pairs[n, 1]] - corner
        s1 = here[pairs[n, 3]] - corner
        s2 = here[pairs[n, 4]] - corner
        size = wp.float64(0.0)
        for k in range(5):
            size = wp.max(size, largest(here[pairs[n, k]]))
        if not separates(shortest_offset(d0, d1, wp.vec3d(), s1, s2), d0, d1, s1, s2, size):
            for k in range(5):
                pairs[kept, k] = pairs[n, k]
            kept += 1
    counts[0] = kept

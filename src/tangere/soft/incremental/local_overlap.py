"""Whether what a cut has put elsewhere touches anything: the exact test, of that alone.

Question: do the faces at some vertices meet others where they are now?
Method:   boxes of the clusters they are in are fitted, and their faces go down the one tree. A pair of an edge and a
          face for which a direction between them is soon found is apart (`separating_direction`); all others are asked
          exactly.
Sound:    every pair that has a vertex that was put elsewhere is looked at, unless nothing of it can move.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import MovingBox, TreeArrays, boxes_meet
from tangere.runtime import SOUND
from tangere.soft.incremental.face_update import FaceRoom
from tangere.soft.incremental.undo_log import FULL, WriteLog
from tangere.soft.incremental.wall_update import AROUND, STAMP, WallRoom
from tangere.soft.model.assembled_bodies import STILL
from tangere.soft.safe_step.separating_direction import shortest_offset

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Directions that are tried before the shortest one is found.
_TRIES = wp.constant(6)
#: Heights are right to this part of what they are made of, and far better.
_ROUNDING = wp.constant(wp.float64(1.0e-12))


@wp.func
def face_box(r: FaceRoom, boxes: wp.array[MovingBox], f: int) -> MovingBox:
    return wp.min(wp.min(boxes[r.faces[3 * f]], boxes[r.faces[3 * f + 1]]), boxes[r.faces[3 * f + 2]])


@wp.func
def separates(way: wp.vec3d, d0: wp.vec3d, d1: wp.vec3d, s1: wp.vec3d, s2: wp.vec3d) -> bool:
    """Whether an edge lies beyond a face along a direction, by more than rounding; all from a corner of the face."""
    a0 = wp.dot(way, d0)
    a1 = wp.dot(way, d1)
    b1 = wp.dot(way, s1)
    b2 = wp.dot(way, s2)
    gap = wp.min(a0, a1) - wp.max(wp.float64(0.0), wp.max(b1, b2))
    return gap > _ROUNDING * (wp.abs(a0) + wp.abs(a1) + wp.abs(b1) + wp.abs(b2))


@wp.func
def may_touch(u: int, v: int, a: int, b: int, c: int, here: wp.array[wp.vec3d], traits: wp.array[int]) -> bool:
    """Whether no direction between an edge and a face is found; `may_cross` for what does not move."""
    if (traits[u] & traits[v] & traits[a] & traits[b] & traits[c] & STILL) != 0:
        return False
    corner = here[a]
    d0 = here[u] - corner
    d1 = here[v] - corner
    s1 = here[b] - corner
    s2 = here[c] - corner
    way = wp.float64(0.5) * (d0 + d1) - (s1 + s2) / wp.float64(3.0)
    for _ in range(_TRIES):
        if separates(way, d0, d1, s1, s2):
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
    return not separates(shortest_offset(d0, d1, wp.vec3d(), s1, s2), d0, d1, s1, s2)


@wp.func
def is_elsewhere(r: FaceRoom, w: WallRoom, f: int, stamp: int) -> bool:
    """Whether a vertex of a face was put elsewhere by this cut."""
    return (
        w.moved[r.faces[3 * f]] == stamp or w.moved[r.faces[3 * f + 1]] == stamp or w.moved[r.faces[3 * f + 2]] == stamp
    )


@wp.func
def ask(
    r: FaceRoom,
    log: WriteLog,
    f: int,
    k: int,
    g: int,
    boxes: wp.array[MovingBox],
    here: wp.array[wp.vec3d],
    traits: wp.array[int],
    counts: wp.array[int],
    pairs: wp.array2d[int],
):
    """Lists edge k of a face and another face, if no direction between them is found."""
    u = r.faces[3 * f + k]
    v = r.faces[3 * f + (k + 1) % 3]
    a = r.faces[3 * g]
    b = r.faces[3 * g + 1]
    c = r.faces[3 * g + 2]
    shared = a == u or b == u or c == u
    if shared or a == v or b == v or c == v:
        return
    if boxes_meet(wp.min(boxes[u], boxes[v]), wp.min(wp.min(boxes[a], boxes[b]), boxes[c])):
        if may_touch(u, v, a, b, c, here, traits):
            n = counts[0]
            if n < pairs.shape[0]:
                pairs[n, 0] = u
                pairs[n, 1] = v
                pairs[n, 2] = a
                pairs[n, 3] = b
                pairs[n, 4] = c
                counts[0] = n + 1
            else:
                log.numbers[FULL] = 1


@wp.kernel
def find_uncertain(
    first: int,
    r: FaceRoom,
    w: WallRoom,
    log: WriteLog,
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    boxes: wp.array[MovingBox],
    here: wp.array[wp.vec3d],
    traits: wp.array[int],
    counts: wp.array[int],
    pairs: wp.array2d[int],
):
    """Edges and faces, of which one is at what was put elsewhere, that may touch (one thread)."""
    counts[0] = 0
    stamp = w.numbers[STAMP]
    for n in range(w.numbers[AROUND]):
        f = w.around[n]
        box = face_box(r, boxes, f)
        node = int(0)
        if not is_elsewhere(r, w, f, stamp):
            node = tree.skip.shape[0]
        while node < tree.skip.shape[0]:
            if not boxes_meet(box, nodes[node]):
                node = tree.skip[node]
            elif tree.cluster[node] < 0:
                node = node + 1
            else:
                for j in range(tree.first[node], tree.last[node] + 1):
                    g = tree.order[j]
                    if g != f:
                        if boxes_meet(box, face_box(r, boxes, g)):
                            for k in range(3):
                                owner = r.edge_face[r.face_edges[3 * f + k]]
                                if owner == f or not is_elsewhere(r, w, owner, stamp):
                                    ask(r, log, f, k, g, boxes, here, traits, counts, pairs)
                            if not is_elsewhere(r, w, g, stamp):
                                for k in range(3):
                                    if r.edge_face[r.face_edges[3 * g + k]] == g:
                                        ask(r, log, g, k, f, boxes, here, traits, counts, pairs)
                node = tree.skip[node]

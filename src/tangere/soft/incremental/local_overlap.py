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
from tangere.soft.safe_step.separating_direction import VertexMoves, may_cross

wp.set_module_options(SOUND | {"max_unroll": 1})


@wp.func
def face_box(r: FaceRoom, boxes: wp.array[MovingBox], f: int) -> MovingBox:
    return wp.min(wp.min(boxes[r.faces[3 * f]], boxes[r.faces[3 * f + 1]]), boxes[r.faces[3 * f + 2]])


@wp.func
def ask(
    r: FaceRoom,
    log: WriteLog,
    f: int,
    k: int,
    g: int,
    boxes: wp.array[MovingBox],
    moves: VertexMoves,
    counts: wp.array[int],
    pairs: wp.array2d[int],
):
    """Lists edge k of a face and another face, if no direction between them is found."""
    u = r.faces[3 * f + k]
    v = r.faces[3 * f + (k + 1) % 3]
    a = r.faces[3 * g]
    b = r.faces[3 * g + 1]
    c = r.faces[3 * g + 2]
    if a == u or b == u or c == u or a == v or b == v or c == v:
        return
    if boxes_meet(wp.min(boxes[u], boxes[v]), wp.min(wp.min(boxes[a], boxes[b]), boxes[c])):
        if may_cross(u, v, a, b, c, moves):
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
    moves: VertexMoves,
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
                                if owner == f or w.face_stamp[owner] != stamp:
                                    ask(r, log, f, k, g, boxes, moves, counts, pairs)
                            if w.face_stamp[g] != stamp:
                                for k in range(3):
                                    if r.edge_face[r.face_edges[3 * g + k]] == g:
                                        ask(r, log, g, k, f, boxes, moves, counts, pairs)
                node = tree.skip[node]

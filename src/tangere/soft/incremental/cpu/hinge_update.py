"""Which pairs of edges no search of edges against faces keeps apart, after a cut (`safe_step.hinges`).

Question: a blade has left a strip one quad wide, two triangles or one tetrahedron; which edges are hinged there now?
Method:   pairs that are listed are looked at again, and go where they are hinged no more; new ones are looked for at
          the edges of all faces around what was touched. A pair changes only where a face at one of its edges does, and
          one face of each has an edge in common with one of the other.
Sound:    the same pairs as `safe_step.hinges.hinged_edges` finds; all that is written is noted.
The kernel runs on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.incremental.cpu.face_update import FaceRoom
from tangere.soft.incremental.cpu.wall_update import AROUND, WallRoom
from tangere.soft.incremental.undo_log import FULL, WriteLog, put

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Numbers of arrays in the log.
PAIRS, SECOND, COUNT = (wp.constant(k) for k in range(3))


@wp.struct
class HingeRoom:
    """What the update of hinged edges writes; by flat views."""

    count: wp.array[int]  #: (1,) pairs, with places that are free
    pairs: wp.array[int]  #: edge, or -1 where the place is free, and a face without width
    second: wp.array[int]  #: the corners of that face: the ends of the second edge


@wp.func
def has(r: FaceRoom, f: int, v: int) -> bool:
    """Whether a face has a vertex."""
    return r.faces[3 * f] == v or r.faces[3 * f + 1] == v or r.faces[3 * f + 2] == v


@wp.func
def covers(r: FaceRoom, u: int, v: int, a: int, b: int) -> bool:
    """Whether ab is an edge, and every face at it has a vertex of uv."""
    found = bool(False)
    for e in range(r.ranges[2 * a], r.ranges[2 * a + 1]):
        f = r.at[e]
        if has(r, f, b):
            found = True
            if not (has(r, f, u) or has(r, f, v)):
                return False
    return found


@wp.func
def are_hinged(r: FaceRoom, u: int, v: int, a: int, b: int) -> bool:
    apart = u != v and u != a and u != b and v != a and v != b
    if not apart:
        return False
    return covers(r, u, v, a, b) and covers(r, a, b, u, v)


@wp.func
def edge_between(r: FaceRoom, f: int, u: int, v: int) -> int:
    """The edge of a face that has these ends."""
    found = int(-1)
    for k in range(3):
        e = r.face_edges[3 * f + k]
        a = r.ends[2 * e]
        b = r.ends[2 * e + 1]
        if (a == u and b == v) or (a == v and b == u):
            found = e
    return found


@wp.func
def list_pair(r: FaceRoom, h: HingeRoom, log: WriteLog, e: int, a: int, b: int):
    """List an edge and another one, if they are not listed yet."""
    u = r.ends[2 * e]
    v = r.ends[2 * e + 1]
    place = int(-1)
    for n in range(h.count[0]):
        own = h.pairs[2 * n]
        if own < 0:
            place = n
        else:
            first = wp.vec2i(r.ends[2 * own], r.ends[2 * own + 1])
            second = wp.vec2i(h.second[3 * n], h.second[3 * n + 1])
            if own == e and (second == wp.vec2i(a, b) or second == wp.vec2i(b, a)):
                return
            ours = second == wp.vec2i(u, v) or second == wp.vec2i(v, u)
            if ours and (first == wp.vec2i(a, b) or first == wp.vec2i(b, a)):
                return
    if place < 0:
        place = h.count[0]
        if 2 * place >= h.pairs.shape[0]:
            log.numbers[FULL] = 1
            return
        put(log, COUNT, h.count, 0, place + 1)
    put(log, PAIRS, h.pairs, 2 * place, e)
    put(log, SECOND, h.second, 3 * place, a)
    put(log, SECOND, h.second, 3 * place + 1, b)
    put(log, SECOND, h.second, 3 * place + 2, b)


@wp.kernel
def update_hinges(first: int, c: ComplexArrays, r: FaceRoom, w: WallRoom, h: HingeRoom, log: WriteLog):
    """Bring the list up to date with all faces around what was touched (one thread)."""
    for n in range(h.count[0]):
        e = h.pairs[2 * n]
        if e >= 0:
            if not are_hinged(r, r.ends[2 * e], r.ends[2 * e + 1], h.second[3 * n], h.second[3 * n + 1]):
                put(log, PAIRS, h.pairs, 2 * n, -1)
    for n in range(w.numbers[AROUND]):
        f = w.around[n]
        asked = c.size == 3  # hinged edges of a closed surface are those of one tetrahedron, which has four ears
        if not asked:
            asked = r.ear_of[r.faces[3 * f]] >= 0
        if asked:
            for k in range(3):
                p = r.faces[3 * f + k]
                q = r.faces[3 * f + (k + 1) % 3]
                j = r.faces[3 * f + (k + 2) % 3]
                for i in range(r.ranges[2 * p], r.ranges[2 * p + 1]):
                    g = r.at[i]
                    if g != f and has(r, g, q):
                        far = r.faces[3 * g] + r.faces[3 * g + 1] + r.faces[3 * g + 2] - p - q
                        if are_hinged(r, p, j, q, far):
                            list_pair(r, h, log, edge_between(r, f, p, j), q, far)
                        if are_hinged(r, q, j, p, far):
                            list_pair(r, h, log, edge_between(r, f, q, j), p, far)

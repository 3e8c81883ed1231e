"""The surface that the edge of a blade sweeps in one step, and which edges of a body it crosses, in the rest shape.

Question: which edges does the blade pass in this step, at which part of their length, and on which side are their ends?
Method:   the edge is a polyline of k points; between its old and its new place are 2 (k - 1) triangles. Each vertex is
          above or below a triangle, each edge goes round its sides one way or the other: signs of determinants, exact,
          zero counting as above. Every side of a triangle is asked in one direction, that of the numbers of its ends,
          so that neighbouring triangles agree, those of the step before included; every edge from the end that comes
          first in space, so that whoever looks along it from either end agrees.
Sound:    signs decide which edges are cut, never whether the body stays whole: any answer leaves a valid complex.
Known as: orient3d (Shewchuk 1997).
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.triangles import side_of
from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import (
    CANDIDATES,
    CROSSED,
    CROSSED_BY,
    CROSSED_P,
    CROSSED_Q,
    FULL,
    STATUS,
    STROKE,
    WANTED_PART,
    ComplexArrays,
    new_mark,
    push,
)

wp.set_module_options(SOUND | {"max_unroll": 1})


@wp.struct
class SweptBlade:
    """The triangles of one step; m = 2 (k - 1)."""

    points: wp.array[wp.vec3d]  #: (2 k,) the old polyline, then the new one, in the rest shape [m]
    numbers: wp.array[int]  #: (2 k,) of the points: shared by steps that share them
    triangles: wp.array[wp.vec3i]  #: (m,) points of each triangle
    normals: wp.array[wp.vec3d]  #: (m,) unit; zero where the triangle has no area
    lower: wp.array[wp.vec3d]  #: (m + 1,) boxes, then that of all
    upper: wp.array[wp.vec3d]  #: (m + 1,)


@wp.func
def lay_out(blade: SweptBlade, count: int):
    """The triangles between two polylines of `count` points."""
    m = 2 * (count - 1)
    blade.lower[m] = wp.vec3d(wp.float64(wp.inf), wp.float64(wp.inf), wp.float64(wp.inf))
    blade.upper[m] = -blade.lower[m]
    for w in range(m):
        i = w / 2
        corners = wp.vec3i(i, i + 1, count + i + 1)
        if w % 2 == 1:
            corners = wp.vec3i(i, count + i + 1, count + i)
        blade.triangles[w] = corners
        a = blade.points[corners[0]]
        b = blade.points[corners[1]]
        c = blade.points[corners[2]]
        blade.normals[w] = wp.normalize(wp.cross(b - a, c - a))
        if wp.dot(blade.normals[w], blade.normals[w]) > wp.float64(0.0):
            blade.lower[w] = wp.min(a, wp.min(b, c))
            blade.upper[w] = wp.max(a, wp.max(b, c))
            blade.lower[m] = wp.min(blade.lower[m], blade.lower[w])
            blade.upper[m] = wp.max(blade.upper[m], blade.upper[w])
        else:
            blade.lower[w] = wp.vec3d(wp.float64(wp.inf), wp.float64(wp.inf), wp.float64(wp.inf))
            blade.upper[w] = -blade.lower[w]


@wp.func
def apart(lower: wp.vec3d, upper: wp.vec3d, other_lower: wp.vec3d, other_upper: wp.vec3d) -> bool:
    """Whether two boxes are apart."""
    clear = bool(False)
    for k in range(3):
        if upper[k] < other_lower[k] or lower[k] > other_upper[k]:
            clear = True
    return clear


@wp.func
def meets_blade(c: ComplexArrays, t: int, blade: SweptBlade, count: int) -> bool:
    """Whether a simplex may be crossed: its box meets that of a triangle, and its corners are on both sides of it."""
    corners = c.corners[t]
    lower = c.rest[corners[0]]
    upper = lower
    for k in range(1, c.size):
        lower = wp.min(lower, c.rest[corners[k]])
        upper = wp.max(upper, c.rest[corners[k]])
    m = 2 * (count - 1)
    if apart(lower, upper, blade.lower[m], blade.upper[m]):
        return False
    margin = wp.float64(1.0e-12) * (wp.length(upper) + wp.length(lower))  # beyond the rounding of the heights
    found = bool(False)
    w = int(0)
    while w < m and not found:
        if not apart(lower, upper, blade.lower[w], blade.upper[w]):
            origin = blade.points[blade.triangles[w][0]]
            low = wp.float64(wp.inf)
            high = -low
            for k in range(c.size):
                height = wp.dot(c.rest[corners[k]] - origin, blade.normals[w])
                low = wp.min(low, height)
                high = wp.max(high, height)
            found = low <= margin and high >= -margin
        w += 1
    return found


@wp.func
def find_candidates(c: ComplexArrays, tree: wp.uint64, blade: SweptBlade, count: int):
    """Simplices that may be crossed: those whose first ancestors are in the boxes of the blade, and neighbours of them.

    Vertices are moved a little, so a simplex may be outside the box of its ancestor; its neighbours then know of it.
    Where one part of the body is wanted, the others are not asked: they may be elsewhere by now.
    """
    mark = new_mark(c)
    wanted = c.numbers[WANTED_PART]
    for w in range(2 * (count - 1)):
        if blade.lower[w][0] <= blade.upper[w][0]:
            # Two units in the last place of float32 outward: what is rounded inward is not missed.
            grow = wp.float64(2.4e-7)
            low = blade.lower[w] - grow * wp.vec3d(
                wp.abs(blade.lower[w][0]), wp.abs(blade.lower[w][1]), wp.abs(blade.lower[w][2])
            )
            high = blade.upper[w] + grow * wp.vec3d(
                wp.abs(blade.upper[w][0]), wp.abs(blade.upper[w][1]), wp.abs(blade.upper[w][2])
            )
            query = wp.bvh_query_aabb(tree, wp.vec3(low), wp.vec3(high))
            ancestor = int(0)
            while wp.bvh_query_next(query, ancestor):
                t = int(ancestor)
                while t >= 0:
                    if c.mark[t] != mark:
                        c.mark[t] = mark
                        if (wanted < 0 or c.part[t] == wanted) and meets_blade(c, t, blade, count):
                            push(c, CANDIDATES, t)
                    t = c.next[t]
    i = int(0)
    while i < c.lengths[CANDIDATES]:
        beyond = c.neighbours[c.lists[CANDIDATES, i]]
        for k in range(c.size):
            if beyond[k] >= 0:
                o = beyond[k] >> 2
                if c.mark[o] != mark:
                    c.mark[o] = mark
                    if meets_blade(c, o, blade, count):
                        push(c, CANDIDATES, o)
        i += 1


@wp.func
def is_above(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> int:
    """1 where d is on the side of the plane abc from which these are seen anticlockwise, or in it; else -1."""
    if side_of(a, b, c, d) > 0:
        return -1
    return 1


@wp.func
def comes_before(p: wp.vec3d, q: wp.vec3d) -> bool:
    """An order of places: every edge is asked in one direction, from whichever end it is looked along."""
    if p[0] != q[0]:
        return p[0] < q[0]
    if p[1] != q[1]:
        return p[1] < q[1]
    return p[2] < q[2]


@wp.func
def crossing(p: wp.vec3d, q: wp.vec3d, blade: SweptBlade, w: int) -> int:
    """The side of p, 1 or -1, if the edge pq crosses triangle w; else 0."""
    if apart(wp.min(p, q), wp.max(p, q), blade.lower[w], blade.upper[w]):
        return 0
    corners = blade.triangles[w]
    a = blade.points[corners[0]]
    b = blade.points[corners[1]]
    c = blade.points[corners[2]]
    side_p = is_above(a, b, c, p)
    if side_p == is_above(a, b, c, q):
        return 0
    begin = p
    end = q
    if comes_before(q, p):
        begin = q
        end = p
    turns = int(0)
    for k in range(3):
        i = corners[k]
        j = corners[(k + 1) % 3]
        if blade.numbers[i] < blade.numbers[j]:
            turns += is_above(begin, end, blade.points[i], blade.points[j])
        else:
            turns -= is_above(begin, end, blade.points[j], blade.points[i])
    if turns == 3 or turns == -3:
        return side_p
    return 0


@wp.func
def passed_by(p: wp.vec3d, q: wp.vec3d, blade: SweptBlade, count: int, from_p: wp.float64) -> int:
    """1 + the number of the triangle that pq crosses next to p, with the sign of the side of p; 0 if it crosses none.

    Or an even number of them: then both ends are on one side of the blade. Crossings nearer to p than a part of pq are
    left out.
    """
    times = int(0)
    nearest = wp.float64(2.0)
    by = int(0)
    for w in range(count):
        side = crossing(p, q, blade, w)
        if side != 0:
            s = crossed_part(p, q, blade, w)
            if s >= from_p:
                times += 1
                if s < nearest:
                    nearest = s
                    by = side * (w + 1)
    if times % 2 == 0:
        by = 0
    return by


@wp.func
def crossed_part(p: wp.vec3d, q: wp.vec3d, blade: SweptBlade, w: int) -> wp.float64:
    """At which part of pq the plane of triangle w is, 0 to 1."""
    height_p = height_over(p, blade, w)
    height_q = height_over(q, blade, w)
    s = wp.float64(0.5)
    if height_p != height_q:
        s = height_p / (height_p - height_q)
    return wp.clamp(s, wp.float64(0.0), wp.float64(1.0))


@wp.func
def height_over(p: wp.vec3d, blade: SweptBlade, w: int) -> wp.float64:
    """How high a point is over the plane of triangle w [m]."""
    return wp.dot(p - blade.points[blade.triangles[w][0]], blade.normals[w])


@wp.func
def edge_room(c: ComplexArrays, simplices: int) -> int:
    """How much of the hash table is used for the edges of so many simplices: what is small stays in the caches."""
    room = int(64)
    while room < 16 * simplices and room < c.edge_keys.shape[0]:
        room = 2 * room
    return room


@wp.func
def is_new_edge(c: ComplexArrays, p: int, q: int, mark: int, room: int) -> bool:
    """Whether pq, p < q, is seen for the first time with this mark: it is put into so much of the hash table."""
    key = (wp.int64(p) << wp.int64(32)) | wp.int64(q)
    place = int((wp.uint32(p) * wp.uint32(73856093) + wp.uint32(q) * wp.uint32(19349663)) & wp.uint32(room - 1))
    tries = int(0)
    while tries < room and c.edge_marks[place] == mark:
        if c.edge_keys[place] == key:
            return False
        place = (place + 1) & (room - 1)
        tries += 1
    if 2 * tries >= room:
        c.numbers[STATUS] = FULL
        return False
    c.edge_marks[place] = mark
    c.edge_keys[place] = key
    return True


@wp.func
def find_crossings(c: ComplexArrays, blade: SweptBlade, count: int):
    """Edges of candidates that the blade passes, without those that end on the cut, and the sides of their ends.

    The side a vertex has first in a stroke is kept: the cut is where signs at vertices change, whatever the path of the
    blade does within one simplex. Crossings that contradict are dropped.
    """
    stroke = c.numbers[STROKE]
    mark = new_mark(c)
    m = 2 * (count - 1)
    room = edge_room(c, c.lengths[CANDIDATES])
    for i in range(c.lengths[CANDIDATES]):
        corners = c.corners[c.lists[CANDIDATES, i]]
        for j in range(1, c.size):
            for k in range(j):
                p = wp.min(corners[j], corners[k])
                q = wp.max(corners[j], corners[k])
                at_p = c.rest[p]
                at_q = c.rest[q]
                asked = c.on[p] != stroke and c.on[q] != stroke
                if asked and not apart(wp.min(at_p, at_q), wp.max(at_p, at_q), blade.lower[m], blade.upper[m]):
                    if is_new_edge(c, p, q, mark, room):
                        by = passed_by(at_p, at_q, blade, m, wp.float64(0.0))
                        if by != 0:
                            push(c, CROSSED_P, p)
                            push(c, CROSSED_Q, q)
                            push(c, CROSSED_BY, by)
    c.numbers[CROSSED] = c.lengths[CROSSED_P]

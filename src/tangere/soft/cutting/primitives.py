"""The two things a cut does to a complex: bisect an edge, open facets; and what it asks: stars, rings, altitudes.

Question: how are simplices divided so that they go on fitting together?
Method:   bisecting pq puts a vertex m on the edge: every simplex t of the ring keeps p and gets a twin that keeps q.
          Facets with both ends are divided alike on both sides. Opening facets forgets what is beyond them; a vertex
          whose star falls apart gets a copy for every piece.
Sound:    the complex fits together after each bisection and after each opening, whatever is opened, if no edge is left
          with two chains of simplices that hang together at both ends (`is_pinched`): such an edge is bisected first.
Known as: edge bisection (Rivara 1984); vertex splitting.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import (
    BISECTED,
    BLENDED,
    BLENDED_P,
    BLENDED_Q,
    CHAINS,
    FINE,
    FLOOD,
    FULL,
    RING,
    SIMPLICES,
    STAR,
    STATUS,
    VERTICES,
    ComplexArrays,
    change,
    keep,
    keep_vertex,
    new_mark,
    push,
)

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Faces whose normals differ by less than this are in one plane [sine of the angle].
FLAT = wp.constant(wp.float64(1.0e-10))


# -- what is around ----------------------------------------------------------------------------------------------------


@wp.func
def corner_of(c: ComplexArrays, t: int, v: int) -> int:
    """Which corner of a simplex a vertex is, or -1."""
    corners = c.corners[t]
    at = int(-1)
    for k in range(c.size):
        if corners[k] == v:
            at = k
    return at


@wp.func
def find_star(c: ComplexArrays, v: int, which: int):
    """All simplices at a vertex, by a flood through the facets that contain it, as a list."""
    mark = new_mark(c)
    start = c.simplex_at[v]
    c.mark[start] = mark
    c.lists[which, 0] = start
    count = int(1)
    i = int(0)
    while i < count:
        t = c.lists[which, i]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        for k in range(4):  # a triangle has nothing beyond the fourth
            if corners[k] != v and beyond[k] >= 0:
                o = beyond[k] >> 2
                if c.mark[o] != mark:
                    c.mark[o] = mark
                    count = append(c, which, count, o)
        i += 1
    c.lengths[which] = count


@wp.func
def append(c: ComplexArrays, which: int, count: int, value: int) -> int:
    """Append to a list that has so many, and say how many it has then; its length is told when all is in it."""
    if count < c.list_room:
        c.lists[which, count] = value
        return count + 1
    c.numbers[STATUS] = FULL
    return count


@wp.func
def simplex_at_edge(c: ComplexArrays, p: int, q: int) -> int:
    """The first simplex at the edge pq that a flood round p comes to, or -1; uses STAR."""
    mark = new_mark(c)
    start = c.simplex_at[p]
    c.mark[start] = mark
    c.lists[STAR, 0] = start
    count = int(1)
    found = int(-1)
    i = int(0)
    while i < count and found < 0:
        t = c.lists[STAR, i]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        for k in range(4):
            if corners[k] == q:
                found = t
            if corners[k] != p and beyond[k] >= 0:
                o = beyond[k] >> 2
                if c.mark[o] != mark:
                    c.mark[o] = mark
                    count = append(c, STAR, count, o)
        i += 1
    return found


@wp.func
def find_ring(c: ComplexArrays, p: int, q: int, guess: int):
    """All simplices at the edge pq, in RING.

    `guess`: a simplex that may have both ends, or -1. Where the body does not go all the way round the edge there could
    be others that hang together with these only at an end: then all of the star of p are looked at.
    """
    start = int(-1)
    if guess >= 0:
        if corner_of(c, guess, p) >= 0 and corner_of(c, guess, q) >= 0:
            start = guess
    if start < 0:
        start = simplex_at_edge(c, p, q)
    c.lengths[RING] = 0
    if start < 0:
        return
    mark = new_mark(c)
    c.mark[start] = mark
    c.lists[RING, 0] = start
    count = int(1)
    closed = bool(True)
    i = int(0)
    while i < count and closed:
        t = c.lists[RING, i]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        for k in range(c.size):
            if corners[k] != p and corners[k] != q:
                if beyond[k] < 0:
                    closed = False
                else:
                    o = beyond[k] >> 2
                    if c.mark[o] != mark:
                        c.mark[o] = mark
                        count = append(c, RING, count, o)
        i += 1
    if closed:
        c.lengths[RING] = count
        return
    find_star(c, p, STAR)
    for j in range(c.lengths[STAR]):
        if corner_of(c, c.lists[STAR, j], q) >= 0:
            push(c, RING, c.lists[STAR, j])


@wp.func
def flood_around(c: ComplexArrays, start: int, p: int, q: int, mark: int):
    """Mark what is reached from a simplex through facets with p (and q, unless -1) that do not open; it is in FLOOD."""
    c.mark[start] = mark
    c.lists[FLOOD, 0] = start
    count = int(1)
    i = int(0)
    while i < count:
        t = c.lists[FLOOD, i]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        opening = c.opening[t]
        for k in range(4):
            if beyond[k] >= 0 and corners[k] != p and corners[k] != q and ((opening >> k) & 1) == 0:
                o = beyond[k] >> 2
                if c.mark[o] != mark:
                    c.mark[o] = mark
                    count = append(c, FLOOD, count, o)
        i += 1
    c.lengths[FLOOD] = count


@wp.func
def falls_apart(c: ComplexArrays, v: int) -> bool:
    """Whether the star of a vertex has more than one piece once marked facets are open."""
    mark = new_mark(c)
    flood_around(c, c.simplex_at[v], v, -1, mark)
    for i in range(c.lengths[FLOOD]):
        t = c.lists[FLOOD, i]
        opening = c.opening[t]
        if (opening & 15) != 0:
            corners = c.corners[t]
            beyond = c.neighbours[t]
            for k in range(c.size):
                if corners[k] != v and ((opening >> k) & 1) == 1:
                    if c.mark[beyond[k] >> 2] != mark:
                        return True
    return False


@wp.func
def are_joined(c: ComplexArrays, v: int) -> bool:
    """Whether the first two of CHAINS hang together at a vertex."""
    mark = new_mark(c)
    flood_around(c, c.lists[CHAINS, 0], v, -1, mark)
    return c.mark[c.lists[CHAINS, 1]] == mark


@wp.func
def is_pinched(c: ComplexArrays, p: int, q: int, p_separates: bool, q_separates: bool) -> bool:
    """Whether two chains of simplices round pq stay joined at both ends: the edge would be in four surface triangles.

    At an end that does not separate all are. Reads the simplices of the edge from RING; CHAINS has the first of each
    chain and what it is joined to at p.
    """
    mark = new_mark(c)
    c.lengths[CHAINS] = 0
    for i in range(c.lengths[RING]):
        t = c.lists[RING, i]
        if c.mark[t] != mark:
            flood_around(c, t, p, q, mark)
            push(c, CHAINS, t)
    chains = c.lengths[CHAINS]
    if chains < 2:
        return False
    if not p_separates and not q_separates:
        return True
    if chains == 2:  # nearly always, and nearly always parted at the first end
        if p_separates:
            if not are_joined(c, p):
                return False
        if q_separates:
            return are_joined(c, q)
        return True
    pinched = bool(False)
    for _ in range(chains):  # what is joined at p: the number of the first chain it is joined to
        push(c, CHAINS, -1)
    for i in range(chains):
        if c.lists[CHAINS, chains + i] < 0:
            here = new_mark(c)
            flood_around(c, c.lists[CHAINS, i], p, -1, here)
            for j in range(i, chains):
                if c.mark[c.lists[CHAINS, j]] == here:
                    c.lists[CHAINS, chains + j] = i
    for i in range(chains):
        there = new_mark(c)
        flood_around(c, c.lists[CHAINS, i], q, -1, there)
        for j in range(i + 1, chains):
            joined = c.lists[CHAINS, chains + i] == c.lists[CHAINS, chains + j]
            if joined and c.mark[c.lists[CHAINS, j]] == there:
                pinched = True
    return pinched


# -- shapes ------------------------------------------------------------------------------------------------------------


@wp.func
def least_altitude(size: int, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> wp.float64:
    """Of a tetrahedron, negative when it is turned inside out; of the triangle abc [m]."""
    ab = wp.cross(b - a, c - a)
    across = wp.length(ab)
    if size == 3:
        return across / wp.max(wp.length(b - a), wp.max(wp.length(c - a), wp.length(c - b)))
    ad = wp.length(wp.cross(b - a, d - a))
    cd = wp.length(wp.cross(c - a, d - a))
    bd = wp.length(wp.cross(c - b, d - b))
    return wp.dot(ab, d - a) / wp.max(wp.max(across, ad), wp.max(cd, bd))


@wp.func
def altitude_with(c: ComplexArrays, corners: wp.vec4i, v: int, at: wp.vec3d) -> wp.float64:
    """The least altitude of a simplex if its vertex v were elsewhere (-1: as it is) [m]."""
    points = wp.mat44d()
    for k in range(c.size):
        point = c.rest[corners[k]]
        if corners[k] == v:
            point = at
        for axis in range(3):
            points[k, axis] = point[axis]
    return least_altitude(
        c.size,
        wp.vec3d(points[0, 0], points[0, 1], points[0, 2]),
        wp.vec3d(points[1, 0], points[1, 1], points[1, 2]),
        wp.vec3d(points[2, 0], points[2, 1], points[2, 2]),
        wp.vec3d(points[3, 0], points[3, 1], points[3, 2]),
    )


@wp.func
def leaves_altitude(c: ComplexArrays, p: int, q: int, s: wp.float64, least: wp.float64) -> bool:
    """Whether bisecting pq leaves all simplices of RING as high as `least`, or as the flattest of them was."""
    m = (wp.float64(1.0) - s) * c.rest[p] + s * c.rest[q]
    fine = bool(True)
    i = int(0)
    while i < c.lengths[RING] and fine:
        corners = c.corners[c.lists[RING, i]]
        floor = wp.min(least, altitude_with(c, corners, -1, m))
        if altitude_with(c, corners, q, m) < floor or altitude_with(c, corners, p, m) < floor:
            fine = False
        i += 1
    return fine


@wp.func
def facet_normal(c: ComplexArrays, t: int, k: int) -> wp.vec3d:
    """The normal of a facet of a tetrahedron, twice its area long; in a sheet the edge itself."""
    corners = c.corners[t]
    i = (k + 1) % c.size
    j = (k + 2) % c.size
    across = c.rest[corners[j]] - c.rest[corners[i]]
    if c.size == 4:
        across = wp.cross(across, c.rest[corners[(k + 3) % 4]] - c.rest[corners[i]])
        if k % 2 == 1:  # the other three corners in turn go round the facet the other way
            across = -across
    return across


# -- changes -----------------------------------------------------------------------------------------------------------


@wp.func
def add_vertex(c: ComplexArrays, p: int, q: int, s: wp.float64) -> int:
    """A vertex at (1 - s) p + s q, or -1 if there is no room."""
    m = c.numbers[VERTICES]
    if m >= c.vertex_room or c.numbers[STATUS] != FINE:
        c.numbers[STATUS] = FULL
        return -1
    c.numbers[VERTICES] = m + 1
    c.rest[m] = (wp.float64(1.0) - s) * c.rest[p] + s * c.rest[q]
    c.on[m] = 0
    c.side[m] = 0
    c.seen_from[m] = -1
    c.vertex_kept[m] = 0
    blend(c, m, p, q, s)
    return m


@wp.func
def blend(c: ComplexArrays, m: int, p: int, q: int, s: wp.float64):
    """Note that whatever vertices carry is (1 - s) of p and s of q at m, in this order."""
    push(c, BLENDED, m)
    if c.numbers[STATUS] == FINE:
        c.blends[c.lengths[BLENDED] - 1] = s
    push(c, BLENDED_P, p)
    push(c, BLENDED_Q, q)


@wp.func
def bisect(c: ComplexArrays, p: int, q: int, s: wp.float64) -> int:
    """Divide the simplices of RING by a vertex at (1 - s) p + s q; it, or -1 if there is no room."""
    count = c.lengths[RING]
    base = c.numbers[SIMPLICES]
    if base + count > c.simplex_room:
        c.numbers[STATUS] = FULL
        return -1
    m = add_vertex(c, p, q, s)
    if m < 0:
        return -1
    c.numbers[SIMPLICES] = base + count
    keep_vertex(c, p)
    keep_vertex(c, q)
    for i in range(count):
        t = c.lists[RING, i]
        b = base + i
        change(c, t)
        c.twin[t] = b
        c.corners[b] = c.corners[t]
        c.neighbours[b] = c.neighbours[t]
        c.opening[b] = c.opening[t]
        c.label[b] = c.label[t]
        c.wall[b] = c.wall[t]
        c.part[b] = c.part[t]
        c.next[b] = c.next[t]
        c.next[t] = b
        c.changed[b] = 0
        c.kept[b] = 0
        change(c, b)
    for i in range(count):
        t = c.lists[RING, i]
        b = base + i
        corners = c.corners[t]
        at_p = int(0)
        at_q = int(0)
        for k in range(c.size):
            if corners[k] == p:
                at_p = k
            if corners[k] == q:
                at_q = k
        twin_corners = corners
        corners[at_q] = m
        twin_corners[at_p] = m
        c.corners[t] = corners
        c.corners[b] = twin_corners
        beyond = c.neighbours[t]
        twin_beyond = c.neighbours[b]
        for k in range(c.size):
            n = beyond[k]
            if k != at_p and k != at_q and n >= 0:
                twin_beyond[k] = 4 * c.twin[n >> 2] + (n & 3)
        far = beyond[at_p]
        twin_beyond[at_p] = far
        if far >= 0:
            keep(c, far >> 2)
            behind = c.neighbours[far >> 2]
            behind[far & 3] = 4 * b + at_p
            c.neighbours[far >> 2] = behind
        beyond[at_p] = 4 * b + at_q
        twin_beyond[at_q] = 4 * t + at_p
        c.neighbours[t] = beyond
        c.neighbours[b] = twin_beyond
        c.opening[t] = c.opening[t] & (255 - (17 << at_p))
        c.opening[b] = c.opening[b] & (255 - (17 << at_q))
        c.wall[t] = c.wall[t] & (15 - (1 << at_p))
        c.wall[b] = c.wall[b] & (15 - (1 << at_q))
        c.simplex_at[q] = b
        c.simplex_at[m] = t
    c.simplex_at[p] = c.lists[RING, 0]
    c.numbers[BISECTED] = c.numbers[BISECTED] + 1
    return m


@wp.func
def set_opening(c: ComplexArrays, facet: int, value: int):
    """Say of a facet, on both sides, whether it is about to open."""
    t = facet >> 2
    n = c.neighbours[t][facet & 3]
    o = n >> 2
    keep(c, t)
    keep(c, o)
    if value == 1:
        c.opening[t] = c.opening[t] | (1 << (facet & 3))
        c.opening[o] = c.opening[o] | (1 << (n & 3))
    else:
        c.opening[t] = c.opening[t] & (255 - (17 << (facet & 3)))
        c.opening[o] = c.opening[o] & (255 - (17 << (n & 3)))

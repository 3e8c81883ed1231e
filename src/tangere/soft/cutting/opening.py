"""Facets on the cut between simplices of different sides open, and vertices there get copies.

Question: which facets does the blade part in this step, and what falls apart?
Method:   facets whose corners are all on the cut, between a simplex on the one side and one on the other, open if one
          of their vertices then separates; others wait. Edges that would be pinched are bisected first.
Sound:    after it every star is connected, and the surface closed and oriented; opened facets come in pairs.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import (
    CHORDS,
    EDGES_AT,
    EDGES_P,
    EDGES_Q,
    ENDS,
    FACETS,
    FLOOD,
    LOOK,
    MARK,
    ON,
    OPENED,
    PENDING,
    RING,
    SEPARATING,
    SPLIT,
    STAR,
    STAR_ENDS,
    STARS,
    STROKE,
    WAITING,
    ComplexArrays,
    change,
    keep_vertex,
    new_mark,
    new_vertex_mark,
    push,
)
from tangere.soft.cutting.labels import all_on, find_label, is_on, put_on
from tangere.soft.cutting.primitives import (
    add_vertex,
    bisect,
    corner_of,
    facet_normal,
    falls_apart,
    find_ring,
    find_star,
    flood_around,
    is_pinched,
    set_opening,
)
from tangere.soft.cutting.swept_blade import edge_room, is_new_edge

wp.set_module_options(SOUND | {"max_unroll": 1})


@wp.func
def open_around(c: ComplexArrays, begin: int, sure: wp.float64):
    """Open what can be opened around vertices ON[begin:] and those that wait."""
    mark = new_vertex_mark(c)
    c.lengths[LOOK] = 0
    for i in range(begin, c.lengths[ON]):
        look_at(c, c.lists[ON, i], mark)
    for i in range(c.lengths[WAITING]):
        look_at(c, c.lists[WAITING, i], mark)
    c.lengths[WAITING] = 0
    c.lengths[FACETS] = 0
    for i in range(c.lengths[LOOK]):
        v = c.lists[LOOK, i]
        find_star(c, v, STAR)
        undecided = bool(False)
        for z in range(c.lengths[STAR]):
            if find_facets(c, v, c.lists[STAR, z], sure):
                undecided = True
        if undecided:
            push(c, WAITING, v)
    open_facets(c)


@wp.func
def look_at(c: ComplexArrays, v: int, mark: int):
    """Once for each vertex on the cut."""
    if c.vertex_mark[v] != mark and is_on(c, v):
        c.vertex_mark[v] = mark
        push(c, LOOK, v)


@wp.func
def find_facets(c: ComplexArrays, v: int, t: int, sure: wp.float64) -> bool:
    """Mark facets of t with v that lie on the cut between its sides; whether one of them is undecided."""
    corners = c.corners[t]
    stroke = c.numbers[STROKE]
    on = int(c.on[corners[0]] == stroke) + int(c.on[corners[1]] == stroke)
    if on > 0:
        on += int(c.on[corners[2]] == stroke)
        if c.size == 4:
            on += int(c.on[corners[3]] == stroke)
    if on < c.size - 1:  # nearly always
        return False
    beyond = c.neighbours[t]
    undecided = bool(False)
    for k in range(c.size):
        n = beyond[k]
        if n >= 0 and corners[k] != v and ((c.opening[t] >> k) & 1) == 0:
            if all_on(c, corners, k):
                own = find_label(c, t, sure)
                other = find_label(c, n >> 2, sure)
                if own == 0 or other == 0:
                    undecided = True
                elif own != other:
                    set_opening(c, 4 * t + k, 1)
                    push(c, FACETS, 4 * t + k)
    return undecided


@wp.func
def open_facets(c: ComplexArrays):
    """Open the facets in FACETS that part their two simplices at a vertex.

    Others wait: on both sides of them would be a triangle with the same vertices.
    """
    mark = new_vertex_mark(c)
    c.lengths[ENDS] = 0
    for i in range(c.lengths[FACETS]):
        facet = c.lists[FACETS, i]
        corners = c.corners[facet >> 2]
        for k in range(c.size):
            v = corners[k]
            if k != (facet & 3) and c.vertex_mark[v] != mark:
                c.vertex_mark[v] = mark
                push(c, ENDS, v)
    separates = new_vertex_mark(c)
    c.lengths[SEPARATING] = 0
    for i in range(c.lengths[ENDS]):
        v = c.lists[ENDS, i]
        if falls_apart(c, v):
            c.vertex_mark[v] = separates
            push(c, SEPARATING, v)
            mark_parting(c, v)
    kept = int(0)
    for i in range(c.lengths[FACETS]):
        facet = c.lists[FACETS, i]
        corners = c.corners[facet >> 2]
        if ((c.opening[facet >> 2] >> (4 + (facet & 3))) & 1) == 1:
            c.lists[FACETS, kept] = facet
            kept += 1
        else:
            set_opening(c, facet, 0)
            for k in range(c.size):
                if k != (facet & 3):
                    push(c, WAITING, corners[k])
    c.numbers[PENDING] = c.lengths[FACETS] - kept
    c.lengths[FACETS] = kept
    bisect_chords(c, separates)
    c.lengths[STARS] = 0
    c.lengths[STAR_ENDS] = 0
    for i in range(c.lengths[SEPARATING]):
        find_star(c, c.lists[SEPARATING, i], STAR)
        for z in range(c.lengths[STAR]):
            push(c, STARS, c.lists[STAR, z])
        push(c, STAR_ENDS, c.lengths[STARS])
    c.fractions[0] = wp.float64(0.0)
    for i in range(c.lengths[STARS]):  # also facets that bisected chords have divided
        disconnect(c, c.lists[STARS, i])
    for i in range(c.lengths[FACETS]):
        disconnect(c, c.lists[FACETS, i] >> 2)
    begin = int(0)
    for i in range(c.lengths[STAR_ENDS]):
        end = c.lists[STAR_ENDS, i]
        split_vertex(c, c.lists[SEPARATING, i], begin, end)
        begin = end


@wp.func
def mark_parting(c: ComplexArrays, v: int):
    """Mark the opening facets at v, on both sides, whose two simplices are in different pieces of its star."""
    find_star(c, v, STAR)
    first = c.numbers[MARK]
    for z in range(c.lengths[STAR]):
        if c.mark[c.lists[STAR, z]] <= first:
            flood_around(c, c.lists[STAR, z], v, -1, new_mark(c))
    for z in range(c.lengths[STAR]):
        t = c.lists[STAR, z]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        for k in range(c.size):
            if corners[k] != v and ((c.opening[t] >> k) & 1) == 1:
                if c.mark[t] != c.mark[beyond[k] >> 2]:
                    c.opening[t] = c.opening[t] | (16 << k)


@wp.func
def bisect_chords(c: ComplexArrays, separates: int):
    """Bisect edges of opening facets that would be pinched; their middle then separates."""
    mark = new_mark(c)
    c.lengths[EDGES_P] = 0
    c.lengths[EDGES_Q] = 0
    c.lengths[EDGES_AT] = 0
    room = edge_room(c, c.lengths[FACETS])
    for i in range(c.lengths[FACETS]):
        facet = c.lists[FACETS, i]
        corners = c.corners[facet >> 2]
        for j in range(1, c.size):
            for k in range(j):
                if j != (facet & 3) and k != (facet & 3):
                    p = wp.min(corners[j], corners[k])
                    q = wp.max(corners[j], corners[k])
                    if is_new_edge(c, p, q, mark, room):
                        push(c, EDGES_P, p)
                        push(c, EDGES_Q, q)
                        push(c, EDGES_AT, facet >> 2)
    for i in range(c.lengths[EDGES_AT]):  # only now: a bisection gives facets other corners
        bisect_chord(c, c.lists[EDGES_P, i], c.lists[EDGES_Q, i], c.lists[EDGES_AT, i], separates)


@wp.func
def bisect_chord(c: ComplexArrays, p: int, q: int, guess: int, separates: int):
    """Bisect pq in the middle if it is pinched; children keep their labels. `guess`: a simplex that had the edge."""
    find_ring(c, p, q, guess)
    if c.lengths[RING] > 0:
        if is_pinched(c, p, q, c.vertex_mark[p] == separates, c.vertex_mark[q] == separates):
            m = bisect(c, p, q, wp.float64(0.5))
            if m >= 0:
                height = wp.float64(0.5) * (c.height[p][0] + c.height[q][0])
                normal = wp.normalize(c.normal[p] + c.normal[q])
                if wp.dot(normal, normal) == wp.float64(0.0):
                    normal = c.normal[p]
                put_on(c, m, normal, height)
                c.vertex_mark[m] = separates
                push(c, SEPARATING, m)
                c.numbers[CHORDS] = c.numbers[CHORDS] + 1


@wp.func
def disconnect(c: ComplexArrays, t: int):
    """Open the marked facets of a simplex, on both sides."""
    if (c.opening[t] & 15) != 0:
        change(c, t)
        beyond = c.neighbours[t]
        for k in range(c.size):
            n = beyond[k]
            if ((c.opening[t] >> k) & 1) == 1 and n >= 0:
                o = n >> 2
                change(c, o)
                behind = c.neighbours[o]
                behind[n & 3] = -1
                c.neighbours[o] = behind
                c.opening[o] = c.opening[o] & (255 - (17 << (n & 3)))
                c.wall[o] = c.wall[o] | (1 << (n & 3))
                c.wall[t] = c.wall[t] | (1 << k)
                beyond[k] = -1
                push(c, OPENED, 4 * t + k)
                push(c, OPENED, n)
                size = wp.length(facet_normal(c, t, k))
                if c.size == 4:
                    size = wp.float64(0.5) * size
                c.fractions[0] = c.fractions[0] + size
        c.neighbours[t] = beyond
        c.opening[t] = 0


@wp.func
def split_vertex(c: ComplexArrays, v: int, begin: int, end: int):
    """A copy of v for each piece of its star, STARS[begin:end], but the first."""
    mark = new_mark(c)
    keep_vertex(c, v)
    push(c, WAITING, v)
    own = int(v)
    for i in range(begin, end):
        t = c.lists[STARS, i]
        if c.mark[t] != mark:
            flood_around(c, t, v, -1, mark)
            if i > begin:
                own = add_vertex(c, v, v, wp.float64(0.0))
                if own >= 0:
                    c.side[own] = c.side[v]
                    put_on(c, own, c.normal[v], c.height[v][0])
                    c.height[own] = c.height[v]
                    push(c, WAITING, own)
                    c.numbers[SPLIT] = c.numbers[SPLIT] + 1
            if own >= 0:
                c.simplex_at[own] = t
                if own != v:
                    for z in range(c.lengths[FLOOD]):
                        u = c.lists[FLOOD, z]
                        change(c, u)
                        corners = c.corners[u]
                        corners[corner_of(c, u, v)] = own
                        c.corners[u] = corners

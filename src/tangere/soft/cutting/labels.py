"""On which side of the cut a simplex is.

Question: which simplices go to the one side of the blade, which to the other?
Method:   vertices are on the cut, or on a side of it. A simplex is where its vertices off the cut are; with all on the
          cut it goes with its neighbours, by the area they share. With vertices on both sides it is undecided: the
          blade is not through yet.
Sound:    sides of vertices and simplices are kept for the whole stroke once they are given: labels that changed later
          left bridges and crumbs.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import ON, STAR, STROKE, WAITING, ComplexArrays, keep, keep_vertex, push
from tangere.soft.cutting.primitives import facet_normal, find_star

wp.set_module_options(SOUND | {"max_unroll": 1})


@wp.func
def is_on(c: ComplexArrays, v: int) -> bool:
    """Whether the cut of this stroke goes through a vertex."""
    return c.on[v] == c.numbers[STROKE]


@wp.func
def put_on(c: ComplexArrays, v: int, normal: wp.vec3d, height: wp.float64):
    """The cut goes through v; the blade passed `height` below it, along `normal` [m]."""
    if not is_on(c, v):
        keep_vertex(c, v)
        c.on[v] = c.numbers[STROKE]
        c.normal[v] = normal
        c.height[v] = wp.vec2d(height, wp.dot(normal, c.rest[v]) - height)
        c.level[v] = 0
        c.near[v] = -1
        c.near_length[v] = wp.float64(wp.inf)
        push(c, ON, v)


@wp.func
def side_of_vertex(c: ComplexArrays, v: int) -> int:
    """1, -1, or 0 where this stroke does not know."""
    side = c.side[v]
    if (wp.abs(side) >> 1) != c.numbers[STROKE]:
        return 0
    return wp.sign(side)


@wp.func
def passed_side(c: ComplexArrays, v: int) -> int:
    """The same, 0 also where it is a guess."""
    side = c.side[v]
    if wp.abs(side) != 2 * c.numbers[STROKE]:
        return 0
    return wp.sign(side)


@wp.func
def known_label(c: ComplexArrays, t: int) -> int:
    """The side a simplex was given in this stroke, or 0."""
    label = c.label[t]
    if wp.abs(label) != c.numbers[STROKE]:
        return 0
    return wp.sign(label)


@wp.func
def forget_label(c: ComplexArrays, t: int):
    """Decide the side of a simplex anew."""
    keep(c, t)
    c.label[t] = 0


@wp.func
def label_anew(c: ComplexArrays, v: int):
    """A vertex was on the other side: what is at it is, too, or undecided; vertices on the cut there look again."""
    find_star(c, v, STAR)
    for z in range(c.lengths[STAR]):
        t = c.lists[STAR, z]
        if known_label(c, t) != 0:
            forget_label(c, t)
            corners = c.corners[t]
            for k in range(c.size):
                if is_on(c, corners[k]):
                    push(c, WAITING, corners[k])


@wp.func
def set_side(c: ComplexArrays, v: int, side: int, guess: int):
    """Remember the side of a vertex for this stroke: the blade passed an edge there (0), or it is a guess (1).

    What the blade has said is kept.
    """
    if passed_side(c, v) == 0:
        keep_vertex(c, v)
        if side_of_vertex(c, v) == -side:
            label_anew(c, v)
        c.side[v] = side * (2 * c.numbers[STROKE] + guess)
        c.seen_from[v] = -1


@wp.func
def see_from(c: ComplexArrays, v: int, on: int):
    """A vertex off the cut has the side it is seen on from a vertex on the cut, if it is the first of these."""
    if not is_on(c, v) and c.seen_from[v] < 0 and passed_side(c, v) != 0:
        keep_vertex(c, v)
        c.seen_from[v] = on


@wp.func
def all_on(c: ComplexArrays, corners: wp.vec4i, but: int) -> bool:
    """Whether all corners of a simplex but one are on the cut; -1: all."""
    found = bool(True)
    for k in range(c.size):
        if k != but and not is_on(c, corners[k]):
            found = False
    return found


@wp.func
def give_label(c: ComplexArrays, t: int, side: int):
    """Remember the side of a simplex for this stroke."""
    keep(c, t)
    c.label[t] = side * c.numbers[STROKE]


@wp.func
def side_by_vertices(c: ComplexArrays, t: int, sure: wp.float64) -> int:
    """Of a simplex that has a vertex off the cut; 0 if it has some on both sides, or doubtful ones; kept when known.

    A vertex of which the blade passed no edge is where it is over the cut at the other corners, if it is as high as
    `sure`: nearer the blade may still pass it.
    """
    known = known_label(c, t)
    if known != 0:
        return known
    corners = c.corners[t]
    side = int(0)
    both = bool(False)
    for k in range(c.size):
        v = corners[k]
        if not is_on(c, v):
            own = side_of_vertex(c, v)
            if own == 0:
                height = wp.float64(0.0)
                planes = wp.float64(0.0)
                for j in range(c.size):
                    w = corners[j]
                    if is_on(c, w):
                        height += wp.dot(c.normal[w], c.rest[v]) - c.height[w][1]
                        planes += wp.float64(1.0)
                if wp.abs(height) < sure * planes:
                    both = True
                else:
                    own = 1
                    if height < wp.float64(0.0):
                        own = -1
                    set_side(c, v, own, 1)
            if side != 0 and own != side:
                both = True
            side = own
    if both:
        return 0
    give_label(c, t, side)
    return side


@wp.func
def find_label(c: ComplexArrays, t: int, sure: wp.float64) -> int:
    """The side of a simplex, 1 or -1, kept from then on; 0 while it is undecided."""
    known = known_label(c, t)
    if known != 0:
        return known
    corners = c.corners[t]
    if not all_on(c, corners, -1):
        return side_by_vertices(c, t, sure)
    vote = wp.float64(0.0)
    undecided = bool(False)
    beyond = c.neighbours[t]
    for k in range(c.size):
        n = beyond[k]
        if n >= 0:
            o = n >> 2
            if known_label(c, o) != 0 or not all_on(c, c.corners[o], -1):
                own = side_by_vertices(c, o, sure)
                if own == 0:
                    undecided = True
                vote += wp.float64(own) * wp.length(facet_normal(c, t, k))
    if undecided:
        return 0
    if vote == wp.float64(0.0):
        for k in range(c.size):
            vote += c.height[corners[k]][0]
    side = int(1)
    if vote < wp.float64(0.0):
        side = -1
    give_label(c, t, side)
    return side

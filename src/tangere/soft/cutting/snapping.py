"""Crossed edges become vertices on the cut: ends that are near are snapped and moved onto it, other edges are bisected.

Question: how does the blade get vertices where it passed, without slivers?
Method:   an end within a part `snap` of the edge from the crossing is put on the cut, and moved there along the edge,
          where its simplices stay high enough and the surface keeps its shape. Other edges are bisected where they are
          crossed, unless a child would be flatter than the floor: then the nearer end is snapped after all. A vertex
          whose neighbours are all on the cut goes onto it, too: it would be a crumb of its own.
Sound:    bisection keeps volume, deformation gradients, energy and momentum; a moved vertex is moved inside its star,
          in flat skin along it, so that the volume is kept.
Known as: snapping before cutting (Nienhuys and van der Stappen 2001; Wu et al. 2015).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import (
    AROUND,
    CANDIDATES,
    CROSSED_BY,
    CROSSED_P,
    CROSSED_Q,
    CRUMBS,
    DROPPED,
    GUARDED,
    MOVED,
    ON,
    ON_BEFORE,
    RING,
    SNAPPED,
    STAR,
    STROKE,
    TURNED,
    ComplexArrays,
    CutOptions,
    change,
    keep_vertex,
    new_vertex_mark,
    push,
)
from tangere.soft.cutting.labels import forget_label, is_on, label_anew, passed_side, put_on, see_from, set_side
from tangere.soft.cutting.primitives import (
    FLAT,
    altitude_with,
    bisect,
    blend,
    facet_normal,
    find_ring,
    find_star,
    leaves_altitude,
)
from tangere.soft.cutting.swept_blade import SweptBlade, crossed_part, height_over, passed_by

wp.set_module_options(SOUND | {"max_unroll": 1})

#: The blade of the last step is within this part of the way from a vertex on the cut.
BEYOND = wp.constant(wp.float64(1.0e-3))


@wp.func
def turn_sides(c: ComplexArrays, blade: SweptBlade, count: int):
    """Vertices that the blade has passed once more since their side was seen, curving round, are on the other one."""
    mark = new_vertex_mark(c)
    stroke = c.numbers[STROKE]
    for i in range(c.lengths[CANDIDATES]):
        corners = c.corners[c.lists[CANDIDATES, i]]
        for k in range(c.size):
            v = corners[k]
            if c.vertex_mark[v] != mark:
                c.vertex_mark[v] = mark
                if c.on[v] != stroke and wp.abs(c.side[v]) == 2 * stroke and c.seen_from[v] >= 0:
                    if passed_by(c.rest[c.seen_from[v]], c.rest[v], blade, count, BEYOND) != 0:
                        keep_vertex(c, v)
                        c.side[v] = -c.side[v]
                        label_anew(c, v)
                        c.numbers[TURNED] = c.numbers[TURNED] + 1


@wp.func
def agree_on_sides(c: ComplexArrays):
    """Sides of the ends of crossed edges, where they are not known yet; crossings between ends of one side go."""
    kept = int(0)
    for i in range(c.lengths[CROSSED_P]):
        p = c.lists[CROSSED_P, i]
        q = c.lists[CROSSED_Q, i]
        by = c.lists[CROSSED_BY, i]
        of_p = passed_side(c, p)
        of_q = passed_side(c, q)
        if of_p == 0 and of_q == 0:
            of_p = wp.sign(by)
            of_q = -of_p
        elif of_p == 0:
            of_p = -of_q
        elif of_q == 0:
            of_q = -of_p
        set_side(c, p, of_p, 0)
        set_side(c, q, of_q, 0)
        if of_p != of_q:
            c.lists[CROSSED_P, kept] = p
            c.lists[CROSSED_Q, kept] = q
            c.lists[CROSSED_BY, kept] = wp.abs(by) - 1
            kept += 1
    c.numbers[DROPPED] = c.lengths[CROSSED_P] - kept
    c.lengths[CROSSED_P] = kept
    c.lengths[CROSSED_Q] = kept
    c.lengths[CROSSED_BY] = kept


@wp.func
def snap_ends(c: ComplexArrays, blade: SweptBlade, options: CutOptions):
    """Put near ends of crossed edges on the cut."""
    for i in range(c.lengths[CROSSED_P]):
        p = c.lists[CROSSED_P, i]
        q = c.lists[CROSSED_Q, i]
        w = c.lists[CROSSED_BY, i]
        s = crossed_part(c.rest[p], c.rest[q], blade, w)
        c.fractions[i] = s
        over_p = height_over(c.rest[p], blade, w)
        over_q = height_over(c.rest[q], blade, w)
        short = wp.length(c.rest[p] - c.rest[q]) < options.short_edge
        rest = wp.float64(1.0) - s
        if s < options.snap or wp.abs(over_p) < options.snap_height or (short and s <= rest):
            put_on(c, p, blade.normals[w], over_p)
            c.numbers[SNAPPED] = c.numbers[SNAPPED] + 1
        if rest < options.snap or wp.abs(over_q) < options.snap_height or (short and s > rest):
            put_on(c, q, blade.normals[w], over_q)
            c.numbers[SNAPPED] = c.numbers[SNAPPED] + 1


@wp.func
def move_snapped(c: ComplexArrays, options: CutOptions):
    """Move snapped vertices to the nearest crossing of one of their edges, where that does no harm."""
    for i in range(c.lengths[CROSSED_P]):
        for end in range(2):
            v = c.lists[CROSSED_P, i]
            part = c.fractions[i]
            if end == 1:
                v = c.lists[CROSSED_Q, i]
                part = wp.float64(1.0) - part
            if is_on(c, v) and part <= options.snap:
                length = part * wp.length(c.rest[c.lists[CROSSED_P, i]] - c.rest[c.lists[CROSSED_Q, i]])
                if length < c.near_length[v]:
                    c.near_length[v] = length
                    c.near[v] = i
    for n in range(c.numbers[ON_BEFORE], c.lengths[ON]):
        v = c.lists[ON, n]
        i = c.near[v]
        if i >= 0 and c.near_length[v] > wp.float64(0.0):
            other = c.lists[CROSSED_Q, i]
            part = c.fractions[i]
            if other == v:
                other = c.lists[CROSSED_P, i]
                part = wp.float64(1.0) - part
            if may_move(c, v, other, part, options):
                keep_vertex(c, v)
                c.rest[v] = (wp.float64(1.0) - part) * c.rest[v] + part * c.rest[other]
                c.height[v] = wp.vec2d(wp.float64(0.0), c.height[v][1])
                blend(c, v, v, other, part)
                c.numbers[MOVED] = c.numbers[MOVED] + 1
                for z in range(c.lengths[STAR]):
                    change(c, c.lists[STAR, z])


@wp.func
def may_move(c: ComplexArrays, v: int, other: int, part: wp.float64, options: CutOptions) -> bool:
    """Whether v can go a part of the way to another vertex: skin stays where it is, simplices high, edges short.

    Leaves the star of v in STAR.
    """
    find_star(c, v, STAR)
    to = (wp.float64(1.0) - part) * c.rest[v] + part * c.rest[other]
    plane = wp.vec3d()
    skin = bool(False)
    along = bool(False)
    fine = bool(True)
    z = int(0)
    while z < c.lengths[STAR] and fine:
        t = c.lists[STAR, z]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        lower = to
        upper = to
        for k in range(c.size):
            if corners[k] != v:
                lower = wp.min(lower, c.rest[corners[k]])
                upper = wp.max(upper, c.rest[corners[k]])
            if corners[k] != v and beyond[k] < 0:
                normal = wp.normalize(facet_normal(c, t, k))
                if not skin:
                    plane = normal
                    skin = True
                elif wp.length(wp.cross(normal, plane)) > FLAT or (c.size == 4 and wp.dot(normal, plane) < FLAT):
                    fine = False
                for j in range(c.size):
                    if j != k and corners[j] == other:
                        along = True
            if wp.length(to - c.rest[corners[k]]) > options.longest and corners[k] != v:
                fine = False
        if wp.length(upper - lower) > options.largest:
            fine = False
        floor = wp.min(options.least_moved, altitude_with(c, corners, -1, to))
        if altitude_with(c, corners, v, to) < floor:
            fine = False
        z += 1
    if skin and not along:
        fine = False
    if fine and c.size == 3:
        fine = stays_flat(c, v, to)
    return fine


@wp.func
def stays_flat(c: ComplexArrays, v: int, to: wp.vec3d) -> bool:
    """Whether the triangles of STAR are in one plane, and none turns over when v goes elsewhere."""
    fine = bool(True)
    plane = wp.vec3d()
    for z in range(c.lengths[STAR]):
        corners = c.corners[c.lists[STAR, z]]
        normal = wp.normalize(
            wp.cross(c.rest[corners[1]] - c.rest[corners[0]], c.rest[corners[2]] - c.rest[corners[0]])
        )
        if z == 0:
            plane = normal
        elif wp.length(wp.cross(normal, plane)) > FLAT or wp.dot(normal, plane) < FLAT:
            fine = False
        points = wp.mat33d()
        for k in range(3):
            point = c.rest[corners[k]]
            if corners[k] == v:
                point = to
            for axis in range(3):
                points[k, axis] = point[axis]
        if wp.dot(wp.cross(points[1] - points[0], points[2] - points[0]), plane) <= wp.float64(0.0):
            fine = False
    return fine


@wp.func
def bisect_crossed(c: ComplexArrays, blade: SweptBlade, options: CutOptions):
    """Bisect crossed edges that have no end on the cut."""
    for i in range(c.lengths[CROSSED_P]):
        p = c.lists[CROSSED_P, i]
        q = c.lists[CROSSED_Q, i]
        if not is_on(c, p) and not is_on(c, q):
            w = c.lists[CROSSED_BY, i]
            s = c.fractions[i]
            find_ring(c, p, q, -1)
            if c.lengths[RING] > 0:
                if leaves_altitude(c, p, q, s, options.least_altitude):
                    forget_ring(c)
                    m = bisect(c, p, q, s)
                    if m >= 0:
                        put_on(c, m, blade.normals[w], wp.float64(0.0))
                        see_from(c, p, m)
                        see_from(c, q, m)
                else:
                    nearer = p
                    if s > wp.float64(0.5):
                        nearer = q
                    put_on(c, nearer, blade.normals[w], height_over(c.rest[nearer], blade, w))
                    c.numbers[GUARDED] = c.numbers[GUARDED] + 1
        if is_on(c, p):
            see_from(c, q, p)
        if is_on(c, q):
            see_from(c, p, q)


@wp.func
def forget_ring(c: ComplexArrays):
    """What is bisected gets new labels."""
    for z in range(c.lengths[RING]):
        forget_label(c, c.lists[RING, z])


@wp.func
def take_crumbs(c: ComplexArrays):
    """Vertices whose neighbours are all on the cut go onto it."""
    mark = new_vertex_mark(c)
    n = int(c.numbers[ON_BEFORE])
    while n < c.lengths[ON]:
        here = c.lists[ON, n]
        find_star(c, here, STAR)
        c.lengths[AROUND] = 0
        for z in range(c.lengths[STAR]):
            corners = c.corners[c.lists[STAR, z]]
            for k in range(c.size):
                v = corners[k]
                if c.vertex_mark[v] != mark and not is_on(c, v):
                    c.vertex_mark[v] = mark
                    push(c, AROUND, v)
        for i in range(c.lengths[AROUND]):
            v = c.lists[AROUND, i]
            if is_crumb(c, v):
                put_on(c, v, c.normal[here], wp.dot(c.rest[v] - c.rest[here], c.normal[here]))
                forget_ring(c)
                c.numbers[CRUMBS] = c.numbers[CRUMBS] + 1
                mark = new_vertex_mark(c)  # it is now a neighbour on the cut
        n += 1


@wp.func
def is_crumb(c: ComplexArrays, v: int) -> bool:
    """Whether all neighbours of a vertex off the cut are on it; RING then has its star."""
    if not has_others_on(c, c.simplex_at[v], v):  # most are told by one simplex
        return False
    find_star(c, v, RING)
    only = bool(True)
    z = int(0)
    while z < c.lengths[RING] and only:
        only = has_others_on(c, c.lists[RING, z], v)
        z += 1
    return only


@wp.func
def has_others_on(c: ComplexArrays, t: int, v: int) -> bool:
    """Whether all corners of a simplex but v are on the cut."""
    corners = c.corners[t]
    found = bool(True)
    for k in range(c.size):
        if corners[k] != v and not is_on(c, corners[k]):
            found = False
    return found

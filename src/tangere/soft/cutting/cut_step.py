"""One step of the blade, and the end of its stroke: the order in which a complex is cut.

    candidates   simplices near the surface that the blade has swept
    crossings    edges through it, exactly; sides of their ends
    snap, move   near ends go onto the cut
    bisect       other crossed edges
    crumbs       what would be left alone beside the cut goes onto it
    open         facets between the sides, chords, copies of vertices

All of it is sequential and short, some microseconds for each simplex it touches: one thread.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import (
    FINE,
    ON,
    ON_BEFORE,
    RING,
    STAR,
    STATUS,
    UNDECIDED,
    ComplexArrays,
    CutOptions,
    begin_step,
)
from tangere.soft.cutting.labels import find_label, is_on, passed_side, put_on, set_side, side_of_vertex
from tangere.soft.cutting.opening import open_around
from tangere.soft.cutting.primitives import bisect, find_ring, find_star, leaves_altitude
from tangere.soft.cutting.snapping import (
    agree_on_sides,
    bisect_crossed,
    forget_ring,
    move_snapped,
    snap_ends,
    take_crumbs,
    turn_sides,
)
from tangere.soft.cutting.swept_blade import SweptBlade, find_candidates, find_crossings, lay_out

wp.set_module_options(SOUND | {"max_unroll": 1})


@wp.kernel
def cut(first: int, c: ComplexArrays, tree: wp.uint64, blade: SweptBlade, count: wp.array[int], options: CutOptions):
    """The blade goes on by one step (one thread); if STATUS is FULL then, undo it and give more room."""
    begin_step(c)
    lay_out(blade, count[0])
    find_candidates(c, tree, blade, count[0])
    find_crossings(c, blade, count[0])
    if c.numbers[STATUS] == FINE:
        turn_sides(c, blade, 2 * (count[0] - 1))
        agree_on_sides(c)
        snap_ends(c, blade, options)
        move_snapped(c, options)
        bisect_crossed(c, blade, options)
    if c.numbers[STATUS] == FINE:
        if options.snap > wp.float64(0.0):
            take_crumbs(c)
        open_around(c, c.numbers[ON_BEFORE], options.sure_height)


@wp.kernel
def end_stroke(first: int, c: ComplexArrays, guesses: wp.array[int], options: CutOptions):
    """The blade has left: what is still undecided behind it is decided (one thread).

    Args:
        guesses: how many simplices beyond those that the blade has reached may be divided by guessed sides.
    """
    begin_step(c)
    n = int(0)
    while n < c.lengths[ON] and c.numbers[STATUS] == FINE:
        v = c.lists[ON, n]
        find_star(c, v, STAR)
        z = int(0)
        while z < c.lengths[STAR]:
            if divide_undecided(c, c.lists[STAR, z], v, guesses[0], options):
                find_star(c, v, STAR)
                z = 0
            else:
                z += 1
            if c.numbers[STATUS] != FINE:
                z = c.lengths[STAR]
        n += 1
    if c.numbers[STATUS] == FINE:
        count_undecided(c)
        open_around(c, 0, wp.float64(0.0))


@wp.func
def divide_undecided(c: ComplexArrays, t: int, v: int, guesses: int, options: CutOptions) -> bool:
    """Bisect the edge of a simplex between both sides in the middle, if it is the only one; whether it was.

    Beyond what the blade has reached, sides are guesses; after some of them only edges are bisected that have nothing
    but vertices on the cut around them. Where a child would be too flat, an end of the edge goes onto the cut instead.
    """
    if find_label(c, t, wp.float64(0.0)) != 0:
        return False
    corners = c.corners[t]
    p = int(-1)
    q = int(-1)
    on = int(0)
    level = int(0)
    for k in range(c.size):
        if is_on(c, corners[k]):
            on += 1
            level = wp.max(level, c.level[corners[k]])
        elif side_of_vertex(c, corners[k]) > 0:
            p = corners[k]
        else:
            q = corners[k]
    if p < 0 or q < 0:
        return False
    if (passed_side(c, p) == 0) != (passed_side(c, q) == 0):
        # The blade knows the one, and passed nothing on the way to the other: that was a wrong guess.
        if passed_side(c, p) == 0:
            set_side(c, p, -1, 0)
        else:
            set_side(c, q, 1, 0)
        return True
    find_ring(c, p, q, -1)
    if on < c.size - 2 or level >= guesses:
        for z in range(c.lengths[RING]):
            around = c.corners[c.lists[RING, z]]
            for k in range(c.size):
                if around[k] != p and around[k] != q and not is_on(c, around[k]):
                    return False
    half = wp.float64(0.5)
    added = int(-1)
    if leaves_altitude(c, p, q, half, options.least_altitude):
        forget_ring(c)
        added = bisect(c, p, q, half)
        if added >= 0:
            put_on(c, added, c.normal[v], wp.float64(0.0))
    else:
        over_p = wp.dot(c.normal[v], c.rest[p]) - c.height[v][1]
        over_q = wp.dot(c.normal[v], c.rest[q]) - c.height[v][1]
        if wp.abs(over_q) < wp.abs(over_p):
            put_on(c, q, c.normal[v], over_q)
            added = q
        else:
            put_on(c, p, c.normal[v], over_p)
            added = p
    if added >= 0:
        c.level[added] = level + 1
    return True


@wp.func
def count_undecided(c: ComplexArrays):
    """UNDECIDED: corners on the cut of simplices that have vertices on both sides."""
    for n in range(c.lengths[ON]):
        find_star(c, c.lists[ON, n], STAR)
        for z in range(c.lengths[STAR]):
            if find_label(c, c.lists[STAR, z], wp.float64(0.0)) == 0:
                c.numbers[UNDECIDED] = c.numbers[UNDECIDED] + 1

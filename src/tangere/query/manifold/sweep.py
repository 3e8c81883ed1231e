"""All places where a body rests on the ground: the local maxima of the vertical penetration, and what stands with them.

Method: penetration at (x, y) is ground height less the body's lower side there. The ground is piecewise linear, the
        lower side convex, so a maximum lies inside a face (at the body's deepest point along the face's normal), on
        a convex edge (`ridges`), or at a vertex (from the body's vertical column there). Each has one normal N, and
        its depth is penetration * N_z. Lifting the body by the largest penetration frees it, so no depth is larger:
        the filter of specs/strashnov-cylinder-terrain 8.4 holds by construction.
        Planar blocks of any size are one face. An edge or vertex counts only if its normal fits between the faces
        around it: over seams of coplanar cells there are face normals only.
        Points with a gap up to the margin count as well: a body at rest keeps its four points when it rocks.
Sound:  a cylinder that touches (exact test of 9.1) never goes without: if rounding has hidden every maximum, one
        vertical touch is made by lifting it until it is free.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bound.terrain import (
    CONVEX_VERTEX,
    CONVEX_X,
    GAP,
    PLANAR,
    NodeStack,
    Terrain,
    cell_window,
    height_at,
    node_bounds,
    node_column,
    node_flags,
    node_heights,
    node_key,
    node_level,
    node_row,
    start_level,
)
from tangere.query.intersection.cylinder_terrain import cylinder_touches, upright_cylinder
from tangere.query.manifold.clearing import clear_of
from tangere.query.manifold.groups import KEPT, Groups, Touch, add_touch, clear_groups
from tangere.query.manifold.owners import Owner, has_ground, has_ground_beside, owner, to_neighbour
from tangere.query.manifold.ridges import crossing_of
from tangere.query.manifold.supports import FLAT_ANGLE, support_point_of
from tangere.query.manifold.walls import STEEP, WALLS, Walls, add_wall, clear_walls, wall_before
from tangere.runtime import SOUND
from tangere.shape.analytic import CYLINDER
from tangere.shape.analytic_body import Body, Hulls, bounds_of, reach_of, support_of
from tangere.shape.analytic_column import column_of

wp.set_module_options(SOUND)

__all__ = ["BODY_ON_EDGE", "BODY_ON_FACE", "BODY_ON_VERTEX", "LIFTED", "Place", "sweep_of"]

real = wp.float64
vec = wp.vec3d

#: What meets, in the lowest two bits of a touch's code; the rest is the number of the body's point.
BODY_ON_FACE = wp.constant(0)
BODY_ON_EDGE = wp.constant(1)
BODY_ON_VERTEX = wp.constant(2)
LIFTED = wp.constant(3)

#: Edges whose bit is set, and vertices.
_CONVEX = wp.constant(30)
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TINY = wp.constant(real(1.0e-9))
_FAR = wp.constant(real(1.0e300))
_HALVINGS = wp.constant(60)


@wp.struct
class Place:
    """Where a body is over its terrain, and how near counts."""

    centre: wp.vec3d  #: the body's origin, relative to the terrain's
    slot: wp.int32  #: its room in groups and walls
    margin: wp.float64  #: gaps up to this count [m]
    slack: wp.float64  #: how far a point may be beyond its face: faces bent by less than the flatness have no edge [m]
    filtered: wp.int32  #: 1 where touches behind a wall are left out


@cache
def sweep_of(kind: int) -> wp.Function:
    """`sweep(t, body, hulls, place, groups, walls)`: fills the groups of `place.slot`; for one kind of body."""
    bounds_function, column, support, reach = bounds_of(kind), column_of(kind), support_of(kind), reach_of(kind)
    point, point_count = support_point_of(kind)
    crossing, crossing_count = crossing_of(kind)
    is_clear, lift = clear_of(kind), _lift_cylinder if kind == CYLINDER else _lift_nothing

    @wp.func
    def visit_face(
        body: Body,
        hulls: Hulls,
        place: Place,
        groups: Groups,
        walls: Walls,
        corner: vec,
        n: vec,
        low: vec,
        high: vec,
        part: int,
        feature: int,
    ):
        """A face with normal n through `corner`, over the rectangle from `low` to `high`; or its triangle 0 or 1."""
        height = wp.dot(corner, n)
        most = height + reach(body, hulls, -n)
        if most < -place.margin:
            return
        deepest = support(body, hulls, -n)
        slack = place.slack
        for k in range(point_count(body, hulls, n)):
            p = point(body, hulls, n, k)
            if p[0] < low[0] - slack or p[0] > high[0] + slack or p[1] < low[1] - slack or p[1] > high[1] + slack:
                continue
            depth = height - wp.dot(p, n)
            if depth < -place.margin or most - depth > FLAT_ANGLE * wp.length(p - deepest) + slack:
                continue
            if part < 2:
                across = (p[0] - low[0]) / (high[0] - low[0]) + (p[1] - low[1]) / (high[1] - low[1])
                over = slack / wp.min(high[0] - low[0], high[1] - low[1])
                if (part == 0 and across > _ONE + over) or (part == 1 and across < _ONE - over):
                    continue
            touch = Touch()
            touch.point = p
            touch.normal = n
            touch.depth = depth
            touch.code = BODY_ON_FACE + 4 * k
            touch.feature = feature
            offer(place, groups, walls, touch)
        if n[2] < STEEP and place.filtered == 0 and most > _ZERO and height < _ZERO:
            visit_wall(place, walls, deepest, most, n, low, high, feature)

    @wp.func
    def visit_vertex(t: Terrain, body: Body, hulls: Hulls, place: Place, groups: Groups, walls: Walls, here: Owner):
        q = here.vertex
        under = column(body, hulls, q[0], q[1])
        if under.low > under.high or under.normal[2] <= _TINY:
            return
        n = under.normal
        depth = (q[2] - under.low) * n[2]
        if depth < -place.margin:
            return
        for k in range(6):
            # Round the vertex: right, up, up-left, left, down, down-right.
            di = wp.where(k == 1 or k == 2, 1, wp.where(k == 4 or k == 5, -1, 0))
            dj = wp.where(k == 0 or k == 5, 1, wp.where(k == 2 or k == 3, -1, 0))
            if wp.dot(n, to_neighbour(t.heights, here, di, dj)) > here.tolerance:
                if has_ground_beside(t, here.row, here.column, k):
                    return
        touch = Touch()
        touch.point = vec(q[0], q[1], under.low)
        touch.normal = n
        touch.depth = depth
        touch.code = BODY_ON_VERTEX
        touch.feature = here.number
        offer(place, groups, walls, touch)

    @wp.func
    def visit_edge(
        t: Terrain, body: Body, hulls: Hulls, place: Place, groups: Groups, walls: Walls, here: Owner, family: int
    ):
        """The edge along x, along y, or the diagonal of the cell."""
        a = vec()
        if family == 2:
            a = to_neighbour(t.heights, here, 1, 0)
        d = to_neighbour(t.heights, here, wp.where(family == 1, 1, 0), wp.where(family == 1, 0, 1)) - a
        # Opposite vertices: of the triangle in the edge's own cell, and of the one beyond.
        one = to_neighbour(t.heights, here, wp.where(family == 0, 1, 0), wp.where(family == 1, 1, 0)) - a
        two = to_neighbour(t.heights, here, wp.where(family == 0, -1, 1), wp.where(family == 1, -1, 1)) - a
        a = a + here.vertex
        for k in range(crossing_count(hulls)):
            at = crossing(body, hulls, a, d, k)
            if not at.found:
                continue
            n = at.normal
            depth = (a[2] + at.along * d[2] - at.point[2]) * n[2]
            if depth < -place.margin:
                continue
            if wp.dot(n, one) > here.tolerance:
                if has_ground(t, here.row, here.column):
                    continue
            if wp.dot(n, two) > here.tolerance:
                if has_ground(t, here.row - wp.where(family == 0, 1, 0), here.column - wp.where(family == 1, 1, 0)):
                    continue
            touch = Touch()
            touch.point = at.point
            touch.normal = n
            touch.depth = depth
            touch.code = BODY_ON_EDGE + 4 * k
            touch.feature = 3 * here.number + family
            offer(place, groups, walls, touch)

    @wp.func
    def visit_owner(t: Terrain, body: Body, hulls: Hulls, place: Place, groups: Groups, walls: Walls, i: int, j: int):
        flags = node_flags(t, 0, i, j)
        if (flags & _CONVEX) == 0:
            return
        here = owner(t, place.centre, i, j)
        if (flags & CONVEX_VERTEX) != 0:
            visit_vertex(t, body, hulls, place, groups, walls, here)
        family = int(0)
        while family < 3:  # not a range, which would be unrolled: what is called from one place only is inlined
            if (flags & (CONVEX_X << family)) != 0:
                visit_edge(t, body, hulls, place, groups, walls, here, family)
            family += 1

    @wp.func
    def traverse(t: Terrain, body: Body, hulls: Hulls, place: Place, groups: Groups, walls: Walls):
        near = place.margin + place.slack
        box = bounds_function(body, hulls)
        lower = box.lower - vec(near, near, near)
        upper = box.upper + vec(near, near, near)
        window = cell_window(t, place.centre + lower, place.centre + upper)
        if window[0] > window[1] or window[2] > window[3]:
            return
        stack = NodeStack()
        count = int(0)
        level = start_level(t, window)
        for i in range(window[0] >> level, (window[1] >> level) + 1):
            for j in range(window[2] >> level, (window[3] >> level) + 1):
                stack[count] = node_key(level, i, j)
                count += 1
        grown_body = upright_cylinder(vec(), body.axis, body.radius + near, body.reach + near)
        while count > 0:
            count -= 1
            key = stack[count]
            level = node_level(key)
            row = node_row(key)
            col = node_column(key)
            top = real(node_bounds(t, level, row, col)[1]) - place.centre[2]
            if top < lower[2]:
                continue
            size = 1 << level
            x0 = real(col << level) * t.dx - place.centre[0]
            y0 = real(row << level) * t.dy - place.centre[1]
            x1 = x0 + real(size) * t.dx
            y1 = y0 + real(size) * t.dy
            if is_clear(body, hulls, grown_body, near, x0, x1, y0, y1, top):
                continue
            flags = node_flags(t, level, row, col)
            if (flags & PLANAR) == 0 and level > 0:
                down = level - 1
                for q in range(4):
                    i = 2 * row + (q >> 1)
                    j = 2 * col + (q & 1)
                    if (i << down) <= window[1] and ((i + 1) << down) > window[0]:
                        if (j << down) <= window[3] and ((j + 1) << down) > window[2]:
                            stack[count] = node_key(down, i, j)
                            count += 1
                continue
            i = row << level
            j = col << level
            if (flags & GAP) == 0:
                h = node_heights(t, level, row, col)
                z = place.centre[2]
                low = vec(x0, y0, wp.min(wp.min(h[0], h[1]), wp.min(h[2], h[3])) - z)
                high = vec(x1, y1, wp.max(wp.max(h[0], h[1]), wp.max(h[2], h[3])) - z)
                wide = x1 - x0
                deep = y1 - y0
                number = 2 * (i * t.columns + j)
                n = wp.normalize(vec(deep * (h[0] - h[1]), wide * (h[0] - h[2]), wide * deep))
                corner = vec(x0, y0, h[0] - z)
                part = wp.where((flags & PLANAR) != 0, 2, 0)
                last = wp.max(part, 1)
                while part <= last:
                    if part == 1:
                        n = wp.normalize(vec(deep * (h[2] - h[3]), wide * (h[1] - h[3]), wide * deep))
                        corner = vec(x1, y1, h[3] - z)
                    visit_face(body, hulls, place, groups, walls, corner, n, low, high, part, number + (part & 1))
                    part += 1
            if (flags & _CONVEX) != 0:
                # Creases of planar ground are on its border: its first row, then the rest of its first column.
                left = wp.max(j, window[2])
                in_row = wp.where(i >= window[0], wp.min(j + size - 1, window[3]) + 1 - left, 0)
                low_end = wp.max(i + 1, window[0])
                in_column = wp.where(j >= window[2], wp.min(i + size - 1, window[1]) + 1 - low_end, 0)
                for k in range(in_row + wp.max(in_column, 0)):
                    r = wp.where(k < in_row, i, low_end + k - in_row)
                    c = wp.where(k < in_row, left + k, j)
                    visit_owner(t, body, hulls, place, groups, walls, r, c)

    @wp.func
    def sweep(t: Terrain, body: Body, hulls: Hulls, place: Place, groups: Groups, walls: Walls):
        slot = place.slot
        clear_walls(walls, slot)
        turn = int(0)
        while turn < 2:
            # What a wall stands for must not hide what it does not: where there is such, all over again without it.
            if turn == 0 or is_any_behind(groups, walls, place):
                place.filtered = turn
                clear_groups(groups, slot)
                traverse(t, body, hulls, place, groups, walls)
            turn += 1
        if place.filtered != 0:
            for w in range(walls.count[slot]):
                if walls.used[slot * WALLS + w] != 0:
                    add_touch(groups, slot, walls.kept[slot * WALLS + w])
        if deepest_kept(groups, slot) < _ZERO:
            up = lift(t, body, place)
            if up >= _ZERO:
                touch = Touch()
                touch.point = support(body, hulls, vec(_ZERO, _ZERO, -_ONE))
                touch.normal = vec(_ZERO, _ZERO, _ONE)
                touch.depth = up
                touch.code = LIFTED
                add_touch(groups, slot, touch)

    return sweep


@wp.func
def offer(place: Place, groups: Groups, walls: Walls, touch: Touch):
    """Add a touch, or let the wall it is behind stand for it."""
    if place.filtered != 0:
        wall = wall_before(walls, place.slot, touch, place.slack)
        if wall >= 0:
            walls.used[place.slot * WALLS + wall] = 1
            return
    add_touch(groups, place.slot, touch)


@wp.func
def visit_wall(place: Place, walls: Walls, deepest: vec, depth: real, n: vec, low: vec, high: vec, feature: int):
    """Keep a steep face as a wall if the foot of the deepest point is on it, or below it by its height at most."""
    foot = deepest + depth * n
    if foot[2] > high[2] + place.slack or foot[2] < low[2] + low[2] - high[2] - place.slack:
        return
    level = wp.normalize(vec(-n[1], n[0], _ZERO))
    middle = _HALF * (low + high)
    half = _HALF * (high - low)
    reach = wp.abs(level[0]) * half[0] + wp.abs(level[1]) * half[1]
    if wp.abs(wp.dot(level, foot - middle)) > reach + place.slack:
        return
    touch = Touch()
    touch.point = deepest
    touch.normal = n
    touch.depth = depth
    touch.code = BODY_ON_FACE
    touch.feature = feature
    add_wall(walls, place.slot, touch, place.slack)


@wp.func
def is_any_behind(groups: Groups, walls: Walls, place: Place) -> bool:
    """Whether a wall stands for a touch that was kept."""
    if walls.count[place.slot] == 0:
        return False
    for g in range(wp.min(groups.count[place.slot], groups.room)):
        at = (place.slot * groups.room + g) * KEPT
        for k in range(KEPT):
            if wall_before(walls, place.slot, groups.kept[at + k], place.slack) >= 0:
                return True
    return groups.count[place.slot] > groups.room


@wp.func
def deepest_kept(groups: Groups, slot: int) -> real:
    deepest = -_FAR
    for g in range(wp.min(groups.count[slot], groups.room)):
        deepest = wp.max(deepest, groups.kept[(slot * groups.room + g) * KEPT].depth)
    return deepest


@wp.func
def _lift_nothing(t: Terrain, body: Body, place: Place) -> real:
    return -_ONE


@wp.func
def is_in_ground(t: Terrain, body: Body, centre: vec) -> bool:
    if cylinder_touches(t, upright_cylinder(centre, body.axis, body.radius, body.reach)):
        return True
    return height_at(t, centre[0], centre[1]) > centre[2]


@wp.func
def _lift_cylinder(t: Terrain, body: Body, place: Place) -> real:
    """How far up a cylinder must go to be free; -1 if it is."""
    if not is_in_ground(t, body, place.centre):
        return -_ONE
    low = _ZERO + _ZERO
    high = real(node_bounds(t, t.root, 0, 0)[1]) - place.centre[2] + body.radius + body.reach
    for _ in range(_HALVINGS):
        middle = _HALF * (low + high)
        if is_in_ground(t, body, place.centre + vec(_ZERO, _ZERO, middle)):
            low = middle
        else:
            high = middle
    return high

"""Where points of the world are in the rest shape of a solid that is cut, found near where they were.

Question: as `cutting.rest_map`, of a blade that goes on: which tetrahedron has each of its points now?
Method:   from the tetrahedron that had the point before, a walk goes through the facet that the point is furthest
          beyond. Where it ends at the surface, a corner there that is near, or else the nearest surface vertex of all,
          tells where the point would be at rest, and all tetrahedra there are asked. A point that none of them has is
          outside, and goes with that vertex, turned as the body is turned there.
Known as: visibility walk (Devillers et al. 2002).
The kernel runs on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.cutting.cut_surface import VERTICES, SurfaceStore

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Tetrahedra of a walk, at most.
_LONGEST = wp.constant(256)
#: Weights may be negative by this much where a point lies between two tetrahedra.
_ROUNDING = wp.constant(wp.float64(1.0e-9))
#: What was found of a point: a tetrahedron, nothing near it, or nothing, though it is far from the surface.
INSIDE, BESIDE, UNSURE = (wp.constant(k) for k in range(3))


@wp.func
def weights_now(c: ComplexArrays, row_of: wp.array[int], x: wp.array[wp.vec3d], t: int, point: wp.vec3d) -> wp.vec4d:
    """Of the corners of a tetrahedron where it is, for a point; none where it is flat."""
    corners = c.corners[t]
    o = x[row_of[corners[0]]]
    a = x[row_of[corners[1]]] - o
    b = x[row_of[corners[2]]] - o
    d = x[row_of[corners[3]]] - o
    p = point - o
    volume = wp.dot(a, wp.cross(b, d))
    if volume == wp.float64(0.0):
        return wp.vec4d(wp.float64(-1.0), wp.float64(-1.0), wp.float64(-1.0), wp.float64(-1.0))
    one = wp.dot(p, wp.cross(b, d)) / volume
    two = wp.dot(a, wp.cross(p, d)) / volume
    three = wp.dot(a, wp.cross(b, p)) / volume
    return wp.vec4d(wp.float64(1.0) - one - two - three, one, two, three)


@wp.func
def least(w: wp.vec4d) -> wp.float64:
    return wp.min(wp.min(w[0], w[1]), wp.min(w[2], w[3]))


@wp.func
def at_rest(c: ComplexArrays, t: int, w: wp.vec4d) -> wp.vec3d:
    corners = c.corners[t]
    return w[0] * c.rest[corners[0]] + w[1] * c.rest[corners[1]] + w[2] * c.rest[corners[2]] + w[3] * c.rest[corners[3]]


@wp.func
def walk(c: ComplexArrays, row_of: wp.array[int], x: wp.array[wp.vec3d], begin: int, point: wp.vec3d) -> int:
    """The tetrahedron that has a point, from another one; where the way leaves the body, -1 - the facet there."""
    t = int(begin)
    for _ in range(_LONGEST):
        w = weights_now(c, row_of, x, t, point)
        if least(w) >= -_ROUNDING:
            return t
        out = int(0)
        for k in range(1, 4):
            if w[k] < w[out]:
                out = k
        beyond = c.neighbours[t][out]
        if beyond < 0:
            return -1 - (4 * t + out)
        t = beyond >> 2
    return -1 - 4 * begin


@wp.func
def nearest_name(
    c: ComplexArrays, s: SurfaceStore, row_of: wp.array[int], x: wp.array[wp.vec3d], part: int, point: wp.vec3d
) -> int:
    """The surface vertex of a part that is nearest."""
    found = int(-1)
    best = wp.float64(1.0e300)
    for name in range(s.numbers[VERTICES]):
        dof = s.store[s.dofs + name]
        if dof >= 0:
            way = x[row_of[dof]] - point
            length = wp.dot(way, way)
            if length < best:
                if c.part[s.store[s.owners + s.store[s.places + name] / 3] >> 2] == part:
                    best = length
                    found = name
    return found


@wp.func
def turn_at(c: ComplexArrays, row_of: wp.array[int], x: wp.array[wp.vec3d], first: int, v: int) -> wp.mat33d:
    """How the tetrahedra around a vertex are turned: the rotation of the mean of their maps."""
    total = wp.mat33d()
    t = int(first)
    out = int(-1)
    for _ in range(24):  # some of them, from facet to facet
        corners = c.corners[t]
        o = c.rest[corners[0]]
        rest = wp.matrix_from_cols(c.rest[corners[1]] - o, c.rest[corners[2]] - o, c.rest[corners[3]] - o)
        o = x[row_of[corners[0]]]
        now = wp.matrix_from_cols(x[row_of[corners[1]]] - o, x[row_of[corners[2]]] - o, x[row_of[corners[3]]] - o)
        total += now * wp.inverse(rest)
        beyond = int(-1)
        for k in range(4):
            if corners[k] != v and k != out and c.neighbours[t][k] >= 0 and beyond < 0:
                beyond = c.neighbours[t][k]
        if beyond >= 0:
            t = beyond >> 2
            out = beyond & 3
    u = wp.mat33d()
    sigma = wp.vec3d()
    w = wp.mat33d()
    wp.svd3(total, u, sigma, w)
    turn = u * wp.transpose(w)
    if wp.determinant(turn) < wp.float64(0.0):
        for k in range(3):
            u[k, 2] = -u[k, 2]
        turn = u * wp.transpose(w)
    return turn


@wp.kernel
def find_at_rest(
    first: int,
    counts: wp.array[int],
    c: ComplexArrays,
    s: SurfaceStore,
    tree: wp.uint64,
    edge: wp.float64,
    row_of: wp.array[int],
    x: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    seeds: wp.array[int],
    rest: wp.array[wp.vec3d],
    kinds: wp.array[int],
):
    """So many points in a part (one thread); `seeds`: a tetrahedron near each, or -1, and then the one that has it, or
    one where the body ends near it."""
    part = counts[1]
    for i in range(counts[0]):
        point = points[i]
        t = int(-1)
        anchor = int(-1)
        near = int(-1)
        if seeds[i] >= 0:
            if c.part[seeds[i]] == part:
                t = walk(c, row_of, x, seeds[i], point)
                if t < 0:  # one of the corners where the way left the body, if it is near
                    near = (-1 - t) >> 2
                    best = edge * edge
                    for k in range(4):
                        if k != ((-1 - t) & 3):
                            way = x[row_of[c.corners[near][k]]] - point
                            if wp.dot(way, way) < best:
                                best = wp.dot(way, way)
                                anchor = c.corners[near][k]
                    t = -1
        kinds[i] = INSIDE
        if t < 0:
            kinds[i] = BESIDE
            if anchor < 0:
                name = nearest_name(c, s, row_of, x, part, point)
                anchor = s.store[s.dofs + name]
                near = s.store[s.owners + s.store[s.places + name] / 3] >> 2
            away = point - x[row_of[anchor]]
            guess = c.rest[anchor] + wp.transpose(turn_at(c, row_of, x, near, anchor)) * away
            best = -_ROUNDING
            reach = wp.float64(1.5) * edge
            lower = wp.vec3(float(guess[0] - reach), float(guess[1] - reach), float(guess[2] - reach))
            upper = wp.vec3(float(guess[0] + reach), float(guess[1] + reach), float(guess[2] + reach))
            query = wp.bvh_query_aabb(tree, lower, upper)
            ancestor = int(0)
            while wp.bvh_query_next(query, ancestor):
                at = int(ancestor)
                while at >= 0:
                    if c.part[at] == part:
                        inside = least(weights_now(c, row_of, x, at, point))
                        if inside >= best:
                            best = inside
                            t = at
                    at = c.next[at]
            seeds[i] = near
            if t < 0:
                rest[i] = guess
                if wp.length(away) > wp.float64(2.0) * edge:
                    kinds[i] = UNSURE
        if t >= 0:
            kinds[i] = INSIDE
            rest[i] = at_rest(c, t, weights_now(c, row_of, x, t, point))
            seeds[i] = t

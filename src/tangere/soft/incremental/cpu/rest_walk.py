"""Where points of the world are in the rest shape of a solid that is cut, found near where they were.

Question: as `cutting.rest_map`, of a blade that goes on: which tetrahedron has each of its points now?
Method:   from the tetrahedron that had the point before, a walk goes through the facet that the point is furthest
          beyond. Where it ends at the surface, a corner there that is near, or else the nearest surface vertex of all,
          tells where the point would be at rest, and all tetrahedra there are asked. A point that none of them has is
          outside, and goes with that vertex, turned as the body is turned there; if it is far from all vertices, a ray
          from there, which crosses the surface an even number of times, has to say so too.
Known as: visibility walk (Devillers et al. 2002); branch and bound; ray parity.
The kernels run on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import MovingBox, TreeArrays
from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.cutting.cut_surface import SurfaceStore
from tangere.soft.incremental.cpu.face_update import FaceRoom

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Tetrahedra of a walk, at most.
_LONGEST = wp.constant(256)
#: Weights may be negative by this much where a point lies between two tetrahedra.
_ROUNDING = wp.constant(wp.float64(1.0e-9))
#: Codes of boxes beyond this are of what is nowhere.
_LARGEST_CODE = wp.constant(0x3FBFFFFF)
#: What was found of a point: a tetrahedron, nothing near it, nothing, though it is inside the body, and nothing yet.
INSIDE, BESIDE, UNSURE, LOST = (wp.constant(k) for k in range(4))


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
def number_of(code: int) -> wp.float64:
    """The number, in the frame of boxes, that `code_below` has made a code of, or one that is a little less."""
    if code < 0:
        return -wp.float64(wp.cast(2 * wp.min(-code, _LARGEST_CODE), wp.float32))
    return wp.float64(wp.cast(2 * wp.min(code, _LARGEST_CODE), wp.float32))


@wp.func
def shortest_to(box: MovingBox, p: wp.vec3d) -> wp.float64:
    """What is in a box is at least so far away from a point, squared; both in the frame of boxes."""
    total = wp.float64(0.0)
    for k in range(3):
        below = number_of(wp.min(box[k], box[6 + k])) - p[k]
        above = p[k] + number_of(wp.min(box[3 + k], box[9 + k]))
        away = wp.max(wp.float64(0.0), wp.max(below, above))
        total += away * away
    return total


@wp.func
def nearest_name(
    s: SurfaceStore,
    r: FaceRoom,
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    row_of: wp.array[int],
    x: wp.array[wp.vec3d],
    body: int,
    point: wp.vec3d,
    origin: wp.vec3d,
    scale: wp.float64,
    inset: wp.float64,
    hint: int,
) -> int:
    """The surface vertex of a body whose dof is nearest; of several as near the first. -1: it has none.

    Args:
        inset: surface vertices are at most so far away from their dofs [m].
        hint: one that may be near, or -1.
    """
    found = int(hint)
    best = wp.float64(1.0e300)
    if hint >= 0:
        best = wp.length_sq(x[row_of[s.store[s.dofs + hint]]] - point)
    framed = scale * (point - origin)
    node = int(0)
    while node < tree.skip.shape[0]:
        reach = scale * (wp.sqrt(best) + inset)
        # A little less than that: boxes, and the point among them, are rounded.
        if wp.float64(1.0 - 1.0e-9) * shortest_to(nodes[node], framed) > reach * reach:
            node = tree.skip[node]
        elif tree.cluster[node] < 0:
            node += 1
        else:
            for j in range(tree.first[node], tree.last[node] + 1):
                f = tree.order[j]
                if r.body[r.faces[3 * f]] == body:
                    for k in range(3):
                        name = s.store[s.corners + 3 * r.slot_of[f] + k]
                        length = wp.length_sq(x[row_of[s.store[s.dofs + name]]] - point)
                        if length < best or (length == best and name < found):
                            best = length
                            found = name
            node = tree.skip[node]
    return found


@wp.func
def is_crossed(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, p: wp.vec3d) -> bool:
    """Whether a ray from p along the first axis crosses a face; of faces side by side it crosses one."""
    crossed = bool(False)
    for k in range(3):
        u = a
        v = b
        if k == 1:
            u = b
            v = c
        if k == 2:
            u = c
            v = a
        if (u[2] > p[2]) != (v[2] > p[2]):
            if u[2] > v[2]:  # the same way for both faces at an edge
                w = u
                u = v
                v = w
            if (u[1] - p[1]) * (v[2] - p[2]) - (v[1] - p[1]) * (u[2] - p[2]) > wp.float64(0.0):
                crossed = not crossed
    if not crossed:
        return False
    normal = wp.cross(b - a, c - a)
    height = wp.dot(normal, a - p)
    return (height > wp.float64(0.0)) == (normal[0] > wp.float64(0.0))


@wp.func
def is_enclosed(
    r: FaceRoom,
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    here: wp.array[wp.vec3d],
    body: int,
    point: wp.vec3d,
    origin: wp.vec3d,
    scale: wp.float64,
) -> bool:
    """Whether a point far from a body's surface is inside: a ray from there crosses it an odd number of times."""
    inside = bool(False)
    framed = scale * (point - origin)
    node = int(0)
    while node < tree.skip.shape[0]:
        box = nodes[node]
        missed = -number_of(wp.min(box[3], box[9])) < framed[0]
        for k in range(1, 3):
            if (
                number_of(wp.min(box[k], box[6 + k])) > framed[k]
                or -number_of(wp.min(box[3 + k], box[9 + k])) < framed[k]
            ):
                missed = True
        if missed:
            node = tree.skip[node]
        elif tree.cluster[node] < 0:
            node += 1
        else:
            for j in range(tree.first[node], tree.last[node] + 1):
                f = tree.order[j]
                if r.body[r.faces[3 * f]] == body:
                    a = here[r.faces[3 * f]]
                    if is_crossed(a, here[r.faces[3 * f + 1]], here[r.faces[3 * f + 2]], point):
                        inside = not inside
            node = tree.skip[node]
    return inside


@wp.func
def rotation_of(map: wp.mat33d) -> wp.mat33d:
    """The rotation that is nearest to a map."""
    u = wp.mat33d()
    sigma = wp.vec3d()
    w = wp.mat33d()
    wp.svd3(map, u, sigma, w)
    turn = u * wp.transpose(w)
    if wp.determinant(turn) < wp.float64(0.0):
        for k in range(3):
            u[k, 2] = -u[k, 2]
        turn = u * wp.transpose(w)
    return turn


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
    return rotation_of(total)


@wp.func
def find_beside(
    i: int,
    near: int,
    anchor: int,
    part: int,
    c: ComplexArrays,
    tree: wp.uint64,
    edge: wp.float64,
    row_of: wp.array[int],
    x: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    seeds: wp.array[int],
    rest: wp.array[wp.vec3d],
    kinds: wp.array[int],
):
    """A point as seen from a vertex: the tetrahedron there that has it, or BESIDE; UNSURE where that is far away."""
    point = points[i]
    away = point - x[row_of[anchor]]
    guess = c.rest[anchor] + wp.transpose(turn_at(c, row_of, x, near, anchor)) * away
    t = int(-1)
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
    if t >= 0:
        kinds[i] = INSIDE
        rest[i] = at_rest(c, t, weights_now(c, row_of, x, t, point))
        seeds[i] = t
    else:
        rest[i] = guess
        seeds[i] = near
        kinds[i] = BESIDE
        if wp.length(away) > wp.float64(2.0) * edge:
            kinds[i] = UNSURE


@wp.kernel
def find_at_rest(
    first: int,
    counts: wp.array[int],
    c: ComplexArrays,
    tree: wp.uint64,
    edge: wp.float64,
    row_of: wp.array[int],
    x: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    seeds: wp.array[int],
    rest: wp.array[wp.vec3d],
    kinds: wp.array[int],
):
    """So many points in a part (one thread).

    Args:
        counts: the points, the part, and, as an answer, how many of them are LOST.
        seeds: a tetrahedron near each, or -1, and then the one that has it, or one where the body ends near it.
    """
    part = counts[1]
    counts[2] = 0
    for i in range(counts[0]):
        point = points[i]
        kinds[i] = LOST
        if seeds[i] >= 0:
            if c.part[seeds[i]] == part:
                t = walk(c, row_of, x, seeds[i], point)
                if t >= 0:
                    kinds[i] = INSIDE
                    rest[i] = at_rest(c, t, weights_now(c, row_of, x, t, point))
                    seeds[i] = t
                else:  # one of the corners where the way left the body, if it is near
                    near = (-1 - t) >> 2
                    anchor = int(-1)
                    best = edge * edge
                    for k in range(4):
                        if k != ((-1 - t) & 3):
                            way = x[row_of[c.corners[near][k]]] - point
                            if wp.dot(way, way) < best:
                                best = wp.dot(way, way)
                                anchor = c.corners[near][k]
                    if anchor >= 0:
                        find_beside(i, near, anchor, part, c, tree, edge, row_of, x, points, seeds, rest, kinds)
        if kinds[i] == LOST:
            counts[2] = counts[2] + 1


@wp.kernel
def find_lost(
    first: int,
    counts: wp.array[int],
    c: ComplexArrays,
    s: SurfaceStore,
    r: FaceRoom,
    surface_tree: TreeArrays,
    nodes: wp.array[MovingBox],
    here: wp.array[wp.vec3d],
    origin: wp.vec3d,
    scale: wp.float64,
    kerf: wp.float64,
    tree: wp.uint64,
    edge: wp.float64,
    row_of: wp.array[int],
    x: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    seeds: wp.array[int],
    rest: wp.array[wp.vec3d],
    kinds: wp.array[int],
):
    """Those of the points that are LOST, from the nearest vertex of the surface (one thread).

    Args:
        here: surface vertices [m].
        nodes: boxes of `surface_tree`, in a frame of this origin and scale.
    """
    part = counts[1]
    body = r.parts[part][0]
    name = int(-1)
    for i in range(counts[0]):
        if kinds[i] == LOST:
            kinds[i] = UNSURE
            inset = wp.float64(2.0) * kerf  # it is half of one, more in corners and where the body is stretched
            name = nearest_name(s, r, surface_tree, nodes, row_of, x, body, points[i], origin, scale, inset, name)
            if name >= 0:
                anchor = s.store[s.dofs + name]
                near = s.store[s.owners + s.store[s.places + name] / 3] >> 2
                find_beside(i, near, anchor, part, c, tree, edge, row_of, x, points, seeds, rest, kinds)
                if kinds[i] == UNSURE:
                    if not is_enclosed(r, surface_tree, nodes, here, body, points[i], origin, scale):
                        kinds[i] = BESIDE

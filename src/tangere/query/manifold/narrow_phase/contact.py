"""Where one body rests on one face, edge or vertex of the ground, if it does: closed forms, one function per feature.

Penetration at (x, y) is ground height less the body's lower side there. The ground is piecewise linear, the lower side
convex, so a maximum lies inside a face (at the body's deepest point along the face's normal), on a convex edge
(`edge`), or at a vertex (from the body's vertical column there). Each has one normal N, and its depth is
penetration * N_z. An edge or vertex counts only if its normal fits between the faces around it. Points with a gap up to
the margin count as well. Strashnov and Torgashev 2020, section IV, have three cases of
the lower base, the side and one rim point instead, which miss contacts (`tangere.published.strashnov_three_cases`).

Points of a body that can rest on a face are the deepest one, and those that nearly share its depth. A base that is
almost parallel to the ground stands on its rim: eight points of it, fixed in the world, are offered besides the
deepest, because that runs round the rim when the ground turns by a hair. A point counts if the line from the deepest to
it rises by less than FLAT_ANGLE. So an upright cylinder has its rim, a lying one two points, a tilted one has one.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import warp as wp

from tangere.bvh.height_pyramid import GAP, PAGE_HEIGHTS, PAGE_SIDE, PLANAR, TILE, TOP, Terrain, node_flags
from tangere.query.manifold.details import ContactPoint, contact_point
from tangere.query.manifold.narrow_phase.edge import crossing_of
from tangere.query.manifold.reduction import DIAGONAL, STEEP
from tangere.runtime import SOUND
from tangere.shape.analytic import Hulls, PlacedBody, support_value_of, vertical_interval_of

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: What meets, in the lowest two bits of a contact's code; the rest is the number of the body's point.
BODY_ON_FACE = wp.constant(0)
BODY_ON_EDGE = wp.constant(1)
BODY_ON_VERTEX = wp.constant(2)
LIFTED = wp.constant(3)
#: The codes of a contact that there is not, and of one that is not, nor is the next.
NO_CONTACT = wp.constant(-1)
NEITHER = wp.constant(-2)

#: Sine of the angle below which a base or a side lies on a plane: 11.5 degrees.
FLAT_ANGLE = wp.constant(real(0.2))
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TINY = wp.constant(real(1.0e-9))
#: A level direction that few things are across to.
_HEADING = wp.constant(vec(0.8660254, 0.5, 0.0))
#: A normal leans on a neighbour it may not go below by this part of the flatness.
_CONE = wp.constant(real(1.0e-3))


@wp.struct
class Owner:
    """A vertex of the ground with the cell of the same number."""

    row: wp.int32
    column: wp.int32
    number: wp.int32
    at: wp.int32  #: of its height in the terrain's pages, which have all its neighbours
    vertex: wp.vec3d  #: relative to the body's origin
    dx: wp.float64
    dy: wp.float64
    tolerance: wp.float64  #: a normal may lean on a neighbour by this much [m]


@wp.struct
class BodyPlace:
    """Where a body is over its terrain, and how near counts."""

    centre: wp.vec3d  #: the body's origin, relative to the terrain's
    slot: wp.int32  #: its room in groups and walls
    margin: wp.float64  #: gaps up to this count [m]
    slack: wp.float64  #: how far a point may be beyond its face: faces bent by less than the flatness have no edge [m]
    filtered: wp.int32  #: 1 where contacts behind a wall are left out


@wp.struct
class Face:
    """A rectangle of the ground or one of its two triangles, relative to the body's origin."""

    normal: wp.vec3d
    height: wp.float64  #: of its plane along the normal
    most: wp.float64  #: how deep the body is below the plane
    low: wp.vec3d  #: of the rectangle's box; known only if the body is near
    high: wp.vec3d
    part: wp.int32  #: triangle 0 or 1, or 2 for the rectangle
    feature: wp.int32


@wp.struct
class Edge:
    """An edge of the ground, start + t way, relative to the body's origin."""

    start: wp.vec3d
    way: wp.vec3d
    one: wp.vec3d  #: from its start to the opposite vertex of the triangle in its own cell …
    two: wp.vec3d  #: … and of the one beyond
    tolerance: wp.float64  #: a normal may lean on those by this much [m]
    feature: wp.int32
    row: wp.int32  #: of its own cell …
    column: wp.int32
    row_beyond: wp.int32  #: … and of the one beyond
    column_beyond: wp.int32


class FeatureContacts(NamedTuple):
    """The functions for one kind of body."""

    face: wp.Function  #: (t, body, hulls, place, node, heights, part) -> Face: of a node that is PLANAR or a cell
    on_face: (
        wp.Function
    )  #: (body, hulls, place, face, k) -> ContactPoint: the body's k-th point over a face that is near
    points: wp.Function  #: (body, hulls, normal) -> int: how many there are
    is_over: wp.Function  #: (body, hulls, place, owner) -> bool: whether the body is near to or below a vertex
    on_vertex: wp.Function  #: (t, body, hulls, place, owner) -> ContactPoint
    on_edge: wp.Function  #: (t, body, hulls, place, edge, k) -> ContactPoint
    crossings: wp.Function  #: (hulls) -> int: how many k there are


@wp.func
def place_over(t: Terrain, body: PlacedBody, hulls: Hulls, pose: wp.mat44d, margin: real, slot: int) -> BodyPlace:
    here = BodyPlace()
    here.centre = vec(pose[0, 3], pose[1, 3], pose[2, 3]) - t.origin
    here.slot = slot
    here.margin = margin
    here.slack = real(4.0) * t.flatness / wp.min(t.dx, t.dy) * (body.radius + hulls.size * wp.length(body.half))
    return here


@wp.func
def is_finite(body: PlacedBody, place: BodyPlace) -> bool:
    """Whether a body has a pose that is finite."""
    return wp.isfinite(body.axis + place.centre + body.rotation * vec(_ONE, _ONE, _ONE))


@wp.func
def no_contact() -> ContactPoint:
    contact = ContactPoint()
    contact.code = NO_CONTACT
    return contact


@cache
def feature_contacts_of(kind: int) -> FeatureContacts:
    """The functions for ROUND, CYLINDER, CONE or HULL."""
    column, reach = vertical_interval_of(kind), support_value_of(kind)
    point, points = support_point_of(kind)
    crossing, crossings = crossing_of(kind)

    @wp.func
    def face(
        t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, node: wp.vec3i, h: wp.vec4d, part: int
    ) -> Face:
        level = node[0]
        x0 = real(node[2] << level) * t.dx - place.centre[0]
        y0 = real(node[1] << level) * t.dy - place.centre[1]
        x1 = x0 + real(1 << level) * t.dx
        y1 = y0 + real(1 << level) * t.dy
        z = place.centre[2]
        wide = x1 - x0
        deep = y1 - y0
        found = Face()
        found.part = part
        found.feature = 2 * ((node[1] << level) * t.columns + (node[2] << level)) + (part & 1)
        n = vec(deep * (h[0] - h[1]), wide * (h[0] - h[2]), wide * deep)
        corner = vec(x0, y0, h[0] - z)
        if part == 1:
            n = vec(deep * (h[2] - h[3]), wide * (h[1] - h[3]), wide * deep)
            corner = vec(x1, y1, h[3] - z)
        found.normal = wp.normalize(n)
        found.height = wp.dot(corner, found.normal)
        found.most = found.height + reach(body, hulls, -found.normal)
        if found.most >= -place.margin:
            found.low = vec(x0, y0, wp.min(wp.min(h[0], h[1]), wp.min(h[2], h[3])) - z)
            found.high = vec(x1, y1, wp.max(wp.max(h[0], h[1]), wp.max(h[2], h[3])) - z)
        return found

    @wp.func
    def on_face(body: PlacedBody, hulls: Hulls, place: BodyPlace, face: Face, k: int) -> ContactPoint:
        slack = place.slack
        low = face.low
        high = face.high
        p = point(body, hulls, face.normal, k)
        if p[0] < low[0] - slack or p[0] > high[0] + slack or p[1] < low[1] - slack or p[1] > high[1] + slack:
            return no_contact()
        depth = face.height - wp.dot(p, face.normal)
        if depth < -place.margin:
            return no_contact()
        if face.part < 2:
            across = (p[0] - low[0]) / (high[0] - low[0]) + (p[1] - low[1]) / (high[1] - low[1])
            over = slack / wp.min(high[0] - low[0], high[1] - low[1])
            if (face.part == 0 and across > _ONE + over) or (face.part == 1 and across < _ONE - over):
                return no_contact()
        return contact_point(p, face.normal, depth, BODY_ON_FACE + 4 * k, face.feature)

    @wp.func
    def is_over(body: PlacedBody, hulls: Hulls, place: BodyPlace, here: Owner) -> bool:
        q = here.vertex
        under = column(body, hulls, q[0], q[1])
        if under.low > under.high or under.normal[2] <= _TINY:
            return False
        return (q[2] - under.low) * under.normal[2] >= -place.margin

    @wp.func
    def on_vertex(t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, here: Owner) -> ContactPoint:
        q = here.vertex
        under = column(body, hulls, q[0], q[1])
        if under.low > under.high or under.normal[2] <= _TINY:
            return no_contact()
        n = under.normal
        depth = (q[2] - under.low) * n[2]
        if depth < -place.margin:
            return no_contact()
        k = int(0)
        while k < 6:
            # Round the vertex: right, up, up-left, left, down, down-right.
            di = wp.where(k == 1 or k == 2, 1, wp.where(k == 4 or k == 5, -1, 0))
            dj = wp.where(k == 0 or k == 5, 1, wp.where(k == 2 or k == 3, -1, 0))
            if wp.dot(n, to_neighbour(t.heights, here, di, dj)) > here.tolerance:
                if has_ground_beside(t, here.row, here.column, k):
                    return no_contact()
            k += 1
        return contact_point(vec(q[0], q[1], under.low), n, depth, BODY_ON_VERTEX, here.number)

    @wp.func
    def on_edge(t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, edge: Edge, k: int) -> ContactPoint:
        at = crossing(body, hulls, edge.start, edge.way, k)
        if not at.found:
            contact = no_contact()
            contact.code = wp.where(at.neither, NEITHER, NO_CONTACT)
            return contact
        n = at.normal
        depth = (edge.start[2] + at.along * edge.way[2] - at.point[2]) * n[2]
        if depth < -place.margin:
            return no_contact()
        if wp.dot(n, edge.one) > edge.tolerance:
            if has_ground(t, edge.row, edge.column):
                return no_contact()
        if wp.dot(n, edge.two) > edge.tolerance:
            if has_ground(t, edge.row_beyond, edge.column_beyond):
                return no_contact()
        return contact_point(at.point, n, depth, BODY_ON_EDGE + 4 * k, edge.feature)

    return FeatureContacts(face, on_face, points, is_over, on_vertex, on_edge, crossings)


@wp.func
def edge_of(t: Terrain, here: Owner, family: int) -> Edge:
    """The edge along x (0), along y (1), or the diagonal of the cell (2)."""
    a = vec()
    if family == 2:
        a = to_neighbour(t.heights, here, 1, 0)
    edge = Edge()
    edge.start = a + here.vertex
    edge.way = to_neighbour(t.heights, here, wp.where(family == 1, 1, 0), wp.where(family == 1, 0, 1)) - a
    edge.one = to_neighbour(t.heights, here, wp.where(family == 0, 1, 0), wp.where(family == 1, 1, 0)) - a
    edge.two = to_neighbour(t.heights, here, wp.where(family == 0, -1, 1), wp.where(family == 1, -1, 1)) - a
    edge.tolerance = here.tolerance
    edge.feature = 3 * here.number + family
    edge.row = here.row
    edge.column = here.column
    edge.row_beyond = here.row - wp.where(family == 0, 1, 0)
    edge.column_beyond = here.column - wp.where(family == 1, 1, 0)
    return edge


@wp.func
def rests(place: BodyPlace, face: Face, deepest: vec, contact: ContactPoint) -> bool:
    """Whether a point over a face is one the body lies on, given the body's deepest point below the face's plane."""
    return not (face.most - contact.depth > FLAT_ANGLE * wp.length(contact.point - deepest) + place.slack)


@wp.func
def may_be_wall(face: Face) -> bool:
    """Whether a face is steep, with the body's origin in front of it."""
    return face.normal[2] < STEEP and face.most > _ZERO and face.height < _ZERO


@wp.func
def wall_contact(place: BodyPlace, face: Face, deepest: vec) -> ContactPoint:
    """A wall, if the foot of the deepest point is on it, or below it by its height at most."""
    if not may_be_wall(face):
        return no_contact()
    low = face.low
    high = face.high
    foot = deepest + face.most * face.normal
    if foot[2] > high[2] + place.slack or foot[2] < low[2] + low[2] - high[2] - place.slack:
        return no_contact()
    level = wp.normalize(vec(-face.normal[1], face.normal[0], _ZERO))
    middle = _HALF * (low + high)
    half = _HALF * (high - low)
    reach = wp.abs(level[0]) * half[0] + wp.abs(level[1]) * half[1]
    if wp.abs(wp.dot(level, foot - middle)) > reach + place.slack:
        return no_contact()
    return contact_point(deepest, face.normal, face.most, BODY_ON_FACE, face.feature)


@wp.func
def first_part(flags: int) -> int:
    """The parts of a face run from this to `max(it, 1)`: one rectangle, or two triangles."""
    return wp.where((flags & PLANAR) != 0, 2, 0)


@wp.func
def owner(t: Terrain, centre: vec, i: int, j: int) -> Owner:
    here = Owner()
    here.row = i
    here.column = j
    here.number = i * (t.columns + 1) + j
    here.at = height_offset(t, i, j)
    here.vertex = vec(real(j) * t.dx, real(i) * t.dy, t.heights[here.at]) - centre
    here.dx = t.dx
    here.dy = t.dy
    here.tolerance = t.flatness * _CONE
    return here


@wp.func
def height_offset(t: Terrain, i: int, j: int) -> int:
    """Where the height of a vertex is in the page of the tile that owns it."""
    page = t.page[(i >> TOP) * t.tiles_x + (j >> TOP)]
    return page * PAGE_HEIGHTS + ((i & (TILE - 1)) + 1) * PAGE_SIDE + (j & (TILE - 1)) + 1


@wp.func
def to_neighbour(heights: wp.array[wp.float64], here: Owner, di: int, dj: int) -> vec:
    """From the owner's vertex to the one di rows and dj columns on, each -1, 0 or 1."""
    rise = heights[here.at + di * PAGE_SIDE + dj] - heights[here.at]
    return vec(real(dj) * here.dx, real(di) * here.dy, rise)


@wp.func
def has_ground(t: Terrain, i: int, j: int) -> bool:
    """Whether cell (i, j), which may be beyond the border, has ground."""
    if i < 0 or j < 0 or i >= t.rows or j >= t.columns:
        return False
    return (node_flags(t, 0, i, j) & GAP) == 0


@wp.func
def has_ground_beside(t: Terrain, i: int, j: int, k: int) -> bool:
    """Whether the edge from vertex (i, j) to its k-th neighbour (see `on_vertex`) has ground on a side."""
    if k == 0:
        return has_ground(t, i, j) or has_ground(t, i - 1, j)
    if k == 1:
        return has_ground(t, i, j) or has_ground(t, i, j - 1)
    if k == 2:
        return has_ground(t, i, j - 1)
    if k == 3:
        return has_ground(t, i, j - 1) or has_ground(t, i - 1, j - 1)
    if k == 4:
        return has_ground(t, i - 1, j) or has_ground(t, i - 1, j - 1)
    return has_ground(t, i - 1, j)


def support_point_of(kind: int) -> tuple[wp.Function, wp.Function]:
    """`point(body, hulls, n, k)`: the k-th point that may rest on a plane of normal n; `count(body, hulls, n)` many.

    Point 0 of a round body, a cylinder or a cone need not be the deepest, but the deepest is among the first two.
    """
    points = (_round_point, _cylinder_point, _cone_point, _hull_point)
    counts = (_one_or_two, _two_or_ten, _two_or_ten, _corner_count)
    return points[kind], counts[kind]


@wp.func
def deepest_rim_point(body: PlacedBody, centre: vec, n: vec) -> vec:
    """The point of the rim about `centre` that is deepest below a plane with normal n."""
    v = body.axis
    w = wp.dot(v, n) * v - n
    length = wp.length(w)
    if length < _TINY:
        return centre + body.radius * body.side
    return centre + (body.radius / length) * w


@wp.func
def rim_point(body: PlacedBody, centre: vec, eighth: int) -> vec:
    """Eight points of a rim, fixed in the world."""
    e = body.side
    f = wp.cross(body.axis, e)
    if (eighth & 2) != 0:
        g = e
        e = f
        f = -g
    if (eighth & 1) != 0:
        e = (e + f) * DIAGONAL
    if (eighth & 4) != 0:
        e = -e
    return centre + body.radius * e


@wp.func
def first_end(body: PlacedBody, n: vec) -> real:
    """The end of the axis that is numbered first: the lower one, or of a lying body one that a hair's tilt leaves."""
    along = wp.dot(body.axis, n)
    if along * along < _HALF:
        along = wp.dot(body.axis, _HEADING)
    return wp.where(along < _ZERO, body.reach, -body.reach)


@wp.func
def _cylinder_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    end = first_end(body, n)
    if k < 2:
        return deepest_rim_point(body, wp.where(k == 0, end, -end) * body.axis, n)
    return rim_point(body, end * body.axis, k - 2)


@wp.func
def _cone_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    if k == 0:
        return deepest_rim_point(body, -body.reach * body.axis, n)
    if k == 1:
        return body.reach * body.axis
    return rim_point(body, -body.reach * body.axis, k - 2)


@wp.func
def _round_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    end = first_end(body, n)
    centre = wp.where(k == 0, end, -end) * body.axis
    if wp.dot(centre, n) <= _ZERO:
        return centre - body.radius * n
    return deepest_rim_point(body, centre, n)


@wp.func
def _hull_point(body: PlacedBody, hulls: Hulls, n: vec, k: int) -> vec:
    return body.rotation * wp.cw_mul(body.half, hulls.corners[k])


@wp.func
def _one_or_two(body: PlacedBody, hulls: Hulls, n: vec) -> int:
    return wp.where(body.reach == _ZERO, 1, 2)


@wp.func
def _two_or_ten(body: PlacedBody, hulls: Hulls, n: vec) -> int:
    """Without the eight of the rim where the base is far from parallel to the plane."""
    upright = wp.dot(body.axis, n)
    return wp.where(_ONE - upright * upright <= FLAT_ANGLE * FLAT_ANGLE, 10, 2)


@wp.func
def _corner_count(body: PlacedBody, hulls: Hulls, n: vec) -> int:
    return hulls.corners.shape[0]

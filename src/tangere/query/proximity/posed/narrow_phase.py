"""Two features of posed bodies: are they near, does each face the other, and where do they touch?

Question: is this pair of features a constraint, and if so which points, which direction, what gap?
Method:   the points nearest to each other lie within both features (a vertex over a patch, two edges that cross, a
          vertex over an edge, two vertices) and the direction between them in both normal cones. The rim of a feature
          belongs to the features that it is made of, so a corner is told once; but the floor of a groove reaches to
          its walls.
          The direction is that of the features themselves where they have one (across a triangle, across two edges), so
          it does not lose digits as the gap closes; points that coincide are parted by the normal cones.
          Everything is computed in the frame of a.
Sound:    whether a pair is one depends on the two features only, not on the triangles that brought it up.
Known as: contact features of polyhedra, V-Clip (Mirtich 1998).
"""

from __future__ import annotations

import warp as wp

from tangere.query.proximity.posed.feature_keys import (
    EDGE_EDGE,
    EDGE_VERTEX,
    FACE_VERTEX,
    VERTEX_VERTEX,
)
from tangere.query.proximity.posed.features import HAS_PLANE, IS_FEATURE
from tangere.query.proximity.posed.normal_cones import (
    admits_at_edge,
    admits_at_vertex,
    edge_rise,
    parting_direction,
    vertex_rise,
)
from tangere.query.proximity.posed.shapes import ShapeTables
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
#: How near to the rim of a feature is on it, as a part of the feature.
RIM = wp.constant(wp.float64(1.0e-9))
#: Times `tiny`: shorter offsets tell no direction where features have rims, since what is within `RIM` of one is on it.
VAGUE = wp.constant(wp.float64(1.0e3))
#: sin^2 of the angle of edges that cross nowhere: they meet where one of them ends.
_PARALLEL = wp.constant(wp.float64(1.0e-14))
_HAS_PLANE = wp.constant(1 << HAS_PLANE)
_FEATURE_SIDE = wp.constant(1 << IS_FEATURE)


@wp.struct
class PairFrame:
    """Where b is in the frame of a, and what counts as near."""

    turn: wp.mat33d  # of b
    back: wp.mat33d  # the inverse
    shift: wp.vec3d
    limit: wp.float64  # nearer counts [m]
    tilt: wp.float64  # sin of how far a direction may leave a normal cone
    tiny: wp.float64  # offsets below tell no direction [m]


@wp.struct
class Touch:
    """A pair of features that is near: points and direction in the frame of a."""

    found: wp.bool
    point_a: wp.vec3d
    point_b: wp.vec3d
    normal: wp.vec3d  # pushes a from b
    gap: wp.float64
    weights: wp.vec4d  # of vertex and triangle (1, w0, w1, w2), or of the ends of both edges (1-u, u, 1-w, w)


@wp.func
def touch_of(shapes: ShapeTables, frame: PairFrame, code: int, one: int, other: int) -> Touch:
    """Two features, by the code of a key: a vertex and a triangle, two edges, a vertex and an edge, or two vertices.

    Numbers count through all shapes.
    """
    touch = Touch()
    if code <= FACE_VERTEX:
        touch = vertex_on_face(shapes, frame, one, other, code == FACE_VERTEX)
    elif code == EDGE_EDGE:
        touch = edge_on_edge(shapes, frame, one, other)
    elif code == VERTEX_VERTEX:
        touch = vertex_on_vertex(shapes, frame, one, other)
    else:
        touch = vertex_on_edge(shapes, frame, one, other, code == EDGE_VERTEX)
    return touch


@wp.func
def placed(frame: PairFrame, p: wp.vec3d) -> wp.vec3d:
    """A point of b in the frame of a."""
    return frame.turn * p + frame.shift


@wp.func
def vertex_on_face(shapes: ShapeTables, frame: PairFrame, vertex: int, face: int, on_b: bool) -> Touch:
    """A vertex of a over a triangle of b, or with `on_b` a vertex of b over a triangle of a."""
    touch = Touch()
    corners = shapes.faces[face]
    p = shapes.vertices[vertex]
    a = shapes.vertices[corners[0]]
    b = shapes.vertices[corners[1]]
    c = shapes.vertices[corners[2]]
    if on_b:
        p = placed(frame, p)
    else:
        a = placed(frame, a)
        b = placed(frame, b)
        c = placed(frame, c)
    e0 = b - a
    e1 = c - a
    r = p - a
    normal = wp.cross(e0, e1)
    area = wp.dot(normal, normal)
    across = wp.dot(r, normal)
    if (shapes.owns[face] & _HAS_PLANE) == 0 or across * across >= frame.limit * frame.limit * area:
        return touch
    w1 = wp.dot(wp.cross(r, e1), normal) / area
    w2 = wp.dot(wp.cross(e0, r), normal) / area
    w0 = _ONE - w1 - w2
    if wp.min(wp.min(w0, w1), w2) < -RIM:
        return touch
    length = wp.sqrt(area)
    up = normal / length  # towards the vertex
    height = across / length
    if height < _ZERO:
        up = -up
        height = -height
    if height <= frame.tiny:
        # Rounding hides on which side the vertex is, but not to which side its edges rise.
        local = up
        if on_b:
            local = frame.back * up
        if vertex_rise(shapes, vertex, -local) > vertex_rise(shapes, vertex, local):
            up = -up
    up_a = up
    up_b = frame.back * up
    up_vertex = wp.where(on_b, up_b, up_a)
    up_face = wp.where(on_b, up_a, up_b)
    if not admits_at_vertex(shapes, vertex, up_vertex, frame.tilt):
        return touch
    if wp.min(wp.min(w0, w1), w2) <= RIM:
        # Directions of the vertex's body are those of the face's body turned by this.
        turn = wp.where(on_b, frame.back, frame.turn)
        if not face_keeps(shapes, face, wp.vec3d(w0, w1, w2), -up_face, vertex, turn, frame.tilt):
            return touch
    foot = p - height * up
    touch.found = True
    touch.gap = height
    touch.weights = wp.vec4d(_ONE, w0, w1, w2)
    touch.point_a = wp.where(on_b, foot, p)
    touch.point_b = wp.where(on_b, p, foot)
    touch.normal = wp.where(on_b, -up, up)
    return touch


@wp.func
def face_keeps(
    shapes: ShapeTables,
    face: int,
    weights: wp.vec3d,
    n: wp.vec3d,
    vertex: int,
    turn: wp.mat33d,
    tilt: wp.float64,
) -> bool:
    """Whether a vertex over the rim of a triangle is on the triangle, and not on the side or corner that the rim is.

    It is where the rim is no feature, and also in a groove: where the rim does not take the direction n because
    triangles beyond it rise towards the vertex, and the vertex's body is within the groove, not behind it.
    """
    corners = shapes.faces[face]
    corner = int(-1)
    side = int(0)
    for k in range(3):
        if weights[k] <= RIM:
            side = (k + 1) % 3
            if weights[(k + 1) % 3] <= RIM:
                corner = corners[(k + 2) % 3]
    if corner >= 0:
        if shapes.vertex_edge[corner] < 0:
            return True
        keeps = not admits_at_vertex(shapes, corner, n, tilt)
        for k in range(shapes.vertex_first[corner], shapes.vertex_first[corner + 1]):
            if keeps:
                keeps = is_within_groove(shapes, shapes.vertex_ring[k], n, vertex, turn, tilt)
        return keeps
    if (shapes.owns[face] & (_FEATURE_SIDE << side)) == 0:
        return True
    edge = shapes.face_edges[face][side]
    if admits_at_edge(shapes, edge, n, tilt):
        return False
    return is_within_groove(shapes, edge, n, vertex, turn, tilt)


@wp.func
def is_within_groove(
    shapes: ShapeTables, edge: int, n: wp.vec3d, vertex: int, turn: wp.mat33d, tilt: wp.float64
) -> bool:
    """Whether a vertex's body is on this side of every triangle that rises beyond an edge: n points away from it."""
    begin = shapes.edge_first[edge]
    end = shapes.edge_first[edge + 1]
    for i in range(begin, end):
        inward = shapes.edge_tangents[i]
        if wp.abs(wp.dot(inward, n)) <= tilt:
            for j in range(begin, end):
                beyond = shapes.edge_tangents[j]
                if wp.dot(beyond, n) < -tilt:
                    within = wp.normalize(inward - wp.dot(inward, beyond) * beyond)
                    if vertex_rise(shapes, vertex, turn * within) < -tilt:
                        return False
    return True


@wp.func
def edge_on_edge(shapes: ShapeTables, frame: PairFrame, edge_a: int, edge_b: int) -> Touch:
    """Two edges that cross."""
    touch = Touch()
    ends_a = shapes.edges[edge_a]
    ends_b = shapes.edges[edge_b]
    a0 = shapes.vertices[ends_a[0]]
    b0 = placed(frame, shapes.vertices[ends_b[0]])
    d1 = shapes.vertices[ends_a[1]] - a0
    d2 = placed(frame, shapes.vertices[ends_b[1]]) - b0
    r = b0 - a0
    normal = wp.cross(d1, d2)
    area = wp.dot(normal, normal)
    across = wp.dot(r, normal)
    aa = wp.dot(d1, d1)
    bb = wp.dot(d2, d2)
    if across * across >= frame.limit * frame.limit * area or area <= _PARALLEL * aa * bb:
        return touch
    u = wp.dot(wp.cross(r, d2), normal) / area
    w = wp.dot((a0 + u * d1) - b0, d2) / bb
    u = wp.dot((b0 + w * d2) - a0, d1) / aa
    if not (wp.min(u, w) > RIM and wp.max(u, w) < _ONE - RIM):  # ends are vertices
        return touch
    x = a0 + u * d1
    y = b0 + w * d2
    n = normal / wp.sqrt(area)
    gap = wp.dot(x - y, n)
    if gap < _ZERO:
        n = -n
        gap = -gap
    local = frame.back * n
    if gap <= frame.tiny:
        forth = wp.min(edge_rise(shapes, edge_a, n), edge_rise(shapes, edge_b, -local))
        if wp.min(edge_rise(shapes, edge_a, -n), edge_rise(shapes, edge_b, local)) > forth:
            n = -n
            local = -local
    if gap >= frame.limit:
        return touch
    if not (admits_at_edge(shapes, edge_a, n, frame.tilt) and admits_at_edge(shapes, edge_b, -local, frame.tilt)):
        return touch
    touch.found = True
    touch.gap = gap
    touch.point_a = x
    touch.point_b = y
    touch.normal = n
    touch.weights = wp.vec4d(_ONE - u, u, _ONE - w, w)
    return touch


@wp.func
def vertex_on_edge(shapes: ShapeTables, frame: PairFrame, vertex: int, edge: int, on_b: bool) -> Touch:
    """A vertex of a over an edge of b, or with `on_b` a vertex of b over an edge of a."""
    touch = Touch()
    ends = shapes.edges[edge]
    p = shapes.vertices[vertex]
    q0 = shapes.vertices[ends[0]]
    q1 = shapes.vertices[ends[1]]
    if on_b:
        p = placed(frame, p)
    else:
        q0 = placed(frame, q0)
        q1 = placed(frame, q1)
    d = q1 - q0
    squared = wp.dot(d, d)
    along = wp.dot(p - q0, d)
    if not (along > RIM * squared and along < (_ONE - RIM) * squared):  # ends are vertices
        return touch
    u = along / squared
    foot = q0 + u * d
    offset = p - foot
    gap = wp.length(offset)
    if gap >= frame.limit:
        return touch
    if on_b:
        offset = -offset
    n = wp.vec3d()  # pushes a from b
    if gap > VAGUE * frame.tiny:
        n = offset / gap
    else:
        best = wp.vec4d()
        if on_b:
            best = parting_direction(shapes, -1, edge, vertex, -1, frame.turn)
        else:
            best = parting_direction(shapes, vertex, -1, -1, edge, frame.turn)
        n = wp.vec3d(best[0], best[1], best[2])
        gap = wp.max(wp.dot(offset, n), _ZERO)
    if not edge_admits(shapes, frame, vertex, edge, on_b, n):
        return touch
    touch.found = True
    touch.gap = gap
    touch.normal = n
    touch.point_a = wp.where(on_b, foot, p)
    touch.point_b = wp.where(on_b, p, foot)
    # The vertex is an end of the edge that stands for it.
    own = wp.vec2d(_ONE, _ZERO)
    if shapes.edges[shapes.vertex_edge[vertex]][0] != vertex:
        own = wp.vec2d(_ZERO, _ONE)
    touch.weights = wp.vec4d(own[0], own[1], _ONE - u, u)
    if on_b:
        touch.weights = wp.vec4d(_ONE - u, u, own[0], own[1])
    return touch


@wp.func
def edge_admits(shapes: ShapeTables, frame: PairFrame, vertex: int, edge: int, on_b: bool, n: wp.vec3d) -> bool:
    """Whether a direction, which pushes a from b, is in the normal cones of a vertex and an edge."""
    local = -(frame.back * n)
    at_vertex = wp.where(on_b, local, n)
    at_edge = wp.where(on_b, n, local)
    if not admits_at_vertex(shapes, vertex, at_vertex, frame.tilt):
        return False
    return admits_at_edge(shapes, edge, at_edge, frame.tilt)


@wp.func
def vertices_admit(shapes: ShapeTables, frame: PairFrame, vertex_a: int, vertex_b: int, n: wp.vec3d) -> bool:
    """Whether a direction is in the normal cones of two vertices."""
    if not admits_at_vertex(shapes, vertex_a, n, frame.tilt):
        return False
    return admits_at_vertex(shapes, vertex_b, -(frame.back * n), frame.tilt)


@wp.func
def vertex_on_vertex(shapes: ShapeTables, frame: PairFrame, vertex_a: int, vertex_b: int) -> Touch:
    """Two corners."""
    touch = Touch()
    p = shapes.vertices[vertex_a]
    q = placed(frame, shapes.vertices[vertex_b])
    offset = p - q
    if wp.dot(offset, offset) >= frame.limit * frame.limit:
        return touch
    gap = wp.length(offset)
    n = wp.vec3d()
    if gap > VAGUE * frame.tiny:
        n = offset / gap
    else:
        best = parting_direction(shapes, vertex_a, -1, vertex_b, -1, frame.turn)
        n = wp.vec3d(best[0], best[1], best[2])
        gap = wp.max(wp.dot(offset, n), _ZERO)
    if not vertices_admit(shapes, frame, vertex_a, vertex_b, n):
        return touch
    touch.found = True
    touch.gap = gap
    touch.normal = n
    touch.point_a = p
    touch.point_b = q
    u = wp.float64(0.0)
    w = wp.float64(0.0)
    if shapes.edges[shapes.vertex_edge[vertex_a]][0] != vertex_a:
        u = wp.float64(1.0)
    if shapes.edges[shapes.vertex_edge[vertex_b]][0] != vertex_b:
        w = wp.float64(1.0)
    touch.weights = wp.vec4d(_ONE - u, u, _ONE - w, w)
    return touch

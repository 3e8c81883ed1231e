"""Two triangles of posed bodies: which of their features may be constraints, and how near are they?

Method: the triangles are apart along one of three directions (the one found last, across either triangle), or the
        features they own are looked at: first by a few products with the corners at hand, which leave out most; what
        remains is decided by `narrow_phase`, which knows nothing of triangles that brought it up.
Sound:  what is left out here is farther than the limit, or beyond the rim of a feature, by more than rounding.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.triangles import MEET, gap_along, gap_vector, nearest_of_triangles, triangles_meet
from tangere.query.proximity.posed.feature_keys import (
    EDGE_EDGE,
    EDGE_VERTEX,
    FACE_VERTEX,
    VERTEX_EDGE,
    VERTEX_FACE,
    VERTEX_VERTEX,
    feature_key,
)
from tangere.query.proximity.posed.features import HAS_PLANE
from tangere.query.proximity.posed.narrow_phase import PairFrame, Touch, placed, touch_of
from tangere.query.proximity.posed.shapes import EDGE, FACE, VERTEX, ShapeTables
from tangere.runtime import SOUND, reserve_slots

wp.set_module_options(SOUND)

# Candidates of two triangles, by number: corners of a on b, corners of b on a, then nine of each kind, i of a and j of
# b: edges, corner and edge, edge and corner, corners.
FACES_OF_A = wp.constant(3)
EDGES = wp.constant(6)
EDGES_OF_B = wp.constant(15)
EDGES_OF_A = wp.constant(24)
VERTICES = wp.constant(33)
CANDIDATES = wp.constant(42)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_HAS_PLANE = wp.constant(1 << HAS_PLANE)
#: Room for rounding beside a rim, as a part of a feature, and of a limit.
RIM_ROOM = 1.0e-7
LIMIT_ROOM = 1.0 + 1.0e-9
_RIM_ROOM = wp.constant(wp.float64(RIM_ROOM))
_LIMIT_ROOM = wp.constant(wp.float64(LIMIT_ROOM))
#: Distances that differ by less, in units of what tells no direction, are the same.
_SAME = wp.constant(wp.float64(1.0e-3))
#: sin^2 of the angle of edges below which the places where they cross are left to `narrow_phase`.
NEARLY_PARALLEL = 1.0e-6
_NEARLY_PARALLEL = wp.constant(wp.float64(NEARLY_PARALLEL))


@wp.struct
class Appended:
    """Found pairs of features, in one segment for each shard; keys and places are put in order, the rest stays."""

    counts: wp.array[wp.int64]
    capacity: wp.int32
    keys: wp.array[wp.int64]
    places: wp.array[wp.int32]  # where the rest of what has this key stands
    pairs: wp.array[wp.int32]
    faces: wp.array[wp.int32]  # the triangle, as its mesh counts it, of a vertex on a triangle
    touches: wp.array[Touch]


@wp.struct
class PairState:
    """What is known of a pair of bodies so far."""

    nearest: wp.float64  # the least distance of triangles, or a little more than the limit
    towards: wp.vec3d  # from a to b where that is
    meet: wp.bool  # triangles pass through each other


@wp.struct
class TrianglePair:
    """A triangle of each body in the frame of a, and which of their features they own."""

    a: wp.mat33d
    b: wp.mat33d
    normal_a: wp.vec3d  # as long as twice the area
    normal_b: wp.vec3d
    owns_a: wp.int32
    owns_b: wp.int32


@wp.func
def compare_triangles(
    shapes: ShapeTables,
    frame: PairFrame,
    pair: int,
    base_a: wp.vec4i,
    base_b: wp.vec4i,
    face_a: int,
    face_b: int,
    state: PairState,
    shard: int,
    out: Appended,
) -> PairState:
    """Append the constraints among the features that two triangles own, and what they change about the pair."""
    leaf = TrianglePair()
    leaf.a = triangle_of(shapes, face_a)
    leaf.b = placed_triangle(shapes, frame, face_b)
    far = frame.limit + frame.tiny
    along = gap_along(leaf.a, leaf.b, state.towards)
    if along > far:
        return state
    leaf.normal_a = wp.cross(leaf.a[1] - leaf.a[0], leaf.a[2] - leaf.a[0])
    gap_a = gap_across(leaf.a, leaf.b, leaf.normal_a)
    area_a = wp.dot(leaf.normal_a, leaf.normal_a)
    if gap_a > _ZERO and gap_a * gap_a > far * far * _LIMIT_ROOM * area_a:
        return state
    leaf.normal_b = wp.cross(leaf.b[1] - leaf.b[0], leaf.b[2] - leaf.b[0])
    gap_b = gap_across(leaf.a, leaf.b, leaf.normal_b)
    area_b = wp.dot(leaf.normal_b, leaf.normal_b)
    if gap_b > _ZERO and gap_b * gap_b > far * far * _LIMIT_ROOM * area_b:
        return state
    leaf.owns_a = shapes.owns[face_a]
    leaf.owns_b = shapes.owns[face_b]
    within = frame.limit * frame.limit * _LIMIT_ROOM
    number = int(0)
    while number < CANDIDATES:
        if may_touch(leaf, number, within):
            candidate = candidate_of(shapes, face_a, face_b, number)
            state = consider(shapes, frame, pair, base_a, base_b, candidate, state, shard, out)
        number += 1
    least = least_of_interest(frame, state)
    nearer = along < least and not (gap_a > _ZERO and gap_a * gap_a >= least * least * area_a)
    nearer = nearer and not (gap_b > _ZERO and gap_b * gap_b >= least * least * area_b)
    may_meet = along <= frame.tiny and wp.max(gap_a, gap_b) <= _ZERO
    if nearer or may_meet:
        state = nearest_so_far(shapes, frame, face_a, face_b, may_meet, state)
    return state


@wp.func
def gap_across(a: wp.mat33d, b: wp.mat33d, normal: wp.vec3d) -> wp.float64:
    """How far two triangles are apart along a normal, times its length; below 0 where they overlap along it.

    All corners are projected: the normal of a triangle that is a line up to rounding is noise, and not across it.
    """
    of_a = a * normal
    of_b = b * normal
    return wp.max(wp.min(of_b) - wp.max(of_a), wp.min(of_a) - wp.max(of_b))


@wp.func
def least_of_interest(frame: PairFrame, state: PairState) -> wp.float64:
    """Triangles must be nearer than this to tell anything new: flat places are as near all over, up to rounding."""
    return wp.max(state.nearest - _SAME * frame.tiny, _ZERO)


@wp.func
def nearest_so_far(
    shapes: ShapeTables, frame: PairFrame, face_a: int, face_b: int, may_meet: bool, state: PairState
) -> PairState:
    """The least distance with that of two triangles, and whether they meet.

    A vector between them that is found fast is right if the triangles are as far apart along it as it is long; if not,
    a slower search that survives every shape decides.
    """
    a = triangle_of(shapes, face_a)
    b = placed_triangle(shapes, frame, face_b)
    certain = gap_along(a, b, state.towards)  # others of the same eight may have come nearer
    offset = wp.vec3d()
    reached = wp.float64(0.0)
    if certain < least_of_interest(frame, state):
        offset = gap_vector(a, b)
        reached = wp.length(offset)
        if reached > frame.tiny:
            certain = gap_along(a, b, offset / reached)
    if certain < least_of_interest(frame, state):
        if reached - certain > _SAME * frame.tiny:
            points = nearest_of_triangles(a, b)
            offset = points.weights_b * b - points.weights_a * a
            reached = wp.length(offset)
        if reached < state.nearest:
            state.nearest = reached
            if reached > frame.tiny:
                state.towards = offset / reached
    if may_meet and not state.meet:
        state.meet = triangles_meet(a, b) == MEET
    return state


@wp.func
def triangle_of(shapes: ShapeTables, face: int) -> wp.mat33d:
    """A triangle of a, with a corner in each row."""
    return wp.matrix_from_rows(shapes.corners[3 * face], shapes.corners[3 * face + 1], shapes.corners[3 * face + 2])


@wp.func
def placed_triangle(shapes: ShapeTables, frame: PairFrame, face: int) -> wp.mat33d:
    """A triangle of b in the frame of a."""
    return wp.matrix_from_rows(
        placed(frame, shapes.corners[3 * face]),
        placed(frame, shapes.corners[3 * face + 1]),
        placed(frame, shapes.corners[3 * face + 2]),
    )


@wp.func
def may_be_over(p: wp.vec3d, t: wp.mat33d, normal: wp.vec3d, within: wp.float64) -> bool:
    """Whether a vertex may be over a triangle, at less than sqrt(within)."""
    r = p - t[0]
    area = wp.dot(normal, normal)
    across = wp.dot(r, normal)
    if across * across > within * area:
        return False
    e0 = t[1] - t[0]
    e1 = t[2] - t[0]
    w1 = wp.dot(wp.cross(r, e1), normal)
    w2 = wp.dot(wp.cross(e0, r), normal)
    room = -_RIM_ROOM * area
    return w1 >= room and w2 >= room and area - w1 - w2 >= room


@wp.func
def may_touch(leaf: TrianglePair, number: int, within: wp.float64) -> bool:
    """Whether the candidate of this number is of features that are owned, and may be nearer than sqrt(within)."""
    i = (number % 9) / 3
    j = number % 3
    if number < EDGES:
        i = number % 3
    vertex_a = ((leaf.owns_a >> i) & 1) == 1
    vertex_b = ((leaf.owns_b >> j) & 1) == 1
    edge_a = ((leaf.owns_a >> (3 + i)) & 1) == 1
    edge_b = ((leaf.owns_b >> (3 + j)) & 1) == 1
    p = leaf.a[i]
    q = leaf.b[j]
    d = leaf.a[(i + 1) % 3] - p
    e = leaf.b[(j + 1) % 3] - q
    if number < FACES_OF_A:
        return vertex_a and (leaf.owns_b & _HAS_PLANE) != 0 and may_be_over(p, leaf.b, leaf.normal_b, within)
    if number < EDGES:
        return vertex_b and (leaf.owns_a & _HAS_PLANE) != 0 and may_be_over(q, leaf.a, leaf.normal_a, within)
    if number < EDGES_OF_B:
        return edge_a and edge_b and may_cross(p, d, q, e, within)
    if number < EDGES_OF_A:
        return vertex_a and edge_b and may_be_beside(p, q, e, within)
    if number < VERTICES:
        return edge_a and vertex_b and may_be_beside(q, p, d, within)
    return vertex_a and vertex_b and wp.length_sq(p - q) <= within


@wp.func
def may_cross(p: wp.vec3d, d: wp.vec3d, q: wp.vec3d, e: wp.vec3d, within: wp.float64) -> bool:
    """Whether edges p + [0, 1] d and q + [0, 1] e may cross, at less than sqrt(within)."""
    r = q - p
    normal = wp.cross(d, e)
    area = wp.dot(normal, normal)
    across = wp.dot(r, normal)
    if across * across > within * area:
        return False
    if area <= _NEARLY_PARALLEL * wp.dot(d, d) * wp.dot(e, e):
        return True
    u = wp.dot(wp.cross(r, e), normal)
    w = wp.dot(wp.cross(r, d), normal)
    room = _RIM_ROOM * area
    return wp.min(u, w) >= -room and wp.max(u, w) <= area + room


@wp.func
def may_be_beside(p: wp.vec3d, q: wp.vec3d, e: wp.vec3d, within: wp.float64) -> bool:
    """Whether a vertex may be over the edge q + [0, 1] e, at less than sqrt(within)."""
    r = p - q
    along = wp.dot(r, e)
    squared = wp.dot(e, e)
    room = _RIM_ROOM * squared
    if along < -room or along > squared + room:
        return False
    return wp.dot(r, r) * squared - along * along <= (within + _RIM_ROOM * wp.dot(r, r)) * squared


@wp.struct
class FeaturePair:
    """Two features, by the code of their key and their numbers among all shapes."""

    code: wp.int32
    one: wp.int32
    other: wp.int32


@wp.func
def candidate_of(shapes: ShapeTables, face_a: int, face_b: int, number: int) -> FeaturePair:
    """A candidate of two triangles by its number."""
    i = (number % 9) / 3
    j = number % 3
    if number < EDGES:
        i = j
    candidate = FeaturePair()
    candidate.code = int(VERTEX_VERTEX)
    candidate.one = shapes.faces[face_a][i]
    candidate.other = shapes.faces[face_b][j]
    if number < FACES_OF_A:
        candidate.code = int(VERTEX_FACE)
        candidate.other = face_b
    elif number < EDGES:
        candidate.code = int(FACE_VERTEX)
        candidate.one = candidate.other
        candidate.other = face_a
    elif number < EDGES_OF_B:
        candidate.code = int(EDGE_EDGE)
        candidate.one = shapes.face_edges[face_a][i]
        candidate.other = shapes.face_edges[face_b][j]
    elif number < EDGES_OF_A:
        candidate.code = int(VERTEX_EDGE)
        candidate.other = shapes.face_edges[face_b][j]
    elif number < VERTICES:
        candidate.code = int(EDGE_VERTEX)
        candidate.one = candidate.other
        candidate.other = shapes.face_edges[face_a][i]
    return candidate


@wp.func
def key_of(shapes: ShapeTables, candidate: FeaturePair, base_a: wp.vec4i, base_b: wp.vec4i) -> wp.int64:
    """The key of a candidate: numbers as the meshes count, and of a triangle its patch."""
    one = candidate.one
    other = candidate.other
    if candidate.code == VERTEX_FACE:
        one -= base_a[VERTEX]
        other = shapes.patch[other]
    elif candidate.code == FACE_VERTEX:
        one -= base_b[VERTEX]
        other = shapes.patch[other]
    elif candidate.code == EDGE_EDGE:
        one -= base_a[EDGE]
        other -= base_b[EDGE]
    elif candidate.code == VERTEX_EDGE:
        one -= base_a[VERTEX]
        other -= base_b[EDGE]
    elif candidate.code == EDGE_VERTEX:
        one -= base_b[VERTEX]
        other -= base_a[EDGE]
    else:
        one -= base_a[VERTEX]
        other -= base_b[VERTEX]
    return feature_key(candidate.code, one, other)


@wp.func
def consider(
    shapes: ShapeTables,
    frame: PairFrame,
    pair: int,
    base_a: wp.vec4i,
    base_b: wp.vec4i,
    candidate: FeaturePair,
    state: PairState,
    shard: int,
    out: Appended,
) -> PairState:
    """Append a candidate of two triangles if it is a constraint; its gap is a distance that the bodies have."""
    touch = touch_of(shapes, frame, candidate.code, candidate.one, candidate.other)
    if touch.found:
        if touch.gap < state.nearest:
            state.nearest = touch.gap
            state.towards = -touch.normal
        slot = reserve_slots(out.counts, shard, 1, out.capacity)
        if slot >= 0:
            out.keys[slot] = key_of(shapes, candidate, base_a, base_b)
            out.places[slot] = slot
            out.pairs[slot] = pair
            out.faces[slot] = 0
            if candidate.code == VERTEX_FACE:
                out.faces[slot] = candidate.other - base_b[FACE]
            if candidate.code == FACE_VERTEX:
                out.faces[slot] = candidate.other - base_a[FACE]
            out.touches[slot] = touch
    return state

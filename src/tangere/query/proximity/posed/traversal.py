"""The descent of two posed OBB trees for everything nearer than a distance; one thread a pair of bodies.

Question: which pairs of features are constraints, and how near do the surfaces come?
Method:   depth first over pairs of boxes nearer than the distance, no refitting and no posed copies of meshes. Of two
          triangles the features they own are compared (`narrow_phase`). The least distance of two triangles is looked
          for only where the gap along the direction found last is less than the best so far.
Sound:    boxes count their rounding, so no pair of triangles below the distance is left out; a feature owned by a
          triangle is where the triangle is, so no pair of features is.
Known as: simultaneous descent of bounding volume hierarchies (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import ObbNode, boxes_at_least
from tangere.geometry.triangles import MEET, gap_along, nearest_of_triangles, triangles_meet
from tangere.query.intersection.traversal import Waiting, opens_first
from tangere.query.proximity.posed.feature_keys import (
    EDGE_EDGE,
    EDGE_VERTEX,
    FACE_VERTEX,
    VERTEX_EDGE,
    VERTEX_FACE,
    VERTEX_VERTEX,
    feature_key,
)
from tangere.query.proximity.posed.narrow_phase import (
    PairFrame,
    edge_on_edge,
    placed,
    vertex_on_edge,
    vertex_on_face,
    vertex_on_vertex,
)
from tangere.query.proximity.posed.shapes import EDGE, FACE, NODE, VERTEX, ShapeTables
from tangere.runtime import COUNTER_STRIDE, SOUND, reserve_slots

wp.set_module_options(SOUND)

#: What a pair of bodies is: apart or touching; passing through each other; not placed by rotations.
APART = wp.constant(0)
OVERLAP = wp.constant(1)
BAD_POSE = wp.constant(2)

#: Rounding of positions in the frame of a, relative to the largest coordinate.
_ROUNDING = wp.constant(wp.float64(2.0**-46))
#: Offsets below this part of the coordinates tell no direction.
TINY = wp.constant(wp.float64(1.0e-11))
#: How far from orthonormal rotations may be.
_ORTHONORMAL = wp.constant(wp.float64(1.0e-6))


@wp.struct
class PairQueries:
    """Pairs of bodies, where each body is, and what counts as near."""

    pairs: wp.array[wp.vec2i]
    limit: wp.array[wp.float64]  # of each pair [m]
    rotation: wp.array[wp.mat33d]  # of each body
    origin: wp.array[wp.vec3d]
    tilt: wp.float64


@wp.struct
class Appended:
    """Found pairs of features, in one segment for each shard."""

    counts: wp.array[wp.int64]
    capacity: wp.int32
    keys: wp.array[wp.int64]
    faces: wp.array[wp.int32]  # the triangle, as its mesh counts it, of a vertex on a triangle
    pairs: wp.array[wp.int32]


@wp.func
def append(out: Appended, shard: int, pair: int, key: wp.int64, face: int):
    slot = reserve_slots(out.counts, shard, 1, out.capacity)
    if slot >= 0:
        out.keys[slot] = key
        out.faces[slot] = face
        out.pairs[slot] = pair


@wp.func
def pair_frame(queries: PairQueries, pair: int) -> PairFrame:
    """Where the second body of a pair is in the frame of the first; `tiny` is left to set."""
    bodies = queries.pairs[pair]
    frame = PairFrame()
    back = wp.transpose(queries.rotation[bodies[0]])
    frame.turn = back * queries.rotation[bodies[1]]
    frame.back = wp.transpose(frame.turn)
    frame.shift = back * (queries.origin[bodies[1]] - queries.origin[bodies[0]])
    frame.limit = queries.limit[pair]
    frame.tilt = queries.tilt
    return frame


@wp.func
def reach_of(root: ObbNode) -> wp.float64:
    """A bound of the coordinates of a mesh."""
    return wp.float64(wp.length(root.centre) + root.radius)


@wp.func
def coordinate_bound(shapes: ShapeTables, frame: PairFrame, base_a: wp.vec4i, base_b: wp.vec4i) -> wp.float64:
    """A bound of the coordinates of both bodies in the frame of a."""
    return reach_of(shapes.nodes[base_a[NODE]]) + reach_of(shapes.nodes[base_b[NODE]]) + wp.length(frame.shift)


@wp.func
def is_rotation(r: wp.mat33d) -> bool:
    """Whether a matrix is a rotation, up to rounding; NaN is none."""
    square = wp.transpose(r) * r - wp.identity(n=3, dtype=wp.float64)
    return wp.ddot(square, square) < _ORTHONORMAL * _ORTHONORMAL and wp.determinant(r) > wp.float64(0.0)


@wp.func
def triangle_of(shapes: ShapeTables, face: int) -> wp.mat33d:
    corners = shapes.faces[face]
    return wp.matrix_from_rows(shapes.vertices[corners[0]], shapes.vertices[corners[1]], shapes.vertices[corners[2]])


@wp.func
def placed_triangle(frame: PairFrame, t: wp.mat33d) -> wp.mat33d:
    return wp.matrix_from_rows(placed(frame, t[0]), placed(frame, t[1]), placed(frame, t[2]))


@wp.func
def compare_features(
    shapes: ShapeTables,
    frame: PairFrame,
    pair: int,
    base_a: wp.vec4i,
    base_b: wp.vec4i,
    face_a: int,
    face_b: int,
    shard: int,
    out: Appended,
):
    """Append the pairs of features that two triangles own and that are constraints; triangles count all shapes'."""
    owns_a = shapes.owns[face_a]
    owns_b = shapes.owns[face_b]
    corners_a = shapes.faces[face_a]
    corners_b = shapes.faces[face_b]
    k = int(0)
    while k < 3:
        if ((owns_a >> k) & 1) == 1:
            if vertex_on_face(shapes, frame, corners_a[k], face_b, False).found:
                one = corners_a[k] - base_a[VERTEX]
                append(out, shard, pair, feature_key(VERTEX_FACE, one, shapes.patch[face_b]), face_b - base_b[FACE])
        if ((owns_b >> k) & 1) == 1:
            if vertex_on_face(shapes, frame, corners_b[k], face_a, True).found:
                one = corners_b[k] - base_b[VERTEX]
                append(out, shard, pair, feature_key(FACE_VERTEX, one, shapes.patch[face_a]), face_a - base_a[FACE])
        k += 1
    k = int(0)
    while k < 9:
        i = k / 3
        j = k % 3
        vertex_a = ((owns_a >> i) & 1) == 1
        vertex_b = ((owns_b >> j) & 1) == 1
        edge_a = ((owns_a >> (3 + i)) & 1) == 1
        edge_b = ((owns_b >> (3 + j)) & 1) == 1
        v = corners_a[i]
        w = corners_b[j]
        e = shapes.face_edges[face_a][i]
        f = shapes.face_edges[face_b][j]
        if edge_a and edge_b:
            if edge_on_edge(shapes, frame, e, f).found:
                append(out, shard, pair, feature_key(EDGE_EDGE, e - base_a[EDGE], f - base_b[EDGE]), 0)
        if vertex_a and edge_b:
            if vertex_on_edge(shapes, frame, v, f, False).found:
                append(out, shard, pair, feature_key(VERTEX_EDGE, v - base_a[VERTEX], f - base_b[EDGE]), 0)
        if edge_a and vertex_b:
            if vertex_on_edge(shapes, frame, w, e, True).found:
                append(out, shard, pair, feature_key(EDGE_VERTEX, w - base_b[VERTEX], e - base_a[EDGE]), 0)
        if vertex_a and vertex_b:
            if vertex_on_vertex(shapes, frame, v, w).found:
                append(out, shard, pair, feature_key(VERTEX_VERTEX, v - base_a[VERTEX], w - base_b[VERTEX]), 0)
        k += 1


@wp.kernel
def find_constraints(
    first: int,
    shard: int,
    shapes: ShapeTables,
    queries: PairQueries,
    out: Appended,
    begin: wp.array[wp.int32],
    amount: wp.array[wp.int32],
    least: wp.array[wp.float64],
    status: wp.array[wp.int32],
):
    """All constraints of a pair appended, and its least distance, less rounding, if that is below the limit.

    On CPU one thread fills a segment: what it appends for a pair lies at `begin`, or -1 where it did not fit.
    """
    pair = first + wp.tid()
    before = out.counts[shard * COUNTER_STRIDE]
    bodies = queries.pairs[pair]
    state = int(APART)
    if not (is_rotation(queries.rotation[bodies[0]]) and is_rotation(queries.rotation[bodies[1]])):
        state = int(BAD_POSE)
    if not wp.isfinite(queries.origin[bodies[1]] - queries.origin[bodies[0]]):
        state = int(BAD_POSE)
    base_a = shapes.base[shapes.shape[bodies[0]]]
    base_b = shapes.base[shapes.shape[bodies[1]]]
    frame = pair_frame(queries, pair)
    size = coordinate_bound(shapes, frame, base_a, base_b)
    frame.tiny = TINY * size
    uncertain = _ROUNDING * size
    nearest = frame.limit + uncertain
    towards = wp.vec3d()  # from a to b, where they were nearest so far
    waiting_a = Waiting()
    waiting_b = Waiting()
    count = int(1)
    if state == BAD_POSE:
        count = 0
    while count > 0:
        count -= 1
        i = waiting_a[count]
        j = waiting_b[count]
        a = shapes.nodes[base_a[NODE] + i]
        b = shapes.nodes[base_b[NODE] + j]
        if boxes_at_least(a, b, frame.turn, frame.shift, uncertain, frame.limit)[0] < frame.limit:
            if a.right < 0 and b.right < 0:
                face_a = base_a[FACE] + a.triangle
                face_b = base_b[FACE] + b.triangle
                corners_a = triangle_of(shapes, face_a)
                corners_b = placed_triangle(frame, triangle_of(shapes, face_b))
                along = gap_along(corners_a, corners_b, towards)
                if along < nearest:
                    points = nearest_of_triangles(corners_a, corners_b)
                    offset = points.weights_b * corners_b - points.weights_a * corners_a
                    reached = wp.length(offset)
                    if reached < nearest:
                        nearest = reached
                        if reached > frame.tiny:
                            towards = offset / reached
                if along <= frame.tiny and state == APART:
                    if triangles_meet(corners_a, corners_b) == MEET:
                        state = int(OVERLAP)
                compare_features(shapes, frame, pair, base_a, base_b, face_a, face_b, shard, out)
            elif opens_first(a, b):
                waiting_a[count] = a.right
                waiting_b[count] = j
                waiting_a[count + 1] = i + 1
                waiting_b[count + 1] = j
                count += 2
            else:
                waiting_a[count] = i
                waiting_b[count] = b.right
                waiting_a[count + 1] = i
                waiting_b[count + 1] = j + 1
                count += 2
    nearest = wp.clamp(nearest - uncertain, wp.float64(0.0), frame.limit)
    if state != APART:
        nearest = wp.float64(0.0)
    least[pair] = nearest
    status[pair] = state
    after = out.counts[shard * COUNTER_STRIDE]
    begin[pair] = -1
    if after <= wp.int64(out.capacity):
        begin[pair] = shard * out.capacity + int(before)
        amount[pair] = int(after - before)

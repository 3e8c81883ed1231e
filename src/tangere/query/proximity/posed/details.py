"""Points, normals, gaps and features of contacts, from their keys: what was found, told in the world frame."""

from __future__ import annotations

import warp as wp

from tangere.query.proximity.posed.feature_keys import (
    EDGE_EDGE,
    EDGE_VERTEX,
    FACE_VERTEX,
    VERTEX_FACE,
    VERTEX_VERTEX,
    key_parts,
)
from tangere.query.proximity.posed.narrow_phase import touch_of
from tangere.query.proximity.posed.shapes import EDGE, FACE, VERTEX, ShapeTables
from tangere.query.proximity.posed.traversal import PairQueries, pair_frame
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Kinds of `PosedColumns`.
VERTEX_OF_A, VERTEX_OF_B, EDGES = wp.constant(0), wp.constant(1), wp.constant(2)


@wp.struct
class PosedColumns:
    """Contacts of pairs of bodies as columns, in the world frame; only as many rows as there are contacts count."""

    pair: wp.array[wp.int32]  # which of the pairs asked about
    kind: wp.array[wp.int32]  # 0: vertex of a on a triangle of b, 1: vertex of b on a triangle of a, 2: two edges
    feature_a: wp.array[wp.int32]  # vertex, edge or triangle, as the mesh counts them
    feature_b: wp.array[wp.int32]
    point_a: wp.array[wp.vec3d]  # [m]
    point_b: wp.array[wp.vec3d]
    normal: wp.array[wp.vec3d]  # unit, pushes a from b
    gap: wp.array[wp.float64]  # [m]
    weights: wp.array[wp.vec4d]  # of vertex and corners (1, w0, w1, w2), or of the ends of both edges
    key: wp.array[wp.int64]


@wp.kernel
def describe_contacts(first: int, shapes: ShapeTables, queries: PairQueries, columns: PosedColumns):
    """Everything else about each contact, from its pair, its key and the triangle in `feature_b`."""
    k = first + wp.tid()
    pair = columns.pair[k]
    parts = key_parts(columns.key[k])
    code = parts[0]
    one = parts[1]
    other = parts[2]
    bodies = queries.pairs[pair]
    base_a = shapes.base[shapes.shape[bodies[0]]]
    base_b = shapes.base[shapes.shape[bodies[1]]]
    frame = pair_frame(shapes, queries, pair)
    # Numbers of the mesh in the columns, of all shapes for the features.
    kind = int(EDGES)
    feature_a = one
    feature_b = other
    first_one = base_a[VERTEX]
    first_other = base_b[EDGE]
    if code == VERTEX_FACE:
        kind = int(VERTEX_OF_A)
        other = columns.feature_b[k]
        feature_b = other
        first_other = base_b[FACE]
    elif code == FACE_VERTEX:
        kind = int(VERTEX_OF_B)
        other = columns.feature_b[k]
        feature_a = other
        feature_b = one
        first_one = base_b[VERTEX]
        first_other = base_a[FACE]
    elif code == EDGE_EDGE:
        first_one = base_a[EDGE]
    elif code == EDGE_VERTEX:
        first_one = base_b[VERTEX]
        first_other = base_a[EDGE]
        feature_a = other
        feature_b = shapes.vertex_edge[first_one + one] - base_b[EDGE]
    else:
        feature_a = shapes.vertex_edge[first_one + one] - base_a[EDGE]
        if code == VERTEX_VERTEX:
            first_other = base_b[VERTEX]
            feature_b = shapes.vertex_edge[first_other + other] - base_b[EDGE]
    touch = touch_of(shapes, frame, code, first_one + one, first_other + other)
    rotation = queries.rotation[bodies[0]]
    origin = queries.origin[bodies[0]]
    columns.kind[k] = kind
    columns.feature_a[k] = feature_a
    columns.feature_b[k] = feature_b
    columns.point_a[k] = rotation * touch.point_a + origin
    columns.point_b[k] = rotation * touch.point_b + origin
    columns.normal[k] = rotation * touch.normal
    columns.gap[k] = touch.gap
    columns.weights[k] = touch.weights

"""Points, normals, gaps and features of contacts: what was found, told in the world frame."""

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
from tangere.query.proximity.posed.leaf import Appended
from tangere.query.proximity.posed.normal_cones import within_cones
from tangere.query.proximity.posed.shapes import EDGE, VERTEX, ShapeTables
from tangere.query.proximity.posed.traversal import PairQueries
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
    push: wp.array[wp.vec3d]  # unit: the same in the normal cones of both features, which the normal may be beside
    gap: wp.array[wp.float64]  # [m]
    weights: wp.array[wp.vec4d]  # of vertex and corners (1, w0, w1, w2), or of the ends of both edges
    key: wp.array[wp.int64]


@wp.kernel
def describe_contacts(first: int, shapes: ShapeTables, queries: PairQueries, found: Appended, columns: PosedColumns):
    """Everything else about each contact, from its pair, its key and, in `feature_b`, the place where it was found."""
    k = first + wp.tid()
    pair = columns.pair[k]
    place = columns.feature_b[k]
    parts = key_parts(columns.key[k])
    code = parts[0]
    bodies = queries.pairs[pair]
    base_a = shapes.base[shapes.shape[bodies[0]]]
    base_b = shapes.base[shapes.shape[bodies[1]]]
    kind = int(EDGES)
    feature_a = parts[1]
    feature_b = parts[2]
    if code == VERTEX_FACE:
        kind = int(VERTEX_OF_A)
        feature_b = found.faces[place]
    elif code == FACE_VERTEX:
        kind = int(VERTEX_OF_B)
        feature_a = found.faces[place]
        feature_b = parts[1]
    elif code == EDGE_VERTEX:
        feature_a = parts[2]
        feature_b = shapes.vertex_edge[base_b[VERTEX] + parts[1]] - base_b[EDGE]
    elif code != EDGE_EDGE:
        feature_a = shapes.vertex_edge[base_a[VERTEX] + parts[1]] - base_a[EDGE]
        if code == VERTEX_VERTEX:
            feature_b = shapes.vertex_edge[base_b[VERTEX] + parts[2]] - base_b[EDGE]
    touch = found.touches[place]
    rotation = queries.rotation[bodies[0]]
    origin = queries.origin[bodies[0]]
    push = touch.normal
    if kind == EDGES:
        turn = wp.transpose(rotation) * queries.rotation[bodies[1]]
        if code == EDGE_EDGE:
            push = within_cones(shapes, -1, base_a[EDGE] + parts[1], -1, base_b[EDGE] + parts[2], turn, push)
        elif code == VERTEX_VERTEX:
            push = within_cones(shapes, base_a[VERTEX] + parts[1], -1, base_b[VERTEX] + parts[2], -1, turn, push)
        elif code == EDGE_VERTEX:
            push = within_cones(shapes, -1, base_a[EDGE] + parts[2], base_b[VERTEX] + parts[1], -1, turn, push)
        else:
            push = within_cones(shapes, base_a[VERTEX] + parts[1], -1, -1, base_b[EDGE] + parts[2], turn, push)
    columns.kind[k] = kind
    columns.feature_a[k] = feature_a
    columns.feature_b[k] = feature_b
    columns.point_a[k] = rotation * touch.point_a + origin
    columns.point_b[k] = rotation * touch.point_b + origin
    columns.normal[k] = rotation * touch.normal
    columns.push[k] = rotation * push
    columns.gap[k] = touch.gap
    columns.weights[k] = touch.weights

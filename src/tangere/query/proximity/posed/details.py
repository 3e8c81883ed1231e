"""Points, normals, gaps and features of contacts, from their keys: what was found, told in the world frame."""

from __future__ import annotations

import warp as wp

from tangere.query.proximity.posed.feature_keys import (
    EDGE_EDGE,
    EDGE_VERTEX,
    FACE_VERTEX,
    VERTEX_EDGE,
    VERTEX_FACE,
    key_parts,
)
from tangere.query.proximity.posed.narrow_phase import (
    Touch,
    edge_on_edge,
    vertex_on_edge,
    vertex_on_face,
    vertex_on_vertex,
)
from tangere.query.proximity.posed.shapes import EDGE, FACE, VERTEX, ShapeTables
from tangere.query.proximity.posed.traversal import TINY, Appended, PairQueries, coordinate_bound, pair_frame
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
def gather_contacts(
    first: int,
    found: Appended,
    begin: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    columns: PosedColumns,
):
    """The keys of each pair of bodies where its contacts belong; a triangle goes where the second feature will be."""
    pair = first + wp.tid()
    for k in range(starts[pair], starts[pair + 1]):
        place = begin[pair] + k - starts[pair]
        columns.pair[k] = pair
        columns.key[k] = found.keys[place]
        columns.feature_b[k] = found.faces[place]


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
    frame = pair_frame(queries, pair)
    frame.tiny = TINY * coordinate_bound(shapes, frame, base_a, base_b)
    touch = Touch()
    kind = int(EDGES)
    feature_a = int(0)
    feature_b = int(0)
    if code == VERTEX_FACE:
        kind = int(VERTEX_OF_A)
        feature_a = one
        feature_b = columns.feature_b[k]
        touch = vertex_on_face(shapes, frame, base_a[VERTEX] + one, base_b[FACE] + feature_b, False)
    elif code == FACE_VERTEX:
        kind = int(VERTEX_OF_B)
        feature_a = columns.feature_b[k]
        feature_b = one
        touch = vertex_on_face(shapes, frame, base_b[VERTEX] + one, base_a[FACE] + feature_a, True)
    elif code == EDGE_EDGE:
        feature_a = one
        feature_b = other
        touch = edge_on_edge(shapes, frame, base_a[EDGE] + one, base_b[EDGE] + other)
    elif code == VERTEX_EDGE:
        feature_a = shapes.vertex_edge[base_a[VERTEX] + one] - base_a[EDGE]
        feature_b = other
        touch = vertex_on_edge(shapes, frame, base_a[VERTEX] + one, base_b[EDGE] + other, False)
    elif code == EDGE_VERTEX:
        feature_a = other
        feature_b = shapes.vertex_edge[base_b[VERTEX] + one] - base_b[EDGE]
        touch = vertex_on_edge(shapes, frame, base_b[VERTEX] + one, base_a[EDGE] + other, True)
    else:
        feature_a = shapes.vertex_edge[base_a[VERTEX] + one] - base_a[EDGE]
        feature_b = shapes.vertex_edge[base_b[VERTEX] + other] - base_b[EDGE]
        touch = vertex_on_vertex(shapes, frame, base_a[VERTEX] + one, base_b[VERTEX] + other)
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

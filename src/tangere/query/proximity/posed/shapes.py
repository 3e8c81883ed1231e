"""The shapes of bodies laid out for kernels: trees, vertices, edges, triangles and their features, one after the other.

Numbers in the tables count through all shapes; those of a body's own mesh are less by where its shape begins (`base`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbNode, ObbTree, refuse_tiny
from tangere.query.proximity.posed.features import MeshFeatures
from tangere.runtime import SOUND
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

# Columns of `base`: the first node, vertex, edge and triangle of a shape.
NODE = wp.constant(0)
VERTEX = wp.constant(1)
EDGE = wp.constant(2)
FACE = wp.constant(3)


@wp.struct
class ShapeTables:
    """All distinct shapes, and which of them each body has."""

    shape: wp.array[wp.int32]  # of each body
    base: wp.array[wp.vec4i]  # of each shape
    nodes: wp.array[ObbNode]  # children and triangles count from the shape's own first
    vertices: wp.array[wp.vec3d]
    corners: wp.array[wp.vec3d]  # of triangle i at 3 i, 3 i + 1, 3 i + 2: what lies together is read together
    faces: wp.array[wp.vec3i]  # vertices of each triangle
    face_edges: wp.array[wp.vec3i]  # edges (v0, v1), (v1, v2), (v2, v0) of each triangle
    owns: wp.array[wp.int32]  # bits, see `features`
    patch: wp.array[wp.int32]  # as the mesh counts its triangles
    edges: wp.array[wp.vec2i]
    vertex_edge: wp.array[wp.int32]  # an edge of each vertex that is a feature, else -1
    vertex_first: wp.array[wp.int32]
    vertex_tangents: wp.array[wp.vec3d]
    vertex_ring: wp.array[wp.int32]  # the edge that each of these tangents is along
    edge_first: wp.array[wp.int32]
    edge_tangents: wp.array[wp.vec3d]


def distinct_meshes(meshes: Sequence[Mesh]) -> list[Mesh]:
    """Each mesh once, in the order in which they first come."""
    return list({id(mesh): mesh for mesh in meshes}.values())


def shape_tables(meshes: Sequence[Mesh], device: wp.Device) -> Any:
    """`ShapeTables` of bodies: the tables of each distinct mesh stand there once."""
    distinct = distinct_meshes(meshes)
    number = {id(mesh): k for k, mesh in enumerate(distinct)}
    for mesh in distinct:
        refuse_tiny(mesh)
    trees = [ObbTree.of(mesh, "cpu") for mesh in distinct]
    features = [MeshFeatures.of(mesh) for mesh in distinct]
    node = _starts([len(tree.nodes) for tree in trees])
    vertex, edge = _starts([len(mesh.vertices) for mesh in distinct]), _starts([len(mesh.edges) for mesh in distinct])
    face = _starts([len(mesh.faces) for mesh in distinct])
    rings = _starts([len(each.vertex_tangents) for each in features])
    sides = _starts([len(each.edge_tangents) for each in features])

    def joined(parts: list[np.ndarray], dtype: Any) -> wp.array:
        return wp.array(np.concatenate(parts), dtype=dtype, device=device)

    def counted(parts: list[np.ndarray], starts: np.ndarray, dtype: Any) -> wp.array:
        """Numbers that count through all shapes; -1 stays."""
        moved = [np.where(part < 0, part, part + start) for part, start in zip(parts, starts, strict=False)]
        return joined([part.astype(np.int32) for part in moved], dtype)

    def ranges(parts: list[np.ndarray], starts: np.ndarray) -> wp.array:
        rows = [part[:-1] + start for part, start in zip(parts, starts, strict=False)]
        return joined([np.concatenate([*rows, starts[-1:]]).astype(np.int32)], wp.int32)

    tables: Any = ShapeTables()
    tables.shape = wp.array([number[id(mesh)] for mesh in meshes], dtype=wp.int32, device=device)
    bases = np.stack([node, vertex, edge, face], axis=1)[:-1].astype(np.int32)
    tables.base = wp.array(bases, dtype=wp.vec4i, device=device)
    tables.nodes = joined([tree.nodes.numpy() for tree in trees], ObbNode)
    tables.vertices = joined([mesh.vertices for mesh in distinct], wp.vec3d)
    tables.corners = joined([tree.corners.numpy() for tree in trees], wp.vec3d)
    tables.faces = counted([mesh.faces for mesh in distinct], vertex, wp.vec3i)
    tables.face_edges = counted([mesh.topology.face_edges for mesh in distinct], edge, wp.vec3i)
    tables.owns = joined([each.owns for each in features], wp.int32)
    tables.patch = joined([each.patch for each in features], wp.int32)
    tables.edges = counted([mesh.edges for mesh in distinct], vertex, wp.vec2i)
    tables.vertex_edge = counted([each.vertex_edge for each in features], edge, wp.int32)
    tables.vertex_first = ranges([each.vertex_first for each in features], rings)
    tables.vertex_tangents = joined([each.vertex_tangents for each in features], wp.vec3d)
    tables.vertex_ring = counted([each.vertex_ring for each in features], edge, wp.int32)
    tables.edge_first = ranges([each.edge_first for each in features], sides)
    tables.edge_tangents = joined([each.edge_tangents for each in features], wp.vec3d)
    return tables


def _starts(sizes: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

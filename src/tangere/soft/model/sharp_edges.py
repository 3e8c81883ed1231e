"""Where surfaces are sharp: only there may contacts push in directions that no face has."""

from __future__ import annotations

import numpy as np

from tangere.shape.mesh import Mesh

#: Edges between faces whose normals differ by more than this are sharp [degrees].
SHARP = 30.0


def sharp_edges(mesh: Mesh) -> np.ndarray:
    """Numbers of the edges that are rims, or where faces meet at an angle."""
    around = mesh.topology.edge_faces
    sides = np.diff(around.offsets)
    pair = np.flatnonzero(sides == 2)
    one, other = (mesh.face_normals[around.indices[around.offsets[pair] + k]] for k in range(2))
    sharp = sides != 2
    sharp[pair] = np.einsum("ij,ij->i", one, other) < np.cos(np.radians(SHARP))
    return np.flatnonzero(sharp).astype(np.int32)


def smooth_vertices(mesh: Mesh) -> np.ndarray:
    """(v,) whether no edge at a vertex is sharp."""
    smooth = np.ones(len(mesh.vertices), bool)
    smooth[mesh.edges[sharp_edges(mesh)]] = False
    return smooth

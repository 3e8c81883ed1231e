"""Tetrahedral meshes: solids cut into tetrahedra."""

from tangere.shape.tets.solids import solid_block, solid_knot, solid_torus
from tangere.shape.tets.tet_mesh import TetMesh

__all__ = [
    "TetMesh",
    "solid_block",
    "solid_knot",
    "solid_torus",
]

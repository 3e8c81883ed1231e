"""Tetrahedral meshes: solids cut into tetrahedra."""

from tangere.shape.tets.solids import solid_block, solid_knot, solid_torus
from tangere.shape.tets.tet_mesh import TetMesh, TetReport

__all__ = [
    "TetMesh",
    "TetReport",
    "solid_block",
    "solid_knot",
    "solid_torus",
]

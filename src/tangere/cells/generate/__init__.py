"""Maps to start from: grids, and surfaces and volumes of meshes and of files."""

from tangere.cells.generate.grids import hex_grid, quad_grid, tet_grid, triangle_grid
from tangere.cells.generate.meshes import map_of_file, map_of_mesh, map_of_meshio

__all__ = [
    "hex_grid",
    "map_of_file",
    "map_of_mesh",
    "map_of_meshio",
    "quad_grid",
    "tet_grid",
    "triangle_grid",
]

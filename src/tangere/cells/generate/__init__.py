"""Maps to start from: grids, surfaces of meshes, files."""

from tangere.cells.generate.files import load_map, map_of_meshio
from tangere.cells.generate.grids import hex_grid, map_of_mesh, quad_grid, tet_grid, triangle_grid

__all__ = [
    "hex_grid",
    "load_map",
    "map_of_mesh",
    "map_of_meshio",
    "quad_grid",
    "tet_grid",
    "triangle_grid",
]

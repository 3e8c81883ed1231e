"""Maps to start from: grids, and surfaces and volumes of meshes."""

from tangere.cells.generate.grids import hex_grid, map_of_mesh, map_of_meshio, quad_grid, tet_grid, triangle_grid

__all__ = [
    "hex_grid",
    "map_of_mesh",
    "map_of_meshio",
    "quad_grid",
    "tet_grid",
    "triangle_grid",
]

"""Combinatorial maps: cells of the plane, of surfaces and of space that split and merge."""

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.generate import hex_grid, map_of_mesh, quad_grid, tet_grid, triangle_grid
from tangere.cells.maps.hanging import HangingNodes, constraint_matrix, hanging_nodes
from tangere.cells.maps.importing import load_map, map_of_meshio
from tangere.cells.maps.levels import ExplicitLevels, LevelLinks, explicit_levels, level_links
from tangere.cells.maps.neighbourhood import ancestors, ring
from tangere.cells.maps.refining import merge, split
from tangere.cells.maps.traversers import Orbits, adjacent, incident, is_border, orbits
from tangere.cells.maps.visibility import blind_cells

__all__ = [
    "CellMap",
    "ExplicitLevels",
    "HangingNodes",
    "LevelLinks",
    "Orbits",
    "adjacent",
    "ancestors",
    "blind_cells",
    "constraint_matrix",
    "explicit_levels",
    "hanging_nodes",
    "hex_grid",
    "incident",
    "is_border",
    "level_links",
    "load_map",
    "map_of_mesh",
    "map_of_meshio",
    "merge",
    "orbits",
    "quad_grid",
    "ring",
    "split",
    "tet_grid",
    "triangle_grid",
]

"""Combinatorial maps: cells of the plane, of surfaces and of space that split and merge."""

from tangere.cells.maps.arrays import WALL, MapArrays, is_wall
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.construction import (
    half_faces_of_polygons,
    half_faces_of_polyhedra,
    link_polygons,
    link_polyhedra,
)
from tangere.cells.maps.convexity import has_convex_border
from tangere.cells.maps.levels import LevelLinks, level_links
from tangere.cells.maps.neighbourhood import ancestors, ring
from tangere.cells.maps.refinement.hanging_nodes import HangingNodes, constraint_matrix, hanging_nodes
from tangere.cells.maps.refinement.split_merge import may_merge, merge, replace_merged_darts, split
from tangere.cells.maps.rings import RingTable
from tangere.cells.maps.traversers import Orbits, adjacent, incident, is_border, orbits
from tangere.cells.maps.visibility import cells_not_star_shaped

__all__ = [
    "WALL",
    "CellMap",
    "HangingNodes",
    "LevelLinks",
    "MapArrays",
    "Orbits",
    "RingTable",
    "adjacent",
    "ancestors",
    "cells_not_star_shaped",
    "constraint_matrix",
    "half_faces_of_polygons",
    "half_faces_of_polyhedra",
    "hanging_nodes",
    "has_convex_border",
    "incident",
    "is_border",
    "is_wall",
    "level_links",
    "link_polygons",
    "link_polyhedra",
    "may_merge",
    "merge",
    "orbits",
    "replace_merged_darts",
    "ring",
    "split",
]

"""Combinatorial maps: cells of the plane, of surfaces and of space that split and merge."""

from tangere.cells.maps.arrays import WALL, MapArrays, is_wall
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.levels import ExplicitLevels, LevelLinks, explicit_levels, level_links
from tangere.cells.maps.neighbourhood import ancestors, ring
from tangere.cells.maps.refinement.hanging_nodes import HangingNodes, constraint_matrix, hanging_nodes
from tangere.cells.maps.refinement.split_merge import follow_heirs, merge, split
from tangere.cells.maps.rings import RingTable
from tangere.cells.maps.traversers import Orbits, adjacent, incident, is_border, orbits
from tangere.cells.maps.visibility import blind_cells

__all__ = [
    "WALL",
    "CellMap",
    "ExplicitLevels",
    "HangingNodes",
    "LevelLinks",
    "MapArrays",
    "Orbits",
    "RingTable",
    "adjacent",
    "ancestors",
    "blind_cells",
    "constraint_matrix",
    "explicit_levels",
    "follow_heirs",
    "hanging_nodes",
    "incident",
    "is_border",
    "is_wall",
    "level_links",
    "merge",
    "orbits",
    "ring",
    "split",
]

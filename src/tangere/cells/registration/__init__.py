"""Who is present in each cell and who is near: points, segments and triangles, as they move and cells adapt."""

from tangere.cells.registration.counting_sort import CellGroups, first_at_least, group_by_cell
from tangere.cells.registration.criteria import Criterion, Density, NearPoint, adapt
from tangere.cells.registration.crossings import (
    CELLS_OF_ENDS,
    MARCH_ALWAYS,
    MARCH_UNLESS_ONE_CELL,
    NO_CELLS,
    cross_segments,
    write_row,
)
from tangere.cells.registration.placement import place_in_map
from tangere.cells.registration.proximity import in_ring, in_ring_at, nearest, things_around
from tangere.cells.registration.radius_pairs import pairs_within
from tangere.cells.registration.registration import Registration
from tangere.cells.registration.retriangulation import divide_large_triangles, large_triangles

__all__ = [
    "CELLS_OF_ENDS",
    "MARCH_ALWAYS",
    "MARCH_UNLESS_ONE_CELL",
    "NO_CELLS",
    "CellGroups",
    "Criterion",
    "Density",
    "NearPoint",
    "Registration",
    "adapt",
    "cross_segments",
    "divide_large_triangles",
    "first_at_least",
    "group_by_cell",
    "in_ring",
    "in_ring_at",
    "large_triangles",
    "nearest",
    "pairs_within",
    "place_in_map",
    "things_around",
    "write_row",
]

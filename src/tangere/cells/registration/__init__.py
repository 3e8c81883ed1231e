"""Who is present in each cell and who is near: points, segments and triangles, as they move and cells adapt."""

from tangere.cells.registration.counting_sort import CellGroups, first_at_least, group
from tangere.cells.registration.criteria import Criterion, Density, NearPoint, adapt
from tangere.cells.registration.crossings import ALONE, ENDS, MARCH, NOTHING, cross, row_of
from tangere.cells.registration.placement import placed
from tangere.cells.registration.proximity import around, in_ring, in_ring_at, nearest
from tangere.cells.registration.radius_pairs import within
from tangere.cells.registration.registration import Registration
from tangere.cells.registration.retriangulation import divide_large_triangles, large_triangles

__all__ = [
    "ALONE",
    "ENDS",
    "MARCH",
    "NOTHING",
    "CellGroups",
    "Criterion",
    "Density",
    "NearPoint",
    "Registration",
    "adapt",
    "around",
    "cross",
    "divide_large_triangles",
    "first_at_least",
    "group",
    "in_ring",
    "in_ring_at",
    "large_triangles",
    "nearest",
    "placed",
    "row_of",
    "within",
]

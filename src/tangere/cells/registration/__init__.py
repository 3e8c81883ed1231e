"""Who is present in each cell and who is near: points, segments and triangles, as they move and cells adapt."""

from tangere.cells.registration.cell_lists import CellListEntries
from tangere.cells.registration.criteria import Criterion, NearPoint, adapt
from tangere.cells.registration.proximity import in_ring, in_ring_at, nearest, things_around
from tangere.cells.registration.radius_pairs import pairs_within
from tangere.cells.registration.registration import Registration
from tangere.cells.registration.retriangulation import divide_large_triangles, large_triangles

__all__ = [
    "CellListEntries",
    "Criterion",
    "NearPoint",
    "Registration",
    "adapt",
    "divide_large_triangles",
    "in_ring",
    "in_ring_at",
    "large_triangles",
    "nearest",
    "pairs_within",
    "things_around",
]

"""Who is present in each cell and who is near: points, segments and triangles, as they move and cells adapt."""

from tangere.cells.registration.criteria import Criterion, Density, NearPoint, adapt
from tangere.cells.registration.groups import Groups, group
from tangere.cells.registration.proximity import around, in_ring, in_ring_at, nearest
from tangere.cells.registration.registration import Registration
from tangere.cells.registration.retriangulating import divide_large_triangles, large_triangles
from tangere.cells.registration.within import within

__all__ = [
    "Criterion",
    "Density",
    "Groups",
    "NearPoint",
    "Registration",
    "adapt",
    "around",
    "divide_large_triangles",
    "group",
    "in_ring",
    "in_ring_at",
    "large_triangles",
    "nearest",
    "within",
]

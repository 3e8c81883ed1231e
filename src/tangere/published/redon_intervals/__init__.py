"""The second engine of Redon's thesis: interval arithmetic over oriented boxes; smooth surfaces."""

from tangere.published.redon_intervals.meshes import IntervalFront, first_contact, first_contacts_by_intervals
from tangere.published.redon_intervals.options import IntervalOptions
from tangere.published.redon_intervals.parametric_surfaces import BezierSurface, TorusSurface
from tangere.published.redon_intervals.primitives import edge_edge_by_intervals, vertex_face_by_intervals
from tangere.published.redon_intervals.surfaces import SurfaceContact, surfaces_first_contact

__all__ = [
    "BezierSurface",
    "IntervalFront",
    "IntervalOptions",
    "SurfaceContact",
    "TorusSurface",
    "edge_edge_by_intervals",
    "first_contact",
    "first_contacts_by_intervals",
    "surfaces_first_contact",
    "vertex_face_by_intervals",
]

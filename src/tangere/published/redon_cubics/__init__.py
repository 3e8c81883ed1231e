"""The first engine of Redon's thesis: tangent screws, cubics, sphere trees."""

from tangere.published.redon_cubics.engine import CubicSearch, first_contact_by_cubics, search
from tangere.published.redon_cubics.features import edge_edge_times, face_vertex_times, vertex_face_times
from tangere.published.redon_cubics.switches import Counts, Switches

__all__ = [
    "Counts",
    "CubicSearch",
    "Switches",
    "edge_edge_times",
    "face_vertex_times",
    "first_contact_by_cubics",
    "search",
    "vertex_face_times",
]

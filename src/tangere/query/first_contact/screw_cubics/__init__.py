"""The first engine of the thesis: tangent screws, cubics, sphere trees (specs/redon-rigid-ccd-and-dynamics C4-C6)."""

from tangere.query.first_contact.screw_cubics.engine import Search, first_contact_by_cubics, search
from tangere.query.first_contact.screw_cubics.features import edge_edge_times, face_vertex_times, vertex_face_times
from tangere.query.first_contact.screw_cubics.switches import Counts, Switches

__all__ = [
    "Counts",
    "Search",
    "Switches",
    "edge_edge_times",
    "face_vertex_times",
    "first_contact_by_cubics",
    "search",
    "vertex_face_times",
]

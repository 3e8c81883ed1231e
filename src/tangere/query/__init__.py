"""The questions. Raw batches of primitives live here; queries of whole bodies are on the face of the library."""

from tangere.query.contacts import Contacts, Kind, Status
from tangere.query.first_contact import (
    FirstContact,
    FirstContacts,
    Options,
    Reading,
    edge_edge,
    robust_filter,
    robust_triangles,
    triangle_triangle,
    vertex_edge,
    vertex_face,
    vertex_vertex,
)

__all__ = [
    "Contacts",
    "FirstContact",
    "FirstContacts",
    "Kind",
    "Options",
    "Reading",
    "Status",
    "edge_edge",
    "robust_filter",
    "robust_triangles",
    "triangle_triangle",
    "vertex_edge",
    "vertex_face",
    "vertex_vertex",
]

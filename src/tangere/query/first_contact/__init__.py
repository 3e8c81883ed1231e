"""When do they first touch?"""

from tangere.query.first_contact.dispatch import all_contacts, first_contact
from tangere.query.first_contact.edge_edge import edge_edge
from tangere.query.first_contact.meshes import Candidates, candidates
from tangere.query.first_contact.options import Options
from tangere.query.first_contact.published import Reading
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.robust import robust_filter, robust_triangles
from tangere.query.first_contact.triangle_triangle import triangle_triangle
from tangere.query.first_contact.vertex_edge import vertex_edge
from tangere.query.first_contact.vertex_face import vertex_face
from tangere.query.first_contact.vertex_vertex import vertex_vertex

__all__ = [
    "Candidates",
    "FirstContact",
    "FirstContacts",
    "Options",
    "Reading",
    "all_contacts",
    "candidates",
    "edge_edge",
    "first_contact",
    "robust_filter",
    "robust_triangles",
    "triangle_triangle",
    "vertex_edge",
    "vertex_face",
    "vertex_vertex",
]

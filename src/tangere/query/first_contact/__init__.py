"""When do they first touch?"""

from tangere.query.first_contact.deforming.api import Candidates, candidates
from tangere.query.first_contact.dispatch import all_contacts, first_contact
from tangere.query.first_contact.options import Options
from tangere.query.first_contact.primitives.edge_edge import edge_edge
from tangere.query.first_contact.primitives.triangle_triangle import triangle_triangle
from tangere.query.first_contact.primitives.vertex_edge import vertex_edge
from tangere.query.first_contact.primitives.vertex_face import vertex_face
from tangere.query.first_contact.primitives.vertex_vertex import vertex_vertex
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.scene import first_contact_of_scene

__all__ = [
    "Candidates",
    "FirstContact",
    "FirstContacts",
    "Options",
    "all_contacts",
    "candidates",
    "edge_edge",
    "first_contact",
    "first_contact_of_scene",
    "triangle_triangle",
    "vertex_edge",
    "vertex_face",
    "vertex_vertex",
]

"""When do they first touch?"""

from tangere.query.first_contact.api import all_contacts, candidates, first_contact
from tangere.query.first_contact.options import Accuracy, DeformingOptions, RigidOptions, SceneOptions
from tangere.query.first_contact.primitives.edge_edge import edge_edge
from tangere.query.first_contact.primitives.triangle_triangle import triangle_triangle
from tangere.query.first_contact.primitives.vertex_edge import vertex_edge
from tangere.query.first_contact.primitives.vertex_face import vertex_face
from tangere.query.first_contact.primitives.vertex_vertex import vertex_vertex
from tangere.query.first_contact.result import Candidates, FirstContact, FirstContacts

__all__ = [
    "Accuracy",
    "Candidates",
    "DeformingOptions",
    "FirstContact",
    "FirstContacts",
    "RigidOptions",
    "SceneOptions",
    "all_contacts",
    "candidates",
    "edge_edge",
    "first_contact",
    "triangle_triangle",
    "vertex_edge",
    "vertex_face",
    "vertex_vertex",
]

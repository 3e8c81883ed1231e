"""The questions. Raw batches of primitives live here; queries of whole bodies are on the face of the library."""

from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.dispatch import register, supported
from tangere.query.engines import ENGINES as _ENGINES
from tangere.query.first_contact.engines import ENGINES as _ENGINES_OF_CONTACT
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.primitives.edge_edge import edge_edge
from tangere.query.first_contact.primitives.triangle_triangle import triangle_triangle
from tangere.query.first_contact.primitives.vertex_edge import vertex_edge
from tangere.query.first_contact.primitives.vertex_face import vertex_face
from tangere.query.first_contact.primitives.vertex_vertex import vertex_vertex
from tangere.query.first_contact.result import FirstContact, FirstContacts

__all__ = [
    "Accuracy",
    "Contacts",
    "FirstContact",
    "FirstContacts",
    "Kind",
    "Status",
    "edge_edge",
    "supported",
    "triangle_triangle",
    "vertex_edge",
    "vertex_face",
    "vertex_vertex",
]

for _question, _named in (_ENGINES | _ENGINES_OF_CONTACT).items():
    register(_question, _named)

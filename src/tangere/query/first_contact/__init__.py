"""When do they first touch?"""

from typing import TYPE_CHECKING, Any

from tangere.query.first_contact.api import all_contacts, candidates, first_contact
from tangere.query.first_contact.options import Accuracy, DeformingOptions, RigidOptions, SceneOptions
from tangere.query.first_contact.primitives.edge_edge import edge_edge
from tangere.query.first_contact.primitives.triangle_triangle import triangle_triangle
from tangere.query.first_contact.primitives.vertex_edge import vertex_edge
from tangere.query.first_contact.primitives.vertex_face import vertex_face
from tangere.query.first_contact.primitives.vertex_vertex import vertex_vertex
from tangere.query.first_contact.result import Candidates, FirstContact, FirstContacts

if TYPE_CHECKING:
    from tangere.query.first_contact.rigid.prepared import PreparedAnswer, PreparedFirstContact

__all__ = [
    "Accuracy",
    "Candidates",
    "DeformingOptions",
    "FirstContact",
    "FirstContacts",
    "PreparedAnswer",
    "PreparedFirstContact",
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


def __getattr__(name: str) -> Any:
    """What is prepared loads the engine of rigid parts, which others need not wait for."""
    if name not in ("PreparedAnswer", "PreparedFirstContact"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tangere.query.first_contact.rigid import prepared

    return getattr(prepared, name)

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
    from tangere.query.first_contact.rigid.api import rigid_first_contacts
    from tangere.query.first_contact.rigid.bodies import MovingBodies
    from tangere.query.first_contact.rigid.prepared import PreparedAnswer, PreparedFirstContact
    from tangere.query.first_contact.skin import Skin, mesh_without_skin

__all__ = [
    "Accuracy",
    "Candidates",
    "DeformingOptions",
    "FirstContact",
    "FirstContacts",
    "MovingBodies",
    "PreparedAnswer",
    "PreparedFirstContact",
    "RigidOptions",
    "SceneOptions",
    "Skin",
    "all_contacts",
    "candidates",
    "edge_edge",
    "first_contact",
    "mesh_without_skin",
    "rigid_first_contacts",
    "triangle_triangle",
    "vertex_edge",
    "vertex_face",
    "vertex_vertex",
]


#: What loads the engine of rigid parts, which others need not wait for.
_RIGID = ("MovingBodies", "PreparedAnswer", "PreparedFirstContact", "Skin", "mesh_without_skin", "rigid_first_contacts")


def __getattr__(name: str) -> Any:
    """What is about rigid parts is loaded when it is first asked for."""
    if name not in _RIGID:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tangere.query.first_contact import skin
    from tangere.query.first_contact.rigid import api, bodies, prepared

    return next(getattr(home, name) for home in (prepared, skin, bodies, api) if hasattr(home, name))

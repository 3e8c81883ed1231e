"""First contact of rigid meshes by conservative advancement of every pair of boxes."""

from tangere.query.first_contact.rigid.api import Counters, rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.query.first_contact.rigid.path import first_contact_along_path
from tangere.query.first_contact.rigid.scene import scene_first_contact

__all__ = [
    "Counters",
    "MovingBodies",
    "first_contact_along_path",
    "rigid_first_contact",
    "rigid_first_contacts",
    "scene_first_contact",
]

"""First contact of rigid meshes by conservative advancement of every pair of boxes."""

from tangere.query.first_contact.rigid.api import Counters, rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.query.first_contact.rigid.scene import first_contact_of_scene

__all__ = [
    "Counters",
    "MovingBodies",
    "first_contact_of_scene",
    "rigid_first_contact",
    "rigid_first_contacts",
]

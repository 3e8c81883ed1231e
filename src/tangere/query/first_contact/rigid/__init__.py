"""First contact of rigid meshes by certified advancement of every pair of boxes."""

from tangere.query.first_contact.rigid.bodies import Bodies
from tangere.query.first_contact.rigid.meshes import Counters, rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.scene import first_contact_of_scene

__all__ = ["Bodies", "Counters", "first_contact_of_scene", "rigid_first_contact", "rigid_first_contacts"]

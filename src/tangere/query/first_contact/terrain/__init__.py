"""When do moving bodies first touch the ground?"""

from tangere.query.first_contact.terrain.bodies import bodies_terrain

__all__ = ["bodies_terrain"]

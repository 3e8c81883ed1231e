"""When do moving analytic bodies first touch the ground?"""

from tangere.query.first_contact.heightfield.api import bodies_terrain

__all__ = [
    "bodies_terrain",
]

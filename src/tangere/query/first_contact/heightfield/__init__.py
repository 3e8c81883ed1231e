"""When do moving analytic bodies first touch the ground?"""

from tangere.query.first_contact.heightfield.api import heightfield_first_contact

__all__ = [
    "heightfield_first_contact",
]

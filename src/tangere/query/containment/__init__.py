"""Is one solid inside another, although their surfaces do not meet?"""

from tangere.query.containment.api import check_solid, contained_vertices, inside_contacts, outward, starting_inside
from tangere.query.containment.traversal import winding_about

__all__ = [
    "check_solid",
    "contained_vertices",
    "inside_contacts",
    "outward",
    "starting_inside",
    "winding_about",
]

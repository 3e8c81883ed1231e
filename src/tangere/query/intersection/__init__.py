"""Do they overlap, at one instant?"""

from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.query.intersection.api import intersecting_pairs, intersects
from tangere.query.intersection.cylinder_heightfield import touches

__all__ = [
    "edges_meet_faces",
    "intersecting_pairs",
    "intersects",
    "touches",
]

"""Do they overlap, at one instant?"""

from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.query.intersection.api import intersecting_pairs, intersects
from tangere.query.intersection.body_pairs import meeting_pairs
from tangere.query.intersection.cylinder_heightfield import touches
from tangere.query.intersection.posed import pose_of
from tangere.query.intersection.traversal import any_meeting

__all__ = [
    "any_meeting",
    "edges_meet_faces",
    "intersecting_pairs",
    "intersects",
    "meeting_pairs",
    "pose_of",
    "touches",
]

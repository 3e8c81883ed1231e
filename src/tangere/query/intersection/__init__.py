"""Do they overlap, at one instant?"""

from tangere.query.intersection.edge_face import edges_meet_faces
from tangere.query.intersection.meshes import intersecting_pairs, intersects

__all__ = ["edges_meet_faces", "intersecting_pairs", "intersects"]

"""Do they overlap, at one instant?"""

from tangere.query.intersection.edge_face import edges_meet_faces

__all__ = ["edges_meet_faces"]

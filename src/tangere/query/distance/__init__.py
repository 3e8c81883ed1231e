"""How far apart?"""

from tangere.query.distance.meshes import Distance, distance

__all__ = ["Distance", "distance"]

"""How far apart?"""

from tangere.query.distance.api import Distance, distance

__all__ = [
    "Distance",
    "distance",
]

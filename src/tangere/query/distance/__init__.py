"""How far apart?"""

from tangere.query.distance.api import Distance, distance
from tangere.query.distance.many_pairs import distances

__all__ = [
    "Distance",
    "distance",
    "distances",
]

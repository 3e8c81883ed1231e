"""How far apart?"""

from tangere.query.distance.api import distance
from tangere.query.distance.many_pairs import distances
from tangere.query.distance.result import Distance

__all__ = [
    "Distance",
    "distance",
    "distances",
]

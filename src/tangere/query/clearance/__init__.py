"""How near do moving rigid bodies come to each other, at the least?"""

from tangere.query.clearance.api import LeastClearance, least_clearance

__all__ = [
    "LeastClearance",
    "least_clearance",
]

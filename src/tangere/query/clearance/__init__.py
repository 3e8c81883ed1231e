"""How near do moving rigid bodies come to each other, at the least?"""

from tangere.query.clearance.api import LeastClearance, check_accuracy, least_clearance, search_clearance

__all__ = [
    "LeastClearance",
    "check_accuracy",
    "least_clearance",
    "search_clearance",
]

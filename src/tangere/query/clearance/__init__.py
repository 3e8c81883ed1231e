"""How near do moving rigid bodies come to each other, at the least?"""

from tangere.query.clearance.api import (
    LeastClearance,
    check_accuracy,
    ever_finer,
    least_clearance,
    reached_accuracy,
    search_clearance,
)

__all__ = [
    "LeastClearance",
    "check_accuracy",
    "ever_finer",
    "least_clearance",
    "reached_accuracy",
    "search_clearance",
]

"""Trackers of Pitiot's thesis that the main road does without: convex walk, crossing points, plain simplices."""

from tangere.published.pitiot_trackers.convex import Tracked, track_convex
from tangere.published.pitiot_trackers.crossing_points import CrossingPoints
from tangere.published.pitiot_trackers.simplices import Simplices

__all__ = [
    "CrossingPoints",
    "Simplices",
    "Tracked",
    "track_convex",
]

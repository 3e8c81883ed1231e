"""What Pitiot's thesis compares with and the main road does without: trackers, and tables of all levels of a map."""

from tangere.published.pitiot_trackers.convex import Tracks, track_convex
from tangere.published.pitiot_trackers.crossing_points import CrossingPoints
from tangere.published.pitiot_trackers.explicit_levels import ExplicitLevels, explicit_levels
from tangere.published.pitiot_trackers.simplices import Simplices

__all__ = [
    "CrossingPoints",
    "ExplicitLevels",
    "Simplices",
    "Tracks",
    "explicit_levels",
    "track_convex",
]

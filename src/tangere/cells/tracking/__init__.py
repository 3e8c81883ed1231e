"""Where points are and which cells their ways cross."""

from tangere.cells.tracking.convex import Tracked, track_convex
from tangere.cells.tracking.crossing_points import CrossingPoints
from tangere.cells.tracking.locate import Located, classify, locate
from tangere.cells.tracking.march import Moved, crossed, move
from tangere.cells.tracking.simplices import Simplices
from tangere.cells.tracking.surface import Glided, glide, on_surface

__all__ = [
    "CrossingPoints",
    "Glided",
    "Located",
    "Moved",
    "Simplices",
    "Tracked",
    "classify",
    "crossed",
    "glide",
    "locate",
    "move",
    "on_surface",
    "track_convex",
]

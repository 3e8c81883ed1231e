"""Two oriented boxes: do they overlap, and which axis separates them best."""

from tangere.geometry.obb.overlap import SKEW, BoxPair, boxes_apart
from tangere.geometry.obb.separating_axis import LONGEST, Separation, nearest_separation_of, separation_of, support

__all__ = [
    "LONGEST",
    "SKEW",
    "BoxPair",
    "Separation",
    "boxes_apart",
    "nearest_separation_of",
    "separation_of",
    "support",
]

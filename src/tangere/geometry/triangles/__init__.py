"""Two triangles at one instant: how far apart, and do they meet."""

from tangere.geometry.triangles.distance import nearest_of_triangles
from tangere.geometry.triangles.exact_intersection import UNKNOWN, side_of, triangles_meet_or_not, turn_of
from tangere.geometry.triangles.gap import (
    ClosestFeatures,
    Triangle,
    best_direction,
    closest_features,
    corner,
    feature_pair,
    gap_along,
    gap_vector,
    pierce,
    triangle_edge,
)
from tangere.geometry.triangles.intersection import (
    APART,
    MEET,
    UNSURE,
    common_point,
    edge_pierces,
    side,
    triangles_meet,
)

__all__ = [
    "APART",
    "MEET",
    "UNKNOWN",
    "UNSURE",
    "ClosestFeatures",
    "Triangle",
    "best_direction",
    "closest_features",
    "common_point",
    "corner",
    "edge_pierces",
    "feature_pair",
    "gap_along",
    "gap_vector",
    "nearest_of_triangles",
    "pierce",
    "side",
    "side_of",
    "triangle_edge",
    "triangles_meet",
    "triangles_meet_or_not",
    "turn_of",
]

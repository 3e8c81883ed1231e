"""Closest points of points, segments and triangles."""

from tangere.geometry.closest_points.conditioned import (
    CONDITIONED,
    CONDITIONED_EDGES,
    centred_on_edges,
    edges_near,
    edges_offset,
    face_near,
    face_offset,
    nearest_on_edges,
    nearest_on_face,
    pair_near,
)
from tangere.geometry.closest_points.robust import (
    closest_on_segment,
    closest_on_segments,
    closest_on_triangle,
    segments_distance,
    triangle_distance,
)

__all__ = [
    "CONDITIONED",
    "CONDITIONED_EDGES",
    "centred_on_edges",
    "closest_on_segment",
    "closest_on_segments",
    "closest_on_triangle",
    "edges_near",
    "edges_offset",
    "face_near",
    "face_offset",
    "nearest_on_edges",
    "nearest_on_face",
    "pair_near",
    "segments_distance",
    "triangle_distance",
]

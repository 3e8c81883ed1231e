"""Bounds over the squares of a heightfield, level by level, in memory or in pages."""

from tangere.bvh.height_pyramid.paged_pyramid import PagedPyramid
from tangere.bvh.height_pyramid.pyramid import HeightPyramid
from tangere.bvh.height_pyramid.terrain import (
    CONVEX_VERTEX,
    CONVEX_X,
    GAP,
    PAGE_HEIGHTS,
    PAGE_SIDE,
    PLANAR,
    TILE,
    TOP,
    NodeStack,
    Terrain,
    cell_window,
    height_at,
    node_bounds,
    node_column,
    node_flags,
    node_heights,
    node_key,
    node_level,
    node_row,
    start_level,
)
from tangere.bvh.height_pyramid.terrain_walk import Walk, is_in_window, next_node, walk_over
from tangere.bvh.height_pyramid.visits import terrain_visits, tiles_held

__all__ = [
    "CONVEX_VERTEX",
    "CONVEX_X",
    "GAP",
    "PAGE_HEIGHTS",
    "PAGE_SIDE",
    "PLANAR",
    "TILE",
    "TOP",
    "HeightPyramid",
    "NodeStack",
    "PagedPyramid",
    "Terrain",
    "Walk",
    "cell_window",
    "height_at",
    "is_in_window",
    "next_node",
    "node_bounds",
    "node_column",
    "node_flags",
    "node_heights",
    "node_key",
    "node_level",
    "node_row",
    "start_level",
    "terrain_visits",
    "tiles_held",
    "walk_over",
]

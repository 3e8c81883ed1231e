"""Oriented boxes and trees of them."""

from tangere.bvh.obb.build import DEPTH_LIMIT
from tangere.bvh.obb.node import ObbNode, box_axes, box_centre, box_half
from tangere.bvh.obb.overlap import boxes_at_least, place_boxes
from tangere.bvh.obb.tree import PREPARED, ObbTree, refuse_tiny
from tangere.bvh.obb.wide_tree import LANES, NO_CHILD, NUMBERS, WideObbTree

__all__ = [
    "DEPTH_LIMIT",
    "LANES",
    "NO_CHILD",
    "NUMBERS",
    "PREPARED",
    "ObbNode",
    "ObbTree",
    "WideObbTree",
    "box_axes",
    "box_centre",
    "box_half",
    "boxes_at_least",
    "place_boxes",
    "refuse_tiny",
]

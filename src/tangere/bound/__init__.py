"""What encloses a piece of a thing, and the trees of such enclosures."""

from tangere.bound.boxes import LANES, Frame, Lanes, MovingBox, apart_in_lanes, boxes_meet, vertex_boxes
from tangere.bound.linear_tree import LinearTree, TreeBoxes

__all__ = [
    "LANES",
    "Frame",
    "Lanes",
    "LinearTree",
    "MovingBox",
    "TreeBoxes",
    "apart_in_lanes",
    "boxes_meet",
    "vertex_boxes",
]

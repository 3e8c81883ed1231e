"""What encloses a piece of a thing, and the trees of such enclosures."""

from tangere.bound.boxes import Frame, boxes_meet, boxes_meet_flag, vertex_boxes
from tangere.bound.linear_tree import CLUSTER, LinearTree, TreeBoxes

__all__ = ["CLUSTER", "Frame", "LinearTree", "TreeBoxes", "boxes_meet", "boxes_meet_flag", "vertex_boxes"]

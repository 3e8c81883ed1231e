"""AABBs that move, and linear bounding volume hierarchies over them."""

from tangere.bvh.lbvh.linear_tree import NOWHERE, LinearTree, TreeArrays, TreeBoxes
from tangere.bvh.lbvh.moving_aabb import (
    LANES,
    LARGEST,
    LERP_ERROR,
    ROUND_OUT,
    ROUND_OUT_TINY,
    UNDERFLOW,
    Frame,
    Lanes,
    MovingBox,
    apart_in_lanes,
    boxes_meet,
    code_below,
    resting_box,
    vertex_boxes,
)

__all__ = [
    "LANES",
    "LARGEST",
    "LERP_ERROR",
    "NOWHERE",
    "ROUND_OUT",
    "ROUND_OUT_TINY",
    "UNDERFLOW",
    "Frame",
    "Lanes",
    "LinearTree",
    "MovingBox",
    "TreeArrays",
    "TreeBoxes",
    "apart_in_lanes",
    "boxes_meet",
    "code_below",
    "resting_box",
    "vertex_boxes",
]

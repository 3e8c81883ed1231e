"""The record of one oriented box of a tree, and its fields in double precision."""

from __future__ import annotations

import warp as wp


@wp.struct
class ObbNode:
    """One box, 72 bytes; nodes are in preorder, so the left child of node i is i + 1."""

    centre: wp.vec3
    half: wp.vec3  # half sizes along the axes
    axes: wp.mat33  # the axes are its columns
    radius: wp.float32  # of a ball round `centre` that holds the whole box
    right: int  # the right child, -1 for a leaf
    triangle: int  # of a leaf, -1 above


@wp.func
def box_centre(node: ObbNode) -> wp.vec3d:
    """The centre of a box in double precision."""
    return wp.vec3d(wp.float64(node.centre[0]), wp.float64(node.centre[1]), wp.float64(node.centre[2]))


@wp.func
def box_half(node: ObbNode) -> wp.vec3d:
    """The half sizes of a box in double precision."""
    return wp.vec3d(wp.float64(node.half[0]), wp.float64(node.half[1]), wp.float64(node.half[2]))


@wp.func
def box_axes(node: ObbNode) -> wp.mat33d:
    """The axes of a box, as columns, in double precision."""
    return wp.mat33d(node.axes)


@wp.func
def box_axis(axes: wp.mat33d, k: int) -> wp.vec3d:
    """Column k of a matrix of axes."""
    return wp.vec3d(axes[0, k], axes[1, k], axes[2, k])

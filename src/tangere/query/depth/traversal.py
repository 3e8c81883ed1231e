"""How deep is a piece of one surface in another body: a bound from below and one from above; one thread a piece.

Method: of the piece's centre, the nearest triangle of the other surface by a descent of its OBB tree, and inside or
        outside by the winding number about it. Depth changes by no more than the way gone, so no point of the piece is
        deeper than the centre by more than its radius. The distance to one triangle is convex: it is largest at a
        corner of the piece, and no point is deeper than it is far from that triangle. The smaller of both counts.
Sound:  but for rounding, which `search` adds.
Known as: branch and bound with a Lipschitz bound (Piyavskii 1972); distance to a convex set is convex.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, box_axes, box_centre, box_half
from tangere.geometry.closest_points import face_offset, nearest_on_face
from tangere.motion import RigidPose
from tangere.query.containment.traversal import winding_about
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Nodes that can wait in a descent, and how near they are.
WaitingBoxes = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.int32)
BoxBounds = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.float64)
#: What is not known of the side of a piece, and what is.
EITHER = wp.constant(0)
WITHIN = wp.constant(1)
BEYOND = wp.constant(-1)
#: Projections on float32 axes are longer than a distance by less than this part; so is what rounding does to them.
_SHRINK = wp.constant(wp.float64(1.0 - 2.0**-20))
_ROUNDING = wp.constant(wp.float64(2.0**-46))
_ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class SurfacePiece:
    """A triangle on the surface of one body, in the frame of the other."""

    corners: wp.mat33d
    body: wp.int32  #: whose depth in the other it is: a row of `OtherBody`
    nearest: wp.int32  #: a triangle of the other that may be the nearest
    side: wp.int32  #: WITHIN where the whole piece is inside, EITHER where that is not known


@wp.struct
class OtherBody:
    """What a piece may be deep in."""

    node: wp.int32  #: root of its tree
    triangle: wp.int32  #: its first triangle


@wp.struct
class PieceDepth:
    """How deep a piece is."""

    centre: wp.float64  #: depth of the centre, negative outside [m]
    upper: wp.float64  #: no point of the piece is deeper [m]
    way: wp.vec3d  #: from the centre to the nearest point of the other surface
    nearest: wp.int32  #: triangle of the other that is nearest to the centre
    side: wp.int32  #: of all of the piece


@wp.func
def squared_from_box(p: wp.vec3d, node: ObbNode) -> wp.float64:
    """Not above the squared distance of a point to what is in a box."""
    across = wp.transpose(box_axes(node)) * (p - box_centre(node))
    half = box_half(node)
    slack = _ROUNDING * (wp.length(p) + wp.length(box_centre(node)))
    total = wp.float64(0.0)
    for k in range(3):
        beyond = wp.max(wp.abs(across[k]) - half[k] - slack, _ZERO)
        total += beyond * beyond
    return total * _SHRINK


@wp.func
def offset_from(corners: wp.array[wp.vec3d], triangle: int, p: wp.vec3d) -> wp.vec3d:
    """The way from the nearest point of a triangle to p."""
    a = corners[3 * triangle]
    b = corners[3 * triangle + 1]
    c = corners[3 * triangle + 2]
    return face_offset(p, a, b, c, nearest_on_face(p, a, b, c))


@wp.func
def nearest_triangle(
    nodes: wp.array[ObbNode], corners: wp.array[wp.vec3d], other: OtherBody, p: wp.vec3d, guess: int
) -> int:
    """The triangle of a body that is nearest to p; the guess is one that may be."""
    offset = offset_from(corners, other.triangle + guess, p)
    best = wp.dot(offset, offset)
    found = guess
    waiting = WaitingBoxes()
    bounds = BoxBounds()
    count = int(1)
    while count > 0:
        count -= 1
        if bounds[count] < best:
            i = waiting[count]
            node = nodes[other.node + i]
            if node.right < 0:
                offset = offset_from(corners, other.triangle + node.triangle, p)
                squared = wp.dot(offset, offset)
                if squared < best:
                    best = squared
                    found = node.triangle
            else:
                one = i + 1
                two = node.right
                to_one = squared_from_box(p, nodes[other.node + one])
                to_two = squared_from_box(p, nodes[other.node + two])
                if to_two < to_one:
                    one = node.right
                    two = i + 1
                    swapped = to_one
                    to_one = to_two
                    to_two = swapped
                if to_two < best:
                    waiting[count] = two
                    bounds[count] = to_two
                    count += 1
                if to_one < best:
                    waiting[count] = one
                    bounds[count] = to_one
                    count += 1
    return found


@wp.kernel
def find_piece_depths(
    first: int,
    pieces: wp.array[SurfacePiece],
    others: wp.array[OtherBody],
    nodes: wp.array[ObbNode],
    corners: wp.array[wp.vec3d],
    depths: wp.array[PieceDepth],
):
    i = first + wp.tid()
    piece = pieces[i]
    other = others[piece.body]
    a = piece.corners[0]
    b = piece.corners[1]
    c = piece.corners[2]
    centre = (a + b + c) / wp.float64(3.0)
    radius = wp.max(wp.max(wp.length(a - centre), wp.length(b - centre)), wp.length(c - centre))
    nearest = nearest_triangle(nodes, corners, other, centre, piece.nearest)
    offset = offset_from(corners, other.triangle + nearest, centre)
    distance = wp.length(offset)
    side = piece.side
    inside = side == WITHIN
    if side == EITHER:
        here = RigidPose()
        here.rotation = wp.identity(n=3, dtype=wp.float64)
        inside = winding_about(nodes, corners, other.node, other.triangle, here, centre) != 0
        if distance > radius:
            side = wp.where(inside, WITHIN, BEYOND)
    depth = wp.where(inside, distance, -distance)
    upper = depth + radius
    if upper > _ZERO:
        farthest = wp.max(
            wp.length(offset_from(corners, other.triangle + nearest, a)),
            wp.max(
                wp.length(offset_from(corners, other.triangle + nearest, b)),
                wp.length(offset_from(corners, other.triangle + nearest, c)),
            ),
        )
        upper = wp.min(upper, farthest)
    result = PieceDepth()
    result.centre = depth
    result.upper = upper
    result.way = -offset
    result.nearest = nearest
    result.side = side
    depths[i] = result

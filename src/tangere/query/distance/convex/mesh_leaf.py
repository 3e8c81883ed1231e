"""A convex body against the boxes and triangles of an OBB tree: what searches of a mesh are made of.

Boxes are records of float32 whose axes are orthonormal to 2^-23 only: a box is the set of all centre + sum x_k axis_k
with |x_k| <= half_k. Gaps here are from the support of that very set, whatever found the direction.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.obb import ObbNode, box_half
from tangere.query.distance.convex.closed_forms import closed_form_of
from tangere.query.distance.convex.gjk import gjk_of
from tangere.query.distance.convex.narrow_phase import first_guess
from tangere.query.distance.convex.result import Closest, Sought, gap_rounding
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_value_of, margin_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d


@wp.func
def box_of(node: ObbNode) -> ConvexShape:
    """The box of a node, about its centre and along its axes."""
    box = ConvexShape()
    box.half = box_half(node)
    box.reach = real(node.radius)
    return box


@wp.func
def triangle_of(corners: wp.array[wp.vec3d], triangle: int) -> ConvexShape:
    """A triangle in the frame of its mesh, whose table `corners` is."""
    leaf = ConvexShape()
    leaf.first = 3 * triangle
    leaf.count = 3
    farthest = wp.max(wp.length_sq(corners[leaf.first]), wp.length_sq(corners[leaf.first + 1]))
    leaf.reach = wp.sqrt(wp.max(farthest, wp.length_sq(corners[leaf.first + 2])))
    return leaf


@wp.func
def towards_body(node: ObbNode, rotation: wp.mat33d, offset: vec) -> vec:
    """A direction from the box's point nearest to the body's origin; placed as `gap_to_box_of` has it."""
    half = box_half(node)
    y = -(offset * rotation)
    y = vec(wp.clamp(y[0], -half[0], half[0]), wp.clamp(y[1], -half[1], half[1]), wp.clamp(y[2], -half[2], half[2]))
    return first_guess(offset + rotation * y)


@cache
def gap_to_box_of(kind: int) -> wp.Function:
    """`gap(a, points_a, node, rotation, offset, sought) -> Closest` of a body of a kind and the box of a node.

    `rotation` has the box's axes as columns and `offset` is its centre, both in the body's frame.
    """
    closed = closed_form_of(kind, ConvexKind.BOX)
    search = gjk_of(kind, ConvexKind.BOX) if closed is None else closed
    by_formula = wp.constant(int(closed is not None))
    value_a, value_b, margin = core_value_of(kind), core_value_of(ConvexKind.BOX), margin_of(kind)

    @wp.func
    def gap(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        node: ObbNode,
        rotation: wp.mat33d,
        offset: vec,
        sought: Sought,
    ) -> Closest:
        box = box_of(node)
        guess = towards_body(node, rotation, offset)
        found = search(a, points_a, box, points_a, rotation, offset, guess, sought)
        if by_formula != 0 and not found.meet:  # which took the axes for orthonormal
            n = wp.normalize(found.normal)
            found.normal = n
            found.lower = (
                -wp.dot(n, offset)
                - value_a(a, points_a, -n)
                - value_b(box, points_a, n * rotation)
                - gap_rounding(a, box, offset)
                - margin(a)
            )
        return found

    return gap

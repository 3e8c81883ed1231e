"""Farthest points of a body for certificates: exact also where the direction is along the body's axis.

What is left of such a direction across the axis is rounding noise, and not across the axis at all once it is made a
unit vector: it is made perpendicular again, or the point would lie outside the body and the gap be told too large.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.shape.analytic import CONE, CYLINDER
from tangere.shape.analytic_body import Body, Hulls, support_of

wp.set_module_options(SOUND)

__all__ = ["certain_support_of"]

_ZERO = wp.constant(wp.float64(0.0))


def certain_support_of(kind: int) -> wp.Function:
    """`support(body, hulls, u) -> vec3d`: the point of the body that is farthest along u."""
    if kind == CYLINDER:
        return _cylinder_support
    if kind == CONE:
        return _cone_support
    return support_of(kind)


@wp.func
def across_axis(u: wp.vec3d, axis: wp.vec3d) -> wp.vec3d:
    """The unit vector across the axis that is nearest to u; any of them, or zero, where u is along the axis."""
    e = wp.normalize(u - wp.dot(u, axis) * axis)
    return wp.normalize(e - wp.dot(e, axis) * axis)


@wp.func
def _cylinder_support(body: Body, hulls: Hulls, u: wp.vec3d) -> wp.vec3d:
    end = wp.where(wp.dot(u, body.axis) < _ZERO, -body.reach, body.reach)
    return end * body.axis + body.radius * across_axis(u, body.axis)


@wp.func
def _cone_support(body: Body, hulls: Hulls, u: wp.vec3d) -> wp.vec3d:
    rim = -body.reach * body.axis + body.radius * across_axis(u, body.axis)
    tip = body.reach * body.axis
    return wp.where(wp.dot(u, tip) > wp.dot(u, rim), tip, rim)

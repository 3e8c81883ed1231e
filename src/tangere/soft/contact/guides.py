"""Guides: rows that hold a point of a body on a line, with a spring across it and friction along it.

Question: what does a straight thing, as the shaft of a needle, do to a point of the body it goes through?
Method:   with the offset u of the point from where it is held and the unit tangent t of the line: a spring k_across on
          u - (u.t) t, and along t one of stiffness k_along whose force is at most f. The potential along t is Huber's;
          its secant stiffness f / |u.t| beyond the limit bounds it from above, so that sweeps still descend. One that
          only pushes has no force where the point is ahead (u.t > 0): the tip of a needle.
Who appends guides moves the place where a point is held after the step, where it slipped: the anchor that remembers.
Known as: bilateral constraints with friction of needle insertion (Duriez et al. 2009); Huber's loss, majorised (Huber
          1964).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class GuideForce:
    force: wp.vec3d
    across: wp.float64  # stiffness
    along: wp.float64


@wp.func
def guide_force(offset: wp.vec3d, tangent: wp.vec3d, guide: wp.vec4d) -> GuideForce:
    """Force and stiffnesses of a guide."""
    along = wp.dot(offset, tangent)
    k = guide[1]
    if k * wp.abs(along) > guide[2]:
        k = guide[2] / wp.abs(along)
    if guide[3] > wp.float64(0.0) and along > wp.float64(0.0):
        k = wp.float64(0.0)
    held = GuideForce()
    held.force = -(k * along) * tangent - guide[0] * (offset - along * tangent)
    held.across = guide[0]
    held.along = k
    return held

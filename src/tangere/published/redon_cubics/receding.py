"""Does a sphere of a tree recede from another body? See `tangere.published.redon_recession.culling`."""

from __future__ import annotations

import warp as wp

from tangere.bvh.recession.culling import field_at
from tangere.motion.kinematics import RigidMotion
from tangere.published.redon_cubics.sphere_tree import SphereNode
from tangere.published.redon_recession.culling import ball_recedes, change_over
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)


@wp.kernel
def receding_spheres(
    first: int,
    nodes: wp.array[SphereNode],
    cone_first: wp.array[int],
    vectors: wp.array[wp.vec3d],
    motion: wp.array[RigidMotion],
    other: wp.array[RigidMotion],
    begin: wp.float64,
    span: wp.float64,
    reach: wp.float64,
    receding: wp.array[wp.bool],
):
    i = first + wp.tid()
    node = nodes[i]
    field = field_at(motion[0], other[0], begin)
    change = change_over(motion[0], other[0], span, reach)
    receding[i] = ball_recedes(node.centre, node.radius, cone_first[i], cone_first[i + 1], vectors, field, change)

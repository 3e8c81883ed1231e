"""How deep two boxes are in each other: the fifteen directions of the separating axis theorem.

Question: the least translation that parts two boxes.
Method:   the difference of two boxes has faces across normals of faces and across pairs of edges only: the least way
          out is along one of these. Normals of faces are preferred where an edge pair is no shorter than rounding.
Sound:    as `penetration`, whose answer it is; exact to rounding.
Known as: separating axis test of oriented boxes (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import warp as wp

from tangere.query.distance.convex.gjk import separating_direction
from tangere.query.distance.convex.narrow_phase import rotation_of, translation_of
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of, core_value_of
from tangere.query.manifold.convex.penetration import Penetration
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
#: Crosses of edges shorter than this are noise: the edges are parallel.
_NO_DIRECTION = wp.constant(real(1.0e-9))
#: A way across two edges is shorter than one across a face by this part of the size, or not at all.
_SHORTER = wp.constant(real(1.0e-9))

box_value = core_value_of(ConvexKind.BOX)
box_support = core_support_of(ConvexKind.BOX)


@wp.kernel
def box_penetrations(
    first: int,
    rows: wp.array[int],
    shapes_a: wp.array[ConvexShape],
    points_a: wp.array[wp.vec3d],
    poses_a: wp.array[wp.mat44d],
    shapes_b: wp.array[ConvexShape],
    points_b: wp.array[wp.vec3d],
    poses_b: wp.array[wp.mat44d],
    found: wp.array[Penetration],
):
    """The depths of boxes that have a point in common, or nearly."""
    i = first + wp.tid()
    row = rows[i]
    a = shapes_a[wp.min(row, shapes_a.shape[0] - 1)]
    b = shapes_b[wp.min(row, shapes_b.shape[0] - 1)]
    pose_a = poses_a[wp.min(row, poses_a.shape[0] - 1)]
    pose_b = poses_b[wp.min(row, poses_b.shape[0] - 1)]
    turned = rotation_of(pose_a)
    rotation = wp.transpose(turned) * rotation_of(pose_b)
    offset = (translation_of(pose_b) - translation_of(pose_a)) * turned
    size = a.reach + b.reach
    depth = _FAR + _ZERO
    normal = vec(_ZERO, _ZERO, _ONE)
    k = int(0)
    while k < 15:
        n = separating_direction(k, rotation)
        long = wp.length(n)
        if long > _NO_DIRECTION:
            n = n * (wp.where(wp.dot(n, offset) > _ZERO, -_ONE, _ONE) / long)
            here = box_value(a, points_a, n) + box_value(b, points_b, n * rotation) + wp.dot(n, offset)
            if here < depth - wp.where(k < 6, _ZERO, _SHORTER * size):
                depth = here
                normal = n
        k += 1
    answer = Penetration()
    answer.room = 1
    answer.depth = depth
    answer.normal = turned * normal
    answer.point_a = translation_of(pose_a) + turned * box_support(a, points_a, -normal)
    answer.point_b = answer.point_a + depth * answer.normal
    found[i] = answer

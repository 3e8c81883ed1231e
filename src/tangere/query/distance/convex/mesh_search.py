"""The distance of a convex body and a rigid mesh: descent of the mesh's OBB tree; one thread a query.

Of two children the one whose box is nearer goes first; boxes no nearer than the nearest triangle known are dropped.
Known as: branch and bound on bounding volumes (Larsen, Gottschalk, Lin and Manocha 2000, PQP).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, box_axes, box_centre
from tangere.query.distance.convex.mesh_leaf import gap_to_box_of, triangle_of
from tangere.query.distance.convex.narrow_phase import (
    ConvexAnswer,
    answer_of,
    closest_of,
    first_guess,
    rotation_of,
    translation_of,
)
from tangere.query.distance.convex.result import FAR, Closest, Sought, sought_to
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, margin_of
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

NodeIds = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.int32)
NodeBounds = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.float64)

#: A box is asked to this part of its distance: a fifth asks less of each, and of twice as many.
OF_GAP = wp.constant(real(0.02))
_ZERO = wp.constant(real(0.0))


@cache
def mesh_distance_kernel(kind: int) -> wp.Kernel:
    """The distances of n bodies of a kind from a mesh, at poses of both.

    Of a mesh no nearer than `within` no triangle is told.
    """
    gap_to_box, closest = gap_to_box_of(kind), closest_of(kind, ConvexKind.TRIANGLE)
    answer_from, margin = answer_of(kind, ConvexKind.TRIANGLE), margin_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def mesh_distances(
        first: int,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        nodes: wp.array[ObbNode],
        corners: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        tolerance: real,
        within: wp.array[wp.float64],
        answers: wp.array[ConvexAnswer],
    ):
        i = first + wp.tid()
        a = shapes_a[wp.min(i, shapes_a.shape[0] - 1)]
        pose_a = poses_a[wp.min(i, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(i, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        at = translation_of(pose_a)
        back = wp.transpose(turned)
        rotation = back * rotation_of(pose_b)
        offset = (translation_of(pose_b) - at) * turned
        sought = sought_to(tolerance * (a.reach + margin(a) + real(nodes[0].radius)))
        rough = Sought()
        rough.tolerance = sought.tolerance
        rough.relative = OF_GAP
        waiting = NodeIds()
        bounds = NodeBounds()
        bounds[0] = -FAR
        count = int(1)
        best = Closest()
        best.upper = within[wp.min(i, within.shape[0] - 1)]
        lower = FAR + _ZERO
        nearest = int(-1)
        while count > 0:
            count -= 1
            number = waiting[count]
            if bounds[count] < best.upper:
                node = nodes[number]
                if node.right < 0:
                    triangle = triangle_of(corners, node.triangle)
                    sought.enough = best.upper
                    guess = first_guess(offset + rotation * corners[triangle.first])
                    found = closest(a, points_a, triangle, corners, rotation, offset, guess, sought)
                    lower = wp.min(lower, found.lower)
                    if found.meet or found.upper < best.upper:
                        best = found
                        nearest = node.triangle
                        if found.meet:
                            count = 0
                            lower = found.lower
                else:
                    left = nodes[number + 1]
                    right = nodes[node.right]
                    rough.enough = best.upper
                    by_left = gap_to_box(
                        a, points_a, left, rotation * box_axes(left), offset + rotation * box_centre(left), rough
                    )
                    by_right = gap_to_box(
                        a, points_a, right, rotation * box_axes(right), offset + rotation * box_centre(right), rough
                    )
                    near = number + 1
                    far = node.right
                    near_bound = by_left.lower
                    far_bound = by_right.lower
                    if far_bound < near_bound:
                        near = node.right
                        far = number + 1
                        near_bound = by_right.lower
                        far_bound = by_left.lower
                    if far_bound < best.upper:
                        waiting[count] = far
                        bounds[count] = far_bound
                        count += 1
                    if near_bound < best.upper:
                        waiting[count] = near
                        bounds[count] = near_bound
                        count += 1
        best.lower = wp.min(lower, best.upper)
        answer = answer_from(a, triangle_of(corners, wp.max(nearest, 0)), best)
        answer.point_a = at + turned * answer.point_a
        answer.point_b = at + turned * answer.point_b
        answer.normal = turned * answer.normal
        answer.triangle = nearest
        answers[i] = answer

    return mesh_distances

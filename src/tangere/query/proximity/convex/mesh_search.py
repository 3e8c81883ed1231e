"""All triangles of a rigid mesh that are nearer to a convex body than a distance: descent of the OBB tree."""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.obb import ObbNode, box_axes, box_centre
from tangere.query.distance.convex.mesh_leaf import gap_to_box_of, triangle_of
from tangere.query.distance.convex.mesh_search import NodeIds
from tangere.query.distance.convex.narrow_phase import (
    ConvexAnswer,
    answer_of,
    closest_of,
    first_guess,
    rotation_of,
    translation_of,
)
from tangere.query.distance.convex.result import Sought, sought_to
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, margin_of
from tangere.runtime import SOUND, reserve_slots

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: A box is asked to this part of its distance.
OF_GAP = wp.constant(real(0.2))


@wp.struct
class TriangleAnswer:
    """A body and a triangle that is near it."""

    query: wp.int32
    answer: ConvexAnswer


@cache
def near_triangles_kernel(kind: int) -> wp.Kernel:
    """The triangles of a mesh nearer than a distance to each of n bodies of a kind, at poses of both."""
    gap_to_box, closest = gap_to_box_of(kind), closest_of(kind, ConvexKind.TRIANGLE)
    answer_from, margin = answer_of(kind, ConvexKind.TRIANGLE), margin_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_triangles(
        first: int,
        shard: int,
        shapes: wp.array[ConvexShape],
        points: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        nodes: wp.array[ObbNode],
        corners: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        distance: real,
        tolerance: real,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[TriangleAnswer],
    ):
        i = first + wp.tid()
        a = shapes[wp.min(i, shapes.shape[0] - 1)]
        pose_a = poses_a[wp.min(i, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(i, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        at = translation_of(pose_a)
        rotation = wp.transpose(turned) * rotation_of(pose_b)
        offset = (translation_of(pose_b) - at) * turned
        exact = sought_to(tolerance * (a.reach + margin(a) + real(nodes[0].radius)))
        exact.enough = distance
        rough = Sought()
        rough.tolerance = exact.tolerance
        rough.relative = OF_GAP
        rough.enough = distance
        waiting = NodeIds()
        count = int(1)
        while count > 0:
            count -= 1
            number = waiting[count]
            node = nodes[number]
            if node.right < 0:
                triangle = triangle_of(corners, node.triangle)
                guess = first_guess(offset + rotation * corners[triangle.first])
                found = closest(a, points, triangle, corners, rotation, offset, guess, exact)
                answer = answer_from(a, triangle, found)
                if found.meet or answer.upper < distance:
                    slot = reserve_slots(counts, shard, 1, capacity)
                    if slot >= 0:
                        answer.point_a = at + turned * answer.point_a
                        answer.point_b = at + turned * answer.point_b
                        answer.normal = turned * answer.normal
                        answer.triangle = node.triangle
                        near = TriangleAnswer()
                        near.query = i
                        near.answer = answer
                        out[slot] = near
            else:
                box = gap_to_box(
                    a, points, node, rotation * box_axes(node), offset + rotation * box_centre(node), rough
                )
                if box.meet or box.lower < distance:
                    waiting[count] = node.right
                    waiting[count + 1] = number + 1
                    count += 2

    return near_triangles

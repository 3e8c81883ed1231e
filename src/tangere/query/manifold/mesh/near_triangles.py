"""Which triangles of a mesh are near a convex body, and which way each of them is?

Question: all triangles nearer than a distance, with the nearest points and the direction between them.
Method:   descent of the mesh's OBB tree; a box farther than the distance is dropped, a leaf is a pair of a body and a
          triangle, as for distances.
Sound:    bounds of boxes and triangles are lower ones: no triangle nearer than the distance is missed.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, box_axes, box_centre
from tangere.query.distance.convex.mesh_leaf import gap_to_box_of, triangle_of
from tangere.query.distance.convex.narrow_phase import closest_of, first_guess, rotation_of, translation_of
from tangere.query.distance.convex.result import FAR, Sought, sought_to
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of, margin_of
from tangere.query.manifold.convex.approach import TOUCHING
from tangere.runtime import SOUND, reserve_slots

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

NodeStack = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.int32)
#: A box is asked to this part of its distance.
_OF_GAP = wp.constant(real(0.5))
_ZERO = wp.constant(real(0.0))


@wp.struct
class NearTriangle:
    """A body and a triangle near it; points are relative to the body's origin, in the world's axes."""

    row: wp.int32  #: of the question
    triangle: wp.int32
    meet: wp.int32  #: 1 where the core and the triangle meet, or nearly
    gap: wp.float64  #: of the nearest points [m]
    size: wp.float64  #: of the body [m]
    margin: wp.float64  #: around its core [m]
    normal: wp.vec3d  #: unit, pushes the body away
    point_a: wp.vec3d  #: of the body's surface
    point_b: wp.vec3d


@cache
def near_triangle_kernel(kind: int) -> wp.Kernel:
    """Append the triangles near bodies of a kind: nearer than given, or, if that is negative, than a part of a body."""
    gap_to_box, closest = gap_to_box_of(kind), closest_of(kind, ConvexKind.TRIANGLE)
    margin_of_body = margin_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def near_triangles(
        first: int,
        shard: int,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        nodes: wp.array[ObbNode],
        corners: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        given: real,
        part: real,
        accuracy: real,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[NearTriangle],
    ):
        i = first + wp.tid()
        a = shapes_a[wp.min(i, shapes_a.shape[0] - 1)]
        pose_a = poses_a[wp.min(i, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(i, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        rotation = wp.transpose(turned) * rotation_of(pose_b)
        offset = (translation_of(pose_b) - translation_of(pose_a)) * turned
        near = NearTriangle()
        near.row = i
        near.margin = margin_of_body(a)
        near.size = a.reach + near.margin
        limit = wp.where(given < _ZERO, part * near.size, given)
        rough = Sought()
        rough.tolerance = accuracy * near.size
        rough.relative = _OF_GAP
        rough.enough = limit
        sought = sought_to(accuracy * near.size)
        sought.enough = limit
        waiting = NodeStack()
        count = int(1)
        while count > 0:
            count -= 1
            number = waiting[count]
            node = nodes[number]
            if node.right < 0:
                triangle = triangle_of(corners, node.triangle)
                guess = first_guess(offset + rotation * corners[triangle.first])
                found = closest(a, points_a, triangle, corners, rotation, offset, guess, sought)
                if found.meet or found.lower <= limit:
                    n = found.normal
                    apart = wp.dot(found.point_a - found.point_b, n)
                    near.triangle = node.triangle
                    near.gap = apart - near.margin
                    near.normal = turned * n
                    near.point_a = turned * (found.point_a - near.margin * n)
                    near.point_b = turned * found.point_b
                    near.meet = wp.where(found.meet or apart <= TOUCHING * near.size, 1, 0)
                    at = reserve_slots(counts, shard, 1, capacity)
                    if at >= 0:
                        out[at] = near
            else:
                child = int(0)
                while child < 2:
                    other = wp.where(child == 0, number + 1, node.right)
                    box = nodes[other]
                    gap = gap_to_box(
                        a, points_a, box, rotation * box_axes(box), offset + rotation * box_centre(box), rough
                    )
                    if gap.lower <= limit:
                        waiting[count] = other
                        count += 1
                    child += 1

    return near_triangles


@cache
def way_out_kernel(kind: int) -> wp.Kernel:
    """How far bodies of a kind have to go along directions until triangles are behind them; their deepest points."""
    support, margin_of_body = core_support_of(kind), margin_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def ways_out(
        first: int,
        rows: wp.array[int],
        triangles: wp.array[int],
        normals: wp.array[wp.vec3d],
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        corners: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        depths: wp.array[wp.float64],
        deepest: wp.array[wp.vec3d],
    ):
        i = first + wp.tid()
        row = rows[i]
        n = normals[i]
        a = shapes_a[wp.min(row, shapes_a.shape[0] - 1)]
        pose_a = poses_a[wp.min(row, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(row, poses_b.shape[0] - 1)]
        own = n * rotation_of(pose_b)
        most = -FAR
        for k in range(3):
            most = wp.max(most, wp.dot(own, corners[3 * triangles[i] + k]))
        turned = rotation_of(pose_a)
        point = turned * support(a, points_a, -(n * turned)) - margin_of_body(a) * n
        depths[i] = most - wp.dot(n, point) + wp.dot(n, translation_of(pose_b) - translation_of(pose_a))
        deepest[i] = translation_of(pose_a) + point

    return ways_out

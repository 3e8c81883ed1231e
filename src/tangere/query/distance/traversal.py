"""The descent of two OBB trees for the nearest pair of triangles; one thread a query.

First a descent for any pair that meets: it takes a tenth of the time of the other, and where meshes go through each
other a search for the smallest distance would wander among boxes that are all at distance 0. Then, of two children the
one whose box is nearer goes first, so a good upper bound is there early; a pair of boxes is dropped when its lower
bound, from face normals or along the direction between the nearest points so far, reaches it.
Known as: branch and bound on bounding volumes (Larsen, Gottschalk, Lin and Manocha 2000, PQP).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, boxes_at_least
from tangere.geometry.triangles import MEET, common_point, gap_along, nearest_of_triangles, triangles_meet
from tangere.query.intersection.posed import placement_error, pose_of, relative_pose, world_corners
from tangere.query.intersection.traversal import Waiting, any_meeting, opens_first
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

Bounds = wp.types.vector(length=2 * DEPTH_LIMIT + 2, dtype=wp.float64)

_BEYOND = wp.constant(wp.float64(1.0e300))


# What is found of a query: columns of whole numbers …
TRIANGLE_A = wp.constant(0)
TRIANGLE_B = wp.constant(1)
MEETING = wp.constant(2)  # MEET; UNSURE if there was a pair that rounding cannot decide; else APART
NUMBERS = 3
# … and of vectors.
POINT_A = wp.constant(0)  # in the world
POINT_B = wp.constant(1)
WEIGHTS_A = wp.constant(2)
WEIGHTS_B = wp.constant(3)
BOUNDS = wp.constant(4)  # (lower, upper, 0) of the distance, up to rounding
VECTORS = 5


@wp.kernel
def find_nearest(
    first: int,
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    poses: wp.array2d[wp.mat44d],
    numbers: wp.array2d[int],
    vectors: wp.array2d[wp.vec3d],
):
    q = first + wp.tid()
    pose_a = pose_of(poses[q, 0])
    pose_b = pose_of(poses[q, 1])
    placed = relative_pose(pose_a, pose_b)
    turn = placed.rotation
    shift = placed.translation
    uncertain = placement_error(pose_a, pose_b)
    waiting_a = Waiting()
    waiting_b = Waiting()
    bounds = Bounds()
    count = int(1)
    normal = wp.vec3d()
    lower = _BEYOND + wp.float64(0.0)
    distance = _BEYOND + wp.float64(0.0)
    meeting = any_meeting(nodes_a, nodes_b, corners_a, corners_b, pose_a, pose_b)
    if meeting[2] == MEET:
        count = 0
        distance = wp.float64(0.0)
        numbers[q, TRIANGLE_A] = meeting[0]
        numbers[q, TRIANGLE_B] = meeting[1]
        meeting_a = world_corners(corners_a, meeting[0], pose_a)
        meeting_b = world_corners(corners_b, meeting[1], pose_b)
        common = nearest_of_triangles(meeting_a, meeting_b).weights_a * meeting_a
        if triangles_meet(meeting_a, meeting_b) == MEET:  # they do not just touch
            common = common_point(meeting_a, meeting_b)
        vectors[q, POINT_A] = common
        vectors[q, POINT_B] = common
    while count > 0:
        count -= 1
        if bounds[count] < distance:
            i = waiting_a[count]
            j = waiting_b[count]
            a = nodes_a[i]
            b = nodes_b[j]
            if a.right < 0 and b.right < 0:
                corners_of_a = world_corners(corners_a, a.triangle, pose_a)
                corners_of_b = world_corners(corners_b, b.triangle, pose_b)
                if gap_along(corners_of_a, corners_of_b, normal) < distance:
                    nearest = nearest_of_triangles(corners_of_a, corners_of_b)
                    towards = nearest.weights_b * corners_of_b - nearest.weights_a * corners_of_a
                    reached = wp.length(towards)
                    if reached > wp.float64(0.0):
                        towards = towards / reached
                    # What is certain does not hang on how well the nearest points are known: the gap along any
                    # direction is a lower bound.
                    lower = wp.min(lower, gap_along(corners_of_a, corners_of_b, towards))
                    if reached < distance:
                        distance = reached
                        normal = towards
                        numbers[q, TRIANGLE_A] = a.triangle
                        numbers[q, TRIANGLE_B] = b.triangle
                        vectors[q, WEIGHTS_A] = nearest.weights_a
                        vectors[q, WEIGHTS_B] = nearest.weights_b
                        vectors[q, POINT_A] = nearest.weights_a * corners_of_a
                        vectors[q, POINT_B] = nearest.weights_b * corners_of_b
            else:
                i0 = i
                i1 = i
                j0 = j
                j1 = j
                if opens_first(a, b):
                    i0 = i + 1
                    i1 = a.right
                else:
                    j0 = j + 1
                    j1 = b.right
                one = boxes_at_least(nodes_a[i0], nodes_b[j0], turn, shift, uncertain, distance)
                other = boxes_at_least(nodes_a[i1], nodes_b[j1], turn, shift, uncertain, distance)
                # Balls tell which pair is nearer even where boxes overlap: near triangles are found early.
                if other[1] < one[1]:
                    swapped = one
                    one = other
                    other = swapped
                    k = i0
                    i0 = i1
                    i1 = k
                    k = j0
                    j0 = j1
                    j1 = k
                if other[0] < distance:
                    waiting_a[count] = i1
                    waiting_b[count] = j1
                    bounds[count] = other[0]
                    count += 1
                if one[0] < distance:
                    waiting_a[count] = i0
                    waiting_b[count] = j0
                    bounds[count] = one[0]
                    count += 1
    numbers[q, MEETING] = meeting[2]
    vectors[q, BOUNDS] = wp.vec3d(wp.max(wp.min(lower, distance), wp.float64(0.0)), distance, wp.float64(0.0))

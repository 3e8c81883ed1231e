"""Whether other features are as near as those that a gradient is taken by.

Question: is the nearest pair of points the only one, or do others, elsewhere or another way, come as near?
Method:   both trees are descended for what is within a little of the distance; of every two triangles there, the 15
          pairs of features are looked at. What is near in space and in direction is the same place, seen from the
          triangle beside it: a point that slides over an edge moves on, and so does the gradient.
Known as: (non-)uniqueness of the projection; the distance is differentiable where it is unique (Danskin 1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, boxes_at_least
from tangere.geometry.triangles import Triangle, feature_pair
from tangere.motion import Rest
from tangere.query.distance.api import distance
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.gradients.motion_sensitivity import rotations
from tangere.query.intersection.posed import placement_error, pose_of, relative_pose, world_corners
from tangere.query.intersection.traversal import opens_first
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

Stack = wp.types.vector(length=2 * DEPTH_LIMIT + 2, dtype=wp.int32)

#: Points this part of the bodies' size apart, and directions that differ by this, are two.
APART = 1e-3
#: A body is turned by so much to see whether the nearest points stay [rad].
TURN = 1e-6


@wp.struct
class NearestAnswer:
    """The nearest points of a query, and what counts as another place."""

    point_a: wp.vec3d
    point_b: wp.vec3d
    normal: wp.vec3d
    bound: wp.float64  #: distance up to which others count as near [m]
    apart: wp.float64  #: of points [m]
    turned: wp.float64  #: of directions


def points_jump(
    shapes: tuple[Any, Any],
    poses: tuple[np.ndarray, np.ndarray],
    points: tuple[np.ndarray, np.ndarray],
    size: float,
    device: wp.Device,
) -> np.ndarray:
    """(n,) whether the nearest points of two bodies, one of them analytic, jump where one is turned by a trifle.

    Faces that lie on each other, and features that come as near elsewhere, show in this; arguments as for `find_ties`.
    """
    count = len(points[0])
    tied = np.zeros(count, bool)
    for axis in np.concatenate([np.eye(3), -np.eye(3)]):
        turn = np.tile(np.eye(4), (count, 1, 1))
        turn[:, :3, :3] = rotations(TURN * axis[None])[0]
        turn[:, :3, 3] = points[0] - points[0] @ turn[0, :3, :3].T  # about the nearest point
        moved = [shape.moving(Rest(pose)) for shape, pose in zip(shapes, (turn @ poses[0], poses[1]), strict=True)]
        near = distance(*moved, device=device)
        for old, new in zip(points, (near.point_a, near.point_b), strict=True):
            tied |= np.linalg.norm(np.reshape(new, (count, 3)) - old, axis=1) > APART * size
    return tied


def find_ties(
    shapes: Sequence[Mesh],
    which: np.ndarray,
    poses: tuple[np.ndarray, np.ndarray],
    points: tuple[np.ndarray, np.ndarray],
    normals: np.ndarray,
    tie: np.ndarray,
    device: wp.Device,
) -> np.ndarray:
    """(n,) whether features other than the nearest are within `tie` of their distance.

    Args:
        shapes: the meshes there are.
        which: of them each pair is of, (n, 2).
        poses: of both, (n, 4, 4) each.
        points: the nearest, in the world, (n, 3) each.
        normals: from b to a there, (n, 3), unit.
        tie: (n,) [m].
    """
    count = len(normals)
    rows = np.zeros(count, NearestAnswer.numpy_dtype())
    reached = np.linalg.norm(points[0] - points[1], axis=1)
    size = np.array([mesh.extent for mesh in shapes])[which].sum(axis=1)
    rows["point_a"], rows["point_b"], rows["normal"], rows["bound"] = *points, normals, reached + tie
    # Beside the nearest point the distance grows with the square of the way.
    rows["apart"] = APART * size + 2.0 * np.sqrt(2.0 * tie * (reached + tie))
    rows["turned"] = APART + 2.0 * np.sqrt(2.0 * tie / np.maximum(reached, 1e-300))
    forest = Forest.of(shapes, device)
    first = np.concatenate([forest.first_node[which], forest.first_triangle[which]], axis=1)
    placed = np.stack(np.broadcast_arrays(*poses), axis=1)
    tied = wp.zeros(count, dtype=wp.int32, device=device)
    inputs = [
        forest.nodes,
        forest.corners,
        wp.array(np.ascontiguousarray(first, np.int32), dtype=wp.vec4i, device=device),
        wp.array(np.ascontiguousarray(placed), dtype=wp.mat44d, device=device),
        wp.array(rows, dtype=NearestAnswer, device=device),
    ]
    launch(_find_ties, count, inputs, [tied], device=device, grain=1)
    return tied.numpy() != 0


@wp.kernel
def _find_ties(
    first: int,
    nodes: wp.array[ObbNode],
    corners: wp.array[wp.vec3d],
    trees: wp.array[wp.vec4i],
    poses: wp.array2d[wp.mat44d],
    nearest: wp.array[NearestAnswer],
    tied: wp.array[wp.int32],
):
    q = first + wp.tid()
    place = nearest[q]
    tree = trees[q]  # roots, and first triangles
    pose_a = pose_of(poses[q, 0])
    pose_b = pose_of(poses[q, 1])
    placed = relative_pose(pose_a, pose_b)
    uncertain = placement_error(pose_a, pose_b)
    waiting_a = Stack()
    waiting_b = Stack()
    count = int(1)
    found = int(0)
    while count > 0:
        count -= 1
        i = waiting_a[count]
        j = waiting_b[count]
        a = nodes[tree[0] + i]
        b = nodes[tree[1] + j]
        if a.right < 0 and b.right < 0:
            corners_a = world_corners(corners, tree[2] + a.triangle, pose_a)
            corners_b = world_corners(corners, tree[3] + b.triangle, pose_b)
            if elsewhere(corners_a, corners_b, place):
                found = 1
                count = 0
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
            one = nodes[tree[0] + i1]
            two = nodes[tree[1] + j1]
            other_bound = boxes_at_least(one, two, placed.rotation, placed.translation, uncertain, place.bound)
            if other_bound[0] < place.bound:
                waiting_a[count] = i1
                waiting_b[count] = j1
                count += 1
            one = nodes[tree[0] + i0]
            two = nodes[tree[1] + j0]
            one_bound = boxes_at_least(one, two, placed.rotation, placed.translation, uncertain, place.bound)
            if one_bound[0] < place.bound:
                waiting_a[count] = i0
                waiting_b[count] = j0
                count += 1
    tied[q] = found


@wp.func
def elsewhere(a: Triangle, b: Triangle, place: NearestAnswer) -> bool:
    """Whether two triangles come as near somewhere else, or another way."""
    other = bool(False)
    k = int(0)
    while k < 15:
        pair = feature_pair(a, b, k)
        if pair.squared < place.bound * place.bound:
            away = pair.point_a - pair.point_b
            turned = wp.length(away - wp.length(away) * place.normal) > place.turned * wp.length(away)
            moved = wp.max(wp.length(pair.point_a - place.point_a), wp.length(pair.point_b - place.point_b))
            if turned or moved > place.apart:
                other = True
                k = 15
        k += 1
    return other

"""Whether other features are as near as those that a gradient is taken by.

Question: is the nearest pair of points the only one, or do others, elsewhere or another way, come as near?
Method:   both trees are descended for what is within a little of the distance; of every two triangles there, the 15
          pairs of features are looked at. What is near in space and in direction is the same place, seen from the
          triangle beside it: a point that slides over an edge moves on, and so does the gradient.
Known as: (non-)uniqueness of the projection; the distance is differentiable where it is unique (Danskin 1967).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, ObbTree, boxes_at_least
from tangere.geometry.triangles import Triangle, feature_pair
from tangere.query.intersection.posed import placement_error, pose_of, relative_pose, world_corners
from tangere.query.intersection.traversal import opens_first
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

Stack = wp.types.vector(length=2 * DEPTH_LIMIT + 2, dtype=wp.int32)

#: Points this part of the bodies' size apart, and directions that differ by this, are two.
APART = 1e-3


@wp.struct
class NearestAnswer:
    """The nearest points of a query, and what counts as another place."""

    point_a: wp.vec3d
    point_b: wp.vec3d
    normal: wp.vec3d
    bound: wp.float64  #: distance up to which others count as near [m]
    apart: wp.float64  #: of points [m]
    turned: wp.float64  #: of directions


def find_ties(
    meshes: tuple[Mesh, Mesh],
    poses: tuple[np.ndarray, np.ndarray],
    points: tuple[np.ndarray, np.ndarray],
    normals: np.ndarray,
    tie: np.ndarray,
    device: wp.Device,
) -> np.ndarray:
    """(n,) whether features other than the nearest are within `tie` of their distance.

    Args:
        poses: of both meshes, (n, 4, 4) each.
        points: the nearest, in the world, (n, 3) each.
        normals: from b to a there, (n, 3), unit.
        tie: (n,) [m].
    """
    count = len(normals)
    rows = np.zeros(count, NearestAnswer.numpy_dtype())
    reached = np.linalg.norm(points[0] - points[1], axis=1)
    size = sum(mesh.extent for mesh in meshes)
    rows["point_a"], rows["point_b"], rows["normal"], rows["bound"] = *points, normals, reached + tie
    # Beside the nearest point the distance grows with the square of the way.
    rows["apart"] = APART * size + 2.0 * np.sqrt(2.0 * tie * (reached + tie))
    rows["turned"] = APART + 2.0 * np.sqrt(2.0 * tie / np.maximum(reached, 1e-300))
    trees = [ObbTree.of(mesh, device) for mesh in meshes]
    placed = np.stack(np.broadcast_arrays(*poses), axis=1)
    tied = wp.zeros(count, dtype=wp.int32, device=device)
    inputs = [
        trees[0].nodes,
        trees[1].nodes,
        trees[0].corners,
        trees[1].corners,
        wp.array(np.ascontiguousarray(placed), dtype=wp.mat44d, device=device),
        wp.array(rows, dtype=NearestAnswer, device=device),
    ]
    launch(_find_ties, count, inputs, [tied], device=device, grain=1)
    return tied.numpy() != 0


@wp.kernel
def _find_ties(
    first: int,
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    poses: wp.array2d[wp.mat44d],
    nearest: wp.array[NearestAnswer],
    tied: wp.array[wp.int32],
):
    q = first + wp.tid()
    place = nearest[q]
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
        a = nodes_a[i]
        b = nodes_b[j]
        if a.right < 0 and b.right < 0:
            one = world_corners(corners_a, a.triangle, pose_a)
            other = world_corners(corners_b, b.triangle, pose_b)
            if elsewhere(one, other, place):
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
            other_bound = boxes_at_least(
                nodes_a[i1], nodes_b[j1], placed.rotation, placed.translation, uncertain, place.bound
            )
            if other_bound[0] < place.bound:
                waiting_a[count] = i1
                waiting_b[count] = j1
                count += 1
            one_bound = boxes_at_least(
                nodes_a[i0], nodes_b[j0], placed.rotation, placed.translation, uncertain, place.bound
            )
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

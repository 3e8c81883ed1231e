"""Which of many pairs of different bodies meet, at rest? All pairs in one launch, one thread each.

Exact:  as `intersects`, of which this is the descent (`traversal.any_meeting_below`); what floating point cannot decide
        is asked there. One body wholly inside another does not meet it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbNode
from tangere.geometry.triangles import MEET, UNSURE
from tangere.motion import Rest
from tangere.query.intersection.posed import pose_of
from tangere.query.intersection.traversal import any_meeting_below, meeting_triangles
from tangere.runtime import SOUND, choose_device, launch
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)


def meeting_pairs(
    shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray, pairs: np.ndarray, device: str | wp.Device | None
) -> np.ndarray:
    """(k, 2) a triangle of each body of a pair that meet; -1 where the surfaces do not meet.

    Args:
        shapes: the meshes there are.
        shape: (n,) which of them each body is.
        poses: (n, 4, 4) where each body is.
        pairs: (k, 2) numbers of bodies.
    """
    device = choose_device(device)
    pairs = np.asarray(pairs, np.int32).reshape(-1, 2)
    if not len(pairs):
        return np.zeros((0, 2), np.int32)
    from tangere.query.first_contact.rigid.bodies import Forest  # which needs this part

    forest = Forest.of(shapes, device)
    begins = np.stack([forest.first_node[shape], forest.first_triangle[shape]], axis=1)
    rows = np.concatenate([begins[pairs[:, 0]], begins[pairs[:, 1]]], axis=1).astype(np.int32)
    found = wp.zeros(len(pairs), dtype=wp.vec3i, device=device)
    inputs = [
        wp.array(rows, dtype=wp.vec4i, device=device),
        wp.array(pairs, dtype=wp.vec2i, device=device),
        wp.array(poses, dtype=wp.mat44d, device=device),
        forest.nodes,
        forest.corners,
    ]
    launch(_find_meeting, len(pairs), inputs, [found], device=device, grain=1)
    answers = found.numpy()
    triangles = np.where(answers[:, 2:] == int(MEET), answers[:, :2], -1)
    for row in np.flatnonzero(answers[:, 2] == int(UNSURE)):
        bodies = [shapes[shape[k]].moving(Rest(poses[k])) for k in pairs[row]]
        meeting = meeting_triangles(*bodies, 0.0, device, every=False)
        if len(meeting):
            triangles[row] = meeting[0]
    return triangles


@wp.kernel
def _find_meeting(
    first: int,
    begins: wp.array[wp.vec4i],
    pairs: wp.array[wp.vec2i],
    poses: wp.array[wp.mat44d],
    nodes: wp.array[ObbNode],
    corners: wp.array[wp.vec3d],
    found: wp.array[wp.vec3i],
):
    i = first + wp.tid()
    pose_a = pose_of(poses[pairs[i][0]])
    pose_b = pose_of(poses[pairs[i][1]])
    found[i] = any_meeting_below(nodes, nodes, corners, corners, begins[i], pose_a, pose_b)

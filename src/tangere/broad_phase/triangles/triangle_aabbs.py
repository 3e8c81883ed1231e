"""The boxes that every broad phase compares, and what it means that two triangles may pair.

A box is the first half of a moving box: three codes of the lower corner, three of the negated upper corner (see
`bvh.lbvh`). All broad phases see the same codes, so all find exactly the same pairs and each checks the others.
A triangle that takes no part has an empty box, which meets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.bvh.lbvh import LERP_ERROR, UNDERFLOW, code_below
from tangere.runtime import SOUND, launch_in_turn

wp.set_module_options(SOUND)

Box = wp.types.vector(length=6, dtype=wp.int32)
#: Beyond the code of every number.
EMPTY = wp.constant(wp.int32(2**30 - 1))
#: Vertices or triangles worth a thread, some 10 ns each.
GRAIN = 16384


@dataclass(frozen=True)
class TriangleAabbs:
    """Triangles to be paired: their boxes, and which bodies are compared with which."""

    boxes: wp.array  #: (n,) `Box`, in the frame of the scene
    body: wp.array  #: (n,) int32
    compared: wp.array  #: (bodies, bodies) uint8, symmetric; on the diagonal: with itself
    longest_axis: int  #: of the scene

    @staticmethod
    def of(surfaces: Surfaces, distance: float, jobs: np.ndarray | None = None) -> TriangleAabbs:
        """All triangles of a scene, their boxes grown by half of `distance` [m].

        Args:
            jobs: (k, 2) pairs of meshes to compare; None means all, and each with itself.
        """
        bodies = len(surfaces.meshes)
        jobs = every_job(bodies) if jobs is None else jobs
        bounds = np.array([mesh.bounds for mesh in surfaces.meshes])
        return TriangleAabbs(
            boxes=triangle_boxes(surfaces, distance),
            body=surfaces.layout.body,
            compared=surfaces.layout.for_jobs("compared", jobs, lambda: compared_bodies(jobs, bodies, surfaces.device)),
            longest_axis=int(np.argmax(bounds[:, 1].max(axis=0) - bounds[:, 0].min(axis=0))),
        )


def compared_bodies(jobs: np.ndarray, bodies: int, device: wp.Device) -> wp.array:
    """(bodies, bodies) uint8: 1 where two bodies are compared."""
    compared = np.zeros((bodies, bodies), np.uint8)
    compared[jobs[:, 0], jobs[:, 1]] = compared[jobs[:, 1], jobs[:, 0]] = 1
    return wp.array(compared, dtype=wp.uint8, device=device)


def every_job(bodies: int) -> np.ndarray:
    """(k, 2): each body with itself and with every later one."""
    return np.stack(np.triu_indices(bodies), axis=1).astype(np.int32)


def triangle_boxes(surfaces: Surfaces, distance: float) -> wp.array:
    """The `Box` of each triangle, grown by half of `distance` [m]."""
    faces, positions, frame, device = surfaces.layout.faces, surfaces.positions, surfaces.frame, surfaces.device
    vertices = wp.empty(len(positions), dtype=Box, device=device)
    boxes = wp.empty(len(faces), dtype=Box, device=device)
    place = [positions, 0.5 * distance, wp.vec3d(*frame.origin), frame.scale, vertices]
    launches = [(_vertex_boxes, len(positions), place), (_triangle_boxes, len(faces), [faces, vertices, boxes])]
    launch_in_turn(launches, device=device, grain=GRAIN)
    return boxes


@wp.func
def boxes_overlap(a: Box, b: Box) -> bool:
    """Whether two boxes have a point in common."""
    return not (
        a[0] + b[3] > 0 or b[0] + a[3] > 0 or a[1] + b[4] > 0 or b[1] + a[4] > 0 or a[2] + b[5] > 0 or b[2] + a[5] > 0
    )


@wp.func
def is_empty(box: Box) -> bool:
    return box[0] == EMPTY


@wp.func
def may_pair(i: int, j: int, body: wp.array[int], compared: wp.array2d[wp.uint8]) -> bool:
    """Whether triangles i and j belong to bodies that are compared."""
    return compared[body[i], body[j]] == wp.uint8(1)


@wp.kernel
def _vertex_boxes(
    first: int,
    positions: wp.array[wp.vec3d],
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    boxes: wp.array[Box],
):
    """The codes that `bvh.lbvh.vertex_boxes` has for the beginning."""
    i = first + wp.tid()
    p = positions[i]
    box = Box()
    for k in range(3):
        room = LERP_ERROR * (wp.abs(p[k]) + wp.abs(p[k]) + wp.abs(origin[k]) + margin) + margin + UNDERFLOW
        box[k] = code_below((p[k] - origin[k] - room) * scale)
        box[3 + k] = code_below((origin[k] - p[k] - room) * scale)
    boxes[i] = box


@wp.kernel
def _triangle_boxes(first: int, faces: wp.array2d[int], vertices: wp.array[Box], boxes: wp.array[Box]):
    i = first + wp.tid()
    boxes[i] = wp.min(wp.min(vertices[faces[i, 0]], vertices[faces[i, 1]]), vertices[faces[i, 2]])

"""Bounds of triangles for stage 2 of the grid pipeline: spheres, and who is in a region of interest.

Spheres are the smallest that hold a triangle: around the longest edge where the angle opposite is not acute, else
through the three corners (Léonard 2021, section 3.3). Both kinds of bounds are grown by half the distance.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.broad_phase.triangles.triangle_aabbs import EMPTY, GRAIN, Box, boxes_overlap
from tangere.bvh.lbvh.moving_aabb import code_below
from tangere.published.leonard_grid.box_corners import codes_of
from tangere.published.leonard_grid.kdop import Objects
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Relative rounding error of a radius, and a little more.
ROUND_OUT = wp.constant(wp.float64(1.0 + 1e-12))
#: Regions are compared with boxes in the frame of the scene, whose extent is about 1.
REGION_ROOM = 1e-6


def triangle_spheres(surfaces: Surfaces, distance: float) -> wp.array:
    """(m,) vec4d: centre and radius [m] of the smallest sphere around each triangle, grown by half of `distance`."""
    faces, device = surfaces.layout.faces, surfaces.device
    spheres = wp.empty(len(faces), dtype=wp.vec4d, device=device)
    launch(_spheres, len(faces), [faces, surfaces.positions, 0.5 * distance], [spheres], device=device)
    return spheres


def sphere_boxes(surfaces: Surfaces, spheres: wp.array) -> wp.array:
    """The `Box` of each sphere."""
    boxes = wp.empty(len(spheres), dtype=Box, device=surfaces.device)
    frame = surfaces.frame
    launch(
        _sphere_boxes, len(spheres), [spheres, wp.vec3d(*frame.origin), frame.scale], [boxes], device=surfaces.device
    )
    return boxes


def inside_regions(surfaces: Surfaces, objects: Objects, boxes: wp.array) -> None:
    """Empty the boxes that overlap no region their body shares with another it is compared with."""
    device, frame, jobs, count = surfaces.device, surfaces.frame, objects.jobs, len(surfaces.meshes)
    first, chosen = surfaces.layout.for_jobs("regions", jobs, lambda: _by_body(jobs, count, device))
    local = (objects.regions[chosen] - frame.origin) * frame.scale
    corners = np.concatenate([local[:, 0], -local[:, 1]], axis=1) - REGION_ROOM
    regions = wp.array(codes_of(corners), dtype=Box, device=device, copy=not device.is_cpu)
    launch(_inside, len(boxes), [surfaces.layout.body, first, regions], [boxes], device=device, grain=GRAIN)


def _by_body(jobs: np.ndarray, bodies: int, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """Which regions each body shares, body after body: where those of each begin, and which they are."""
    both = np.flatnonzero(jobs[:, 0] != jobs[:, 1])
    owner = np.concatenate([jobs[:, 0], jobs[both, 1]])
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(bodies + 1)).astype(np.int32)
    chosen = np.concatenate([np.arange(len(jobs)), both])[order]
    return wp.array(first, dtype=wp.int32, device=device), chosen


@wp.kernel
def _spheres(
    first: int, faces: wp.array2d[int], positions: wp.array[wp.vec3d], room: wp.float64, spheres: wp.array[wp.vec4d]
):
    i = first + wp.tid()
    a = positions[faces[i, 0]]
    b = positions[faces[i, 1]]
    c = positions[faces[i, 2]]
    half = wp.float64(0.5)
    ab = wp.dot(b - a, b - a)
    bc = wp.dot(c - b, c - b)
    ca = wp.dot(a - c, a - c)
    centre = half * (a + b)
    if bc >= ab and bc >= ca:
        centre = half * (b + c)
    elif ca >= ab:
        centre = half * (c + a)
    longest = wp.max(ab, wp.max(bc, ca))
    if ab + bc + ca > wp.float64(2.0) * longest:  # acute
        wa = bc * (ab + ca - bc)
        wb = ca * (ab + bc - ca)
        wc = ab * (bc + ca - ab)
        total = wa + wb + wc
        if total > wp.float64(1.0e-12) * longest * longest:
            centre = a + (wb / total) * (b - a) + (wc / total) * (c - a)
    # Whatever the centre, this holds the triangle.
    radius = wp.max(wp.length(a - centre), wp.max(wp.length(b - centre), wp.length(c - centre)))
    spheres[i] = wp.vec4d(centre[0], centre[1], centre[2], (radius + room) * ROUND_OUT)


@wp.kernel
def _sphere_boxes(first: int, spheres: wp.array[wp.vec4d], origin: wp.vec3d, scale: wp.float64, boxes: wp.array[Box]):
    i = first + wp.tid()
    ball = spheres[i]
    box = Box()
    for k in range(3):
        room = ball[3] + wp.float64(1.0e-14) * (wp.abs(ball[k]) + wp.abs(origin[k]))
        box[k] = code_below((ball[k] - origin[k] - room) * scale)
        box[3 + k] = code_below((origin[k] - ball[k] - room) * scale)
    boxes[i] = box


@wp.kernel
def _inside(first: int, body: wp.array[int], first_region: wp.array[int], regions: wp.array[Box], boxes: wp.array[Box]):
    i = first + wp.tid()
    box = boxes[i]
    inside = int(0)
    for r in range(first_region[body[i]], first_region[body[i] + 1]):
        if boxes_overlap(box, regions[r]):
            inside = 1
    if inside == 0:
        boxes[i] = Box(EMPTY)

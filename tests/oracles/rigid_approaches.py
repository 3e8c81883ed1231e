"""How near rigid meshes come before a time, for thousands of scenes at once: dense times, brute-force distances.

Method: a scene is walked from 0 to the time. A step is as long as the distance allows at the largest speed of any point
        (so what is skipped is proved, not hoped), yet never shorter than a five-hundredth of the way: where the bodies
        are near, times are dense. Then the least distance found is refined between its neighbours by golden section.
        Distances are of all pairs of triangles; only balls round triangles and round eights of them, and gaps along a
        few directions, save work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from oracles.rigid_distances import distance
from tangere.motion import COSINE, RigidMotion, pose_at
from tangere.motion.rigid_motion import RECORD
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

__all__ = ["least_distances"]

#: Triangles in a bunch.
BUNCH = wp.constant(8)
#: Steps for the whole way where the bodies are near, and of the refinement.
STEPS = wp.constant(wp.float64(500.0))
REFINEMENTS = wp.constant(24)
#: What is certainly farther apart needs no refinement [m].
APART = wp.constant(wp.float64(1.0e-3))
#: Speeds are measured between so many times, and taken to be so much larger.
SPEED_TIMES, SPEED_MARGIN = 64, 1.3

ZERO = wp.constant(wp.float64(0.0))
HALF_PI = wp.constant(wp.float64(np.pi / 2))
GOLDEN = wp.constant(wp.float64((3.0 - 5.0**0.5) / 2.0))


@wp.struct
class Shape:
    """A mesh as triangles, with a ball (centre, radius) round each and round each bunch."""

    corners: wp.array(dtype=wp.vec3d)
    balls: wp.array(dtype=wp.vec4d)
    bunches: wp.array(dtype=wp.vec4d)


def least_distances(a, b, motion_a, motion_b, until: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) least distances found in [0, until), and distances at `until`, of n scenes of two meshes."""
    count, cpu = len(until), wp.get_device("cpu")
    records = [np.broadcast_to(motion.records(), count).astype(RECORD) for motion in (motion_a, motion_b)]
    smooth = (records[0]["kind"] == int(COSINE)) | (records[1]["kind"] == int(COSINE))
    ends = np.minimum(until, 1.0)
    clock = np.where(smooth, np.arcsin(np.sqrt(ends)) / (np.pi / 2), ends)
    speed = largest_speed(a, motion_a, smooth, count) + largest_speed(b, motion_b, smooth, count)
    out = np.zeros((2, count))
    launch(
        _walk,
        count,
        [
            shape_of(a, cpu),
            shape_of(b, cpu),
            *(wp.array(each, dtype=RigidMotion, device=cpu) for each in records),
            wp.array(smooth, dtype=wp.bool, device=cpu),
            wp.array(clock, dtype=wp.float64, device=cpu),
            wp.array(speed, dtype=wp.float64, device=cpu),
        ],
        [wp.array(out[k], dtype=wp.float64, device=cpu, copy=False) for k in range(2)],
        device=cpu,
        grain=4,
    )
    return out[0], out[1]


def largest_speed(mesh, motion, smooth: np.ndarray, count: int) -> np.ndarray:
    """(n,) how far any vertex goes in a unit of the clock, by differences."""
    ticks = np.linspace(0.0, 1.0, SPEED_TIMES + 1)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, 8)
    fastest = np.zeros(count)
    before = None
    for tick in ticks:
        time = np.where(smooth, np.sin(np.pi / 2 * tick) ** 2, tick)
        poses = np.broadcast_to(motion.pose(time), (count, 4, 4))
        now = poses[:, :3, :3] @ corners + poses[:, :3, 3:]
        if before is not None:
            fastest = np.maximum(fastest, np.linalg.norm(now - before, axis=1).max(axis=1))
        before = now
    return SPEED_MARGIN * SPEED_TIMES * fastest


def shape_of(mesh, device: wp.Device) -> Any:
    triangles = mesh.vertices[mesh.faces]
    middles = triangles.mean(axis=1)
    radii = np.linalg.norm(triangles - middles[:, None], axis=2).max(axis=1)
    bunches = []
    for first in range(0, len(triangles), int(BUNCH)):
        points = triangles[first : first + int(BUNCH)].reshape(-1, 3)
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        bunches.append([*middle, np.linalg.norm(points - middle, axis=1).max()])
    shape: Any = Shape()
    shape.corners = wp.array(triangles.reshape(-1, 3), dtype=wp.vec3d, device=device)
    shape.balls = wp.array(np.column_stack([middles, radii]), dtype=wp.vec4d, device=device)
    shape.bunches = wp.array(np.array(bunches), dtype=wp.vec4d, device=device)
    return shape


@wp.func
def beyond(p: wp.vec4d, q: wp.vec4d, at: wp.vec3d, least: wp.float64) -> bool:
    """Whether balls, the second one moved to `at`, are more than `least` apart."""
    x = at[0] - p[0]
    y = at[1] - p[1]
    z = at[2] - p[2]
    reach = least + p[3] + q[3]
    return x * x + y * y + z * z > reach * reach


@wp.func
def middle(ball: wp.vec4d) -> wp.vec3d:
    return wp.vec3d(ball[0], ball[1], ball[2])


@wp.func
def gap_along(a: wp.mat33d, b: wp.mat33d, n: wp.vec3d) -> wp.float64:
    """Distance of two triangles (corners are rows) along n, times |n|."""
    p = a * n
    q = b * n
    return wp.max(wp.min(q) - wp.max(p), wp.min(p) - wp.max(q))


@wp.func
def nearer(best: wp.vec3d, a: Shape, b: Shape, i: int, j: int, rotation: wp.mat33d, offset: wp.vec3d) -> wp.vec3d:
    """`best`, or the distance of triangles i and j with their numbers, if that is less."""
    a0 = a.corners[3 * i]
    a1 = a.corners[3 * i + 1]
    a2 = a.corners[3 * i + 2]
    b0 = rotation * b.corners[3 * j] + offset
    b1 = rotation * b.corners[3 * j + 1] + offset
    b2 = rotation * b.corners[3 * j + 2] + offset
    p = wp.matrix_from_rows(a0, a1, a2)
    q = wp.matrix_from_rows(b0, b1, b2)
    result = best
    apart = bool(False)
    k = int(0)
    while k < 6 and not apart:
        n = wp.cross(a1 - a0, a2 - a0)
        if k == 1:
            n = wp.cross(b1 - b0, b2 - b0)
        if k == 2:
            n = b0 + b1 + b2 - a0 - a1 - a2
        if k > 2:
            n = wp.vec3d(ZERO, ZERO, ZERO)
            n[k - 3] = wp.float64(1.0)
        apart = gap_along(p, q, n) > best[0] * wp.length(n) * wp.float64(1.0 + 1.0e-9)
        k += 1
    if not apart:
        d = distance(a0, a1, a2, b0, b1, b2)
        if d < best[0]:
            result = wp.vec3d(d, wp.float64(i), wp.float64(j))
    return result


@wp.func
def distance_at(
    a: Shape, b: Shape, motion_a: RigidMotion, motion_b: RigidMotion, smooth: wp.bool, tau: wp.float64, near: wp.vec2i
) -> wp.vec3d:
    """(distance, triangle of a, triangle of b) at tau; `near` is a pair that is tried first."""
    t = tau
    if smooth:
        t = wp.sin(HALF_PI * tau)
        t = t * t
    p = pose_at(motion_a, t)
    q = pose_at(motion_b, t)
    rotation = wp.transpose(p.rotation) * q.rotation
    offset = wp.transpose(p.rotation) * (q.translation - p.translation)
    best = wp.vec3d(1.0e300, 0.0, 0.0)
    best = nearer(best, a, b, near[0], near[1], rotation, offset)
    for m in range(b.bunches.shape[0]):
        centre_m = rotation * middle(b.bunches[m]) + offset
        for k in range(a.bunches.shape[0]):
            if best[0] > ZERO and not beyond(a.bunches[k], b.bunches[m], centre_m, best[0]):
                j = m * BUNCH
                while j < wp.min((m + 1) * BUNCH, b.balls.shape[0]):
                    centre = rotation * middle(b.balls[j]) + offset
                    i = k * BUNCH
                    while i < wp.min((k + 1) * BUNCH, a.balls.shape[0]):
                        if not beyond(a.balls[i], b.balls[j], centre, best[0]):
                            best = nearer(best, a, b, i, j, rotation, offset)
                        i += 1
                    j += 1
    return best


@wp.kernel
def _walk(
    first: int,
    a: Shape,
    b: Shape,
    motions_a: wp.array[RigidMotion],
    motions_b: wp.array[RigidMotion],
    smooths: wp.array[wp.bool],
    ends: wp.array[wp.float64],
    speeds: wp.array[wp.float64],
    least: wp.array[wp.float64],
    last: wp.array[wp.float64],
):
    i = first + wp.tid()
    motion_a = motions_a[i]
    motion_b = motions_b[i]
    smooth = smooths[i]
    end = ends[i]
    near = wp.vec2i(0, 0)
    best = wp.float64(1.0e300)
    low = wp.float64(0.0)  # the least distance lies between low and high
    high = wp.float64(0.0)
    before = wp.float64(0.0)
    tau = wp.float64(0.0)
    open_end = bool(False)
    tail = int(1)
    while tau < end and best > ZERO:
        found = distance_at(a, b, motion_a, motion_b, smooth, tau, near)
        near = wp.vec2i(int(found[1]), int(found[2]))
        if open_end:
            high = tau
            open_end = False
        if found[0] < best:
            best = found[0]
            low = before
            open_end = True
        before = tau
        step = wp.max(found[0] / wp.max(speeds[i], wp.float64(1.0e-9)), end / STEPS)
        if tau + step < end:
            tau += step
        else:  # crowd towards the end, where a late answer would show
            while tail < 9 and end * (wp.float64(1.0) - wp.pow(wp.float64(0.1), wp.float64(tail))) <= tau:
                tail += 1
            tau = end
            if tail < 9:
                tau = end * (wp.float64(1.0) - wp.pow(wp.float64(0.1), wp.float64(tail)))
    if open_end:
        high = before
    # golden section: two inner times, the side of the larger distance is dropped
    p = low + GOLDEN * (high - low)
    q = high - GOLDEN * (high - low)
    at_p = distance_at(a, b, motion_a, motion_b, smooth, p, near)[0]
    at_q = distance_at(a, b, motion_a, motion_b, smooth, q, near)[0]
    k = int(0)
    # At this speed the bodies stay well apart between the neighbours as well: nothing to refine.
    if best - wp.float64(0.5) * speeds[i] * (high - low) > APART:
        k = REFINEMENTS + 0
    while k < REFINEMENTS and best > ZERO:
        best = wp.min(best, wp.min(at_p, at_q))
        if at_p < at_q:
            high = q
            q = p
            at_q = at_p
            p = low + GOLDEN * (high - low)
            at_p = distance_at(a, b, motion_a, motion_b, smooth, p, near)[0]
        else:
            low = p
            p = q
            at_p = at_q
            q = high - GOLDEN * (high - low)
            at_q = distance_at(a, b, motion_a, motion_b, smooth, q, near)[0]
        k += 1
    least[i] = best
    last[i] = distance_at(a, b, motion_a, motion_b, smooth, end, near)[0]

"""How near rigid meshes really come, by brute force: no trees, no bounds, no motion formula of the library.

Distances are of all pairs of triangles at given poses: zero where an edge meets a face, else the least of six
vertex-face and nine edge-edge distances (`closest_points`, itself tested against exact arithmetic). Only bounding balls
save work. `closest_approach` looks at many times and then between them, where distances are least.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.geometry.closest_points import segments_distance, triangle_distance
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

__all__ = ["box_gaps", "closest_approach", "mesh_distances", "triangle_distances"]

ZERO = wp.constant(wp.float64(0.0))


def triangle_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) distance of triangles a, b, each (n, 3, 3)."""
    count = len(a)
    out = np.zeros(count)
    cpu = wp.get_device("cpu")
    points = [
        wp.array(np.ascontiguousarray(x, dtype=np.float64).reshape(-1, 3), dtype=wp.vec3d, device=cpu) for x in (a, b)
    ]
    launch(_each, count, points, [wp.array(out, dtype=wp.float64, device=cpu, copy=False)], device=cpu, grain=512)
    return out


def mesh_distances(a, b, poses_a: np.ndarray, poses_b: np.ndarray) -> np.ndarray:
    """(k,) distance of two meshes at poses (k, 4, 4)."""
    cpu = wp.get_device("cpu")
    out = np.zeros(len(poses_a))
    corners = [wp.array(mesh.vertices[mesh.faces].reshape(-1, 3), dtype=wp.vec3d, device=cpu) for mesh in (a, b)]
    relative = np.linalg.inv(poses_a) @ poses_b
    launch(
        _meshes,
        len(out),
        [*corners, wp.array(np.ascontiguousarray(relative), dtype=wp.mat44d, device=cpu)],
        [wp.array(out, dtype=wp.float64, device=cpu, copy=False)],
        device=cpu,
        grain=8,
    )
    return out


def closest_approach(a, b, motion_a, motion_b, until: float, samples: int = 48, rounds: int = 10) -> float:
    """The least distance of two moving meshes found at times in [0, until): samples, then ever finer round the least.

    Times crowd towards `until` as well, where a late answer would show first.
    """
    times = np.concatenate(
        [np.linspace(0.0, until, samples, endpoint=False), until * (1.0 - 10.0 ** -np.arange(1.0, 8))]
    )
    times = np.unique(times)
    distances = mesh_distances(a, b, motion_a.pose(times), motion_b.pose(times))
    for _ in range(rounds):
        if distances.min() == 0.0:
            break
        # Halve the gaps next to the three least distances.
        least = np.argsort(distances)[:3]
        ends = np.append(times, until)
        new = np.unique(
            np.concatenate([0.5 * (ends[least] + ends[least + 1]), 0.5 * (times[least] + times[least - 1])])
        )
        new = new[(new < until) & ~np.isin(new, times)]
        if not len(new):
            break
        times = np.append(times, new)
        distances = np.append(distances, mesh_distances(a, b, motion_a.pose(new), motion_b.pose(new)))
        order = np.argsort(times)
        times, distances = times[order], distances[order]
    return float(distances.min())


def box_gaps(a: np.ndarray, b: np.ndarray, axes_a: np.ndarray, axes_b: np.ndarray) -> np.ndarray:
    """(n,) the largest gap of boxes with corners (n, 8, 3) along their 15 axes; boxes meet where it is not positive.

    Args:
        axes_a, axes_b: (n, 3, 3), axes as columns.
    """
    count, cpu = len(a), wp.get_device("cpu")
    out = np.zeros(count)
    corners = [wp.array(np.ascontiguousarray(x).reshape(-1, 3), dtype=wp.vec3d, device=cpu) for x in (a, b)]
    axes = [wp.array(np.ascontiguousarray(x), dtype=wp.mat33d, device=cpu) for x in (axes_a, axes_b)]
    launch(
        _boxes,
        count,
        [*corners, *axes],
        [wp.array(out, dtype=wp.float64, device=cpu, copy=False)],
        device=cpu,
        grain=512,
    )
    return out


@wp.kernel
def _boxes(
    first: int,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    axes_a: wp.array[wp.mat33d],
    axes_b: wp.array[wp.mat33d],
    out: wp.array[wp.float64],
):
    i = first + wp.tid()
    best = wp.float64(-1.0e300)
    k = int(0)
    while k < 15:
        n = wp.vec3d()
        if k < 3:
            n = column(axes_a[i], k)
        elif k < 6:
            n = column(axes_b[i], k - 3)
        else:
            n = wp.cross(column(axes_a[i], (k - 6) / 3), column(axes_b[i], (k - 6) % 3))
        length = wp.length(n)
        if length > wp.float64(1.0e-6):
            low_a = wp.float64(1.0e300)
            high_a = wp.float64(-1.0e300)
            low_b = wp.float64(1.0e300)
            high_b = wp.float64(-1.0e300)
            for c in range(8):
                p = wp.dot(a[8 * i + c], n) / length
                q = wp.dot(b[8 * i + c], n) / length
                low_a = wp.min(low_a, p)
                high_a = wp.max(high_a, p)
                low_b = wp.min(low_b, q)
                high_b = wp.max(high_b, q)
            best = wp.max(best, wp.max(low_b - high_a, low_a - high_b))
        k += 1
    out[i] = best


@wp.func
def column(m: wp.mat33d, k: int) -> wp.vec3d:
    return wp.vec3d(m[0, k], m[1, k], m[2, k])


@wp.func
def meets(p: wp.vec3d, q: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> bool:
    """Whether the segment pq crosses the triangle abc (up to rounding at its rim, where distances vanish anyway)."""
    d = q - p
    u = wp.dot(d, wp.cross(a - p, b - p))
    v = wp.dot(d, wp.cross(b - p, c - p))
    w = wp.dot(d, wp.cross(c - p, a - p))
    n = wp.cross(b - a, c - a)
    sides = wp.dot(n, a - p) * wp.dot(n, a - q)
    return (
        sides <= ZERO
        and ((u >= ZERO and v >= ZERO and w >= ZERO) or (u <= ZERO and v <= ZERO and w <= ZERO))
        and (wp.abs(u) + wp.abs(v) + wp.abs(w) > ZERO)
    )


@wp.func
def distance(a0: wp.vec3d, a1: wp.vec3d, a2: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d, b2: wp.vec3d) -> wp.float64:
    least = wp.float64(1.0e300)
    k = int(0)
    while k < 3:
        p = a0
        q = a1
        r = b0
        s = b1
        if k == 1:
            p = a1
            q = a2
            r = b1
            s = b2
        if k == 2:
            p = a2
            q = a0
            r = b2
            s = b0
        if meets(p, q, b0, b1, b2) or meets(r, s, a0, a1, a2):
            least = ZERO + ZERO
        least = wp.min(least, triangle_distance(p, b0, b1, b2))
        least = wp.min(least, triangle_distance(r, a0, a1, a2))
        least = wp.min(least, segments_distance(p, q, b0, b1))
        least = wp.min(least, segments_distance(p, q, b1, b2))
        least = wp.min(least, segments_distance(p, q, b2, b0))
        k += 1
    return least


@wp.kernel
def _each(first: int, a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], out: wp.array[wp.float64]):
    i = first + wp.tid()
    out[i] = distance(a[3 * i], a[3 * i + 1], a[3 * i + 2], b[3 * i], b[3 * i + 1], b[3 * i + 2])


@wp.kernel
def _meshes(
    first: int,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    relative: wp.array[wp.mat44d],
    out: wp.array[wp.float64],
):
    i = first + wp.tid()
    m = relative[i]
    rotation = wp.mat33d(m[0, 0], m[0, 1], m[0, 2], m[1, 0], m[1, 1], m[1, 2], m[2, 0], m[2, 1], m[2, 2])
    offset = wp.vec3d(m[0, 3], m[1, 3], m[2, 3])
    least = wp.float64(1.0e300)
    third = wp.float64(1.0) / wp.float64(3.0)
    for j in range(b.shape[0] / 3):
        b0 = rotation * b[3 * j] + offset
        b1 = rotation * b[3 * j + 1] + offset
        b2 = rotation * b[3 * j + 2] + offset
        middle_b = (b0 + b1 + b2) * third
        radius_b = wp.max(wp.length(b0 - middle_b), wp.max(wp.length(b1 - middle_b), wp.length(b2 - middle_b)))
        for k in range(a.shape[0] / 3):
            a0 = a[3 * k]
            a1 = a[3 * k + 1]
            a2 = a[3 * k + 2]
            middle = (a0 + a1 + a2) * third
            radius = wp.max(wp.length(a0 - middle), wp.max(wp.length(a1 - middle), wp.length(a2 - middle)))
            if wp.length(middle - middle_b) - radius - radius_b < least:
                least = wp.min(least, distance(a0, a1, a2, b0, b1, b2))
    out[i] = least

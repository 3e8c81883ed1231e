"""Where do two triangles touch, or come nearest, and which way pushes the first one away? One thread a pair."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.geometry.triangles import MEET, common_point, nearest_of_triangles, triangles_meet
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))


def points_of_pairs(a: np.ndarray, b: np.ndarray, touch: float, device: wp.Device) -> tuple[np.ndarray, np.ndarray]:
    """Of triangles (n, 3, 3) in the world: (n, 3) points in the middle between them, and (n, 3) unit normals.

    Args:
        touch: nearer than this the way from one to the other is rounding: a face tells the normal [m].
    """
    inputs = [wp.array(np.ascontiguousarray(side), dtype=wp.mat33d, device=device) for side in (a, b)]
    point, normal = (wp.zeros(len(a), dtype=wp.vec3d, device=device) for _ in range(2))
    launch(_describe_pairs, len(a), [*inputs, touch], [point, normal], device=device, grain=256)
    return point.numpy().reshape(-1, 3), normal.numpy().reshape(-1, 3)


@wp.func
def face_normal(triangle: wp.mat33d) -> wp.vec3d:
    """Unit, by the way the corners go round; 0 of a triangle without area."""
    return wp.normalize(wp.cross(triangle[1] - triangle[0], triangle[2] - triangle[0]))


@wp.func
def corners_used(weights: wp.vec3d) -> int:
    """How many corners a point of a triangle lies between."""
    count = int(0)
    for k in range(3):
        if weights[k] > _ZERO:
            count += 1
    return count


@wp.kernel
def _describe_pairs(
    first: int,
    a: wp.array[wp.mat33d],
    b: wp.array[wp.mat33d],
    touch: wp.float64,
    point: wp.array[wp.vec3d],
    normal: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    nearest = nearest_of_triangles(a[i], b[i])
    on_a = nearest.weights_a * a[i]
    on_b = nearest.weights_b * b[i]
    away = on_a - on_b
    where = (on_a + on_b) * wp.float64(0.5)
    if triangles_meet(a[i], b[i]) == MEET:
        where = common_point(a[i], b[i])
    point[i] = where
    if wp.length(away) > touch:
        normal[i] = wp.normalize(away)
    elif corners_used(nearest.weights_a) == 3 and corners_used(nearest.weights_b) < 3:
        normal[i] = -face_normal(a[i])
    else:
        normal[i] = face_normal(b[i])

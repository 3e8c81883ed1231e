"""The cones of `normal_cones` for CPUs: the normals of the eight faces of a cluster at once, with the same bits."""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes
from tangere.geometry.simd import VECTORS
from tangere.runtime import SOUND
from tangere.soft.model.assembled_bodies import CLOSED

wp.set_module_options(SOUND)


@wp.kernel
def simd_cones(
    first: int,
    corners: wp.array2d[Lanes],
    positions: wp.array[wp.vec3d],
    traits: wp.array[int],
    cones: wp.array[wp.vec4d],
):
    find_cone(first + wp.tid(), corners, positions, traits, cones)


@wp.func_native(
    VECTORS
    + f"""
    const int closed = {int(CLOSED)};
"""
    + """
    const int* vertex = (const int*)&corners.data[3 * k];
    int count = 0;
    while (count < 8 && vertex[count] >= 0)
        ++count;
    if (count == 0) {  // a cluster without faces: no cosine is 2
        cones.data[k] = wp::vec_t<4, wp::float64>(0.0, 0.0, 0.0, 2.0);
        return;
    }
    for (int c = 0; c < 3; ++c)
        for (int lane = 0; lane < 8; ++lane)  // lanes without a face repeat the first
            corner[c][lane] = (const double*)&positions.data[vertex[8 * c + (lane < count ? lane : 0)]];
    const Vector a = gathered(corner[0]), u = minus(gathered(corner[1]), a), v = minus(gathered(corner[2]), a);
    Vector n = {u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z, u.x * v.y - u.y * v.x};
    const Wide length = __builtin_elementwise_sqrt(dot(n, n));
    const Whole flat = ~(length > zero);
    n = {flat ? zero : n.x / length, flat ? zero : n.y / length, flat ? zero : n.z / length};
    wp::vec_t<3, wp::float64> sum(n.x[0], n.y[0], n.z[0]);
    bool all_closed = true;
    for (int lane = 0; lane < count; ++lane) {
        if (lane > 0)
            sum = sum + wp::vec_t<3, wp::float64>(n.x[lane], n.y[lane], n.z[lane]);
        all_closed &= (traits.data[vertex[lane]] & closed) != 0;
    }
    const auto axis = wp::normalize(sum);
    const Wide along = dot({(Wide)axis[0], (Wide)axis[1], (Wide)axis[2]}, n);
    double cosine = 1.0;
    for (int lane = 0; lane < 8; ++lane)
        cosine = along[lane] < cosine ? along[lane] : cosine;
    cones.data[k] = wp::vec_t<4, wp::float64>(axis[0], axis[1], axis[2], all_closed ? cosine : -1.0);
"""
)
def find_cone(
    k: int,
    corners: wp.array2d[Lanes],
    positions: wp.array[wp.vec3d],
    traits: wp.array[int],
    cones: wp.array[wp.vec4d],
):
    """The cone of cluster k."""
    ...

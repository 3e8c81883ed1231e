"""Which way clusters of faces face: closed surfaces that face the same way can only meet from inside.

A cluster's cone has an axis and the cosine of the largest angle of its normals to it: of its faces, and of the vertices
that belong to it, whose normals at sharp edges are between those of faces. Only for finding contacts to respond to;
what must not be missed does not ask it.
Known as: normal cones (Volino and Magnenat-Thalmann 1994; Provot 1997).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LinearTree
from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.contact.activation import vertex_normal
from tangere.soft.contact.cpu.simd_normal_cones import simd_cones
from tangere.soft.model.assembled_bodies import CLOSED, SMOOTH, AssembledBodies, SurfaceArrays
from tangere.soft.safe_step.patch_layout import PatchLists

wp.set_module_options(SOUND)


class NormalCones:
    """Axis and cosine (vec4d) of all clusters and patches; a cosine of -1 tells nothing, as for open surfaces.

    `clusters` are of faces; `vertices` of the same and the vertices of each cluster, `patches` of those of each patch.
    """

    def __init__(self, assembly: AssembledBodies, tree: LinearTree, lists: PatchLists, positions: wp.array) -> None:
        """`positions` are where the surface vertices are whenever cones are asked for [m]."""
        device = assembly.device
        self.clusters = wp.empty(len(tree.clusters), dtype=wp.vec4d, device=device)
        self.vertices = wp.empty_like(self.clusters)
        self.patches = wp.empty(lists.count, dtype=wp.vec4d, device=device)
        if device.is_cpu:
            inputs = [tree.corners, positions, assembly.surface.traits]
            self._find = PreparedLaunch(simd_cones, [*inputs, self.clusters], device, grain=1024)
        else:
            inputs = [tree.clusters, tree.first, tree.last, tree.items, positions, assembly.surface.traits]
            self._find = PreparedLaunch(_cones, [*inputs, self.clusters], device)
        inputs = [lists.vertices.features, lists.vertices.ranges, positions, assembly.surface, self.clusters]
        self._widen = PreparedLaunch(_vertex_cones, [*inputs, self.vertices], device, grain=1024)
        self._find_patches = PreparedLaunch(
            _patch_cones, [lists.first_cluster, self.vertices, self.patches], device, grain=1024
        )

    def __call__(self) -> None:
        """Where the surfaces are now."""
        self._find(len(self.clusters))
        self._widen(len(self.clusters))
        self._find_patches(len(self.patches))


@wp.func
def cones_face_same_way(a: wp.vec4d, b: wp.vec4d) -> bool:
    """Whether all directions of one cone are less than a right angle from all of the other."""
    sine_a = wp.sqrt(wp.max(wp.float64(0.0), wp.float64(1.0) - a[3] * a[3]))
    sine_b = wp.sqrt(wp.max(wp.float64(0.0), wp.float64(1.0) - b[3] * b[3]))
    narrow = a[3] > wp.float64(0.0) and b[3] > wp.float64(0.0) and a[3] * b[3] > sine_a * sine_b
    return narrow and a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > sine_a * b[3] + a[3] * sine_b


@wp.kernel
def _cones(
    first: int,
    clusters: wp.array[int],
    node_first: wp.array[int],
    node_last: wp.array[int],
    items: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    traits: wp.array[int],
    cones: wp.array[wp.vec4d],
):
    k = first + wp.tid()
    node = clusters[k]
    axis = wp.vec3d()
    for j in range(node_first[node], node_last[node] + 1):
        a = positions[items[j, 0]]
        axis += wp.normalize(wp.cross(positions[items[j, 1]] - a, positions[items[j, 2]] - a))
    axis = wp.normalize(axis)
    cosine = wp.float64(1.0)
    for j in range(node_first[node], node_last[node] + 1):
        a = positions[items[j, 0]]
        normal = wp.normalize(wp.cross(positions[items[j, 1]] - a, positions[items[j, 2]] - a))
        cosine = wp.min(cosine, wp.dot(axis, normal))
        if (traits[items[j, 0]] & CLOSED) == 0:
            cosine = wp.float64(-1.0)
    if node_last[node] < node_first[node]:
        cosine = wp.float64(2.0)  # no cosine: it has no faces
    cones[k] = wp.vec4d(axis[0], axis[1], axis[2], cosine)


@wp.kernel
def _vertex_cones(
    first: int,
    features: wp.array[int],
    ranges: wp.array[wp.vec2i],
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    cones: wp.array[wp.vec4d],
    vertex_cones: wp.array[wp.vec4d],
):
    """The cone of a cluster, made wider for those of its vertices that are at sharp edges."""
    k = first + wp.tid()
    cone = cones[k]
    if cone[3] > wp.float64(-1.0):
        axis = wp.vec3d(cone[0], cone[1], cone[2])
        for m in range(ranges[k][0], ranges[k][1]):
            v = features[m]
            if (surface.traits[v] & SMOOTH) == 0:
                cone[3] = wp.min(cone[3], wp.dot(axis, wp.normalize(vertex_normal(v, positions, surface))))
    vertex_cones[k] = cone


@wp.kernel
def _patch_cones(first: int, first_cluster: wp.array[int], cones: wp.array[wp.vec4d], patch_cones: wp.array[wp.vec4d]):
    p = first + wp.tid()
    one = wp.float64(1.0)
    axis = wp.vec3d()
    for k in range(first_cluster[p], first_cluster[p + 1]):
        axis += wp.vec3d(cones[k][0], cones[k][1], cones[k][2])
    axis = wp.normalize(axis)
    cosine = wp.float64(1.0)
    for k in range(first_cluster[p], first_cluster[p + 1]):
        cone = cones[k]
        if cone[3] <= one:  # else it has no faces
            across = axis[0] * cone[0] + axis[1] * cone[1] + axis[2] * cone[2]
            sines = wp.sqrt(wp.max(wp.float64(0.0), (one - across * across) * (one - cone[3] * cone[3])))
            widest = across * cone[3] - sines
            if across <= wp.float64(0.0) or cone[3] <= wp.float64(0.0):
                widest = wp.float64(-1.0)
            cosine = wp.min(cosine, widest)
    patch_cones[p] = wp.vec4d(axis[0], axis[1], axis[2], cosine)

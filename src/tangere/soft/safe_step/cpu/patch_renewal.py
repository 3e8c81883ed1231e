"""New references for patches, how they lie when a step ends, for CPUs: the largest part is their distances.

The faces around a patch lie eight side by side, and each edge of the patch that is not far from all of them looks for a
direction to each of the eight at once; pairs that find none are measured. How far apart they must be is known before,
from how the patch deforms: where that is too much, or a pair is nearer, nothing more is looked for. Nothing here is for
CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes
from tangere.geometry.simd import POINT_TRIANGLE, SEGMENT_SEGMENT, VECTORS
from tangere.runtime import SOUND
from tangere.soft.safe_step.cpu.simd_smoothness import needed_clearance, simd_fit_map
from tangere.soft.safe_step.patch_layout import PatchReference
from tangere.soft.safe_step.separating_direction import TRIES, shortest_offset

wp.set_module_options(SOUND)

#: Steps to wait before a patch that has no certificate even from where it is now is looked at anew.
RETRY_AFTER = wp.constant(8)
#: Distances are right to far more digits than this.
ROUNDED = wp.constant(wp.float64(1.0 - 1.0e-9))
#: The distance of a patch that cannot be certified for now; none at all would mean never.
NO_CLEARANCE = wp.constant(wp.float64(1.0e-300))
#: Coordinates of the corners of eight faces.
CORNERS = 72

#: An edge, eight times, and eight faces.
_PAIR = """
    typedef double Loaded __attribute__((ext_vector_type(8), aligned(8)));
    const Loaded* row = (const Loaded*)&scratch.data[scratch.shape[1] * p];
    const double* one = (const double*)&x.data[v0];
    const double* two = (const double*)&x.data[v1];
    const Vector e0 = {(Wide)one[0], (Wide)one[1], (Wide)one[2]}, e1 = {(Wide)two[0], (Wide)two[1], (Wide)two[2]};
    const Vector f0 = {row[0], row[1], row[2]}, f1 = {row[3], row[4], row[5]}, f2 = {row[6], row[7], row[8]};
"""


@wp.struct
class PatchFeatures:
    """The edges of patches, and the faces of the clusters of and around them."""

    cluster_offsets: wp.array[int]
    clusters: wp.array[int]
    nodes: wp.array[int]
    first: wp.array[int]
    last: wp.array[int]
    items: wp.array2d[int]
    corners: wp.array2d[Lanes]
    edge_offsets: wp.array[int]
    patch_edges: wp.array[int]
    edges: wp.array2d[int]
    reach: wp.float64  #: distances are looked for up to there [m]


@wp.struct
class RenewalState:
    """What is kept of the patches from one renewal to the next, and scratch memory."""

    nearest: wp.array2d[int]  #: (p, 2) edge and cluster that were nearest the last time; -1: none
    wait: wp.array[int]  #: (p,) steps to wait
    middles: wp.array[wp.vec4d]  #: of the edges of all patches, and half their lengths [m]
    faces: wp.array2d[wp.float64]  #: (p, CORNERS)


@wp.kernel
def renew_references(
    first: int,
    patches: wp.array[int],
    reference: PatchReference,
    features: PatchFeatures,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    kept: RenewalState,
    maps: wp.array2d[wp.mat33d],
    errors: wp.array2d[wp.vec2d],
    certified: wp.array[int],
):
    """Where there is no certificate, compare from now on with how the patch lies when this step ends."""
    p = patches[first + wp.tid()]
    if certified[p] == 1 or reference.clearance[p] <= wp.float64(0.0):
        return
    if kept.wait[p] > 0:
        kept.wait[p] = kept.wait[p] - 1
        return
    kept.wait[p] = RETRY_AFTER
    if not set_reference(p, features, end, reference):
        return
    simd_fit_map(p, 0, reference, start, maps, errors)
    simd_fit_map(p, 1, reference, end, maps, errors)
    needed = needed_clearance(p, maps, errors, least)
    reference.clearance[p] = NO_CLEARANCE
    if needed < features.reach:
        found = ROUNDED * least_distance(p, features, end, needed, kept)
        if found > needed:
            reference.clearance[p] = found
            certified[p] = 1
            kept.wait[p] = 0


@wp.kernel
def find_clearances(
    first: int,
    features: PatchFeatures,
    x: wp.array[wp.vec3d],
    kept: RenewalState,
    clearance: wp.array[wp.float64],
):
    """Of patches that may be certified: how far they are from what is around them."""
    p = first + wp.tid()
    if clearance[p] > wp.float64(0.0):
        clearance[p] = ROUNDED * least_distance(p, features, x, wp.float64(0.0), kept)


@wp.func
def set_reference(p: int, features: PatchFeatures, x: wp.array[wp.vec3d], reference: PatchReference) -> bool:
    """From now on a patch is compared with how it lies in x; False if it is so narrow that nothing can be fitted."""
    middle = wp.vec3d()
    for e in range(reference.offsets[p], reference.offsets[p + 1]):
        middle += x[reference.vertices[e]]
    middle = middle / wp.float64(reference.offsets[p + 1] - reference.offsets[p])
    normal = wp.vec3d()
    for c in range(features.cluster_offsets[p], features.cluster_offsets[p + 1]):
        node = features.nodes[features.clusters[c]]
        for j in range(features.first[node], features.last[node] + 1):
            a = x[features.items[j, 0]]
            normal += wp.cross(x[features.items[j, 1]] - a, x[features.items[j, 2]] - a)
    normal = wp.normalize(normal)
    aside = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
    if wp.abs(normal[0]) > wp.float64(0.7):
        aside = wp.vec3d(wp.float64(0.0), wp.float64(1.0), wp.float64(0.0))
    one = wp.normalize(wp.cross(normal, aside))
    other = wp.cross(normal, one)
    aa = wp.float64(0.0)
    ab = wp.float64(0.0)
    bb = wp.float64(0.0)
    for e in range(reference.offsets[p], reference.offsets[p + 1]):
        r = x[reference.vertices[e]] - middle
        u = wp.dot(r, one)
        w = wp.dot(r, other)
        aa += u * u
        ab += u * w
        bb += w * w
    determinant = aa * bb - ab * ab
    if not (determinant > wp.float64(1.0e-9) * aa * bb):
        return False
    for e in range(reference.offsets[p], reference.offsets[p + 1]):
        reference.rest[e] = x[reference.vertices[e]] - middle
    reference.duals[p] = wp.outer(one, (bb * one - ab * other) / determinant) + wp.outer(
        other, (aa * other - ab * one) / determinant
    )
    reference.tangents[p] = wp.matrix_from_rows(one, other, normal)
    return True


@wp.func
def least_distance(
    p: int, features: PatchFeatures, x: wp.array[wp.vec3d], needed: wp.float64, kept: RenewalState
) -> wp.float64:
    """The least distance of an edge of the patch and a face around it without a common vertex, at most the reach.

    What is not above `needed` is not of interest; then any such number will do. The pair that was nearest the last time
    is looked at first: it is near again, and so nothing far is measured.
    """
    half = wp.float64(0.5)
    least = features.reach + wp.float64(0.0)
    if kept.nearest[p, 0] >= 0:
        gather_faces(kept.nearest[p, 1], features.corners, x, p, kept.faces)
        v0 = features.edges[kept.nearest[p, 0], 0]
        v1 = features.edges[kept.nearest[p, 0], 1]
        left = possibly_nearer(v0, v1, kept.nearest[p, 1], features.corners, x, p, kept.faces, least)
        if left > 0:
            measured = simd_least_distance(left, v0, v1, x, p, kept.faces)
            if measured >= wp.float64(0.0):
                least = wp.min(least, measured)
    if not (least > needed):
        return least
    for e in range(features.edge_offsets[p], features.edge_offsets[p + 1]):
        one = x[features.edges[features.patch_edges[e], 0]]
        other = x[features.edges[features.patch_edges[e], 1]]
        middle = half * (one + other)
        kept.middles[e] = wp.vec4d(middle[0], middle[1], middle[2], half * wp.length(other - one))
    for c in range(features.cluster_offsets[p], features.cluster_offsets[p + 1]):
        node = features.nodes[features.clusters[c]]
        centre = wp.vec3d()
        for j in range(features.first[node], features.last[node] + 1):
            centre += x[features.items[j, 0]] + x[features.items[j, 1]] + x[features.items[j, 2]]
        centre = centre / wp.float64(3 * (features.last[node] - features.first[node] + 1))
        size = wp.float64(0.0)
        for j in range(features.first[node], features.last[node] + 1):
            for k in range(3):
                size = wp.max(size, wp.length_sq(x[features.items[j, k]] - centre))
        size = wp.sqrt(size)
        gather_faces(features.clusters[c], features.corners, x, p, kept.faces)
        for e in range(features.edge_offsets[p], features.edge_offsets[p + 1]):
            middle = wp.vec3d(kept.middles[e][0], kept.middles[e][1], kept.middles[e][2])
            enough = least + size + kept.middles[e][3]
            if wp.length_sq(middle - centre) < enough * enough:
                v0 = features.edges[features.patch_edges[e], 0]
                v1 = features.edges[features.patch_edges[e], 1]
                left = possibly_nearer(v0, v1, features.clusters[c], features.corners, x, p, kept.faces, least)
                before = least
                if left > 0:
                    measured = simd_least_distance(left, v0, v1, x, p, kept.faces)
                    if measured >= wp.float64(0.0):
                        least = wp.min(least, measured)
                        left = 0
                j = features.first[node]
                while left > 0:  # slivers, and edges that are nearly parallel
                    if (left & 1) == 1:
                        way = shortest_offset(
                            x[v0], x[v1], x[features.items[j, 0]], x[features.items[j, 1]], x[features.items[j, 2]]
                        )
                        least = wp.min(least, wp.length(way))
                    left = left >> 1
                    j = j + 1
                if least < before:
                    kept.nearest[p, 0] = features.patch_edges[e]
                    kept.nearest[p, 1] = features.clusters[c]
                    if not (least > needed):
                        return least
    return least


@wp.func_native(
    """
    double* row = &scratch.data[scratch.shape[1] * p];
    const int* vertex = (const int*)&corners.data[3 * cluster];
    for (int lane = 0; lane < 8; ++lane)
        for (int c = 0; c < 3; ++c) {
            const int own = vertex[8 * c + lane];
            const double* at = (const double*)&x.data[own < 0 ? vertex[8 * c] : own];
            for (int k = 0; k < 3; ++k)
                row[8 * (3 * c + k) + lane] = at[k];
        }
"""
)
def gather_faces(
    cluster: int, corners: wp.array2d[Lanes], x: wp.array[wp.vec3d], p: int, scratch: wp.array2d[wp.float64]
):
    """Write the corners of the faces of a cluster to row p, coordinate by coordinate."""
    ...


@wp.func_native(
    VECTORS
    + _PAIR
    + f"""
    const int tries = {int(TRIES)};
"""
    + """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    const Row* vertex = (const Row*)&corners.data[3 * cluster];
    const Row skipped = (vertex[0] < 0) | (vertex[0] == v0) | (vertex[1] == v0) | (vertex[2] == v0)
        | (vertex[0] == v1) | (vertex[1] == v1) | (vertex[2] == v1);
    Whole far = __builtin_convertvector(skipped, Whole);
    const double third = 1.0 / 3.0;
    const Vector along = minus(e1, e0);
    auto chosen = [](Whole truth, Vector a, Vector b) -> Vector {
        return {truth ? a.x : b.x, truth ? a.y : b.y, truth ? a.z : b.z};
    };
    Vector n = {
        0.5 * (e0.x + e1.x) - third * (f0.x + f1.x + f2.x),
        0.5 * (e0.y + e1.y) - third * (f0.y + f1.y + f2.y),
        0.5 * (e0.z + e1.z) - third * (f0.z + f1.z + f2.z)};
    for (int k = 0; k < tries; ++k) {
        const Vector low = chosen(dot(n, along) < zero, e1, e0);
        Vector high = chosen(dot(n, minus(f1, f0)) > zero, f1, f0);
        high = chosen(dot(n, minus(f2, high)) > zero, f2, high);
        const Vector way = minus(low, high), back = minus(n, way);
        const Wide gap = dot(n, way);
        far |= (gap > zero) & (gap * gap >= distance * distance * dot(n, n));
        if (bits_of(far) == 255)
            return 0;
        const Wide length = dot(back, back);
        const Wide part = length > zero ? clamped(dot(n, back) / length) : zero;
        n = {n.x - part * back.x, n.y - part * back.y, n.z - part * back.z};
    }
    return 255 & ~bits_of(far);
"""
)
def possibly_nearer(
    v0: int,
    v1: int,
    cluster: int,
    corners: wp.array2d[Lanes],
    x: wp.array[wp.vec3d],
    p: int,
    scratch: wp.array2d[wp.float64],
    distance: wp.float64,
) -> int:
    """Which of the faces in row p have no vertex of an edge and may be nearer to it: no direction is soon found.

    A direction towards the edge along which both are further apart than `distance` proves that they are.
    """
    ...


@wp.func_native(
    VECTORS
    + _PAIR
    + """
    Wide least = (Wide)__builtin_inf();
    Whole sure_of_all = zero == zero;
    auto keep = [&](Vector apart, Whole sure) {
        least = __builtin_elementwise_min(least, dot(apart, apart));
        sure_of_all &= sure;
    };
    auto vertex_face = [&](Vector p, Vector a, Vector b, Vector c) {
"""
    + POINT_TRIANGLE
    + """
        keep(apart, sure);
    };
    auto edge_edge = [&](Vector p0, Vector p1, Vector q0, Vector q1) {
"""
    + SEGMENT_SEGMENT
    + """
        keep(apart, sure);
    };
    vertex_face(e0, f0, f1, f2);
    vertex_face(e1, f0, f1, f2);
    edge_edge(e0, e1, f0, f1);
    edge_edge(e0, e1, f1, f2);
    edge_edge(e0, e1, f2, f0);
    if (mask & ~bits_of(sure_of_all))
        return -1.0;
    double least_of_all = __builtin_inf();
    for (int lane = 0; lane < 8; ++lane)
        if (mask >> lane & 1)
            least_of_all = least[lane] < least_of_all ? least[lane] : least_of_all;
    return __builtin_sqrt(least_of_all);
"""
)
def simd_least_distance(
    mask: int, v0: int, v1: int, x: wp.array[wp.vec3d], p: int, scratch: wp.array2d[wp.float64]
) -> wp.float64:
    """The least distance of an edge from the faces in row p that a mask names; -1 where one must be asked alone."""
    ...

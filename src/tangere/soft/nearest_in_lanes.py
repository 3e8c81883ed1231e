"""The search of `nearest_faces` for CPUs: the boxes of eight faces at a time, and the distances of eight candidates.

Faces whose boxes meet that of a vertex go to a short list, and eight of them are asked at once whether they are on the
right side and nearer than what the vertex has. Those few that are, and slivers, are asked one by one by `touch`: so the
answers are those of the search one by one. Nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bound import LANES, Lanes, MovingBox
from tangere.query.proximity.lanes_near import FACES, VECTORS
from tangere.runtime import SOUND
from tangere.soft.assembly import CLOSED
from tangere.soft.descent import begin_descent, next_cluster
from tangere.soft.in_lanes import PENDING, add_candidates, keep_rest, meet
from tangere.soft.looking import looks_along
from tangere.soft.patches import around
from tangere.soft.reach import FAR, REACH, touch, vertex_normal

wp.set_module_options(SOUND)

__all__ = ["nearest_in_lanes"]


@wp.kernel
def nearest_in_lanes(
    first: int,
    units: wp.array[wp.vec4i],
    features: wp.array[int],
    offsets: wp.array[int],
    boxes: wp.array[MovingBox],
    certified: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    cones: wp.array[wp.vec4d],
    patch_cones: wp.array[wp.vec4d],
    node_first: wp.array[int],
    first_cluster: wp.array[int],
    node_of: wp.array[int],
    nodes: wp.array[MovingBox],
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    lanes: wp.array[Lanes],
    corners: wp.array2d[Lanes],
    items: wp.array2d[int],
    order: wp.array[int],
    positions: wp.array[wp.vec3d],
    face_offsets: wp.array[int],
    faces_at: wp.array[int],
    faces: wp.array2d[int],
    rest: wp.array[wp.vec3d],
    body: wp.array[int],
    traits: wp.array[int],
    distance: wp.float64,
    by_mask: wp.array[wp.uint64],
    scratch: wp.array2d[int],
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
    partners: wp.array[int],
):
    """The vertices of a patch; what each has found so far is kept in the output."""
    row = first + wp.tid()
    unit = units[row]
    top = unit[0]
    patch = unit[1]
    smooth = certified[patch] == 1
    cone = patch_cones[patch]
    pending = int(0)
    begin_descent(nodes, top, rows, levels, row, scratch)
    other = next_cluster(nodes, top, rows, levels, row, scratch)
    while other >= 0:
        node = node_of[other]
        if not looks_along(cone, cones[other]) and not (
            smooth and around(clusters, cluster_offsets[patch], cluster_offsets[patch + 1], other)
        ):
            for own in range(first_cluster[patch], first_cluster[patch + 1]):
                if meet(nodes, node_of[own], node) and not looks_along(cones[own], cones[other]):
                    for m in range(offsets[own], offsets[own + 1]):
                        v = features[m]
                        before = pending
                        pending = add_candidates(
                            v, v, v, boxes, lanes, corners, other, node_first[node], by_mask, pending, row, scratch
                        )
                        if pending > before and gaps[v][0] == wp.float64(0.0):  # the first time
                            gaps[v] = wp.vec2d(FAR, FAR)
                            normals[v] = wp.normalize(vertex_normal(v, positions, face_offsets, faces_at, faces))
                        if pending >= LANES:
                            ask(LANES, row, scratch, items, order, positions, rest, body, traits, distance,
                                normals, gaps, partners)  # fmt: skip
                            pending = keep_rest(pending, row, scratch)
        other = next_cluster(nodes, top, rows, levels, row, scratch)
    if pending > 0:
        ask(pending, row, scratch, items, order, positions, rest, body, traits, distance, normals, gaps, partners)


@wp.func
def ask(
    count: int,
    row: int,
    scratch: wp.array2d[int],
    items: wp.array2d[int],
    order: wp.array[int],
    positions: wp.array[wp.vec3d],
    rest: wp.array[wp.vec3d],
    body: wp.array[int],
    traits: wp.array[int],
    distance: wp.float64,
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
    partners: wp.array[int],
):
    """Keep those of up to eight candidates that are nearer than what their vertices have."""
    left = nearer_in_lanes(count, row, scratch, items, positions, traits, REACH * distance, normals, gaps)
    lane = int(0)
    while left > 0:
        if (left & 1) == 1:
            v = scratch[row, lane]
            j = scratch[row, PENDING + lane]
            found = touch(v, normals[v], items, j, positions, rest, body, traits, distance)
            side = int(found < wp.float64(0.0))
            gap = wp.abs(found)
            if gap < FAR:
                f = order[j]
                least = gaps[v][side]
                if gap < least or (gap == least and f < partners[2 * v + side]):
                    gaps[v][side] = gap
                    partners[2 * v + side] = f
        left = left >> 1
        lane = lane + 1


@wp.func_native(
    VECTORS
    + f"""
    const int closed = {int(CLOSED)}, pending = {int(PENDING)};
"""
    + """
    const int* one = &scratch.data[scratch.shape[1] * row];
    const int* other = one + pending;
    const double *normal_of[8];
    Wide least[2];
    int both[8];
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int v = one[k];
        const int* face = &items.data[3 * other[k]];
        corner[0][lane] = (const double*)&positions.data[v];
        for (int c = 0; c < 3; ++c)
            corner[1 + c][lane] = (const double*)&positions.data[face[c]];
        normal_of[lane] = (const double*)&normals.data[v];
        const double* gap = (const double*)&gaps.data[v];
        least[0][lane] = gap[0];
        least[1][lane] = gap[1];
        both[lane] = (traits.data[v] & traits.data[face[0]] & closed) ? -1 : 0;
    }
    const Vector p = gathered(corner[0]), a = gathered(corner[1]), b = gathered(corner[2]), c = gathered(corner[3]);
    const Vector normal = gathered(normal_of);
"""
    + FACES
    + """
    const Vector across = {e0.y * e1.z - e0.z * e1.y, e0.z * e1.x - e0.x * e1.z, e0.x * e1.y - e0.y * e1.x};
    Whole along_it = dot(normal, across) > zero;
    for (int lane = 0; lane < 8; ++lane)
        along_it[lane] &= both[lane];
    const Whole behind = dot(apart, normal) > zero;
    const Wide gap = __builtin_elementwise_sqrt(dot(apart, apart));
    const Whole nearer = (gap < (Wide)reach) & (gap <= (behind ? least[1] : least[0]));
    const int counted = count < 8 ? (1 << count) - 1 : 255;
    return counted & ~bits_of(along_it) & (bits_of(nearer) | ~bits_of(sure));
"""
)
def nearer_in_lanes(
    count: int,
    row: int,
    scratch: wp.array2d[int],
    items: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    traits: wp.array[int],
    reach: wp.float64,
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
) -> int:
    """Which of up to eight faces may be nearer to their vertices, on its side, than what those have; slivers all."""
    ...

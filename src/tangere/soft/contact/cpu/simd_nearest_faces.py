"""The search of `nearest_faces` for CPUs: the boxes of eight faces at a time, and the distances of eight candidates.

Faces whose boxes meet that of a vertex go to a short list, and eight of them are compared at once with what the vertex
has, by the formulas of `contact_gap`. Slivers, walls, and faces whose nearest point is on their rim, are looked at one
by one: so the answers are those of `nearest_faces`, of which this is the twin for one device.
Arguments stay positional: the tree and the lists of patches as one struct took 5 to 14 % longer, as every patch copies
its headers.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LANES, NOWHERE, Lanes, MovingBox, resting_box
from tangere.bvh.wide import begin_descent, meeting_of, next_cluster
from tangere.geometry.simd import POINT_TRIANGLE, VECTORS
from tangere.runtime import SOUND
from tangere.soft.contact.activation import FAR, REACH, REST_PART, contact_gap, vertex_normal
from tangere.soft.contact.cpu.simd_candidates import (
    PENDING,
    add_candidates,
    add_near_walls,
    drop_eight,
    lanes_with,
    simd_boxes_meet,
)
from tangere.soft.model.assembled_bodies import CLOSED, STILL, WALL, SurfaceArrays

wp.set_module_options(SOUND)


@wp.kernel
def simd_nearest_faces(
    first: int,
    units: wp.array[wp.vec4i],
    features: wp.array[int],
    ranges: wp.array[wp.vec2i],
    boxes: wp.array[MovingBox],
    certified: wp.array[int],
    octet_offsets: wp.array[int],
    octets: wp.array[wp.vec2i],
    cones: wp.array[wp.vec4d],
    cone_rows: wp.array2d[wp.float64],
    vertex_cone_rows: wp.array2d[wp.float64],
    patch_cones: wp.array[wp.vec4d],
    dirty: wp.array[wp.uint8],
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
    surface: SurfaceArrays,
    distance: wp.float64,
    by_mask: wp.array[wp.uint64],
    near: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    scratch: wp.array2d[int],
    narrow: wp.array[MovingBox],
    narrow_clusters: wp.array[MovingBox],
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
    partners: wp.array[int],
    work: wp.array[wp.vec2i],
):
    """The vertices of a patch; what each has found so far is kept in the output."""
    row = first + wp.tid()
    unit = units[row]
    top = unit[0]
    patch = unit[1]
    excluded = octet_offsets[patch]
    excluded_end = excluded
    if certified[patch] == 1:
        excluded_end = octet_offsets[patch + 1]
    first_own = first_cluster[patch]
    end_own = first_cluster[patch + 1]
    cone = patch_cones[patch]
    body = int(-2)  # of the vertices on walls, which look for other walls nearby first; -1 for none, -2 is not known
    looked = int(0)
    asked = int(0)
    widely = int(0)
    searching = int(1)
    while searching == 1:
        pending = int(0)
        begin_descent(nodes, top, rows, levels, excluded, excluded_end, octets, cone, cone_rows, 0, dirty, row, scratch)
        other = next_cluster(
            nodes, top, rows, levels, excluded, excluded_end, octets, cone, cone_rows, 0, dirty, row, scratch
        )
        while other >= 0:
            node = node_of[other]
            place = node_first[node]
            met = meeting_of(nodes, node, rows, first_own, end_own, cones[other], vertex_cone_rows)
            walls = int(0)
            if met != 0 and body == -2:
                margin = near - wp.float64(0.5) * REACH * distance
                body = boxes_at_walls(
                    first_own,
                    end_own,
                    ranges,
                    features,
                    positions,
                    surface,
                    margin,
                    origin,
                    scale,
                    narrow,
                    narrow_clusters,
                )
            if met != 0 and body >= 0:
                walls = lanes_with(WALL, body, corners, other, surface)
            for own in range(first_own, end_own):
                if ((met >> (own - first_own)) & 1) == 1:
                    far_walls = bool(False)  # nothing of this cluster is near enough for vertices on walls
                    if walls == 255 and widely == 0:
                        far_walls = not simd_boxes_meet(narrow_clusters, own, nodes, node)
                    for m in range(ranges[own][0], ranges[own][1]):
                        v = features[m]
                        at_wall = walls != 0 and (surface.traits[v] & WALL) != 0
                        if at_wall:
                            at_wall = surface.body[v] == body
                        wanted = bool(True)
                        if widely == 1:
                            wanted = at_wall and not_nearer(gaps[v], near)
                        elif at_wall:
                            wanted = not far_walls
                        if wanted:
                            before = pending
                            if at_wall:
                                others = (255 - walls) * (1 - widely)
                                pending = add_near_walls(
                                    v, narrow, boxes, walls, others, nodes, node, lanes, corners, other, place, by_mask,
                                    pending, row, scratch,
                                )  # fmt: skip
                            else:
                                pending = add_candidates(
                                    v, v, v, boxes, nodes, node, lanes, corners, other, place, by_mask, pending, row,
                                    scratch,
                                )  # fmt: skip
                            asked += 1
                            looked += pending - before
                            if pending > before and gaps[v][0] == wp.float64(0.0):  # the first time
                                gaps[v] = wp.vec2d(FAR, FAR)
                                normals[v] = wp.normalize(vertex_normal(v, positions, surface))
                            if pending >= LANES:
                                keep_nearest(
                                    LANES, row, scratch, items, order, positions, surface, distance, normals, gaps,
                                    partners,
                                )  # fmt: skip
                                pending = drop_eight(pending, row, scratch)
            other = next_cluster(
                nodes, top, rows, levels, excluded, excluded_end, octets, cone, cone_rows, 0, dirty, row, scratch
            )
        if pending > 0:
            keep_nearest(pending, row, scratch, items, order, positions, surface, distance, normals, gaps, partners)
        searching = int(0)
        if body >= 0 and widely == 0:
            for own in range(first_own, end_own):
                for m in range(ranges[own][0], ranges[own][1]):
                    v = features[m]
                    if (surface.traits[v] & WALL) != 0 and not_nearer(gaps[v], near):
                        narrow[v] = boxes[v]
                        searching = 1
        widely = 1
    work[row] = wp.vec2i(asked, looked)


@wp.func
def boxes_at_walls(
    first_own: int,
    end_own: int,
    ranges: wp.array[wp.vec2i],
    features: wp.array[int],
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    narrow: wp.array[MovingBox],
    narrow_clusters: wp.array[MovingBox],
) -> int:
    """Boxes of the vertices of a patch that are on walls, and of all of a cluster; the body of one of them, or -1."""
    body = int(-1)
    for own in range(first_own, end_own):
        box = MovingBox(NOWHERE)
        for m in range(ranges[own][0], ranges[own][1]):
            v = features[m]
            if (surface.traits[v] & WALL) != 0:
                body = surface.body[v]
                narrow[v] = resting_box(positions[v], margin, origin, scale)
                box = wp.min(box, narrow[v])
        narrow_clusters[own] = box
    return body


@wp.func
def not_nearer(gaps: wp.vec2d, near: wp.float64) -> bool:
    """Whether nothing was found in front of a vertex that is nearer."""
    return gaps[0] == wp.float64(0.0) or gaps[0] > near


@wp.func
def keep_nearest(
    count: int,
    row: int,
    scratch: wp.array2d[int],
    items: wp.array2d[int],
    order: wp.array[int],
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    distance: wp.float64,
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
    partners: wp.array[int],
):
    """Keep those of up to eight candidates that are nearer than what their vertices have."""
    left = simd_keep_nearest(count, row, scratch, items, order, positions, surface, distance, normals, gaps, partners)
    lane = int(0)
    while left > 0:
        if (left & 1) == 1:
            v = scratch[row, lane]
            j = scratch[row, PENDING + lane]
            found = contact_gap(v, normals[v], items, j, positions, surface, distance, gaps[v])
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
    const int closed = {int(CLOSED)}, still = {int(STILL)}, wall = {int(WALL)}, pending = {int(PENDING)};
    const double reach = {float(REACH)!r}, rest_part = {float(REST_PART)!r};
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
        both[lane] = (surface.traits.data[v] & surface.traits.data[face[0]] & closed) ? -1 : 0;
    }
    const Vector p = gathered(corner[0]), a = gathered(corner[1]), b = gathered(corner[2]), c = gathered(corner[3]);
    const Vector normal = gathered(normal_of);
"""
    + POINT_TRIANGLE
    + """
    const Vector across = {e0.y * e1.z - e0.z * e1.y, e0.z * e1.x - e0.x * e1.z, e0.x * e1.y - e0.y * e1.x};
    Whole along_it = dot(normal, across) > zero;
    for (int lane = 0; lane < 8; ++lane)
        along_it[lane] &= both[lane];
    const Whole behind = dot(apart, normal) > zero;
    const Wide gap = __builtin_elementwise_sqrt(dot(apart, apart));
    const Whole nearer = (gap < (Wide)(reach * distance)) & (gap <= (behind ? least[1] : least[0]));
    const int candidates = (count < 8 ? (1 << count) - 1 : 255) & ~bits_of(along_it), known = bits_of(sure);
    int one_by_one = candidates & ~known;
    for (int left = candidates & known & bits_of(nearer); left; left &= left - 1) {
        const int lane = __builtin_ctz(left), v = one[lane], place = other[lane], side = behind[lane] ? 1 : 0;
        const int* face = &items.data[3 * place];
        const int* trait = surface.traits.data;
        if (trait[v] & trait[face[0]] & trait[face[1]] & trait[face[2]] & still)
            continue;
        double limit = distance;
        if (surface.body.data[v] == surface.body.data[face[0]]) {
            if (trait[v] & (trait[face[0]] | trait[face[1]] | trait[face[2]]) & wall) {
                if (side == 1)
                    continue;
                if (!both[lane]) {
                    one_by_one |= 1 << lane;
                    continue;
                }
            } else {
                const double* at[4] = {
                    (const double*)&surface.rest.data[v], (const double*)&surface.rest.data[face[0]],
                    (const double*)&surface.rest.data[face[1]], (const double*)&surface.rest.data[face[2]]};
                double way[3];
                for (int k = 0; k < 3; ++k)
                    way[k] = wa[lane] * (at[0][k] - at[1][k]) + wb[lane] * (at[0][k] - at[2][k])
                        + wc[lane] * (at[0][k] - at[3][k]);
                const double once = rest_part * __builtin_sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]);
                limit = once < distance ? once : distance;
            }
        }
        if (!(gap[lane] < reach * limit))
            continue;
        if (!(wa[lane] > 0.0 && wb[lane] > 0.0 && wc[lane] > 0.0)) {
            one_by_one |= 1 << lane;
            continue;
        }
        double& nearest = ((double*)&gaps.data[v])[side];
        int& partner = partners.data[2 * v + side];
        const int name = order.data[place];
        if (gap[lane] < nearest || (gap[lane] == nearest && name < partner)) {
            nearest = gap[lane];
            partner = name;
        }
    }
    return one_by_one;
"""
)
def simd_keep_nearest(
    count: int,
    row: int,
    scratch: wp.array2d[int],
    items: wp.array2d[int],
    order: wp.array[int],
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    distance: wp.float64,
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
    partners: wp.array[int],
) -> int:
    """Keep what `contact_gap` would find nearer of up to eight candidates; those it must be asked about one by one."""
    ...

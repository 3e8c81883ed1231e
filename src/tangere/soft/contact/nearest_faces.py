"""Which face is nearest to each surface vertex, on either side of it: the contacts a step responds to.

Question: what does each vertex touch, in front of it and behind it?
Method:   the vertices of a patch go down one tree over the faces of all bodies. On each side of its tangent plane each
          keeps the nearest face within reach, so that a sheet between two others feels both. Faces that have the vertex
          are no contact, nor those whose neighbours are nearer (`is_nearest_around`); neither are faces of its own body
          that were about as near at rest: a pair counts below half its rest distance (after Léonard 2021, section 5.2),
          so a body at rest has none, however fine its surface is. Of closed surfaces, sides that face the same way are
          left out: they can only meet from inside.
Sound:    what this leaves out the truncation still holds back (`truncation`).
Known as: closest-feature proximity of deforming surfaces, with local minima only.
The kernel here is for CUDA, one vertex a thread; `cpu.simd_nearest_faces` is its twin for CPUs and finds the same.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox, TreeArrays, apart_in_lanes, boxes_meet, resting_box
from tangere.bvh.wide import cone_rows
from tangere.geometry.simd import lanes_by_mask
from tangere.runtime import SOUND, launch
from tangere.soft.contact.activation import FAR, REACH, contact_gap, meets_wall, vertex_normal
from tangere.soft.contact.cpu.simd_candidates import SCRATCH_ROW
from tangere.soft.contact.cpu.simd_nearest_faces import not_nearer, simd_nearest_faces
from tangere.soft.contact.normal_cones import NormalCones, cones_face_same_way
from tangere.soft.model.assembled_bodies import WALL, AssembledBodies, SurfaceArrays
from tangere.soft.safe_step.patches import FittedTree, Patches, contains_cluster

wp.set_module_options(SOUND)

#: Patches worth a thread: each takes some microseconds.
GRAIN = 32
#: Vertices on walls of a cut look for other walls of their body up to this part of the contact distance first: those
#: that were just opened are a kerf apart. Only where nothing is that near they look as far as all others.
NEAR_WALL = 0.25


def find_nearest_faces(
    assembly: AssembledBodies,
    patches: Patches,
    fitted: FittedTree,
    cones: NormalCones,
    positions: wp.array,
    distance: float,
    partners: wp.array,
) -> wp.array | None:
    """Writes the faces that vertex v touches in front of it and behind it to places 2 v and 2 v + 1 of `partners`.

    On CPU it answers what that took, by patch (u, 2): clusters that vertices were held against, and faces whose boxes
    they have met there.

    Args:
        fitted: the tree at `positions`, boxes grown by half of what contacts are looked for.
        cones: at `positions`.
        positions: of the surface vertices [m].
        distance: below which surfaces touch [m].
        partners: int32, -1 where nothing is written.
    """
    tree, lists = patches.tree, patches.lists
    members = lists.vertices
    normals = wp.empty(len(positions), dtype=wp.vec3d, device=assembly.device)
    gaps = wp.zeros(len(positions), dtype=wp.vec2d, device=assembly.device)
    found = [normals, gaps, partners]
    where = [positions, assembly.surface, distance]
    if fitted.bvh8 is None:
        inputs = [members.units, members.features, members.ranges, fitted.vertex_boxes]
        inputs += [fitted.overlapping, fitted.certified]
        inputs += [lists.cluster_offsets, lists.clusters, cones.clusters, cones.vertices, cones.patches]
        inputs += [tree.arrays, fitted.boxes.nodes, fitted.boxes.lanes, *where]
        inputs += [NEAR_WALL * distance, wp.vec3d(*patches.frame.origin), patches.frame.scale]
        launch(_nearest, len(members.units), inputs, found, device=assembly.device, grain=GRAIN)
        return None
    bvh8 = fitted.bvh8
    scratch = wp.empty((len(members.units), SCRATCH_ROW), dtype=wp.int32, device=assembly.device)
    inputs = [members.units, members.features, members.ranges, fitted.vertex_boxes]
    inputs += [fitted.certified, lists.octet_offsets, lists.octets]
    inputs += [cones.clusters, cone_rows(cones.clusters), cone_rows(cones.vertices), cones.patches]
    inputs += [bvh8.changed, tree.first, lists.first_cluster, tree.clusters, fitted.boxes.nodes]
    inputs += [bvh8.rows, bvh8.levels, fitted.boxes.lanes, tree.corners, tree.items, tree.order]
    inputs += [*where, lanes_by_mask(), NEAR_WALL * distance, wp.vec3d(*patches.frame.origin), patches.frame.scale]
    inputs += [
        scratch,
        *(wp.empty(n, dtype=MovingBox, device=assembly.device) for n in (len(positions), len(tree.clusters))),
    ]
    work = wp.empty(len(members.units), dtype=wp.vec2i, device=assembly.device)
    launch(simd_nearest_faces, len(members.units), inputs, [*found, work], device=assembly.device, grain=GRAIN)
    return work


@wp.kernel
def _nearest(
    first: int,
    units: wp.array[wp.vec4i],
    features: wp.array[int],
    ranges: wp.array[wp.vec2i],
    boxes: wp.array[MovingBox],
    overlapping: wp.array[wp.uint8],
    certified: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    cones: wp.array[wp.vec4d],
    vertex_cones: wp.array[wp.vec4d],
    patch_cones: wp.array[wp.vec4d],
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    lanes: wp.array[Lanes],
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    distance: wp.float64,
    near: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.vec2d],
    partners: wp.array[int],
):
    """One vertex; what it has found so far is kept in the output."""
    unit = units[first + wp.tid()]
    own = tree.cluster[unit[0]]
    patch = unit[1]
    v = features[unit[2]]
    if overlapping[own] == wp.uint8(0) or unit[2] >= ranges[own][1]:  # or there is no such vertex
        return
    smooth = certified[patch] == 1
    cone = patch_cones[patch]
    at_wall = int((surface.traits[v] & WALL) != 0)
    narrow = boxes[v]
    if at_wall == 1:
        narrow = resting_box(positions[v], near - wp.float64(0.5) * REACH * distance, origin, scale)
    widely = int(0)
    searching = int(1)
    while searching == 1:
        left_out = int(0)
        node = int(0)
        while node < tree.skip.shape[0]:
            other = tree.cluster[node]
            if not boxes_meet(boxes[v], nodes[node]):
                node = tree.skip[node]
            elif other < 0:
                node = node + 1
            elif (
                cones_face_same_way(cone, cones[other])
                or cones_face_same_way(vertex_cones[own], cones[other])
                or (smooth and contains_cluster(clusters, cluster_offsets[patch], cluster_offsets[patch + 1], other))
            ):
                node = tree.skip[node]
            else:
                separated = apart_in_lanes(boxes[v], lanes, 12 * other)
                beyond = separated
                if at_wall == 1:
                    beyond = apart_in_lanes(narrow, lanes, 12 * other)
                for j in range(tree.first[node], tree.last[node] + 1):
                    lane = j - tree.first[node]
                    wanted = int(separated[lane] <= 0)
                    if wanted == 1 and at_wall == 1:
                        far = int(0)  # another wall, and not nearby
                        if beyond[lane] > 0:
                            if meets_wall(v, tree.items[j, 0], tree.items[j, 1], tree.items[j, 2], surface):
                                far = 1
                        left_out += far
                        wanted = int(far == widely)
                    if wanted == 1:
                        if gaps[v][0] == wp.float64(0.0):  # the first time
                            gaps[v] = wp.vec2d(FAR, FAR)
                            normals[v] = wp.normalize(vertex_normal(v, positions, surface))
                        found = contact_gap(v, normals[v], tree.items, j, positions, surface, distance, gaps[v])
                        side = int(found < wp.float64(0.0))
                        gap = wp.abs(found)
                        if gap < FAR:
                            f = tree.order[j]
                            least = gaps[v][side]
                            if gap < least or (gap == least and f < partners[2 * v + side]):
                                gaps[v][side] = gap
                                partners[2 * v + side] = f
                node = tree.skip[node]
        searching = int(0)
        if widely == 0 and left_out > 0 and not_nearer(gaps[v], near):
            searching = 1
        widely = 1

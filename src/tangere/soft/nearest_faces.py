"""Which face is nearest to each surface vertex, on either side of it: the contacts a step responds to.

Method: each vertex of a cluster that has company goes down one tree over the faces of all bodies. On each side of its
        tangent plane it keeps the nearest face within reach, so that a sheet between two others feels both. Faces that
        have the vertex are no contact; neither are faces of its own body that were about as near at rest: a pair counts
        below half its rest distance (specs/leonard-deformable-gpu C9 "gap"), so a body at rest has none, however fine
        its surface is. Of closed surfaces, sides that look the same way are left out: they can only meet from inside.
What this leaves out the truncation still holds back (`truncation`).
"""

from __future__ import annotations

import warp as wp

from tangere.bound import Lanes, MovingBox, apart_in_lanes, boxes_meet
from tangere.query.proximity.primitives import face_offset, nearest_on_face
from tangere.runtime import SOUND, launch
from tangere.soft.assembly import CLOSED, STILL, Assembly
from tangere.soft.looking import looks_along
from tangere.soft.patches import Fitted, Patches, around

wp.set_module_options(SOUND)

__all__ = ["REACH", "activation", "find_nearest_faces"]

#: Vertices worth a thread: each takes a microsecond or two.
GRAIN = 256
#: Contacts are looked for up to this many activation distances away: they may come into reach within the step.
REACH = wp.constant(wp.float64(1.5))
#: Points of one body touch below this part of their distance at rest.
REST_PART = wp.constant(wp.float64(0.5))


def find_nearest_faces(
    assembly: Assembly,
    patches: Patches,
    fitted: Fitted,
    cones: wp.array,
    positions: wp.array,
    distance: float,
    partners: wp.array,
) -> None:
    """Writes the faces that vertex v touches in front of it and behind it to places 2 v and 2 v + 1 of `partners`.

    Args:
        fitted: the tree at `positions`, boxes grown by half of what contacts are looked for.
        cones: of the clusters, as `cones_of` gives them.
        positions: of the surface vertices [m].
        distance: below which surfaces touch [m].
        partners: int32, -1 where nothing is written.
    """
    tree, lists = patches.tree, patches.lists
    vertices = patches.busy_vertices(fitted)
    inputs = [vertices, fitted.busy, lists.cluster_of_vertex]
    inputs += [fitted.vertex_boxes, lists.patch_of_vertex, fitted.certified]
    inputs += [lists.cluster_offsets, lists.clusters, cones, tree.first, tree.last, tree.skip, tree.cluster]
    inputs += [fitted.boxes.nodes, fitted.boxes.lanes, tree.items, tree.order, positions]
    inputs += [assembly.face_offsets, assembly.faces_at, assembly.faces]
    inputs += [assembly.rest, assembly.body_of_vertex, assembly.traits, distance]
    launch(_nearest, len(vertices), inputs, [partners], device=assembly.device, grain=GRAIN)


@wp.func
def activation(distance: wp.float64, apart_at_rest: wp.float64, same_body: bool) -> wp.float64:
    """The distance below which two points touch [m]."""
    if same_body:
        return wp.min(distance, REST_PART * apart_at_rest)
    return distance


@wp.func
def vertex_normal(
    v: int,
    positions: wp.array[wp.vec3d],
    offsets: wp.array[int],
    faces_at: wp.array[int],
    faces: wp.array2d[int],
) -> wp.vec3d:
    """The normal weighted by area; its length means nothing."""
    total = wp.vec3d()
    for e in range(offsets[v], offsets[v + 1]):
        f = faces_at[e]
        a = positions[faces[f, 0]]
        total += wp.cross(positions[faces[f, 1]] - a, positions[faces[f, 2]] - a)
    return total


@wp.kernel
def _nearest(
    first: int,
    vertices: wp.array[int],
    busy: wp.array[wp.uint8],
    cluster_of: wp.array[int],
    boxes: wp.array[MovingBox],
    patch_of: wp.array[int],
    certified: wp.array[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    cones: wp.array[wp.vec4d],
    node_first: wp.array[int],
    node_last: wp.array[int],
    skip: wp.array[int],
    cluster: wp.array[int],
    nodes: wp.array[MovingBox],
    lanes: wp.array[Lanes],
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
    partners: wp.array[int],
):
    v = vertices[first + wp.tid()]
    if busy[cluster_of[v]] == wp.uint8(0):
        return
    patch = patch_of[v]
    smooth = certified[patch] == 1
    box = boxes[v]
    p = positions[v]
    normal = vertex_normal(v, positions, face_offsets, faces_at, faces)
    own = traits[v]
    looks = wp.vec4d(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(-1.0))
    if (own & CLOSED) != 0:
        direction = wp.normalize(normal)
        looks = wp.vec4d(direction[0], direction[1], direction[2], wp.float64(1.0))
    front = int(-1)
    back = int(-1)
    front_gap = wp.float64(1.0e300)
    back_gap = wp.float64(1.0e300)
    node = int(0)
    while node < skip.shape[0]:
        if not boxes_meet(box, nodes[node]):
            node = skip[node]
        elif cluster[node] < 0:
            node = node + 1
        elif looks_along(looks, cones[cluster[node]]) or (
            smooth and around(clusters, cluster_offsets[patch], cluster_offsets[patch + 1], cluster[node])
        ):
            node = skip[node]
        else:
            barred = apart_in_lanes(box, lanes, 12 * cluster[node])
            for j in range(node_first[node], node_last[node] + 1):
                if barred[j - node_first[node]] <= 0:
                    f0 = items[j, 0]
                    f1 = items[j, 1]
                    f2 = items[j, 2]
                    excluded = f0 == v or f1 == v or f2 == v
                    if (own & STILL) != 0 and (traits[f0] & traits[f1] & traits[f2] & STILL) != 0:
                        excluded = True
                    a = positions[f0]
                    b = positions[f1]
                    c = positions[f2]
                    if (own & traits[f0] & CLOSED) != 0:
                        if wp.dot(normal, wp.cross(b - a, c - a)) > wp.float64(0.0):
                            excluded = True
                    if not excluded:
                        w = nearest_on_face(p, a, b, c)
                        offset = face_offset(p, a, b, c, w)
                        gap = wp.length(offset)
                        apart = wp.float64(0.0)
                        if body[v] == body[f0]:
                            apart = wp.length(face_offset(rest[v], rest[f0], rest[f1], rest[f2], w))
                        if gap < REACH * activation(distance, apart, body[v] == body[f0]):
                            f = order[j]
                            if wp.dot(offset, normal) <= wp.float64(0.0):
                                if gap < front_gap or (gap == front_gap and f < front):
                                    front_gap = gap
                                    front = f
                            elif gap < back_gap or (gap == back_gap and f < back):
                                back_gap = gap
                                back = f
            node = skip[node]
    partners[2 * v] = front
    partners[2 * v + 1] = back

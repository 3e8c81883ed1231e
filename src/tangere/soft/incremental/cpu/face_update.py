"""Triangles of the surface after a cut, in the lists and the one tree that searches go through.

Question: which faces, edges and clusters are others now, and who owns which?
Method:   triangles that the cut surface has looked at are compared with what the simulation has. One with other corners
          stays at its place in the tree; one that is gone gives its place to the last of its cluster; a new one goes
          to the empty subtree, those of the skin and of both walls apart. An edge, and a vertex, belongs to a cluster
          that has a face with it; if it loses that face, another one takes it. The lists of clusters that have lost or
          gained something are written anew.
Sound:    every edge, ear and vertex of a face is listed once, by a cluster whose box holds it. All that is written is
          noted.
Known as: a dynamic tree with an insertion area; half-edge adjacency, by lists.
The kernel runs on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.cutting.cut_surface import (
    SurfaceStore,
    is_wall,
    name_at,
    name_count,
    part_of,
    simplex_behind,
    vertex_of,
)
from tangere.soft.incremental.undo_log import FULL, WriteLog, put, put_anyway, put_value

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Places in `FaceRoom.numbers`.
FACES, EDGES, FACES_AT, FREE_FACES, FREE_EDGES, NEXT_PATCH = (wp.constant(k) for k in range(6))
OPEN_CLUSTER = wp.constant(6)  # of skin, and of both walls
NUMBERS = 9
#: Places in `FaceRoom.found`.
CHANGED, TOUCHED, CLUSTERS, STAMP, LOOSE_EDGES, LOOSE_VERTICES = (wp.constant(k) for k in range(6))
FOUND = 6
#: Numbers of arrays in the log.
COUNTS, VERTEX_ROW, FACE_ROW, VERTEX_COUNTS, CORNERS, FACE_RANGES, AT, AT_ROOM, ITEMS, ORDER, LAST, LANES, PLACE_OF = (
    wp.constant(k) for k in range(13)
)
FACE_EDGES, ENDS, EDGE_FACE, VERTEX_FACE, EAR_OF, EDGE_FEATURES, EDGE_RANGES, VERTEX_FEATURES, VERTEX_RANGES = (
    wp.constant(13 + k) for k in range(9)
)
FREE_FACE_LIST, FREE_EDGE_LIST, SHARP_OF, SLOT_OF, KNOWN, BODY = (wp.constant(22 + k) for k in range(6))


@wp.struct
class FaceRoom:
    """What the update of faces reads and writes; all by flat views."""

    numbers: wp.array[int]
    found: wp.array[int]
    known: wp.array[int]  #: (1,) vertices of the cut surface that have rows
    slots: wp.array[int]  #: triangles of the cut surface to look at
    opened: wp.array[int]  #: by vertex of the cut surface: 1 if what it touched is to be forgotten
    vertex_row: wp.array[int]  #: by vertex of the cut surface: the one of the simulation, or -1
    face_row: wp.array[int]  #: by triangle of the cut surface
    slot_of: wp.array[int]  #: by face: the triangle of the cut surface
    parts: wp.array[wp.vec3i]  #: by part: its body, the range of the arrays that it has rows in, the first vertex there
    body: wp.array[int]  #: by vertex of the simulation
    counts: wp.array[int]  #: by range: vertices in use
    rooms: wp.array[int]  #: by range: vertices there is room for
    faces: wp.array[int]
    ranges: wp.array[int]  #: of `at`, by vertex
    at: wp.array[int]  #: faces at vertices
    at_room: wp.array[int]  #: by vertex: how long its list may get where it is
    items: wp.array[int]
    order: wp.array[int]
    last: wp.array[int]
    first: wp.array[int]
    node_of: wp.array[int]  #: by cluster
    lanes: wp.array[int]
    place_of: wp.array[int]  #: by face; -1 for none
    cluster_of: wp.array[int]  #: by place
    spare_cluster: int  #: the first one of the empty subtree
    clusters: int
    face_edges: wp.array[int]
    ends: wp.array[int]
    edge_face: wp.array[int]
    vertex_face: wp.array[int]
    ear_of: wp.array[int]
    edge_room: int  #: features that each cluster has room for
    vertex_room: int
    edge_features: wp.array[int]
    edge_ranges: wp.array[int]
    vertex_features: wp.array[int]
    vertex_ranges: wp.array[int]
    free_faces: wp.array[int]
    free_edges: wp.array[int]
    sharp_of: wp.array[int]
    keys: wp.array[int]  #: of `changed`, to sort them by
    changed: wp.array[int]  #: faces with other corners, and new ones; ~f for those that are gone
    touched: wp.array[int]  #: vertices of the cut surface whose triangles were looked at
    touched_clusters: wp.array[int]
    loose_edges: wp.array[int]
    loose_vertices: wp.array[int]
    cluster_stamp: wp.array[int]
    vertex_stamp: wp.array[int]
    pending: wp.array[int]  #: by face: 1 while its edges are not known


@wp.func
def append(r: FaceRoom, log: WriteLog, which: int, to: wp.array[int], value: int):
    """To one of the lists that are found."""
    n = r.found[which]
    if n < to.shape[0]:
        to[n] = value
        r.found[which] = n + 1
    else:
        log.numbers[FULL] = 1


@wp.func
def touch_cluster(r: FaceRoom, log: WriteLog, k: int):
    if r.cluster_stamp[k] != r.found[STAMP]:
        r.cluster_stamp[k] = r.found[STAMP]
        append(r, log, CLUSTERS, r.touched_clusters, k)


@wp.func
def leave_list(r: FaceRoom, log: WriteLog, v: int, f: int):
    """A face is at a vertex no more."""
    end = r.ranges[2 * v + 1]
    for e in range(r.ranges[2 * v], end):
        if r.at[e] == f:
            put(log, AT, r.at, e, r.at[end - 1])
            put(log, FACE_RANGES, r.ranges, 2 * v + 1, end - 1)
            return


@wp.func
def enter_list(r: FaceRoom, log: WriteLog, v: int, f: int):
    """A face is at a vertex from now on; a list that is full goes to where there is room."""
    begin = r.ranges[2 * v]
    size = r.ranges[2 * v + 1] - begin
    if size >= r.at_room[v]:
        to = r.numbers[FACES_AT]
        room = 2 * size + 6
        if to + room > r.at.shape[0]:
            log.numbers[FULL] = 1
            return
        put(log, COUNTS, r.numbers, FACES_AT, to + room)
        for k in range(size):
            put(log, AT, r.at, to + k, r.at[begin + k])
        put(log, AT_ROOM, r.at_room, v, room)
        put(log, FACE_RANGES, r.ranges, 2 * v, to)
        begin = to
    put(log, AT, r.at, begin + size, f)
    put(log, FACE_RANGES, r.ranges, 2 * v + 1, begin + size + 1)


@wp.func
def loosen(r: FaceRoom, log: WriteLog, f: int):
    """What a face owns has no owner for now."""
    for k in range(3):
        e = r.face_edges[3 * f + k]
        if r.edge_face[e] == f:
            put(log, EDGE_FACE, r.edge_face, e, -1)
            append(r, log, LOOSE_EDGES, r.loose_edges, e)
        v = r.faces[3 * f + k]
        if r.vertex_face[v] == f:
            put(log, VERTEX_FACE, r.vertex_face, v, -1)
        append(r, log, LOOSE_VERTICES, r.loose_vertices, v)


@wp.func
def remove_from_cluster(r: FaceRoom, log: WriteLog, f: int):
    """The last face of the cluster takes its place."""
    place = r.place_of[f]
    k = r.cluster_of[place]
    node = r.node_of[k]
    end = r.last[node]
    other = r.order[end]
    for c in range(3):
        put(log, ITEMS, r.items, 3 * place + c, r.items[3 * end + c])
    put(log, ORDER, r.order, place, other)
    put(log, PLACE_OF, r.place_of, other, place)
    put(log, PLACE_OF, r.place_of, f, -1)
    put(log, LAST, r.last, node, end - 1)
    touch_cluster(r, log, k)


@wp.func
def room_for(r: FaceRoom, log: WriteLog, kind: int) -> int:
    """A place for a new face of the skin, or of one of two walls; -1 where there is none."""
    k = r.numbers[OPEN_CLUSTER + kind]
    full = bool(True)
    if k >= 0:
        node = r.node_of[k]
        full = r.last[node] - r.first[node] >= 7
        if full and (k + 1 - r.spare_cluster) % 4 != 0:
            k += 1
            full = False
            put(log, COUNTS, r.numbers, OPEN_CLUSTER + kind, k)
    if full:
        patch = r.numbers[NEXT_PATCH]
        k = r.spare_cluster + 4 * patch
        if k >= r.clusters:
            log.numbers[FULL] = 1
            return -1
        put(log, COUNTS, r.numbers, NEXT_PATCH, patch + 1)
        put(log, COUNTS, r.numbers, OPEN_CLUSTER + kind, k)
    node = r.node_of[k]
    place = r.last[node] + 1
    put(log, LAST, r.last, node, place)
    touch_cluster(r, log, k)
    return place


@wp.func
def known_edge(r: FaceRoom, f: int, u: int, v: int) -> int:
    """The edge between two vertices, of a face other than f whose edges are known; -1 if there is none."""
    for e in range(r.ranges[2 * u], r.ranges[2 * u + 1]):
        g = r.at[e]
        if g != f and r.pending[g] == 0:
            for k in range(3):
                own = r.face_edges[3 * g + k]
                a = r.ends[2 * own]
                b = r.ends[2 * own + 1]
                if (a == u and b == v) or (a == v and b == u):
                    return own
    return -1


@wp.func
def new_edge(r: FaceRoom, log: WriteLog, u: int, v: int) -> int:
    """A place for an edge, or an ear; -1 where there is none."""
    free = r.numbers[FREE_EDGES]
    e = r.numbers[EDGES]
    if free > 0:
        e = r.free_edges[free - 1]
        put(log, COUNTS, r.numbers, FREE_EDGES, free - 1)
    elif 2 * e < r.ends.shape[0]:
        put(log, COUNTS, r.numbers, EDGES, e + 1)
    else:
        log.numbers[FULL] = 1
        return -1
    put(log, ENDS, r.ends, 2 * e, u)
    put(log, ENDS, r.ends, 2 * e + 1, v)
    put(log, EDGE_FACE, r.edge_face, e, -1)
    put(log, SHARP_OF, r.sharp_of, e, -1)
    return e


@wp.func
def drop_edge(r: FaceRoom, log: WriteLog, e: int):
    """An edge is gone; one that was sharp is free when its place among those is (`wall_update`)."""
    if r.sharp_of[e] < 0:
        n = r.numbers[FREE_EDGES]
        put(log, FREE_EDGE_LIST, r.free_edges, n, e)
        put(log, COUNTS, r.numbers, FREE_EDGES, n + 1)
    put(log, ENDS, r.ends, 2 * e, 0)
    put(log, ENDS, r.ends, 2 * e + 1, 0)


@wp.func
def edges_at(r: FaceRoom, v: int) -> int:
    """How many edges of faces a vertex has: as many as faces, and one more for each fan that is open."""
    begin = r.ranges[2 * v]
    end = r.ranges[2 * v + 1]
    count = int(0)
    for i in range(begin, end):
        for k in range(3):
            e = r.face_edges[3 * r.at[i] + k]
            if r.ends[2 * e] == v or r.ends[2 * e + 1] == v:
                new = int(1)
                for j in range(begin, i):
                    for m in range(3):
                        if r.face_edges[3 * r.at[j] + m] == e:
                            new = 0
                count += new
    return count


@wp.func
def look_at_vertex(r: FaceRoom, log: WriteLog, v: int):
    """Who owns a vertex, and whether it is an ear: with at most three neighbours."""
    size = r.ranges[2 * v + 1] - r.ranges[2 * v]
    if r.vertex_face[v] < 0 and size > 0:
        put(log, VERTEX_FACE, r.vertex_face, v, r.at[r.ranges[2 * v]])
    if r.vertex_face[v] >= 0:
        touch_cluster(r, log, r.cluster_of[r.place_of[r.vertex_face[v]]])
    ear = r.ear_of[v]
    is_ear = bool(False)
    if size > 0 and size <= 3:  # there are at least as many edges as faces
        is_ear = edges_at(r, v) <= 3
    if is_ear and ear < 0:
        put(log, EAR_OF, r.ear_of, v, new_edge(r, log, v, v))
    if not is_ear and ear >= 0:
        drop_edge(r, log, ear)
        put(log, EAR_OF, r.ear_of, v, -1)


@wp.func
def list_cluster(r: FaceRoom, log: WriteLog, k: int):
    """Write the vertices of a cluster side by side, and what it owns."""
    node = r.node_of[k]
    begin = r.first[node]
    count = r.last[node] - begin + 1
    for lane in range(8):
        for c in range(3):
            vertex = int(-1)
            if lane < count:
                vertex = r.items[3 * (begin + lane) + c]
            put(log, LANES, r.lanes, 24 * k + 8 * c + lane, vertex)
    edges = r.edge_room * k
    vertices = r.vertex_room * k
    for lane in range(count):
        f = r.order[begin + lane]
        for c in range(3):
            e = r.face_edges[3 * f + c]
            if edges + 1 >= r.edge_room * (k + 1):  # room for an edge and an ear
                log.numbers[FULL] = 1
                return
            if r.edge_face[e] == f:
                put(log, EDGE_FEATURES, r.edge_features, edges, e)
                edges += 1
            v = r.items[3 * (begin + lane) + c]
            if r.vertex_face[v] == f:
                put(log, VERTEX_FEATURES, r.vertex_features, vertices, v)
                vertices += 1
                if r.ear_of[v] >= 0:
                    put(log, EDGE_FEATURES, r.edge_features, edges, r.ear_of[v])
                    edges += 1
    put(log, EDGE_RANGES, r.edge_ranges, 2 * k + 1, edges)
    put(log, VERTEX_RANGES, r.vertex_ranges, 2 * k + 1, vertices)


@wp.func
def middle_of(c: ComplexArrays, s: SurfaceStore, slot: int) -> wp.vec3d:
    """Three times the middle of a triangle of the cut surface at rest."""
    total = wp.vec3d()
    for k in range(3):
        total += c.rest[vertex_of(c, s, name_at(c, s, slot, k))]
    return total


@wp.func
def spread_bits(x: int) -> int:
    """Ten bits with two zeros between each."""
    y = (x | (x << 16)) & 0x030000FF
    y = (y | (y << 8)) & 0x0300F00F
    y = (y | (y << 4)) & 0x030C30C3
    return (y | (y << 2)) & 0x09249249


@wp.func
def sort_in_space(c: ComplexArrays, s: SurfaceStore, r: FaceRoom):
    """Triangles that have changed along a Morton curve, so that those of one cluster are near each other."""
    count = r.found[CHANGED]
    lower = wp.vec3d(wp.float64(1.0e300))
    upper = wp.vec3d(wp.float64(-1.0e300))
    for i in range(count):
        if r.changed[i] >= 0:
            middle = middle_of(c, s, r.changed[i])
            lower = wp.min(lower, middle)
            upper = wp.max(upper, middle)
    size = wp.max(wp.max(upper[0] - lower[0], upper[1] - lower[1]), wp.max(upper[2] - lower[2], wp.float64(1.0e-300)))
    for i in range(count):
        r.keys[i] = -1
        if r.changed[i] >= 0:
            place = (middle_of(c, s, r.changed[i]) - lower) * (wp.float64(1023.0) / size)
            r.keys[i] = (
                spread_bits(int(place[0])) | (spread_bits(int(place[1])) << 1) | (spread_bits(int(place[2])) << 2)
            )
    gap = int(1)
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's way
        for i in range(gap, count):
            key = r.keys[i]
            slot = r.changed[i]
            j = int(i)
            while j >= gap and r.keys[wp.max(j - gap, 0)] > key:
                r.keys[j] = r.keys[j - gap]
                r.changed[j] = r.changed[j - gap]
                j -= gap
            r.keys[j] = key
            r.changed[j] = slot
        gap = gap / 3


@wp.kernel
def update_faces(first: int, count: wp.array[int], c: ComplexArrays, s: SurfaceStore, r: FaceRoom, log: WriteLog):
    """Bring faces, edges and clusters up to date with so many triangles of the cut surface (one thread)."""
    for k in range(6):
        if k != STAMP:
            r.found[k] = 0
    r.found[STAMP] = r.found[STAMP] + 1
    for name in range(r.known[0], name_count(c, s)):
        if vertex_of(c, s, name) >= 0:
            part = r.parts[part_of(c, s, name)]
            own = part[1]
            n = r.counts[own]
            if n >= r.rooms[own]:
                log.numbers[FULL] = 1
                return
            put(log, VERTEX_COUNTS, r.counts, own, n + 1)
            put(log, VERTEX_ROW, r.vertex_row, name, part[2] + n)
            put(log, BODY, r.body, part[2] + n, part[0])
    # which faces have other corners; what they own is loose, and their lists are those of before
    for i in range(count[0]):
        slot = r.slots[i]
        f = r.face_row[slot]
        alive = name_at(c, s, slot, 0) >= 0
        same = bool(False)
        if alive:
            same = f >= 0
            for k in range(3):
                name = name_at(c, s, slot, k)
                if r.vertex_stamp[name] != r.found[STAMP]:
                    r.vertex_stamp[name] = r.found[STAMP]
                    append(r, log, TOUCHED, r.touched, name)
                if same:
                    same = r.faces[3 * f + k] == r.vertex_row[name]
            if not same:
                append(r, log, CHANGED, r.changed, slot)
                if is_wall(c, s, slot):
                    new = int(0)
                    for k in range(3):
                        new = wp.max(new, int(name_at(c, s, slot, k) >= r.known[0]))
                    for k in range(3):
                        name = name_at(c, s, slot, k)
                        r.opened[name] = wp.max(new, r.opened[name])
        elif f >= 0:
            append(r, log, CHANGED, r.changed, -1 - slot)
        if f >= 0 and (not alive or not same):
            loosen(r, log, f)
            for k in range(3):
                leave_list(r, log, r.faces[3 * f + k], f)
    if log.numbers[FULL] == 1:
        return
    # places: gone, other corners, new
    for i in range(r.found[CHANGED]):
        slot = r.changed[i]
        if slot < 0:
            slot = -1 - slot
            f = r.face_row[slot]
            remove_from_cluster(r, log, f)
            n = r.numbers[FREE_FACES]
            put(log, FREE_FACE_LIST, r.free_faces, n, f)
            put(log, COUNTS, r.numbers, FREE_FACES, n + 1)
            put(log, FACE_ROW, r.face_row, slot, -1)
            r.changed[i] = -1 - f
    sort_in_space(c, s, r)
    for i in range(r.found[CHANGED]):
        slot = r.changed[i]
        if slot >= 0:
            f = r.face_row[slot]
            if f < 0:
                free = r.numbers[FREE_FACES]
                f = r.numbers[FACES]
                if free > 0:
                    f = r.free_faces[free - 1]
                    put(log, COUNTS, r.numbers, FREE_FACES, free - 1)
                elif 3 * f < r.faces.shape[0]:
                    put(log, COUNTS, r.numbers, FACES, f + 1)
                else:
                    log.numbers[FULL] = 1
                    return
                kind = int(0)
                if is_wall(c, s, slot):
                    kind = 1
                    if c.label[simplex_behind(c, s, slot)] < 0:
                        kind = 2
                place = room_for(r, log, kind)
                if place < 0:
                    return
                put(log, FACE_ROW, r.face_row, slot, f)
                put(log, SLOT_OF, r.slot_of, f, slot)
                put(log, PLACE_OF, r.place_of, f, place)
                put(log, ORDER, r.order, place, f)
            touch_cluster(r, log, r.cluster_of[r.place_of[f]])
            for k in range(3):
                v = r.vertex_row[name_at(c, s, slot, k)]
                put(log, CORNERS, r.faces, 3 * f + k, v)
                put(log, ITEMS, r.items, 3 * r.place_of[f] + k, v)
            r.changed[i] = f
            r.pending[f] = 1
            for k in range(3):
                enter_list(r, log, r.faces[3 * f + k], f)
    if log.numbers[FULL] == 1:
        return
    # edges and vertices
    for i in range(r.found[CHANGED]):
        f = r.changed[i]
        if f >= 0:
            for k in range(3):
                u = r.faces[3 * f + k]
                v = r.faces[3 * f + (k + 1) % 3]
                e = known_edge(r, f, u, v)
                if e < 0:
                    e = new_edge(r, log, u, v)
                    if e < 0:
                        return
                put(log, FACE_EDGES, r.face_edges, 3 * f + k, e)
                if r.edge_face[e] < 0:
                    put(log, EDGE_FACE, r.edge_face, e, f)
            r.pending[f] = 0
    for i in range(r.found[LOOSE_EDGES]):
        e = r.loose_edges[i]
        if r.edge_face[e] < 0:
            u = r.ends[2 * e]
            for j in range(r.ranges[2 * u], r.ranges[2 * u + 1]):
                g = r.at[j]
                for k in range(3):
                    if r.face_edges[3 * g + k] == e and r.edge_face[e] < 0:
                        put(log, EDGE_FACE, r.edge_face, e, g)
                        touch_cluster(r, log, r.cluster_of[r.place_of[g]])
            if r.edge_face[e] < 0:
                drop_edge(r, log, e)
    for i in range(r.found[CHANGED]):
        f = r.changed[i]
        if f >= 0:
            for k in range(3):
                look_at_vertex(r, log, r.faces[3 * f + k])
    for i in range(r.found[LOOSE_VERTICES]):
        look_at_vertex(r, log, r.loose_vertices[i])
    for i in range(r.found[CLUSTERS]):
        list_cluster(r, log, r.touched_clusters[i])
    put(log, KNOWN, r.known, 0, name_count(c, s))


@wp.kernel
def forget_certificates(
    first: int,
    offsets: wp.array[int],
    patches: wp.array[int],
    certified: wp.array[int],
    clearance: wp.array[wp.float64],
    other_clearance: wp.array[wp.float64],
    r: FaceRoom,
    log: WriteLog,
):
    """Patches that have a cluster with other faces, of their own or around them, have no clearance (one thread).

    Args:
        offsets, patches: by cluster the patches that have it.
    """
    zero = wp.float64(0.0)
    for i in range(r.found[CLUSTERS]):
        k = r.touched_clusters[i]
        for e in range(offsets[k], offsets[k + 1]):
            p = patches[e]
            put_anyway(log, 0, certified, p, 0)
            if clearance[p] != zero:
                put_value(log, 0, clearance, p, zero)
            if other_clearance[p] != zero:
                put_value(log, 1, other_clearance, p, zero)

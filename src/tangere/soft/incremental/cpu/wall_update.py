"""Where the surface is at rest after a cut: walls and rims inset, areas, sharp edges, traits.

Question: what carries the vertices whose triangles were looked at, and what follows from where they are now?
Method:   walls are inset as `contact.wall_inset` does it, from the walls around each vertex alone; vertices at one
          place are known by a table of places. Then areas, sharp edges and traits of all faces at these vertices are
          found anew; sharp edges that are new go to the empty subtree of their tree.
Sound:    all that is written is noted.
Known as: spatial hashing, of exact places.
The kernels run on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.contact.friction_memory import ROUNDING
from tangere.soft.contact.wall_inset import (
    CANCELS,
    COARSE,
    DIVIDED,
    MOST_STRETCHED,
    NOT_ALONG,
    SAME_WAY,
    STAYS,
    STRAIGHT,
    smallest_cap,
    turned_to_walls,
)
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.cutting.cut_surface import SurfaceStore, is_wall, name_at, simplex_behind, vertex_of
from tangere.soft.incremental.cpu.face_update import FREE_EDGES, LOOSE_EDGES, TOUCHED, FaceRoom
from tangere.soft.incremental.undo_log import FULL, NOTES, WriteLog, put, put_value, put_vector
from tangere.soft.model.assembled_bodies import CLOSED, SHARP_COSINE, SMOOTH, STILL

wp.set_module_options(SOUND | {"max_unroll": 1})

_SAME_WAY, _MOST_STRETCHED = wp.constant(wp.float64(SAME_WAY)), wp.constant(wp.float64(MOST_STRETCHED))
_COARSE, _CANCELS = wp.constant(wp.float64(COARSE)), wp.constant(wp.float64(CANCELS))
_SHARP = wp.constant(wp.float64(SHARP_COSINE))
#: Places in `WallRoom.numbers`.
STAMP, RING, AROUND, SHARP, FREE_SHARP, OPEN_SHARP, CLUSTERS_AROUND = (wp.constant(k) for k in range(7))
NUMBERS = 7
#: Numbers of arrays in the log.
COUNTS, HEADS, FOLLOWING, HASH_OF, CARRIERS, TRAITS, GIVEN_TRAITS, SHARP_ENDS, ITEMS, ORDER, LAST, PLACE_OF = (
    wp.constant(k) for k in range(12)
)
FREE_LIST, SHARP_OF, PARTNER, FREE_EDGE_LIST, FACE_COUNTS, ELSEWHERE, KNOWN = (wp.constant(12 + k) for k in range(7))
#: The same for floating-point numbers.
WEIGHTS, REST, CONTACT_MASS, CONTACT_AREA, LIMITS, START, END, STRAIN, LIMIT = (wp.constant(k) for k in range(9))


@wp.struct
class WallRoom:
    """What the update of walls reads and writes; all by flat views."""

    numbers: wp.array[int]
    heads: wp.array[int]  #: by hash of a place: a surface vertex on a wall there, or -1
    following: wp.array[int]  #: by surface vertex: another one of the same hash, or -1
    hash_of: wp.array[int]  #: by surface vertex; -1 for none
    row_of: wp.array[int]  #: by vertex of the complex: its dof
    x: wp.array[wp.float64]
    free: wp.array[int]
    carriers: wp.array[int]
    weights: wp.array[wp.float64]
    rest: wp.array[wp.float64]
    contact_mass: wp.array[wp.float64]
    contact_area: wp.array[wp.float64]
    limits: wp.array[wp.float64]
    start: wp.array[wp.float64]  #: where surface vertices are [m]
    end: wp.array[wp.float64]
    traits: wp.array[int]
    given_traits: wp.array[int]
    first_vertex: wp.array[int]  #: by body: one of its surface vertices
    body: wp.array[int]  #: by surface vertex of the simulation
    dof_limit: wp.array[wp.float64]
    inset: wp.array[int]  #: by surface vertex: how it is inset, of `INSETS`
    half_kerf: wp.float64
    distance: wp.float64
    at_cut: int  #: the trait of what is at a cut: WALL of a solid, RIM of a sheet
    mass_per_area: wp.float64
    stiffness: wp.float64
    known: wp.array[int]  #: by surface vertex of the simulation: 1 if it was there before
    forgets: wp.array[int]  #: by surface vertex of the simulation: the last cut that opened it
    moved: wp.array[int]  #: by surface vertex of the simulation: the last cut that put it elsewhere
    vertex_stamp: wp.array[int]
    face_stamp: wp.array[int]
    edge_stamp: wp.array[int]
    cluster_stamp: wp.array[int]
    clusters_around: wp.array[int]  #: of what is touched, see `local_overlap`
    facets: wp.array[int]  #: the walls around one vertex
    normals: wp.array[wp.vec3d]  #: theirs
    ring: wp.array[int]
    around: wp.array[int]
    sharp_ends: wp.array[int]
    items: wp.array[int]
    order: wp.array[int]
    last: wp.array[int]
    first: wp.array[int]
    node_of: wp.array[int]
    place_of: wp.array[int]
    cluster_of: wp.array[int]
    free_list: wp.array[int]
    clusters: int
    first_edge: int
    partner: wp.array[int]
    strain: wp.array[wp.float64]
    bristle_limit: wp.array[wp.float64]
    elsewhere: wp.array[int]


@wp.func
def at_rest(w: WallRoom, v: int) -> wp.vec3d:
    return wp.vec3d(w.rest[3 * v], w.rest[3 * v + 1], w.rest[3 * v + 2])


@wp.func
def hash_of_place(c: ComplexArrays, v: int, size: int) -> int:
    """Where in a table the place of a vertex is (FNV)."""
    hash = wp.uint64(1469598103934665603)
    for k in range(3):
        number = c.rest[v][k] + wp.float64(0.0)  # of two zeros one
        hash = (hash ^ wp.cast(number, wp.uint64)) * wp.uint64(1099511628211)
        hash = hash ^ (hash >> wp.uint64(29))
    return int(hash % wp.uint64(size))


@wp.func
def wall_at(c: ComplexArrays, s: SurfaceStore, slot: int, v: int, k: int) -> int:
    """The facet of a triangle's simplex that is a wall at a vertex of the complex, or -1.

    Of a solid that is the triangle itself, and k is 0; of a sheet the edge opposite corner k.
    """
    if c.size == 3:
        if ((c.wall[slot] >> k) & 1) == 1 and c.corners[slot][k] != v:
            return 4 * slot + k
        return -1
    if is_wall(c, s, slot):
        return s.store[s.owners + slot]
    return -1


@wp.func
def wall_normal(c: ComplexArrays, s: SurfaceStore, slot: int, k: int) -> wp.vec3d:
    """Outward, twice as long as the triangle is large; in the plane of a sheet, as long as the edge."""
    a = c.rest[vertex_of(c, s, name_at(c, s, slot, (k + 1) % 3))]
    b = c.rest[vertex_of(c, s, name_at(c, s, slot, (k + 2) % 3))]
    d = c.rest[vertex_of(c, s, name_at(c, s, slot, k))]
    if c.size == 3:
        along = wp.normalize(b - a)
        inward = (d - a) - wp.dot(d - a, along) * along
        return -(wp.length(b - a) / wp.length(inward)) * inward
    return wp.cross(b - a, d - a)


@wp.func
def facets_of(c: ComplexArrays) -> int:
    """Facets of a triangle's simplex that may be walls of it, see `wall_at`."""
    if c.size == 3:
        return 3
    return 1


@wp.func
def find_walls(c: ComplexArrays, s: SurfaceStore, r: FaceRoom, w: WallRoom, name: int):
    """Of the walls around a vertex of the cut surface: the centre and cosine of the smallest cap of their normals, the
    direction of the sum of these, how long it is beside the sum of their lengths, and how many there are."""
    total = wp.vec3d()
    sizes = wp.float64(0.0)
    count = int(0)
    row = r.vertex_row[name]
    v = vertex_of(c, s, name)
    for e in range(r.ranges[2 * row], r.ranges[2 * row + 1]):
        slot = r.slot_of[r.at[e]]
        for k in range(facets_of(c)):
            facet = wall_at(c, s, slot, v, k)
            if facet >= 0 and count < w.normals.shape[0]:
                normal = wall_normal(c, s, slot, k)
                total += normal
                sizes += wp.length(normal)
                at = int(count)  # in the order of the facets
                while at > 0 and w.facets[wp.max(at - 1, 0)] > facet:
                    w.facets[at] = w.facets[at - 1]
                    w.normals[at] = w.normals[at - 1]
                    at -= 1
                w.facets[at] = facet
                w.normals[at] = wp.normalize(normal)
                count += 1
    axis = wp.vec3d()
    cosine = wp.float64(2.0)
    if count > 0:
        axis, cosine = smallest_cap(w.normals, 0, count)
    left = wp.length(total) / wp.max(sizes, wp.float64(1.0e-300))
    return axis, cosine, wp.normalize(total), left, count


@wp.func
def note_place(c: ComplexArrays, s: SurfaceStore, w: WallRoom, log: WriteLog, name: int):
    """Keep a vertex on a wall in the table of places."""
    size = w.heads.shape[0]
    here = hash_of_place(c, vertex_of(c, s, name), size)
    before = w.hash_of[name]
    if before == here:
        return
    if before >= 0:
        if w.heads[before] == name:
            put(log, HEADS, w.heads, before, w.following[name])
        else:
            at = w.heads[before]
            while at >= 0:
                if w.following[at] == name:
                    put(log, FOLLOWING, w.following, at, w.following[name])
                    at = int(-1)
                else:
                    at = w.following[at]
    put(log, FOLLOWING, w.following, name, w.heads[here])
    put(log, HEADS, w.heads, here, name)
    put(log, HASH_OF, w.hash_of, name, here)


@wp.func
def same_place(c: ComplexArrays, s: SurfaceStore, one: int, other: int) -> bool:
    a = c.rest[vertex_of(c, s, one)]
    b = c.rest[vertex_of(c, s, other)]
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2]


@wp.func
def must_go(c: ComplexArrays, s: SurfaceStore, r: FaceRoom, w: WallRoom, name: int, cancel: wp.float64) -> bool:
    """Whether a vertex around which normals cancel has another one at its place.

    If it may stay it does so where they cancel most, of all such vertices there.
    """
    others = int(0)
    rivals = int(0)
    most = bool(True)
    at = w.heads[w.hash_of[name]]
    while at >= 0:
        if at != name and vertex_of(c, s, at) >= 0:
            if same_place(c, s, at, name):
                others += 1
                _way, least, _sum, left, count = find_walls(c, s, r, w, at)
                goes_along = left > _CANCELS and (w.inset[at] & NOT_ALONG) == 0
                if count > 0 and least <= _SAME_WAY and not goes_along:
                    rivals += 1
                    most = most and (cancel < left or (cancel == left and name < at))
        at = w.following[at]
    if (w.inset[name] & STAYS) != 0 and rivals > 0 and most:
        return False
    return others > 0


@wp.func
def weights_in(c: ComplexArrays, t: int, point: wp.vec3d) -> wp.vec4d:
    """Of the corners of a simplex, for a point; in the plane of a triangle, whose fourth one weighs nothing."""
    corners = c.corners[t]
    o = c.rest[corners[0]]
    a = c.rest[corners[1]] - o
    b = c.rest[corners[2]] - o
    if c.size == 3:
        away = point - o
        square = wp.dot(a, a) * wp.dot(b, b) - wp.dot(a, b) * wp.dot(a, b)
        first = (wp.dot(a, away) * wp.dot(b, b) - wp.dot(b, away) * wp.dot(a, b)) / square
        second = (wp.dot(b, away) * wp.dot(a, a) - wp.dot(a, away) * wp.dot(a, b)) / square
        return wp.vec4d(wp.float64(1.0) - first - second, first, second, wp.float64(0.0))
    d = c.rest[corners[3]] - o
    p = point - o
    volume = wp.dot(a, wp.cross(b, d))
    one = wp.dot(p, wp.cross(b, d)) / volume
    two = wp.dot(a, wp.cross(p, d)) / volume
    three = wp.dot(a, wp.cross(b, p)) / volume
    return wp.vec4d(wp.float64(1.0) - one - two - three, one, two, three)


@wp.kernel
def inset_walls(first: int, c: ComplexArrays, s: SurfaceStore, r: FaceRoom, w: WallRoom, log: WriteLog):
    """What carries the vertices that are touched, and where they are (one thread)."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    for n in range(r.found[TOUCHED]):
        name = r.touched[n]
        _way, _least, _sum, _left, count = find_walls(c, s, r, w, name)
        if count > 0:
            note_place(c, s, w, log, name)
    for n in range(r.found[TOUCHED]):
        name = r.touched[n]
        row = r.vertex_row[name]
        dof = vertex_of(c, s, name)
        way, least, total, cancel, count = find_walls(c, s, r, w, name)
        carriers = wp.vec4i(dof, dof, dof, dof)
        weights = wp.vec4d(one, zero, zero, zero)
        going = bool(False)
        if count > 0:
            if least > _SAME_WAY:
                going = True
                way = way * wp.clamp(one / least, one, _MOST_STRETCHED)
            elif cancel > _CANCELS and (w.inset[name] & NOT_ALONG) == 0:
                going = True
                way = turned_to_walls(total, w.normals, 0, count)
                way = way / wp.clamp(wp.dot(way, total), one / _MOST_STRETCHED, one)
            elif must_go(c, s, r, w, name, cancel):
                going = True
                middle = wp.vec3d()
                for e in range(r.ranges[2 * row], r.ranges[2 * row + 1]):
                    slot = r.slot_of[r.at[e]]
                    for side in range(facets_of(c)):
                        if wall_at(c, s, slot, dof, side) >= 0:
                            corners = c.corners[simplex_behind(c, s, slot)]
                            for k in range(c.size):
                                middle += c.rest[corners[k]] / wp.float64(c.size)
                way = wp.normalize(c.rest[dof] - middle / wp.float64(count))
                if (w.inset[name] & STRAIGHT) == 0:
                    find_walls(c, s, r, w, name)  # the normals, again: others have taken their place
                    way = turned_to_walls(way, w.normals, 0, count)
                way = _MOST_STRETCHED * way
        if going:
            depth = w.half_kerf * wp.pow(wp.float64(0.25), wp.float64(w.inset[name] / DIVIDED))
            point = c.rest[dof] - depth * way
            best = wp.float64(-1.0e300)
            chosen = int(-1)
            for e in range(r.ranges[2 * row], r.ranges[2 * row + 1]):
                slot = r.slot_of[r.at[e]]
                t = simplex_behind(c, s, slot)
                at_wall = bool(False)
                for k in range(facets_of(c)):
                    at_wall = at_wall or wall_at(c, s, slot, dof, k) >= 0
                if at_wall:
                    found = weights_in(c, t, point)
                    least_weight = wp.min(wp.min(found[0], found[1]), found[2])
                    if c.size == 4:
                        least_weight = wp.min(least_weight, found[3])
                    inside = wp.floor(least_weight / _COARSE + wp.float64(0.5))
                    if inside > best or (inside == best and t < chosen):
                        best = inside
                        chosen = t
                        weights = found
            carriers = c.corners[chosen]
            if c.size == 3:
                carriers[3] = dof
        rest = wp.vec3d()
        here = wp.vec3d()
        moves = bool(False)
        for k in range(4):
            rest += weights[k] * c.rest[carriers[k]]
            dof_row = w.row_of[carriers[k]]
            for j in range(3):
                here[j] = here[j] + weights[k] * w.x[3 * dof_row + j]
            moves = moves or (w.free[dof_row] == 1 and weights[k] != zero)
            put(log, CARRIERS, w.carriers, 4 * row + k, dof_row)
            put_value(log, WEIGHTS, w.weights, 4 * row + k, weights[k])
        moved = w.known[row] == 0
        for j in range(3):
            moved = moved or here[j] != w.end[3 * row + j]
        if moved:
            w.moved[row] = w.numbers[STAMP] + 1  # that of what follows
        if w.known[row] == 0 or wp.length(rest - at_rest(w, row)) > ROUNDING * w.distance:
            put(log, ELSEWHERE, w.elsewhere, row, 1)
        put_vector(log, REST, w.rest, row, rest)
        put_vector(log, START, w.start, row, here)
        put_vector(log, END, w.end, row, here)
        closed = w.traits[w.first_vertex[w.body[row]]] & CLOSED
        given_closed = w.given_traits[w.first_vertex[w.body[row]]] & CLOSED
        bits = int(w.traits[row] & SMOOTH)
        if not moves:
            bits = bits | STILL
        if count > 0:
            bits = bits | w.at_cut
        put(log, TRAITS, w.traits, row, bits | closed)
        put(log, GIVEN_TRAITS, w.given_traits, row, bits | given_closed)
        if w.known[row] == 0:
            put_value(log, LIMITS, w.limits, row, wp.min(w.dof_limit[w.row_of[dof]], w.distance))
        if r.opened[name] == 1 or w.known[row] == 0:
            w.forgets[row] = w.numbers[STAMP] + 1
            for side in range(2):
                put(log, PARTNER, w.partner, 2 * row + side, -1)
                put_value(log, LIMIT, w.bristle_limit, 2 * row + side, zero)
                put_vector(log, STRAIN, w.strain, 2 * row + side, wp.vec3d())
        r.opened[name] = 0
        put(log, KNOWN, w.known, row, 1)


@wp.kernel
def note_places(first: int, c: ComplexArrays, s: SurfaceStore, r: FaceRoom, w: WallRoom, log: WriteLog):
    """Keep all that is on walls in the table of places (one thread)."""
    for name in range(r.known[0]):
        if vertex_of(c, s, name) >= 0:
            _way, _least, _sum, _left, count = find_walls(c, s, r, w, name)
            if count > 0:
                note_place(c, s, w, log, name)
                log.numbers[NOTES] = 0


@wp.func
def face_normal(r: FaceRoom, w: WallRoom, f: int) -> wp.vec3d:
    a = at_rest(w, r.faces[3 * f])
    return wp.cross(at_rest(w, r.faces[3 * f + 1]) - a, at_rest(w, r.faces[3 * f + 2]) - a)


@wp.func
def is_sharp(r: FaceRoom, w: WallRoom, e: int) -> bool:
    """Whether an edge is a rim, or its faces meet at an angle."""
    u = r.ends[2 * e]
    one = int(-1)
    other = int(-1)
    count = int(0)
    for j in range(r.ranges[2 * u], r.ranges[2 * u + 1]):
        f = r.at[j]
        if r.face_edges[3 * f] == e or r.face_edges[3 * f + 1] == e or r.face_edges[3 * f + 2] == e:
            count += 1
            other = one
            one = f
    if count != 2:
        return True
    return wp.dot(wp.normalize(face_normal(r, w, one)), wp.normalize(face_normal(r, w, other))) < _SHARP


@wp.func
def blunt(r: FaceRoom, w: WallRoom, log: WriteLog, e: int):
    """An edge is sharp no more: the last one of its cluster takes its place in the tree."""
    own = r.sharp_of[e]
    if own < 0:
        return
    place = w.place_of[own]
    node = w.node_of[w.cluster_of[place]]
    end = w.last[node]
    other = w.order[end]
    put(log, ITEMS, w.items, 2 * place, w.items[2 * end])
    put(log, ITEMS, w.items, 2 * place + 1, w.items[2 * end + 1])
    put(log, ORDER, w.order, place, other)
    put(log, PLACE_OF, w.place_of, other, place)
    put(log, PLACE_OF, w.place_of, own, -1)
    put(log, LAST, w.last, node, end - 1)
    put(log, SHARP_ENDS, w.sharp_ends, 2 * own, 0)
    put(log, SHARP_ENDS, w.sharp_ends, 2 * own + 1, 0)
    n = w.numbers[FREE_SHARP]
    put(log, FREE_LIST, w.free_list, n, own)
    put(log, COUNTS, w.numbers, FREE_SHARP, n + 1)
    put(log, SHARP_OF, r.sharp_of, e, -1)


@wp.func
def forget_edge(w: WallRoom, log: WriteLog, own: int):
    """A sharp edge touches nothing that it touched before."""
    if own >= 0:
        put(log, PARTNER, w.partner, w.first_edge + own, -1)
        put_value(log, LIMIT, w.bristle_limit, w.first_edge + own, wp.float64(0.0))
        put_vector(log, STRAIN, w.strain, w.first_edge + own, wp.vec3d())


@wp.func
def sharpen(r: FaceRoom, w: WallRoom, log: WriteLog, e: int):
    """An edge is sharp from now on."""
    if r.sharp_of[e] >= 0:
        return
    free = w.numbers[FREE_SHARP]
    own = w.numbers[SHARP]
    k = w.numbers[OPEN_SHARP]
    if k < w.clusters:
        if w.last[w.node_of[k]] - w.first[w.node_of[k]] >= 7:
            k += 1
    if k >= w.clusters or (free == 0 and 2 * own >= w.sharp_ends.shape[0]):
        log.numbers[FULL] = 1
        return
    if free > 0:
        own = w.free_list[free - 1]
        put(log, COUNTS, w.numbers, FREE_SHARP, free - 1)
    else:
        put(log, COUNTS, w.numbers, SHARP, own + 1)
    put(log, COUNTS, w.numbers, OPEN_SHARP, k)
    node = w.node_of[k]
    place = w.last[node] + 1
    put(log, LAST, w.last, node, place)
    put(log, ORDER, w.order, place, own)
    put(log, PLACE_OF, w.place_of, own, place)
    for end in range(2):
        put(log, ITEMS, w.items, 2 * place + end, r.ends[2 * e + end])
        put(log, SHARP_ENDS, w.sharp_ends, 2 * own + end, r.ends[2 * e + end])
    put(log, SHARP_OF, r.sharp_of, e, own)
    forget_edge(w, log, own)


@wp.kernel
def find_traits(first: int, r: FaceRoom, w: WallRoom, log: WriteLog):
    """Areas, sharp edges and smooth vertices of all faces at what is touched (one thread)."""
    stamp = w.numbers[STAMP] + 1
    w.numbers[STAMP] = stamp
    w.numbers[RING] = 0
    w.numbers[AROUND] = 0
    for n in range(r.found[TOUCHED]):
        v = r.vertex_row[r.touched[n]]
        for j in range(r.ranges[2 * v], r.ranges[2 * v + 1]):
            f = r.at[j]
            if w.face_stamp[f] != stamp:
                w.face_stamp[f] = stamp
                at = w.numbers[AROUND]
                if at >= w.around.shape[0]:
                    log.numbers[FULL] = 1
                    return
                w.around[at] = f
                w.numbers[AROUND] = at + 1
                for k in range(3):
                    u = r.faces[3 * f + k]
                    if w.vertex_stamp[u] != stamp:
                        w.vertex_stamp[u] = stamp
                        at = w.numbers[RING]
                        if at >= w.ring.shape[0]:
                            log.numbers[FULL] = 1
                            return
                        w.ring[at] = u
                        w.numbers[RING] = at + 1
    for n in range(r.found[LOOSE_EDGES]):
        e = r.loose_edges[n]
        if r.edge_face[e] < 0 and r.sharp_of[e] >= 0:
            blunt(r, w, log, e)
            free = r.numbers[FREE_EDGES]
            put(log, FREE_EDGE_LIST, r.free_edges, free, e)
            put(log, FACE_COUNTS, r.numbers, FREE_EDGES, free + 1)
    for n in range(w.numbers[AROUND]):
        f = w.around[n]
        for k in range(3):
            e = r.face_edges[3 * f + k]
            if w.edge_stamp[e] != stamp:
                w.edge_stamp[e] = stamp
                if is_sharp(r, w, e):
                    sharpen(r, w, log, e)
                    if w.forgets[r.ends[2 * e]] == stamp or w.forgets[r.ends[2 * e + 1]] == stamp:
                        forget_edge(w, log, r.sharp_of[e])
                else:
                    blunt(r, w, log, e)
    for n in range(w.numbers[RING]):
        v = w.ring[n]
        area = wp.float64(0.0)
        smooth = int(SMOOTH)
        for j in range(r.ranges[2 * v], r.ranges[2 * v + 1]):
            f = r.at[j]
            area += wp.length(face_normal(r, w, f)) / wp.float64(6.0)
            for k in range(3):
                e = r.face_edges[3 * f + k]
                if r.sharp_of[e] >= 0 and (r.ends[2 * e] == v or r.ends[2 * e + 1] == v):
                    smooth = 0
        put_value(log, CONTACT_MASS, w.contact_mass, v, area * w.mass_per_area)
        put_value(log, CONTACT_AREA, w.contact_area, v, area * w.stiffness)
        put(log, TRAITS, w.traits, v, (w.traits[v] & ~SMOOTH) | smooth)
        put(log, GIVEN_TRAITS, w.given_traits, v, (w.given_traits[v] & ~SMOOTH) | smooth)

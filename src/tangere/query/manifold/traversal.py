"""All places where a body rests on the ground: the local maxima of the vertical penetration, and what stands with them.

Method: walk down the pyramid under the body, past nodes it is clear of, and ask every face, edge and vertex that is
        left (`narrow_phase.contact`). Lifting the body by the largest penetration frees it, so no depth is larger, and
        none needs to be filtered out.
        Planar blocks of any size are one face: over seams of coplanar cells there are face normals only.
        Points with a gap up to the margin count as well: a body at rest keeps its four points when it rocks.
Sound:  a cylinder that touches (by the exact test, `intersection.cylinder_heightfield`) never goes without: if rounding
        has hidden every maximum, one vertical contact is made by lifting it until it is free.
Known as: contact manifold of a convex body on a heightfield, by a descent of its min-max mipmap (Tevs, Ihrke and Seidel
          2008, for rays).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.height_pyramid import (
    CONVEX_VERTEX,
    CONVEX_X,
    GAP,
    PLANAR,
    Terrain,
    Walk,
    cell_window,
    height_at,
    next_node,
    node_bounds,
    node_flags,
    node_heights,
    walk_over,
)
from tangere.query.intersection.cylinder_heightfield import UprightCylinder, cylinder_touches, upright_cylinder
from tangere.query.manifold.culling import GroundColumn, clear_of
from tangere.query.manifold.details import ContactPoint, ManifoldRow, contact_point, row_of
from tangere.query.manifold.narrow_phase.contact import (
    LIFTED,
    NEITHER,
    NO_CONTACT,
    BodyPlace,
    edge_of,
    feature_contacts_of,
    first_part,
    is_finite,
    may_be_wall,
    owner,
    place_over,
    rests,
    wall_contact,
)
from tangere.query.manifold.reduction import (
    KEPT,
    TIE,
    ContactGroups,
    SteepWalls,
    add_contact,
    add_wall,
    clear_groups,
    clear_walls,
    group_at,
    kept_contact,
    reduce_group,
    wall_at,
    wall_before,
)
from tangere.runtime import SOUND, reserve_slots
from tangere.shape.analytic import CYLINDER, AnalyticShape, Hulls, PlacedBody, bounds_of, support_of
from tangere.shape.analytic import place as place_body

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: What can be wrong with a body, 0 being nothing.
NO_ROOM = wp.constant(1)
NOT_FINITE = wp.constant(2)
#: Edges whose bit is set, and vertices.
CONVEX = wp.constant(30)
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
_HALVINGS = wp.constant(60)


@wp.struct
class GroundAround:
    """The body grown by how near counts, and the ground under it."""

    is_empty: wp.bool
    walk: Walk
    near: wp.float64  #: [m]
    lowest: wp.float64  #: of the grown body
    grown: UprightCylinder  #: the body, if it is a cylinder


@wp.struct
class Rim:
    """The owners with creases of a node: creases of planar ground are on its first row and its first column."""

    row: wp.int32
    column: wp.int32
    in_row: wp.int32  #: that many owners in the row from `column` on …
    low_end: wp.int32
    count: wp.int32  #: … the rest in the column of the node from `low_end` on
    first_column: wp.int32


@cache
def surroundings_of(kind: int) -> tuple[wp.Function, wp.Function]:
    """`surroundings(t, body, hulls, place) -> GroundAround`, and
    `flags_if_near(t, body, hulls, place, around, node) -> int`: the flags of a node, -1 if the body is clear of it."""
    bounds_function, is_clear = bounds_of(kind), clear_of(kind)

    @wp.func
    def surroundings(t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace) -> GroundAround:
        near = place.margin + place.slack
        box = bounds_function(body, hulls)
        lower = box.lower - vec(near, near, near)
        upper = box.upper + vec(near, near, near)
        window = cell_window(t, place.centre + lower, place.centre + upper)
        found = GroundAround()
        found.is_empty = window[0] > window[1] or window[2] > window[3]
        if not found.is_empty:
            found.walk = walk_over(t, window)
            found.near = near
            found.lowest = lower[2]
            found.grown = upright_cylinder(vec(), body.axis, body.radius + near, body.reach + near)
        return found

    @wp.func
    def flags_if_near(
        t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, around: GroundAround, node: wp.vec3i
    ) -> int:
        level = node[0]
        top = real(node_bounds(t, level, node[1], node[2])[1]) - place.centre[2]
        if top < around.lowest:
            return -1
        column = GroundColumn()
        column.x0 = real(node[2] << level) * t.dx - place.centre[0]
        column.y0 = real(node[1] << level) * t.dy - place.centre[1]
        column.x1 = column.x0 + real(1 << level) * t.dx
        column.y1 = column.y0 + real(1 << level) * t.dy
        column.top = top
        if is_clear(body, hulls, around.grown, around.near, column):
            return -1
        return node_flags(t, level, node[1], node[2])

    return surroundings, flags_if_near


@cache
def ground_contacts_of(kind: int) -> wp.Function:
    """`find_contacts(t, body, hulls, place, groups, walls)`: fills the groups of `place.slot`; for one kind of body."""
    face, on_face, points, _, on_vertex, on_edge, crossings = feature_contacts_of(kind)
    surroundings, flags_if_near = surroundings_of(kind)
    support, lift = support_of(kind), lift_of(kind)

    @wp.func
    def visit_faces(
        t: Terrain,
        body: PlacedBody,
        hulls: Hulls,
        place: BodyPlace,
        groups: ContactGroups,
        walls: SteepWalls,
        node: wp.vec3i,
        flags: int,
    ):
        heights = node_heights(t, node[0], node[1], node[2])
        part = first_part(flags)
        last = wp.max(part, 1)
        while part <= last:  # not a range, which would be unrolled: what is called from one place only is inlined
            over = face(t, body, hulls, place, node, heights, part)
            if over.most >= -place.margin:
                deepest = vec()
                is_known = bool(False)  # few faces ask for it
                k = int(0)
                while k < points(body, hulls, over.normal):
                    contact = on_face(body, hulls, place, over, k)
                    if contact.code != NO_CONTACT:
                        if not is_known:
                            deepest = support(body, hulls, -over.normal)
                            is_known = bool(True)
                        if rests(place, over, deepest, contact):
                            offer(place, groups, walls, contact)
                    k += 1
                if place.filtered == 0 and may_be_wall(over):
                    wall = wall_contact(place, over, support(body, hulls, -over.normal))
                    if wall.code != NO_CONTACT:
                        add_wall(walls, place.slot, wall, -1, place.slack)
            part += 1

    @wp.func
    def visit_owner(
        t: Terrain,
        body: PlacedBody,
        hulls: Hulls,
        place: BodyPlace,
        groups: ContactGroups,
        walls: SteepWalls,
        i: int,
        j: int,
    ):
        flags = node_flags(t, 0, i, j)
        if (flags & CONVEX) == 0:
            return
        here = owner(t, place.centre, i, j)
        if (flags & CONVEX_VERTEX) != 0:
            contact = on_vertex(t, body, hulls, place, here)
            if contact.code != NO_CONTACT:
                offer(place, groups, walls, contact)
        family = int(0)
        while family < 3:
            if (flags & (CONVEX_X << family)) != 0:
                edge = edge_of(t, here, family)
                k = int(0)
                while k < crossings(hulls):
                    contact = on_edge(t, body, hulls, place, edge, k)
                    if contact.code >= 0:
                        offer(place, groups, walls, contact)
                    k += wp.where(contact.code == NEITHER, 2, 1)
            family += 1

    @wp.func
    def traverse(
        t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, groups: ContactGroups, walls: SteepWalls
    ):
        around = surroundings(t, body, hulls, place)
        if around.is_empty:
            return
        node = around.walk.start
        while node[0] >= 0:
            flags = flags_if_near(t, body, hulls, place, around, node)
            into = flags >= 0 and (flags & PLANAR) == 0 and node[0] > 0
            if flags >= 0 and not into:
                if (flags & GAP) == 0:
                    visit_faces(t, body, hulls, place, groups, walls, node, flags)
                if (flags & CONVEX) != 0:
                    rim = rim_of(around.walk.window, node)
                    for k in range(rim.count):
                        at = rim_owner(rim, k)
                        visit_owner(t, body, hulls, place, groups, walls, at[0], at[1])
            node = next_node(around.walk, node, into)

    @wp.func
    def find_contacts(
        t: Terrain, body: PlacedBody, hulls: Hulls, place: BodyPlace, groups: ContactGroups, walls: SteepWalls
    ):
        clear_walls(walls, place.slot)
        turn = int(0)
        while is_turn_due(groups, walls, place, turn):
            place.filtered = turn
            clear_groups(groups, place.slot)
            traverse(t, body, hulls, place, groups, walls)
            turn += 1
        add_used_walls(groups, walls, place)
        if deepest_kept(groups, place.slot) < _ZERO:
            up = lift(t, body, place)
            if up >= _ZERO:
                add_contact(groups, place.slot, lifted_contact(support(body, hulls, vec(_ZERO, _ZERO, -_ONE)), up))

    return find_contacts


@wp.func
def rim_of(window: wp.vec4i, node: wp.vec3i) -> Rim:
    """The owners of a node without children that lie in the window; of a cell it is the cell itself."""
    size = 1 << node[0]
    rim = Rim()
    rim.row = node[1] << node[0]
    rim.first_column = node[2] << node[0]
    rim.column = wp.max(rim.first_column, window[2])
    if rim.row >= window[0]:
        rim.in_row = wp.min(rim.first_column + size - 1, window[3]) + 1 - rim.column
    rim.low_end = wp.max(rim.row + 1, window[0])
    in_column = int(0)
    if rim.first_column >= window[2]:
        in_column = wp.max(wp.min(rim.row + size - 1, window[1]) + 1 - rim.low_end, 0)
    rim.count = rim.in_row + in_column
    return rim


@wp.func
def rim_owner(rim: Rim, k: int) -> wp.vec2i:
    """Row and column of the k-th owner."""
    if k < rim.in_row:
        return wp.vec2i(rim.row, rim.column + k)
    return wp.vec2i(rim.low_end + k - rim.in_row, rim.first_column)


@wp.func
def offer(place: BodyPlace, groups: ContactGroups, walls: SteepWalls, contact: ContactPoint):
    """Add a contact, or let the wall it is behind stand for it."""
    if place.filtered != 0:
        wall = wall_before(walls, place.slot, contact, place.slack)
        if wall >= 0:
            walls.used[wall] = 1
            return
    add_contact(groups, place.slot, contact)


@wp.func
def is_turn_due(groups: ContactGroups, walls: SteepWalls, place: BodyPlace, turn: int) -> bool:
    """Whether to go over all contacts: once; and without those behind walls if there are any: they may hide others."""
    if turn == 0:
        return True
    return turn == 1 and is_any_behind(groups, walls, place)


@wp.func
def add_used_walls(groups: ContactGroups, walls: SteepWalls, place: BodyPlace):
    if place.filtered != 0:
        for w in range(walls.count[place.slot]):
            at = wall_at(walls, place.slot, w)
            if walls.used[at] != 0:
                add_contact(groups, place.slot, walls.kept[at])


@wp.func
def lifted_contact(point: vec, up: real) -> ContactPoint:
    return contact_point(point, vec(_ZERO, _ZERO, _ONE), up, LIFTED, 0)


@wp.func
def is_any_behind(groups: ContactGroups, walls: SteepWalls, place: BodyPlace) -> bool:
    """Whether a wall stands for a contact that was kept."""
    if walls.count[place.slot] == 0:
        return False
    for g in range(wp.min(groups.count[place.slot], groups.room)):
        k = int(0)
        while k < KEPT:
            if wall_before(walls, place.slot, kept_contact(groups, place.slot, g, k), place.slack) >= 0:
                return True
            k += 1
    return groups.count[place.slot] > groups.room


@wp.func
def deepest_kept(groups: ContactGroups, slot: int) -> real:
    deepest = -_FAR
    for g in range(wp.min(groups.count[slot], groups.room)):
        deepest = wp.max(deepest, kept_contact(groups, slot, g, 0).depth)
    return deepest


def lift_of(kind: int) -> wp.Function:
    """`lift(t, body, place) -> float64`: how far up a body must go to be free, -1 if it is; known for cylinders."""
    return _lift_cylinder if kind == CYLINDER else _lift_nothing


@wp.func
def _lift_nothing(t: Terrain, body: PlacedBody, place: BodyPlace) -> real:
    return -_ONE


@wp.func
def is_in_ground(t: Terrain, body: PlacedBody, centre: vec) -> bool:
    if cylinder_touches(t, upright_cylinder(centre, body.axis, body.radius, body.reach)):
        return True
    return height_at(t, centre[0], centre[1]) > centre[2]


@wp.func
def _lift_cylinder(t: Terrain, body: PlacedBody, place: BodyPlace) -> real:
    """How far up a cylinder must go to be free; -1 if it is."""
    if not is_in_ground(t, body, place.centre):
        return -_ONE
    low = _ZERO + _ZERO
    high = real(node_bounds(t, t.root, 0, 0)[1]) - place.centre[2] + body.radius + body.reach
    for _ in range(_HALVINGS):
        middle = _HALF * (low + high)
        if is_in_ground(t, body, place.centre + vec(_ZERO, _ZERO, middle)):
            low = middle
        else:
            high = middle
    return high


@cache
def manifold_kernel(kind: int) -> wp.Kernel:
    """The kernel for one kind of body."""
    find_contacts = ground_contacts_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def find_ground_contacts(
        first: int,
        shard: int,
        chosen: wp.array[int],
        terrains: wp.array[Terrain],
        shapes: wp.array[AnalyticShape],
        poses: wp.array[wp.mat44d],
        margins: wp.array[wp.float64],
        hulls: Hulls,
        worlds: wp.array[int],
        groups: ContactGroups,
        walls: SteepWalls,
        status: wp.array[wp.uint8],
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[ManifoldRow],
    ):
        k = first + wp.tid()
        i = chosen[k]
        pose = poses[i]
        shape = shapes[wp.min(i, shapes.shape[0] - 1)]
        t = terrains[worlds[wp.min(i, worlds.shape[0] - 1)]]
        body = place_body(shape, pose)
        here = place_over(t, body, hulls, pose, margins[wp.min(i, margins.shape[0] - 1)], shard)
        if not is_finite(body, here):
            status[i] = wp.uint8(NOT_FINITE)
            return
        find_contacts(t, body, hulls, here, groups, walls)
        if groups.count[shard] > groups.room:
            status[i] = wp.uint8(NO_ROOM)
            return
        total = int(0)
        for g in range(groups.count[shard]):
            retained = reduce_group(groups, shard, g, TIE * here.margin)
            groups.group[group_at(groups, shard, g)].retained = retained
            for c in range(4):
                if retained[c] >= 0:
                    total += 1
        if total == 0:
            return
        at = reserve_slots(counts, shard, total, capacity)
        if at < 0:
            return
        origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
        for g in range(groups.count[shard]):
            retained = groups.group[group_at(groups, shard, g)].retained
            for c in range(4):
                if retained[c] >= 0:
                    out[at] = row_of(kept_contact(groups, shard, g, retained[c]), i, g, origin)
                    at += 1

    return find_ground_contacts

"""Few contacts out of many, as they stream by: groups of like normals, and of each group at most four points.

Question: which points of a group carry the body: the deepest one, and those that span the largest area?
Method:   a group keeps nine points and no list: the deepest, and the farthest in eight directions of its plane. At the
          end the deepest stays, the farthest from it joins, then the one farthest from their line, then the one that
          makes the hull of the four largest; points on one line leave its two ends (and the deepest).
          Every point keeps its own normal and depth; a group is only a reason to leave points out.
Steady:   the deepest point of a standing body runs round its rim when it rocks by a hair. Points that are as deep but
          for a small part of the margin therefore tie, as do distances and areas but for a hundredth, and the first in
          the world's directions is taken: a body at rest keeps its points and their keys.
Limits:   a normal that finds no room for its group is counted: the caller comes back with more room, nothing is lost.
Known as: contact manifold reduction. Four points of a group as in Strashnov and Torgashev 2020, section V, except that
          the area is that of the hull (ERR-11: theirs is that of the points in written order).
Walls:    the way out past a kerb is sideways, not up over its top. A barrel that overlaps a kerb by a centimetre is as
          deep below the kerb's top as the kerb is high, but the wall of the kerb is a centimetre away (ERR-12 of
          Strashnov and Torgashev 2020: depth along the ground's normal only). A steep face that the body's centre is in
          front of is a wall; its depth is that of the body's deepest point behind it. When the body has moved out along
          the wall's normal it is in front of the wall's whole plane: so every contact behind that plane is gone as
          well, and where the wall is the shorter way, the wall's contact stands for it.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.query.manifold.details import ContactPoint, four_at, half_of, store_four
from tangere.runtime import SOUND
from tangere.shape.analytic import perpendicular_to

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Points kept for each group: the deepest and the extremes in eight directions.
KEPT = wp.constant(9)
#: Sets of four numbers that have room for as many.
KEPT_FOURS = wp.constant(3)
Nine = wp.types.vector(length=9, dtype=real)
NinePoints = wp.types.matrix(shape=(9, 3), dtype=real)
#: Normals within one degree are alike.
ALIKE = wp.constant(real(0.9998476951563913))
DIAGONAL = wp.constant(real(0.7071067811865476))
NOTHING = wp.constant(real(-1.0e300))
#: Points must lead by this part of their distance from the body's origin, so that rounding does not choose among those
#: that are the same.
LEAD = wp.constant(real(1.0e-9))
#: Points that are as far in a direction but for this part of their distance from the body's origin tie.
SAME = wp.constant(real(1.0e-6))
#: Depths that differ by less than this part of the margin tie.
TIE = wp.constant(real(0.1))
#: Distances and areas must lead by this factor, lest a hair's tilt choose among equal ones (of distances the square).
STEADY = wp.constant(real(1.01))
#: Points nearer to a line than this part of its length are on it (Strashnov and Torgashev 2020, eps_2).
COLLINEAR = wp.constant(real(1.0e-6))
#: A face with a smaller n_z is steep.
STEEP = wp.constant(real(0.7))
#: Walls kept for a body; of more, those with the shortest way out (a contact behind none of them goes up, as ever).
WALLS = wp.constant(8)
_SAME_PLANE = wp.constant(real(1.0 - 1.0e-9))


@wp.struct
class Leaders:
    """The contacts that a group keeps: the deepest, and the farthest in eight directions of its plane."""

    score: wp.types.vector(length=9, dtype=wp.float64)  #: its depth, or how far it is in a direction
    code: wp.types.vector(length=9, dtype=wp.int32)  #: of the contact
    number: wp.types.vector(length=9, dtype=wp.int32)  #: where it is in a list of contacts
    out: wp.float64  #: how far the deepest is from the body's origin


@wp.struct
class ContactGroup:
    """Contacts with like normals."""

    normal: wp.vec3d  #: of the first
    side: wp.vec3d  #: unit, across the normal
    retained: wp.vec4i  #: which of the kept are retained, -1 for none
    others: wp.int32  #: contacts besides the first


@wp.struct
class ContactGroups:
    """Room for the groups of some bodies: `room` groups each."""

    room: wp.int32
    count: wp.array[int]  # groups of each body, more than `room` where it did not suffice
    group: wp.array[ContactGroup]  # at `group_at`
    leaders: wp.array[Leaders]  # at `group_at`
    kept: wp.array[wp.vec4i]  # KEPT_FOURS for each group: where the contacts are, once it is reduced
    contacts: wp.array[ContactPoint]  # KEPT for each group: copies of what is kept


def empty_groups(bodies: int, room: int, device: wp.Device) -> Any:
    """Room for so many groups of so many bodies."""
    groups: Any = ContactGroups()
    groups.room = room
    groups.count = wp.empty(bodies, dtype=int, device=device)
    groups.group = wp.empty(bodies * room, dtype=ContactGroup, device=device)
    groups.leaders = wp.empty(bodies * room, dtype=Leaders, device=device)
    groups.kept = wp.empty(bodies * room * KEPT_FOURS, dtype=wp.vec4i, device=device)
    groups.contacts = wp.empty(bodies * room * KEPT, dtype=ContactPoint, device=device)
    return groups


@wp.func
def clear_groups(groups: ContactGroups, body: int):
    groups.count[body] = 0


@wp.func
def group_at(groups: ContactGroups, body: int, g: int) -> int:
    """Where group g of a body is."""
    return body * groups.room + g


@wp.func
def kept_contact(groups: ContactGroups, body: int, g: int, k: int) -> ContactPoint:
    return groups.contacts[group_at(groups, body, g) * KEPT + k]


@wp.func
def in_group(groups: ContactGroups, body: int, normal: vec) -> int:
    """The group of this body whose normal is nearest, if it is near enough, else -1."""
    best = int(-1)
    most = ALIKE + real(0.0)
    for g in range(wp.min(groups.count[body], groups.room)):
        along = wp.dot(groups.group[group_at(groups, body, g)].normal, normal)
        if along >= most:
            most = along
            best = g
    return best


@wp.func
def add_contact(groups: ContactGroups, body: int, contact: ContactPoint):
    """Let a contact compete in the group of its normal."""
    g = in_group(groups, body, contact.normal)
    at = group_at(groups, body, g)
    if g < 0:
        g = groups.count[body]
        groups.count[body] = g + 1
        if g >= groups.room:
            return
        at = group_at(groups, body, g)
        group = ContactGroup()
        group.normal = contact.normal
        group.side = perpendicular_to(contact.normal)
        groups.group[at] = group
        groups.leaders[at] = no_leaders()
    else:
        groups.group[at].others = groups.group[at].others + 1
    group = groups.group[at]
    groups.leaders[at] = compete(groups.contacts, groups.leaders[at], group.normal, group.side, contact, -1, at * KEPT)


@wp.func
def no_leaders() -> Leaders:
    leaders = Leaders()
    for k in range(KEPT):
        leaders.score[k] = NOTHING
    return leaders


@wp.func
def compete(
    contacts: wp.array[ContactPoint],
    leaders: Leaders,
    normal: vec,
    side: vec,
    contact: ContactPoint,
    number: int,
    copies: int,
) -> Leaders:
    """The leaders of a group after one more contact.

    `number` is where it is in `contacts`; -1 if it is not there, and is to be copied from place `copies` on.
    """
    out = wp.length(contact.point)
    ahead = contact.depth - leaders.score[0]
    least = LEAD * out
    leads = bool(ahead > least)
    if ahead > -least and not leads:
        # Of equally deep points the outermost, then the one with the smallest code, wherever the search began.
        beyond = out - leaders.out
        leads = beyond > least or (beyond > -least and contact.code < leaders.code[0])
    if leads:
        leaders.score[0] = contact.depth
        leaders.code[0] = contact.code
        leaders.number[0] = keep(contacts, contact, number, copies)
        leaders.out = out
    x = wp.dot(side, contact.point)
    y = wp.dot(wp.cross(normal, side), contact.point)
    # Of points in the same place those fixed to the body, which have the larger codes, not the one that runs round it.
    lead = SAME * out
    for k in range(1, KEPT):  # the eighths of a turn from side on
        ahead = x - leaders.score[k]
        if ahead > lead or (ahead > -lead and contact.code > leaders.code[k]):
            leaders.score[k] = x
            leaders.code[k] = contact.code
            leaders.number[k] = keep(contacts, contact, number, copies + k)
        ahead = (x + y) * DIAGONAL
        y = (y - x) * DIAGONAL
        x = ahead
    return leaders


@wp.func
def keep(contacts: wp.array[ContactPoint], contact: ContactPoint, number: int, copy: int) -> int:
    """Where a contact that leads is in the list; it is copied there if it was not."""
    if number >= 0:
        return number
    contacts[copy] = contact
    return copy


@wp.func
def turn(n: vec, a: vec, b: vec, c: vec) -> real:
    """Twice the area of abc seen along n; positive if counter-clockwise."""
    return wp.dot(n, wp.cross(b - a, c - a))


@wp.func
def reduce_group(groups: ContactGroups, body: int, g: int, tie: real) -> wp.vec4i:
    """Which of the kept points of a group stay, the deepest (but for `tie` [m]) first; -1 for none."""
    at = group_at(groups, body, g)
    if groups.group[at].others == 0:
        return wp.vec4i(wp.where(tie > real(0.0), 1, 0), -1, -1, -1)  # as `reduced` would
    keep_leaders(groups.kept, at, groups.leaders[at])
    return reduced(groups.contacts, groups.kept, at, KEPT, groups.group[at].normal, tie)


@wp.func
def keep_leaders(kept: wp.array[wp.vec4i], row: int, leaders: Leaders):
    """Write down which contacts lead a group."""
    n = leaders.number
    store_four(kept, KEPT_FOURS * row, wp.vec4i(n[0], n[1], n[2], n[3]))
    store_four(kept, KEPT_FOURS * row + 1, wp.vec4i(n[4], n[5], n[6], n[7]))
    store_four(kept, KEPT_FOURS * row + 2, wp.vec4i(n[8], n[8], n[8], n[8]))


@wp.func
def kept_at(kept: wp.array[wp.vec4i], row: int, k: int) -> int:
    """The k-th contact that leads a group."""
    return four_at(kept, KEPT_FOURS * row + k // 4)[k % 4]


@wp.func
def reduced(
    contacts: wp.array[ContactPoint], kept: wp.array[wp.vec4i], row: int, count: int, n: vec, tie: real
) -> wp.vec4i:
    """Which of the first `count` leaders of a group stay, KEPT at most.

    On CUDA the count should not be known to the compiler, lest it unroll the loops and run out of registers.
    """
    points = NinePoints()  # read at once: none waits for another
    depths = Nine()
    for k in range(KEPT):
        where = half_of(contacts, kept_at(kept, row, k), 0)
        points[k] = vec(where[0], where[1], where[2])
        depths[k] = where[3]
    top = leader(depths, count, tie)
    p1 = points[top]
    second = int(-1)
    longest = LEAD * LEAD * wp.length_sq(p1)
    k = int(1)
    while k < count:
        d = wp.length_sq(points[k] - p1)
        if d > longest:
            longest = d * STEADY
            second = k
        k += 1
    if second < 0:
        return wp.vec4i(top, -1, -1, -1)
    p2 = points[second]
    # The third lies farthest to either side of the line, the fourth adds most to the triangle.
    third = int(-1)
    widest = COLLINEAR * longest
    k = int(1)
    while k < count:
        w = wp.abs(turn(n, p1, p2, points[k]))
        if w > widest:
            widest = w * STEADY
            third = k
        k += 1
    if third < 0:
        # On one line: the deepest, the farthest from it, and the other end of the line if the deepest is not that.
        other = int(-1)
        least = -LEAD * wp.length_sq(p2 - p1)
        k = int(1)
        while k < count:
            along = wp.dot(points[k] - p1, p2 - p1)
            if along < least:
                least = along
                other = k
            k += 1
        return wp.vec4i(top, second, other, -1)
    p3 = points[third]
    if turn(n, p1, p2, p3) < real(0.0):
        n = -n
    fourth = int(-1)
    gain = COLLINEAR * longest
    k = int(1)
    while k < count:
        q = points[k]
        # What a point outside an edge adds; a point outside two edges adds the two and hides nothing of the three.
        more = wp.max(-turn(n, p1, p2, q), real(0.0)) + wp.max(-turn(n, p2, p3, q), real(0.0))
        more += wp.max(-turn(n, p3, p1, q), real(0.0))
        if more > gain:
            gain = more * STEADY
            fourth = k
        k += 1
    return wp.vec4i(top, second, third, fourth)


@wp.func
def leader(depths: Nine, count: int, tie: real) -> int:
    """The first of the kept points that is as deep as the deepest but for `tie`, and touches if that does."""
    most = depths[0]
    k = int(1)
    while k < count:
        depth = depths[k]
        if most - depth < tie and (depth >= real(0.0) or most < real(0.0)):
            return k
        k += 1
    return 0


@wp.struct
class SteepWalls:
    """Room for the walls of some bodies, WALLS each."""

    step: wp.int32  # from a wall of a body to its next: 1, or the number of bodies
    count: wp.array[int]
    used: wp.array[int]  # whether a wall stands for a contact
    number: wp.array[int]  # where its contact is in the list of contacts, -1 where there is none
    kept: wp.array[ContactPoint]


def empty_walls(bodies: int, device: wp.Device, listed: bool = False) -> Any:
    """Room for the walls of so many bodies.

    Args:
        listed: their contacts come from a list; then neighbouring bodies lie side by side, as CUDA threads want them.
    """
    walls: Any = SteepWalls()
    walls.step = bodies if listed else 1
    walls.count = wp.empty(bodies, dtype=int, device=device)
    walls.used = wp.empty(bodies * WALLS, dtype=int, device=device)
    walls.number = wp.empty(bodies * WALLS, dtype=int, device=device)
    walls.kept = wp.empty(bodies * WALLS, dtype=ContactPoint, device=device)
    return walls


@wp.func
def clear_walls(walls: SteepWalls, body: int):
    walls.count[body] = 0


@wp.func
def wall_at(walls: SteepWalls, body: int, w: int) -> int:
    """Where wall w of a body is."""
    if walls.step == 1:
        return body * WALLS + w
    return w * walls.step + body


@wp.func
def add_wall(walls: SteepWalls, body: int, contact: ContactPoint, number: int, tolerance: real):
    """Remember a wall, unless one in the same plane is known or all known ones are shorter ways out."""
    place = walls.count[body]
    farthest = contact.depth + real(0.0)
    for w in range(walls.count[body]):
        other = walls.kept[wall_at(walls, body, w)]
        if wp.dot(other.normal, contact.normal) > _SAME_PLANE and wp.abs(other.depth - contact.depth) <= tolerance:
            return
        if walls.count[body] == WALLS and other.depth > farthest:
            farthest = other.depth
            place = w
    if place == WALLS:
        return
    at = wall_at(walls, body, place)
    walls.kept[at] = contact
    walls.number[at] = number
    walls.used[at] = 0
    walls.count[body] = wp.max(walls.count[body], place + 1)


@wp.func
def wall_before(walls: SteepWalls, body: int, contact: ContactPoint, tolerance: real) -> int:
    """Where the wall with the shortest way out is that makes this contact unnecessary; -1 if there is none."""
    best = int(-1)
    least = contact.depth - tolerance
    for w in range(walls.count[body]):
        at = wall_at(walls, body, w)
        wall = walls.kept[at]
        if wall.depth < least:
            ground = contact.point + wp.vec3d(real(0.0), real(0.0), contact.depth / contact.normal[2])
            if wp.dot(wall.normal, wall.point - ground) + wall.depth >= -tolerance:
                least = wall.depth
                best = at
    return best

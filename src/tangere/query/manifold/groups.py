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
Spec:     specs/strashnov-cylinder-terrain 8.3 (ERR-11: hull area), F-S-19 to F-S-21.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.runtime import SOUND
from tangere.shape.analytic_body import across

wp.set_module_options(SOUND)

__all__ = [
    "KEPT",
    "TIE",
    "Groups",
    "Touch",
    "add_touch",
    "clear_groups",
    "empty_groups",
    "group_at",
    "kept_touch",
    "reduce_group",
]

real = wp.float64
vec = wp.vec3d

#: Points kept for each group: the deepest and the extremes in eight directions.
KEPT = wp.constant(9)
#: Normals within one degree are alike.
ALIKE = wp.constant(real(0.9998476951563913))
DIAGONAL = wp.constant(real(0.7071067811865476))
NOTHING = wp.constant(real(-1.0e300))
#: Points must lead by this much [m], so that rounding does not choose among those that are the same.
LEAD = wp.constant(real(1.0e-9))
#: Points that are as far in a direction but for this part of their distance from the body's origin tie.
SAME = wp.constant(real(1.0e-6))
#: Depths that differ by less than this part of the margin tie.
TIE = wp.constant(real(0.1))
#: Distances and areas must lead by this factor, lest a hair's tilt choose among equal ones (of distances the square).
STEADY = wp.constant(real(1.01))
#: Points nearer to a line than this part of its length are on it (eps_2 of spec 9.3).
COLLINEAR = wp.constant(real(1.0e-6))


@wp.struct
class Touch:
    """A point where a body and the ground touch or nearly do; relative to the body's origin."""

    point: wp.vec3d  #: on the body
    normal: wp.vec3d  #: unit, out of the ground
    depth: wp.float64  #: along the normal; negative is a gap
    code: wp.int32  #: which features meet and which part of the body this is
    feature: wp.int32  #: number of the ground's vertex, edge or face


@wp.struct
class Kept:
    """A touch that leads its group in one way."""

    score: wp.float64  #: by how much: its depth, or how far it is in a direction
    code: wp.int32  #: of the touch
    number: wp.int32  #: where the touch is in `Groups.touches`


@wp.struct
class Group:
    """Touches with like normals."""

    normal: wp.vec3d  #: of the first
    side: wp.vec3d  #: unit, across the normal
    stay: wp.vec4i  #: which of the kept are told, -1 for none
    others: wp.int32  #: touches besides the first


@wp.struct
class Groups:
    """Room for the groups of some bodies: `room` groups each."""

    room: wp.int32
    step: wp.int32  # from a group of a body to its next: 1, or the number of bodies
    count: wp.array[int]  # groups of each body, more than `room` where it did not suffice
    group: wp.array[Group]  # at `group_at`
    kept: wp.array[Kept]  # at `kept_at`
    touches: wp.array[Touch]  # what was kept: copies at `kept_at`, or the list the touches came from


def empty_groups(bodies: int, room: int, device: wp.Device, touches: wp.array | None = None) -> Any:
    """Room for so many groups of so many bodies.

    Args:
        touches: the list the touches will come from; None if they come from nowhere, and are to be copied.
            With a list, neighbouring bodies lie side by side, as neighbouring CUDA threads want them.
    """
    groups: Any = Groups()
    groups.room = room
    groups.step = 1 if touches is None else bodies
    groups.count = wp.empty(bodies, dtype=int, device=device)
    groups.group = wp.empty(bodies * room, dtype=Group, device=device)
    groups.kept = wp.empty(bodies * room * KEPT, dtype=Kept, device=device)
    groups.touches = wp.empty(bodies * room * KEPT, dtype=Touch, device=device) if touches is None else touches
    return groups


@wp.func
def clear_groups(groups: Groups, body: int):
    groups.count[body] = 0


@wp.func
def group_at(groups: Groups, body: int, g: int) -> int:
    """Where group g of a body is."""
    if groups.step == 1:
        return body * groups.room + g
    return g * groups.step + body


@wp.func
def kept_at(groups: Groups, body: int, g: int, k: int) -> int:
    """Where the k-th that group g of a body keeps is."""
    if groups.step == 1:
        return (body * groups.room + g) * KEPT + k
    return (g * KEPT + k) * groups.step + body


@wp.func
def kept_touch(groups: Groups, body: int, g: int, k: int) -> Touch:
    return groups.touches[groups.kept[kept_at(groups, body, g, k)].number]


@wp.func
def kept_point(groups: Groups, body: int, g: int, k: int) -> vec:
    return groups.touches[groups.kept[kept_at(groups, body, g, k)].number].point


@wp.func
def in_group(groups: Groups, body: int, normal: vec) -> int:
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
def add_touch(groups: Groups, body: int, touch: Touch, number: int):
    """Let a touch compete in the group of its normal; `number` is where it is in the list, -1 where there is none."""
    g = in_group(groups, body, touch.normal)
    if g < 0:
        g = groups.count[body]
        groups.count[body] = g + 1
        if g >= groups.room:
            return
        group = Group()
        group.normal = touch.normal
        group.side = across(touch.normal)
        groups.group[group_at(groups, body, g)] = group
        nothing = Kept()
        nothing.score = NOTHING
        for k in range(KEPT):
            groups.kept[kept_at(groups, body, g, k)] = nothing
    else:
        groups.group[group_at(groups, body, g)].others = groups.group[group_at(groups, body, g)].others + 1
    at = kept_at(groups, body, g, 0)
    ahead = touch.depth - groups.kept[at].score
    leads = bool(ahead > LEAD)
    if ahead > -LEAD and not leads:
        leads = is_preferred(touch, groups.touches[groups.kept[at].number])
    if leads:
        keep(groups, at, touch, number, touch.depth)
    group = groups.group[group_at(groups, body, g)]
    x = wp.dot(group.side, touch.point)
    y = wp.dot(wp.cross(group.normal, group.side), touch.point)
    # Of points in the same place those fixed to the body, which have the larger codes, not the one that runs round it.
    lead = SAME * wp.length(touch.point)
    k = int(1)
    while k < KEPT:  # the eighths of a turn from side on
        at = kept_at(groups, body, g, k)
        ahead = x - groups.kept[at].score
        if ahead > lead or (ahead > -lead and touch.code > groups.kept[at].code):
            keep(groups, at, touch, number, x)
        ahead = (x + y) * DIAGONAL
        y = (y - x) * DIAGONAL
        x = ahead
        k += 1


@wp.func
def keep(groups: Groups, at: int, touch: Touch, number: int, score: real):
    """Let a touch lead; it is copied where it is in no list."""
    kept = Kept()
    kept.score = score
    kept.code = touch.code
    kept.number = number
    if number < 0:
        kept.number = at
        groups.touches[at] = touch
    groups.kept[at] = kept


@wp.func
def is_preferred(touch: Touch, other: Touch) -> bool:
    """Of equally deep points the outermost, then the one with the smallest code, wherever the search began."""
    ahead = wp.length(touch.point) - wp.length(other.point)
    return ahead > LEAD or (ahead > -LEAD and touch.code < other.code)


@wp.func
def turn(n: vec, a: vec, b: vec, c: vec) -> real:
    """Twice the area of abc seen along n; positive if counter-clockwise."""
    return wp.dot(n, wp.cross(b - a, c - a))


@wp.func
def leader(groups: Groups, body: int, g: int, tie: real) -> int:
    """The first of the kept points that is as deep as the deepest but for `tie`, and touches if that does."""
    most = kept_touch(groups, body, g, 0).depth
    k = int(1)
    while k < KEPT:
        depth = kept_touch(groups, body, g, k).depth
        if most - depth < tie and (depth >= real(0.0) or most < real(0.0)):
            return k
        k += 1
    return 0


@wp.func
def reduce_group(groups: Groups, body: int, g: int, tie: real) -> wp.vec4i:
    """Which of the kept points of a group stay, the deepest (but for `tie` [m]) first; -1 for none."""
    if groups.group[group_at(groups, body, g)].others == 0:
        return wp.vec4i(wp.where(tie > real(0.0), 1, 0), -1, -1, -1)  # as `leader` would
    n = groups.group[group_at(groups, body, g)].normal
    top = leader(groups, body, g, tie)
    p1 = kept_point(groups, body, g, top)
    second = int(-1)
    longest = LEAD * LEAD
    k = int(1)
    while k < KEPT:
        d = wp.length_sq(kept_point(groups, body, g, k) - p1)
        if d > longest:
            longest = d * STEADY
            second = k
        k += 1
    if second < 0:
        return wp.vec4i(top, -1, -1, -1)
    p2 = kept_point(groups, body, g, second)
    # The third lies farthest to either side of the line, the fourth adds most to the triangle.
    third = int(-1)
    widest = COLLINEAR * longest
    k = int(1)
    while k < KEPT:
        w = wp.abs(turn(n, p1, p2, kept_point(groups, body, g, k)))
        if w > widest:
            widest = w * STEADY
            third = k
        k += 1
    if third < 0:
        return on_one_line(groups, body, g, top, second)
    p3 = kept_point(groups, body, g, third)
    if turn(n, p1, p2, p3) < real(0.0):
        n = -n
    fourth = int(-1)
    gain = COLLINEAR * longest
    k = int(1)
    while k < KEPT:
        q = kept_point(groups, body, g, k)
        # What a point outside an edge adds; a point outside two edges adds the two and hides nothing of the three.
        more = wp.max(-turn(n, p1, p2, q), real(0.0)) + wp.max(-turn(n, p2, p3, q), real(0.0))
        more += wp.max(-turn(n, p3, p1, q), real(0.0))
        if more > gain:
            gain = more * STEADY
            fourth = k
        k += 1
    return wp.vec4i(top, second, third, fourth)


@wp.func
def on_one_line(groups: Groups, body: int, g: int, top: int, second: int) -> wp.vec4i:
    """The deepest, the farthest from it, and the other end of the line if the deepest is not that."""
    p1 = kept_point(groups, body, g, top)
    away = kept_point(groups, body, g, second) - p1
    other = int(-1)
    least = -LEAD * wp.length(away)
    k = int(1)
    while k < KEPT:
        along = wp.dot(kept_point(groups, body, g, k) - p1, away)
        if along < least:
            least = along
            other = k
        k += 1
    return wp.vec4i(top, second, other, -1)

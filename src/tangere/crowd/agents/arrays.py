"""What a step of a crowd reads: the agents in the order of their cells, moving edges by cell, and routes.

Agents are physically sorted by cell after every step, so that the agents of cell c are the range
start[c] … start[c + 1] and neighbours in space are neighbours in memory. What an agent keeps for life (radius, speed,
route) is stored by its number.
Spec: specs/pitiot-multiresolution-interactions 2.17-2.19, 5.3.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import RingTable
from tangere.crowd.agents.neighbour_ranges import Sight, gap, in_sight
from tangere.runtime import SOUND

__all__ = [
    "Agents",
    "CrowdArrays",
    "Edges",
    "Routes",
    "ball_of",
    "comes_first",
    "edge_reach",
    "may_touch",
    "maybe_near",
    "ring_cell",
    "wish",
]

wp.set_module_options(SOUND)

_ZERO, _HALF, _TWO, _EIGHT = (wp.constant(wp.float64(x)) for x in (0.0, 0.5, 2.0, 8.0))
_WIDER = wp.constant(wp.float64(1.0 + 1.0e-9))
#: A waypoint may be passed at so many times the distance that counts as near: others may be in the way.
_BESIDE = wp.constant(wp.float64(4.0))
#: An agent brakes for its last goal over this time [s].
_BRAKING = wp.constant(wp.float64(0.5))


@wp.struct
class Agents:
    """Where a step puts agents, in the order it found them."""

    position: wp.array[wp.vec3d]
    velocity: wp.array[wp.vec3d]
    dart: wp.array[int]
    number: wp.array[int]
    cell: wp.array[int]
    within: wp.array[wp.vec4f]


@wp.struct
class CrowdArrays:
    position: wp.array[wp.vec3d]
    velocity: wp.array[wp.vec3d]
    dart: wp.array[int]
    number: wp.array[int]
    cell: wp.array[int]
    within: wp.array[wp.vec4f]  # a rectangle in the agent's cell (low, high) [m]; empty: not known
    start: wp.array[int]  # per cell, and one more
    radius: wp.array[wp.float64]  # by number, like all below
    speed: wp.array[wp.float64]
    group: wp.array[int]  # -1: alone
    group_centre: wp.array[wp.vec3d]  # by group
    sight: Sight
    surface: int  # 1: a 2-map that is not flat
    dt: wp.float64
    clock: wp.array[int]  # one number: steps done
    seed: int


@wp.struct
class Edges:
    """Edges of polygonal agents. Edge e crosses the cells cells[first[e]] … cells[first[e + 1] - 1], in rising order.

    The places (numbers into `cells`) that hold cell c are entry[start[c]] … entry[start[c + 1] - 1].
    """

    a: wp.array[wp.vec3d]
    b: wp.array[wp.vec3d]
    rate_a: wp.array[wp.vec3d]
    rate_b: wp.array[wp.vec3d]
    owner: wp.array[int]
    ahead: wp.array[int]  # 1: a virtual edge of anticipation
    first: wp.array[int]
    cells: wp.array[int]
    edge: wp.array[int]  # per place
    start: wp.array[int]
    entry: wp.array[int]
    whose: wp.array[int]  # beside `entry`: the owner of its edge, -1 of a virtual one
    ball: wp.array[wp.vec4d]  # beside `entry`: the middle of its edge, and half the square of its length
    longest: wp.array[wp.float64]  # one number: the length of the longest edge


@wp.struct
class Routes:
    """Waypoints of agent n: points[begin[n]] … points[end[n] - 1]; at[n] is the one it heads for, end[n] when done."""

    points: wp.array[wp.vec3d]
    begin: wp.array[int]
    end: wp.array[int]
    at: wp.array[int]
    repeat: wp.array[int]
    arrived: wp.array[wp.float64]  # when it was done, for the first time [s]; inf before
    detoured: wp.array[int]  # 1: the waypoint is hidden, and a place from where to go on comes first
    detour: wp.array[wp.vec3d]
    near: wp.float64  # a waypoint is reached within this distance [m]


@wp.func
def ring_cell(rings: RingTable, c: int, k: int) -> int:
    """The cells an agent of cell c sees: k = 0 is c itself, then its ring."""
    if k == 0:
        return c
    return rings.cells[c * rings.width + k - 1]


@wp.func
def ball_of(a: wp.vec3d, b: wp.vec3d) -> wp.vec4d:
    """Where an edge is, for `may_touch`."""
    return wp.vec4d(_HALF * (a[0] + b[0]), _HALF * (a[1] + b[1]), _HALF * (a[2] + b[2]), _HALF * wp.length_sq(b - a))


@wp.func
def may_touch(ball: wp.vec4d, x: wp.vec3d, reach: wp.float64) -> bool:
    """Never false where `maybe_near` is true, and quicker: balls lie in the order of the cells."""
    square = wp.length_sq(x - wp.vec3d(ball[0], ball[1], ball[2]))
    return square <= (_TWO * reach * reach + ball[3]) * _WIDER


@wp.func
def maybe_near(e: Edges, g: int, x: wp.vec3d, reach: wp.float64) -> bool:
    """Whether x may be within `reach` of edge g; never false when it is, by elliptic or true distance.

    Both are at least the distance from the middle of the edge less half its length.
    """
    square = wp.length_sq(e.b[g] - e.a[g])
    return wp.length_sq((x - e.a[g]) + (x - e.b[g])) <= _EIGHT * reach * reach + _TWO * square


@wp.func
def edge_reach(e: Edges, reach: wp.float64) -> wp.float32:
    """Square of the true distance beyond which no edge is within `reach`, by elliptic or true distance; for a `gap`.

    The ellipse around an edge of length L has the half axes L / 2 + reach and the root of reach (reach + L).
    """
    return in_sight(reach * (reach + e.longest[0]))


@wp.func
def comes_first(e: Edges, s: Sight, c: int, place: int, x: wp.vec3f, square: wp.float32) -> bool:
    """Whether an edge has no earlier cell in the runs that c sees within the root of `square` of x: it counts once."""
    for q in range(e.first[e.edge[place]], place):
        for k in range(s.seen[c].run, s.seen[c].run + s.seen[c].runs):
            if e.cells[q] >= s.run[k].first and e.cells[q] <= s.run[k].last:
                if gap(s.run[k], x) <= square:
                    return False
    return True


@wp.func
def _reached(r: Routes, at: int, end: int, x: wp.vec3d) -> bool:
    """Whether waypoint `at` is reached: x is near it or, before the last one, beside it and past it."""
    square = wp.length_sq(r.points[at] - x)
    if square <= r.near * r.near:
        return True
    if at + 1 == end:
        return False
    return (
        square <= _BESIDE * _BESIDE * r.near * r.near
        and wp.dot(x - r.points[at], r.points[at + 1] - r.points[at]) > _ZERO
    )


@wp.func
def wish(r: Routes, n: int, x: wp.vec3d, speed: wp.float64, time: wp.float64) -> wp.vec3d:
    """The velocity agent n wants at x, all else apart; goes on to the next waypoint where one is reached."""
    at = int(r.at[n])
    end = r.end[n]
    turned = bool(False)
    while at < end and _reached(r, at, end, x):
        at += 1
        if at == end:
            r.arrived[n] = wp.min(r.arrived[n], time)
            if r.repeat[n] == 1 and not turned:
                at = r.begin[n]
                turned = True
    r.at[n] = at
    if at >= end:
        if r.repeat[n] == 1:
            r.at[n] = int(r.begin[n])  # here all are reached at once; whoever is pushed away comes back
        return wp.vec3d()
    way = r.points[at] - x
    if r.detoured[n] == 1:
        way = r.detour[n] - x
    length = wp.length(way)
    fast = speed
    if at == end - 1 and r.repeat[n] == 0 and r.detoured[n] == 0:
        fast = wp.min(speed, length / _BRAKING)
    return way * (fast / wp.max(length, wp.float64(1.0e-12)))

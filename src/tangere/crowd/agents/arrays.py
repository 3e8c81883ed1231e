"""What a step of a crowd reads: the agents in the order of their cells, and moving edges by cell.

Question: how does a kernel find the agents and edges of a cell?
Method:   agents are physically sorted by cell after every step, so that the agents of cell c are the range
          start[c] … start[c + 1] and neighbours in space are neighbours in memory. What an agent keeps for life
          (radius, speed, route) is stored by its number.
Known as: structure of arrays, sorted by cell.
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps import RingTable
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods, rounded_up, squared_gap
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_HALF, _TWO, _EIGHT = (wp.constant(wp.float64(x)) for x in (0.5, 2.0, 8.0))
_WIDER = wp.constant(wp.float64(1.0 + 1.0e-9))


@wp.struct
class MovedAgents:
    """Where a step puts agents, in the order it found them."""

    position: wp.array[wp.vec3d]
    velocity: wp.array[wp.vec3d]
    dart: wp.array[int]
    number: wp.array[int]
    cell: wp.array[int]
    rectangle: wp.array[wp.vec4f]


@wp.struct
class CrowdArrays:
    position: wp.array[wp.vec3d]
    velocity: wp.array[wp.vec3d]
    dart: wp.array[int]
    number: wp.array[int]
    cell: wp.array[int]
    rectangle: wp.array[wp.vec4f]  # a rectangle in the agent's cell (low, high) [m]; empty: not known
    start: wp.array[int]  # per cell, and one more
    radius: wp.array[wp.float64]  # by number, like all below
    speed: wp.array[wp.float64]
    group: wp.array[int]  # -1: alone
    group_centre: wp.array[wp.vec3d]  # by group
    neighbourhoods: Neighbourhoods
    surface: int  # 1: a 2-map that is not flat
    dt: wp.float64
    clock: wp.array[int]  # one number: steps done
    seed: int


@wp.struct
class BodyEdges:
    """Edges of polygonal agents. Edge e crosses the cells cells[first[e]] … cells[first[e + 1] - 1], in rising order.

    The places (numbers into `cells`) that hold cell c are entry[start[c]] … entry[start[c + 1] - 1].
    """

    a: wp.array[wp.vec3d]
    b: wp.array[wp.vec3d]
    velocity_a: wp.array[wp.vec3d]
    velocity_b: wp.array[wp.vec3d]
    owner: wp.array[int]
    ahead: wp.array[int]  # 1: a virtual edge of anticipation
    first: wp.array[int]
    cells: wp.array[int]
    edge: wp.array[int]  # per place
    start: wp.array[int]
    entry: wp.array[int]
    entry_owner: wp.array[int]  # beside `entry`: the owner of its edge, -1 of a virtual one
    entry_ball: wp.array[wp.vec4d]  # beside `entry`: the middle of its edge, and half the square of its length
    longest: wp.array[wp.float64]  # one number: the length of the longest edge


@wp.func
def ring_cell(rings: RingTable, c: int, k: int) -> int:
    """The cells an agent of cell c sees: k = 0 is c itself, then its ring."""
    if k == 0:
        return c
    return rings.cells[c * rings.width + k - 1]


@wp.func
def edge_ball(a: wp.vec3d, b: wp.vec3d) -> wp.vec4d:
    """Where an edge is, for `ball_may_be_near`."""
    return wp.vec4d(_HALF * (a[0] + b[0]), _HALF * (a[1] + b[1]), _HALF * (a[2] + b[2]), _HALF * wp.length_sq(b - a))


@wp.func
def ball_may_be_near(ball: wp.vec4d, x: wp.vec3d, reach: wp.float64) -> bool:
    """Never false where `edge_may_be_near` is true, and quicker: balls lie in the order of the cells."""
    square = wp.length_sq(x - wp.vec3d(ball[0], ball[1], ball[2]))
    return square <= (_TWO * reach * reach + ball[3]) * _WIDER


@wp.func
def edge_may_be_near(e: BodyEdges, g: int, x: wp.vec3d, reach: wp.float64) -> bool:
    """Whether x may be within `reach` of edge g; never false when it is, by elliptic or true distance.

    Both are at least the distance from the middle of the edge less half its length.
    """
    square = wp.length_sq(e.b[g] - e.a[g])
    return wp.length_sq((x - e.a[g]) + (x - e.b[g])) <= _EIGHT * reach * reach + _TWO * square


@wp.func
def squared_edge_reach(e: BodyEdges, reach: wp.float64) -> wp.float32:
    """Square of the true distance beyond which no edge is within `reach`, by elliptic or true distance.

    For a `squared_gap`. The ellipse around an edge of length L has the half axes L / 2 + reach and the root of
    reach (reach + L).
    """
    return rounded_up(reach * (reach + e.longest[0]))


@wp.func
def is_first_cell_seen(e: BodyEdges, s: Neighbourhoods, c: int, place: int, x: wp.vec3f, square: wp.float32) -> bool:
    """Whether an edge has no earlier cell in the runs that c sees within the root of `square` of x: it counts once."""
    for q in range(e.first[e.edge[place]], place):
        for k in range(s.cell[c].run, s.cell[c].run + s.cell[c].runs):
            if e.cells[q] >= s.run[k].first and e.cells[q] <= s.run[k].last:
                if squared_gap(s.run[k], x) <= square:
                    return False
    return True

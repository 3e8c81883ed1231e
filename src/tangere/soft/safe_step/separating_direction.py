"""What keeps an edge and a face apart while both move: a direction along which their gap cannot be used up.

Question: does the plane across a direction separate an edge and a face during the whole step?
Method:   heights along a unit direction n: the edge lies above `low`, the face below `high`, their gap is low - high.
Sound:    vertices go along straight lines, so at no time is the edge lower, or the face higher, than the lowest and the
          highest of where they start and where they end.
Known as: separating plane.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import edges_offset, face_offset, nearest_on_edges, nearest_on_face
from tangere.runtime import SOUND
from tangere.soft.model.assembled_bodies import STILL

wp.set_module_options(SOUND)

#: The part of a gap that one step may use up.
USABLE = wp.constant(wp.float64(0.9))
#: Of a gap that is used up already this part may go on being lost: rounding must not freeze a pair that slides.
NOISE = wp.constant(wp.float64(1.0e-6))
#: Directions tried before the shortest way is found exactly, which takes ten times as long.
TRIES = wp.constant(4)


@wp.struct
class VertexMoves:
    """What the surface vertices do in a step."""

    start: wp.array[wp.vec3d]  #: [m]
    end: wp.array[wp.vec3d]  #: [m]
    traits: wp.array[int]  #: `SurfaceArrays.traits`
    least: wp.float64  #: the gap that is never used up [m]


@wp.struct
class MovingPair:
    """An edge and a face: where they begin, and how they move."""

    e0: wp.vec3d
    e1: wp.vec3d
    f0: wp.vec3d
    f1: wp.vec3d
    f2: wp.vec3d
    d0: wp.vec3d
    d1: wp.vec3d
    m0: wp.vec3d
    m1: wp.vec3d
    m2: wp.vec3d


@wp.func
def shortest_offset(e0: wp.vec3d, e1: wp.vec3d, f0: wp.vec3d, f1: wp.vec3d, f2: wp.vec3d) -> wp.vec3d:
    """The shortest way from a face to an edge; nearly zero where they meet."""
    way = face_offset(e0, f0, f1, f2, nearest_on_face(e0, f0, f1, f2))
    least = wp.dot(way, way)
    for k in range(4):
        other = wp.vec3d()
        if k == 0:
            other = face_offset(e1, f0, f1, f2, nearest_on_face(e1, f0, f1, f2))
        if k == 1:
            other = edges_offset(e0, e1, f0, f1, nearest_on_edges(e0, e1, f0, f1))
        if k == 2:
            other = edges_offset(e0, e1, f1, f2, nearest_on_edges(e0, e1, f1, f2))
        if k == 3:
            other = edges_offset(e0, e1, f2, f0, nearest_on_edges(e0, e1, f2, f0))
        squared = wp.dot(other, other)
        if squared < least:
            least = squared
            way = other
    return way


@wp.func
def moving_pair(v0: int, v1: int, i0: int, i1: int, i2: int, moves: VertexMoves) -> MovingPair:
    """An edge and a face by the numbers of their vertices."""
    pair = MovingPair()
    pair.e0 = moves.start[v0]
    pair.e1 = moves.start[v1]
    pair.f0 = moves.start[i0]
    pair.f1 = moves.start[i1]
    pair.f2 = moves.start[i2]
    pair.d0 = moves.end[v0] - pair.e0
    pair.d1 = moves.end[v1] - pair.e1
    pair.m0 = moves.end[i0] - pair.f0
    pair.m1 = moves.end[i1] - pair.f1
    pair.m2 = moves.end[i2] - pair.f2
    return pair


@wp.func
def in_frame(pair: MovingPair, drift: wp.vec3d) -> MovingPair:
    """The same in a frame that moves."""
    moved = pair
    moved.d0 = pair.d0 - drift
    moved.d1 = pair.d1 - drift
    moved.m0 = pair.m0 - drift
    moved.m1 = pair.m1 - drift
    moved.m2 = pair.m2 - drift
    return moved


@wp.func
def gap_usage(way: wp.vec3d, pair: MovingPair, least: wp.float64) -> wp.vec3d:
    """What the edge and the face lose of their gap along a direction when they move; and what they may.

    The last is -1 where the direction does not separate them.
    """
    zero = wp.float64(0.0)
    length = wp.length(way)
    if not (length > zero):
        return wp.vec3d(zero, zero, wp.float64(-1.0))
    n = way / length
    a0 = wp.dot(n, pair.e0 - pair.f0)  # heights above a corner of the face
    a1 = wp.dot(n, pair.e1 - pair.f0)
    b1 = wp.dot(n, pair.f1 - pair.f0)
    b2 = wp.dot(n, pair.f2 - pair.f0)
    low = wp.min(a0, a1)
    high = wp.max(zero, wp.max(b1, b2))
    gap = low - high
    if not (gap > zero):
        return wp.vec3d(zero, zero, wp.float64(-1.0))
    lost_a = wp.max(zero, low - wp.min(a0 + wp.dot(n, pair.d0), a1 + wp.dot(n, pair.d1)))
    reached = wp.max(wp.dot(n, pair.m0), wp.max(b1 + wp.dot(n, pair.m1), b2 + wp.dot(n, pair.m2)))
    room = USABLE * wp.max(gap - least, NOISE * gap)
    return wp.vec3d(lost_a, wp.max(zero, reached - high), room)


@wp.func
def shortest_way(pair: MovingPair) -> wp.vec3d:
    """The shortest way from the face to the edge, where they begin."""
    return shortest_offset(pair.e0, pair.e1, pair.f0, pair.f1, pair.f2)


@wp.func
def may_cross(v0: int, v1: int, i0: int, i1: int, i2: int, moves: VertexMoves) -> bool:
    """Whether an edge and a face, moving as they do, have no certificate of staying apart.

    Moves are taken in the frame of the edge's own middle: pairs that go together lose nothing. What is held on both
    sides may meet, and is left alone.
    """
    traits = moves.traits
    if (traits[v0] & traits[v1] & traits[i0] & traits[i1] & traits[i2] & STILL) != 0:
        return False
    pair = moving_pair(v0, v1, i0, i1, i2, moves)
    pair = in_frame(pair, wp.float64(0.5) * (pair.d0 + moves.end[v1] - pair.e1))
    total = pair.d0 + pair.m0 + pair.m1 + pair.m2
    if not (wp.abs(total[0] + total[1] + total[2]) < wp.float64(1.0e300)):
        return True  # not a number: least and greatest would not show it
    # From the way between the centres towards the shortest one, a corner at a time: most pairs are apart long before.
    way = wp.float64(0.5) * (pair.e0 + pair.e1) - (pair.f0 + pair.f1 + pair.f2) / wp.float64(3.0)
    for _ in range(TRIES):
        use = gap_usage(way, pair, moves.least)
        if use[0] + use[1] <= use[2]:
            return False
        back = way - support_offset(way, pair)
        length = wp.dot(back, back)
        if length > wp.float64(0.0):
            way -= wp.clamp(wp.dot(way, back) / length, wp.float64(0.0), wp.float64(1.0)) * back
    use = gap_usage(shortest_way(pair), pair, moves.least)
    return not (use[0] + use[1] <= use[2])


@wp.func
def support_offset(way: wp.vec3d, pair: MovingPair) -> wp.vec3d:
    """From the highest corner of the face along a direction to the lowest end of the edge."""
    low = pair.e0
    if wp.dot(way, pair.e1 - pair.e0) < wp.float64(0.0):
        low = pair.e1
    high = pair.f0
    if wp.dot(way, pair.f1 - high) > wp.float64(0.0):
        high = pair.f1
    if wp.dot(way, pair.f2 - high) > wp.float64(0.0):
        high = pair.f2
    return low - high


@wp.func
def allowed_part(slack: wp.float64, approach: wp.float64) -> wp.float64:
    """The part of a move that uses up no more than the slack."""
    if approach > slack:
        return wp.max(slack, wp.float64(0.0)) / approach
    return wp.float64(1.0)

"""Where points of the world are in the rest shape of a sheet that is cut.

Question: as `cutting.rest_map`, of a blade that goes through a sheet; which triangle has each of its points now?
Method:   all vertices of the part are asked for the nearest one; of the triangles around it, the one over which a point
          lies best has it, at its height. Where a point is far beside all of them it goes with that vertex, turned as
          the sheet is turned there.
Sound:    the same triangle as `rest_map.to_rest` finds, and the same place but for rounding.
The kernel runs on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import VERTICES, ComplexArrays
from tangere.soft.cutting.rest_map import BESIDE_SHEET
from tangere.soft.incremental.cpu.rest_walk import BESIDE, INSIDE, rotation_of

wp.set_module_options(SOUND | {"max_unroll": 1})

_BESIDE_SHEET = wp.constant(wp.float64(BESIDE_SHEET))


@wp.func
def corner_of(corners: wp.vec4i, v: int) -> int:
    """Which corner of a triangle is a vertex; -1 for none."""
    if corners[0] == v:
        return 0
    if corners[1] == v:
        return 1
    if corners[2] == v:
        return 2
    return -1


@wp.func
def next_around(c: ComplexArrays, t: int, v: int, first: int) -> int:
    """The triangle beyond the one or the other (1 or 2) edge at a vertex, or -1."""
    beyond = c.neighbours[t][(corner_of(c.corners[t], v) + first) % 3]
    if beyond < 0:
        return -1
    return beyond >> 2


@wp.func
def frame_of(a: wp.vec3d, b: wp.vec3d, d: wp.vec3d) -> wp.mat33d:
    """Two sides of a triangle and its unit normal, as columns."""
    return wp.matrix_from_cols(b - a, d - a, wp.normalize(wp.cross(b - a, d - a)))


@wp.func
def frame_now(row_of: wp.array[int], x: wp.array[wp.vec3d], corners: wp.vec4i) -> wp.mat33d:
    return frame_of(x[row_of[corners[0]]], x[row_of[corners[1]]], x[row_of[corners[2]]])


@wp.func
def frame_at_rest(c: ComplexArrays, corners: wp.vec4i) -> wp.mat33d:
    return frame_of(c.rest[corners[0]], c.rest[corners[1]], c.rest[corners[2]])


@wp.func
def inner_of(row_of: wp.array[int], x: wp.array[wp.vec3d], corners: wp.vec4i, point: wp.vec3d) -> wp.vec3d:
    """Coordinates of a point in the frame of a triangle; far away where that has no area."""
    frame = frame_now(row_of, x, corners)
    if wp.determinant(frame) == wp.float64(0.0):
        return wp.vec3d(wp.float64(-1.0e300), wp.float64(-1.0e300), wp.float64(0.0))
    return wp.inverse(frame) * (point - x[row_of[corners[0]]])


@wp.func
def turn_around(c: ComplexArrays, row_of: wp.array[int], x: wp.array[wp.vec3d], v: int) -> wp.mat33d:
    """How the triangles around a vertex are turned: the rotation of the mean of their maps."""
    total = wp.mat33d()
    begin = c.simplex_at[v]
    for side in range(1, 3):
        t = int(begin)
        if side == 2:
            t = next_around(c, begin, v, 2)
        while t >= 0:
            corners = c.corners[t]
            total += frame_now(row_of, x, corners) * wp.inverse(frame_at_rest(c, corners))
            t = next_around(c, t, v, side)
            if t == begin:  # all the way round
                return rotation_of(total)
    return rotation_of(total)


@wp.kernel
def find_at_rest_of_sheet(
    first: int,
    counts: wp.array[int],
    c: ComplexArrays,
    row_of: wp.array[int],
    x: wp.array[wp.vec3d],
    points: wp.array[wp.vec3d],
    seeds: wp.array[int],
    rest: wp.array[wp.vec3d],
    kinds: wp.array[int],
    nearest: wp.array[int],
    lengths: wp.array[wp.float64],
):
    """So many points in a part (one thread).

    Args:
        seeds: is told the triangle that has each, or one at the vertex that it goes with.
        nearest, lengths: room for the nearest vertex of each point, and the square of how far it is.
    """
    part = counts[1]
    for i in range(counts[0]):
        lengths[i] = wp.float64(wp.inf)
    for v in range(c.numbers[VERTICES]):
        t = c.simplex_at[v]
        if c.part[t] == part:
            if corner_of(c.corners[t], v) >= 0:  # else nothing has it
                place = x[row_of[v]]
                for i in range(counts[0]):
                    away = place - points[i]
                    length = wp.dot(away, away)
                    if length < lengths[i]:
                        lengths[i] = length
                        nearest[i] = v
    for i in range(counts[0]):
        v = nearest[i]
        begin = c.simplex_at[v]
        best = wp.float64(-1.0e301)
        found = int(begin)
        inside = wp.vec3d()
        going = bool(True)
        for side in range(1, 3):
            t = int(begin)
            if side == 2:
                t = next_around(c, begin, v, 2)
            while t >= 0 and going:
                inner = inner_of(row_of, x, c.corners[t], points[i])
                least = wp.min(wp.min(inner[0], inner[1]), wp.float64(1.0) - inner[0] - inner[1])
                if least > best or (least == best and t < found):
                    best = least
                    found = t
                    inside = inner
                t = next_around(c, t, v, side)
                going = t != begin
        seeds[i] = found
        if best < -_BESIDE_SHEET:
            kinds[i] = BESIDE
            rest[i] = c.rest[v] + wp.transpose(turn_around(c, row_of, x, v)) * (points[i] - x[row_of[v]])
        else:
            kinds[i] = INSIDE
            corners = c.corners[found]
            rest[i] = c.rest[corners[0]] + frame_at_rest(c, corners) * inside

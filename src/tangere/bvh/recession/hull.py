"""Small polyhedral cones round sets of directions, by convex hulls in a plane; many sets at once.

Question: which few vectors span a cone that holds all given directions as tightly as possible?
Method:   the direction m of greatest margin (the point of their convex hull nearest to the origin, by Gilbert's
          iteration); directions are projected from the origin on the plane at m; the convex hull there gives the
          extreme directions; edges are taken off the hull, least added area first, until `most` vectors are left
          (in place of the random builder of Redon 2002, section 4.5). Lifted back they enclose every direction.
Limits:   no cone where the directions reach beyond 87 degrees from any m: such a cone would hardly ever cull.
Known as: smallest enclosing polyhedral cone, approximately; the direction of greatest margin is Gilbert's algorithm
          (1966).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Least cosine between a direction and m: beyond, there is no cone.
_LEAST_COSINE = wp.constant(wp.float64(0.05))
#: In the plane, what is this near to a line or a point counts as on it.
_SAME = wp.constant(wp.float64(1.0e-13))
#: The margin is good enough when it is within this part of the best.
_GOOD = wp.constant(wp.float64(0.05))
_ITERATIONS = wp.constant(200)


def enclosing_cones(directions: np.ndarray, first: np.ndarray, most: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Extreme directions, and at most `most` vectors that enclose them, for each of g sets.

    Args:
        directions: unit vectors of all sets, (n, 3).
        first: where each set begins, (g + 1,).
        most: 3 or more to reduce larger hulls; with less, sets that need more get no cone.

    Returns:
        (counts, vectors) of the extreme directions and of the enclosing vectors: counts (g,), 0 for no cone, and the
        vectors of all sets one after the other.
    """
    groups, device = len(first) - 1, wp.get_device("cpu")
    rays = wp.array(directions, dtype=wp.vec3d, device=device)
    flat = wp.empty(len(directions), dtype=wp.vec2d, device=device)
    begin = wp.array(first, dtype=wp.int32, device=device)
    counts = wp.empty(groups, dtype=wp.vec2i, device=device)
    reduced = wp.empty((groups, most), dtype=wp.vec3d, device=device)
    launch(_enclose, groups, [begin, most], [rays, flat, counts, reduced], device=device, grain=256)
    extreme, enclosing = counts.numpy().reshape(-1, 2).T
    places = np.arange(len(directions)) - np.repeat(first[:-1], np.diff(first))
    kept = places < np.repeat(extreme, np.diff(first))
    within = np.arange(most) < enclosing[:, None]
    return [extreme, rays.numpy()[kept]], [enclosing, reduced.numpy()[within]]


@wp.func
def best_direction(begin: int, end: int, rays: wp.array[wp.vec3d]) -> wp.vec3d:
    """The unit vector with the greatest least cosine to all rays, nearly; zero if that is not positive enough."""
    point = wp.vec3d()
    for i in range(begin, end):
        point += rays[i]
    point = point / wp.float64(end - begin)
    for _step in range(_ITERATIONS):
        squared = wp.dot(point, point)
        worst = begin
        least = wp.dot(rays[begin], point)
        for i in range(begin + 1, end):
            along = wp.dot(rays[i], point)
            if along < least:
                least = along
                worst = i
        if squared - least <= _GOOD * squared:
            break
        towards = rays[worst] - point
        point += wp.clamp((squared - least) / wp.dot(towards, towards), wp.float64(0.0), wp.float64(1.0)) * towards
    size = wp.length(point)
    direction = wp.vec3d()
    if size > _LEAST_COSINE:
        direction = point / size
        for i in range(begin, end):
            if wp.dot(rays[i], direction) < _LEAST_COSINE:
                return wp.vec3d()
    return direction


@wp.func
def across(a: wp.vec2d, b: wp.vec2d) -> wp.float64:
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def exchange(rays: wp.array[wp.vec3d], flat: wp.array[wp.vec2d], i: int, j: int):
    ray = rays[i]
    point = flat[i]
    rays[i] = rays[j]
    flat[i] = flat[j]
    rays[j] = ray
    flat[j] = point


@wp.func
def wrap(begin: int, end: int, rays: wp.array[wp.vec3d], flat: wp.array[wp.vec2d]) -> int:
    """Bring the corners of the convex hull to the front, counter-clockwise; how many they are (gift wrapping)."""
    start = begin
    for i in range(begin + 1, end):
        if flat[i][0] < flat[start][0] or (flat[i][0] == flat[start][0] and flat[i][1] < flat[start][1]):
            start = i
    exchange(rays, flat, begin, start)
    corners = int(1)
    searching = bool(True)
    while searching:
        here = flat[begin + corners - 1]
        best = int(-1)
        way = wp.vec2d()
        for i in range(begin + corners, end):
            to = flat[i] - here
            length = wp.length(to)
            if length > _SAME:
                turn = wp.float64(0.0)
                if best >= 0:
                    turn = across(way, to) / (length * wp.length(way))
                if best < 0 or turn < -_SAME or (turn <= _SAME and length > wp.length(way)):
                    best = i
                    way = to
        searching = best >= 0
        if searching and corners > 1:
            # Back at the start once it lies to the right of, or on, the way to every point that is left.
            to = flat[begin] - here
            turn = across(way, to) / wp.max(wp.length(way) * wp.length(to), wp.float64(1.0e-300))
            searching = turn > _SAME
        if searching:
            exchange(rays, flat, begin + corners, best)
            corners += 1
    return corners


@wp.func
def drop_edges(begin: int, corners: int, most: int, flat: wp.array[wp.vec2d]) -> int:
    """Take edges off a convex polygon, the neighbours extended until they meet, until `most` corners are left."""
    count = corners
    while count > most:
        least = wp.float64(1.0e300)
        chosen = int(-1)
        corner = wp.vec2d()
        for i in range(count):
            p = flat[begin + i]
            q = flat[begin + (i + 1) % count]
            before = p - flat[begin + (i + count - 1) % count]
            after = q - flat[begin + (i + 2) % count]
            turn = across(before, after)
            if turn < wp.float64(0.0):
                s = across(q - p, after) / turn
                x = p + s * before
                area = wp.abs(across(x - p, q - p))
                if area < least:
                    least = area
                    chosen = i
                    corner = x
        if chosen < 0:
            return 0
        flat[begin + chosen] = corner
        gone = (chosen + 1) % count
        for i in range(gone, count - 1):
            flat[begin + i] = flat[begin + i + 1]
        count -= 1
    return count


@wp.kernel
def _enclose(
    first: int,
    begin: wp.array[int],
    most: int,
    rays: wp.array[wp.vec3d],
    flat: wp.array[wp.vec2d],
    counts: wp.array[wp.vec2i],
    reduced: wp.array2d[wp.vec3d],
):
    group = first + wp.tid()
    b = begin[group]
    e = begin[group + 1]
    counts[group] = wp.vec2i(0, 0)
    if e == b:
        return
    m = best_direction(b, e, rays)
    if wp.dot(m, m) == wp.float64(0.0):
        return
    u = wp.cross(m, wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0)))
    if wp.abs(m[0]) > wp.float64(0.6):
        u = wp.cross(m, wp.vec3d(wp.float64(0.0), wp.float64(1.0), wp.float64(0.0)))
    u = wp.normalize(u)
    v = wp.cross(m, u)
    for i in range(b, e):
        flat[i] = wp.vec2d(wp.dot(rays[i], u), wp.dot(rays[i], v)) / wp.dot(rays[i], m)
    corners = wrap(b, e, rays, flat)
    left = corners
    if corners <= most:
        for i in range(corners):
            reduced[group, i] = rays[b + i]
    else:
        left = 0
        if most >= 3:
            left = drop_edges(b, corners, most, flat)
        for i in range(left):
            reduced[group, i] = wp.normalize(m + flat[b + i][0] * u + flat[b + i][1] * v)
    counts[group] = wp.vec2i(corners, left)

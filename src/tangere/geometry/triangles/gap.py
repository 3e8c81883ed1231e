"""The shortest vector between two triangles, fast, and which features it joins; and whether one pierces the other.

Method:   nine edge pairs and six vertex-face pairs (the foot inside the face); what touches only in a vertex or along
          an edge is among them. Degenerate triangles lose candidates and divide by nothing.
Limits:   nearly parallel edges may yield a vector that is not quite the shortest. Users certify a gap by the support
          of both triangles along the vector, never by its length, so that costs time only; `closest_features` takes the
          careful functions of `closest_points` and is the one that describes a contact.
Others:   `distance` has the nearest points of triangles as weights of all corners, with other bits: it forms each
          difference from the corner in question, and needs no features. `closest_points.robust` has single pairs.
Known as: triangle-triangle distance over 15 pairs of features (Larsen, Gottschalk, Lin and Manocha 2000, PQP).
Used by conservative advancement of rigid bodies, in place of the interval tests of Redon 2002, section 3.3.2.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points.robust import closest_on_segments, closest_on_triangle
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_TINY = wp.constant(wp.float64(1.0e-300))
_FAR = wp.constant(wp.float64(1.0e300))
#: Edges are parallel where sin^2 of their angle is below this.
_PARALLEL = wp.constant(wp.float64(1.0e-14))
#: Rounding errors of a determinant of three differences, in those of its entries.
_DETERMINANT = wp.constant(wp.float64(16.0))

Triangle = wp.mat33d  #: corners are rows


@wp.struct
class ClosestFeatures:
    """The nearest features of two triangles and their nearest points."""

    kind: wp.int32  #: 0 edge-edge, 1 vertex of a on b, 2 vertex of b on a
    feature_a: wp.int32  #: corner, or side (corner k to k + 1), 0 … 2; 0 for the face itself
    feature_b: wp.int32
    weights: wp.vec4d  #: vertex-face (1, w0, w1, w2), edge-edge (1-u, u, 1-w, w)
    point_a: wp.vec3d
    point_b: wp.vec3d
    squared: wp.float64  #: distance


@wp.func
def corner(t: Triangle, k: int) -> wp.vec3d:
    return wp.vec3d(t[k, 0], t[k, 1], t[k, 2])


@wp.func
def triangle_edge(t: Triangle, k: int) -> wp.vec3d:
    return corner(t, (k + 1) % 3) - corner(t, k)


@wp.func
def between_edges(p: wp.vec3d, d: wp.vec3d, q: wp.vec3d, e: wp.vec3d) -> wp.vec3d:
    """From a near point of segment p + [0, 1] d to one of q + [0, 1] e."""
    r = p - q
    dd = wp.dot(d, d)
    ee = wp.dot(e, e)
    de = wp.dot(d, e)
    er = wp.dot(e, r)
    dr = wp.dot(d, r)
    s = wp.float64(0.0)
    area = dd * ee - de * de
    if area > _PARALLEL * dd * ee:
        s = wp.clamp((de * er - dr * ee) / area, _ZERO, _ONE)
    t = (de * s + er) / wp.max(ee, _TINY)
    if t < _ZERO:
        t = _ZERO
        s = wp.clamp(-dr / wp.max(dd, _TINY), _ZERO, _ONE)
    elif t > _ONE:
        t = _ONE
        s = wp.clamp((de - dr) / wp.max(dd, _TINY), _ZERO, _ONE)
    return (q + t * e) - (p + s * d)


@wp.func
def above_face(p: wp.vec3d, face: Triangle) -> wp.vec3d:
    """From the foot of p in the face to p; far where the foot is outside."""
    a = corner(face, 0)
    ab = triangle_edge(face, 0)
    ac = corner(face, 2) - a
    ap = p - a
    n = wp.cross(ab, ac)
    area = wp.dot(n, n)
    u = wp.dot(wp.cross(ap, ac), n)
    v = wp.dot(wp.cross(ab, ap), n)
    vector = wp.vec3d(_FAR, _ZERO, _ZERO)
    if area > _ZERO and u >= _ZERO and v >= _ZERO and u + v <= area:
        vector = n * (wp.dot(ap, n) / area)
    return vector


@wp.func
def gap_vector(a: Triangle, b: Triangle) -> wp.vec3d:
    """From a to b, as short as it gets (see Limits)."""
    best = between_edges(corner(a, 0), triangle_edge(a, 0), corner(b, 0), triangle_edge(b, 0))
    least = wp.dot(best, best)
    k = int(1)
    while k < 9:  # loops like this one are not unrolled, which halves the time it takes to compile the search
        i = k / 3
        j = k % 3
        vector = between_edges(corner(a, i), triangle_edge(a, i), corner(b, j), triangle_edge(b, j))
        squared = wp.dot(vector, vector)
        if squared < least:
            least = squared
            best = vector
        k += 1
    v = int(0)
    while v < 3:
        vector = above_face(corner(b, v), a)
        squared = wp.dot(vector, vector)
        if squared < least:
            least = squared
            best = vector
        vector = above_face(corner(a, v), b)
        squared = wp.dot(vector, vector)
        if squared < least:
            least = squared
            best = -vector
        v += 1
    return best


@wp.func
def vertex_on_face(a: Triangle, b: Triangle, k: int) -> ClosestFeatures:
    """Corner k of a on the face b (k < 3), or corner k - 3 of b on the face a."""
    p = corner(a, k % 3)
    face = b
    if k >= 3:
        p = corner(b, k % 3)
        face = a
    w = closest_on_triangle(p, corner(face, 0), corner(face, 1), corner(face, 2))
    foot = w[0] * corner(face, 0) + w[1] * corner(face, 1) + w[2] * corner(face, 2)
    result = ClosestFeatures()
    result.squared = wp.dot(foot - p, foot - p)
    result.weights = wp.vec4d(_ONE, w[0], w[1], w[2])
    result.kind = 1 + k / 3
    result.feature_a = k
    result.point_a = p
    result.point_b = foot
    if k >= 3:
        result.feature_a = 0
        result.feature_b = k - 3
        result.point_a = foot
        result.point_b = p
    return result


@wp.func
def edge_on_edge(a: Triangle, b: Triangle, i: int, j: int) -> ClosestFeatures:
    """Side i of a and side j of b."""
    u = closest_on_segments(corner(a, i), corner(a, (i + 1) % 3), corner(b, j), corner(b, (j + 1) % 3))
    result = ClosestFeatures()
    result.feature_a = i
    result.feature_b = j
    result.weights = wp.vec4d(_ONE - u[0], u[0], _ONE - u[1], u[1])
    result.point_a = corner(a, i) + u[0] * triangle_edge(a, i)
    result.point_b = corner(b, j) + u[1] * triangle_edge(b, j)
    result.squared = wp.length_sq(result.point_b - result.point_a)
    return result


@wp.func
def feature_pair(a: Triangle, b: Triangle, k: int) -> ClosestFeatures:
    """The k-th of the 15 feature pairs: six of a vertex and a face, nine of two edges."""
    result = ClosestFeatures()
    if k < 6:
        result = vertex_on_face(a, b, k)
    else:
        result = edge_on_edge(a, b, (k - 6) / 3, (k - 6) % 3)
    return result


@wp.func
def closest_features(a: Triangle, b: Triangle) -> ClosestFeatures:
    """The nearest features: a vertex on a face where that is as near as two edges."""
    best = feature_pair(a, b, 0)
    k = int(1)
    while k < 15:  # not unrolled: these are long functions, and seldom called
        other = feature_pair(a, b, k)
        if other.squared < best.squared:
            best = other
        k += 1
    return best


@wp.func
def gap_along(a: Triangle, b: Triangle, n: wp.vec3d) -> wp.float64:
    """Support of b less support of a along n: a gap that no quality of n can make too large."""
    return wp.min(b * n) - wp.max(a * n)


@wp.func
def best_direction(a: Triangle, b: Triangle, nearest: ClosestFeatures) -> wp.vec3d:
    """The unit direction from a to b that shows the largest gap, for triangles that nearly touch.

    The vector between the nearest points is then short and its direction rough; across a face, or across two edges, the
    features themselves tell it to the last digit. Where two edges are parallel but for rounding, or an end of one is
    above the other, it is across one of them. All are tried, whichever features rounding took for the nearest: where
    edges cross within rounding of an end, the end is as near, and its own direction misses by all of the gap.
    """
    between = nearest.point_b - nearest.point_a
    best = wp.normalize(between)
    largest = gap_along(a, b, best)
    k = int(0)
    while k < 17:  # nine pairs of edges, both faces, and across each edge
        n = wp.cross(triangle_edge(a, 0), triangle_edge(a, 1))
        if k < 9:
            n = wp.cross(triangle_edge(a, k / 3), triangle_edge(b, k % 3))
        if k == 10:
            n = wp.cross(triangle_edge(b, 0), triangle_edge(b, 1))
        if k >= 11:
            edge = triangle_edge(a, (k - 11) % 3)
            if k >= 14:
                edge = triangle_edge(b, (k - 11) % 3)
            n = between - edge * (wp.dot(between, edge) / wp.max(wp.dot(edge, edge), _TINY))
        if wp.dot(n, between) < _ZERO:
            n = -n
        n = wp.normalize(n)
        gap = gap_along(a, b, n)
        if gap > largest and wp.dot(n, n) > _ZERO:
            largest = gap
            best = n
        k += 1
    return best


@wp.func
def pierce(a: Triangle, b: Triangle, slack: wp.float64) -> int:
    """Which edge certainly goes through the other face: k for side k of a, 3 + k for side k of b, else -1.

    Args:
        slack: error of the corners [m].
    """
    length = wp.float64(0.0)
    for k in range(3):
        length = wp.max(length, wp.max(wp.length(triangle_edge(a, k)), wp.length(triangle_edge(b, k))))
        length = wp.max(length, wp.length(corner(a, k) - corner(b, 0)))
    least = _DETERMINANT * slack * length * length
    found = int(-1)
    k = int(0)
    while k < 6:
        p = corner(a, k % 3)
        q = corner(a, (k + 1) % 3)
        face = b
        if k >= 3:
            p = corner(b, k % 3)
            q = corner(b, (k + 1) % 3)
            face = a
        x = corner(face, 0) - p
        y = corner(face, 1) - p
        z = corner(face, 2) - p
        n = wp.cross(y - x, z - x)
        first = wp.dot(n, x)
        last = wp.dot(n, corner(face, 0) - q)
        d = q - p
        u = wp.dot(d, wp.cross(x, y))
        v = wp.dot(d, wp.cross(y, z))
        w = wp.dot(d, wp.cross(z, x))
        if wp.min(first, last) < -least and wp.max(first, last) > least:
            if wp.min(wp.min(u, v), w) > least or wp.max(wp.max(u, v), w) < -least:
                if found < 0:
                    found = k
        k += 1
    return found

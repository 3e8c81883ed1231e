"""The point of a segment, triangle or tetrahedron that is nearest to the origin, as weights of its corners.

Question: which convex combination of one to four points is shortest?
Method:   segments by projection; triangles by the signs of the sub-areas, or the nearest of their edges; tetrahedra by
          the faces that the origin is not certainly behind. Inside a triangle the point itself is the origin projected
          along the normal: the weighted sum of corners far away would lose the digits of a short one.
Sound:    weights are never negative and add up to 1 up to rounding, so the weighted points are of the simplex whatever
          the quality of the answer. A flat tetrahedron asks all its faces.
Known as: the distance subalgorithm of GJK (Gilbert, Johnson and Keerthi 1988), by cases as Ericson 2005, section 5.1.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
_TINY = wp.constant(real(1.0e-300))
#: A tetrahedron flatter than this part of its size has no inside.
_FLAT = wp.constant(real(1.0e-24))


@wp.struct
class NearestOfSimplex:
    weights: wp.vec4d  #: of the corners
    point: wp.vec3d
    squared: wp.float64  #: of the distance to the origin
    inside: wp.bool  #: the origin is inside the tetrahedron; then the weights are those of the origin


@wp.func
def nearest_of_two(p: vec, q: vec) -> NearestOfSimplex:
    """The point of the segment pq nearest to the origin."""
    found = NearestOfSimplex()
    along = q - p
    t = wp.clamp(-wp.dot(p, along) / wp.max(wp.dot(along, along), _TINY), _ZERO, _ONE)
    found.weights = wp.vec4d(_ONE - t, t, _ZERO, _ZERO)
    found.point = p + t * along
    if t == _ONE:
        found.point = q
    found.squared = wp.length_sq(found.point)
    return found


@wp.func
def nearest_of_three(p: vec, q: vec, r: vec, far_side: bool) -> NearestOfSimplex:
    """The point of the triangle pqr nearest to the origin; `far_side`: whether the edge qr is asked too.

    GJK need not: p was found beyond it, on the origin's side.
    """
    found = NearestOfSimplex()
    pq = q - p
    pr = r - p
    n = wp.cross(pq, pr)
    # Sub-areas about the origin, times the normal: n is pq x pr, so they add up to n.n.
    area = wp.dot(n, n)
    aside = wp.cross(n, p)
    v = -wp.dot(aside, pr)
    w = wp.dot(aside, pq)
    u = area - v - w
    if u > _ZERO and v > _ZERO and w > _ZERO:
        part = _ONE / area
        found.weights = wp.vec4d(u * part, v * part, w * part, _ZERO)
        found.point = n * (wp.dot(n, p) * part)
        found.squared = wp.length_sq(found.point)
        return found
    t0 = wp.clamp(-wp.dot(p, pq) / wp.max(wp.dot(pq, pq), _TINY), _ZERO, _ONE)
    t2 = wp.clamp(-wp.dot(p, pr) / wp.max(wp.dot(pr, pr), _TINY), _ZERO, _ONE)
    on_pq = p + t0 * pq
    on_pr = p + t2 * pr
    found.weights = wp.vec4d(_ONE - t0, t0, _ZERO, _ZERO)
    found.point = on_pq
    found.squared = wp.length_sq(on_pq)
    squared = wp.length_sq(on_pr)
    if squared < found.squared:
        found.weights = wp.vec4d(_ONE - t2, _ZERO, t2, _ZERO)
        found.point = on_pr
        found.squared = squared
    if far_side:
        qr = r - q
        t1 = wp.clamp(-wp.dot(q, qr) / wp.max(wp.dot(qr, qr), _TINY), _ZERO, _ONE)
        on_qr = q + t1 * qr
        squared = wp.length_sq(on_qr)
        if squared < found.squared:
            found.weights = wp.vec4d(_ZERO, _ONE - t1, t1, _ZERO)
            found.point = on_qr
            found.squared = squared
    return found


@wp.func
def nearest_of_four(p: vec, q: vec, r: vec, s: vec, far_side: bool) -> NearestOfSimplex:
    """The point of the tetrahedron pqrs nearest to the origin.

    `far_side`: whether the face qrs and its edges are asked too. GJK need not: p was found beyond it, on the origin's
    side. Points that have moved since they were found must: without it pairs that are apart seemed to overlap.
    """
    found = NearestOfSimplex()
    found.squared = _FAR
    pq = q - p
    pr = r - p
    ps = s - p
    n_r = wp.cross(pq, pr)
    n_s = wp.cross(pr, ps)
    n_q = wp.cross(ps, pq)
    volume = wp.dot(n_r, ps)
    if volume * volume <= _FLAT * wp.length_sq(n_r) * wp.length_sq(ps):
        volume = _ZERO
    # Weights of s, q and r at the origin, times the volume.
    of_s = -wp.dot(n_r, p)
    of_q = -wp.dot(n_s, p)
    of_r = -wp.dot(n_q, p)
    # What is found is changed in place, and each face has its own name: results chosen between would be copied.
    if not of_s * volume > _ZERO:
        face_pqr = nearest_of_three(p, q, r, far_side)
        found.squared = face_pqr.squared
        found.point = face_pqr.point
        found.weights = face_pqr.weights
    if not of_q * volume > _ZERO:
        face_prs = nearest_of_three(p, r, s, far_side)
        if face_prs.squared < found.squared:
            found.squared = face_prs.squared
            found.point = face_prs.point
            found.weights = wp.vec4d(face_prs.weights[0], _ZERO, face_prs.weights[1], face_prs.weights[2])
    if not of_r * volume > _ZERO:
        face_psq = nearest_of_three(p, s, q, far_side)
        if face_psq.squared < found.squared:
            found.squared = face_psq.squared
            found.point = face_psq.point
            found.weights = wp.vec4d(face_psq.weights[0], face_psq.weights[2], _ZERO, face_psq.weights[1])
    if far_side:
        across = wp.cross(r - q, s - q)
        if volume == _ZERO or not wp.dot(across, q) * wp.dot(across, q - p) > _ZERO:
            face_qrs = nearest_of_three(q, r, s, True)
            if face_qrs.squared < found.squared:
                found.squared = face_qrs.squared
                found.point = face_qrs.point
                found.weights = wp.vec4d(_ZERO, face_qrs.weights[0], face_qrs.weights[1], face_qrs.weights[2])
    if found.squared == _FAR:
        found.inside = True
        found.squared = _ZERO
        rest = wp.max(volume * volume - (of_s + of_q + of_r) * volume, _ZERO)
        part = _ONE / (rest + (of_s + of_q + of_r) * volume)
        found.weights = wp.vec4d(rest * part, of_q * volume * part, of_r * volume * part, of_s * volume * part)
        found.weights = _refined(found.weights, p, q, r, s)
    return found


@wp.func
def _refined(weights: wp.vec4d, p: vec, q: vec, r: vec, s: vec) -> wp.vec4d:
    """Weights of the origin, once more from what they leave of it: volumes of a flat tetrahedron are mostly rounding.

    Without it corners that hold the origin between them, but nearly in a plane, weigh to a point that is some hundred
    roundings away from it, and bodies that are deep in each other are not known to meet.
    """
    left = weights[0] * p + weights[1] * q + weights[2] * r + weights[3] * s
    pq = q - p
    pr = r - p
    ps = s - p
    volume = wp.dot(wp.cross(pq, pr), ps)
    of_q = weights[1] - wp.dot(wp.cross(pr, ps), left) / volume
    of_r = weights[2] - wp.dot(wp.cross(ps, pq), left) / volume
    of_s = weights[3] - wp.dot(wp.cross(pq, pr), left) / volume
    of_p = _ONE - of_q - of_r - of_s
    better = wp.vec4d(of_p, of_q, of_r, of_s)
    left_then = of_p * p + of_q * q + of_r * r + of_s * s
    inside = of_p >= _ZERO and of_q >= _ZERO and of_r >= _ZERO and of_s >= _ZERO
    if inside and wp.length_sq(left_then) < wp.length_sq(left):
        return better
    return weights


@wp.func
def nearest_of_points(count: int, p: vec, q: vec, r: vec, s: vec, far_side: bool) -> NearestOfSimplex:
    """The same of the first `count` points; `far_side`: whatever their order, else p was found beyond the others."""
    if count == 1:
        return nearest_of_one(p)
    if count == 2:
        return nearest_of_two(p, q)
    if count == 3:
        return nearest_of_three(p, q, r, far_side)
    return nearest_of_four(p, q, r, s, far_side)


@wp.func
def nearest_of_one(p: vec) -> NearestOfSimplex:
    """The point itself."""
    found = NearestOfSimplex()
    found.weights = wp.vec4d(_ONE, _ZERO, _ZERO, _ZERO)
    found.point = p
    found.squared = wp.length_sq(p)
    return found

"""How deep is a segment in a cylinder, a cone or a hull, where candidates are few?

Question: the least translation that parts the core of a capsule from one of these.
Method:   a ball inside their difference touches it where the normal is unique: across a face of the solid, across its
          side, or across an edge or a rim and the segment. Faces are tried one by one, edges where the segment turns
          their two faces away from each other. Across a cylinder's side it is the distance of a point from a segment in
          the plane; across a cone's, the least on a circle of the larger of two sinusoids, each least at a known angle,
          or where they cross. Across the segment the solid's shadow remains, an ellipse and tangents of it, and the
          point of the ellipse that is nearest to a given one is the root of a convex function (`rim_normal`).
Sound:    the depth is the reach of the difference along the normal, from the supports of both: a translation by it
          parts the cores, whatever the quality of the normal. It is the least there is, exact to rounding.
Known as: separating axis test; the distance of a point from an ellipse (Eberly, Distance from a Point to an Ellipse).
"""

from __future__ import annotations

import warp as wp

from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of, core_value_of
from tangere.query.manifold.convex.closed_forms import WayOut
from tangere.query.manifold.convex.features import HullFaces
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_FAR = wp.constant(real(1.0e300))
#: Edges that turn from the segment by less, and segments that turn from an axis by less, are parallel to them.
_PARALLEL = wp.constant(real(1.0e-12))
#: Of a segment that leans from a face by less it is asked which part of it is over the face.
_LYING = wp.constant(real(1.0e-6))
#: A way across an edge or a rim is shorter than one across a face by this part of the size, or not at all.
_SHORTER = wp.constant(real(1.0e-11))
#: Cores are certainly apart where they are so by this part of the size along a direction.
_APART = wp.constant(real(1.0e-6))
#: Steps to the nearest point of an ellipse, the part of what they reach at which they end, and the least coordinate of
#: a point: nearer to an axis it is as if it were there.
_STEPS = wp.constant(64)
_STILL = wp.constant(real(1.0e-9))
_LEAST = wp.constant(real(1.0e-15))
#: No shadow of a disc is flatter.
_FLATTEST = wp.constant(real(1.0e-12))
#: Faces whose side is kept in one word; of more than two words it is asked anew for each edge.
_WORD = wp.constant(64)

cylinder_support, cylinder_value = core_support_of(ConvexKind.CYLINDER), core_value_of(ConvexKind.CYLINDER)
cone_support, cone_value = core_support_of(ConvexKind.CONE), core_value_of(ConvexKind.CONE)
hull_value = core_value_of(ConvexKind.HULL)


@wp.func
def sign_of(x: real) -> real:
    return wp.where(x < _ZERO, -_ONE, _ONE)


@wp.func
def rim_normal(x: real, y: real, flat: real, steep: real) -> wp.vec2d:
    """Where an ellipse is nearest to a point: the normal there, not unit, in the first quadrant; zero if not there.

    The half axes are 1 along x and `flat` along y, `steep` is 1 - flat^2; x is not negative. On the side of y nearest
    points are so among all, on the other one among their neighbours. A normal (p, q / flat) of
        p = x / (steep + t),  q = flat y / t,  p^2 + q^2 = 1
    belongs to a t of y's sign. The left side is convex in t, and the start is where it is too large: Newton's method
    comes from there and does not pass the root.
    """
    side = sign_of(y)
    z = wp.max(flat * wp.abs(y), _LEAST)
    t = z
    if side > _ZERO:
        t = wp.max(z, x - steep)
    step = int(0)
    while step < _STEPS:
        step += 1
        left = steep + side * t
        if not left > _ZERO:
            return wp.vec2d(_ZERO, _ZERO)
        p = x / left
        q = z / t
        slope = _TWO * (side * p * p / left + q * q / t)
        if not slope > _ZERO:
            return wp.vec2d(_ZERO, _ZERO)
        more = (p * p + q * q - _ONE) / slope
        t += more
        if more <= _STILL * t:
            step = _STEPS
    left = steep + side * t
    if not left > _ZERO:
        return wp.vec2d(_ZERO, _ZERO)
    return wp.vec2d(x / left, z / (flat * t))


@wp.func
def over_disc(m: vec, u: vec, squared: real, radius: real, t: real) -> real:
    """The place on a line m + t u, seen along z, that is nearest to t and within a disc round the axis, if any is."""
    if not squared > _PARALLEL * _PARALLEL:
        return t
    middle = -(m[0] * u[0] + m[1] * u[1]) / squared
    aside = (m[0] * u[1] - m[1] * u[0]) * (m[0] * u[1] - m[1] * u[0]) / squared
    far = wp.sqrt(wp.max(radius * radius - aside, _ZERO) / squared)
    return wp.clamp(t, middle - far, middle + far)


@wp.func
def within(height: real, half: real, t: real, end: real, lean: real) -> real:
    """A place t on a segment, moved along it as far as its height is beyond half a body's; `lean`: what it rises."""
    if wp.abs(height) > half and lean != _ZERO:
        return wp.clamp(t + (sign_of(height) * half - height) / lean, -end, end)
    return t


@wp.func
def segment_in_cylinder(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    faces_b: HullFaces,
    rotation: wp.mat33d,
    offset: vec,
) -> WayOut:
    m = -(offset * rotation)
    u = a.axis * rotation  # in b's frame
    end = a.half[2]
    half = b.half[2]
    size = a.reach + b.reach
    found = WayOut()
    # Across a disc.
    depth = half + end * wp.abs(u[2]) - wp.abs(m[2])
    normal = vec(_ZERO, _ZERO, sign_of(m[2]))
    squared = u[0] * u[0] + u[1] * u[1]
    steep = wp.sqrt(squared)
    t = real(0.0)  # nearest to the axis
    if steep > _PARALLEL:
        t = wp.clamp(-(m[0] * u[0] + m[1] * u[1]) / squared, -end, end)
    along = over_disc(m, u, squared, b.radius, wp.where(normal[2] * u[2] > _ZERO, -end, end))
    # Across the side.
    n = vec(m[0] + t * u[0], m[1] + t * u[1], _ZERO)
    if steep > _PARALLEL and wp.abs(t) < end:
        n = vec(-u[1], u[0], _ZERO)
        n = n * sign_of(n[0] * m[0] + n[1] * m[1])
    long = wp.length(n)
    n = wp.where(long > _ZERO, n * (_ONE / long), vec(_ONE, _ZERO, _ZERO))
    lean = n[0] * u[0] + n[1] * u[1]
    here = b.radius + end * wp.abs(lean) - (n[0] * m[0] + n[1] * m[1])
    if here < depth:
        depth = here
        normal = n
        along = within(m[2] + t * u[2], half, t, end, u[2])
    # Across a rim and the segment.
    if steep > _PARALLEL and depth > -_APART * size:
        f = vec(u[1] / steep, -u[0] / steep, _ZERO)
        e = vec(-u[2] * u[0] / steep, -u[2] * u[1] / steep, steep)
        m_e = wp.dot(m, e)
        m_f = wp.dot(m, f)
        beyond = (wp.abs(m_e) - half * steep) / b.radius
        q = rim_normal(wp.abs(m_f) / b.radius, beyond, wp.max(wp.abs(u[2]), _FLATTEST), squared)
        if q[0] + q[1] > _ZERO:
            n = wp.normalize((sign_of(m_f) * q[0]) * f + (sign_of(m_e) * q[1]) * e)
            here = cylinder_value(b, points_b, n) + end * wp.abs(wp.dot(u, n)) - wp.dot(n, m)
            if here < depth - _SHORTER * size:
                depth = here
                normal = n
                along = wp.clamp(wp.dot(cylinder_support(b, points_b, n) - m, u), -end, end)
    found.depth = depth
    found.normal = rotation * normal
    found.point_a = along * a.axis
    return found


@wp.func
def segment_in_cone(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    faces_b: HullFaces,
    rotation: wp.mat33d,
    offset: vec,
) -> WayOut:
    m = -(offset * rotation)
    u = a.axis * rotation  # in b's frame
    end = a.half[2]
    half = b.half[2]
    size = a.reach + b.reach
    found = WayOut()
    squared = u[0] * u[0] + u[1] * u[1]
    steep = wp.sqrt(squared)
    # Across the base.
    depth = half + end * wp.abs(u[2]) + m[2]
    normal = vec(_ZERO, _ZERO, -_ONE)
    along = over_disc(m, u, squared, b.radius, wp.where(u[2] < _ZERO, -end, end))
    # Across the side, which faces (out, up).
    slope = wp.sqrt(_TWO * half * _TWO * half + b.radius * b.radius)
    out = _TWO * half / slope
    up = b.radius / slope
    k = int(0)
    while k < 3:
        n = vec(_ONE, _ZERO, up)
        straight = bool(True)
        t = wp.where(k == 0, -end, end)
        if k < 2:  # away from an end
            x = m[0] + t * u[0]
            y = m[1] + t * u[1]
            long = wp.sqrt(x * x + y * y)
            if long > _ZERO:
                n = vec(x / long, y / long, up)
        else:  # across the segment too
            cosine = real(2.0)
            if steep > _PARALLEL:
                cosine = -up * u[2] / (out * steep)
            straight = wp.abs(cosine) <= _ONE
            sine = wp.sqrt(wp.max(_ONE - cosine * cosine, _ZERO)) * sign_of(m[1] * u[0] - m[0] * u[1])
            if straight:
                n = vec((cosine * u[0] - sine * u[1]) / steep, (cosine * u[1] + sine * u[0]) / steep, up)
        aside = vec(-n[1], n[0], _ZERO)
        n = vec(out * n[0], out * n[1], up)
        lean = wp.dot(n, u)
        here = up * half + end * wp.abs(lean) - wp.dot(n, m)
        if straight and here < depth:
            depth = here
            normal = n
            across = wp.dot(u, aside)
            if k < 2 and end * wp.abs(lean) > _SHORTER * size:
                t = wp.where(lean > _ZERO, -end, end)
            if k == 2:  # over the line from the rim to the tip
                t = real(0.0)
                if wp.abs(across) > _PARALLEL:
                    t = wp.clamp(-wp.dot(m, aside) / across, -end, end)
            along = within(m[2] + t * u[2] + here * up, half, t, end, u[2])
        k += 1
    # Across the rim and the segment.
    if depth > -_APART * size:
        e = vec(_ZERO, _ZERO, _ONE)
        f = vec(m[0], m[1], _ZERO)
        if steep > _PARALLEL:
            f = vec(u[1], -u[0], _ZERO)
            e = vec(-u[2] * u[0] / steep, -u[2] * u[1] / steep, steep)
        long = wp.length(f)
        f = wp.where(long > _ZERO, f * (_ONE / long), vec(_ONE, _ZERO, _ZERO))
        m_f = wp.dot(m, f)
        above = (wp.dot(m, e) + half * steep) / b.radius
        side = real(-1.0)
        while side < _TWO:
            q = wp.vec2d(_ONE, _ZERO)  # of a segment that is parallel to the axis
            if steep > _PARALLEL:
                q = rim_normal(wp.abs(m_f) / b.radius, side * above, wp.max(wp.abs(u[2]), _FLATTEST), squared)
            if q[0] + q[1] > _ZERO:
                n = wp.normalize((sign_of(m_f) * q[0]) * f + (side * q[1]) * e)
                here = cone_value(b, points_b, n) + end * wp.abs(wp.dot(u, n)) - wp.dot(n, m)
                if here < depth - _SHORTER * size:
                    depth = here
                    normal = n
                    along = wp.clamp(wp.dot(cone_support(b, points_b, n) - m, u), -end, end)
            side += _TWO
    found.depth = depth
    found.normal = rotation * normal
    found.point_a = along * a.axis
    return found


@wp.func
def segment_in_hull(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    faces_b: HullFaces,
    rotation: wp.mat33d,
    offset: vec,
) -> WayOut:
    m = -(offset * rotation)
    u = a.axis * rotation  # in b's frame
    end = a.half[2]
    size = a.reach + b.reach
    found = WayOut()
    # Across a face. Which of them the segment rises from is kept.
    depth = _FAR + _ZERO
    normal = vec()
    face = int(-1)
    rising = wp.uint64(0)
    others = wp.uint64(0)
    count = faces_b.planes.shape[0]
    k = int(0)
    while k < count:
        plane = faces_b.planes[k]
        lean = plane[0] * u[0] + plane[1] * u[1] + plane[2] * u[2]
        here = plane[3] - (plane[0] * m[0] + plane[1] * m[1] + plane[2] * m[2]) + end * wp.abs(lean)
        if here < depth:
            depth = here
            face = k
        if lean > _ZERO:
            if k < _WORD:
                rising |= wp.uint64(1) << wp.uint64(k)
            else:
                others |= wp.uint64(1) << wp.uint64(k - _WORD)
        k += 1
    plane = faces_b.planes[face]
    normal = vec(plane[0], plane[1], plane[2])
    lean = wp.dot(normal, u)
    along = wp.where(lean > _ZERO, -end, end)
    edge = int(-1)
    # Across an edge and the segment.
    k = int(0)
    while k < faces_b.edges.shape[0] and depth > -_APART * size:
        row = faces_b.edges[k]
        parted = bool(False)
        if count <= 2 * _WORD:
            one = wp.where(row[2] < _WORD, rising >> wp.uint64(row[2]), others >> wp.uint64(row[2] - _WORD))
            other = wp.where(row[3] < _WORD, rising >> wp.uint64(row[3]), others >> wp.uint64(row[3] - _WORD))
            parted = ((one ^ other) & wp.uint64(1)) == wp.uint64(1)
        else:
            plane = faces_b.planes[row[2]]
            one_leans = plane[0] * u[0] + plane[1] * u[1] + plane[2] * u[2]
            plane = faces_b.planes[row[3]]
            parted = (one_leans > _ZERO) != (plane[0] * u[0] + plane[1] * u[1] + plane[2] * u[2] > _ZERO)
        if parted:
            start = points_b[b.first + row[0]]
            way = points_b[b.first + row[1]] - start
            n = wp.cross(way, u)
            squared = wp.length_sq(n)
            long = wp.length_sq(way)
            if squared > _PARALLEL * _PARALLEL * long:
                plane = faces_b.planes[row[2]]
                across = plane[0] * n[0] + plane[1] * n[1] + plane[2] * n[2]
                plane = faces_b.planes[row[3]]
                across += plane[0] * n[0] + plane[1] * n[1] + plane[2] * n[2]
                n = n * (sign_of(across) / wp.sqrt(squared))
                n = n - (wp.dot(n, way) / long) * way  # of nearly parallel ones the product is so to few digits
                n = wp.normalize(n - wp.dot(n, u) * u)
                here = wp.dot(n, start - m)
                if here < depth - _SHORTER * size:
                    depth = here
                    normal = n
                    edge = k
        k += 1
    if edge >= 0:
        row = faces_b.edges[edge]
        start = points_b[b.first + row[0]]
        aside = wp.cross(points_b[b.first + row[1]] - start, normal)
        along = wp.clamp(wp.dot(start - m, aside) / wp.dot(u, aside), -end, end)
    elif wp.abs(lean) <= _LYING:
        # the part of it that is over the face: within all other planes
        low = -end
        high = end
        k = int(0)
        while k < count:
            plane = faces_b.planes[k]
            rises = plane[0] * u[0] + plane[1] * u[1] + plane[2] * u[2]
            over = m + depth * normal
            room = plane[3] - (plane[0] * over[0] + plane[1] * over[1] + plane[2] * over[2])
            if k != face and wp.abs(rises) > _LYING:
                if rises > _ZERO:
                    high = wp.min(high, room / rises)
                else:
                    low = wp.max(low, room / rises)
            k += 1
        along = wp.clamp(wp.clamp(along, low, high), -end, end)
    # The planes of a hull are exact to its rounding, its corners are what they are.
    found.depth = hull_value(b, points_b, normal) + end * wp.abs(wp.dot(u, normal)) - wp.dot(normal, m)
    found.normal = rotation * normal
    found.point_a = along * a.axis
    return found

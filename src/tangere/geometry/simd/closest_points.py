"""Closest points of eight pairs of features at once, for CPUs; texts that follow `VECTORS`.

Method: the formulas of `geometry.closest_points.conditioned`, operation by operation in float64, with choices instead
        of branches: so the answers are the same bit by bit.
Sound:  where those go other ways, for slivers and nearly parallel edges, a lane is not `sure`: whoever asks must ask
        `geometry.closest_points` for it, which compares candidates instead (`robust`).
Known as: the same in structure-of-arrays form, one pair a SIMD lane.
"""

from __future__ import annotations

from tangere.geometry.closest_points import CONDITIONED, CONDITIONED_EDGES

#: The way `apart` between the nearest points of edges p0 p1 and q0 q1, at `u` and `v`; right where `sure`.
SEGMENT_SEGMENT = f"""
    const double conditioned_edges = {CONDITIONED_EDGES!r};
"""
SEGMENT_SEGMENT += """
    const Vector d1 = minus(p1, p0), d2 = minus(q1, q0), r = minus(p0, q0);
    const Wide a = dot(d1, d1), b = dot(d1, d2), e = dot(d2, d2), c = dot(d1, r), f = dot(d2, r);
    const Wide determinant = a * e - b * b;
    const Whole sure = determinant > conditioned_edges * a * e;
    Wide u = clamped((b * f - c * e) / determinant);
    Wide v = (b * u + f) / e;
    const Whole below = v < zero, beyond = v > unit;
    const Wide end = clamped((below ? -c : b - c) / a);
    u = below | beyond ? end : u;
    v = clamped(v);
    const Vector apart = {r.x + u * d1.x - v * d2.x, r.y + u * d1.y - v * d2.y, r.z + u * d1.z - v * d2.z};
"""
#: The way `apart` from the nearest point of triangles a, b, c to points p, with weights `wa`, `wb`, `wc`; right where
#: `sure`.
POINT_TRIANGLE = f"""
    const double conditioned = {CONDITIONED!r};
"""
POINT_TRIANGLE += """
    const Vector e0 = minus(b, a), e1 = minus(c, a), from_p = minus(a, p);
    const Wide aa = dot(e0, e0), bb = dot(e0, e1), cc = dot(e1, e1), d = dot(e0, from_p), e = dot(e1, from_p);
    const Wide determinant = aa * cc - bb * bb;
    const Whole sure = determinant > conditioned * aa * cc;
    Wide u = bb * e - cc * d, v = bb * d - aa * e;
    const Whole low_u = u < zero, low_v = v < zero, within_far = u + v <= determinant;
    const Whole inside = within_far & ~low_u & ~low_v;
    const Whole far_low_u = (bb + d) - (cc + e) < zero, far_low_v = (bb + e) - (aa + d) < zero;
    const Whole on_far = ~within_far & (low_u ? far_low_u : low_v ? far_low_v : ~inside);
    const Whole on_first = within_far ? (low_u & low_v ? d < zero : low_v) : low_v & ~low_u;
    const Wide top = inside ? u : on_far ? cc + e - bb - d : on_first ? -d : -e;
    const Wide bottom = inside ? determinant : on_far ? aa - 2.0 * bb + cc : on_first ? aa : cc;
    const Wide along = top / bottom, t = clamped(along);
    v = v / determinant;
    const Wide rest = unit - along - v;
    const Wide wa = inside ? (rest < zero ? zero : rest) : on_far ? zero : unit - t;
    const Wide wb = inside ? along : on_far ? t : on_first ? t : zero;
    const Wide wc = inside ? v : on_far ? unit - t : on_first ? zero : t;
    const Vector pa = minus(p, a), pb = minus(p, b), pc = minus(p, c);
    const Vector apart = {
        wa * pa.x + wb * pb.x + wc * pc.x, wa * pa.y + wb * pb.y + wc * pc.y, wa * pa.z + wb * pb.z + wc * pc.z};
"""

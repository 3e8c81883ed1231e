"""Gaps of eight pairs of triangles at once, for CPUs; a text that follows `VECTORS`.

Method: supports of both triangles along three directions: a given one and both normals. Any direction certifies its own
        gap: of slivers too, whose normals are noise, because all six corners are projected.
Sound:  gaps are right to 2^-50 of the largest coordinate.
Known as: separating axis test of two triangles, without products of edges.
"""

from __future__ import annotations

#: `triangle_gaps(a, b, way) -> gap`: how far eight triangles b are at least from triangles a, by their supports along
#: the unit vector `way` from a to b and along the normals; below 0 where none of these parts them.
TRIANGLE_GAPS = """
    auto triangle_gaps = [&](const Vector* a, const Vector* b, Vector way) -> Wide {
        auto least = [](Wide x, Wide y, Wide z) -> Wide {
            return __builtin_elementwise_min(__builtin_elementwise_min(x, y), z);
        };
        auto largest = [](Wide x, Wide y, Wide z) -> Wide {
            return __builtin_elementwise_max(__builtin_elementwise_max(x, y), z);
        };
        auto normal_of = [&](const Vector* t) -> Vector {
            const Vector p = minus(t[1], t[0]), q = minus(t[2], t[0]);
            return {p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z, p.x * q.y - p.y * q.x};
        };
        Wide gap = least(dot(b[0], way), dot(b[1], way), dot(b[2], way))
            - largest(dot(a[0], way), dot(a[1], way), dot(a[2], way));
        for (int k = 0; k < 2; ++k) {
            const Vector n = normal_of(k ? b : a);
            const Wide area = dot(n, n);
            const Wide a0 = dot(a[0], n), a1 = dot(a[1], n), a2 = dot(a[2], n);
            const Wide b0 = dot(b[0], n), b1 = dot(b[1], n), b2 = dot(b[2], n);
            const Wide across = __builtin_elementwise_max(
                least(b0, b1, b2) - largest(a0, a1, a2), least(a0, a1, a2) - largest(b0, b1, b2));
            const Whole known = area > (Wide)1.0e-280;
            gap = known ? __builtin_elementwise_max(gap, across / __builtin_elementwise_sqrt(area)) : gap;
        }
        return gap;
    };
"""

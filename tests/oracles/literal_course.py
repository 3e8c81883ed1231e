"""The course as printed, in plain NumPy, one query at a time: the oracle of `mode="published"`.

Written from the course on 3D collision detection, chapter 6.X4, without the library: `numpy.roots` for the cubic and
its own formulas for everything else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LiteralReading:
    zero: float = 0.0
    widen: float = 0.0
    vanishing: str = "all"
    imaginary: float = 1e-12
    match: float = 1e-9


def triple(a, b, c):
    return float(np.dot(np.cross(a, b), c))


def cubic(r, v):
    """Coefficients of det[P1-P0, P2-P0, P3-P0](t), highest power first."""
    (r1, r2, r3), (v1, v2, v3) = r[1:] - r[0], v[1:] - v[0]
    return np.array(
        [
            triple(v1, v2, v3),
            triple(v1, v2, r3) + (np.cross(r1, v2) + np.cross(v1, r2)) @ v3,
            (np.cross(r1, v2) + np.cross(v1, r2)) @ r3 + triple(r1, r2, v3),
            triple(r1, r2, r3),
        ]
    )


def real_roots(p, imaginary):
    with np.errstate(all="ignore"):
        while len(p) > 1 and not (p[0] != 0 and np.all(np.isfinite(p / p[0]))):
            p = p[1:]
    if len(p) < 2:
        return []
    return sorted(z.real for z in np.roots(p) if abs(z.imag) <= imaginary * max(1.0, abs(z)))


def quadratic(a, b, c):
    scale = max(abs(a), abs(b), abs(c))
    a, b, c = a / scale, b / scale, c / scale
    if abs(a) < 1e-14:
        return [-c / b] if b else []
    discriminant = b * b - 4 * a * c
    if discriminant < -1e-12 * max(b * b, abs(4 * a * c)):
        return []
    root = max(discriminant, 0.0) ** 0.5
    q = -0.5 * (b + (root if b >= 0 else -root))
    return [q / a, c / q if q else q / a]


def vertex_edge(r, v, reading):
    r01, r02, v01, v02 = r[1] - r[0], r[2] - r[0], v[1] - v[0], v[2] - v[0]
    a, b, c = np.cross(v01, v02), np.cross(r01, v02) + np.cross(v01, r02), np.cross(r01, r02)
    common = None
    for k in range(3):
        if a[k] == b[k] == c[k] == 0:
            if reading.vanishing == "none":
                return np.inf
            continue
        roots = quadratic(a[k], b[k], c[k])
        if common is None:
            common = roots
        else:
            common = [t for t in common if any(abs(t - u) <= reading.match for u in roots)]
    for t in sorted(common or []):
        if 0 <= t <= 1:
            p0, p1, p2 = r + v * t
            if (p0 - p1) @ (p2 - p1) >= -reading.widen and (p0 - p2) @ (p2 - p1) <= reading.widen:
                return t
    return np.inf


def vertex_face(r, v, reading):
    """`r`, `v` in the order vertex, face."""
    r, v = r[[1, 2, 3, 0]], v[[1, 2, 3, 0]]
    p = cubic(r, v)
    if np.all(np.abs(p) <= reading.zero):
        return min(vertex_edge(r[[3, i, j]], v[[3, i, j]], reading) for i, j in ((0, 1), (1, 2), (2, 0)))
    for t in real_roots(p, reading.imaginary):
        if 0 <= t <= 1:
            q = r + v * t
            e1, e2, w = q[1] - q[0], q[2] - q[0], q[3] - q[0]
            with np.errstate(all="ignore"):
                det = (e1 @ e1) * (e2 @ e2) - (e1 @ e2) ** 2
                ua = ((w @ e1) * (e2 @ e2) - (w @ e2) * (e1 @ e2)) / np.float64(det)
                ub = ((w @ e2) * (e1 @ e1) - (w @ e1) * (e1 @ e2)) / np.float64(det)
            if ua >= -reading.widen and ub >= -reading.widen and ua + ub <= 1 + reading.widen:
                return t
    return np.inf


def edge_edge(r, v, reading):
    p = cubic(r, v)
    if np.all(np.abs(p) <= reading.zero):
        pairs = ([0, 2, 3], [1, 2, 3], [2, 0, 1], [3, 0, 1])
        return min(vertex_edge(r[pair], v[pair], reading) for pair in pairs)
    for t in real_roots(p, reading.imaginary):
        if 0 <= t <= 1:
            q = r + v * t
            a, b, d = q[1] - q[0], q[3] - q[2], q[2] - q[0]
            n = np.cross(a, b)
            with np.errstate(all="ignore"):
                ua = np.cross(d, b) @ n / np.float64(n @ n)
                ub = np.cross(d, a) @ n / np.float64(n @ n)
            if -reading.widen <= ua <= 1 + reading.widen and -reading.widen <= ub <= 1 + reading.widen:
                return t
    return np.inf

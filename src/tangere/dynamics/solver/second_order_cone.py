"""The algebra of the cone |x_1, x_2| <= x_0 in three dimensions.

Question: what do an interior-point method's scalings, products and step lengths come to for one contact?
Method:   Jordan algebra of the cone; the scaling W of Nesterov and Todd is a hyperbolic reflection times a length, kept
          as its vector and that length.
Known as: second-order, Lorentz or ice-cream cone (Alizadeh and Goldfarb 2003; Vandenberghe 2010, the CVXOPT solvers).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: No step is longer.
FAR = wp.constant(wp.float64(1.0e30))


@wp.func
def reflect(x: wp.vec3d) -> wp.vec3d:
    return wp.vec3d(x[0], -x[1], -x[2])


@wp.func
def cone_det(x: wp.vec3d) -> wp.float64:
    """x_0^2 - |x_1, x_2|^2, from factors that do not cancel, kept above zero."""
    t = wp.sqrt(x[1] * x[1] + x[2] * x[2])
    return wp.max((x[0] - t) * (x[0] + t), wp.float64(1.0e-300))


@wp.func
def jordan(a: wp.vec3d, b: wp.vec3d) -> wp.vec3d:
    return wp.vec3d(wp.dot(a, b), a[0] * b[1] + b[0] * a[1], a[0] * b[2] + b[0] * a[2])


@wp.func
def jordan_divide(l: wp.vec3d, r: wp.vec3d) -> wp.vec3d:
    """x with l o x = r."""
    x0 = (l[0] * r[0] - l[1] * r[1] - l[2] * r[2]) / cone_det(l)
    inverse = wp.float64(1.0) / l[0]
    return wp.vec3d(x0, (r[1] - x0 * l[1]) * inverse, (r[2] - x0 * l[2]) * inverse)


@wp.func
def step_to_boundary(x: wp.vec3d, d: wp.vec3d) -> wp.float64:
    """The largest t with x + t d in the cone, for x inside."""
    a = d[0] * d[0] - d[1] * d[1] - d[2] * d[2]
    b = x[0] * d[0] - x[1] * d[1] - x[2] * d[2]
    c = cone_det(x)
    t = FAR
    discriminant = b * b - a * c
    if discriminant >= wp.float64(0.0) and (a < wp.float64(0.0) or b < wp.float64(0.0)):
        s = wp.sqrt(discriminant)
        q = -b - s
        if b < wp.float64(0.0):
            q = -b + s
        if q > wp.float64(0.0):
            t = c / q
        if a != wp.float64(0.0):
            other = q / a
            if other > wp.float64(0.0):
                t = wp.min(t, other)
    if d[0] < wp.float64(0.0):
        t = wp.min(t, -x[0] / d[0])
    return t


@wp.func
def scaling(z: wp.vec3d, y: wp.vec3d) -> wp.vec4d:
    """The scaling with W y = W^-1 z: its vector, and its length last."""
    dz = wp.sqrt(cone_det(z))
    dy = wp.sqrt(cone_det(y))
    zb = z / dz
    yb = y / dy
    g = wp.sqrt(wp.float64(0.5) * (wp.float64(1.0) + wp.dot(zb, yb)))
    w = (zb + reflect(yb)) / (wp.float64(2.0) * g)
    inverse = wp.float64(1.0) / wp.sqrt(wp.float64(2.0) * (w[0] + wp.float64(1.0)))
    return wp.vec4d((w[0] + wp.float64(1.0)) * inverse, w[1] * inverse, w[2] * inverse, wp.sqrt(dz / dy))


@wp.func
def scaled_up(s: wp.vec4d, x: wp.vec3d) -> wp.vec3d:
    """W x."""
    v = wp.vec3d(s[0], s[1], s[2])
    return s[3] * (wp.float64(2.0) * wp.dot(v, x) * v - reflect(x))


@wp.func
def scaled_down(s: wp.vec4d, x: wp.vec3d) -> wp.vec3d:
    """W^-1 x."""
    v = wp.vec3d(s[0], -s[1], -s[2])
    return (wp.float64(2.0) * wp.dot(v, x) * v - reflect(x)) / s[3]


@wp.func
def inverse_square(s: wp.vec4d) -> wp.mat33d:
    """W^-2."""
    v = wp.vec3d(s[0], -s[1], -s[2])
    root = wp.float64(2.0) * wp.outer(v, v) - wp.diag(wp.vec3d(wp.float64(1.0), wp.float64(-1.0), wp.float64(-1.0)))
    return root * root / (s[3] * s[3])

"""The law of one row alone: which impulse satisfies it when all others stay as they are.

Question: given the relative velocity q without the row's own impulse, and its Delassus block D, which impulse r makes
          u = q + D r obey the law of the row?
Method:   a contact takes off (r = 0), sticks (u = 0) or slides: then u_n = 0, r_t = mu r_n c and u_t points against the
          unit vector c. With r_n = -q_n / (D_nn + mu D_nt . c) that is one equation for the angle of c, solved by
          Newton's method from the last direction; where that fails the circle is searched for a root.
          A bounded row takes the impulse that makes u + compliance r zero, cut at its bounds.
Known as: the exact one-contact solver of nonsmooth Gauss-Seidel (Jourdan, Alart and Jean 1998; Bonnefon and Daviet
          2011); the residual is the natural map of De Saxcé's form (De Saxcé and Feng 1998).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Newton steps for the direction of sliding before the circle is searched.
NEWTON_STEPS = wp.constant(12)
#: Directions that are tried in that search; roots that lie as near together as with large friction need the finer one.
DIRECTIONS = wp.constant(32)
FINE_DIRECTIONS = wp.constant(1024)


@wp.func
def cone_projection(x: wp.vec3d, mu: wp.float64) -> wp.vec3d:
    """The point of the friction cone |x_t| <= mu x_n nearest to x."""
    t = wp.sqrt(x[1] * x[1] + x[2] * x[2])
    if t <= mu * x[0] and x[0] >= wp.float64(0.0):
        return x
    if mu * t <= -x[0]:
        return wp.vec3d()
    n = (x[0] + mu * t) / (wp.float64(1.0) + mu * mu)
    s = mu * n / t
    return wp.vec3d(n, s * x[1], s * x[2])


@wp.func
def contact_residual(u: wp.vec3d, r: wp.vec3d, d: wp.mat33d, mu: wp.float64, coulomb: wp.float64) -> wp.float64:
    """How far a contact is from its law [m/s]: zero where it holds; `coulomb` is 1, or 0 for convex friction."""
    scale = wp.max(d[0, 0], wp.max(d[1, 1], d[2, 2]))
    if d[0, 0] <= wp.float64(1.0e-12) * scale or scale <= wp.float64(0.0):  # nobody can give way
        return wp.max(-u[0], wp.float64(0.0))
    shifted = wp.vec3d(u[0] + coulomb * mu * wp.sqrt(u[1] * u[1] + u[2] * u[2]), u[1], u[2])
    return wp.length(r - cone_projection(r - shifted / scale, mu)) * scale


@wp.func
def bounded_residual(u: wp.float64, r: wp.float64, d: wp.float64, lower: wp.float64, upper: wp.float64) -> wp.float64:
    """The same for a bounded row; u includes compliance times r."""
    if d <= wp.float64(0.0):
        return wp.abs(u)
    return wp.abs(r - wp.clamp(r - u / d, lower, upper)) * d


@wp.func
def sliding_equation(c: wp.vec2d, q: wp.vec3d, d: wp.mat33d, mu: wp.float64) -> wp.vec4d:
    """For a direction c of friction: the equation, its derivative by the angle, c . b, and the factor b has.

    b is the tangential velocity times D_nn + mu D_nt . c; the equation says that b is parallel to c.
    """
    px = -c[1]
    py = c[0]
    low = d[0, 0] + mu * (d[0, 1] * c[0] + d[0, 2] * c[1])
    bx = q[1] * low - q[0] * (d[1, 0] + mu * (d[1, 1] * c[0] + d[1, 2] * c[1]))
    by = q[2] * low - q[0] * (d[2, 0] + mu * (d[2, 1] * c[0] + d[2, 2] * c[1]))
    turn = mu * (d[0, 1] * px + d[0, 2] * py)
    dx = q[1] * turn - q[0] * mu * (d[1, 1] * px + d[1, 2] * py)
    dy = q[2] * turn - q[0] * mu * (d[2, 1] * px + d[2, 2] * py)
    along = c[0] * bx + c[1] * by
    return wp.vec4d(px * bx + py * by, px * dx + py * dy - along, along, low)


@wp.func
def newton_direction(start: wp.vec2d, q: wp.vec3d, d: wp.mat33d, mu: wp.float64) -> wp.vec3d:
    """A root of the sliding equation near a direction, and 1 if it is one that opposes the motion."""
    c = start
    step = wp.float64(1.0)
    k = int(0)
    e = sliding_equation(c, q, d, mu)
    while k < NEWTON_STEPS and wp.abs(step) > wp.float64(1.0e-13):
        step = wp.float64(0.0)
        if e[1] > wp.float64(0.0):
            step = -e[0] / e[1]
        else:  # a maximum lies between: go a quarter of a circle downhill
            step = wp.float64(1.0)
            if e[0] > wp.float64(0.0):
                step = wp.float64(-1.0)
        step = wp.clamp(step, wp.float64(-2.0), wp.float64(2.0))
        c = wp.normalize(wp.vec2d(c[0] - step * c[1], c[1] + step * c[0]))
        e = sliding_equation(c, q, d, mu)
        k += 1
    good = wp.float64(0.0)
    scale = wp.abs(e[2]) + wp.abs(e[1])
    if e[3] > wp.float64(0.0) and e[2] <= wp.float64(1.0e-9) * scale and wp.abs(e[0]) <= wp.float64(1.0e-9) * scale:
        good = wp.float64(1.0)
    return wp.vec3d(c[0], c[1], good)


@wp.func
def searched_direction(q: wp.vec3d, d: wp.mat33d, mu: wp.float64, directions: int) -> wp.vec3d:
    """A root of the sliding equation anywhere on the circle; the last number is 0 if there is none."""
    best = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
    k = int(0)
    while k < directions and best[2] == wp.float64(0.0):
        angle = wp.float64(k) * wp.float64(6.283185307179586) / wp.float64(directions)
        low = wp.vec2d(wp.cos(angle), wp.sin(angle))
        next = angle + wp.float64(6.283185307179586) / wp.float64(directions)
        high = wp.vec2d(wp.cos(next), wp.sin(next))
        if sliding_equation(low, q, d, mu)[0] <= wp.float64(0.0):
            if sliding_equation(high, q, d, mu)[0] >= wp.float64(0.0):
                for _j in range(8):
                    middle = wp.normalize(low + high)
                    if sliding_equation(middle, q, d, mu)[0] <= wp.float64(0.0):
                        low = middle
                    else:
                        high = middle
                best = newton_direction(wp.normalize(low + high), q, d, mu)
        k += 1
    return best


@wp.func
def contact_impulse(q: wp.vec3d, last: wp.vec3d, d: wp.mat33d, inverse: wp.mat33d, mu: wp.float64) -> wp.vec3d:
    """The impulse of a contact; `last` is the one it had, whose direction is tried first."""
    if q[0] >= wp.float64(0.0) or d[0, 0] <= wp.float64(0.0):
        return wp.vec3d()
    if mu <= wp.float64(0.0):
        return wp.vec3d(-q[0] / d[0, 0], wp.float64(0.0), wp.float64(0.0))
    stick = -(inverse * q)
    tangent = stick[1] * stick[1] + stick[2] * stick[2]
    if stick[0] >= wp.float64(0.0) and tangent <= mu * mu * stick[0] * stick[0]:
        return stick
    start = wp.vec2d(last[1], last[2])
    if start[0] == wp.float64(0.0) and start[1] == wp.float64(0.0):
        start = wp.vec2d(stick[1], stick[2])
    size = wp.length(start)
    c = wp.vec3d()
    if size > wp.float64(0.0):
        c = newton_direction(start / size, q, d, mu)
    if c[2] == wp.float64(0.0):
        c = searched_direction(q, d, mu, DIRECTIONS)
    if c[2] == wp.float64(0.0):
        c = searched_direction(q, d, mu, FINE_DIRECTIONS)
    low = d[0, 0] + mu * (d[0, 1] * c[0] + d[0, 2] * c[1])
    if c[2] == wp.float64(0.0) or low <= wp.float64(0.0):  # at rounding level: the frictionless impulse
        return wp.vec3d(-q[0] / d[0, 0], wp.float64(0.0), wp.float64(0.0))
    n = -q[0] / low
    return wp.vec3d(n, mu * n * c[0], mu * n * c[1])

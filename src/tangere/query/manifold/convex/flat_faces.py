"""The discs of cylinders: directions that may be the least way out, known before any search.

Question: how far do the cores of two bodies go into each other along the normal of a flat face of either, and of how
          many directions round it is that no more than any other tells?
Method:   the face less the deepest point of the other body is a part of the difference, across the normal. Where the
          origin is over it by `inner` from its sides, the reach at an angle is a cosine of its distance and a sine of
          `inner` at least.
Known as: the face axes of the separating axis theorem.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_support_of
from tangere.query.manifold.convex.polytope import KEPT, SETTLED, Polytopes
from tangere.query.manifold.convex.stationary_normal import StationaryNormal
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
#: The cosine of a cone without directions.
_NOWHERE = wp.constant(real(2.0))


def flat_faces(kind_a: int, kind_b: int) -> tuple[int, int]:
    """How many discs of two bodies are worth a look: of other pairs than these the search is as fast without."""
    return (2 if kind_a == ConvexKind.CYLINDER else 0, 2 if kind_a == kind_b == ConvexKind.CYLINDER else 0)


@cache
def seeds_of(kind_a: int, kind_b: int) -> wp.Function:
    """`seeds(p, i, a, points_a, b, points_b, rotation, offset) -> StationaryNormal` across the discs of two cores.

    Writes as many cones of the i-th polytope as there are discs.
    """
    support_a, support_b = core_support_of(kind_a), core_support_of(kind_b)
    discs = flat_faces(kind_a, kind_b)
    count_a, count = wp.constant(discs[0]), wp.constant(sum(discs))

    @wp.func
    def seeds(
        p: Polytopes,
        i: int,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        offset: vec,
    ) -> StationaryNormal:
        best = StationaryNormal()
        best.level = SETTLED
        levels = wp.vec4d()
        inners = wp.vec4d()
        k = int(0)
        while k < count:
            n = disc_normal(k)
            if k >= count_a:
                n = -(rotation * disc_normal(k - count_a))
            own = support_a(a, points_a, n)
            corner = own - (offset + rotation * support_b(b, points_b, -(n * rotation)))
            level = wp.dot(n, corner)
            # where the disc is over the origin, if its plane is there
            inner = inside_disc(a.radius, own + level * n - corner)
            if k >= count_a:
                inner = inside_disc(b.radius, (own - level * n - offset) * rotation)
            levels[k] = level
            inners[k] = inner
            p.cones[i * KEPT + k] = wp.vec4d(n[0], n[1], n[2], _NOWHERE)
            if level < best.level:
                best.level = level
                best.normal = n
                best.own = own
                best.difference = corner
                if inner >= _ZERO:
                    best.difference = level * n
                    if k < count_a:
                        best.own = own + level * n - corner
            k += 1
        k = int(0)
        while k < count and best.level > _ZERO:
            if inners[k] > _ZERO:
                cone = p.cones[i * KEPT + k]
                cone[3] = cone_cosine(levels[k], inners[k], best.level)
                p.cones[i * KEPT + k] = cone
            k += 1
        return best

    return seeds


@wp.func
def disc_normal(k: int) -> vec:
    """Of the k-th end of a cylinder, or the base of a cone."""
    return vec(_ZERO, _ZERO, wp.where(k == 0, -_ONE, _ONE))


@wp.func
def inside_disc(radius: real, x: vec) -> real:
    """How far a point of the plane of a disc is inside its rim."""
    return radius - wp.sqrt(x[0] * x[0] + x[1] * x[1])


@wp.func
def cone_cosine(level: real, inner: real, depth: real) -> real:
    """Up to which cosine a face at a distance of `level` reaches no less than a smaller depth."""
    most = wp.sqrt(level * level + inner * inner)
    near = depth / most
    return (level * near - inner * wp.sqrt(wp.max(_ONE - near * near, _ZERO))) / most

"""What holds the vertices of a sheet together after a cut: stretching of its triangles, bending over its edges.

Question: triangles were bisected, edges opened; which neighbours, laws and masses do vertices have that are touched?
Method:   as `dof_update` for solids, with the formulas of `model.material`: of each vertex the triangles around it, the
          inner edges at it, and those opposite to it. An edge that a blade has opened does not bend.
Sound:    as there. An inner edge couples the far corners of its triangles. They are new neighbours only if one of them
          is new: where an edge is bisected, those of its halves were those of the whole.
Known as: isometric bending (Bergou et al. 2006).
The kernel runs on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.incremental.cpu.dof_update import ELEMENTS, SIMPLEX_STAMP, TOUCHED, DofRoom, enter_row, find_star
from tangere.soft.incremental.undo_log import FULL, WriteLog
from tangere.soft.model.assembled_bodies import DofCoupling

wp.set_module_options(SOUND | {"max_unroll": 1})


@wp.func
def add_neighbour(d: DofRoom, log: WriteLog, near: int, own: int, v: int, weight: wp.float64) -> int:
    """Add a weight to that of a vertex of the complex, which may be a new neighbour; how many there are."""
    other = d.row_of[v]
    if other == own:  # two triangles on the same three vertices bend at a vertex and itself
        return near
    count = int(near)
    at = d.near_place[other]
    stamp = d.numbers[SIMPLEX_STAMP]
    if d.near_stamp[other] != stamp:
        if near + 1 >= d.near.shape[0]:
            log.numbers[FULL] = 1
            return near
        at = near
        count = near + 1
        d.near_stamp[other] = stamp
        d.near_place[other] = at
        d.near[at] = other
        d.near_weight[at] = wp.float64(0.0)
    d.near_weight[at] = d.near_weight[at] + weight
    return count


@wp.func
def cotangent(c: ComplexArrays, at: int, one: int, other: int) -> wp.float64:
    u = c.rest[one] - c.rest[at]
    v = c.rest[other] - c.rest[at]
    return wp.dot(u, v) / wp.length(wp.cross(u, v))


@wp.func
def twice_area(c: ComplexArrays, corners: wp.vec4i) -> wp.float64:
    o = c.rest[corners[0]]
    return wp.length(wp.cross(c.rest[corners[1]] - o, c.rest[corners[2]] - o))


@wp.func
def add_bending(c: ComplexArrays, d: DofRoom, log: WriteLog, near: int, own: int, t: int, k: int, v: int) -> int:
    """What the edge of triangle t opposite corner k, which has another one beyond, does to a vertex at it."""
    beyond = c.neighbours[t][k]
    corners = c.corners[t]
    others = c.corners[beyond >> 2]
    a = corners[(k + 1) % 3]
    b = corners[(k + 2) % 3]
    p = corners[k]
    q = others[beyond & 3]
    a_p = cotangent(c, a, b, p)
    a_q = cotangent(c, a, b, q)
    b_p = cotangent(c, b, a, p)
    b_q = cotangent(c, b, a, q)
    scale = d.rigidity / (wp.float64(0.5) * (twice_area(c, corners) + twice_area(c, others)))
    mine = -a_p - b_p
    if v == a:
        mine = b_p + b_q
    elif v == b:
        mine = a_p + a_q
    elif v != p:
        mine = -a_q - b_q
    count = int(near)
    if v != a:
        count = add_neighbour(d, log, count, own, a, scale * mine * (b_p + b_q))
    if v != b:
        count = add_neighbour(d, log, count, own, b, scale * mine * (a_p + a_q))
    if v != p:
        count = add_neighbour(d, log, count, own, p, -scale * mine * (a_p + b_p))
    if v != q:
        count = add_neighbour(d, log, count, own, q, -scale * mine * (a_q + b_q))
    return count


@wp.kernel
def couple_sheet(first: int, c: ComplexArrays, d: DofRoom, log: WriteLog, material: DofCoupling):
    """Masses and lists of all vertices that are touched, to fresh places (one thread)."""
    half = wp.float64(0.5)
    for n in range(d.numbers[TOUCHED]):
        v = d.touched[n]
        row = d.row_of[v]
        count = find_star(c, d, v)
        begin = d.numbers[ELEMENTS]
        if count > d.star.shape[0] or begin + count > material.laws.shape[0]:
            log.numbers[FULL] = 1
            return
        mass = wp.float64(0.0)
        near = int(0)
        for i in range(count):
            t = d.star[i]
            corners = c.corners[t]
            own = int(0)
            for k in range(1, 3):
                if corners[k] == v:
                    own = k
            one = corners[(own + 1) % 3]
            other = corners[(own + 2) % 3]
            area = half * twice_area(c, corners)
            mass += d.density * d.thickness * area / wp.float64(3.0)
            material.opposite[begin + i] = wp.vec3i(d.row_of[one], d.row_of[other], -1)
            law = d.lam * area * d.thickness
            material.laws[begin + i] = wp.vec3d(law, half / area, wp.float64(1.0) + d.mu / d.lam)
            scale = d.mu * area * d.thickness * (half / area) * (half / area)
            against = c.rest[other] - c.rest[one]
            to_one = wp.dot(against, c.rest[v] - c.rest[other])
            to_other = wp.dot(against, c.rest[one] - c.rest[v])
            near = add_neighbour(d, log, near, row, one, scale * to_one)
            near = add_neighbour(d, log, near, row, other, scale * to_other)
            for k in range(3):
                beyond = c.neighbours[t][k]
                if beyond >= 0:
                    if k == own or t < (beyond >> 2):  # an edge at the vertex is one of two triangles here
                        near = add_bending(c, d, log, near, row, t, k, v)
        if log.numbers[FULL] == 1:
            return
        enter_row(d, log, material, row, near, count, mass)
        if log.numbers[FULL] == 1:
            return

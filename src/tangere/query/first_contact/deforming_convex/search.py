"""Which triangles of a deforming mesh may a body meet, when at the earliest, and which one is met first.

Of each triangle the time is found until which a ball around the body stays clear of a box around the triangle; one
thread a body then goes through those that remain, by that time, until the next one comes too late. Ties go to an
overlap, then to the smaller triangle.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.contacts.record import Status
from tangere.query.distance.convex.supports import ConvexShape
from tangere.query.first_contact.convex.conservative_advancement import ConvexReach
from tangere.query.first_contact.convex.mesh_search import comes_before
from tangere.query.first_contact.convex.search import ConvexContact
from tangere.query.first_contact.deforming_convex.conservative_advancement import (
    LinearTriangle,
    told_of_triangle,
    triangle_reached_by,
)
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapes, moving_shape_bounds_of, outline_at
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
#: More than the rounding of a length, relative to it.
_LITTLE = wp.constant(real(1.0e-9))
_INFINITE = wp.constant(real(float("inf")))
FREE = wp.constant(int(Status.FREE))


@wp.struct
class LinearMesh:
    """A mesh whose vertices go along lines, and what rounding may do to them."""

    start: wp.array[wp.vec3d]
    way: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    tolerance: wp.float64  #: that can be kept, or that was asked for [m]
    slack: wp.float64  #: rounding of a corner [m]


@wp.func
def linear_triangle(mesh: LinearMesh, face: int) -> LinearTriangle:
    corner = mesh.faces[face]
    triangle = LinearTriangle()
    triangle.start = wp.matrix_from_rows(mesh.start[corner[0]], mesh.start[corner[1]], mesh.start[corner[2]])
    triangle.way = wp.matrix_from_rows(mesh.way[corner[0]], mesh.way[corner[1]], mesh.way[corner[2]])
    return triangle


@wp.kernel
def first_times(
    first: int,
    moving: MovingShapes,
    mesh: LinearMesh,
    lengths: wp.array[wp.float64],
    body: int,
    times: wp.array[wp.float64],
):
    """Until when the ball around a body certainly stays clear of each triangle; inf for the whole step."""
    j = first + wp.tid()
    moving.separation = lengths[0]
    moving.tolerance = lengths[1]
    m = moving_shape_bounds_of(moving, body, _ZERO, vec())
    triangle = linear_triangle(mesh, j)
    centre = outline_at(m, _ZERO).centre
    lower = vec(_INFINITE, _INFINITE, _INFINITE)
    upper = -lower
    fastest = _ZERO + _ZERO
    for k in range(3):
        lower = wp.min(lower, triangle.start[k])
        upper = wp.max(upper, triangle.start[k])
        fastest = wp.max(fastest, wp.length(triangle.way[k] - m.bounds.drift))
    fastest = (_ONE + _LITTLE) * (fastest + m.bounds.swing + m.bounds.spin * m.rho)
    keep = m.separation + wp.max(m.tolerance, mesh.tolerance) + m.slack + mesh.slack
    away = wp.length(wp.max(wp.max(lower - centre, centre - upper), vec()))
    gap = (_ONE - _LITTLE) * away - (m.reach + m.radius + keep)
    if gap > fastest:
        times[j] = _INFINITE
    elif gap > _ZERO:
        times[j] = (_ONE - _LITTLE) * gap / fastest
    else:
        times[j] = _ZERO


@cache
def deforming_contact_kernel(kind: int) -> wp.Kernel:
    """First contacts of n bodies of a kind with the triangles listed for each, by the time they may touch first."""
    reached, told = triangle_reached_by(kind), told_of_triangle(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def deforming_contacts(
        first: int,
        moving: MovingShapes,
        shapes: wp.array[ConvexShape],
        points: wp.array[wp.vec3d],
        mesh: LinearMesh,
        lengths: wp.array[wp.float64],
        begins: wp.array[wp.int32],
        faces: wp.array[wp.int32],
        times: wp.array[wp.float64],
        corners: wp.array[wp.vec3d],
        contacts: wp.array[ConvexContact],
    ):
        i = first + wp.tid()
        separation = lengths[0]
        moving.separation = separation
        moving.tolerance = lengths[1]
        m = moving_shape_bounds_of(moving, i, _ZERO, vec())
        a = shapes[wp.min(i, shapes.shape[0] - 1)]
        tolerance = wp.max(m.tolerance, mesh.tolerance)
        slack = m.slack + mesh.slack
        best = ConvexReach()
        hit = int(-1)
        until = _ONE + _ZERO
        k = begins[i]
        while k < begins[i + 1]:
            if times[k] > until:
                k = begins[i + 1]
            else:
                triangle = linear_triangle(mesh, faces[k])
                found = reached(m, a, points, triangle, i, corners, separation, tolerance, slack, times[k], until)
                if found.status != FREE and comes_before(found, faces[k], best, hit):
                    best = found
                    hit = faces[k]
                    until = found.time
                k += 1
        contact = ConvexContact()
        contact.time = _INFINITE
        contact.time_upper = _INFINITE
        contact.status = FREE
        if hit >= 0:
            contact = told(m, a, points, linear_triangle(mesh, hit), i, corners, separation, tolerance, slack, best)
        contact.triangle = hit
        contact.tolerance = tolerance
        contacts[i] = contact

    return deforming_contacts

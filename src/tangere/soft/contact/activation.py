"""What counts as a contact of a vertex and a face, and how far off (see `nearest_faces`).

Points of one body touch below a part of their distance at rest, so that a body at rest has no contacts. Walls of a cut
do not: they slide, and what was opposite at rest soon is not. They touch as two bodies do, where each is in front of
the other, below gaps that open with them (`friction_memory`).
Known as: the activation distance of a contact (the d-hat of Li et al. 2020).
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.closest_points import face_offset, nearest_on_face
from tangere.runtime import SOUND
from tangere.soft.model.assembled_bodies import CLOSED, STILL, WALL, SurfaceArrays

wp.set_module_options(SOUND)

#: Further than anything is looked for.
FAR = wp.constant(wp.float64(1.0e300))
#: Contacts are looked for up to this many activation distances away: they may come into reach within the step.
REACH = wp.constant(wp.float64(1.5))
#: Sine of the angle by which a surface may come nearer than its nearest point, for rounding.
_NEARER = wp.constant(wp.float64(1.0e-6))
#: A surface is flat where normals of faces, by area, add up to this part of it.
_FLAT = wp.constant(wp.float64(0.9999))
#: Points of one body touch below this part of their distance at rest.
REST_PART = wp.constant(wp.float64(0.5))
#: The part of the contact distance below which bodies touch at least, however near each other they were put.
LEAST_PART = 0.02


@wp.func
def activation(distance: wp.float64, apart_at_rest: wp.float64, same_body: bool) -> wp.float64:
    """The distance below which two points touch [m]."""
    if same_body:
        return wp.min(distance, REST_PART * apart_at_rest)
    return distance


@wp.func
def meets_wall(v: int, f0: int, f1: int, f2: int, surface: SurfaceArrays) -> bool:
    """Whether a vertex on a wall is asked about a face of its own body that is at the cut too."""
    at_cut = surface.traits[v] & (surface.traits[f0] | surface.traits[f1] | surface.traits[f2]) & WALL
    return at_cut != 0 and surface.body[v] == surface.body[f0]


@wp.func
def vertex_normal(v: int, positions: wp.array[wp.vec3d], surface: SurfaceArrays) -> wp.vec3d:
    """The normal weighted by area; its length means nothing."""
    total = wp.vec3d()
    for e in range(surface.face_ranges[v][0], surface.face_ranges[v][1]):
        f = surface.faces_at[e]
        a = positions[surface.faces[f, 0]]
        total += wp.cross(positions[surface.faces[f, 1]] - a, positions[surface.faces[f, 2]] - a)
    return total


@wp.func
def is_flat(v: int, positions: wp.array[wp.vec3d], surface: SurfaceArrays) -> bool:
    """Whether the faces at a vertex are in one plane, within about a degree."""
    total = wp.vec3d()
    sizes = wp.float64(0.0)
    for e in range(surface.face_ranges[v][0], surface.face_ranges[v][1]):
        f = surface.faces_at[e]
        a = positions[surface.faces[f, 0]]
        one = wp.cross(positions[surface.faces[f, 1]] - a, positions[surface.faces[f, 2]] - a)
        total += one
        sizes += wp.length(one)
    return wp.length(total) > _FLAT * sizes


@wp.func
def is_nearest_around(
    face: wp.vec3i, weights: wp.vec3d, offset: wp.vec3d, positions: wp.array[wp.vec3d], surface: SurfaceArrays
) -> bool:
    """Whether the nearest point of a face is also that of the faces around it.

    Else it is on an edge or at a corner within a surface that goes on, flat or hollow, and comes nearer: a neighbour
    touches, and this face would push aside what slides over it.

    Args:
        weights: of the nearest point. offset: the way from it to the point that is asked.
    """
    zero = wp.float64(0.0)
    if wp.min(wp.min(weights[0], weights[1]), weights[2]) > zero:
        return True
    first = int(-1)
    second = int(-1)
    nearest = wp.vec3d()
    for k in range(3):
        nearest += weights[k] * positions[face[k]]
        if weights[k] > zero:
            second = first
            first = face[k]
    for e in range(surface.face_ranges[first][0], surface.face_ranges[first][1]):
        f = surface.faces_at[e]
        corners = wp.vec3i(surface.faces[f, 0], surface.faces[f, 1], surface.faces[f, 2])
        if second < 0 or corners[0] == second or corners[1] == second or corners[2] == second:
            for k in range(3):
                if corners[k] != first and corners[k] != second:
                    way = positions[corners[k]] - nearest
                    if wp.dot(offset, way) > _NEARER * wp.length(offset) * wp.length(way):
                        return False
    return True


@wp.func
def contact_gap(
    v: int,
    normal: wp.vec3d,
    items: wp.array2d[int],
    j: int,
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    distance: wp.float64,
    least: wp.vec2d,
) -> wp.float64:
    """The gap of a vertex to the face at place j, negative if the face is behind it; `FAR` if that is no contact.

    Or if it is more than the least gap so far, in front or behind.
    """
    f0 = items[j, 0]
    f1 = items[j, 1]
    f2 = items[j, 2]
    both = surface.traits[v] & surface.traits[f0]
    if f0 == v or f1 == v or f2 == v or (both & surface.traits[f1] & surface.traits[f2] & STILL) != 0:
        return FAR
    p = positions[v]
    a = positions[f0]
    b = positions[f1]
    c = positions[f2]
    walls = meets_wall(v, f0, f1, f2, surface)
    if (both & CLOSED) != 0 or walls:
        if wp.dot(normal, wp.cross(b - a, c - a)) > wp.float64(0.0):
            return FAR
    w = nearest_on_face(p, a, b, c)
    offset = face_offset(p, a, b, c, w)
    gap = wp.length(offset)
    apart = wp.float64(0.0)
    same_body = surface.body[v] == surface.body[f0] and not walls
    if same_body:
        apart = wp.length(face_offset(surface.rest[v], surface.rest[f0], surface.rest[f1], surface.rest[f2], w))
    if not (gap < REACH * activation(distance, apart, same_body)):
        return FAR
    behind = wp.dot(offset, normal) > wp.float64(0.0)
    if behind and walls:
        return FAR
    if gap > wp.where(behind, least[1], least[0]):
        return FAR
    if not is_nearest_around(wp.vec3i(f0, f1, f2), w, offset, positions, surface):
        return FAR
    return wp.where(behind, -gap, gap)

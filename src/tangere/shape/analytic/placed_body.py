"""A placed body as kernels see it, and how far it reaches in a direction.

All coordinates are relative to the body's origin, along the axes of the world. The functions come in one per kind, so
that a kernel made for one kind carries nothing of the others (`support_of`, `bounds_of`).
Known as: support points and support functions of convex bodies, as GJK asks for them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND, InputError
from tangere.shape.analytic.bodies import CYLINDER, AnalyticShape
from tangere.shape.analytic.hull import Hull

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_FAR = wp.constant(real(1.0e300))
#: A direction with less than this part of it across an axis is along the axis: the part is rounding, 2^-53 a term.
_NOISE = wp.constant(real(4.0 * 2.0**-53))


@wp.struct
class Hulls:
    """The tables of a batch of HULL bodies: see `hull.Hull`."""

    corners: wp.array[wp.vec3d]
    edges: wp.array[wp.vec4i]
    planes: wp.array[wp.vec4d]
    size: wp.float64  # the largest coordinate of a corner: 1 of a box, which `half` makes one


@wp.struct
class PlacedBody:
    """A body of any kind, turned as it is in the world."""

    radius: wp.float64
    reach: wp.float64  #: half the length along the axis
    axis: wp.vec3d  #: unit; of a body that is the same upside down, the end that points up
    side: wp.vec3d  #: unit, across the axis; changes little when the axis does
    half: wp.vec3d  #: what the table of a hull is scaled by
    rotation: wp.mat33d


@wp.struct
class PlacedBounds:
    """A box along the axes of the world."""

    lower: wp.vec3d
    upper: wp.vec3d


@wp.func
def place(shape: AnalyticShape, pose: wp.mat44d) -> PlacedBody:
    """The body turned as `pose` says; of a symmetric body both ways up give the same bits."""
    body = PlacedBody()
    body.radius = shape.radius
    body.reach = shape.half[2]
    body.half = shape.half
    body.rotation = wp.mat33d(
        pose[0, 0], pose[0, 1], pose[0, 2], pose[1, 0], pose[1, 1], pose[1, 2], pose[2, 0], pose[2, 1], pose[2, 2]
    )
    axis = vec(pose[0, 2], pose[1, 2], pose[2, 2])
    if shape.kind <= CYLINDER:
        down = axis[2] < _ZERO
        if axis[2] == _ZERO:
            down = axis[1] < _ZERO or (axis[1] == _ZERO and axis[0] < _ZERO)
        if down:
            axis = -axis
    body.axis = axis
    body.side = perpendicular_to(axis)
    return body


@wp.func
def perpendicular_to(n: vec) -> vec:
    """A unit vector across n that changes little when n does."""
    e = vec(_ONE, _ZERO, _ZERO)
    if wp.abs(n[0]) > real(0.7):
        e = vec(_ZERO, _ONE, _ZERO)
    return wp.normalize(e - wp.dot(e, n) * n)


@cache
def hull_tables(hull: Hull, device: str) -> Any:
    """The tables of a hull on a device, by its alias."""
    tables: Any = Hulls()
    tables.corners = wp.array(hull.corners, dtype=wp.vec3d, device=device)
    tables.edges = wp.array(hull.edges, dtype=wp.vec4i, device=device)
    tables.planes = wp.array(hull.planes, dtype=wp.vec4d, device=device)
    tables.size = float(np.abs(hull.corners).max())
    return tables


def support_of(kind: int) -> wp.Function:
    """`support(body, hulls, u) -> vec3d`: the point of the body that is farthest along u, of length 1e-100 to 1e100."""
    return function_for_kind(kind, _round_support, _cylinder_support, _cone_support, _hull_support)


def support_value_of(kind: int) -> wp.Function:
    """`reach(body, hulls, u) -> float64`: the largest u.p of the body's points p; cheaper than the point, and exact."""
    return function_for_kind(kind, _round_reach, _cylinder_reach, _cone_reach, _hull_reach)


def bounds_of(kind: int) -> wp.Function:
    """`bounds(body, hulls) -> Bounds`: the smallest box along the axes of the world."""
    return function_for_kind(kind, _round_bounds, _cylinder_bounds, _cone_bounds, _hull_bounds)


def function_for_kind(kind: int, *of: wp.Function) -> wp.Function:
    """The function for a kind, of those for ROUND, CYLINDER, CONE and HULL."""
    if not 0 <= kind < len(of):
        raise InputError(f"kind must be ROUND, CYLINDER, CONE or HULL, not {kind}")
    return of[kind]


# -- how far a body reaches -------------------------------------------------------------------------------------------


@wp.func
def _round_support(body: PlacedBody, hulls: Hulls, u: vec) -> vec:
    return wp.where(wp.dot(u, body.axis) < _ZERO, -body.reach, body.reach) * body.axis + body.radius * wp.normalize(u)


@wp.func
def radial_direction(u: vec, axis: vec) -> vec:
    """The unit vector across the axis that is nearest to u; zero where u is along the axis up to rounding."""
    e = u - (wp.dot(u, axis) / wp.dot(axis, axis)) * axis
    rest = wp.length(e)
    if rest <= _NOISE * wp.length(u):
        return vec()
    e = e / rest
    # What rounding has left along the axis has grown with the division: without this the rim would be off the body.
    e = e - (wp.dot(e, axis) / wp.dot(axis, axis)) * axis
    return e / wp.length(e)


@wp.func
def _cylinder_support(body: PlacedBody, hulls: Hulls, u: vec) -> vec:
    end = wp.where(wp.dot(u, body.axis) < _ZERO, -body.reach, body.reach)
    return end * body.axis + body.radius * radial_direction(u, body.axis)


@wp.func
def _cone_support(body: PlacedBody, hulls: Hulls, u: vec) -> vec:
    rim = -body.reach * body.axis + body.radius * radial_direction(u, body.axis)
    tip = body.reach * body.axis
    return wp.where(wp.dot(u, tip) > wp.dot(u, rim), tip, rim)


@wp.func
def _hull_support(body: PlacedBody, hulls: Hulls, u: vec) -> vec:
    along = wp.cw_mul(wp.transpose(body.rotation) * u, body.half)
    best = int(0)
    most = -_FAR
    for k in range(hulls.corners.shape[0]):
        here = wp.dot(along, hulls.corners[k])
        if here > most:
            most = here
            best = k
    return body.rotation * wp.cw_mul(body.half, hulls.corners[best])


@wp.func
def _round_reach(body: PlacedBody, hulls: Hulls, u: vec) -> real:
    return body.reach * wp.abs(wp.dot(u, body.axis)) + body.radius * wp.length(u)


@wp.func
def _cylinder_reach(body: PlacedBody, hulls: Hulls, u: vec) -> real:
    return body.reach * wp.abs(wp.dot(u, body.axis)) + body.radius * wp.length(wp.cross(u, body.axis))


@wp.func
def _cone_reach(body: PlacedBody, hulls: Hulls, u: vec) -> real:
    tip = body.reach * wp.dot(u, body.axis)
    return wp.max(tip, body.radius * wp.length(wp.cross(u, body.axis)) - tip)


@wp.func
def _hull_reach(body: PlacedBody, hulls: Hulls, u: vec) -> real:
    along = wp.cw_mul(wp.transpose(body.rotation) * u, body.half)
    most = -_FAR
    for k in range(hulls.corners.shape[0]):
        most = wp.max(most, wp.dot(along, hulls.corners[k]))
    return most


@wp.func
def _both_ways(extent: vec) -> PlacedBounds:
    bounds = PlacedBounds()
    bounds.lower = -extent
    bounds.upper = extent
    return bounds


@wp.func
def _disc_extent(v: vec, radius: real) -> vec:
    """Half the sides of the box of a disc across v.

    Upright ones are no special case: the one that Strashnov and Torgashev 2020, section III, make is too small (ERR-1).
    """
    x = v[0] * v[0]
    y = v[1] * v[1]
    z = v[2] * v[2]
    return radius * vec(wp.sqrt(y + z), wp.sqrt(x + z), wp.sqrt(x + y))


@wp.func
def _round_bounds(body: PlacedBody, hulls: Hulls) -> PlacedBounds:
    return _both_ways(body.reach * wp.abs(body.axis) + vec(body.radius, body.radius, body.radius))


@wp.func
def _cylinder_bounds(body: PlacedBody, hulls: Hulls) -> PlacedBounds:
    return _both_ways(body.reach * wp.abs(body.axis) + _disc_extent(body.axis, body.radius))


@wp.func
def _cone_bounds(body: PlacedBody, hulls: Hulls) -> PlacedBounds:
    tip = body.reach * body.axis
    disc = _disc_extent(body.axis, body.radius)
    bounds = PlacedBounds()
    bounds.lower = wp.min(tip, -tip - disc)
    bounds.upper = wp.max(tip, disc - tip)
    return bounds


@wp.func
def _hull_bounds(body: PlacedBody, hulls: Hulls) -> PlacedBounds:
    bounds = _both_ways(vec(-_FAR, -_FAR, -_FAR))
    for k in range(hulls.corners.shape[0]):
        p = body.rotation * wp.cw_mul(body.half, hulls.corners[k])
        bounds.lower = wp.min(bounds.lower, p)
        bounds.upper = wp.max(bounds.upper, p)
    return bounds

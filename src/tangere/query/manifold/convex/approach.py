"""The nearest points of two bodies, signed: which pairs are near, and along which normal."""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.gjk import gjk_of
from tangere.query.distance.convex.narrow_phase import closest_of, first_guess, rotation_of, translation_of
from tangere.query.distance.convex.result import Closest, sought_to
from tangere.query.distance.convex.supports import CURVED, ROUNDED, ConvexKind, ConvexShape, core_value_of, margin_of
from tangere.query.manifold.convex.closed_forms import (
    WayOut,
    box_in_box,
    direction_across_of,
    point_in,
    segment_in_box,
)
from tangere.query.manifold.convex.features import HullFaces, NearPair
from tangere.query.manifold.convex.penetration import Penetration
from tangere.query.manifold.convex.segment_depths import segment_in_cone, segment_in_cylinder, segment_in_hull
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Cores nearer than this part of the bodies' size are looked at as if they overlapped.
TOUCHING = wp.constant(real(1.0e-8))
#: What an approach says of a pair: farther than asked, near, or cores that meet, whose way out no formula tells.
APART = wp.constant(0)
NEAR = wp.constant(1)
MEET = wp.constant(2)
#: Cores whose middles are farther apart than this part of their reaches are so too, by more than TOUCHING.
_NEAR_ENOUGH = wp.constant(real(1.001))
#: Differences of points that are nearer than this part of the bodies' size have too few digits for a direction.
_NEARLY = wp.constant(real(1.0e-5))
_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))


_SEGMENT_IN = {
    ConvexKind.BOX: segment_in_box,
    ConvexKind.CYLINDER: segment_in_cylinder,
    ConvexKind.CONE: segment_in_cone,
    ConvexKind.HULL: segment_in_hull,
}


def way_out_of(kind_a: int, kind_b: int) -> wp.Function | None:
    """`way_out(a, points_a, b, points_b, faces_b, rotation, offset) -> WayOut`; None where there is no formula.

    `faces_b` are those of a hull.
    """
    if kind_a == ConvexKind.POINT and kind_b in _SEGMENT_IN:
        return point_in(kind_b)
    if kind_a == ConvexKind.SEGMENT and kind_b in _SEGMENT_IN:
        return _SEGMENT_IN[ConvexKind(kind_b)]
    if kind_a == kind_b == ConvexKind.BOX:
        return box_in_box
    return None


@wp.func
def _no_way_out(
    a: ConvexShape,
    points_a: wp.array[wp.vec3d],
    b: ConvexShape,
    points_b: wp.array[wp.vec3d],
    faces_b: HullFaces,
    rotation: wp.mat33d,
    offset: vec,
) -> WayOut:
    found = WayOut()
    found.depth = -_ONE
    return found


@cache
def approach_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """What is known of n pairs of two kinds before their features are, and APART, NEAR or MEET of each.

    `faces_b` are those of a hull. Near is what is not farther than `given`, or, if that is negative, than a `part` of
    the bodies' size.
    """
    closest = closest_of(kind_a, kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)
    value_a, value_b = core_value_of(kind_a), core_value_of(kind_b)
    formula, direction_across = way_out_of(kind_a, kind_b), direction_across_of(kind_a, kind_b)
    way_out = _no_way_out if formula is None else formula
    solid = wp.constant(int(formula is not None))
    thin = wp.constant(int(kind_b in ROUNDED))
    lines = wp.constant(int(kind_a == kind_b == ConvexKind.SEGMENT))
    curved = wp.constant(int(kind_a not in ROUNDED and (kind_a in CURVED or kind_b in CURVED)))
    descend = gjk_of(kind_a, kind_b)
    # All directions part two points; others that nearly meet part across both, since differences have few digits left.
    touching = wp.constant(real(0.0 if kind_a == kind_b == ConvexKind.POINT else TOUCHING))
    # The frame of a point or a segment may lie as the world's does: a matrix product less.
    upright = wp.constant(int(kind_a in ROUNDED))

    @wp.kernel(module="unique", module_options=SOUND)
    def approaches(
        first: int,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        shapes_b: wp.array[ConvexShape],
        points_b: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        faces_b: HullFaces,
        accuracy: real,
        given: real,
        part: real,
        pairs: wp.array[NearPair],
        near: wp.array[wp.uint8],
    ):
        i = first + wp.tid()
        a = shapes_a[wp.min(i, shapes_a.shape[0] - 1)]
        b = shapes_b[wp.min(i, shapes_b.shape[0] - 1)]
        pose_a = poses_a[wp.min(i, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(i, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        rotation = rotation_of(pose_b)
        offset = translation_of(pose_b) - translation_of(pose_a)
        if upright != 0:
            a.axis = vec(pose_a[0, 2], pose_a[1, 2], pose_a[2, 2])
        else:
            rotation = wp.transpose(turned) * rotation
            offset = offset * turned
        margins = margin_a(a) + margin_b(b)
        size = a.reach + b.reach + margins
        told = NEAR
        parted = sought_to(_ZERO)
        parted.enough = _ZERO
        out = WayOut()
        point_b = vec()
        together = _NEAR_ENOUGH * (a.reach + b.reach)
        if solid != 0 and wp.length_sq(offset) <= together * together:
            out = way_out(a, points_a, b, points_b, faces_b, rotation, offset)
            point_b = out.point_a + out.depth * out.normal
        inner = a.inner + b.inner
        if solid == 0 and a.inner > _ZERO and b.inner > _ZERO and wp.length_sq(offset) < inner * inner:
            told = MEET  # balls within them do
        elif solid == 0 or out.depth <= TOUCHING * size:
            found = Closest()
            guess = first_guess(offset)
            if (
                curved != 0
            ):  # whether they overlap, which a search for the distance of curved bodies is slow to find out
                found = descend(a, points_a, b, points_b, rotation, offset, guess, parted)
                if not found.meet:
                    guess = found.normal
            if not found.meet:
                found = closest(a, points_a, b, points_b, rotation, offset, guess, sought_to(accuracy * size))
            apart = wp.dot(found.point_a - found.point_b, found.normal)
            if found.meet or apart <= touching * size:
                # Faces know the normal better than differences of points that nearly meet.
                if thin != 0:
                    n = direction_across(a, rotation, found.point_a - found.point_b)
                    out.normal = n
                    out.depth = value_a(a, points_a, -n) + value_b(b, points_b, n * rotation) + wp.dot(n, offset)
                    out.point_a = found.point_a
                    point_b = found.point_b
                elif solid == 0:
                    told = MEET
                    out.normal = vec()
                    out.depth = _ZERO
                    out.point_a = found.point_a
                    point_b = found.point_b
            else:
                out.normal = found.normal
                out.depth = -apart
                out.point_a = found.point_a
                point_b = found.point_b
            if lines != 0 and apart <= _NEARLY * size and apart < margins:
                # Differences of axes that all but meet have few digits: what parts them is across both, or, if they are
                # parallel, across one, from the other.
                n = out.normal
                past = value_a(a, points_a, -n) + value_b(b, points_b, n * rotation) + wp.dot(n, offset)
                out.depth = wp.max(out.depth, past)
                k = int(0)
                while k < 2:
                    n = -offset
                    if k == 0:
                        n = direction_across(a, rotation, found.point_a - found.point_b)
                    n = wp.normalize(n - wp.dot(n, a.axis) * a.axis)
                    past = value_a(a, points_a, -n) + value_b(b, points_b, n * rotation) + wp.dot(n, offset)
                    if past < out.depth and wp.length_sq(n) > _ZERO:
                        out.depth = past
                        out.normal = n
                    k += 1
        n = out.normal
        pair = NearPair()
        pair.row = i
        pair.size = size
        pair.margin_a = margin_a(a)
        pair.margin_b = margin_b(b)
        pair.gap = -out.depth - margins
        pair.point_a = out.point_a - pair.margin_a * n
        pair.point_b = point_b + pair.margin_b * n
        pair.normal = n
        if upright == 0:
            pair.point_a = turned * pair.point_a
            pair.point_b = turned * pair.point_b
            pair.normal = turned * n
        if told == NEAR and pair.gap > wp.where(given < _ZERO, part * size, given):
            told = APART
        pairs[i] = pair
        near[i] = wp.uint8(told)

    return approaches


@wp.kernel
def take_ways_out(
    first: int,
    rows: wp.array[int],
    found: wp.array[Penetration],
    origins: wp.array[wp.mat44d],
    pairs: wp.array[NearPair],
):
    """Write what was found about overlapping cores."""
    i = first + wp.tid()
    row = rows[i]
    way = found[i]
    pair = pairs[row]
    origin = translation_of(origins[wp.min(row, origins.shape[0] - 1)])
    pair.point_a = way.point_a - origin
    pair.point_b = way.point_b - origin
    pair.normal = way.normal
    pair.gap = -way.depth - pair.margin_a - pair.margin_b
    pair.point_a -= pair.margin_a * way.normal
    pair.point_b += pair.margin_b * way.normal
    pairs[row] = pair

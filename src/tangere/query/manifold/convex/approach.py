"""The nearest points of two bodies, signed: which pairs are near, and along which normal."""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.distance.convex.narrow_phase import closest_of, first_guess, rotation_of, translation_of
from tangere.query.distance.convex.result import sought_to
from tangere.query.distance.convex.supports import ConvexShape, margin_of
from tangere.query.manifold.convex.clipping import NearPair
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64

#: Cores nearer than this part of the bodies' size are looked at as if they overlapped.
TOUCHING = wp.constant(real(1.0e-8))


@cache
def approach_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """What is known of n pairs of two kinds before their features are; `meet` is 1 where cores meet, or nearly."""
    closest = closest_of(kind_a, kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)

    @wp.kernel(module="unique", module_options=SOUND)
    def approaches(
        first: int,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        poses_a: wp.array[wp.mat44d],
        shapes_b: wp.array[ConvexShape],
        points_b: wp.array[wp.vec3d],
        poses_b: wp.array[wp.mat44d],
        accuracy: real,
        pairs: wp.array[NearPair],
        meet: wp.array[wp.uint8],
    ):
        i = first + wp.tid()
        a = shapes_a[wp.min(i, shapes_a.shape[0] - 1)]
        b = shapes_b[wp.min(i, shapes_b.shape[0] - 1)]
        pose_a = poses_a[wp.min(i, poses_a.shape[0] - 1)]
        pose_b = poses_b[wp.min(i, poses_b.shape[0] - 1)]
        turned = rotation_of(pose_a)
        rotation = wp.transpose(turned) * rotation_of(pose_b)
        offset = (translation_of(pose_b) - translation_of(pose_a)) * turned
        pair = NearPair()
        pair.row = i
        pair.margin_a = margin_a(a)
        pair.margin_b = margin_b(b)
        pair.size = a.reach + pair.margin_a + b.reach + pair.margin_b
        found = closest(
            a, points_a, b, points_b, rotation, offset, first_guess(offset), sought_to(accuracy * pair.size)
        )
        n = found.normal
        apart = wp.dot(found.point_a - found.point_b, n)
        pair.gap = apart - pair.margin_a - pair.margin_b
        pair.normal = turned * n
        pair.point_a = turned * (found.point_a - pair.margin_a * n)
        pair.point_b = turned * (found.point_b + pair.margin_b * n)
        pairs[i] = pair
        # Differences of points that nearly meet have few digits left: faces know the normal better.
        meet[i] = wp.uint8(wp.where(found.meet or apart <= TOUCHING * pair.size, 1, 0))

    return approaches

"""One pair of bodies on the CPU: all phases over arrays that stay, in launches whose arguments stay packed.

A Warp array costs some 15 us, a launch as much, and the phases of a pair take a few microseconds in all; so what they
read and write is kept, by each thread, for each two kinds and hulls, and shapes and poses are copied into it. The
kernels are those of many pairs (`batch`), so the answers have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from tangere.query.distance.convex.bodies import KEPT_BODIES, PlacedBodies, convex_kind, shape_records
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.query.manifold.convex.approach import APART, MEET, approach_kernel, take_ways_out
from tangere.query.manifold.convex.batch import (
    ACCURACY,
    DEPTH_ACCURACY,
    DEPTH_ENOUGH,
    MARGIN,
    ROOM,
    empty_polytopes,
    hull_faces,
    penetrations,
)
from tangere.query.manifold.convex.clipping import ManifoldPoint, clip_features, single_contacts
from tangere.query.manifold.convex.features import NearPair, empty_features, feature_kernel, most_sides
from tangere.query.manifold.convex.penetration import NO_ROOM, PROVED, Penetration, mending_kernel, penetration_kernel
from tangere.runtime import LaunchCache, PreparedLaunch
from tangere.shape.analytic import hull_tables

#: Contacts that a pair has room for at first.
CONTACTS = 64
#: Kinds of pairs for which arrays are kept, by each thread.
KEPT_KINDS = 32

_records = LaunchCache(shape_records, most=KEPT_BODIES)


def manifold_of_one(a: PlacedBodies, b: PlacedBodies, distance: float | None) -> tuple[np.ndarray, bool]:
    """`ManifoldPoint` records of a body and another at one pose each, and whether b was taken first."""
    kinds = [convex_kind(side.shape) for side in (a, b)]
    swapped = kinds[0] > kinds[1]
    if swapped:
        a, b, kinds = b, a, kinds[::-1]
    pair = _pairs.of(*kinds, a.shape.hull, b.shape.hull)
    for side, kind, shape, pose in zip((a, b), kinds, pair.shapes, pair.poses, strict=True):
        shape[:] = _records.of(side.shape.records, kind, side.shape.hull)
        pose[:] = side.poses
    return pair.answer(-1.0 if distance is None else float(distance)), swapped


class PreparedBodyPair:
    """The phases of one pair of two kinds, at shapes and poses that are written from call to call."""

    def __init__(self, kind_a: ConvexKind, kind_b: ConvexKind, hull_a: Any, hull_b: Any) -> None:
        self._cpu = wp.get_device("cpu")
        self._kinds, self._hulls = (kind_a, kind_b), (hull_a, hull_b)
        shapes, poses = ([wp.zeros(1, dtype=dtype, device="cpu") for _ in "ab"] for dtype in (ConvexShape, wp.mat44d))
        self.shapes, self.poses = ([array.numpy() for array in arrays] for arrays in (shapes, poses))
        points = [hull_tables(hull, "cpu").corners for hull in self._hulls]
        self._inputs = [shapes[0], points[0], poses[0], shapes[1], points[1], poses[1]]
        self._record = wp.zeros(1, dtype=NearPair, device="cpu")
        self._flag, self._first, self._count = (
            wp.zeros(1, dtype=dtype, device="cpu") for dtype in (wp.uint8, wp.int32, wp.int32)
        )
        self._told, self._counted = self._flag.numpy(), self._count.numpy()
        self._features = [
            empty_features(1, most_sides(*of), self._cpu) for of in zip(self._kinds, self._hulls, strict=True)
        ]
        self._find_features = [self._finding(side) for side in (0, 1) if self._kinds[side] != ConvexKind.POINT]
        self._limit, self._room = -1.0, CONTACTS
        self._prepare()

    def answer(self, limit: float) -> np.ndarray:
        """`ManifoldPoint` records of what is nearer than a limit; if that is negative, than `MARGIN` of the size."""
        if limit != self._limit:
            self._limit = limit
            self._prepare()
        self._approach()
        if self._told[0] == APART:
            return self._points[:0].copy()
        if self._told[0] == MEET:
            self._take_way_out()
        for find in self._find_features:
            find()
        if self._kinds[0] == ConvexKind.POINT:
            self._clip()
            return self._points[:1].copy()
        self._counted[0] = self._room
        self._clip()
        if self._counted[0] > self._room:
            self._room = 2 * int(self._counted[0])
            self._prepare()
            self._counted[0] = self._room
            self._clip()
        return self._points[: self._counted[0]].copy()

    def _launch(self, kernel: wp.Kernel, *arguments: Any) -> Callable[[], None]:
        return PreparedLaunch(kernel, arguments, self._cpu).block.prepared(1)

    def _prepare(self) -> None:
        """What depends on the limit and on the room."""
        self._approach = self._launch(
            approach_kernel(*self._kinds),
            *self._inputs,
            hull_faces(self._hulls[1], self._cpu),
            ACCURACY,
            self._limit,
            MARGIN,
            self._record,
            self._flag,
        )
        found = wp.empty(self._room, dtype=ManifoldPoint, device="cpu")
        near, origins = (self._first, self._record), self._inputs[2]
        if self._kinds[0] == ConvexKind.POINT:
            self._clip = self._launch(single_contacts, *near, self._features[1].number, origins, found)
        else:
            limits = self._limit, MARGIN
            written = self._count, found, self._first, found
            self._clip = self._launch(clip_features, *near, *self._features, origins, *limits, *written)
        self._points = found.numpy()

    def _finding(self, side: int) -> Callable[[], None]:
        """What finds the feature of a body that faces the other."""
        shape, points, pose = self._inputs[3 * side : 3 * side + 3]
        body = shape, points, hull_faces(self._hulls[side], self._cpu), pose, self._inputs[2]
        listed = self._features[side]
        return self._launch(
            feature_kernel(self._kinds[side]), self._first, self._record, *body, (-1.0, 1.0)[side], listed
        )

    def _take_way_out(self) -> None:
        """Write down the way out of cores that meet."""
        self._search_way_out()
        found = self._way_out[0]
        if found["room"] == NO_ROOM:
            self._way_out[:] = penetrations(self._kinds, self._inputs, np.zeros(1, np.int32), self._cpu)
        elif found["room"] != PROVED or found["beside"] != 0:
            self._mend_way_out()
        self._write_way_out()

    @cached_property
    def _penetration(self) -> wp.array:
        return wp.empty(1, dtype=Penetration, device="cpu")

    @cached_property
    def _way_out(self) -> np.ndarray:
        return self._penetration.numpy()

    @cached_property
    def _search_way_out(self) -> Callable[[], None]:
        arguments = *self._inputs, DEPTH_ACCURACY, DEPTH_ENOUGH, empty_polytopes(1, ROOM, self._cpu)
        return self._launch(penetration_kernel(*self._kinds), self._first, *arguments, self._penetration)

    @cached_property
    def _mend_way_out(self) -> Callable[[], None]:
        arguments = self._first, self._first, *self._inputs, DEPTH_ENOUGH, self._penetration
        return self._launch(mending_kernel(*self._kinds), *arguments)

    @cached_property
    def _write_way_out(self) -> Callable[[], None]:
        return self._launch(take_ways_out, self._first, self._penetration, self._inputs[2], self._record)


_pairs = LaunchCache(PreparedBodyPair, most=KEPT_KINDS)

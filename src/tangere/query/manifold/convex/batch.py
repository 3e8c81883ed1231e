"""Contacts of many pairs of convex bodies: the phases, each a launch over all pairs that it concerns.

Method: nearest points tell which pairs are near (`approach`); of those whose cores meet polytopes tell the way out
        (`penetration`), in memory that grows where it does not suffice; the features of the near ones are counted, then
        written (`clipping`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.query.distance.convex.bodies import ConvexBodies
from tangere.query.distance.convex.supports import ConvexKind
from tangere.query.manifold.convex.approach import MEET, approach_kernel, take_ways_out
from tangere.query.manifold.convex.clipping import ManifoldPoint, clip_features, single_contacts
from tangere.query.manifold.convex.features import HullFaces, NearPair, empty_features, feature_kernel, most_sides
from tangere.query.manifold.convex.penetration import NO_ROOM, PROVED, Penetration, mending_kernel, penetration_kernel
from tangere.query.manifold.convex.polytope import KEPT, Polytopes
from tangere.runtime import launch, thread_count
from tangere.shape.analytic import Analytic, hull_tables

#: Gaps up to this part of the bodies' size count as contacts, unless a distance is given.
MARGIN = 0.01
#: Nearest points are as exact as this, relative to the bodies' size, and depths as this, or the last where rounding
#: does not let them be.
ACCURACY, DEPTH_ACCURACY, DEPTH_ENOUGH = 1e-9, 5e-10, 1e-9
#: Pairs worth a thread; polytopes on CUDA and of a CPU thread: few, since memory that is touched for the first time
#: costs as much as a search, and several, since some searches are long.
GRAIN, TOGETHER, A_THREAD = 512, 16384, 8
#: Corners that a polytope has room for at first; where that does not suffice, four times as many, up to the last.
ROOM, MORE_ROOM, MOST_ROOM = 192, 4, 3072


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of bodies on a device, and which of them are near."""

    records: wp.array  #: (n,) `NearPair`
    chosen: wp.array  #: (m,) rows of the records

    @property
    def device(self) -> wp.Device:
        return self.records.device

    @staticmethod
    def of(records: np.ndarray, device: wp.Device) -> NearPairs:
        """All of some `NearPair` records."""
        on_device = wp.array(records, dtype=NearPair, device=device, copy=not device.is_cpu)
        return NearPairs(on_device, wp.array(np.arange(len(records), dtype=np.int32), dtype=wp.int32, device=device))


def near_pairs(
    kinds: tuple[ConvexKind, ConvexKind],
    inputs: list[Any],
    faces_b: Any,
    count: int,
    distance: float | None,
    device: wp.Device,
) -> NearPairs:
    """The pairs that are near enough, with the way out of those whose cores overlap; `faces_b` are those of a hull."""
    records = wp.empty(count, dtype=NearPair, device=device)
    flags = wp.empty(count, dtype=wp.uint8, device=device)
    limit = -1.0 if distance is None else float(distance)
    launch(
        approach_kernel(*kinds),
        count,
        [*inputs, faces_b, ACCURACY, limit, MARGIN],
        [records, flags],
        device=device,
        grain=GRAIN,
    )
    told = flags.numpy()
    deep = np.flatnonzero(told == MEET).astype(np.int32)
    if len(deep):
        found = wp.array(penetrations(kinds, inputs, deep, device), dtype=Penetration, device=device)
        rows = wp.array(deep, dtype=wp.int32, device=device)
        launch(take_ways_out, len(deep), [rows, found, inputs[2], records], device=device, grain=GRAIN)
    return NearPairs(records, wp.array(np.flatnonzero(told).astype(np.int32), dtype=wp.int32, device=device))


def penetrations(
    kinds: tuple[ConvexKind, ConvexKind], inputs: list[Any], rows: np.ndarray, device: wp.Device
) -> np.ndarray:
    """`Penetration` records of some pairs; polytopes get as much room as they need."""
    answers = np.zeros(0, Penetration.numpy_dtype())
    which, room = np.arange(len(rows)), ROOM
    while len(which) and room <= MOST_ROOM:  # beyond, rounding has spoilt them: the least way seen parts the bodies
        together = TOGETHER if device.is_cuda else A_THREAD * thread_count()
        scratch = empty_polytopes(min(len(which), max(together * ROOM // room, 1)), room, device)
        found = wp.empty(len(which), dtype=Penetration, device=device)
        chosen = wp.array(rows[which].astype(np.int32), dtype=wp.int32, device=device)
        arguments = [chosen, *inputs, DEPTH_ACCURACY, DEPTH_ENOUGH, scratch]
        launch(penetration_kernel(*kinds), len(scratch.corners) // room, arguments, [found], device=device, grain=1)
        if room == ROOM:
            answers = found.numpy()
        else:
            answers[which] = found.numpy()
        which, room = which[answers["room"][which] == NO_ROOM], MORE_ROOM * room
    again = np.flatnonzero((answers["room"] != PROVED) | (answers["beside"] != 0))
    if len(again):
        chosen, which, found = (
            wp.array(np.ascontiguousarray(each), dtype=dtype, device=device)
            for each, dtype in ((rows, wp.int32), (again.astype(np.int32), wp.int32), (answers, Penetration))
        )
        launch(mending_kernel(*kinds), len(again), [chosen, which, *inputs, DEPTH_ENOUGH], [found], device=device)
        answers = found.numpy()
    return answers


def empty_polytopes(count: int, room: int, device: wp.Device) -> Any:
    """Polytopes with room for so many corners each."""
    scratch: Any = Polytopes()
    scratch.room = room
    scratch.corners, scratch.own = (wp.empty(count * room, dtype=wp.vec3d, device=device) for _ in "ab")
    many = {"faces": wp.vec3i, "planes": wp.vec4d, "distances": wp.float64, "sides": wp.int32, "gone": wp.int32}
    for name, dtype in many.items():
        setattr(scratch, name, wp.empty(2 * count * room, dtype=dtype, device=device))
    scratch.cones = wp.empty(KEPT * count, dtype=wp.vec4d, device=device)
    return scratch


def hull_faces(hull: Any, device: wp.Device) -> Any:
    """The tables of a hull; empty ones for other bodies."""
    faces: Any = HullFaces()
    tables = hull_tables(hull, device.alias)
    faces.edges, faces.planes = tables.edges, tables.planes
    return faces


def body_features(
    near: NearPairs, toward: float, shape: Analytic, bodies: ConvexBodies, poses: wp.array, origins: wp.array
) -> Any:
    """`Features` of the bodies of near pairs that face `toward` times their normals."""
    count, device = len(near.chosen), near.device
    listed = empty_features(count, most_sides(bodies.kind, shape.hull), device)
    hull = hull_faces(shape.hull, device)
    inputs = [near.chosen, near.records, bodies.shapes, bodies.points, hull, poses, origins, toward, listed]
    launch(feature_kernel(bodies.kind), count, inputs, device=device, grain=GRAIN)
    return listed


def clipped(near: NearPairs, features: list[Any], origins: wp.array, distance: float | None) -> np.ndarray:
    """`ManifoldPoint` records of near pairs whose `Features` of a and b are known."""
    count, device = len(near.chosen), near.device
    if not count:
        return np.zeros(0, ManifoldPoint.numpy_dtype())
    limit = -1.0 if distance is None else float(distance)
    counts = wp.empty(count, dtype=wp.int32, device=device)
    firsts = wp.empty(count, dtype=ManifoldPoint, device=device)
    none, nowhere = wp.zeros(0, dtype=ManifoldPoint, device=device), wp.zeros(0, dtype=wp.int32, device=device)
    inputs = [near.chosen, near.records, *features, origins, limit, MARGIN, counts]
    launch(clip_features, count, [*inputs, none, nowhere, firsts], device=device, grain=GRAIN)
    told = counts.numpy()
    if (told == 1).all():
        return firsts.numpy()
    ends = np.cumsum(told)
    offsets = wp.array((ends - told).astype(np.int32), dtype=wp.int32, device=device)
    out = wp.empty(int(ends[-1]), dtype=ManifoldPoint, device=device)
    launch(clip_features, count, [*inputs, firsts, offsets, out], device=device, grain=GRAIN)
    return out.numpy()


def contacts_of_points(near: NearPairs, bodies: ConvexBodies, shape: Analytic, poses: list[wp.array]) -> np.ndarray:
    """`ManifoldPoint` records of spheres and other bodies: one for each near pair."""
    count, device = len(near.chosen), near.device
    if bodies.kind == ConvexKind.POINT:
        numbers = wp.zeros(1, dtype=wp.int32, device=device)
    else:
        numbers = body_features(near, 1.0, shape, bodies, poses[1], poses[0]).number
    out = wp.empty(count, dtype=ManifoldPoint, device=device)
    launch(single_contacts, count, [near.chosen, near.records, numbers, poses[0]], [out], device=device, grain=GRAIN)
    return out.numpy()

"""Contact manifolds of two convex analytic bodies: where they lie on each other, all of it.

Question: at which points do two bodies touch or nearly touch, how deep, and which way is out?
Method:   nearest points give the normal (`approach`); where cores overlap it is the nearest way out (`penetration`).
          The faces, lines or points that face each other along it (`features`) are laid over each other (`clipping`).
Sound:    bodies nearer than `distance` have a contact; moved apart along the normal by the depth of the deepest one
          they overlap no more. Depths are the least there are to 1e-9 of the bodies' size.
Known as: contact manifold; box on box as in most engines, but the whole polygon, not four of its points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.distance.convex.bodies import ConvexBodies, as_placed, paired_count
from tangere.query.distance.convex.supports import ConvexKind
from tangere.query.manifold.convex.approach import approach_kernel
from tangere.query.manifold.convex.box_penetration import box_penetrations
from tangere.query.manifold.convex.clipping import ManifoldPoint, NearPair, clip_features
from tangere.query.manifold.convex.features import HullFaces, empty_features, feature_kernel, most_sides
from tangere.query.manifold.convex.penetration import Penetration, Polytopes, penetration_kernel
from tangere.runtime import Arrays, choose_device, launch, thread_count, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import Analytic, hull_tables

#: Gaps up to this part of the bodies' size count as contacts, unless a distance is given.
MARGIN = 0.01
#: Nearest points are as exact as this, relative to the bodies' size, and depths as this, or the last where rounding
#: does not let them be.
ACCURACY, DEPTH_ACCURACY, DEPTH_ENOUGH = 1e-9, 1e-10, 1e-9
#: Pairs worth a thread; overlaps that are searched at once, for their scratch, on CUDA and by a CPU thread: memory that
#: is touched for the first time costs as much as a search.
GRAIN, TOGETHER, A_THREAD = 512, 4096, 128
#: Corners that a polytope has room for at first; where that does not suffice, four times as many, up to the last.
ROOM, MORE_ROOM, MOST_ROOM = 192, 4, 3072


def convex_manifold(
    a: Analytic | Moving,
    b: Analytic | Moving,
    *,
    time: Arrays = 0.0,
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of n pairs of bodies, n with n or n with 1; arguments as for `manifold`.

    Returns:
        By rising pair (`query`); `feature_a` and `feature_b` number the faces, edges or points that meet, `key` names
        the corner or crossing, for warm starts.
    """
    sides = as_placed(a, time), as_placed(b, time)
    chosen = choose_device(device, *(side.shape.poses for side in sides))
    count = paired_count(*(len(side.poses) for side in sides))
    with using_threads(threads):
        bodies = [ConvexBodies.of(side.shape, chosen) for side in sides]
        swapped = bodies[0].kind > bodies[1].kind
        if swapped:
            sides, bodies = sides[::-1], bodies[::-1]
        poses = [
            wp.array(np.ascontiguousarray(side.poses), dtype=wp.mat44d, device=chosen, copy=not chosen.is_cpu)
            for side in sides
        ]
        inputs: list[Any] = []
        for shapes, places in zip(bodies, poses, strict=True):
            inputs += [shapes.shapes, shapes.points, places]
        kinds = bodies[0].kind, bodies[1].kind
        pairs = _near_pairs(kinds, inputs, count, distance, chosen)
        found = _clipped(pairs, [side.shape for side in sides], bodies, poses, distance, chosen)
    return _contacts(found, swapped)


def _near_pairs(
    kinds: tuple[ConvexKind, ConvexKind], inputs: list[Any], count: int, distance: float | None, device: wp.Device
) -> np.ndarray:
    """`NearPair` records of the pairs that are near enough, with the way out of those whose cores overlap."""
    out = wp.zeros(count, dtype=NearPair, device=device)
    meet = wp.zeros(count, dtype=wp.uint8, device=device)
    launch(approach_kernel(*kinds), count, [*inputs, ACCURACY], [out, meet], device=device, grain=GRAIN)
    pairs, deep = out.numpy().copy(), np.flatnonzero(meet.numpy())
    if len(deep):
        _set_way_out(pairs, deep, penetrations(kinds, inputs, deep, device), inputs[2].numpy())
    limit = MARGIN * pairs["size"] if distance is None else distance
    return pairs[pairs["gap"] <= limit]


def penetrations(
    kinds: tuple[ConvexKind, ConvexKind], inputs: list[Any], rows: np.ndarray, device: wp.Device
) -> np.ndarray:
    """`Penetration` records of some pairs; polytopes get as much room as they need."""
    if kinds == (ConvexKind.BOX, ConvexKind.BOX):
        found = wp.zeros(len(rows), dtype=Penetration, device=device)
        chosen = wp.array(rows.astype(np.int32), dtype=wp.int32, device=device)
        launch(box_penetrations, len(rows), [chosen, *inputs], [found], device=device, grain=GRAIN)
        return found.numpy()
    answers = np.zeros(len(rows), Penetration.numpy_dtype())
    together = TOGETHER if device.is_cuda else A_THREAD * thread_count()
    which, room = np.arange(len(rows)), ROOM
    while len(which) and room <= MOST_ROOM:  # beyond, rounding has spoilt them: the least way seen parts the bodies
        scratch = _scratch(min(len(which), together), room, device)
        for begin in range(0, len(which), together):
            some = which[begin : begin + together]
            found = wp.zeros(len(some), dtype=Penetration, device=device)
            chosen = wp.array(rows[some].astype(np.int32), dtype=wp.int32, device=device)
            arguments = [chosen, *inputs, DEPTH_ACCURACY, DEPTH_ENOUGH, scratch]
            launch(penetration_kernel(*kinds), len(some), arguments, [found], device=device, grain=A_THREAD)
            answers[some] = found.numpy()
        which, room = which[answers["room"][which] == 0], MORE_ROOM * room
    return answers


def _scratch(count: int, room: int, device: wp.Device) -> Any:
    """Polytopes with room for so many corners each."""
    scratch: Any = Polytopes()
    scratch.corners, scratch.own = (wp.empty((count, room), dtype=wp.vec3d, device=device) for _ in "ab")
    for name, dtype in (("faces", wp.vec3i), ("planes", wp.vec4d), ("sides", wp.vec2i)):
        setattr(scratch, name, wp.empty((count, 2 * room), dtype=dtype, device=device))
    return scratch


def _set_way_out(pairs: np.ndarray, rows: np.ndarray, answers: np.ndarray, origins: np.ndarray) -> None:
    """Write what was found about overlapping cores; cores without a depth keep the point they have in common."""
    margins = pairs["margin_a"][rows] + pairs["margin_b"][rows]
    origin = origins[np.minimum(rows, len(origins) - 1), :3, 3]
    normal, depth = answers["normal"], answers["depth"]
    solid = answers["flat"][:, None] == 0
    for side, sign in (("a", -1.0), ("b", 1.0)):
        core = np.where(solid, answers[f"point_{side}"] - origin, pairs[f"point_{side}"][rows])
        pairs[f"point_{side}"][rows] = core + sign * pairs[f"margin_{side}"][rows][:, None] * normal
    pairs["normal"][rows], pairs["gap"][rows] = normal, -depth - margins


def _clipped(
    pairs: np.ndarray,
    shapes: list[Analytic],
    bodies: list[ConvexBodies],
    poses: list[wp.array],
    distance: float | None,
    device: wp.Device,
) -> np.ndarray:
    """`ManifoldPoint` records of the pairs."""
    if not len(pairs):
        return np.zeros(0, ManifoldPoint.numpy_dtype())
    features = [
        body_features(pairs, side, shape, own, places, poses[0], device)
        for side, shape, own, places in zip((-1.0, 1.0), shapes, bodies, poses, strict=True)
    ]
    return clipped(pairs, features, poses[0], distance, device)


def body_features(
    pairs: np.ndarray,
    toward: float,
    shape: Analytic,
    bodies: ConvexBodies,
    poses: wp.array,
    origins: wp.array,
    device: wp.Device,
) -> Any:
    """`Features` of the bodies of `NearPair` records that face `toward` times their normals."""
    hull: Any = HullFaces()
    tables = hull_tables(shape.hull, device.alias)
    hull.edges, hull.planes = tables.edges, tables.planes
    listed = empty_features(len(pairs), most_sides(bodies.kind, shape.hull), device)
    rows = wp.array(pairs["row"].astype(np.int32), dtype=wp.int32, device=device, copy=not device.is_cpu)
    normals = np.ascontiguousarray(pairs["normal"])
    normals = wp.array(normals, dtype=wp.vec3d, device=device, copy=not device.is_cpu)
    inputs = [rows, bodies.shapes, bodies.points, hull, poses, origins, normals, toward, listed]
    launch(feature_kernel(bodies.kind), len(pairs), inputs, [], device=device, grain=GRAIN)
    return listed


def clipped(
    pairs: np.ndarray, features: list[Any], origins: wp.array, distance: float | None, device: wp.Device
) -> np.ndarray:
    """`ManifoldPoint` records of `NearPair` records whose `Features` of a and b are known."""
    count = len(pairs)
    records = wp.array(pairs, dtype=NearPair, device=device, copy=not device.is_cpu)
    limit = -1.0 if distance is None else float(distance)
    counts = wp.zeros(count, dtype=wp.int32, device=device)
    nowhere, nothing = (wp.zeros(0, dtype=dtype, device=device) for dtype in (wp.int32, ManifoldPoint))
    inputs = [records, *features, origins, limit, MARGIN, counts]
    launch(clip_features, count, [*inputs, nowhere, nothing], [], device=device, grain=GRAIN)
    ends = np.cumsum(counts.numpy())
    offsets = wp.array((ends - counts.numpy()).astype(np.int32), dtype=wp.int32, device=device)
    out = wp.zeros(int(ends[-1]), dtype=ManifoldPoint, device=device)
    launch(clip_features, count, [*inputs, offsets, out], [], device=device, grain=GRAIN)
    return out.numpy()


def _contacts(found: np.ndarray, swapped: bool) -> Contacts:
    """The record; bodies change sides where kernels took them in the other order."""
    a, b = ("b", "a") if swapped else ("a", "b")
    return Contacts.of(
        query=found["row"].copy(),
        point_a=found[f"point_{a}"].copy(),
        point_b=found[f"point_{b}"].copy(),
        normal=-found["normal"] if swapped else found["normal"].copy(),
        gap=found["gap"].copy(),
        feature_a=found[f"feature_{a}"].copy(),
        feature_b=found[f"feature_{b}"].copy(),
        key=found["key"].copy(),
    )

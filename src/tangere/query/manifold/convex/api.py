"""Contact manifolds of two convex analytic bodies: where they lie on each other, all of it.

Question: at which points do two bodies touch or nearly touch, how deep, and which way is out?
Method:   nearest points give the normal (`approach`); where cores overlap it is the nearest way out, by formula
          (`closed_forms`, `segment_depths`) or by a polytope (`penetration`), with the directions across round sides
          (`rulings`). The faces, lines or points that face each other along it (`features`) are laid over each other
          (`clipping`).
Sound:    bodies nearer than `distance` have a contact; moved apart along the normal by the depth of the deepest one
          they overlap no more, to 1e-9 of the bodies' size. Depths are the least there are to as much, unless a
          polytope ran out of room or was spoilt by rounding: then they are the least of all that it and `rulings` saw.
Known as: contact manifold; box on box as in most engines, but the whole polygon, not four of its points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.distance.convex.bodies import ConvexBodies, PlacedBodies, as_placed, paired_count
from tangere.query.distance.convex.supports import ConvexKind
from tangere.query.manifold.convex.batch import body_features, clipped, contacts_of_points, hull_faces, near_pairs
from tangere.query.manifold.convex.single_pair import manifold_of_one
from tangere.runtime import Arrays, choose_device, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import Analytic


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
        if count == 1 and chosen.is_cpu:
            return _contacts(*manifold_of_one(*sides, distance))
        return _contacts(*_manifolds_of_many(*sides, count, distance, chosen))


def _manifolds_of_many(
    a: PlacedBodies, b: PlacedBodies, count: int, distance: float | None, device: wp.Device
) -> tuple[np.ndarray, bool]:
    """`ManifoldPoint` records, and whether b was taken first."""
    sides = a, b
    bodies = [ConvexBodies.of(side.shape, device) for side in sides]
    swapped = bodies[0].kind > bodies[1].kind
    if swapped:
        sides, bodies = sides[::-1], bodies[::-1]
    poses = [
        wp.array(np.ascontiguousarray(side.poses), dtype=wp.mat44d, device=device, copy=not device.is_cpu)
        for side in sides
    ]
    inputs: list[Any] = []
    for shapes, places in zip(bodies, poses, strict=True):
        inputs += [shapes.shapes, shapes.points, places]
    faces = hull_faces(sides[1].shape.hull, device)
    near = near_pairs((bodies[0].kind, bodies[1].kind), inputs, faces, count, distance, device)
    if bodies[0].kind == ConvexKind.POINT:
        return contacts_of_points(near, bodies[1], sides[1].shape, poses), swapped
    features = [
        body_features(near, sign, side.shape, own, places, poses[0])
        for sign, side, own, places in zip((-1.0, 1.0), sides, bodies, poses, strict=True)
    ]
    return clipped(near, features, poses[0], distance), swapped


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

"""First contact of moving analytic bodies with a mesh whose vertices each go their own way.

Question: when does a solid body, at rest or in rigid motion, first come within `separation` of the surface of a mesh in
          `Linear` motion?
Method:   conservative advancement of each pair of a body and a triangle that may come near it (`search`,
          `conservative_advancement`); bodies are exact, never facets, and corners go along their lines exactly.
Sound:    never later than the true time; at `time` the distance is at most separation + tolerance. A mesh that touches
          a body or is inside it at t = 0 is START.
Known as: continuous collision detection of cloth with analytic obstacles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Linear
from tangere.query.distance.convex.bodies import ConvexBodies
from tangere.query.first_contact.convex.api import answer_of_one, answers_of_many, refuse_small, swapped_sides
from tangere.query.first_contact.convex.query_batch import MovingSide, laid_out, moving_side
from tangere.query.first_contact.convex.search import ConvexContact
from tangere.query.first_contact.deforming_convex.search import (
    LinearMesh,
    deforming_contact_kernel,
    first_times,
)
from tangere.query.first_contact.options import Accuracy, Start, check_start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.runtime import UnsupportedError, choose_device, launch, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import Analytic

#: Boxes of triangles worth a thread: some nanoseconds each.
BOX_GRAIN = 8192
#: Part of the mesh's size and way that is the tolerance where none is given; the least that rounding leaves.
TOLERANCE, LEAST_TOLERANCE = 1e-6, 1e-12
#: Corners are exact to this part of the coordinates.
ROUNDING = 8.0 * 2.0**-53


def deforming_convex_first_contact(
    a: Analytic | Moving,
    b: Analytic | Moving,
    *,
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact | FirstContacts:
    """When bodies first touch a mesh in `Linear` motion, which is a or b: one body, or n of them.

    Args:
        a, b: a mesh in `Linear` motion, and analytic bodies at rest or moving rigidly, one motion each or for all.
        start: "checked" and "trusted" are the same here: whether they overlap at t = 0 is known at once.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            larger one's size and way.
        device: where to compute; None means where the data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    accuracy = Accuracy(separation=separation, tolerance=tolerance)
    check_start(start)
    swapped = isinstance(a, Moving) and isinstance(a.motion, Linear)
    bodies, deforming = (b, a) if swapped else (a, b)
    side = moving_side(bodies, "b" if swapped else "a")
    if side.motion.smooth:
        raise UnsupportedError("a body in CosineScrew motion keeps another clock than a mesh in Linear motion")
    on = choose_device(device, side.shape.poses)
    with using_threads(threads):
        found = _contacts(side, deforming, accuracy, on)
    if accuracy.tolerance is not None:
        refuse_small(found["tolerance"], accuracy.tolerance)
    if swapped:
        found = swapped_sides(found)
    return answer_of_one(found, swapped, not swapped) if side.single else answers_of_many(found)


def _contacts(side: MovingSide, deforming: Moving, accuracy: Accuracy, device: wp.Device) -> np.ndarray:
    """`ConvexContact` records of the bodies, (n,)."""
    bodies = ConvexBodies.of(side.shape, device)
    moving = laid_out(side, bodies, side.motion.smooth, device)
    mesh, faces = _linear_mesh(deforming, accuracy, device)
    lengths = np.array([accuracy.separation, -1.0 if accuracy.tolerance is None else accuracy.tolerance])
    limits = wp.array(lengths, dtype=wp.float64, device=device)
    pairs, when = _by_time(moving, mesh, limits, side.count, faces, device)
    begins = np.searchsorted(pairs[:, 0], np.arange(side.count + 1)).astype(np.int32)
    out = wp.zeros(side.count, dtype=ConvexContact, device=device)
    inputs = [
        moving,
        bodies.shapes,
        bodies.points,
        mesh,
        limits,
        wp.array(begins, dtype=wp.int32, device=device),
        wp.array(np.ascontiguousarray(pairs[:, 1]), dtype=wp.int32, device=device),
        wp.array(when, dtype=wp.float64, device=device),
        wp.empty(3 * side.count, dtype=wp.vec3d, device=device),
    ]
    launch(deforming_contact_kernel(bodies.kind), side.count, inputs, [out], device=device, grain=1)
    return out.numpy()


def _linear_mesh(deforming: Moving, accuracy: Accuracy, device: wp.Device) -> tuple[Any, int]:
    """The mesh on the device, and how many triangles it has."""
    start, end = deforming.start, deforming.end
    largest = float(max(np.abs(start).max(), np.abs(end).max()))
    size = float(np.ptp(start, axis=0).max() + np.abs(end - start).max())
    wanted = TOLERANCE * size if accuracy.tolerance is None else accuracy.tolerance
    mesh: Any = LinearMesh()
    mesh.start = wp.array(np.ascontiguousarray(start), dtype=wp.vec3d, device=device)
    mesh.way = wp.array(np.ascontiguousarray(end - start), dtype=wp.vec3d, device=device)
    mesh.faces = wp.array(np.ascontiguousarray(deforming.shape.faces, np.int32), dtype=wp.vec3i, device=device)
    mesh.tolerance, mesh.slack = max(wanted, LEAST_TOLERANCE * (largest + size)), ROUNDING * largest
    return mesh, len(deforming.shape.faces)


def _by_time(
    moving: Any, mesh: Any, limits: wp.array, count: int, faces: int, device: wp.Device
) -> tuple[np.ndarray, np.ndarray]:
    """(k, 2) bodies and triangles that may touch, and (k,) no later than when: by body, time and triangle."""
    times = wp.zeros(faces, dtype=wp.float64, device=device)
    pairs, when = [np.zeros((0, 2), np.int32)], [np.zeros(0)]
    for body in range(count):
        launch(first_times, faces, [moving, mesh, limits, body], [times], device=device, grain=BOX_GRAIN)
        first = times.numpy()
        order = np.argsort(first, kind="stable")
        order = order[: np.searchsorted(first[order], np.inf)]
        pairs.append(np.stack([np.full(len(order), body), order], axis=1).astype(np.int32))
        when.append(first[order])
    return np.concatenate(pairs), np.concatenate(when)

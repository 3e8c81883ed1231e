"""Batches of edge-edge and vertex-face queries under rigid motion, by the interval engine's elementary tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.motion.kinematics import RigidMotion
from tangere.published.redon_intervals.membership import touch_by_membership
from tangere.published.redon_intervals.options import IntervalOptions
from tangere.query.contacts.record import Status
from tangere.query.first_contact.mixed.narrow_phase import MovingCorners, Precision
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime.arrays import Arrays, choose_device, to_numpy
from tangere.runtime.errors import InputError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND | {"max_unroll": 1})


def edge_edge_by_intervals(
    points: Arrays,
    motion_a: Any,
    motion_b: Any,
    options: IntervalOptions | None = None,
    *,
    device: str | wp.Device | None = None,
) -> FirstContacts:
    """First contact of two edges, each fixed to a rigid body.

    Args:
        points: a0 a1 b0 b1 of each query, shape (n, 4, 3), the first two in the frame of a, the others of b [m].
        motion_a, motion_b: rigid motions of the bodies, one or n.
    """
    queries = _checked(points)
    # A triangle without area has the edge as its first side.
    corners_a = queries[:, [0, 1, 1]]
    corners_b = queries[:, [2, 3, 3]]
    return _first(corners_a, corners_b, 1 << 0, motion_a, motion_b, options, device)


def vertex_face_by_intervals(
    points: Arrays,
    motion_a: Any,
    motion_b: Any,
    options: IntervalOptions | None = None,
    *,
    device: str | wp.Device | None = None,
) -> FirstContacts:
    """First contact of a vertex and a triangle, each fixed to a rigid body.

    Args:
        points: v f0 f1 f2 of each query, shape (n, 4, 3), v in the frame of a, the face in that of b [m].
        motion_a, motion_b: rigid motions of the bodies, one or n.
    """
    queries = _checked(points)
    return _first(queries[:, [0, 0, 0]], queries[:, 1:], 1 << 9, motion_a, motion_b, options, device)


def _checked(points: Arrays) -> np.ndarray:
    queries = to_numpy(points, "points")
    if queries.ndim != 3 or queries.shape[1:] != (4, 3):
        raise InputError(f"points must have shape (n, 4, 3), not {queries.shape}")
    finite = np.isfinite(queries).all(axis=(1, 2))
    if not finite.all():
        raise InputError(f"points: query {int(np.argmin(finite))} is not finite")
    return queries


def _first(corners_a, corners_b, features: int, motion_a, motion_b, options, device) -> FirstContacts:
    options, place, count = options or IntervalOptions(), choose_device(device), len(corners_a)
    motions = []
    for name, motion in (("motion_a", motion_a), ("motion_b", motion_b)):
        records = np.ascontiguousarray(motion.records()).reshape(-1)
        if len(records) not in (1, count):
            raise InputError(f"{name} has {len(records)} motions for {count} queries: as many, or one")
        motions.append(wp.array(records, dtype=RigidMotion, device=place))
    both = np.concatenate([corners_a, corners_b], axis=1)
    extent = np.linalg.norm(both.max(axis=1) - both.min(axis=1), axis=1).max(initial=0.0)
    time = wp.empty(count, dtype=wp.float64, device=place)
    inputs = [wp.array(np.ascontiguousarray(c), dtype=wp.mat33d, device=place) for c in (corners_a, corners_b)]
    inputs = [inputs[0], motions[0], inputs[1], motions[1], features, options.precision(float(extent))]
    inputs += [int(options.membership == "printed")]
    launch(_touch, count, inputs, [time], device=place, grain=64)
    found = time.numpy().copy()
    status = np.where(np.isinf(found), Status.FREE, np.where(found > 0.0, Status.CONTACT, Status.START))
    return FirstContacts(found, np.full(count, np.inf), status.astype(np.uint8))


@wp.func
def _moving(corners: wp.mat33d, motions: wp.array[RigidMotion], i: int) -> MovingCorners:
    """A triangle by its own motion, or by the only one."""
    moving = MovingCorners()
    moving.start = corners
    moving.motions = motions
    moving.row.first = wp.min(i, motions.shape[0] - 1)
    moving.row.last = moving.row.first + 1
    return moving


@wp.kernel
def _touch(
    first: int,
    corners_a: wp.array[wp.mat33d],
    motions_a: wp.array[RigidMotion],
    corners_b: wp.array[wp.mat33d],
    motions_b: wp.array[RigidMotion],
    features: int,
    precision: Precision,
    printed: int,
    time: wp.array[wp.float64],
):
    i = first + wp.tid()
    a = _moving(corners_a[i], motions_a, i)
    b = _moving(corners_b[i], motions_b, i)
    time[i] = touch_by_membership(a, b, features, wp.float64(0.0), wp.float64(1.0), precision, printed).time

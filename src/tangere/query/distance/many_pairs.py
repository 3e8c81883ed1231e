"""How far are many different pairs of meshes apart? All of them in one launch; other things by `mixed_pairs`.

Method: bodies at rest are a step in which nothing moves: the search for the least clearance (`query.clearance`) finds
        the nearest triangles of every pair, with a cap beyond which nothing is searched. What may meet is decided
        exactly, pair by pair, by `distance`.
Sound:  lower <= true distance <= upper, as `distance`; lower is at least (1 - accuracy) upper.
Known as: batched minimum distance; distance with a cut-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.geometry.triangles import nearest_of_triangles
from tangere.motion import Rest, as_poses
from tangere.query.contacts.record import Kind
from tangere.query.distance.api import ROUNDING, distance, kinds_of
from tangere.query.distance.result import Distance
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, batch_size
from tangere.query.intersection.posed import pose_of, world_corners
from tangere.runtime import (
    SOUND,
    Arrays,
    InputError,
    choose_device,
    described,
    launch,
    positive,
    to_numpy,
    using_threads,
)
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)


def distances(
    shapes: Sequence[Any],
    a: Arrays,
    b: Arrays,
    poses_a: Arrays | None = None,
    poses_b: Arrays | None = None,
    *,
    cap: float | None = None,
    accuracy: float = 1e-5,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Distance:
    """The distances of n pairs, any of `shapes` with any other.

    Args:
        shapes: the meshes, analytic bodies and grounds there are; two grounds make no pair.
        a, b: which of them each pair is of, (n,) each.
        poses_a, poses_b: where these are, (n, 4, 4) or one for all; None means where the meshes have their vertices.
        cap: what is farther apart need not be told: upper is then inf, lower (1 - accuracy) cap, and there are no
            points [m]. None means no cap.
        accuracy: of meshes, lower is at least (1 - accuracy) upper, as far as rounding allows; in (0, 1).
        device: where to search; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        `Distance` with arrays of n rows; `kind` is NONE beyond the cap.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball, box = tg.generate.icosphere(subdivisions=2), tg.generate.box()
        >>> away = np.tile(np.eye(4), (3, 1, 1))
        >>> away[:, 0, 3] = [2.5, 3.0, 9.0]
        >>> found = tg.distances([ball, box], [0, 1, 0], [0, 1, 1], None, away, cap=5.0, device="cpu")
        >>> found.upper.round(6).tolist()
        [0.5, 2.0, inf]
    """
    from tangere.query.clearance import check_accuracy, search_clearance  # which imports `distance`

    check_accuracy(accuracy)
    if cap is not None:
        positive(cap, "cap")
    if isinstance(shapes, Sequence) and not all(isinstance(shape, Mesh) for shape in shapes):
        from tangere.query.distance.mixed_pairs import mixed_distances  # who does not ask does not load it

        with using_threads(threads):
            return mixed_distances(shapes, a, b, poses_a, poses_b, cap=cap, accuracy=accuracy, device=device)
    sides = [_bodies(shapes, which, poses, name) for which, poses, name in ((a, poses_a, "a"), (b, poses_b, "b"))]
    count = batch_size(*sides)
    if not count:
        return Distance(**blank(0))
    poses = np.stack([np.broadcast_to(side.motion.pose(0.0), (count, 4, 4)) for side in sides], axis=1)
    bounds = _bounds(sides, poses)
    if cap is not None:
        bounds = np.minimum(bounds, cap)
    chosen = choose_device(device)
    with using_threads(threads):
        found, lower = search_clearance(*sides, bounds, accuracy=accuracy, tolerance=None, device=chosen)
        fields = _fields(sides, poses, found, lower, chosen)
        for row in np.flatnonzero(~found["certified"]):
            # They touch, or rounding hides whether they do.
            one = distance(*(side.body(int(row)) for side in sides), device=chosen)
            for name, column in fields.items():
                column[row] = getattr(one, name)
    return Distance(**fields)


def numbers_of_shapes(which: Arrays, count: int, name: str) -> np.ndarray:
    """(n,) which of `count` shapes each pair has, checked."""
    rows = np.atleast_1d(to_numpy(which, name, None))
    if not rows.size:
        rows = rows.astype(np.int64)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"{name} must be numbers of shapes, (n,), not {described(which)}")
    wrong = np.flatnonzero((rows < 0) | (rows >= count))
    if len(wrong):
        raise InputError(f"{name}[{wrong[0]}] is {rows[wrong[0]]} but there are {count} shapes")
    return rows


def blank(count: int) -> dict[str, np.ndarray]:
    """Columns of `Distance`."""
    columns: dict[str, np.ndarray] = {name: np.zeros(count) for name in ("lower", "upper")}
    columns |= {name: np.zeros((count, 3)) for name in ("point_a", "point_b", "normal", "weights_a", "weights_b")}
    columns |= {name: np.full(count, -1, np.int32) for name in ("triangle_a", "triangle_b")}
    return columns | {"kind": np.zeros(count, np.uint8)}


def _bodies(shapes: Sequence[Mesh], which: Arrays, poses: Arrays | None, name: str) -> MovingBodies:
    if isinstance(shapes, Mesh) or not all(isinstance(shape, Mesh) for shape in shapes):
        raise InputError(f"shapes must be a list of meshes, not {described(shapes)}")
    rows = numbers_of_shapes(which, len(shapes), name)
    places = None if poses is None else as_poses(poses, f"poses_{name}")
    if places is not None and places.shape[:-2] not in ((), rows.shape):
        raise InputError(f"poses_{name} must be one, or one for each of {len(rows)} pairs, not {places.shape}")
    return MovingBodies(tuple(shapes), Rest(places), rows)


def _bounds(sides: list[MovingBodies], poses: np.ndarray) -> np.ndarray:
    """(n,) no less than the distances: those of the first vertices, and a little."""
    points = []
    for k, side in enumerate(sides):
        corner = np.array([shape.vertices[shape.faces[0, 0]] for shape in side.shapes])[np.asarray(side.shape)]
        points.append(np.einsum("nij,nj->ni", poses[:, k, :3, :3], corner) + poses[:, k, :3, 3])
    size = sum(np.asarray(side.extent) for side in sides)
    return np.linalg.norm(points[0] - points[1], axis=1) * (1.0 + 1e-6) + 1e-6 * size


def _fields(
    sides: list[MovingBodies], poses: np.ndarray, found: np.ndarray, lower: np.ndarray, device: wp.Device
) -> dict[str, Any]:
    """Columns of `Distance`."""
    count, seen = len(found), found["time"] >= 0.0
    forest = Forest.of(sides[0].shapes, device)
    own = np.stack([found["a"], found["b"]], axis=1)
    first = np.stack([forest.first_triangle[np.asarray(side.shape)] for side in sides], axis=1)
    triangles = np.where(seen[:, None], own + first, 0).astype(np.int32)
    weights = wp.zeros((count, 2), dtype=wp.vec3d, device=device)
    points = wp.zeros((count, 2), dtype=wp.vec3d, device=device)
    inputs = [
        forest.corners,
        wp.array(triangles, dtype=wp.vec2i, device=device),
        wp.array(poses, dtype=wp.mat44d, device=device, ndim=2),
    ]
    launch(_describe_nearest, count, inputs, [weights, points], device=device)
    point, weight = (np.where(seen[:, None, None], column.numpy(), np.nan) for column in (points, weights))
    away = point[:, 0] - point[:, 1]
    length = np.linalg.norm(away, axis=1)
    scale = np.abs(poses[:, :, :3, 3]).max(axis=(1, 2)) + max(float(np.abs(s.bounds).max()) for s in sides[0].shapes)
    upper = np.where(seen, length + ROUNDING * scale, np.inf)
    return {
        "lower": np.where(seen, np.minimum(lower, upper), lower),
        "upper": upper,
        "point_a": point[:, 0].copy(),
        "point_b": point[:, 1].copy(),
        "normal": np.where(seen[:, None], away / np.where(length > 0.0, length, 1.0)[:, None], 0.0),
        "triangle_a": np.where(seen, found["a"], -1).astype(np.int32),
        "triangle_b": np.where(seen, found["b"], -1).astype(np.int32),
        "weights_a": weight[:, 0].copy(),
        "weights_b": weight[:, 1].copy(),
        "kind": np.where(seen, kinds_of(np.nan_to_num(weight[:, 0]), np.nan_to_num(weight[:, 1])), Kind.NONE),
    }


@wp.kernel
def _describe_nearest(
    first: int,
    corners: wp.array[wp.vec3d],
    triangles: wp.array[wp.vec2i],
    poses: wp.array2d[wp.mat44d],
    weights: wp.array2d[wp.vec3d],
    points: wp.array2d[wp.vec3d],
):
    """The nearest points of two triangles, in the world."""
    i = first + wp.tid()
    a = world_corners(corners, triangles[i][0], pose_of(poses[i, 0]))
    b = world_corners(corners, triangles[i][1], pose_of(poses[i, 1]))
    nearest = nearest_of_triangles(a, b)
    weights[i, 0] = nearest.weights_a
    weights[i, 1] = nearest.weights_b
    points[i, 0] = nearest.weights_a * a
    points[i, 1] = nearest.weights_b * b

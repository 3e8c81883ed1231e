"""Values and slopes for libraries that differentiate programs: plain arrays in, plain arrays out.

Slopes by a pose are those by the twelve numbers of its matrix, with the nearest points held in their bodies: they go on
through whatever the matrix was made from, as long as that makes rotations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Rest, Twist
from tangere.query.clearance.api import least_clearance
from tangere.query.distance.api import distance
from tangere.query.first_contact.api import first_contact
from tangere.query.gradients import api
from tangere.query.gradients.motion_sensitivity import rotations
from tangere.query.gradients.result import BodyGradients
from tangere.runtime import InputError, described
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def check_mesh(mesh: Any, name: str) -> None:
    """Raise unless it is a mesh."""
    if not isinstance(mesh, Mesh):
        raise InputError(f"{name} must be a Mesh, not {described(mesh)}")


def batch_shape(*parts: tuple[tuple[int, ...], tuple[int, ...], str]) -> tuple[int, ...]:
    """What is in front of arrays that end as told; each is its shape, how it has to end, and its name."""
    fronts = []
    for shape, end, name in parts:
        if tuple(shape[len(shape) - len(end) :]) != end:
            raise InputError(f"{name} must have a shape that ends with {end}, not {tuple(shape)}")
        fronts.append(tuple(shape[: len(shape) - len(end)]))
    try:
        return np.broadcast_shapes(*fronts)
    except ValueError as error:
        raise InputError(
            f"shapes do not pair off: {', '.join(f'{part[2]} {tuple(part[0])}' for part in parts)}"
        ) from error


def distance_slopes(
    a: Mesh, b: Mesh, poses_a: np.ndarray, poses_b: np.ndarray, device: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Distances (…,), slopes by both matrices (…, 4, 4), and by the vertices of both meshes (…, 3) of three corners.

    The last two are records of (corners, slopes): (…, 3, 4) with the number of the vertex first.
    """
    front = np.broadcast_shapes(poses_a.shape[:-2], poses_b.shape[:-2])
    rows = [np.broadcast_to(p, (*front, 4, 4)).reshape(-1, 4, 4).astype(np.float64) for p in (poses_a, poses_b)]
    one, other = a.moving(Rest(rows[0])), b.moving(Rest(rows[1]))
    found = distance(one, other, device=device)
    slopes = api.distance(found, one, other, tie=0.0, device=device)
    sides = [_by_matrix(body).reshape(*front, 4, 4) for body in (slopes.a, slopes.b)]
    corners = [_by_vertices(body).reshape(*front, 3, 4) for body in (slopes.a, slopes.b)]
    return np.asarray(found.lower).reshape(front), sides[0], sides[1], corners[0], corners[1]


def motion_slopes(
    question: str,
    a: Mesh,
    b: Mesh | Moving,
    start: np.ndarray,
    displacement: np.ndarray,
    rotation: np.ndarray,
    device: str | wp.Device | None,
    options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values (…,) of twists of a past b; slopes by their starts (…, 4, 4), displacements and rotations, (…, 3) each."""
    front = np.broadcast_shapes(start.shape[:-2], displacement.shape[:-1], rotation.shape[:-1])
    starts = np.broadcast_to(start, (*front, 4, 4)).reshape(-1, 4, 4).astype(np.float64)
    ways, turns = (
        np.broadcast_to(part, (*front, 3)).reshape(-1, 3).astype(np.float64) for part in (displacement, rotation)
    )
    moving = a.moving(Twist(starts, ways, turns))
    if question == "time":
        slopes = api.time(first_contact(moving, b, device=device, **options), moving, b, tie=0.0, device=device)
    else:
        slopes = api.clearance(least_clearance(moving, b, device=device, **options), moving, b, tie=0.0, device=device)
    body = slopes.a
    by_start = np.zeros((len(starts), 4, 4))
    back = np.einsum("nji,nj->ni", rotations(body.times[:, None] * turns), body.slopes)
    by_start[:, :3, :3] = back[:, :, None] * body.points[:, None]
    by_start[:, :3, 3] = body.slopes
    by_way, by_turn = np.asarray(body.displacement), np.asarray(body.rotation)
    shapes = (front, (*front, 4, 4), (*front, 3), (*front, 3))
    columns = (np.asarray(slopes.value, float), by_start, by_way, by_turn)
    return tuple(column.reshape(shape) for column, shape in zip(columns, shapes, strict=True))  # pyright: ignore


def vertex_table(records: np.ndarray, weight: np.ndarray, count: int) -> np.ndarray:
    """(vertices, 3) slopes by all vertices of a mesh, from the records of `distance_slopes`, each times its weight."""
    table = np.zeros((count, 3))
    numbers = records[..., 0].reshape(-1).astype(np.int64)
    slopes = (records[..., 1:] * weight[..., None, None]).reshape(-1, 3)
    np.add.at(table, numbers[numbers >= 0], slopes[numbers >= 0])
    return table


def _by_matrix(body: BodyGradients) -> np.ndarray:
    """(n, 4, 4)"""
    table = np.zeros((len(body.slopes), 4, 4))
    table[:, :3, :3] = body.slopes[:, :, None] * body.points[:, None]
    table[:, :3, 3] = body.slopes
    return table


def _by_vertices(body: BodyGradients) -> np.ndarray:
    """(n, 3, 4)"""
    return np.concatenate([body.corners[..., None].astype(float), body.vertices], axis=-1)

"""Planes of a polytope's faces, and balls within bodies, beside plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from oracles.convex_distances import rows_of, supports
from oracles.convex_families import bodies, sizes
from tangere.query.distance.convex.bodies import ConvexBodies
from tangere.query.manifold.convex.batch import empty_polytopes
from tangere.query.manifold.convex.polytope import Polytopes, place_faces
from tangere.runtime import SOUND, launch


@wp.kernel(module="unique", module_options=SOUND)
def placed(first: int, p: Polytopes, counts: wp.array[int]):
    i = first + wp.tid()
    place_faces(p, i * p.room, 2 * i * p.room, counts[i])


def test_planes_of_faces_are_their_normals_and_how_far_their_corners_are_along_them(rng, effort, device):
    count, room = effort(300, 40), 32
    scratch = empty_polytopes(count, room, wp.get_device(device))
    corners = rng.normal(size=(count, room, 3)) * 10.0 ** rng.uniform(-6.0, 6.0, (count, 1, 1))
    corners[:, 1] = corners[:, 0] + 1e-7 * (corners[:, 2] - corners[:, 0])  # what has both is thin
    corners[:, 5] = corners[:, 4]
    faces = np.stack([rng.permuted(np.tile(np.arange(room), (2 * room, 1)), axis=1)[:, :3] for _ in range(count)])
    faces[:, 0], faces[:, 1], faces[:, 2] = (0, 1, 2), (4, 5, 6), (4, 4, 4)
    counts = rng.integers(3, 2 * room, count).astype(np.int32)
    slots = np.stack([rng.permutation(2 * room) for _ in range(count)])
    for name, rows, dtype in (
        ("corners", corners.reshape(-1, 3), wp.vec3d),
        ("faces", np.take_along_axis(faces, np.argsort(slots)[:, :, None], axis=1).reshape(-1, 3), wp.vec3i),
        ("sides", slots.ravel().astype(np.int32), wp.int32),
    ):
        setattr(scratch, name, wp.array(rows.astype(np.int32) if name == "faces" else rows, dtype=dtype, device=device))
    launch(placed, count, [scratch, wp.array(counts, dtype=wp.int32, device=device)], device=wp.get_device(device))
    planes, distances = scratch.planes.numpy().reshape(count, -1, 4), scratch.distances.numpy().reshape(count, -1)
    thin = 0
    for row in range(count):
        slot = slots[row, : counts[row]]
        x, y, z = (corners[row][faces[row, : counts[row], k]] for k in range(3))
        n, normal = planes[row][slot][:, :3], np.cross(y - x, z - x)
        assert np.allclose(np.linalg.norm(n, axis=1), 1.0, atol=1e-14)
        along = np.stack([np.einsum("fi,fi->f", n, each) for each in (x, y, z)])
        size = np.abs(corners[row]).max()
        assert np.allclose(planes[row][slot][:, 3], along.max(axis=0), rtol=0.0, atol=1e-15 * size)
        assert np.allclose(distances[row][slot], along.min(axis=0), rtol=0.0, atol=1e-15 * size)
        long = np.linalg.norm(normal, axis=1)
        broad = long > 1e-4 * np.linalg.norm(y - x, axis=1) * np.linalg.norm(z - x, axis=1)
        assert np.allclose(n[broad], normal[broad] / long[broad, None], atol=1e-11)
        thin += int((~broad).sum())
    assert thin >= 3 * count


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "cone", "hull"])
def test_no_direction_reaches_less_than_the_ball_within_a_body(rng, effort, kind):
    count = effort(50, 10)
    body = bodies(kind, **sizes(kind, count, rng, 0.01, 10.0))
    shapes = ConvexBodies.of(body, wp.get_device("cpu")).shapes.numpy()
    if kind in ("sphere", "capsule"):
        assert (shapes["inner"] == 0.0).all()  # their cores have no volume
        return
    n = rng.normal(size=(2000, 3))
    n = np.concatenate([n / np.linalg.norm(n, axis=1)[:, None], np.eye(3), -np.eye(3)])
    for row, shape in enumerate(shapes):
        if isinstance(body, tg.Cone):  # across its side, and nearly
            slope = np.arctan2(shape["radius"], 2.0 * shape["half"][2])
            n[0] = np.cos(slope), 0.0, np.sin(slope)
        one = rows_of(body, np.tile(np.eye(4), (count, 1, 1)))[np.full(len(n), row)]
        reach = supports(one, n)
        assert shape["inner"] <= reach.min() * (1.0 + 1e-12)
        assert shape["inner"] > 0.0

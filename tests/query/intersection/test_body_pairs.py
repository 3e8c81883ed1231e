"""Many pairs of different bodies at once meet exactly as each pair alone does."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tangere.motion import Rest
from tangere.query.intersection import intersecting_pairs, meeting_pairs
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def test_pairs_meet_as_each_of_them_alone(rng, device, effort):
    shapes = (generate.box([2.0, 1.0, 0.5]), generate.torus(160), generate.icosphere(subdivisions=2))
    count = effort(60, least=60)
    shape = rng.integers(3, size=count)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, random_state=rng).as_matrix()
    poses[:, :3, 3] = rng.uniform(-1.5, 1.5, (count, 3))
    pairs = rng.integers(count, size=(effort(120, least=100), 2))
    found = meeting_pairs(shapes, shape, poses, pairs, device)
    for (a, b), triangles in zip(pairs, found, strict=True):
        expected = intersecting_pairs(*(shapes[shape[k]].moving(Rest(poses[k])) for k in (a, b)), device=device)
        assert (triangles[0] >= 0) == (len(expected) > 0)
        if len(expected):
            assert (expected == triangles).all(axis=1).any()
    assert 10 < (found[:, 0] >= 0).sum() < len(pairs)


def test_faces_in_one_plane_and_triangles_without_area_are_decided_exactly():
    box, away = generate.box([1.0, 1.0, 1.0]), np.eye(4)
    spike = Mesh([[0.5, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [[0, 1, 2]])
    away[0, 3] = np.nextafter(1.0, 2.0)
    poses = np.stack([np.eye(4), np.eye(4), away])
    poses[1, 0, 3] = 1.0
    shapes, shape = (box, spike), np.array([0, 0, 0])
    assert (meeting_pairs(shapes, shape, poses, [[0, 1]], "cpu") >= 0).all()
    assert (meeting_pairs(shapes, shape, poses, [[0, 2]], "cpu") < 0).all()
    assert (meeting_pairs(shapes, np.array([0, 1, 1]), poses * 0 + np.eye(4), [[0, 1]], "cpu") >= 0).all()

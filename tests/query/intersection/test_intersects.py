"""Triangles of two meshes that meet, against an exact test of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.triangles_meet import exact_meet
from tangere.motion import Rest
from tangere.query.intersection import intersecting_pairs, intersects
from tangere.runtime import InputError


def every_pair(a: tg.Mesh, b: tg.Mesh) -> np.ndarray:
    """Pairs that meet, exactly, over all pairs whose boxes do."""
    s, t = a.vertices[a.faces], b.vertices[b.faces]
    near = ((s.min(1)[:, None] <= t.max(1)) & (t.min(1) <= s.max(1)[:, None])).all(axis=2)
    found = [pair for pair in np.argwhere(near) if exact_meet(s[pair[0]], t[pair[1]])]
    return np.array(found, np.int32).reshape(-1, 2)


def test_all_pairs_that_meet_are_found_and_no_others(effort, rng, device):
    shapes = [tg.generate.icosphere(subdivisions=1), tg.generate.torus(72, tube=0.5), tg.generate.torus(200)]
    meeting = 0
    for k in range(effort(9, 3)):
        a, b = shapes[k % 3], shapes[(k + 1) % 3]
        pose = np.eye(4)
        pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
        pose[:3, 3] = rng.normal(size=3) * 0.8
        placed = b.at(pose)
        expected = every_pair(a, placed)
        assert np.array_equal(intersecting_pairs(a, placed, device=device), expected)
        assert intersects(a, placed, device=device) == (len(expected) > 0)
        meeting += len(expected) > 0
    assert meeting > 0


def test_meshes_on_a_lattice_that_touch_in_every_way_are_decided_exactly(effort, rng):
    """Corners on a small lattice: common corners and edges, coplanar overlaps, corners on edges and faces."""
    count, touching = effort(40, 8), 0
    for _ in range(count):
        corners = rng.integers(-1, 2, (2, 6, 3, 3)).astype(float)
        meshes = []
        for soup in corners:
            area = np.linalg.norm(np.cross(soup[:, 1] - soup[:, 0], soup[:, 2] - soup[:, 0]), axis=1)
            soup = soup[area > 0]
            meshes.append(tg.Mesh(soup.reshape(-1, 3), np.arange(3 * len(soup)).reshape(-1, 3)))
        expected = every_pair(*meshes)
        assert np.array_equal(intersecting_pairs(*meshes, device="cpu"), expected)
        touching += len(expected)
    assert touching > count


def test_a_mesh_inside_another_does_not_meet_it():
    ball = tg.generate.icosphere(subdivisions=2)
    small = ball.replace(vertices=ball.vertices * 0.5)
    assert not intersects(ball, small, device="cpu")
    assert intersecting_pairs(ball, small, device="cpu").shape == (0, 2)


def test_resting_poses_and_batches_of_them_count():
    ball = tg.generate.icosphere(subdivisions=1)
    pose = np.eye(4)
    pose[0, 3] = 1.5
    assert intersects(ball.moving(Rest(pose)), ball, device="cpu")
    pose[0, 3] = 2.5
    assert not intersects(ball.moving(Rest(pose)), ball, device="cpu")
    poses = np.tile(pose, (3, 1, 1))
    poses[1, 0, 3] = 1.5
    assert intersects(ball.moving(Rest(poses)), ball, device="cpu").tolist() == [False, True, False]
    assert intersects(ball, ball.moving(Rest(poses[1:])), device="cpu").tolist() == [True, False]
    assert intersects(ball.moving(Rest(poses[:1])), ball, device="cpu").tolist() == [False]
    with pytest.raises(InputError, match="pair off"):
        intersects(ball.moving(Rest(poses)), ball.moving(Rest(poses[:2])), device="cpu")
    with pytest.raises(InputError, match="one pose"):
        intersecting_pairs(ball.moving(Rest(poses)), ball, device="cpu")


def test_more_pairs_than_the_first_guess_are_all_kept():
    """Two fans of needles through one point: every triangle meets every other one."""
    count = 36
    angle = np.linspace(0, np.pi, count, endpoint=False)
    rim = np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1)
    soup = np.stack([rim, -rim, rim * 0.5 + [0, 0, 1e-3]], axis=1)
    mesh = tg.Mesh(soup.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))
    turned = mesh.at([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    assert len(intersecting_pairs(mesh, turned, device="cpu")) == len(every_pair(mesh, turned))

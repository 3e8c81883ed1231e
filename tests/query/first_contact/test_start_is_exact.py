"""START means touching, overlapping, or nearer than the separation at time 0, and nothing else.

The oracle is rational arithmetic on gaps between parallel faces of boxes.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.query.first_contact.primitives.exact_distance import edges_nearer, triangles_nearer, vertex_face_nearer

BOX = tg.generate.box()
OFFSETS = [0.0, 5e-17, 1e-16, 3e-16, 1e-15, 1e-13, 1e-10, -1e-16, -1e-15, -1e-12]


def shifted(x):
    return BOX.replace(vertices=BOX.vertices + [x, 0.2, 0.1])


def gap(other):
    return Fraction(float(other.vertices[:, 0].min())) - Fraction(1, 2)


def motions(away=-0.5):
    pose = np.eye(4)
    yield "linear", BOX.moving(tg.Linear(BOX.vertices + [away, 0.0, 0.0]))
    yield "rigid", BOX.moving(tg.Twist(pose, (away, 0.0, 0.0), (0.0, 0.0, 0.0)))


@pytest.mark.parametrize("separation", [0.0, 0.05, 0.1, 1.0 / 3.0])
@pytest.mark.parametrize("offset", OFFSETS)
def test_the_start_is_decided_exactly(separation, offset, device):
    other = shifted(1.0 + separation + offset)
    for name, moving in motions():
        hit = tg.first_contact(moving, other, separation=separation, device=device)
        begins = gap(other) <= 0 if separation == 0.0 else gap(other) < Fraction(separation)
        assert (hit.status == tg.Status.START) == begins, (name, float(gap(other) - Fraction(separation)))


def test_what_does_not_meet_does_not_start_however_near_it_is():
    """Boxes turned at random, a hair apart: `intersects`, which is exact, and the status agree."""
    rng = np.random.default_rng(0)
    seen = {True: 0, False: 0}
    for seed in range(60):
        turn = Rotation.random(random_state=seed).as_matrix()
        x = BOX.vertices @ turn.T
        other = BOX.replace(vertices=(BOX.vertices + [1.0 + 10.0 ** rng.uniform(-17.0, -12.0), 0.2, 0.1]) @ turn.T)
        meets = tg.intersects(BOX.replace(vertices=x), other, device="cpu")
        for end in (x - 0.5 * turn[:, 0], x + 0.5 * turn[:, 1]):
            hit = tg.first_contact(BOX.replace(vertices=x).moving(tg.Linear(end)), other, device="cpu")
            assert (hit.status == tg.Status.START) == meets
        seen[meets] += 1
    assert min(seen.values()) > 5


def test_exact_distances_agree_with_distances_in_floating_point():
    rng = np.random.default_rng(4)
    for _ in range(200):
        points = rng.normal(size=(6, 3))
        share = np.linspace(0.0, 1.0, 40)
        one = points[0] + share[:, None] * (points[1] - points[0])
        two = points[2] + share[:, None] * (points[3] - points[2])
        sampled = np.linalg.norm(one[:, None] - two, axis=2).min()
        assert edges_nearer(points[:4], sampled * (1.0 + 1e-9))
        assert not edges_nearer(points[:4], max(sampled - 0.1, 0.0))
        u, v = np.meshgrid(share, share)
        inside = u + v <= 1.0
        face = points[1] + u[inside][:, None] * (points[2] - points[1]) + v[inside][:, None] * (points[3] - points[1])
        sampled = np.linalg.norm(face - points[0], axis=1).min()
        assert vertex_face_nearer(points[:4], sampled * (1.0 + 1e-9))
        assert not vertex_face_nearer(points[:4], max(sampled - 0.15, 0.0))
        a, b = tg.Mesh(points[:3], [[0, 1, 2]]), tg.Mesh(points[3:] + [5.0, 0.0, 0.0], [[0, 1, 2]])
        found = tg.distance(a, b, device="cpu")
        assert triangles_nearer(a.vertices, b.vertices, found.upper * (1.0 + 1e-12))
        assert not triangles_nearer(a.vertices, b.vertices, found.lower)


def test_exactly_at_the_distance_is_not_nearer():
    square = [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (-1.0, 1.0, 0.0), (-1.0, -1.0, 0.0)]
    assert not vertex_face_nearer(square, 1.0)
    assert vertex_face_nearer(square, np.nextafter(1.0, 2.0))
    edges = [(-1.0, 0.0, 0.5), (1.0, 0.0, 0.5), (0.0, -1.0, 0.0), (0.0, 1.0, 0.0)]
    assert not edges_nearer(edges, 0.5)
    assert edges_nearer(edges, np.nextafter(0.5, 1.0))
    parallel = [(0.0, 0.0, 0.25), (1.0, 0.0, 0.25), (0.5, 0.0, 0.0), (2.0, 0.0, 0.0)]
    assert not edges_nearer(parallel, 0.25)
    assert edges_nearer(parallel, np.nextafter(0.25, 1.0))

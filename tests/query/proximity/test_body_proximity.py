"""What of bodies, meshes and ground is nearer than a distance: every triangle asked one by one says the same."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.convex_distances import Rows, conic_distance, rows_of
from oracles.convex_families import KINDS, bodies, poses, sizes
from oracles.rigid_distances import triangle_distances
from tangere.runtime import InputError, UnsupportedError
from tangere.shape.analytic import HULL

MESH = tg.generate.icosphere(subdivisions=1)


def small(kind: str, count: int, rng):
    return bodies(kind, **{name: 0.3 * value for name, value in sizes(kind, count, rng).items()})


def around(count: int, rng, far: float) -> np.ndarray:
    place = poses(count, rng, 0.0)
    way = rng.normal(size=(count, 3))
    place[:, :3, 3] = way / np.linalg.norm(way, axis=1)[:, None] * far
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_has_a_contact_with_exactly_the_triangles_that_are_near(kind, rng, effort, device):
    count = effort(4, 2)
    place, other = around(count, rng, 1.3), poses(1, rng, 0.1)[0]
    body = small(kind, count, rng).at(place)
    found = tg.proximity(body, MESH.moving(tg.Rest(other)), distance=0.25, device=device)
    corners = (MESH.vertices @ other[:3, :3].T + other[:3, 3])[MESH.faces]
    rows = rows_of(body)
    for k in range(count):
        mine = found[found.query == k]
        assert (np.diff(mine.feature_b) > 0).all()
        near = {int(face): row for row, face in enumerate(mine.feature_b)}
        for face, triangle in enumerate(corners):
            if np.linalg.norm(triangle - place[k, :3, 3], axis=1).min() > 2.0:
                continue
            lower, upper = conic_distance(
                rows[[k]], Rows(HULL, np.zeros(1), np.ones((1, 3)), triangle, np.eye(4)[None])
            )
            assert face in near or upper >= 0.25 - 1e-8
            assert face not in near or lower <= 0.25 + 1e-8
            if face in near:
                assert mine.gap[near[face]] == pytest.approx(max(upper, 0.0), abs=1e-8)
    apart = found[found.kind == tg.Kind.NONE]
    np.testing.assert_allclose(np.einsum("ni,ni->n", apart.point_a - apart.point_b, apart.normal), apart.gap, atol=1e-8)
    swapped = tg.proximity(MESH.moving(tg.Rest(other)), body, distance=0.25, device=device)
    np.testing.assert_array_equal(swapped.feature_a, found.feature_b)
    np.testing.assert_array_equal(swapped.normal, -found.normal)
    once = tg.proximity(body, MESH.moving(tg.Rest(other)), distance=0.25, nearest=True, device=device)
    for k in range(count):
        gaps = found.gap[found.query == k]
        assert once.gap[once.query == k].tolist() == ([gaps.min()] if len(gaps) else [])


def test_two_bodies_touch_once_where_they_are_near(rng, effort):
    count = effort(60)
    a, b = small("box", count, rng).at(poses(count, rng, 0.5)), small("cylinder", count, rng).at(poses(count, rng, 0.5))
    apart = tg.distance(a, b, device="cpu")
    found = tg.proximity(a, b, distance=0.3, device="cpu")
    np.testing.assert_array_equal(found.query, np.flatnonzero(apart.upper < 0.3))
    np.testing.assert_array_equal(found.gap, apart.upper[found.query])
    assert {tg.Kind.NONE, tg.Kind.OVERLAP} >= set(found.kind.tolist())


def test_on_rough_ground_faces_are_those_of_its_surface(rng, effort, device):
    field = tg.Heightfield(rng.random((45, 49)), 0.5, holes=rng.random((44, 48)) < 0.1)
    surface, count = field.to_mesh(), effort(8, 3)
    corners = surface.vertices[surface.faces]
    place = poses(count, rng, 0.0)
    place[:, :3, 3] = rng.uniform([2.0, 2.0, 1.0], [20.0, 20.0, 1.6], (count, 3))
    found = tg.proximity(tg.Sphere(0.3).at(place), field, distance=0.4, device=device)
    for k in range(count):
        centre = np.broadcast_to(place[k, :3, 3], corners.shape)
        gaps = triangle_distances(centre, corners) - 0.3
        mine = found[found.query == k]
        assert len(mine) == (gaps < 0.4).sum()
        np.testing.assert_allclose(np.sort(mine.gap), np.maximum(np.sort(gaps[gaps < 0.4]), 0.0), atol=1e-8)
        assert len(set(mine.feature_b.tolist())) == len(mine)


def test_a_mesh_over_ground_has_the_contacts_of_its_features(device):
    field = tg.Heightfield(np.zeros((40, 40)), 0.5)
    box = tg.generate.box([1.0, 1.0, 1.0])
    pose = np.eye(4)
    pose[:3, 3] = 10.1, 10.2, 0.6
    found = tg.proximity(box.moving(tg.Rest(pose)), field, distance=0.2, device=device)
    surface = tg.proximity(box.at(pose), field.to_mesh(), distance=0.2, device=device)
    assert len(found) == len(surface) > 0
    np.testing.assert_allclose(np.sort(found.gap), np.sort(surface.gap))
    pose[2, 3] = -5.0
    for buried in (box.moving(tg.Rest(pose)), tg.Sphere(0.5).at(pose)):
        below = tg.proximity(buried, field, distance=0.2, device=device)
        assert (below.kind.tolist(), below.gap.tolist()) == ([tg.Kind.INSIDE], [0.0])


def test_a_list_of_all_kinds_finds_every_pair_that_is_near(rng):
    things = [small(kind, 1, rng).at(pose) for kind, pose in zip(KINDS, poses(len(KINDS), rng, 0.8), strict=True)]
    things += [MESH.moving(tg.Twist(poses(1, rng, 1.0)[0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))]
    things += [tg.Heightfield(np.full((9, 9), -0.8), 1.0, origin=(-4.0, -4.0, 0.0))]
    for time in (0.0, 0.7):
        found = tg.proximity(things, distance=0.4, time=time, nearest=True, device="cpu")
        pairs = {(int(i), int(j)): gap for i, j, gap in zip(found.body_a, found.body_b, found.gap, strict=True)}
        for i in range(len(things)):
            for j in range(i + 1, len(things)):
                apart = tg.distance(things[i], things[j], time=time, device="cpu").upper
                assert ((i, j) in pairs) == (apart < 0.4)
                if (i, j) in pairs and (apart > 0.0 or i < len(KINDS)):  # two surfaces that meet: features are near
                    assert pairs[i, j] == pytest.approx(apart, abs=1e-8)


def test_bad_questions_are_told_in_one_sentence():
    with pytest.raises(InputError, match="exclude and broad_phase are for meshes at rest"):
        tg.proximity(tg.Sphere(1.0), MESH, distance=0.1, broad_phase="grid", device="cpu")
    with pytest.raises(UnsupportedError, match="body 1 of the list must be a mesh, an analytic body or ground"):
        tg.proximity([MESH, "ball"], distance=0.1, device="cpu")
    with pytest.raises(InputError, match="body 0 of the list is 2 bodies"):
        tg.proximity([tg.Sphere([1.0, 2.0]), MESH], distance=0.1, device="cpu")
    with pytest.raises(InputError, match="do not pair off"):
        tg.proximity(tg.Sphere([1.0, 2.0]), tg.Sphere([1.0, 2.0, 3.0]), distance=0.1, device="cpu")

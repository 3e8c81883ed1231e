"""Distances of many different pairs in one launch, against `distance` pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.query.contacts import Kind
from tangere.runtime import InputError, UnsupportedError

SHAPES = (tg.generate.box(), tg.generate.icosphere(subdivisions=2), tg.generate.torus(300, tube=0.3))


def random_poses(rng, count: int, spread: float) -> np.ndarray:
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, rng=rng).as_matrix()
    poses[:, :3, 3] = rng.normal(0.0, spread, (count, 3))
    return poses


@pytest.mark.parametrize("cap", [None, 0.8])
def test_pairs_of_any_shapes_are_as_far_apart_as_each_by_itself(rng, effort, cap, device):
    count = effort(120, 60)
    a, b = rng.integers(0, 3, (2, count))
    poses = random_poses(rng, count, 2.0), random_poses(rng, count, 2.0)
    found = tg.distances(SHAPES, a, b, *poses, cap=cap, device=device)
    kinds = set()
    for k in range(count):
        bodies = [SHAPES[which[k]].moving(tg.Rest(pose[k])) for which, pose in zip((a, b), poses, strict=True)]
        alone = tg.distance(*bodies, device="cpu")
        if cap is not None and found.kind[k] == Kind.NONE:
            kinds.add("far")
            assert alone.upper >= (1.0 - 1e-5) * cap - 1e-12
            assert found.upper[k] == np.inf
            continue
        assert found.lower[k] <= alone.upper
        assert found.upper[k] >= alone.lower
        assert found.upper[k] - found.lower[k] <= 1.1e-5 * found.upper[k] + 1e-12
        if alone.upper == 0.0:
            kinds.add("meet")
            assert (found.lower[k], found.upper[k], found.kind[k]) == (0.0, 0.0, Kind.OVERLAP)
        else:
            kinds.add("apart")
            gap = np.linalg.norm(found.point_a[k] - found.point_b[k])
            assert gap == pytest.approx(alone.upper, rel=1.1e-5, abs=1e-12)
            assert np.allclose(found.normal[k] * gap, found.point_a[k] - found.point_b[k])
            placed = SHAPES[a[k]].at(poses[0][k])
            corners = placed.vertices[placed.faces[found.triangle_a[k]]]
            assert np.allclose(found.weights_a[k] @ corners, found.point_a[k], atol=1e-9)
    assert kinds == ({"meet", "apart"} if cap is None else {"meet", "apart", "far"})


def test_one_pose_serves_all_pairs_and_meshes_are_where_they_are_without_one():
    away = np.eye(4)
    away[0, 3] = 3.0
    found = tg.distances(SHAPES[:1], [0, 0], [0, 0], None, away, device="cpu")
    assert found.upper.tolist() == pytest.approx([2.0, 2.0])
    assert tg.distances(SHAPES[:1], [0], [0], device="cpu").kind.tolist() == [Kind.OVERLAP]
    assert len(tg.distances(SHAPES, np.zeros(0, int), np.zeros(0, int), device="cpu").upper) == 0


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="shapes must be a list of meshes"):
        tg.distances(SHAPES[0], [0], [0], device="cpu")
    with pytest.raises(InputError, match=r"a\[0\] is 3 but there are 3 shapes"):
        tg.distances(SHAPES, [3], [0], device="cpu")
    with pytest.raises(InputError, match="poses_b must be one, or one for each of 1 pairs"):
        tg.distances(SHAPES, [0], [0], None, np.tile(np.eye(4), (2, 1, 1)), device="cpu")
    with pytest.raises(InputError, match="cap"):
        tg.distances(SHAPES, [0], [0], cap=-1.0, device="cpu")
    with pytest.raises(InputError, match="they must be as many"):
        tg.distances(SHAPES, [0, 1], [0], device="cpu")


def test_pairs_of_any_kinds_are_as_far_apart_as_each_by_itself(rng):
    ball = tg.generate.icosphere(1)
    lying = np.eye(4)
    lying[:3, :3] = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    ground = tg.Heightfield(np.full((9, 9), -2.0), 1.0, origin=(-4.0, -4.0, 0.0))
    shapes = [ball, tg.Sphere(0.5), tg.Cylinder(0.3, 1.0).at(lying), tg.Cylinder(0.5, 0.4), tg.generate.box()]
    shapes += [tg.ConvexMesh(ball), ground, tg.Box([0.2, 0.3, 0.4])]
    a, b = (rows.ravel() for rows in np.meshgrid(range(8), range(8)))
    rows = ~((a == 6) & (b == 6))
    a, b = a[rows], b[rows]
    places = [np.tile(np.eye(4), (len(a), 1, 1)) for _ in range(2)]
    for side, which in zip(places, (a, b), strict=True):
        side[:, :3, 3] = np.where((which == 6)[:, None], 0.0, rng.normal(size=(len(a), 3)))
    found = tg.distances(shapes, a, b, *places, device="cpu")
    for k in range(len(a)):
        sides = [
            shapes[which] if which == 6 else shapes[which].at(side[k])
            for which, side in zip((a[k], b[k]), places, strict=True)
        ]
        swapped = a[k] == 6
        one = tg.distance(*(sides[::-1] if swapped else sides), device="cpu")
        assert found.upper[k] == pytest.approx(one.upper, abs=1e-8)
        assert found.lower[k] <= one.upper + 1e-12
        assert one.lower <= found.upper[k] + 1e-12
    capped = tg.distances(shapes, a, b, *places, cap=0.5, device="cpu")
    far = found.upper > 0.5
    assert np.isinf(capped.upper[far]).all()
    np.testing.assert_allclose(capped.upper[~far], found.upper[~far], atol=1e-8)
    assert (capped.lower[far] <= 0.5).all()
    one = tg.distances(shapes, 1, [2, 3], device="cpu")
    assert one.upper.shape == (2,)
    with pytest.raises(InputError, match="ground does not move"):
        tg.distances(shapes, [1], [6], None, places[0][:1], device="cpu")
    with pytest.raises(UnsupportedError, match=r"shapes\[1\] must be a Mesh, an analytic body or ground"):
        tg.distances([ball, "ball"], [0], [1], device="cpu")
    with pytest.raises(UnsupportedError, match="of ground and ground is not known"):
        tg.distances(shapes, [6], [6], device="cpu")
    with pytest.raises(InputError, match=r"a\[0\] is 8 but there are 8 shapes"):
        tg.distances(shapes, [8], [0], device="cpu")


@pytest.mark.parametrize("other", [tg.generate.box(), tg.Sphere(1.0)])
def test_pairs_of_any_shapes_are_checked_alike_and_none_have_no_rows(other):
    shapes = [tg.generate.box(), other]
    with pytest.raises(InputError, match=r"b\[1\] is -1 but there are 2 shapes"):
        tg.distances(shapes, [0, 0], [1, -1], device="cpu")
    with pytest.raises(InputError, match=r"a must be numbers of shapes, \(n,\), not \[0.5\]"):
        tg.distances(shapes, [0.5], [0], device="cpu")
    with pytest.raises(InputError, match=r"b must be numbers of shapes, \(n,\), not \[\[0\]\]"):
        tg.distances(shapes, [0], [[0]], device="cpu")
    none = tg.distances(shapes, [], [], device="cpu")
    assert none.upper.shape == none.lower.shape == none.kind.shape == none.triangle_a.shape == (0,)
    assert none.point_a.shape == none.weights_b.shape == none.normal.shape == (0, 3)

"""Depth of solids against closed forms and brute force over sampled points; the way out against exact intersection."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.distances import feature_distance
from tangere.query.contacts import Kind
from tangere.query.depth import find_escapes, search_depths
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def shifted(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    placed = np.eye(4)
    placed[:3, 3] = x, y, z
    return placed


def distances(points: np.ndarray, mesh: Mesh) -> np.ndarray:
    """To the surface, by brute force over all triangles."""
    corners = np.broadcast_to(mesh.vertices[mesh.faces], (len(points), len(mesh.faces), 3, 3))
    queries = np.concatenate([np.broadcast_to(points[:, None, None], (*corners.shape[:2], 1, 3)), corners], axis=2)
    return feature_distance(Kind.VERTEX_FACE, queries.reshape(-1, 4, 3)).reshape(len(points), -1).min(axis=1)


def windings(points: np.ndarray, mesh: Mesh) -> np.ndarray:
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces][None] - points[:, None, None], 2, 0)
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    dot = lambda x, y: np.einsum("nfi,nfi->nf", x, y)  # noqa: E731
    below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return np.arctan2(dot(a, np.cross(b, c)), below).sum(axis=1) / (2.0 * np.pi)


def depths_of(points: np.ndarray, mesh: Mesh) -> np.ndarray:
    return np.where(np.abs(windings(points, mesh)) > 0.5, distances(points, mesh), 0.0)


def surface_points(mesh: Mesh, count: int, rng: np.random.Generator) -> np.ndarray:
    area = mesh.face_areas
    face = rng.choice(len(area), count, p=area / area.sum())
    weights = rng.dirichlet(np.ones(3), count)
    return np.einsum("nk,nki->ni", weights, mesh.vertices[mesh.faces[face]])


BOX = generate.box([2.0, 2.0, 2.0])
BARS = generate.box([10.0, 1.0, 1.0]), generate.box([1.0, 10.0, 1.0]).at(shifted(0.0, 0.0, 0.6))


@pytest.mark.parametrize(
    ("a", "b", "true", "out"),
    [
        (BOX, BOX.at(shifted(1.7, 0.3, 0.0)), 0.3, 0.3),
        (BOX, BOX.at(shifted(1.0, 0.0, 0.0)), 1.0, 1.0),  # aligned: faces lie in one plane
        (*BARS, 0.4, 0.4),  # no vertex of one is in the other
        (BOX, generate.box([6.0, 6.0, 6.0]), 2.0, 4.0),  # one inside the other
        (generate.box([6.0, 6.0, 6.0]), BOX.at(shifted(1.5, 0.0, 0.0)), 2.5, 2.5),
    ],
)
def test_depth_and_way_out_of_boxes_are_those_of_closed_forms(a, b, true, out, device):
    for one, other in ((a, b), (b, a)):
        found = tg.depth(one, other, device=device)
        assert found.lower <= true * (1.0 + 1e-12)
        assert found.upper >= true * (1.0 - 1e-12)
        assert found.lower >= 0.95 * found.upper
        assert found.reached
        length = float(np.linalg.norm(found.escape))
        assert out <= length <= out * 1.00001 + 1e-5
        assert not tg.intersects(one.at(shifted(*(1.0 + 1e-9) * found.escape)), other, solid=True, device=device)


def test_depth_of_spheres_converges_as_they_are_refined():
    """Two balls of radius 1 whose middles are 1.8 apart: 0.2 deep, which others lose as triangles get smaller."""
    found = [
        tg.depth(ball, ball.at(shifted(1.8)), accuracy=0.02, device="cpu")
        for ball in (generate.icosphere(subdivisions=k) for k in (1, 2, 3, 4))
    ]
    assert all(each.lower <= 0.2 for each in found)
    off = [0.2 - each.upper for each in found]
    assert abs(off[-1]) < 0.003
    assert off[-1] < 0.1 * off[0]
    assert found[-1].normal @ [-1.0, 0.0, 0.0] > 0.99


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_what_brute_force_finds(seed, effort):
    rng = np.random.default_rng(seed)
    shapes = [generate.torus(160), generate.icosphere(subdivisions=2), generate.plate_with_hole(), BOX, BARS[0]]
    a, b = (shapes[k] for k in rng.integers(len(shapes), size=2))
    placed = np.eye(4)
    placed[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    placed[:3, 3] = rng.uniform(-0.3, 0.3, 3) * min(a.extent, b.extent)
    world = a.at(placed)
    found = tg.depth(a.moving(tg.Rest(placed)), b, accuracy=0.05, device="cpu")
    assert tg.intersects(world, b, solid=True, device="cpu") == (found.upper > 0.0)
    count = effort(400)
    sampled = max(depths_of(surface_points(one, count, rng), other).max() for one, other in ((world, b), (b, world)))
    assert sampled <= found.upper * (1.0 + 1e-12)
    if found.lower > 0.0:
        own = max(float(depths_of(found.point[None], mesh)[0]) for mesh in (world, b))
        assert own == pytest.approx(found.lower, rel=1e-9)
        assert sampled > 0.3 * found.lower
        assert not tg.intersects(world.at(shifted(*(1.0 + 1e-9) * found.escape)), b, solid=True, device="cpu")


def test_the_nearest_way_out_leads_the_first_body_away():
    found = tg.depth(BOX.at(shifted(1.7)), BOX, device="cpu")
    assert np.allclose(found.normal, [1.0, 0.0, 0.0])
    assert np.allclose(tg.depth(BOX, BOX.at(shifted(1.7)), device="cpu").normal, [-1.0, 0.0, 0.0])
    told = tg.depth(BOX.at(shifted(1.7)), BOX, directions=[[0.0, 0.0, 3.0]], device="cpu")
    assert np.allclose(told.escape, [0.3, 0.0, 0.0], atol=1e-4)  # the way from the deepest point is tried as well


def test_bodies_that_do_not_meet_have_depth_zero_and_those_that_touch_next_to_none():
    apart = tg.depth(BOX, BOX.at(shifted(2.5)), device="cpu")
    assert (apart.lower, apart.upper, apart.escape.tolist()) == (0.0, 0.0, [0.0, 0.0, 0.0])
    hollow = Mesh.join([generate.box([6.0, 6.0, 6.0]), Mesh(2.0 * BOX.vertices, BOX.faces[:, ::-1])])
    assert tg.depth(BOX, hollow, device="cpu").upper == 0.0
    flush = tg.depth(BOX, BOX.at(shifted(2.0, 0.6, 0.0)), device="cpu")
    assert flush.lower == 0.0
    assert flush.upper <= 1e-4 * BOX.extent
    assert np.linalg.norm(flush.escape) < 1e-5


def test_a_body_on_itself_has_depth_zero_and_its_width_as_way_out():
    found = tg.depth(BOX, BOX, device="cpu")
    assert found.upper < 1e-10
    assert np.linalg.norm(found.escape) == pytest.approx(2.0, abs=1e-4)


def test_bounds_that_ran_out_of_pieces_are_wider_and_hold():
    ball = generate.icosphere(subdivisions=3)
    found = tg.depth(ball, ball.at(shifted(1.8)), accuracy=1e-4, most=500, device="cpu")
    exact = tg.depth(ball, ball.at(shifted(1.8)), accuracy=1e-3, device="cpu")
    assert not found.reached
    assert found.lower <= exact.upper
    assert found.upper >= exact.lower


def test_depth_inside_overlapping_pieces_counts_from_all_faces():
    pieces = Mesh.join([BOX, BOX.at(shifted(1.0))])
    found = tg.depth(generate.box([0.02, 0.02, 0.02]).at(shifted(0.5, 0.0, 0.0)), pieces, device="cpu")
    assert found.lower <= 0.51
    assert found.upper >= 0.5 - 1e-9


def test_many_pairs_at_once_have_the_bits_of_each_alone():
    shapes, shape = (BOX, generate.torus(160), generate.icosphere(subdivisions=2)), np.array([0, 1, 2, 0])
    poses = np.stack([shifted(), shifted(0.5, 0.2), shifted(0.9, 0.4, 0.3), shifted(1.6)])
    pairs = np.array([[0, 1], [1, 2], [0, 3], [2, 3]])
    options = {"accuracy": 0.05, "resolution": 1e-4, "device": "cpu"}
    together = search_depths(shapes, shape, poses, pairs, **options)
    for row, pair in enumerate(pairs):
        alone = search_depths(shapes, shape, poses, pair[None], **options)
        for name in ("lower", "upper", "point", "normal"):
            assert np.array_equal(getattr(alone, name)[0], getattr(together, name)[row])
    with tg.runtime.using_threads(3):
        again = search_depths(shapes, shape, poses, pairs, **options)
    assert np.array_equal(again.lower, together.lower)
    assert np.array_equal(again.upper, together.upper)
    ways = find_escapes(shapes, shape, poses, pairs, np.eye(3), device="cpu")
    assert ways.shape == (4, 3)
    assert (np.linalg.norm(ways, axis=1) > 0.0).all()


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(InputError, match="no inside"):
        tg.depth(Mesh(BOX.vertices, BOX.faces[1:]), BOX)
    with pytest.raises(InputError, match="accuracy"):
        tg.depth(BOX, BOX, accuracy=1.5)
    with pytest.raises(InputError, match=r"directions\[1\]"):
        tg.depth(BOX, BOX, directions=[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(InputError, match="one pose"):
        tg.depth(BOX.moving(tg.Rest(np.stack([np.eye(4)] * 3))), BOX)


def test_the_volume_of_overlap_is_that_of_boxes():
    pytest.importorskip("manifold3d", reason="needs the extra [solid]")
    assert tg.overlap_volume(BOX, BOX.moving(tg.Rest(shifted(1.5, 1.0)))) == pytest.approx(0.5 * 1.0 * 2.0)
    assert tg.overlap_volume(BOX, BOX.at(shifted(2.5))) == 0.0
    with pytest.raises(InputError, match="no inside"):
        tg.overlap_volume(Mesh(BOX.vertices, BOX.faces[1:]), BOX)


def test_what_has_no_depth_is_told_in_words_of_the_question():
    ball, box = tg.Sphere(1.0), tg.generate.box()
    with pytest.raises(InputError, match=r"^depth: a must be a mesh, not Sphere\(1 body\)"):
        tg.depth(ball, box)
    with pytest.raises(InputError, match=r"^overlap_volume: b must be a mesh"):
        tg.overlap_volume(box, ball)

"""Manifolds with meshes: polygons of shapely, all triangles one by one, the bodies' formulas, and solids that agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.convex_distances import conic_distance, outside, rows_of, supports
from oracles.convex_families import KINDS, bodies, poses, sizes
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, UnsupportedError

shapely = pytest.importorskip("shapely")

#: Kinds whose kernels every run compiles: without a margin and with one, a disc.
EVERY = [pytest.param(k, marks=[] if k in ("capsule", "box", "cylinder") else pytest.mark.slow) for k in KINDS]


def at(x: float, y: float, z: float, turn: np.ndarray | None = None) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    if turn is not None:
        pose[:3, :3] = turn
    return pose


def about_z(angle: float) -> np.ndarray:
    return Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix()


def floor(rng: np.random.Generator, count: int, size: float = 1.5) -> tg.Mesh:
    """A square floor, triangulated anyhow; some triangles are turned over."""
    corners = size * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    points = np.concatenate([corners, rng.uniform(-0.97 * size, 0.97 * size, (count, 2))])
    faces = Delaunay(points).simplices.copy()
    turned = rng.random(len(faces)) < 0.3
    faces[turned] = faces[turned][:, ::-1]
    return tg.Mesh(np.column_stack([points, np.zeros(len(points))]), faces)


def rough(rng: np.random.Generator, count: int = 9, height: float = 0.25) -> tg.Mesh:
    """Bumps on a square of 3 by 3."""
    x, y = np.meshgrid(np.linspace(-1.5, 1.5, count), np.linspace(-1.5, 1.5, count), indexing="ij")
    number = np.arange(count * count).reshape(count, count)
    v0, v1, v2, v3 = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    faces = np.concatenate([np.stack(c, -1).reshape(-1, 3) for c in ((v0, v1, v2), (v3, v2, v1))])
    vertices = np.stack([x, y, height * rng.random(x.shape)], axis=-1).reshape(-1, 3)
    return tg.Mesh(vertices, faces)


def hull_of(points: np.ndarray) -> np.ndarray:
    return points[ConvexHull(points).vertices]


def support_error(found: np.ndarray, expected: np.ndarray) -> float:
    """How far the convex hulls of points of a plane differ, along 64 directions."""
    angle = np.linspace(0.0, 2.0 * np.pi, 65)[:-1]
    along = np.stack([np.cos(angle), np.sin(angle)])
    return float(np.abs((found @ along).max(axis=0) - (expected @ along).max(axis=0)).max())


def assert_lies_on_both(found: Contacts, body, mesh: tg.Mesh, size: float) -> None:
    """Points are of the body and of the triangle named, gaps are along normals, keys are unique."""
    assert np.allclose(found.gap, np.einsum("ij,ij->i", found.point_a - found.point_b, found.normal), atol=1e-12)
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    rows = rows_of(body)[found.query]
    planes = body.hull.planes if hasattr(body, "hull") else None
    assert outside(rows, found.point_a, planes).max(initial=0.0) <= 1e-6 * size
    listed = found[(found.gap > 0.0) | (found.key < 3 << 61)]  # where features do not meet the deepest point is told
    for point, face in zip(listed.point_b, listed.feature_b, strict=True):
        corners = mesh.vertices[mesh.faces[face]]
        w, *_ = np.linalg.lstsq(np.vstack([corners.T, np.full(3, 10.0)]), np.append(point, 10.0), rcond=None)
        assert w.min() >= -1e-6
        assert np.abs(w @ corners - point).max() <= 1e-6 * size
    for query in np.unique(found.query):
        assert len(np.unique(found.key[found.query == query])) == (found.query == query).sum()


@pytest.mark.parametrize("count", [0, 40])
@pytest.mark.parametrize("gap", [4e-3, 1e-12, 0.0, -4e-3])
def test_a_box_on_a_floor_has_the_whole_polygon_however_the_floor_is_triangulated(rng, effort, device, count, gap):
    for _ in range(effort(12, 3)):
        half, turn, shift = rng.uniform(0.2, 0.9, 3), about_z(rng.uniform(0.0, np.pi)), rng.uniform(-1.6, 1.6, 2)
        ground, box = floor(rng, count), tg.Box(half)
        footprint = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half[:2] @ turn[:2, :2].T + shift
        shared = shapely.Polygon(footprint).intersection(shapely.box(-1.5, -1.5, 1.5, 1.5))
        if shared.area < 1e-3:
            continue
        found = tg.manifold(box.at(at(*shift, half[2] + gap, turn)), ground, distance=0.005, device=device)
        # Beyond its border the box hangs over the edge of the floor, which holds it as well.
        up = found[found.normal[:, 2] > 0.9]
        assert np.allclose(up.normal, [0.0, 0.0, 1.0], atol=1e-9)
        assert np.allclose(up.gap, gap, atol=1e-9)
        corners = np.array(shared.exterior.coords)[:-1]
        assert support_error(up.point_b[:, :2], corners) <= 1e-6
        assert len(up) == len(corners)
        assert gap < 0.0 or len(up) == len(found)


@pytest.mark.parametrize("count", [0, 40])
def test_discs_that_hang_over_the_border_of_a_floor_cover_what_they_share(rng, effort, device, count):
    """Of a segment the triangle of its ends and its middle is three quarters or nearly, however flat it is."""
    compared = 0
    for _ in range(effort(40, 8)):
        ground, radius, gap = floor(rng, count), rng.uniform(0.2, 1.0), rng.choice([-1e-3, 0.0, 1e-3])
        way, along = (1.5 + radius * rng.uniform(-1.0, 0.999)), rng.uniform(-1.5, 1.5)
        middle = np.array([way, along])[:: rng.choice([-1, 1])] * rng.choice([-1.0, 1.0], 2)
        disc = shapely.Point(*middle).buffer(radius, quad_segs=4096)
        shared = disc.intersection(shapely.box(-1.5, -1.5, 1.5, 1.5))
        if shared.area < 1e-4 * radius**2:
            continue
        compared += 1
        keys = []
        for turn in (0.3, 0.3 + 1e-6):
            placed = at(*middle, 0.2 + gap, about_z(turn))
            for body in (tg.Cylinder(radius, 0.4), tg.Cone(radius, 0.4)):
                found = tg.manifold(body.at(placed), ground, distance=5e-3, device=device)
                up = found[np.abs(found.normal[:, 2]) > 0.9]
                assert np.allclose(up.gap, gap, atol=1e-9)
                assert ConvexHull(up.point_b[:, :2]).volume >= 0.72 * shared.area
                assert shared.buffer(1e-5).covers(shapely.MultiPoint(up.point_b[:, :2]))
                assert len(up) <= 24  # however many triangles there are
                assert_lies_on_both(up, body.at(placed), ground, 1.0)
                keys.append(sorted(up.key.tolist()))
        assert keys[:2] == keys[2:]
    assert compared > 3


@pytest.mark.parametrize("kind", EVERY)
def test_bodies_on_a_floor_have_the_contacts_they_have_on_a_plate(rng, effort, device, kind):
    plate = tg.Box([1.5, 1.5, 0.5]).at(at(0.0, 0.0, -0.5))
    for _ in range(effort(6, 2)):
        one = bodies(kind, **sizes(kind, 1, rng))
        turn = Rotation.random(rng=rng).as_matrix()
        if kind in ("box", "cylinder", "cone") and rng.random() < 0.7:
            turn = about_z(rng.uniform(0.0, np.pi))
        reach = supports(rows_of(one.at(at(0, 0, 0, turn))), np.array([[0.0, 0.0, -1.0]]))[0]
        gap = rng.choice([2e-3, -2e-3])
        placed = one.at(at(*rng.uniform(-0.3, 0.3, 2), reach + gap, turn))
        found = tg.manifold(placed, floor(rng, 30), distance=0.005, device=device)
        expected = tg.manifold(placed, plate, distance=0.005, device=device)
        assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-9)
        assert found.gap.min() == pytest.approx(expected.gap.min(), abs=1e-9)
        assert found.gap.min() == pytest.approx(gap, abs=1e-9)
        if len(expected) > 2:
            assert support_error(found.point_b[:, :2], expected.point_b[:, :2]) <= 1e-9
        else:
            assert len(found) == len(expected)


@pytest.mark.parametrize("kind", EVERY)
def test_bodies_near_a_rough_surface_have_a_contact_as_near_as_they_are(rng, effort, device, kind):
    count = effort(16, 4)
    ground, limit = rough(rng), 0.05
    body = bodies(kind, **sizes(kind, count, rng, 0.1, 0.4))
    placed = body.at(poses(count, rng, 0.5) @ np.eye(4))
    lifted = np.array(placed.poses)
    lifted[:, 2, 3] = rng.uniform(0.3, 0.8, count)
    placed = body.at(lifted)
    found = tg.manifold(placed, ground, distance=limit, device=device)
    rows = rows_of(placed)
    size = 1.0
    assert_lies_on_both(found, placed, ground, size)
    told = tg.distance(placed, ground, device=device)
    for row in range(count):
        mine = found[found.query == row]
        if told.upper[row] > limit:
            assert len(mine) == 0
        elif told.upper[row] > 0.0:
            face = int(told.triangle_b[row])
            least = conic_distance(rows[np.arange(count) == row], rows_of(_prism(ground.vertices[ground.faces[face]])))[
                1
            ]
            assert mine.gap.min() == pytest.approx(least, abs=1e-6)  # the prism is as thin
            assert mine.gap.max() <= limit * (1.0 + 1e-12)
        else:
            assert mine.gap.min() <= 1e-9


def _prism(corners: np.ndarray) -> tg.ConvexMesh:
    """A triangle with a thickness of a ten-millionth, for oracles that take solids."""
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normal *= 5e-8 / np.linalg.norm(normal)
    faces = [[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3], [2, 3, 5]]
    return tg.ConvexMesh(tg.Mesh(np.concatenate([corners - normal, corners + normal]), faces))


@pytest.mark.parametrize("kind", EVERY)
def test_shallow_overlaps_with_a_closed_mesh_go_out_as_of_the_solid(rng, effort, device, kind):
    ball = tg.generate.icosphere(subdivisions=1)
    solid = tg.ConvexMesh(ball)
    for _ in range(effort(8, 3)):
        body = bodies(kind, **sizes(kind, 1, rng, 0.3, 0.8))
        turn, away = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
        away /= np.linalg.norm(away)
        start = body.at(at(*(4.0 * away), turn))
        near = tg.distance(start, solid, device=device)
        placed = start.at(at(*(-(near.upper + 0.01) * near.normal)))
        found = tg.manifold(placed, ball, distance=0.0, device=device)
        expected = tg.manifold(placed, solid, distance=0.0, device=device)
        assert found.gap.min() == pytest.approx(expected.gap.min(), abs=1e-6)
        deepest = int(np.argmin(found.gap))
        assert found.normal[deepest] @ expected.normal[0] > 0.999
        out = placed.at(at(*(-found.gap[deepest] * found.normal[deepest])))
        assert tg.manifold(out, solid, distance=0.01, device=device).gap.min() >= -1e-6


def test_no_edge_inside_a_surface_gives_a_normal(rng, effort, device):
    ground = floor(rng, 120)
    count = effort(60, 12)
    placed = np.tile(np.eye(4), (count, 1, 1))
    placed[:, :2, 3] = rng.uniform(-0.9, 0.9, (count, 2))
    placed[:, 2, 3] = 0.3 + rng.uniform(-0.05, 0.04, count)
    placed[:, :3, :3] = Rotation.random(count, rng=rng).as_matrix()
    for body in (tg.Sphere(0.3), tg.Capsule(0.3, 0.0 + 1e-3)):
        found = tg.manifold(body.at(placed), ground, distance=0.05, device=device)
        assert set(found.query.tolist()) == set(range(count))
        assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-9)
    balls = tg.manifold(tg.Sphere(0.3).at(placed), ground, distance=0.05, device=device)
    assert len(balls) == count
    assert np.allclose(balls.gap, placed[:, 2, 3] - 0.3, atol=1e-9)
    assert np.allclose(balls.point_b[:, :2], placed[:, :2, 3], atol=1e-7)


def corner() -> tg.Mesh:
    """A floor and two walls, each of eight triangles."""
    x, y = np.meshgrid(np.linspace(0.0, 2.0, 3), np.linspace(0.0, 2.0, 3), indexing="ij")
    flat = np.stack([x, y, 0.0 * x], axis=-1).reshape(-1, 3)
    number = np.arange(9).reshape(3, 3)
    v0, v1, v2, v3 = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    faces = np.concatenate([np.stack(c, -1).reshape(-1, 3) for c in ((v0, v1, v2), (v3, v2, v1))])
    parts = [tg.Mesh(np.roll(flat, k, axis=1), faces) for k in range(3)]
    joined = tg.Mesh.join(parts)
    vertices, inverse = np.unique(joined.vertices, axis=0, return_inverse=True)
    return tg.Mesh(vertices, inverse.reshape(-1)[joined.faces])


@pytest.mark.parametrize("gap", [2e-3, 0.0, -2e-3])
def test_a_box_in_a_corner_is_held_by_three_faces(device, gap):
    half = 0.4
    found = tg.manifold(tg.Box([half] * 3).at(at(*[half + gap] * 3)), corner(), distance=0.005, device=device)
    for axis in np.eye(3):
        mine = found[found.normal @ axis > 0.999]
        assert len(mine) == 4
        assert np.allclose(mine.gap, gap, atol=1e-9)
        assert np.ptp(mine.point_a[:, axis == 0.0], axis=0).min() == pytest.approx(2.0 * half + min(gap, 0.0))
    assert len(found) == 12


@pytest.mark.parametrize("gap", [2e-3, 0.0, -2e-3])
def test_a_box_on_a_knife_rests_on_its_edge(device, gap):
    blade = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.05, -1.0], [1.0, 0.05, -1.0]])
    other = blade[2:] * [1.0, -1.0, 1.0]
    knife = tg.Mesh(np.concatenate([blade, other]), [[0, 1, 2], [3, 2, 1], [0, 4, 1], [5, 1, 4]])
    found = tg.manifold(tg.Box([0.5] * 3).at(at(0.2, 0.1, 0.5 + gap)), knife, distance=0.005, device=device)
    assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-6)
    assert np.allclose(found.gap, gap, atol=1e-9)
    assert np.allclose(np.sort(found.point_b[:, 0]), [-0.3, 0.7], atol=1e-9)


def test_a_lying_barrel_touches_at_both_ends_and_on_a_ridge_at_one_point(rng, device):
    lying = Rotation.from_rotvec([0.0, 0.5 * np.pi, 0.0]).as_matrix()
    barrel = tg.Cylinder(0.3, 1.0)
    found = tg.manifold(barrel.at(at(0.0, 0.0, 0.301, lying)), floor(rng, 40), distance=0.005, device=device)
    assert np.allclose(np.sort(found.point_b[:, 0]), [-0.5, 0.5], atol=1e-9)
    ridge = tg.Mesh([[0, -1, 0], [0, 1, 0], [1, 0, -1], [-1, 0, -1]], [[0, 2, 1], [0, 1, 3]])
    found = tg.manifold(barrel.at(at(0.0, 0.1, 0.301, lying)), ridge, distance=0.005, device=device)
    assert len(found) == 1
    assert np.allclose(found.point_b[0], [0.0, 0.1, 0.0], atol=1e-6)
    assert found.gap[0] == pytest.approx(0.001, abs=1e-9)


def test_keys_stay_while_a_box_slides_over_triangles_and_sinks_a_little(rng, device):
    ground, keys = floor(rng, 60), []
    for k in range(5):
        pose = at(0.03 * k, 0.02 * k, 0.3 - 2e-4 * k, about_z(0.3))
        keys.append(tg.manifold(tg.Box([0.3] * 3).at(pose), ground, device=device).key.tolist())
    assert all(each == keys[0] for each in keys)
    assert len(keys[0]) == 4


def test_one_by_one_as_in_a_batch_and_from_either_side(rng, device):
    ground, box = rough(rng), tg.Box([0.2, 0.3, 0.1])
    placed = poses(6, rng, 0.4)
    placed[:, 2, 3] = 0.4
    every = tg.manifold(box.at(placed), ground, distance=0.1, device=device)
    turned = at(0.3, -0.2, 0.5, Rotation.random(rng=rng).as_matrix())
    moved = tg.manifold(box.at(turned @ placed), ground.moving(tg.Rest(turned)), distance=0.1, device=device)
    assert every.query.tolist() == moved.query.tolist()
    assert every.key.tolist() == moved.key.tolist()
    assert np.allclose(moved.point_a, every.point_a @ turned[:3, :3].T + turned[:3, 3], atol=1e-9)
    for row in range(6):
        mine, alone = every[every.query == row], tg.manifold(box.at(placed[row]), ground, distance=0.1, device=device)
        assert alone.key.tolist() == mine.key.tolist()
        assert (alone.point_a == mine.point_a).all()
    other = tg.manifold(ground, box.at(placed), distance=0.1, device=device)
    assert (other.normal == -every.normal).all()
    assert (other.point_a == every.point_b).all()
    assert (tg.manifold(box.at(placed), ground, distance=0.1, device=device, threads=1).gap == every.gap).all()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_sizes_do_not_matter(rng, scale, device):
    ground = floor(rng, 20)
    large = tg.Mesh(scale * ground.vertices, ground.faces)
    for gap in (1e-3, -1e-3):
        one = tg.manifold(tg.Box([0.3, 0.4, 0.5]).at(at(0.1, 0.2, 0.5 + gap)), ground, device=device)
        pose = at(*(scale * np.array([0.1, 0.2, 0.5 + gap])))
        other = tg.manifold(tg.Box(scale * np.array([0.3, 0.4, 0.5])).at(pose), large, device=device)
        assert len(one) == len(other) == 4
        assert np.allclose(other.point_a, scale * one.point_a, atol=1e-9 * scale)


def test_two_meshes_share_the_whole_polygon(rng, effort, device):
    box = tg.generate.box((1.0, 1.0, 1.0))
    for _ in range(effort(12, 3)):
        turn, shift = about_z(rng.choice([0.0, rng.uniform(0.0, np.pi)])), rng.uniform(-1.0, 1.0, 2)
        gap = rng.choice([4e-3, 1e-9])
        square = 0.5 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        shared = shapely.Polygon(square).intersection(shapely.Polygon(square @ turn[:2, :2].T + shift))
        if shared.area < 1e-2:
            continue
        found = tg.manifold(box.moving(tg.Rest(at(*shift, 1.0 + gap, turn))), box, distance=0.005, device=device)
        assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-9)
        assert np.allclose(found.gap, gap, atol=1e-9)
        assert support_error(found.point_b[:, :2], np.array(shared.exterior.coords)) <= 1e-6
        assert len(found) == len(shared.exterior.coords) - 1


def test_meshes_in_batches_and_on_ground_in_memory_and_in_tiles(device):
    box = tg.generate.box((1.0, 1.0, 1.0))
    placed = np.stack([at(2.2, 3.1, 0.503), at(8.0, 3.5, 0.501, about_z(0.4)), at(5.0, 5.0, 3.0)])
    ground = tg.Heightfield(np.zeros((80, 90)))
    found = tg.manifold(box.moving(tg.Rest(placed)), ground, device=device)
    assert found.query.tolist() == [0] * 4 + [1] * 4
    assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-12)
    assert np.allclose(found.gap, [0.003] * 4 + [0.001] * 4, atol=1e-9)
    tiles = tg.TiledHeightfield(np.zeros((80, 90)))
    same = tg.manifold(box.moving(tg.Rest(placed)), tiles, device=device)
    assert same.key.tolist() == found.key.tolist()
    plate = ground.to_mesh()
    as_mesh = tg.manifold(box.moving(tg.Rest(placed)), plate, device=device)
    assert as_mesh.query.tolist() == found.query.tolist()
    assert np.allclose(np.sort(as_mesh.point_a, axis=0), np.sort(found.point_a, axis=0), atol=1e-9)


def test_surfaces_that_pass_through_each_other_are_sent_to_the_depth(device):
    box = tg.generate.box((1.0, 1.0, 1.0))
    with pytest.raises(UnsupportedError, match=r"pair 0 pass through each other.*tg\.depth"):
        tg.manifold(box.moving(tg.Rest(at(0.3, 0.2, 0.9))), box, device=device)
    ground = tg.Heightfield(np.zeros((9, 9)))
    with pytest.raises(UnsupportedError, match=r"mesh 0 and the ground pass through"):
        tg.manifold(box.moving(tg.Rest(at(4.0, 4.0, 0.4))), ground, device=device)
    with pytest.raises(UnsupportedError, match="mesh 0 is below the ground"):
        tg.manifold(box.moving(tg.Rest(at(4.0, 4.0, -4.0))), ground, device=device)


def test_moving_bodies_are_asked_at_a_time(rng, device):
    ground, fall = floor(rng, 10), tg.Twist(at(0.0, 0.0, 1.0), [0.0, 0.0, -1.0], [0.0, 0.0, 0.3])
    ball = tg.Sphere(0.5).moving(fall)
    assert len(tg.manifold(ball, ground, device=device)) == 0
    assert tg.manifold(ball, ground, time=0.505, device=device).gap[0] == pytest.approx(-0.005)
    assert tg.manifold(ball, ground, time=[0.0, 0.505], device=device).query.tolist() == [1]
    flat = tg.Heightfield(np.zeros((5, 5)), origin=(-2.0, -2.0, 0.0))
    assert tg.manifold(ball, flat, time=0.505, device=device).gap[0] == pytest.approx(-0.005)


def test_bad_questions_are_told(rng, device):
    ground = floor(rng, 4)
    with pytest.raises(InputError, match="distance"):
        tg.manifold(tg.Sphere(1.0), ground, distance=-1.0, device=device)
    with pytest.raises(InputError, match="sound"):
        tg.manifold(tg.Sphere(1.0), ground, mode="published", device=device)
    with pytest.raises(InputError, match="world"):
        tg.manifold(ground, ground, world=np.zeros(1, np.int32), device=device)
    with pytest.raises(InputError, match="pair off"):
        tg.manifold(tg.Sphere(1.0).at(poses(3, rng, 1.0)), ground.moving(tg.Rest(poses(2, rng, 1.0))), device=device)
    with pytest.raises(UnsupportedError, match="manifold of"):
        tg.manifold(tg.Heightfield(np.zeros((3, 3))), ground, device=device)
    assert len(tg.manifold(tg.Sphere(1.0).at(at(0.0, 0.0, 9.0)), ground, device=device)) == 0

"""Manifolds of two analytic bodies: polygons of shapely, directions tried one by one, and the bodies' own formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.convex_distances import outside, rows_of, supports
from oracles.convex_families import KINDS, PAIRS, bodies, poses, sizes
from tangere.runtime import InputError, UnsupportedError

shapely = pytest.importorskip("shapely")

#: Pairs whose kernels every run compiles: each kind, flat on flat, curved on curved.
FEW = [
    ("sphere", "cone"),
    ("capsule", "capsule"),
    ("box", "box"),
    ("box", "cylinder"),
    ("cylinder", "cylinder"),
    ("cone", "hull"),
]
EVERY = [pytest.param(*pair, marks=[] if pair in FEW else pytest.mark.slow) for pair in PAIRS]


def pose(x: float, y: float, z: float, turn: float = 0.0) -> np.ndarray:
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = Rotation.from_rotvec([0.0, 0.0, turn]).as_matrix(), (x, y, z)
    return result


def planes_of(body) -> np.ndarray:
    return body.hull.planes


def least_depth(a, b, rng: np.random.Generator, tries: int = 4000) -> float:
    """The least translation that parts two bodies, one row each: supports along directions, the best ones refined."""
    n = rng.normal(size=(tries, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]

    def depth(n: np.ndarray) -> np.ndarray:
        one, other = (
            type(row)(
                row.kind,
                *(np.repeat(part, len(n), axis=0) for part in (row.radius, row.half)),
                row.corners,
                np.repeat(row.poses, len(n), axis=0),
            )
            for row in (a, b)
        )
        return supports(one, -n) + supports(other, n)

    def of_one(x: np.ndarray) -> float:
        size = np.linalg.norm(x)
        return float(depth(x[None] / size)[0]) if size > 1e-9 else np.inf

    found = depth(n)
    options = {"xatol": 1e-12, "fatol": 1e-14, "maxiter": 2000, "maxfev": 2000}
    return min(minimize(of_one, n[k], method="Nelder-Mead", options=options).fun for k in np.argsort(found)[:6])


@pytest.mark.parametrize(("kind_a", "kind_b"), EVERY)
def test_overlapping_bodies_are_told_the_least_way_out(rng, effort, device, kind_a, kind_b):
    count = effort(12, 4)
    placed = []
    for kind in (kind_a, kind_b):
        placed.append(bodies(kind, **sizes(kind, count, rng, 0.4, 1.0)).at(poses(count, rng, 0.15)))
    found = tg.manifold(*placed, device=device)
    a, b = (rows_of(body) for body in placed)
    assert sorted(set(found.query.tolist())) == list(range(count))
    for row in range(count):
        mine = found[found.query == row]
        one, other = (np.arange(count) == row for _ in range(2))
        size = max(np.linalg.norm(part.half[row]) + part.radius[row] for part in (a, b)) + 0.6
        depth, n = -mine.gap.min(), mine.normal[0]
        assert np.ptp(mine.normal, axis=0).max() == 0.0
        assert depth >= supports(a[one], -n[None])[0] + supports(b[other], n[None])[0] - 1e-9 * size  # parts them
        assert depth <= least_depth(a[one], b[other], rng) + 1e-8 * size
        assert np.allclose(mine.gap, np.einsum("ij,ij->i", mine.point_a - mine.point_b, mine.normal), atol=1e-9)
        for body, rows, points in ((placed[0], a, mine.point_a), (placed[1], b, mine.point_b)):
            repeated = rows[np.full(len(mine), row)]
            assert outside(repeated, points, planes_of(body)).max() <= 1e-6 * size
    apart = tg.distance(placed[0].at(np.eye(4)), placed[1], device=device)
    assert (apart.upper == 0.0).all()


@pytest.mark.parametrize(("kind_a", "kind_b"), EVERY)
def test_points_of_bodies_deep_in_each_other_are_of_the_bodies(rng, effort, device, kind_a, kind_b):
    count = effort(600, 60)
    placed = []
    for kind in (kind_a, kind_b):
        at = poses(count, rng, 0.3)
        at[: count // 4, :3, 3] = 0.0  # concentric: many ways out are as short
        placed.append(bodies(kind, **sizes(kind, count, rng, 0.05, 3.0)).at(at))
    found = tg.manifold(*placed, distance=0.0, device=device)
    assert len(set(found.query.tolist())) > count // 2
    for body, points in zip(placed, (found.point_a, found.point_b), strict=True):
        assert outside(rows_of(body)[found.query], points, planes_of(body)).max() <= 1e-8


@pytest.mark.parametrize(("kind_a", "kind_b"), EVERY)
def test_bodies_apart_have_the_gap_of_their_distance_and_none_beyond_the_limit(rng, effort, device, kind_a, kind_b):
    count = effort(40, 8)
    placed = [bodies(k, **sizes(k, count, rng)).at(poses(count, rng, 1.2)) for k in (kind_a, kind_b)]
    apart = tg.distance(*placed, device=device)
    limit = 1.001 * float(np.median(apart.upper[apart.upper > 0.0]))
    found = tg.manifold(*placed, distance=limit, device=device)
    near = np.flatnonzero(apart.upper < limit)
    assert set(found.query.tolist()) == set(near.tolist())
    assert found.gap.max() <= limit * (1.0 + 1e-12)
    for row in near:
        if apart.upper[row] > 1e-6:
            least = found.gap[found.query == row].min()
            assert least == pytest.approx(apart.upper[row], abs=1e-7)
    other = tg.manifold(*placed[::-1], distance=limit, device=device)
    assert set(other.query.tolist()) == set(near.tolist())
    for pair in near:  # which of two points as near as rounding can tell is listed may differ
        ours, theirs = found[found.query == pair], other[other.query == pair]
        assert np.allclose(ours.normal[0], -theirs.normal[0], atol=2e-3)  # a root of the accuracy of distances
        assert ours.gap.min() == pytest.approx(theirs.gap.min(), abs=1e-7)


@pytest.mark.parametrize(("kind_a", "kind_b"), [pair for pair in FEW if {*pair} & {"cylinder", "cone"}])
def test_no_direction_near_the_normal_of_deep_curved_bodies_is_a_shorter_way_out(rng, effort, device, kind_a, kind_b):
    count = effort(12, 3)
    placed = [bodies(k, **sizes(k, count, rng, 0.4, 1.0)).at(poses(count, rng, 0.15)) for k in (kind_a, kind_b)]
    found = tg.manifold(*placed, distance=0.0, device=device)
    a, b = (rows_of(body) for body in placed)
    for row in range(count):
        mine = found[found.query == row]
        one, other, n = a[np.arange(count) == row], b[np.arange(count) == row], mine.normal[0]
        e = np.linalg.svd(n[None])[2][1:]

        def way(x: np.ndarray, n=n, e=e, one=one, other=other) -> float:
            d = n + x @ e
            d /= np.linalg.norm(d)
            return float(supports(one, -d[None])[0] + supports(other, d[None])[0])

        simplex = 1e-3 * np.array([[0.0, 0.0], [1.0, 0.3], [-0.3, 1.0]])
        options = {"initial_simplex": simplex, "xatol": 1e-12, "fatol": 1e-16, "maxiter": 4000, "maxfev": 4000}
        least = minimize(way, np.zeros(2), method="Nelder-Mead", options=options)
        assert -mine.gap.min() <= least.fun + 1e-9
        if way(least.x + 1e-4) > least.fun + 1e-9:  # else the way is as long for many directions
            assert np.abs(least.x).max() <= 1e-6


def test_crossing_cylinders_go_out_across_both_axes(rng, effort, device):
    count = effort(200, 20)
    turns = Rotation.random(2 * count, rng=rng).as_matrix().reshape(2, count, 3, 3)
    across = np.cross(turns[0, :, :, 2], turns[1, :, :, 2])
    steep = np.linalg.norm(across, axis=1) > 0.3
    across = across[steep] / np.linalg.norm(across[steep], axis=1)[:, None]
    depth = rng.uniform(0.01, 0.2, len(across))
    placed = np.tile(np.eye(4), (2, len(across), 1, 1))
    placed[..., :3, :3] = turns[:, steep]
    placed[1, :, :3, 3] = -(0.7 - depth)[:, None] * across
    found = tg.manifold(tg.Cylinder(0.3, 4.0).at(placed[0]), tg.Cylinder(0.4, 4.0).at(placed[1]), device=device)
    assert set(found.query.tolist()) == set(range(len(across)))
    assert np.allclose(found.normal, across[found.query], atol=1e-8)
    assert np.allclose(found.gap, -depth[found.query], atol=1e-9)


def area_of(points: np.ndarray) -> float:
    return float(ConvexHull(points[:, :2]).volume) if len(points) > 2 else 0.0


def test_a_box_on_a_box_has_the_whole_polygon_that_they_share(rng, effort, device):
    for _ in range(effort(60, 10)):
        half, other = rng.uniform(0.2, 1.0, (2, 3))
        turn, shift = rng.choice([0.0, 0.25 * np.pi, rng.uniform(0.0, np.pi)]), rng.uniform(-1.2, 1.2, 2)
        gap = rng.choice([-1.0, 1.0]) * rng.choice([4e-3, 1e-6, 1e-9, 1e-12, 0.0])
        above = tg.Box(other).at(pose(*shift, half[2] + other[2] + gap, turn))
        corners = [np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * size[:2] for size in (half, other)]
        turned = corners[1] @ Rotation.from_rotvec([0, 0, turn]).as_matrix()[:2, :2].T + shift
        shared = shapely.Polygon(corners[0]).intersection(shapely.Polygon(turned))
        found = tg.manifold(above, tg.Box(half), distance=0.005, device=device)
        if shared.area < 1e-4:
            continue
        assert np.allclose(found.gap, gap, atol=1e-12)
        assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-9)
        assert area_of(found.point_b) == pytest.approx(shared.area, rel=1e-9)
        assert len(found) == len(shared.exterior.coords) - 1  # each corner once
        assert len(np.unique(found.key)) == len(found)


def test_hulls_have_the_whole_polygon_that_they_share_with_hulls_and_boxes(rng, effort, device):
    def prism(sides: int) -> tuple[tg.ConvexMesh, np.ndarray]:
        angles = np.sort(rng.permutation(24)[:sides]) * (np.pi / 12.0) + rng.uniform(0.0, 0.1)
        ring = rng.uniform(0.4, 1.0) * np.column_stack([np.cos(angles), np.sin(angles), np.zeros(sides)])
        points = np.concatenate([ring - (0.0, 0.0, 0.3), ring + (0.0, 0.0, 0.3)])
        return tg.ConvexMesh(tg.Mesh(points, ConvexHull(points).simplices)), ring[:, :2]

    compared = 0
    for _ in range(effort(60, 10)):
        (above, upper), (below, lower) = prism(rng.integers(3, 9)), prism(rng.integers(3, 9))
        half = rng.uniform(0.2, 1.0, 2)
        turn, shift, gap = rng.uniform(0.0, np.pi), rng.uniform(-0.5, 0.5, 2), rng.choice([-1e-3, 1e-6, 0.0])
        on = above.at(pose(*shift, 0.6 + gap, turn))
        turned = upper @ Rotation.from_rotvec([0, 0, turn]).as_matrix()[:2, :2].T + shift
        for under, outline in (
            (below, lower),
            (tg.Box([*half, 0.3]), np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half),
        ):
            shared = shapely.Polygon(outline).intersection(shapely.Polygon(turned))
            if shared.area < 1e-2:
                continue
            compared += 1
            found = tg.manifold(on, under, distance=0.005, device=device)
            assert np.allclose(found.gap, gap, atol=1e-9)
            assert np.allclose(found.normal, [0.0, 0.0, 1.0], atol=1e-9)
            assert area_of(found.point_b) == pytest.approx(shared.area, rel=1e-6)
    assert compared > 5


def test_discs_cover_what_they_share_with_polygons_and_with_each_other(rng, effort, device):
    for _ in range(effort(40, 8)):
        radius, half, shift = rng.uniform(0.3, 1.0), rng.uniform(0.3, 1.2, 3), rng.uniform(-1.0, 1.0, 2)
        disc = shapely.Point(*shift).buffer(radius, quad_segs=256)
        below = shapely.box(-half[0], -half[1], half[0], half[1])
        for body, shape, height in (
            (tg.Box(half), below, half[2]),
            (tg.Cylinder(half[0], 2.0 * half[2]), shapely.Point(0.0, 0.0).buffer(half[0], quad_segs=256), half[2]),
        ):
            for lying in (
                tg.Cylinder(radius, 0.4).at(pose(*shift, height + 0.2)),
                tg.Cone(radius, 0.4).at(pose(*shift, height + 0.2)),
            ):
                shared = disc.intersection(shape)
                found = tg.manifold(lying, body, distance=1e-3, device=device)
                if shared.area < 0.3 * disc.area:  # of a sliver eight points of the rim may miss most
                    continue
                assert np.allclose(found.gap, 0.0, atol=1e-9)
                assert 0.75 * shared.area <= area_of(found.point_b) <= shared.area * 1.001
                assert shared.buffer(1e-5).covers(shapely.MultiPoint(found.point_b[:, :2]))
                assert len(np.unique(found.key)) == len(found)


def test_slivers_that_discs_share_have_a_breadth(rng, effort, device):
    for _ in range(effort(30, 6)):
        radius, turn, part = rng.uniform(0.3, 1.0), rng.uniform(0.0, 2.0 * np.pi), rng.uniform(1e-3, 0.1)
        along = np.array([np.cos(turn), np.sin(turn)])
        on = tg.Cylinder(radius, 0.5).at(pose(*((2.0 + (1.0 - part) * radius) * along), 0.5 + 0.25, 0.3))
        disc = shapely.Point(*((2.0 + (1.0 - part) * radius) * along)).buffer(radius, quad_segs=4096)
        for below, outline in (
            (tg.Box([2.0, 2.0, 0.5]).at(pose(0.0, 0.0, 0.0, turn)), [[-2, -2], [2, -2], [2, 2], [-2, 2]]),
            (tg.Cylinder(2.0, 1.0), None),
        ):
            found = tg.manifold(on, below, distance=1e-3, device=device)
            plate = shapely.Point(0.0, 0.0).buffer(2.0, quad_segs=4096)
            if outline is not None:
                plate = shapely.Polygon(np.array(outline) @ pose(0, 0, 0, turn)[:2, :2].T)
            shared = disc.intersection(plate)
            assert area_of(found.point_b) >= 0.7 * shared.area
            assert plate.buffer(1e-5).contains(shapely.MultiPoint(found.point_b[:, :2]))
            assert disc.buffer(1e-5).contains(shapely.MultiPoint(found.point_b[:, :2]))
            assert len(np.unique(found.key)) == len(found)


def test_lying_cylinders_and_capsules_touch_at_both_ends(device):
    across = Rotation.from_rotvec([0.5 * np.pi, 0.0, 0.0]).as_matrix()
    for body in (tg.Cylinder(0.5, 1.0), tg.Capsule(0.5, 1.0)):
        place = pose(0.8, 0.0, 1.49)
        place[:3, :3] = across
        found = tg.manifold(body.at(place), tg.Box([1.0, 1.0, 1.0]), device=device)
        assert len(found) == 2
        assert np.allclose(found.gap, -0.01, atol=1e-9)
        assert np.allclose(np.sort(found.point_b[:, 1]), [-0.5, 0.5])
    two = tg.manifold(tg.Capsule(0.5, 2.0).at(pose(0.0, 0.9, 0.5)), tg.Capsule(0.5, 2.0), device=device)
    assert np.allclose(np.sort(two.point_a[:, 2]), [-0.5, 1.0])
    assert np.allclose(two.gap, -0.1)


def test_keys_stay_while_bodies_move_a_little(device):
    here, there = (
        tg.manifold(tg.Box([0.5, 0.5, 0.5]).at(pose(0.3 + s, 0.2, 1.49, 0.3 + s)), tg.Box([1, 1, 1]), device=device)
        for s in (0.0, 1e-3)
    )
    assert sorted(here.key.tolist()) == sorted(there.key.tolist())
    order, other = np.argsort(here.key), np.argsort(there.key)
    assert np.abs(here.point_b[order] - there.point_b[other]).max() < 5e-3


def test_concentric_bodies_and_cores_without_volume_have_a_way_out(device):
    two = tg.manifold(tg.Sphere(0.5), tg.Sphere(0.25), device=device)
    assert two.gap.tolist() == [-0.75]
    assert np.linalg.norm(two.normal[0]) == pytest.approx(1.0)
    line = tg.manifold(tg.Capsule(0.5, 1.0), tg.Sphere(0.25), device=device)
    assert line.gap.tolist() == [-0.75]
    cross = pose(0.0, 0.0, 0.0)
    cross[:3, :3] = Rotation.from_rotvec([0.5 * np.pi, 0.0, 0.0]).as_matrix()
    crossed = tg.manifold(tg.Capsule(0.5, 1.0), tg.Capsule(0.25, 1.0).at(cross), device=device)
    assert crossed.gap.min() == pytest.approx(-0.75)
    assert np.abs(crossed.normal[:, 0]) == pytest.approx(1.0)
    cube = tg.manifold(tg.Box([1.0, 2.0, 3.0]), tg.Box([0.5, 0.5, 0.5]), device=device)
    assert cube.gap.min() == pytest.approx(-1.5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_sizes_do_not_matter(rng, scale, device):
    placed = [poses(6, rng, 0.3), poses(6, rng, 0.3)]
    small = tg.manifold(*(tg.Box([0.3, 0.5, 0.7]).at(place) for place in placed), device=device)
    for place in placed:
        place[:, :3, 3] *= scale
    large = tg.manifold(*(tg.Box(scale * np.array([0.3, 0.5, 0.7])).at(place) for place in placed), device=device)
    assert small.key.tolist() == large.key.tolist()
    assert np.allclose(large.gap, scale * small.gap, rtol=1e-6, atol=1e-9 * scale)


def test_moving_bodies_are_asked_at_a_time_and_n_with_one(device):
    start = pose(0.0, 0.0, 3.0)
    falling = tg.Box([0.5, 0.5, 0.5]).moving(tg.Twist(start, (0.0, 0.0, -2.0), np.zeros(3)))
    assert len(tg.manifold(falling, tg.Box([1, 1, 1]), device=device)) == 0
    assert tg.manifold(falling, tg.Box([1, 1, 1]), time=0.75, device=device).gap.round(12).tolist() == [0.0] * 4
    many = tg.Box([0.5, 0.5, 0.5]).at(np.stack([pose(0, 0, 1.49), pose(0, 0, 9.0), pose(0.9, 0, 1.5)]))
    found = tg.manifold(many, tg.Box([1, 1, 1]), device=device)
    assert np.bincount(found.query, minlength=3).tolist() == [4, 0, 4]


def test_bad_questions_are_told():
    box = tg.Box([1, 1, 1])
    with pytest.raises(InputError, match="mode 'sound'"):
        tg.manifold(box, box, mode="published")
    with pytest.raises(InputError, match="distance"):
        tg.manifold(box, box, distance=-1.0)
    with pytest.raises(InputError, match="world"):
        tg.manifold(box, box, world=[0])
    with pytest.raises(UnsupportedError, match="manifold of an analytic body at rest and"):
        tg.manifold(tg.Sphere(1.0), np.zeros((3, 3)))
    with pytest.raises(InputError, match="pair off"):
        tg.manifold(box.at(np.tile(np.eye(4), (2, 1, 1))), box.at(np.tile(np.eye(4), (3, 1, 1))))


def test_a_polytope_without_room_is_asked_again_with_more(rng, device, monkeypatch):
    placed = [tg.Cylinder(0.5, 1.0).at(poses(6, rng, 0.1)) for _ in range(2)]
    whole = tg.manifold(*placed, device=device)
    monkeypatch.setattr("tangere.query.manifold.convex.batch.ROOM", 8)
    again = tg.manifold(*placed, device=device)
    assert again.gap.tolist() == whole.gap.tolist()
    assert again.key.tolist() == whole.key.tolist()


def test_every_kind_is_in_the_pairs_of_every_run():
    assert {kind for pair in FEW for kind in pair} == set(KINDS)

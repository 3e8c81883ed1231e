"""Gradients of analytic bodies and meshes, against differences: by vertices, motions, poses of their own, joints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.differences import displaced, least_error, random_pose
from tangere.query.gradients import GradientStatus
from tangere.query.gradients.approach import shares_of

SMOOTH = GradientStatus.SMOOTH
MESH = tg.generate.icosphere(subdivisions=1)
HULL = tg.ConvexMesh(tg.generate.icosphere(subdivisions=0, radius=0.6))
KINDS = {
    "sphere": tg.Sphere(0.7),
    "capsule": tg.Capsule(0.3, 0.9),
    "box": tg.Box([0.5, 0.4, 0.3]),
    "cylinder": tg.Cylinder(0.5, 0.8),
    "cone": tg.Cone(0.5, 0.9),
    "hull": HULL,
}
every_kind = pytest.mark.parametrize("kind", KINDS)
#: Nearest points of bodies with a rim are exact to about the root of what their distances are.
EXACT = dict.fromkeys(KINDS, 1e-6) | {"cylinder": 2e-4, "cone": 2e-4}


def distance(a, b, **options):
    return tg.distance(a, b, device="cpu", **options)


def first_time(a, b) -> float:
    return tg.first_contact(a, b, tolerance=1e-10, device="cpu").time


def least(a, b) -> float:
    return tg.least_clearance(a, b, accuracy=1e-10, device="cpu").upper


def of_distance(a, b, **options):
    return tg.gradients.distance(distance(a, b, **options), a, b, device="cpu", **options)


def of_time(a, b):
    return tg.gradients.time(tg.first_contact(a, b, tolerance=1e-9, device="cpu"), a, b, device="cpu")


def of_clearance(a, b):
    return tg.gradients.clearance(tg.least_clearance(a, b, device="cpu"), a, b, device="cpu")


def placed(mesh, pose) -> tg.Moving:
    """A mesh whose vertices stay in its own frame, which `at` would not do."""
    return mesh.moving(tg.Rest(pose))


def bent(vertices, corners, by) -> np.ndarray:
    """The vertices of a mesh with three corners moved by nine numbers."""
    vertices = np.array(vertices)
    vertices[corners] += by.reshape(3, 3)
    return vertices


def smooth(gradient, seen) -> bool:
    """Whether it is one; counted, so that a test cannot pass by looking at none."""
    seen.append(gradient.status == SMOOTH)
    return bool(seen[-1])


@every_kind
def test_distance_by_vertices_and_by_the_poses_of_both(rng, kind):
    body, seen = KINDS[kind], []
    for _ in range(3):
        x, y = random_pose(rng, 2.6), random_pose(rng, 0.3)
        a, b = placed(MESH, x), body.at(y)
        told = of_distance(a, b)
        if not smooth(told, seen):
            continue
        assert told.a.vertices.sum(axis=0) == pytest.approx(x[:3, :3].T @ told.a.point, abs=1e-12)

        def by_vertices(d, x=x, b=b, corners=told.a.corners):
            return [distance(placed(tg.Mesh(bent(MESH.vertices, corners, row), MESH.faces), x), b).upper for row in d]

        assert least_error(told.a.vertices.ravel(), by_vertices, (1e-4, 1e-5)) < EXACT[kind]
        of_a = least_error(told.a.pose, lambda d, x=x, b=b: distance(placed(MESH, displaced(x, d)), b).upper)
        of_b = least_error(told.b.pose, lambda d, a=a, y=y: distance(a, body.at(displaced(y, d))).upper)
        assert max(of_a, of_b) < EXACT[kind]
    assert sum(seen) >= 2


@every_kind
def test_distance_of_a_deforming_mesh(rng, kind):
    body, seen, when = KINDS[kind], [], 0.3
    for _ in range(3):
        ends = [MESH.vertices @ p[:3, :3].T + p[:3, 3] for p in (random_pose(rng, 2.8), random_pose(rng, 2.4))]
        b = body.at(random_pose(rng, 0.2))
        a = tg.Mesh(ends[0], MESH.faces).moving(tg.Linear(ends[1]))
        told = of_distance(a, b, time=when)
        if not smooth(told, seen):
            continue
        assert least_error(
            np.array([told.rate]), lambda d, a=a, b=b: [distance(a, b, time=when + float(t)).upper for t in d[:, 0]]
        ) < EXACT[kind] * max(1.0, abs(told.rate))

        def by_ends(d, ends=ends, b=b, corners=told.a.corners):
            rows = []
            for row in d:
                start, end = bent(ends[0], corners, row[:9]), bent(ends[1], corners, row[9:])
                rows.append(distance(tg.Mesh(start, MESH.faces).moving(tg.Linear(end)), b, time=when).upper)
            return rows

        given = np.concatenate([told.a.vertices.ravel(), np.ravel(told.a.end_vertices)])
        assert least_error(given, by_ends, (1e-4, 1e-5)) < EXACT[kind]
    assert sum(seen) >= 2


@every_kind
def test_time_by_vertices_at_rest_and_deforming(rng, kind):
    seen = []
    for _ in range(3):
        start, b = random_pose(rng, 3.0), KINDS[kind].at(random_pose(rng, 0.1))
        way = -start[:3, 3] + rng.normal(scale=0.2, size=3)
        vertices = MESH.vertices @ start[:3, :3].T + start[:3, 3]
        rigid = MESH.moving(tg.Twist(start, way, (0.0, 0.0, 0.0)))
        deforming = tg.Mesh(vertices, MESH.faces).moving(tg.Linear(vertices + way))
        told, of_lines = of_time(rigid, b), of_time(deforming, b)
        if not (smooth(told, seen) and of_lines.status == SMOOTH):
            continue
        assert of_lines.rate == pytest.approx(told.rate, rel=1e-4)
        of_ends = of_lines.a.vertices + of_lines.a.end_vertices  # both ends moved together are a vertex moved
        tables = np.zeros((2, len(vertices), 3))  # at a vertex any of its triangles may be told
        tables[0, of_lines.a.corners] += of_ends
        tables[1, told.a.corners] += told.a.vertices @ start[:3, :3].T
        assert tables[0] == pytest.approx(tables[1], abs=1e-4 * np.abs(of_ends).max())

        def by_vertices(d, b=b, start=start, way=way, corners=told.a.corners):
            moved = (tg.Mesh(bent(MESH.vertices, corners, row), MESH.faces) for row in d)
            return [first_time(mesh.moving(tg.Twist(start, way, (0.0, 0.0, 0.0))), b) for mesh in moved]

        scale = np.abs(told.a.vertices).max()
        assert least_error(told.a.vertices.ravel(), by_vertices, (1e-3, 1e-4)) < max(1e-4, EXACT[kind]) * scale
    assert sum(seen) >= 2


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in ("sphere", "cone") else pytest.mark.slow) for kind in KINDS]
)
def test_clearance_by_vertices_and_by_a_motion_of_a_placed_body(rng, kind):
    own = random_pose(rng, 0.2)
    body = KINDS[kind].at(own)
    mesh_pose = random_pose(rng, 0.0)
    mesh_pose[:3, 3] = 0.1, 1.9, 0.05
    start, way, turn = np.eye(4), np.array([4.0, 0.2, 0.1]), np.array([0.0, 0.3, 0.2])
    start[:3, 3] = -2.0, 0.0, 0.0
    a, b = placed(MESH, mesh_pose), body.moving(tg.Twist(start, way, turn))
    told = of_clearance(a, b)
    assert told.status == SMOOTH
    assert 0.0 < told.time < 1.0

    aside = rng.normal(size=9)  # one way for all corners: each answer costs a search

    def by_vertices(d):
        moved = (tg.Mesh(bent(MESH.vertices, told.a.corners, part * aside), MESH.faces) for part in d[:, 0])
        return [least(placed(mesh, mesh_pose), b) for mesh in moved]

    given = np.array([told.a.vertices.ravel() @ aside])
    assert least_error(given, by_vertices, (1e-2, 1e-3)) < EXACT[kind] * np.linalg.norm(aside)

    def by_motion(d):
        twists = tg.Twist(displaced(start, d[:, :6]), way + d[:, 6:9], turn + d[:, 9:])
        return least(a, body.moving(twists))

    given = np.concatenate([told.b.start, told.b.displacement, told.b.rotation])
    assert least_error(given, by_motion, (1e-2, 1e-3)) < 10.0 * EXACT[kind]


@pytest.mark.parametrize("other", ["sphere", "box", "hull"])
@every_kind
def test_distance_and_joints_of_two_placed_bodies(rng, kind, other):
    a, b, seen = KINDS[kind], KINDS[other], []
    for _ in range(3):
        x, y = random_pose(rng, 2.4), random_pose(rng, 0.3)
        told = of_distance(a.at(x), b.at(y))
        if not smooth(told, seen):
            continue
        of_a = least_error(told.a.pose, lambda d, x=x, y=y: distance(a.at(displaced(x, d)), b.at(y)).upper)
        of_b = least_error(told.b.pose, lambda d, x=x, y=y: distance(a.at(x), b.at(displaced(y, d))).upper)
        assert max(of_a, of_b) < EXACT[kind]
        axis, pivot = Rotation.random(random_state=rng).as_matrix()[0], rng.normal(size=3)
        hinge = np.concatenate([np.cross(axis, x[:3, 3] - pivot), axis])[:, None]  # how the body's origin goes

        def by_joint(d, x=x, y=y, axis=axis, pivot=pivot):
            poses = np.tile(np.eye(4), (len(d), 1, 1))
            poses[:, :3, :3] = Rotation.from_rotvec(d * axis).as_matrix()
            poses[:, :3, 3] = pivot - poses[:, :3, :3] @ pivot
            return distance(a.at(poses @ x), b.at(y)).upper

        assert least_error(told.by_joints(hinge), by_joint) < EXACT[kind]
    assert sum(seen) >= 2


def test_a_ball_that_turns_in_place_keeps_its_distance():
    pose = np.eye(4)
    pose[:3, 3] = 0.3, 0.2, 3.0
    told = of_distance(tg.Sphere(0.7).at(pose), tg.Box([2.0, 2.0, 0.5]))
    assert told.a.pose == pytest.approx([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], abs=1e-12)
    of_motion = of_distance(tg.Sphere(0.7).at(pose).moving(tg.Rest(np.eye(4))), tg.Box([2.0, 2.0, 0.5]))
    assert of_motion.a.pose == pytest.approx([0.0, 0.0, 1.0, 0.2, -0.3, 0.0], abs=1e-12)  # what moves it is its frame


def test_a_mesh_that_falls_on_a_box_closes_by_its_speed():
    start = MESH.vertices + (0.3, 0.2, 3.0)
    mesh = tg.Mesh(start, MESH.faces).moving(tg.Linear(start - (0.0, 0.0, 3.0)))
    told = of_time(mesh, tg.Box([2.0, 2.0, 0.5]))
    assert told.status == SMOOTH
    assert told.rate == pytest.approx(-3.0)
    assert (told.a.vertices + told.a.end_vertices).sum(axis=0) == pytest.approx([0.0, 0.0, 1.0 / 3.0], abs=1e-6)


@pytest.mark.parametrize("flat", [0.0, 1e-12, 1.0])
def test_shares_of_thin_triangles_give_the_point_back(rng, flat):
    corners = rng.normal(size=(200, 3, 3))
    corners[:, 2] = corners[:, 0] + rng.uniform(size=(200, 1)) * (corners[:, 1] - corners[:, 0]) + flat * corners[:, 2]
    weights = rng.dirichlet(np.ones(3), size=200)
    weights[:50, 0] = 0.0
    weights[:20, 1] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    points = np.einsum("nk,nki->ni", weights, corners)
    told = shares_of(points, corners)
    assert (told >= 0.0).all()
    assert told.sum(axis=1) == pytest.approx(1.0)
    assert np.einsum("nk,nki->ni", told, corners) == pytest.approx(points, abs=1e-11)
    if flat == 1.0:
        assert told == pytest.approx(weights, abs=1e-9)

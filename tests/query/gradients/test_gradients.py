"""Gradients against differences at many steps, and against closed forms; what has none is marked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.differences import displaced, least_error, random_pose
from tangere.query.gradients import GradientStatus
from tangere.runtime import InputError, UnsupportedError

DISTANCE, TIME = 1e-8, 1e-5  # what is promised away from ties
SMOOTH, TIE = GradientStatus.SMOOTH, GradientStatus.TIE


def bumpy(seed: int, subdivisions: int = 3) -> tg.Mesh:
    """A closed mesh that is not convex."""
    ball = tg.generate.icosphere(subdivisions=subdivisions)
    wave = np.sin(ball.vertices @ np.random.default_rng(seed).normal(size=3) * 3.0)
    return tg.Mesh(ball.vertices * (1.0 + 0.25 * wave[:, None]) * [1.0, 0.7, 0.5], ball.faces)


A, B = bumpy(1), bumpy(2)


def at(x=0.0, y=0.0, z=0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def distances(poses_a, poses_b, a=A, b=B) -> np.ndarray:
    return tg.distance(a.moving(tg.Rest(poses_a)), b.moving(tg.Rest(poses_b)), device="cpu").upper


def times(a, b) -> np.ndarray:
    return tg.first_contact(a, b, tolerance=1e-10, device="cpu").time


def gradient_of_time(a, b, **options) -> tg.gradients.Gradients:
    return tg.gradients.time(tg.first_contact(a, b, device="cpu"), a, b, device="cpu", **options)


def approaching(rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start = random_pose(rng, 3.0)
    return start, -start[:3, 3] + rng.normal(scale=0.4, size=3), rng.normal(scale=0.8, size=3)


def test_distance_by_the_poses_of_both_bodies(rng, effort):
    seen = 0
    for _ in range(effort(40, 8)):
        x, y = random_pose(rng, 2.4), random_pose(rng, 0.3)
        a, b = A.moving(tg.Rest(x)), B.moving(tg.Rest(y))
        found = tg.distance(a, b, device="cpu")
        slope = tg.gradients.distance(found, a, b, tie=2e-5, device="cpu")
        if slope.status != SMOOTH or found.upper < 1e-2:
            continue
        seen += 1
        steps = (1e-4, 1e-5, 1e-6)
        assert least_error(slope.a.pose, lambda d, x=x, y=y: distances(displaced(x, d), y), steps) < DISTANCE
        assert least_error(slope.b.pose, lambda d, x=x, y=y: distances(x, displaced(y, d)), steps) < DISTANCE
    assert seen > effort(30, 4)


def test_many_distances_at_once_have_the_gradients_of_each(rng):
    poses = np.array([random_pose(rng, 2.4) for _ in range(12)])
    a = A.moving(tg.Rest(poses))
    slope = tg.gradients.distance(tg.distance(a, B, device="cpu"), a, B, device="cpu")
    assert slope.a.pose.shape == (12, 6)
    for k in range(12):
        one = A.moving(tg.Rest(poses[k]))
        alone = tg.gradients.distance(tg.distance(one, B, device="cpu"), one, B, device="cpu")
        assert slope.status[k] == alone.status
        np.testing.assert_allclose(slope.a.pose[k], alone.a.pose, atol=1e-9)
        np.testing.assert_allclose(slope.b.vertices[k], alone.b.vertices, atol=1e-9)


def test_distance_by_the_vertices_of_the_nearest_triangles(rng, effort):
    for _ in range(effort(3, 2)):
        x = random_pose(rng, 2.5)
        a = A.moving(tg.Rest(x))
        found = tg.distance(a, B, device="cpu")
        slope = tg.gradients.distance(found, a, B, tie=1e-4, device="cpu")
        if slope.status != SMOOTH:
            continue
        for body, mesh, swap in ((slope.a, A, False), (slope.b, B, True)):

            def measured(by, body=body, mesh=mesh, swap=swap, x=x):
                values = []
                for row in by.reshape(-1, 3, 3):
                    vertices = mesh.vertices.copy()
                    vertices[body.corners] += row
                    bent = tg.Mesh(vertices, mesh.faces)
                    pair = (A.moving(tg.Rest(x)), bent) if swap else (bent.moving(tg.Rest(x)), B)
                    values.append(tg.distance(*pair, device="cpu").upper)
                return values

            assert least_error(body.vertices.reshape(-1), measured, (1e-5, 1e-6)) < DISTANCE


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_what_moves_with_both_bodies_changes_no_distance(seed):
    rng = np.random.default_rng(seed)
    x, y = random_pose(rng, 2.6), random_pose(rng, 0.4)
    a, b = bumpy(seed, 1).moving(tg.Rest(x)), bumpy(seed + 1, 1).moving(tg.Rest(y))
    slope = tg.gradients.distance(tg.distance(a, b, device="cpu"), a, b, device="cpu")
    force = slope.a.pose[:3] + slope.b.pose[:3]
    moments = [g[3:] + np.cross(p[:3, 3], g[:3]) for g, p in ((slope.a.pose, x), (slope.b.pose, y))]
    np.testing.assert_allclose(force, 0.0, atol=1e-12)
    np.testing.assert_allclose(moments[0] + moments[1], 0.0, atol=1e-9)


def test_time_by_start_displacement_and_rotation_of_a_twist(rng, effort):
    seen = 0
    for _ in range(effort(16, 4)):
        start, way, turn = approaching(rng)
        a = A.moving(tg.Twist(start, way, turn))
        slope = gradient_of_time(a, B, grazing=0.05)
        if slope.status != SMOOTH:
            continue
        seen += 1
        told = np.concatenate([slope.a.start, slope.a.displacement, slope.a.rotation])

        def asked(d, start=start, way=way, turn=turn):
            return times(A.moving(tg.Twist(displaced(start, d[:, :6]), way + d[:, 6:9], turn + d[:, 9:])), B)

        assert least_error(told, asked, (1e-4, 1e-5)) < TIME * np.linalg.norm(told)
        assert slope.value == pytest.approx(times(a, B), abs=1e-9)
    assert seen > effort(8, 1)


def test_time_by_a_pivot_away_from_the_origin_and_by_both_bodies(rng):
    start, way, turn = approaching(rng)
    pivot, other = (
        np.array([0.3, -0.2, 0.1]),
        (random_pose(rng, 0.2), np.array([0.1, 0.0, -0.1]), np.array([0.2, 0, 0.3])),
    )
    a, b = A.moving(tg.Twist(start, way, turn, pivot)), B.moving(tg.Twist(*other))
    slope = gradient_of_time(a, b)
    assert slope.status == SMOOTH

    def of_a(d):
        return times(A.moving(tg.Twist(displaced(start, d[:, :6]), way + d[:, 6:9], turn + d[:, 9:], pivot)), b)

    def of_b(d):
        turned = tg.Twist(displaced(other[0], d[:, :6]), other[1] + d[:, 6:9], other[2] + d[:, 9:])
        return times(a, B.moving(turned))

    for body, asked in ((slope.a, of_a), (slope.b, of_b)):
        told = np.concatenate([body.start, body.displacement, body.rotation])
        assert least_error(told, asked, (1e-4, 1e-5)) < TIME * np.linalg.norm(told)


def test_time_by_both_ends_of_a_screw_and_by_the_poses_of_a_path(rng):
    for away in (1.0, 2.0):
        start, end = random_pose(rng, 3.0), np.eye(4)
        end[:3, :3] = Rotation.from_rotvec(rng.normal(scale=away, size=3)).as_matrix() @ start[:3, :3]
        a = A.moving(tg.Screw(start, end))
        slope = gradient_of_time(a, B)
        assert slope.status == SMOOTH
        told = np.concatenate([slope.a.start, slope.a.end])

        def asked(d, start=start, end=end):
            return times(A.moving(tg.Screw(displaced(start, d[:, :6]), displaced(end, d[:, 6:]))), B)

        assert least_error(told, asked, (1e-4, 1e-5)) < TIME * np.linalg.norm(told)
        poses = np.array([displaced(start, np.array([[0, 0, 0.5, 0, 0, 0.2]]))[0], start, end])
        path = A.moving(tg.Path(poses, [0.0, 0.3, 1.0]))
        slope = gradient_of_time(path, B)

        def along(d, poses=poses):
            rows = [
                np.concatenate([displaced(pose, row[None]) for pose, row in zip(poses, each.reshape(3, 6))])
                for each in d
            ]
            return [times(A.moving(tg.Path(row, [0.0, 0.3, 1.0])), B) for row in rows]

        told = slope.a.waypoints.reshape(-1)
        assert np.abs(slope.a.waypoints[0]).max() == 0.0, "the contact is in the second segment"
        assert least_error(told, along, (1e-4,)) < TIME * np.linalg.norm(told)


def test_time_by_the_pose_of_a_motion_of_any_kind(rng):
    """A chain that is displaced as a whole; the slope is about where the body is at the contact."""
    start, way, turn = approaching(rng)
    inner = tg.Twist(at(0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.3, 0.0))
    link = tg.Chain([tg.Twist(start, way, turn), inner]).link(1)
    slope = gradient_of_time(A.moving(link), B)
    assert slope.status == SMOOTH
    assert slope.a.start is None
    origin = link.pose(slope.time)[:3, 3]

    def asked(d):
        values = []
        for row in d:
            by = displaced(np.eye(4), row[None])[0]
            by[:3, 3] += origin - by[:3, :3] @ origin
            outer = tg.Chain([tg.Rest(by), tg.Twist(start, way, turn), inner]).link(2)
            values.append(times(A.moving(outer), B))
        return values

    assert least_error(slope.a.pose, asked, (1e-4, 1e-5)) < TIME * np.linalg.norm(slope.a.pose)


@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_time_by_vertices_that_go_along_lines(rng, separation):
    a, b = bumpy(3, 1), bumpy(4, 1)
    ends = a.vertices + rng.normal(scale=0.05, size=a.vertices.shape)
    first = a.replace(vertices=a.vertices + [0.0, 0.0, 2.5])
    moving = first.moving(tg.Linear(ends))
    found = tg.first_contact(moving, b, separation=separation, device="cpu")
    slope = tg.gradients.time(found, moving, b, separation=separation, device="cpu")
    assert slope.status == SMOOTH
    corners = slope.a.corners

    def asked(d):
        values = []
        for row in d.reshape(-1, 2, 3, 3):
            begin, end = first.vertices.copy(), ends.copy()
            begin[corners] += row[0]
            end[corners] += row[1]
            bent = first.replace(vertices=begin).moving(tg.Linear(end))
            values.append(tg.first_contact(bent, b, separation=separation, tolerance=1e-10, device="cpu").time)
        return values

    told = np.concatenate([slope.a.vertices.reshape(-1), slope.a.end_vertices.reshape(-1)])
    assert least_error(told, asked, (1e-4, 1e-5)) < TIME * max(np.linalg.norm(told), 1.0)


def test_time_by_vertices_of_a_rigid_body(rng):
    start, way, turn = approaching(rng)
    motion = tg.Twist(start, way, turn)
    slope = gradient_of_time(A.moving(motion), B)
    assert slope.status == SMOOTH

    def asked(d):
        values = []
        for row in d.reshape(-1, 3, 3):
            vertices = A.vertices.copy()
            vertices[slope.a.corners] += row
            values.append(times(tg.Mesh(vertices, A.faces).moving(motion), B))
        return values

    told = slope.a.vertices.reshape(-1)
    assert least_error(told, asked, (1e-4, 1e-5)) < TIME * np.linalg.norm(told)


def test_clearance_by_what_a_passing_body_moves_by(rng, effort):
    """The oracle minimises the distance over time itself."""
    for _ in range(effort(4, 2)):
        start = random_pose(rng, 3.2)
        side = np.cross(start[:3, 3], rng.normal(size=3))
        way = -1.1 * start[:3, 3] + 2.2 * side / np.linalg.norm(side)
        turn = rng.normal(scale=0.3, size=3)
        a = A.moving(tg.Twist(start, way, turn))
        found = tg.least_clearance(a, B, device="cpu")
        slope = tg.gradients.clearance(found, a, B, tie=1e-4, device="cpu")
        if slope.status != SMOOTH:
            continue
        assert slope.value <= found.upper * (1.0 + 1e-12)
        told = np.concatenate([slope.a.start, slope.a.displacement, slope.a.rotation])

        def asked(d, slope=slope, start=start, way=way, turn=turn):
            values = []
            for row in d:
                motion = tg.Twist(displaced(start, row[None, :6])[0], way + row[6:9], turn + row[9:])

                def apart(t, motion=motion):
                    return distances(motion.pose(t)[None], np.eye(4)[None])[0]

                ends = max(slope.time - 0.01, 0.0), min(slope.time + 0.01, 1.0)
                values.append(
                    min(
                        minimize_scalar(apart, bounds=ends, method="bounded", options={"xatol": 1e-12}).fun,
                        apart(ends[0]),
                        apart(ends[1]),
                    )
                )
            return values

        assert least_error(told, asked, (1e-4, 1e-5)) < 1e-6 * np.linalg.norm(told)


def test_a_ball_that_falls_on_the_ground_meets_it_later_by_what_it_is_higher():
    """Closed forms: t = h / v, so dt/dh = 1 / v and dt/dv = -h / v^2; the middle of a face of two flat triangles."""
    for speed in (1.0, 2.0, 3.0):
        ball, ground = tg.generate.icosphere(subdivisions=2, radius=0.1), tg.generate.box((4, 4, 0.2))
        falling = ball.moving(tg.Twist(at(z=1.0), (0.0, 0.0, -speed), (0.0, 0.0, 0.0)))
        slope = gradient_of_time(falling, ground)
        low = -ball.vertices[:, 2].min()
        height = 1.0 - low - 0.1
        assert slope.value == pytest.approx(height / speed, abs=1e-9)
        np.testing.assert_allclose(slope.a.start[:3], [0.0, 0.0, 1.0 / speed], atol=1e-7)
        np.testing.assert_allclose(slope.a.displacement, [0.0, 0.0, height / speed**2], atol=1e-7)
        np.testing.assert_allclose(slope.b.pose[:3], [0.0, 0.0, -1.0 / speed], atol=1e-7)


def test_equally_near_features_are_ties():
    box = tg.generate.box((1, 1, 1))

    def status(a, b):
        return tg.gradients.distance(tg.distance(a, b, device="cpu"), a, b, device="cpu").status

    turned = displaced(at(z=1.7), np.array([[0, 0, 0, 0.3, 0.2, 0.1]]))[0]
    edge = displaced(at(z=1.8), np.array([[0, 0, 0, np.pi / 4, 0, 0]]))[0]
    skew = displaced(edge, np.array([[0, 0, 0, 0, 0.01, 0]]))[0]
    assert status(box.at(at(z=1.5)), box) == TIE, "faces face each other"
    assert status(box.at(edge), box) == TIE, "an edge along a face"
    assert status(box.at(skew), box) == SMOOTH, "an edge that leans a little"
    assert status(box.at(turned), box) == SMOOTH, "a corner over a face"
    fork = tg.Mesh(
        np.concatenate([box.at(at(x=-2.0)).vertices, box.at(at(x=2.0)).vertices]),
        np.concatenate([box.faces, box.faces + len(box.vertices)]),
    )
    ball = tg.generate.icosphere(subdivisions=1, radius=0.5)
    assert status(ball, fork) == TIE, "two walls at equal distance"
    assert status(ball.at(at(x=0.01, y=0.02, z=0.03)), fork) == SMOOTH


def test_a_tie_tells_one_of_the_slopes():
    box, h = tg.generate.box((1, 1, 1)), 1e-6
    a = box.at(at(z=1.5))
    slope = tg.gradients.distance(tg.distance(a, box, device="cpu"), a, box, device="cpu")
    sides = []
    for sign in (1.0, -1.0):
        pose = displaced(at(z=1.5), np.array([[0, 0, 0, sign * h, 0, 0]]))
        sides.append((tg.distance(box.moving(tg.Rest(pose[0])), box, device="cpu").upper - 0.5) / (sign * h))
    np.testing.assert_allclose(sorted(sides), [-0.5, 0.5], atol=1e-5)
    assert slope.status == TIE
    assert slope.a.pose[2] == pytest.approx(1.0)


def test_contacts_without_a_slope_are_marked():
    box = tg.generate.box((1, 1, 1))

    def status(motion, **options):
        slope = gradient_of_time(box.moving(motion), box, **options)
        if slope.status not in (SMOOTH, TIE):
            assert not slope.a.pose.any()
            assert not slope.b.vertices.any()
        return slope.status

    corner = displaced(at(z=3.0), np.array([[0.1, 0.2, 0, 0.5, 0.3, 0.2]]))[0]
    assert status(tg.Twist(corner, (0, 0, -3.0), (0, 0, 0))) == SMOOTH
    assert status(tg.Twist(corner, (0, 0, 3.0), (0, 0, 0))) == GradientStatus.FREE
    assert status(tg.Twist(at(z=0.3), (0, 0, 3.0), (0, 0, 0))) == GradientStatus.START
    assert status(tg.Twist(at(z=3.0), (0, 0, -3.0), (0, 0, 0))) == TIE, "faces meet flat"
    flat = tg.Twist(at(x=-3.0, z=1.0 + 1e-7), (6.0, 0, -1e-3), (0, 0, 0))
    assert status(flat) in (GradientStatus.GRAZING, TIE)
    assert status(tg.Twist(corner, (0.3, 0.1, -3.0), (0, 0, 0)), grazing=10.0) == GradientStatus.GRAZING
    on_edge = displaced(at(x=0.5, z=3.0), np.array([[0, 0.1, 0, np.arctan(np.sqrt(0.5)), 0, 0]]))[0]
    on_edge[:3, :3] = on_edge[:3, :3] @ Rotation.from_euler("z", 45, degrees=True).as_matrix()
    lowest = (box.vertices @ on_edge[:3, :3].T).min(axis=0)[2]
    point = (box.vertices @ on_edge[:3, :3].T)[(box.vertices @ on_edge[:3, :3].T)[:, 2].argmin()]
    on_edge[0, 3] = 0.5 - point[0]
    assert lowest < -0.8
    assert status(tg.Twist(on_edge, (0, 0, -3.0), (0, 0, 0))) == TIE, "a corner falls on an edge"


def test_distances_without_a_slope_are_marked():
    box = tg.generate.box((1, 1, 1))
    inside = tg.gradients.distance(
        tg.distance(box, box.at(at(x=0.3)), device="cpu"), box, box.at(at(x=0.3)), device="cpu"
    )
    assert inside.status == GradientStatus.TOUCHING
    assert not inside.a.pose.any()
    assert (inside.a.corners == -1).all()
    moving = box.moving(tg.Twist(at(z=5.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    far = tg.least_clearance(moving, box, cap=0.1, device="cpu")
    slope = tg.gradients.clearance(far, moving, box, device="cpu")
    assert slope.status == GradientStatus.FREE
    assert np.isinf(slope.value)
    assert not slope.a.displacement.any()


def test_bad_input_is_told():
    box, ball = tg.generate.box((1, 1, 1)), tg.generate.icosphere(subdivisions=1).at(at(x=4.0))
    found = tg.distance(ball, box, device="cpu")
    with pytest.raises(InputError, match=r"found must be what tg\.first_contact answers"):
        tg.gradients.time(found, ball, box)
    with pytest.raises(InputError, match="tie must be finite"):
        tg.gradients.distance(found, ball, box, tie=-1.0, device="cpu")
    with pytest.raises(UnsupportedError, match="gradients are of meshes"):
        tg.gradients.distance(found, tg.Heightfield(np.zeros((3, 3)), spacing=1.0), box)
    with pytest.raises(InputError, match="there are 1 answers"):
        tg.gradients.distance(found, ball, box, time=[0.0, 1.0], device="cpu")
    slope = tg.gradients.distance(found, ball, box, device="cpu")
    with pytest.raises(InputError, match="no joint moves anything"):
        slope.by_joints()
    with pytest.raises(InputError, match=r"shape \(6, dof\)"):
        slope.by_joints(np.eye(4))
    np.testing.assert_allclose(slope.by_joints(np.eye(6), None), slope.a.pose)


@pytest.mark.cuda
def test_gradients_on_cuda_are_those_of_the_cpu(rng):
    poses = np.array([random_pose(rng, 2.4) for _ in range(50)])
    a = A.moving(tg.Rest(poses))
    one, other = (
        tg.gradients.distance(tg.distance(a, B, device=device), a, B, device=device) for device in ("cpu", "cuda:0")
    )
    assert (one.status == other.status).all()
    smooth = one.status == SMOOTH
    np.testing.assert_allclose(one.a.pose[smooth], other.a.pose[smooth], atol=1e-7)

"""Distances and meeting triangles by eights on CPUs: against brute force, and against the kernels of all devices."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from oracles.rigid_distances import mesh_distances
from oracles.triangles_meet import exact_meet
from tangere.bvh.obb import ObbTree
from tangere.motion import Rest
from tangere.query.contacts import Kind
from tangere.query.distance import api as distance_api
from tangere.query.distance import distance
from tangere.query.distance.traversal import BOUNDS, MEETING, NUMBERS, VECTORS, find_nearest
from tangere.query.intersection import intersecting_pairs
from tangere.query.intersection import traversal as intersection_traversal
from tangere.query.intersection.cpu import search as intersection_search
from tangere.runtime import launch, using_threads
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def soup(corners: np.ndarray, name: str) -> Mesh:
    return Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3), name=name)


def sheet(n: int, bend: float) -> Mesh:
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    at = np.arange(n * n).reshape(n, n)
    quads = np.stack([at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]], axis=-1).reshape(-1, 4)
    vertices = np.stack([x, y, bend * (x**2 - y**2)], axis=-1).reshape(-1, 3)
    return Mesh(vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]), name="sheet")


def slivers(rng: np.random.Generator, count: int) -> Mesh:
    begin, along = rng.normal(size=(count, 1, 3)), rng.normal(size=(count, 1, 3))
    corners = begin + along * np.array([0.0, 0.5, 1.0])[None, :, None]
    return soup(corners + 10.0 ** rng.uniform(-18, -3, (count, 1, 1)) * rng.normal(size=(count, 3, 3)), "slivers")


SHAPES = {
    "ball": generate.icosphere(subdivisions=2),
    "torus": generate.torus(500, bumps=0.2),
    "block": generate.box((0.6, 1.0, 1.4)),
    "sheet": sheet(9, 0.2),
    "plane": sheet(7, 0.0),
    "triangle": soup(np.array([[[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.2, 0.9, 0.4]]]), "triangle"),
    "slivers": slivers(np.random.default_rng(3), 60),
    "points": soup(np.repeat(np.random.default_rng(4).normal(size=(20, 1, 3)), 3, axis=1), "points"),
}


def posed(rng: np.random.Generator, away: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    direction = rng.normal(size=3)
    pose[:3, 3] = direction / np.linalg.norm(direction) * away
    return pose


def resized(mesh: Mesh, scale: float) -> Mesh:
    return mesh.replace(vertices=scale * mesh.vertices)


def by_pairs_of_boxes(a: Mesh, b: Mesh, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and vectors that the kernel of all devices finds on this one; poses (n, 2, 4, 4)."""
    trees = ObbTree.of(a, "cpu"), ObbTree.of(b, "cpu")
    numbers = wp.zeros((len(poses), NUMBERS), dtype=wp.int32, device="cpu")
    vectors = wp.zeros((len(poses), VECTORS), dtype=wp.vec3d, device="cpu")
    inputs = [trees[0].nodes, trees[1].nodes, trees[0].corners, trees[1].corners]
    inputs.append(wp.array(poses, dtype=wp.mat44d, device="cpu"))
    launch(find_nearest, len(poses), inputs, [numbers, vectors], device=wp.get_device("cpu"))
    return numbers.numpy(), vectors.numpy()


def check(a: Mesh, b: Mesh, poses: np.ndarray) -> np.ndarray:
    """Distances at poses (n, 2, 4, 4) against brute force and against pairs of boxes; how far they are."""
    found = distance(a.moving(Rest(poses[:, 0])), b.moving(Rest(poses[:, 1])), device="cpu")
    true = mesh_distances(a, b, poses[:, 0], poses[:, 1])
    size = np.abs(poses[:, :, :3, 3]).max(axis=(1, 2)) + max(np.abs(mesh.bounds).max() for mesh in (a, b))
    numbers, vectors = by_pairs_of_boxes(a, b, poses)
    room = 1e-14 * size  # of the two oracles
    assert (found.lower <= true + room).all()
    assert (true <= found.upper + room).all()
    assert (found.upper - found.lower <= 1e-12 * size + 1e-7 * (true < 1e-6 * size) * size).all()
    meet = found.kind == Kind.OVERLAP
    assert (numbers[meet, MEETING] != 0).all()
    assert (numbers[~meet, MEETING] != 1).all()
    apart = ~meet & (numbers[:, MEETING] == 0)
    assert (np.abs(found.upper - vectors[:, BOUNDS, 1])[apart] <= 2.0**-44 * size[apart]).all()
    return true


@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", ["ball", "torus", "sheet", "slivers"])
def test_distances_hold_and_are_those_of_pairs_of_boxes(rng, effort, first, second):
    away = np.append(rng.uniform(0.0, 4.0, effort(15, 3)), 12.0)
    poses = np.array([[posed(rng, 0.3), posed(rng, far)] for far in away])
    assert check(SHAPES[first], SHAPES[second], poses)[-1] > 2.0


@given(
    seed=st.integers(0, 2**32 - 1),
    names=st.tuples(st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(SHAPES))),
    scales=st.tuples(st.floats(-7, 4), st.floats(-7, 4)),
    away=st.floats(-8, 6),
    offset=st.sampled_from([0.0, 1.0, 1e5]),
)
def test_distances_hold_at_all_scales(seed, names, scales, away, offset):
    """Tiny beside huge, far apart or one within the other, far from the origin together."""
    rng = np.random.default_rng(seed)
    a, b = (resized(SHAPES[name], 10.0**scale) for name, scale in zip(names, scales, strict=True))
    poses = np.stack([posed(rng, 0.0), posed(rng, 10.0**away)])[None]
    poses[:, :, :3, 3] += offset * 10.0 ** max(scales)
    check(a, b, poses)


def test_surfaces_close_to_each_other_and_nested_are_told_apart(rng, effort):
    """Gaps below what float32 can tell of a size."""
    ball = SHAPES["ball"]
    for gap in (1e-3, 1e-6, 1e-9, 1e-12):
        inner = resized(ball, 1.0 - gap)
        poses = np.stack([np.eye(4), np.eye(4)])[None]
        true = check(ball, inner, poses)
        assert 0.5 * gap < true[0] < gap * (1.0 + 1e-3)


def test_touching_counts_as_meeting_and_a_hair_does_not():
    block = generate.box((1.0, 1.0, 1.0))
    for away, meets in ((1.0, True), (np.nextafter(1.0, 2.0), False), (1.0 + 1e-9, False), (1.0 - 1e-9, True)):
        pose = np.eye(4)
        pose[0, 3] = away
        found = distance(block, block.moving(Rest(pose)), device="cpu")
        assert (found.kind == Kind.OVERLAP) == meets
        assert (len(intersecting_pairs(block, block.moving(Rest(pose)), device="cpu")) > 0) == meets
        if not meets:
            assert found.lower <= away - 1.0 <= found.upper


@pytest.mark.parametrize("scale", [1e-11, 1e-9, 1e14, 1e17])
def test_beyond_the_range_of_eights_the_answer_goes_on(rng, scale):
    a, b = resized(SHAPES["torus"], scale), resized(SHAPES["ball"], scale)
    pose = posed(rng, 4.0 * scale)
    pose_b = np.stack([np.eye(4), pose])[None]
    found = distance(a, b.moving(Rest(pose)), device="cpu")
    assert found.upper == pytest.approx(mesh_distances(a, b, pose_b[:, 0], pose_b[:, 1])[0], rel=1e-9)
    pose[:3, 3] /= 8.0
    ours = intersecting_pairs(a, b.moving(Rest(pose)), device="cpu")
    same = pose.copy()
    same[:3, 3] /= scale
    assert len(ours) == pytest.approx(
        len(intersecting_pairs(SHAPES["torus"], SHAPES["ball"].moving(Rest(same)), device="cpu")), abs=2
    )


def test_one_pose_and_a_batch_have_the_same_bits_for_any_number_of_threads(rng, effort):
    a, b = SHAPES["torus"], SHAPES["sheet"]
    poses = np.stack([posed(rng, away) for away in rng.uniform(0.5, 3.0, effort(40))])
    seen = set()
    for threads in (1, 2, 3):
        with using_threads(threads):
            found = distance(a.moving(Rest(poses)), b, device="cpu")
        columns = (found.lower, found.upper, found.point_a, found.point_b, found.triangle_a, found.triangle_b)
        seen.add(b"".join(np.ascontiguousarray(column).tobytes() for column in columns))
    assert len(seen) == 1
    for k in range(0, len(poses), 7):
        one = distance(a.moving(Rest(poses[k])), b, device="cpu")
        assert (one.lower, one.upper, one.triangle_a) == (found.lower[k], found.upper[k], found.triangle_a[k])
        assert np.array_equal(one.point_a, found.point_a[k])


@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", ["ball", "torus", "plane", "slivers"])
def test_meeting_triangles_are_those_of_pairs_of_boxes(rng, effort, monkeypatch, first, second):
    a, b = SHAPES[first], SHAPES[second]
    poses = [posed(rng, away) for away in rng.uniform(0.0, 1.2, effort(8, 3))]
    found = [intersecting_pairs(a, b.moving(Rest(pose)), device="cpu") for pose in poses]
    monkeypatch.setattr(intersection_search, "fits_eights", lambda *_: False)
    for pairs, pose in zip(found, poses, strict=True):
        assert np.array_equal(pairs, intersecting_pairs(a, b.moving(Rest(pose)), device="cpu"))


def test_meeting_triangles_are_exactly_those_that_meet(rng, effort):
    a, b = SHAPES["torus"], SHAPES["sheet"]
    for _ in range(effort(4, 2)):
        placed = b.at(posed(rng, 0.6))
        s, t = a.vertices[a.faces], placed.vertices[placed.faces]
        near = ((s.min(1)[:, None] <= t.max(1)) & (t.min(1) <= s.max(1)[:, None])).all(axis=2)
        expected = [pair for pair in np.argwhere(near) if exact_meet(s[pair[0]], t[pair[1]])]
        assert np.array_equal(intersecting_pairs(a, placed, device="cpu"), np.reshape(expected, (-1, 2)))
        assert len(expected) > 0


def test_eights_are_what_answers_on_cpus(monkeypatch):
    """Teeth of this file: with the plain kernels taken away the answers are the same."""
    monkeypatch.setattr(distance_api, "_searches", None)
    monkeypatch.setattr(distance_api, "find_nearest", None)
    monkeypatch.setattr(intersection_traversal, "_descents", None)
    ball, pose = SHAPES["ball"], np.eye(4)
    pose[0, 3] = 3.0
    assert distance(ball, ball.moving(Rest(pose)), device="cpu").upper == pytest.approx(1.0)
    assert len(intersecting_pairs(ball, ball.moving(Rest(pose)), device="cpu")) == 0
    assert distance(ball, ball.moving(Rest(np.stack([pose, pose]))), device="cpu").upper == pytest.approx([1.0, 1.0])

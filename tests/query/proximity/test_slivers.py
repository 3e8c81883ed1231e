"""Distances to slivers, against exact ones: a thin triangle is as long as any other, and knows its plane badly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tangere.geometry.closest_points import (
    closest_on_triangle,
    face_near,
    face_offset,
    nearest_on_edges,
    nearest_on_face,
)
from tangere.query.proximity import Detector, proximity
from tangere.query.signed_distance import signed_distance
from tangere.runtime import SOUND, launch
from tangere.shape import generate
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Allowed error of a distance, relative to the size of the features.
ERROR = 1e-12

Point = Sequence[Fraction]


@wp.kernel
def _weights(first: int, x: wp.array2d[wp.vec3d], usual: wp.array[wp.vec3d], careful: wp.array[wp.vec3d]):
    i = first + wp.tid()
    usual[i] = nearest_on_face(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    careful[i] = closest_on_triangle(x[i, 0], x[i, 1], x[i, 2], x[i, 3])


@wp.kernel
def _distances(first: int, x: wp.array2d[wp.vec3d], weights: wp.array[wp.vec3d], distance: wp.array[wp.float64]):
    i = first + wp.tid()
    distance[i] = wp.length(face_offset(x[i, 0], x[i, 1], x[i, 2], x[i, 3], weights[i]))


@wp.kernel
def _near(first: int, x: wp.array2d[wp.vec3d], reach: wp.array[wp.float64], near: wp.array[wp.uint8]):
    i = first + wp.tid()
    near[i] = wp.uint8(face_near(x[i, 0], x[i, 1], x[i, 2], x[i, 3], reach[i]))


@wp.kernel
def _edge_parameters(first: int, x: wp.array2d[wp.vec3d], at: wp.array[wp.vec2d]):
    i = first + wp.tid()
    at[i] = nearest_on_edges(x[i, 0], x[i, 1], x[i, 2], x[i, 3])


def exact(points: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(x)) for x in p] for p in points]


def less(a: Point, b: Point) -> list[Fraction]:
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a: Point, b: Point) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def cross(a: Point, b: Point) -> list[Fraction]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def squared_to_segment(p: Point, a: Point, b: Point) -> Fraction:
    along, offset = less(b, a), less(p, a)
    length = dot(along, along)
    t = min(max(dot(offset, along) / length, Fraction(0)), Fraction(1)) if length else Fraction(0)
    way = [x - t * y for x, y in zip(offset, along, strict=True)]
    return dot(way, way)


def squared_to_triangle(p: Point, a: Point, b: Point, c: Point) -> Fraction:
    """Squared distance of p and the triangle, exactly."""
    sides = ((a, b), (b, c), (c, a))
    normal = cross(less(b, a), less(c, a))
    if any(normal) and all(dot(normal, cross(less(v, u), less(p, u))) >= 0 for u, v in sides):
        return dot(normal, less(p, a)) ** 2 / dot(normal, normal)
    return min(squared_to_segment(p, u, v) for u, v in sides)


def squared_of_edges(a: Point, b: Point, c: Point, d: Point) -> Fraction:
    """Squared distance of the edges ab and cd, exactly."""
    one, other, between = less(b, a), less(d, c), less(c, a)
    normal = cross(one, other)
    if any(normal):
        squared = dot(normal, normal)
        u, v = dot(cross(between, other), normal) / squared, dot(cross(between, one), normal) / squared
        if 0 <= u <= 1 and 0 <= v <= 1:
            return dot(normal, between) ** 2 / squared
    ends = ((a, c, d), (b, c, d), (c, a, b), (d, a, b))
    return min(squared_to_segment(p, u, v) for p, u, v in ends)


def is_root(distance: float, squared: Fraction, error: float) -> bool:
    """Whether a number is the root of another one up to an error."""
    above, below = Fraction(float(distance)) + Fraction(error), Fraction(float(distance)) - Fraction(error)
    return above * above >= squared and (below <= 0 or below * below <= squared)


def slivers(rng: np.random.Generator, count: int, aspect: float, scale: float) -> np.ndarray:
    """(n, 4, 3) points and thin triangles, turned: obtuse ones and needles, their corners in any order.

    Points lie on the triangles, above them, around them by their width, or anywhere.
    """
    corners = np.zeros((count, 3, 3))
    corners[:, 1, 0] = 1.0
    corners[:, 2, 0] = rng.uniform(-0.2, 1.2, count)
    corners[rng.random(count) < 0.3, 2, 0] = 0.0
    corners[:, 2, 1] = aspect * rng.uniform(0.1, 1.0, count)
    weights = rng.dirichlet([1.0, 1.0, 1.0], count)
    rim = rng.random(count) < 0.3
    weights[rim, rng.integers(3, size=rim.sum())] = 0.0
    p = np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), corners)
    way = rng.integers(4, size=count)
    p[way == 1, 2] += 10.0 ** rng.uniform(-14, 1, (way == 1).sum())
    p[way == 2] += aspect * rng.normal(size=((way == 2).sum(), 3))
    p[way == 3] += rng.normal(size=((way == 3).sum(), 3)) * 10.0 ** rng.uniform(-12, 0, ((way == 3).sum(), 1))
    corners = corners[np.arange(count)[:, None], rng.permuted(np.tile(np.arange(3), (count, 1)), axis=1)]
    turn = Rotation.random(count, random_state=int(rng.integers(2**31))).as_matrix()
    points = np.einsum("nij,nkj->nki", turn, np.concatenate([p[:, None], corners], axis=1))
    return scale * (points - rng.choice([0.0, 1.0], (count, 1, 1)) * points[:, :1])


def size(points: np.ndarray) -> np.ndarray:
    return (points.max(axis=1) - points.min(axis=1)).max(axis=1)


def of_faces(points: np.ndarray, device: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Weights and distances of `nearest_on_face` and of `closest_on_triangle`."""
    x = wp.array(points, dtype=wp.vec3d, device=device)
    columns = [wp.empty(len(points), dtype=wp.vec3d, device=device) for _ in range(2)]
    launch(_weights, len(points), [x], columns, device=wp.get_device(device))
    answers = {}
    for name, weights in zip(("usual", "careful"), columns, strict=True):
        distance = wp.empty(len(points), dtype=wp.float64, device=device)
        launch(_distances, len(points), [x, weights], [distance], device=wp.get_device(device))
        answers[name] = weights.numpy(), distance.numpy()
    return answers


def check_faces(points: np.ndarray, device: str) -> None:
    answers = of_faces(points, device)
    squared = [squared_to_triangle(*exact(row)) for row in points]
    for name, (weights, distance) in answers.items():
        assert ((weights >= 0.0) & (weights <= 1.0)).all()
        assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-14
        for row, d, q, s in zip(points, distance, squared, size(points), strict=True):
            assert is_root(d, q, ERROR * s), (name, row.tolist(), d, float(q) ** 0.5)
    x = wp.array(points, dtype=wp.vec3d, device=device)
    near = wp.empty(len(points), dtype=wp.uint8, device=device)
    truth = np.array([float(q) ** 0.5 for q in squared])
    for room, expected in ((2.0 * ERROR, True), (-2.0 * ERROR, False)):
        reach = wp.array(np.maximum(truth + room * size(points), 0.0), dtype=wp.float64, device=device)
        launch(_near, len(points), [x, reach], [near], device=wp.get_device(device))
        assert (near.numpy() == expected).all()


def thinness(test):
    """Asked with seeds, aspects and scales [m]."""
    exponent = st.floats(-9.0, -1.0)
    return given(st.integers(0, 2**31), exponent.map(lambda x: 10.0**x), st.sampled_from([1e-6, 1e-3, 1.0, 1e6]))(test)


@thinness
def test_the_distance_of_a_vertex_and_a_sliver_is_right(seed, aspect, scale):
    check_faces(slivers(np.random.default_rng(seed), 40, aspect, scale), "cpu")


def test_the_distance_is_right_about_where_slivers_begin_to_be_asked_with_care(rng, effort, device):
    for aspect in 10.0 ** rng.uniform(-2.5, -1.0, effort(100)):
        check_faces(slivers(rng, 40, aspect, 1.0), device)


def test_triangles_thinner_than_rounding_are_their_edges(rng, effort, device):
    for aspect in 10.0 ** rng.uniform(-18.0, -9.0, effort(50)):
        check_faces(slivers(rng, 40, aspect, 1.0), device)


@pytest.mark.parametrize("corner", range(3))
def test_a_point_beyond_a_sliver_is_nearest_to_its_rim_where_a_weight_is_exactly_zero(corner, rng, device):
    points = slivers(rng, 3000, 1e-7, 1.0)
    at = points[:, 1 + corner]
    points[:, 0] = at + (at - points[:, 1:].mean(axis=1))  # beyond a corner, along the sliver or across it
    for weights, _ in of_faces(points, device).values():
        assert (weights == 0.0).any(axis=1).all()


def edge_pairs(rng: np.random.Generator, count: int, angle: float, scale: float) -> np.ndarray:
    """(n, 4, 3) two edges each that cross, or pass each other at a distance, at up to a small angle; turned."""
    along = np.zeros((count, 2, 3))
    along[:, 0, 0] = 1.0
    along[:, 1, 0] = rng.choice([-1.0, 1.0], count) * rng.uniform(0.5, 2.0, count)
    along[:, 1, 1] = angle * rng.uniform(0.1, 1.0, count)
    at = rng.uniform(-0.1, 1.1, (count, 2, 1, 1))
    ends = np.array([0.0, 1.0])[None, None, :, None]
    edges = (ends - at) * along[:, :, None]
    far = rng.random(count) < 0.5
    edges[far, 1, :, 2] += 10.0 ** rng.uniform(-14, 0, (far.sum(), 1))
    turn = Rotation.random(count, random_state=int(rng.integers(2**31))).as_matrix()
    points = np.einsum("nij,nkj->nki", turn, edges.reshape(count, 4, 3))
    return scale * (points - rng.choice([0.0, 1.0], (count, 1, 1)) * points[:, :1])


@thinness
def test_the_distance_of_two_edges_at_a_small_angle_is_right(seed, angle, scale):
    points = edge_pairs(np.random.default_rng(seed), 40, angle, scale)
    x = wp.array(points, dtype=wp.vec3d, device="cpu")
    at = wp.empty(len(points), dtype=wp.vec2d, device="cpu")
    launch(_edge_parameters, len(points), [x], [at], device=wp.get_device("cpu"))
    u, v = at.numpy().T[:, :, None]
    a, b, c, d = points.transpose(1, 0, 2)
    distance = np.linalg.norm((a - c) + u * (b - a) - v * (d - c), axis=1)
    for row, apart, s in zip(points, distance, size(points), strict=True):
        assert is_root(apart, squared_of_edges(*exact(row)), ERROR * s)


def needle_at(p: np.ndarray, corners: np.ndarray) -> Mesh:
    """A triangle that stands with its tip p on another one, or above it."""
    up = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    up *= 2.0 / np.linalg.norm(up)
    return Mesh(np.stack([p, p + up, p + up + [0.1, 0.0, 0.0]]), [[0, 1, 2]])


@thinness
def test_proximity_and_detector_find_a_vertex_on_a_sliver(seed, aspect, scale):
    rng = np.random.default_rng(seed)
    for p, *corners in slivers(rng, 4, aspect, 1.0):
        one, other = Mesh(np.array(corners), [[0, 1, 2]]), needle_at(p, np.array(corners))
        distance = float(squared_to_triangle(*exact([p, *corners]))) ** 0.5 + 5.0 * ERROR
        scene = [one.replace(vertices=scale * one.vertices), other.replace(vertices=scale * other.vertices)]
        assert len(proximity(*scene, distance=scale * distance, device="cpu")) > 0
        detector = Detector(scene, distance=scale * distance, device="cpu")
        assert len(detector.find(np.concatenate([mesh.vertices for mesh in scene]))) > 0


def test_the_signed_distance_of_a_point_on_a_thin_box_is_zero(rng, effort, device):
    box = generate.box((2.0, 1e-6, 2.0))
    for turn in Rotation.random(effort(100), random_state=115).as_matrix():
        mesh = box.replace(vertices=box.vertices @ turn.T)
        corners = mesh.vertices[mesh.faces[rng.integers(len(mesh.faces), size=20)]]
        points = np.einsum("nk,nkd->nd", rng.dirichlet([1.0, 1.0, 1.0], 20), corners)
        found = signed_distance(points, mesh, device=device)
        assert np.abs(found.distance).max() < ERROR * mesh.extent

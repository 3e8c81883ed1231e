"""Nearest points of vertex and face, and of two edges, against NumPy and against the definition of a minimum."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.distances import feature_distance
from tangere.geometry.closest_points import (
    centred_on_edges,
    edges_near,
    edges_offset,
    face_near,
    face_offset,
    nearest_on_edges,
    nearest_on_face,
)
from tangere.query.contacts import Kind
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Allowed error of a distance, relative to the size of the features.
ERROR = 1e-12


@wp.kernel
def _face_weights(first: int, x: wp.array2d[wp.vec3d], weights: wp.array[wp.vec3d], distance: wp.array[wp.float64]):
    i = first + wp.tid()
    weights[i] = nearest_on_face(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    distance[i] = wp.length(face_offset(x[i, 0], x[i, 1], x[i, 2], x[i, 3], weights[i]))


@wp.kernel
def _edge_parameters(
    first: int, centred: int, x: wp.array2d[wp.vec3d], at: wp.array[wp.vec2d], distance: wp.array[wp.float64]
):
    i = first + wp.tid()
    at[i] = nearest_on_edges(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    if centred == 1:
        at[i] = centred_on_edges(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    distance[i] = wp.length(edges_offset(x[i, 0], x[i, 1], x[i, 2], x[i, 3], at[i]))


@wp.kernel
def _near(
    first: int,
    x: wp.array2d[wp.vec3d],
    reach: wp.array[wp.float64],
    face: wp.array[wp.uint8],
    edge: wp.array[wp.uint8],
    turned: wp.array[wp.uint8],
):
    i = first + wp.tid()
    face[i] = wp.uint8(face_near(x[i, 0], x[i, 1], x[i, 2], x[i, 3], reach[i]))
    edge[i] = wp.uint8(edges_near(x[i, 0], x[i, 1], x[i, 2], x[i, 3], False, reach[i]))
    turned[i] = wp.uint8(edges_near(x[i, 2], x[i, 3], x[i, 0], x[i, 1], True, reach[i]))


def faces(points: np.ndarray, device: str = "cpu") -> tuple[np.ndarray, np.ndarray]:
    x = wp.array(points, dtype=wp.vec3d, device=device)
    weights = wp.empty(len(points), dtype=wp.vec3d, device=device)
    distance = wp.empty(len(points), dtype=wp.float64, device=device)
    launch(_face_weights, len(points), [x], [weights, distance], device=wp.get_device(device))
    return weights.numpy(), distance.numpy()


def edges(points: np.ndarray, centred: bool = False, device: str = "cpu") -> tuple[np.ndarray, np.ndarray]:
    x = wp.array(points, dtype=wp.vec3d, device=device)
    at = wp.empty(len(points), dtype=wp.vec2d, device=device)
    distance = wp.empty(len(points), dtype=wp.float64, device=device)
    launch(_edge_parameters, len(points), [int(centred), x], [at, distance], device=wp.get_device(device))
    return at.numpy(), distance.numpy()


def quadruples(rng: np.random.Generator, count: int) -> np.ndarray:
    """Four points each: generic, on small integers (degenerate and parallel ones are common), slivers, far away."""
    part = count // 5
    slivers = rng.normal(size=(part, 4, 3))
    slivers[:, 3] = slivers[:, 1] + (slivers[:, 2] - slivers[:, 1]) * rng.uniform(-1, 2, (part, 1))
    slivers[:, 3] += rng.normal(size=(part, 3)) * 10.0 ** rng.uniform(-16, -2, (part, 1))
    parallel = rng.normal(size=(part, 4, 3))
    parallel[:, 3] = parallel[:, 2] + (parallel[:, 1] - parallel[:, 0]) * rng.uniform(-2, 2, (part, 1))
    parallel[:, 3] += rng.normal(size=(part, 3)) * 10.0 ** rng.uniform(-16, -2, (part, 1))
    return np.concatenate(
        [
            rng.normal(size=(count - 4 * part, 4, 3)),
            rng.integers(-2, 3, (part, 4, 3)).astype(float),
            slivers,
            parallel,
            rng.normal(size=(part, 4, 3)) + 1e3,
        ]
    )


def size(points: np.ndarray) -> np.ndarray:
    return (points.max(axis=1) - points.min(axis=1)).max(axis=1) + 1e-3 * np.abs(points).max(axis=(1, 2))


COUNTS = [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)]


@pytest.mark.feature("F-L-33")
@pytest.mark.parametrize("count", COUNTS)
def test_the_distance_of_a_vertex_and_a_face_is_right_on_generic_and_degenerate_pairs(count, rng, effort, device):
    points = quadruples(rng, effort(count))
    weights, distance = faces(points, device)
    assert (weights >= 0.0).all()
    assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-14
    expected = feature_distance(Kind.VERTEX_FACE, points)
    assert (np.abs(distance - expected) <= ERROR * size(points)).all()


@pytest.mark.feature("F-L-34")
@pytest.mark.parametrize("count", COUNTS)
def test_the_distance_of_two_edges_is_right_on_generic_and_degenerate_pairs(count, rng, effort, device):
    points = quadruples(rng, effort(count))
    at, distance = edges(points, device=device)
    assert ((at >= 0.0) & (at <= 1.0)).all()
    expected = feature_distance(Kind.EDGE_EDGE, points)
    assert (np.abs(distance - expected) <= ERROR * size(points)).all()
    _, centred = edges(points, centred=True, device=device)
    assert (np.abs(centred - expected) <= 2.0 * ERROR * size(points)).all()


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_what_rejects_far_pairs_early_rejects_no_near_one_and_who_asks_does_not_matter(scale, rng, effort, device):
    points = quadruples(rng, effort(100_000))
    points = np.concatenate([points, points * [1.0, 1.0, 1e-6]]) * scale  # also all but flat
    columns = [faces(points, device)[1], edges(points, device=device)[1]]
    x = wp.array(points, dtype=wp.vec3d, device=device)
    for part in (1.0 - 1e-9, 1.0, 1.0 + 1e-9, 0.3, 3.0):
        for kind, distance in enumerate(columns):
            reach = wp.array(part * distance, dtype=wp.float64, device=device)
            flags = [wp.empty(len(points), dtype=wp.uint8, device=device) for _ in range(3)]
            launch(_near, len(points), [x, reach], flags, device=wp.get_device(device))
            face, edge, turned = (f.numpy().astype(bool) for f in flags)
            expected = np.square(distance) < np.square(part * distance)
            clear = np.abs(distance - part * distance) > 1e-14 * distance  # not a matter of the last digit
            assert np.array_equal((face, edge)[kind][clear], expected[clear])
            assert np.array_equal(edge, turned)


def test_edges_that_cross_in_their_middles_and_a_vertex_in_the_middle_of_a_face_are_near(rng):
    count = 20_000
    middle, one, other = rng.normal(size=(3, count, 3)) * 10.0 ** rng.uniform(-8, 8, (count, 1))
    crossing = np.stack([middle - one, middle + one, middle - other, middle + other], axis=1)
    corners = np.stack([middle + one, middle + other, middle - one - other], axis=1)
    inside = np.concatenate([corners.mean(axis=1, keepdims=True), corners], axis=1)
    for kind, points in ((1, crossing), (0, inside)):
        x = wp.array(points, dtype=wp.vec3d, device="cpu")
        reach = wp.array(1e-6 * size(points), dtype=wp.float64, device="cpu")
        flags = [wp.empty(count, dtype=wp.uint8, device="cpu") for _ in range(3)]
        launch(_near, count, [x, reach], flags, device=wp.get_device("cpu"))
        assert flags[kind].numpy().all()


def test_every_region_of_the_plane_of_a_triangle_is_met(rng):
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.3, 0.8, 0.0]])
    p = np.concatenate([rng.uniform(-2.0, 3.0, (5000, 2)), rng.normal(size=(5000, 1))], axis=1)
    points = np.concatenate([p[:, None], np.broadcast_to(corners, (5000, 3, 3))], axis=1)
    weights, _ = faces(points)
    regions = {tuple(row) for row in (weights > 0.0).tolist()}
    assert len(regions) == 7  # the face, three edges, three corners


@pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE])
def test_swapping_and_moving_changes_nothing(kind, rng):
    points = quadruples(rng, 5000)[:2000]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    ask = faces if kind == Kind.VERTEX_FACE else edges
    _, usual = ask(points)
    _, moved = ask(points @ turn + [1.0, -2.0, 0.5])
    order = [0, 2, 3, 1] if kind == Kind.VERTEX_FACE else [2, 3, 0, 1]
    _, swapped = ask(points[:, order])
    assert np.abs(moved - usual).max() < 1e-11
    assert np.abs(swapped - usual).max() < 1e-12


@pytest.mark.feature("F-L-35")
def test_parallel_edges_touch_in_the_middle_of_their_overlap_or_at_their_ends(rng):
    direction = np.array([0.3, -0.5, 0.8])
    across = np.cross(direction, [1.0, 0.0, 0.0])
    begin, end = rng.uniform(-1.5, 1.5, (2, 500))
    points = np.zeros((500, 4, 3))
    points[:, 1] = direction
    points[:, 2] = across + begin[:, None] * direction
    points[:, 3] = across + end[:, None] * direction
    at, distance = edges(points, centred=True)
    low, high = np.maximum(0.0, np.minimum(begin, end)), np.minimum(1.0, np.maximum(begin, end))
    overlap = low < high
    assert 100 < overlap.sum() < 450
    middle = 0.5 * (low + high)
    assert np.allclose(at[overlap, 0], middle[overlap], atol=1e-9)
    assert np.allclose((at[:, 1] * (end - begin) + begin)[overlap], middle[overlap], atol=1e-9)
    assert np.allclose(distance[overlap], np.linalg.norm(across), atol=1e-12)
    ends = at[~overlap]
    assert (np.isin(ends, [0.0, 1.0])).all()
    assert np.allclose(distance, feature_distance(Kind.EDGE_EDGE, points), atol=1e-12)

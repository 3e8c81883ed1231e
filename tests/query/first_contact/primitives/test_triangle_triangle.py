"""Two moving triangles: the earliest of fifteen tests, and overlap at the start."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import tangere as tg
from oracles.distances import feature_distance
from oracles.fraction_ccd import hulls_meet
from oracles.mesh_contacts import triangles_intersect
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import FirstContacts, edge_edge, triangle_triangle, vertex_face
from tangere.runtime import InputError

FACE = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
BELOW = [[-4, -4, 0], [4, -4, 0], [0, 4, 0]]


def both(a, b) -> np.ndarray:
    """Two triangles as one batch of one pair, (1, 6, 3)."""
    return np.array([[*a, *b]], dtype=float)


def solve(x0: np.ndarray, x1: np.ndarray, **options) -> FirstContacts:
    return triangle_triangle(x0, x1, **{"device": "cpu", **options})


def approaching(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Deforming triangles that start apart and fly at each other: most touch."""
    x0 = rng.uniform(-1, 1, (n, 6, 3))
    x0[:, 3:] += [0, 0, 2.5]
    x1 = x0 + rng.normal(0, 0.3, x0.shape)
    x1[:, 3:] -= rng.uniform(0.5, 5, (n, 1, 1)) * [0, 0, 1]
    return x0, x1


def on_grid(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Small integers: coplanar, parallel, touching and overlapping pairs in numbers."""
    return tuple(rng.integers(-2, 3, (2, n, 6, 3)).astype(float))


def fifteen_times(x0: np.ndarray, x1: np.ndarray, **options) -> np.ndarray:
    """(n, 15) times of all choices of four among the six corners that mix the triangles."""
    columns = []
    for four in combinations(range(6), 4):
        first, second = [k for k in four if k < 3], [k for k in four if k >= 3]
        if len(first) == 2:
            query, order = edge_edge, [*first, *second]
        else:
            query, order = vertex_face, [*first, *second] if len(first) == 1 else [*second, *first]
        columns.append(query(x0[:, order], x1[:, order], device="cpu", **options).time)
    assert len(columns) == 15
    return np.stack(columns, axis=1)


@pytest.mark.feature("F-T-15")
@pytest.mark.parametrize("mode", ["sound", "exact"])
@pytest.mark.parametrize("motion", [approaching, on_grid])
def test_the_time_is_the_earliest_of_all_fifteen_tests(motion, mode, effort, rng):
    x0, x1 = motion(effort(300, least=150), rng)
    times = fifteen_times(x0, x1, mode=mode)
    answer = solve(x0, x1, mode=mode, start="trusted")
    np.testing.assert_array_equal(answer.time, times.min(axis=1))
    np.testing.assert_array_equal(answer.status == Status.FREE, np.isinf(answer.time))
    np.testing.assert_array_equal(answer.test == -1, np.isinf(answer.time))
    assert np.all(answer.time <= answer.time_upper)
    assert np.count_nonzero(answer.hit) > 0.3 * len(x0)
    assert np.unique(answer.test[answer.hit]).size > 10


@pytest.mark.feature("F-T-17")
@pytest.mark.parametrize("motion", ["at rest", "apart"])
def test_the_start_is_reported_where_the_triangles_intersect_and_nowhere_else(motion, effort, rng, device):
    x0 = np.concatenate([rng.integers(-2, 3, (effort(250), 6, 3)).astype(float), rng.normal(0, 1, (effort(250), 6, 3))])
    x1 = x0.copy()
    if motion == "apart":
        x1[:, 3:] += 10.0
    meet = np.array([hulls_meet(pair[:3], pair[3:]) for pair in x0])
    assert 0.2 < meet.mean() < 0.9
    np.testing.assert_array_equal(meet, [triangles_intersect(pair[:3], pair[3:]) for pair in x0])
    for mode in ("sound", "exact"):
        answer = solve(x0, x1, mode=mode, device=device)
        np.testing.assert_array_equal(answer.status == Status.START, meet)
        assert np.all(answer.time[meet] == 0.0)
        assert np.all(answer.time[~meet] > 0.0)
        if motion == "at rest":
            assert np.all(answer.status[~meet] == Status.FREE)


@pytest.mark.feature("F-T-17")
@pytest.mark.parametrize(
    ("name", "a", "b", "overlapping"),
    [
        ("pierced", BELOW, [[0, 0, -1], [0.5, 0, 1], [-0.5, 0.5, 1]], True),
        ("identical", FACE, FACE, True),
        ("one inside the other, coplanar", BELOW, [[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]], True),
        ("the other inside the one", [[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]], BELOW, True),
        ("coplanar, overlapping", FACE, [[0.25, 0.25, 0], [2, 0.25, 0], [2, 2, 0]], True),
        ("a corner on a face", BELOW, [[0, 0, 0], [1, 0, 1], [0, 1, 1]], True),
        ("beside an edge", BELOW, [[-4, 0, -1], [-4, 0, 1], [-9, 0, 0]], False),
        ("a corner on a corner", FACE, [[1, 0, 0], [2, 0, 0], [2, 0, 1]], True),
        ("a common edge", FACE, [[0, 0, 0], [1, 0, 0], [0, -1, 1]], True),
        ("a segment through a face", BELOW, [[0, 0, -1], [0, 0, 1], [0, 0, 3]], True),
        ("a point on a face", BELOW, [[0, 0, 0]] * 3, True),
        ("a point beside a face", FACE, [[1, 1, 0]] * 3, False),
        ("coplanar, apart", FACE, [[2, 0, 0], [3, 0, 0], [2, 1, 0]], False),
        ("parallel, a little above", BELOW, [[0, 0, 2.0**-40], [1, 0, 2.0**-40], [0, 1, 2.0**-40]], False),
        ("far away", FACE, [[1e6, 1e6, 0], [1e6 + 1, 1e6, 0], [1e6, 1e6 + 1, 0]], False),
    ],
)
def test_a_pair_at_relative_rest_is_in_contact_from_the_start_or_never(name, a, b, overlapping):
    x0 = both(a, b)
    assert hulls_meet(x0[0, :3], x0[0, 3:]) == overlapping, name
    for shift in (0.0, 1.0):
        answer = solve(x0, x0 + shift)
        assert Status(answer.status[0]) == (Status.START if overlapping else Status.FREE), name
        assert answer.time[0] == (0.0 if overlapping else np.inf)


def test_an_overlap_that_no_boundary_event_shows_is_of_kind_overlap_at_a_common_point():
    x0 = both(BELOW, [[0, 0, -1], [0.5, 0, 1], [-0.5, 0.5, 1]])
    answer = solve(x0, x0 + 1.0)
    assert Kind(answer.kind[0]) == Kind.OVERLAP
    assert answer.test[0] == -1
    assert answer.time_upper[0] == 0.0
    np.testing.assert_array_equal(answer.point_a, answer.point_b)
    for triangle in (x0[0, :3], x0[0, 3:]):
        assert feature_distance(Kind.VERTEX_FACE, np.stack([answer.point_a[0], *triangle])) < 1e-12
    assert np.linalg.norm(answer.normal[0]) == pytest.approx(1.0)
    assert solve(x0, x0 + 1.0, start="trusted").status[0] == Status.FREE


def test_the_normal_of_an_overlap_pushes_the_first_away_whoever_has_the_edge():
    flat, piercing = BELOW, [[0, 0, -1], [0.5, 0, 1], [-0.5, 0.5, 1]]
    there, back = (solve(x0, x0).normal[0] for x0 in (both(flat, piercing), both(piercing, flat)))
    np.testing.assert_array_equal(there, -back)
    meshes = [tg.Mesh(triangle, [[0, 1, 2]]) for triangle in (flat, piercing)]
    np.testing.assert_array_equal(there, tg.first_contact(*meshes, device="cpu").contacts.normal[0])


def test_a_contact_later_than_an_overlap_at_the_start_does_not_hide_it():
    x0 = both(BELOW, [[0, 0, -1], [0.5, 0, 1], [-0.5, 0.5, 1]])
    leaving = x0 + [[[0, 0, 0]] * 3 + [[0, 0, 5]] * 3]
    assert 0.0 < solve(x0, leaving, start="trusted").time[0] < 1.0
    assert solve(x0, leaving).status[0] == Status.START


@pytest.mark.feature("F-T-20")
def test_points_lie_on_their_triangle_and_the_normal_pushes_the_first_away(effort, rng):
    x0, x1 = approaching(effort(500), rng)
    answer = solve(x0, x1)
    rows = np.flatnonzero(answer.status == Status.CONTACT)
    t = answer.time[rows, None, None]
    now = x0[rows] * (1 - t) + x1[rows] * t
    for point, corners in ((answer.point_a, now[:, :3]), (answer.point_b, now[:, 3:])):
        with_point = np.concatenate([point[rows, None], corners], axis=1)
        assert feature_distance(Kind.VERTEX_FACE, with_point).max() < 1e-9
    assert np.abs(answer.point_a[rows] - answer.point_b[rows]).max() < 1e-6
    velocity = x1[rows] - x0[rows]
    speeds = [
        material_velocity(answer.point_a[rows], now[:, :3], velocity[:, :3]),
        material_velocity(answer.point_b[rows], now[:, 3:], velocity[:, 3:]),
    ]
    assert np.all(np.einsum("nd,nd->n", speeds[0] - speeds[1], answer.normal[rows]) < 0.0)


def material_velocity(point: np.ndarray, corners: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Velocity of the point of each triangle, by barycentric weights from least squares."""
    rows = []
    for p, c, v in zip(point, corners, velocity, strict=True):
        weights = np.linalg.lstsq(np.vstack([c.T, np.ones(3)]), [*p, 1.0], rcond=None)[0]
        rows.append(weights @ v)
    return np.array(rows)


def test_the_test_that_is_named_is_one_that_touches_then(effort, rng):
    x0, x1 = approaching(effort(200), rng)
    answer = solve(x0, x1)
    vertex_first = [(3, 0, 1, 2), (4, 0, 1, 2), (5, 0, 1, 2), (0, 3, 4, 5), (1, 3, 4, 5), (2, 3, 4, 5)]
    edges = [(*a, *b) for a in ((0, 1), (0, 2), (1, 2)) for b in ((3, 4), (3, 5), (4, 5))]
    for row in np.flatnonzero(answer.hit):
        four = list([*vertex_first, *edges][answer.test[row]])
        query = vertex_face if answer.test[row] < 6 else edge_edge
        alone = query(x0[[row]][:, four], x1[[row]][:, four], device="cpu")
        assert alone.time[0] == answer.time[row]
        assert alone.kind[0] == answer.kind[row]
        np.testing.assert_array_equal(alone.weights[0], answer.weights[row])


def test_a_separation_counts_between_triangles_too():
    x0 = both(BELOW, [[0, 0, 1], [0.5, 0, 2], [0, 0.5, 2]])
    falling = x0 - [[[0, 0, 0]] * 3 + [[0, 0, 2]] * 3]
    assert solve(x0, falling).time[0] == pytest.approx(0.5, abs=1e-9)
    assert solve(x0, falling, separation=0.25).time[0] == pytest.approx(0.375, abs=1e-9)
    assert solve(x0, x0, separation=1.5).status[0] == Status.START
    assert solve(x0, x0, separation=0.5).status[0] == Status.FREE


def test_triangles_far_apart_and_crossing_paths_at_other_times_stay_free():
    x0 = both(FACE, [[5, 0, 0], [6, 0, 0], [5, 1, 0]])
    passing = x0 + [[[5, 0, 5]] * 3 + [[-5, 0, -5]] * 3]
    assert solve(x0, passing).status[0] == Status.FREE


@pytest.mark.parametrize("details", [True, False])
def test_no_pairs_give_no_answers(details):
    nothing = np.zeros((0, 6, 3))
    answer = solve(nothing, nothing, details=details)
    assert len(answer) == len(answer.test) == 0
    if details:
        assert answer.normal.shape == (0, 3)
        assert answer.weights.shape == (0, 4)


@pytest.mark.parametrize("separation", [0.0, 0.1])
def test_a_bad_coordinate_is_refused_by_the_number_of_its_pair(separation, rng):
    x0 = rng.normal(size=(9, 6, 3))
    x1 = x0 + 1.0
    x1[7, 4, 1] = np.nan
    with pytest.raises(InputError, match=r"\b7\b"):
        solve(x0, x1, separation=separation)


def test_the_start_is_checked_or_trusted_and_nothing_else():
    with pytest.raises(InputError, match="checked"):
        solve(np.zeros((1, 6, 3)), np.zeros((1, 6, 3)), start="maybe")
